"""What a comparison gives: two numbers measured in turns, and their ratio."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Better = Literal["more", "less", "same"]


class AbsentError(Exception):
    """The peer is not here; the text says what is missing."""


@dataclass(frozen=True)
class Row:
    """One measure of both.

    Attributes:
        name: What is compared: `caches/lru`.
        peer: What it is compared with, with its version.
        unit: Of both numbers.
        better: Whether `more` or `less` of it is better, or `same`: then both measure one thing.
        ours: The median of the rounds.
        theirs: Likewise.
        ratio: The median over the rounds of how many times better ours is; for `same`, ours over
            theirs. Each round has both, one after the other.
        ratios: Of each round, in order of size.
        note: What stands beside it, such as that both found the same.
    """

    name: str
    peer: str
    unit: str
    better: Better
    ours: float
    theirs: float
    ratio: float
    ratios: list[float]
    note: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def row(
    name: str,
    peer: str,
    unit: str,
    better: Better,
    rounds: list[tuple[float, float]],
    note: str = "",
) -> Row:
    """A row of rounds, each ours and theirs. Both must be above zero."""
    ratios = sorted(theirs / ours if better == "less" else ours / theirs for ours, theirs in rounds)
    return Row(
        name,
        peer,
        unit,
        better,
        statistics.median(ours for ours, _ in rounds),
        statistics.median(theirs for _, theirs in rounds),
        statistics.median(ratios),
        ratios,
        note,
    )


def run(*words: object, where: Path | None = None) -> str:
    """What a command prints.

    Raises CalledProcessError, with what it said, if it fails.
    """
    command = [str(word) for word in words]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=where).stdout


def agewell(*words: object) -> dict[str, Any]:
    """What a command of agewell prints with `--json`."""
    document: dict[str, Any] = json.loads(run(sys.executable, "-m", "agewell", *words, "--json"))
    return document


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turns(
    rounds: int, ours: Callable[[], object], theirs: Callable[[], object]
) -> list[tuple[float, float]]:
    """Seconds of both in each round; who goes first changes, so that neither is always warm."""
    return list(_turns(rounds, ours, theirs))


def _turns(
    rounds: int, ours: Callable[[], object], theirs: Callable[[], object]
) -> Iterator[tuple[float, float]]:
    for number in range(rounds):
        if number % 2:
            second = seconds(theirs)
            yield seconds(ours), second
        else:
            yield seconds(ours), seconds(theirs)
