"""`agewell reorganise` beside e4defrag, on copies of one broken ext4: result and price."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peers.comparison import AbsentError, Better, Row, agewell, row, seconds
from peers.fragments import version

IMAGE_BYTES = 512 << 20
FILLERS = 4000
FILES = 300
FILE_BYTES = 640 << 10


def compare(work: Path, rounds: int) -> Iterator[Row]:
    """What is left of the disorder, bytes written and seconds."""
    for program in ("e4defrag", "mkfs.ext4", "losetup", "mount"):
        if shutil.which(program) is None:
            raise AbsentError(f"{program} is not installed")
    if os.geteuid() != 0:
        raise AbsentError("only root may mount the images that are defragmented")
    aged = work / "aged.img"
    try:
        _make_aged(aged, work)
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode(errors="replace") if error.stderr else str(error)
        raise AbsentError(f"no loop device here: {why.strip().splitlines()[-1]}") from None
    ours_do = [sys.executable, "-m", "agewell", "reorganise", "MOUNT", "--anyway", "--quiet"]
    theirs_do = ["e4defrag", "MOUNT"]
    measured = [(_tried(aged, work, ours_do), _tried(aged, work, theirs_do)) for _ in range(rounds)]
    measures: list[tuple[str, str, Better]] = [
        ("fragments", "pieces a file", "less"),
        ("strays", "files not behind the one before", "less"),
        ("written", "MB to the disk", "less"),
        ("time", "s", "less"),
    ]
    for name, unit, better in measures:
        pairs = [(mine[name], others[name]) for mine, others in measured]
        yield row(f"defragment/{name}", f"e4defrag {version('e4defrag')}", unit, better, pairs)


def _tried(aged: Path, work: Path, command: list[str]) -> dict[str, float]:
    """What `command` makes of a copy of the image."""
    image = work / "copy.img"
    subprocess.run(["cp", "--sparse=always", aged, image], check=True)
    with _mounted(image, work) as (mount, stat):
        before = _sectors_written(stat)
        words = [str(mount) if word == "MOUNT" else word for word in command]

        def do() -> None:
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
            subprocess.run(["sync", "--file-system", mount], check=True)

        took = seconds(do)
        written = (_sectors_written(stat) - before) * 512 / 1e6
        metrics = agewell("score", mount, "--quiet")["targets"][0]["metrics"]
    return {
        "fragments": metrics["fragments_per_file"],
        # By name. None at all counts as one of all, so that there is a ratio.
        "strays": max(1 - metrics["name_adjacency"], 1 / FILLERS),
        "written": written,
        "time": took,
    }


def _make_aged(image: Path, work: Path) -> None:
    """Full of small files, of which every other is removed, and large ones in what is free."""
    with image.open("wb") as out:
        out.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True, capture_output=True)
    with _mounted(image, work) as (mount, _):
        fillers = mount / "fillers"
        fillers.mkdir()
        for number in range(FILLERS):
            (fillers / f"{number:05}").write_bytes(b"\x5a" * (96 << 10))
        os.sync()
        for number in range(0, FILLERS, 2):
            (fillers / f"{number:05}").unlink()
        os.sync()
        files = mount / "files"
        files.mkdir()
        # Their order on the disk is not that of their names.
        for number in range(FILES):
            (files / f"{number * 7 % FILES:04}").write_bytes(b"\xa5" * FILE_BYTES)
        os.sync()
        for number in range(1, FILLERS, 4):
            (fillers / f"{number:05}").unlink()
        os.sync()


@contextmanager
def _mounted(image: Path, work: Path) -> Iterator[tuple[Path, Path]]:
    """Where the image is mounted, and the counters of its loop device."""
    mount = work / "mount"
    mount.mkdir(exist_ok=True)
    attach = ["losetup", "--find", "--show", str(image)]
    done = subprocess.run(attach, check=True, capture_output=True)
    device = done.stdout.decode().strip()
    try:
        subprocess.run(["mount", device, mount], check=True, capture_output=True)
        try:
            yield mount, Path("/sys/block") / Path(device).name / "stat"
        finally:
            subprocess.run(["umount", mount], check=True, capture_output=True)
    finally:
        subprocess.run(["losetup", "-d", device], check=True, capture_output=True)


def _sectors_written(stat: Path) -> int:
    # Documentation/block/stat.rst of Linux: the seventh field.
    return int(stat.read_text().split()[6])
