"""The adaptive file system: made, mounted, unmounted, and asked how it does.

A program of its own serves a mount (`crates/mount`); it lies beside the extension module. What a
mounted file system says of itself it says by an extended attribute of its files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agewell.errors import InputError, RunError

STATUS_ATTRIBUTE = "agewell.status"
_BAD_INPUT = 2
_ENDS_WITHIN_S = 600
"""How long a server may take to bring everything to the medium; chosen by us: a full write buffer
of a large file system on a slow disk takes seconds."""


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
    os.execv(path, [str(path), *map(str, words)])


def mounts() -> list[tuple[str, Path, str]]:
    """Mounted file systems of ours: what, where, and type."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    fields = (line.split(" ") for line in lines)
    return [
        (unescape(one[0]), Path(unescape(one[1])), one[2])
        for one in fields
        if one[2] in {"fuse.agewell", "fuseblk.agewell"}
    ]


def unescape(text: str) -> str:
    """A path as the kernel writes it in its tables, where blanks are octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def server_of(point: Path) -> int | None:
    """The process that serves the mount at `point`, if it is found."""
    wanted = str(point.resolve())
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        names = [os.fsdecode(word) for word in words]
        if Path(names[0]).name == "agewell-fs" and "mount" in names[1:2] and wanted in names:
            return int(entry.name)
    return None


def unmount(point: Path, *, lazily: bool = False) -> None:
    """Takes the mount at `point` away, and returns when its server has ended.

    Raises RunError if it is in use or not mounted.
    """
    server = server_of(point)
    call(["unmount", *(["-l"] if lazily else []), point])
    if server is None or lazily:
        return
    until = time.monotonic() + _ENDS_WITHIN_S
    while _runs(server):
        if time.monotonic() > until:
            raise RunError(f"{point}: unmounted, but process {server} still runs")
        time.sleep(0.005)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    try:
        # One that nobody waits for has ended all the same.
        return state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def status(point: Path) -> dict[str, Any]:
    """What a mounted file system says of itself.

    Raises InputError if `point` is not on one.
    """
    try:
        text = os.getxattr(point, STATUS_ATTRIBUTE)
    except OSError as error:
        why = f"{point}: no mounted file system of agewell ({error.strerror})"
        raise InputError(why) from None
    document: dict[str, Any] = json.loads(text)
    return document


def stop_server(process: int) -> None:
    """Ends a server as a crash would; for tests of what is left."""
    os.kill(process, signal.SIGKILL)
