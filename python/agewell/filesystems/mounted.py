"""The adaptive file system: made, mounted, unmounted, and asked how it does.

A program of its own serves a mount (`crates/mount`); it lies beside the extension module. What a
mounted file system says of itself it says by an extended attribute of its files.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agewell.errors import InputError, RunError

STATUS_ATTRIBUTE = "agewell.status"
_BAD_INPUT = 2


def program() -> Path:
    """The program that serves mounts."""
    path = Path(__file__).resolve().parent.parent / "bin" / "agewell-fs"
    if not path.exists():
        raise RunError(f"{path} is missing; 'make extension' builds it")
    return path


def call(words: Sequence[str | Path]) -> str:
    """Has the program carry out `words`, the name of a command first; what it says.

    Raises InputError or RunError with the program's line.
    """
    done = subprocess.run(
        [program(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        line = done.stderr.strip().removeprefix("agewell-fs: error: ") or "it said nothing"
        raise (InputError if done.returncode == _BAD_INPUT else RunError)(line)
    return done.stdout


def replace_process(words: Sequence[str | Path]) -> None:
    """Becomes the program: for what stays in the foreground until it is unmounted."""
    path = program()
    os.execv(path, [str(path), *map(str, words)])  # noqa: S606 (no shell is wanted)


def unmount(point: Path, *, lazily: bool = False) -> None:
    """Takes the mount at `point` away, and returns when its server has ended.

    Raises RunError if it is in use or not mounted.
    """
    call(["unmount", *(["-l"] if lazily else []), point])


def scrubbed(point: Path, first: int) -> tuple[list[int], int | None]:
    """Damaged blocks among some from number `first` on, and where to go on, if there are more.

    Raises InputError if `point` is not on a mounted file system of agewell.
    """
    found = _asked(point, f"agewell.scrub.{first}")
    return found["damaged"], found["next"]


def damaged_bytes(path: Path) -> list[int]:
    """Where damaged blocks of a file begin."""
    damaged: list[int] = []
    start: int | None = 0
    while start is not None:
        found = _asked(path, f"agewell.damaged.{start}")
        damaged += found["damaged"]
        start = found["next"]
    return damaged


def status(point: Path) -> dict[str, Any]:
    """What a mounted file system says of itself.

    Raises InputError if `point` is not on one.
    """
    return _asked(point, STATUS_ATTRIBUTE)


def _asked(path: Path, attribute: str) -> dict[str, Any]:
    try:
        text = os.getxattr(path, attribute)
    except OSError as error:
        why = f"{path}: no mounted file system of agewell ({error.strerror})"
        raise InputError(why) from None
    document: dict[str, Any] = json.loads(text)
    return document
