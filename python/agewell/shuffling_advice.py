"""Whether shuffling the requests that a layout sends would pay, and by which quantum and interval.

The chosen layout runs once more with `[run] record = true`, which leaves the block requests that it
sent; they are replayed over the same drive as they lie and shuffled (Ruemmler & Wilkes 1991), each
quantum and interval twice: with moves that are free, as in the report of 1991, which bounds what
there is to gain, and with moves as disk requests in quiet periods, which is what it comes to. What
the moves take counts against what they save.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agewell.advising import EXPERIMENTS_FOLDER, Advice, Search
from agewell.comparing import CLOSE_RATIO
from agewell.configuration import Configuration
from agewell.simulation import RESULT_FILE

REQUESTS_FILE = "requests.parquet"
QUANTA = ("cylinder", "track", "block")
INTERVALS = (4, 16)
"""Rearrangements in the time of the workload; chosen by us: rarely and often."""
MOVES = ("instant", "idle")

_RECORDING_FILE = "recommended-recorded.toml"


@dataclass(frozen=True, slots=True)
class Shuffled:
    """One quantum and interval.

    Attributes:
        quantum: `[remap] quantum`.
        interval: `[remap] interval`.
        free_saved_pct: Disk time saved if the moves are free; None if it could not be done.
        paid_saved_pct: Disk time saved with what the moves in quiet periods take counted.
        move_requests: Disk requests that moves in quiet periods took.
        moves_left: Wanted, but there was no quiet time, or a new plan came first.
        files: Its experiments: free and paid, without the folder.
        cannot: Why it could not be done, or empty.
    """

    quantum: str
    interval: str
    free_saved_pct: float | None
    paid_saved_pct: float | None
    move_requests: int
    moves_left: int
    files: Sequence[str]
    cannot: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "quantum": self.quantum,
            "interval": self.interval,
            "free_saved_pct": self.free_saved_pct,
            "paid_saved_pct": self.paid_saved_pct,
            "move_requests": self.move_requests,
            "moves_left": self.moves_left,
            "files": [f"{EXPERIMENTS_FOLDER}/{name}" for name in self.files],
            "cannot": self.cannot or None,
        }


@dataclass(frozen=True, slots=True)
class ShufflingAdvice:
    """What shuffling would come to; `note` says why nothing was tried, or is empty."""

    tried: Sequence[Shuffled]
    note: str = ""

    @property
    def best(self) -> Shuffled | None:
        """The quantum and interval that saves most with its moves counted."""
        able = [each for each in self.tried if each.paid_saved_pct is not None]
        return max(able, key=lambda each: each.paid_saved_pct or 0.0, default=None)

    def sentence(self) -> str:
        """The advice in words."""
        best = self.best
        if best is None or best.paid_saved_pct is None:
            reason = self.note or (self.tried[0].cannot if self.tried else "nothing was tried")
            return f"No advice on shuffling: {reason}."
        close_pct = 100.0 * (1.0 - 1.0 / CLOSE_RATIO)
        if best.paid_saved_pct > close_pct:
            return (
                f"Shuffle by {best.quantum}, every {best.interval}: it saves "
                f"{best.paid_saved_pct:.1f} % more, moves counted "
                f"({EXPERIMENTS_FOLDER}/{best.files[1]})."
            )
        free = max(self.tried, key=lambda each: each.free_saved_pct or float("-inf"))
        gain = free.free_saved_pct or 0.0
        if gain <= close_pct:
            return (
                "Do not shuffle: even with moves for nothing no quantum and interval saves more "
                f"than {max(gain, 0.0):.1f} % ({EXPERIMENTS_FOLDER}/{free.files[0]})."
            )
        if best.move_requests == 0:
            return (
                f"Do not shuffle: with moves for nothing it would save {gain:.1f} % "
                f"({EXPERIMENTS_FOLDER}/{free.files[0]}), but the disk is never quiet for a move."
            )
        return (
            f"Do not shuffle: with moves for nothing it would save {gain:.1f} % "
            f"({EXPERIMENTS_FOLDER}/{free.files[0]}), with the moves counted "
            f"{best.paid_saved_pct:.1f} % at best ({EXPERIMENTS_FOLDER}/{best.files[1]})."
        )

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "note": self.note or None,
            "tried": [each.document() for each in self.tried],
            "advice": self.sentence(),
        }


def advise_on_shuffling(search: Search, advice: Advice) -> ShufflingAdvice:
    """Replay what the recommended layout sends, as it lies and shuffled.

    Raises:
        RunError: A run was lost; the finished ones stay.
    """
    if "kind" in search.device.table:
        return ShufflingAdvice([], "on a disk of two numbers no place is nearer than another")
    recording = {
        **advice.configuration,
        "run": {**advice.configuration.get("run", {}), "record": True},
    }
    answers = search.make(
        {_RECORDING_FILE: ("What is recommended, with its disk requests kept", recording)},
        0.8,
        "recording",
    )
    run, document, reason = answers[_RECORDING_FILE]
    if document is None:
        return ShufflingAdvice([], reason)
    folder = run.folder(search.out)
    requests = folder / REQUESTS_FILE
    if not requests.is_file():
        # A record whose requests were removed to save room is made again.
        (folder / RESULT_FILE).unlink(missing_ok=True)
        return advise_on_shuffling(search, advice)
    elapsed_s = float(document["metrics"]["elapsed_seconds"])
    intervals = [f"{max(round(elapsed_s / times), 1)} s" for times in INTERVALS]
    asked = {
        _file_name(quantum, interval, moves): (
            f"The requests of {_RECORDING_FILE}, shuffled by {quantum} every {interval}, "
            f"moves {moves}",
            _experiment(
                f"../runs/{run.key}/{REQUESTS_FILE}", search, document, quantum, interval, moves
            ),
        )
        for quantum in QUANTA
        for interval in dict.fromkeys(intervals)
        for moves in MOVES
    }
    made = search.make(asked, 0.9, "shuffling")
    documents = {name: (found, why) for name, (_, found, why) in made.items()}
    return ShufflingAdvice(
        [
            _shuffled(quantum, interval, documents)
            for quantum in QUANTA
            for interval in dict.fromkeys(intervals)
        ]
    )


def _experiment(
    requests: str,
    search: Search,
    document: Mapping[str, Any],
    quantum: str,
    interval: str,
    moves: str,
) -> Configuration:
    return {
        "workload": {"kind": "trace", "path": requests},
        "remap": {
            "kind": "shuffle",
            "quantum": quantum,
            "interval": interval,
            "first_after": interval,
            "moves": moves,
            "block_size": document["config"]["layout"]["block_size"],
        },
        "device": search.device.seen_from(search.base),
        "run": {"seed": document["seed"]},
    }


def _shuffled(
    quantum: str,
    interval: str,
    documents: Mapping[str, tuple[Mapping[str, Any] | None, str]],
) -> Shuffled:
    names = [_file_name(quantum, interval, moves) for moves in MOVES]
    (free, why_free), (paid, why_paid) = (documents[name] for name in names)
    if free is None or paid is None:
        return Shuffled(quantum, interval, None, None, 0, 0, names, why_free or why_paid)
    metrics = paid["metrics"]
    return Shuffled(
        quantum,
        interval,
        free_saved_pct=_saved_pct(free),
        paid_saved_pct=_saved_pct(paid),
        move_requests=int(metrics["move_ios"]),
        moves_left=int(metrics["moves_left"]) + int(metrics["moves_dropped"]),
        files=names,
    )


def _saved_pct(document: Mapping[str, Any]) -> float:
    """Disk time saved against the requests as they lie, what the moves take counted."""
    metrics, before = document["metrics"], document["baseline_metrics"]
    after_s = metrics["disk_seconds"] + metrics["move_disk_seconds"]
    return 100.0 * (1.0 - float(after_s / before["disk_seconds"]))


def _file_name(quantum: str, interval: str, moves: str) -> str:
    return f"shuffle-{quantum}-{interval.replace(' ', '')}-{moves}.toml"
