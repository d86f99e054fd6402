"""The adaptive file system: made, mounted, unmounted, and asked how it does.

A program of its own serves a mount (`crates/mount`); it lies beside the extension module. What a
mounted file system says of itself it says by an extended attribute of its files.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import _agewell
from agewell.errors import InputError, RunError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STATUS_ATTRIBUTE = "agewell.status"
_BAD_INPUT = 2


def program() -> Path:
    """The program that serves mounts."""
    _refuse_other_systems()
    path = Path(__file__).resolve().parent.parent / "bin" / "agewell-fs"
    if not path.exists():
        raise RunError(f"{path} is missing; 'make extension' builds it")
    return path


def _refuse_other_systems() -> None:
    if sys.platform != "linux":
        raise InputError(
            f"file systems of agewell are made and mounted on Linux, and this is {sys.platform}; "
            "run it there"
        )


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


def grow(point: Path, size: str | None) -> None:
    """Has the file system at `point` take in all of its device, while it is used.

    A file is made `size` long first (such as `16 GiB`), if that is given, and is as long as it
    was if that is of no use.

    Raises InputError if `point` is not on a mounted file system of agewell, not for root, mounted
    read-only, or if the device is not larger by enough; RunError if the device fails.
    """
    state = status(point)
    if os.statvfs(point).f_flag & os.ST_RDONLY:
        raise InputError(f"{point}: it is mounted read-only")
    device = state["device"]
    before = None
    if size is not None:
        if device is None:
            raise InputError(f"{point}: it does not say on what it lies; make that longer yourself")
        before = _agewell.store_lengthen(device, size)
    said = _asked(point, f"agewell.grow.{state['blocks']}")
    if "refused" in said:
        # Only then is it certain that nothing is in what was added.
        if before is not None:
            os.truncate(device, before)
        raise InputError(f"{point}: {said['refused']}")
    if "failed" in said:
        raise RunError(f"{point}: {said['failed']}; try again")


def damaged_bytes(path: Path) -> list[int]:
    """Where damaged blocks of a file begin."""
    damaged: list[int] = []
    start: int | None = 0
    while start is not None:
        found = _asked(path, f"agewell.damaged.{start}")
        damaged += found["damaged"]
        start = found["next"]
    return damaged


def begin_trace(point: Path) -> dict[str, Any]:
    """From now on what the file system asks of its store is noted; how the store is divided.

    Raises InputError if `point` is not on a mounted file system of agewell, or not for root.
    """
    return _asked(point, "agewell.trace.begin")


def traced_from(point: Path) -> npt.NDArray[np.uint8]:
    """The blocks that there were when the trace began, a bit each, the lowest first."""
    import numpy as np

    found = b""
    while piece := _attribute(point, f"agewell.trace.held.{len(found)}"):
        found += piece
    return np.frombuffer(found, np.uint8)


def traced(point: Path, first: int) -> tuple[npt.NDArray[np.void], int]:
    """Requests that were noted, from number `first` on, and how many were lost so far.

    Those before are forgotten.
    """
    import numpy as np

    found = _attribute(point, f"agewell.trace.next.{first}")
    lost = int.from_bytes(found[:8], "little")
    raw = np.frombuffer(found, [("time_ns", "<u8"), ("first", "<u4"), ("word", "<u4")], offset=16)
    requests = no_requests(len(raw))
    requests["time_ns"], requests["first"] = raw["time_ns"], raw["first"]
    requests["asked"], requests["count"] = raw["word"] >> 29, raw["word"] & 0x1FFFFFFF
    return requests, lost


def no_requests(count: int = 0) -> npt.NDArray[np.void]:
    """Room for requests: when, what is asked, the first block, and how many."""
    import numpy as np

    fields = [("time_ns", "<u8"), ("asked", "u1"), ("first", "<u4"), ("count", "<u4")]
    return np.zeros(count, fields)


def end_trace(point: Path) -> None:
    """Nothing is noted any more."""
    _attribute(point, "agewell.trace.end")


def live_blocks(point: Path) -> list[int]:
    """How many live blocks lie in each segment."""
    found: list[int] = []
    while piece := _attribute(point, f"agewell.live.{len(found)}"):
        found += struct.unpack(f"<{len(piece) // 4}I", piece)
    return found


def extent_words(path: Path, start: int) -> list[tuple[int, int, int, int]]:
    """Some extents of a file from byte `start` on: where in it, where on the device, bytes, flags.

    The flags are those of FIEMAP.
    """
    return list(struct.iter_unpack("<4Q", _attribute(path, f"agewell.extents.{start}")))


def status(point: Path) -> dict[str, Any]:
    """What a mounted file system says of itself.

    Raises InputError if `point` is not on one.
    """
    return _asked(point, STATUS_ATTRIBUTE)


def _asked(path: Path, attribute: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_attribute(path, attribute))
    return document


def _attribute(path: Path, attribute: str) -> bytes:
    _refuse_other_systems()
    try:
        return os.getxattr(path, attribute)
    except PermissionError:
        raise InputError(f"{path}: only root may ask for this") from None
    except OSError as error:
        why = f"{path}: no mounted file system of agewell ({error.strerror})"
        raise InputError(why) from None
