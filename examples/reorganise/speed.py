"""How fast `agewell reorganise` moves files: small ones a second, and large ones beside `cp`.

Makes an ext4, xfs or btrfs on a loop device, fills it with small files (4 to 16 KiB, written in a drawn order) or with large ones that
grew in turns, and mounts it again so that nothing is in memory. Small files: moved by name, files a second. Large ones: copied
first by `cp` and `sync`, then moved; bytes a second of both, with all that either brings to the device. Prints the figures.

Needs root, loop devices, mkfs.ext4, mkfs.xfs or mkfs.btrfs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measure import mounted

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "record"))
import harness

SMALL_BYTES = (4 << 10, 16 << 10)
"""Sizes of small files: most files of a source tree are within; chosen by us."""
DIRECTORY_FILES = 100
LARGE_FILES = 8
LARGE_PIECE_BYTES = 128 << 10
"""How much a large file grows at a time while others grow: what a log or a download leaves; chosen by us."""


def make(kind: str, image: Path, size_bytes: int) -> None:
    """An empty file system of `kind`."""
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(size_bytes)
    # No table is left to be written by the kernel in the background.
    options = ["-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
    harness.run([f"mkfs.{kind}", "-q", *(options if kind == "ext4" else []), str(image)])


def plant_small(root: Path, files: int, draw: random.Random) -> None:
    """So many small files, written in a drawn order."""
    paths = [root / f"d{number // DIRECTORY_FILES:04}" / f"f{number:06}" for number in range(files)]
    for folder in sorted({path.parent for path in paths}):
        folder.mkdir()
    # Written out in turns: nothing is put off until all is known.
    draw.shuffle(paths)
    for number, path in enumerate(paths):
        path.write_bytes(draw.randbytes(draw.randrange(*SMALL_BYTES)))
        if number % 2000 == 1999:
            harness.run(["sync", "-f", str(root)])


def plant_large(root: Path, file_bytes: int, draw: random.Random) -> None:
    """Large files that grow in turns."""
    piece = draw.randbytes(LARGE_PIECE_BYTES)
    for start in range(0, file_bytes, LARGE_PIECE_BYTES):
        for number in range(LARGE_FILES):
            with (root / f"large{number}").open("r+b" if start else "wb") as file:
                # Allocated here and now: what is written later is laid together as far as it goes.
                os.posix_fallocate(file.fileno(), start, LARGE_PIECE_BYTES)
                file.seek(start)
                file.write(piece)
    harness.run(["sync", "-f", str(root)])


def reorganise(mount: Path) -> dict[str, float]:
    """What was done, with the seconds of the moves."""
    command = [sys.executable, "-m", "agewell", "reorganise", str(mount), "--anyway"]
    told = json.loads(harness.run([*command, "--json", "--quiet"]))
    return dict(told["done"])


def copy_seconds(mount: Path) -> float:
    """Seconds that `cp` of all files takes, on the same file system, until they are on the device."""
    started = time.monotonic()
    copies = mount / "copies"
    copies.mkdir()
    for path in sorted(mount.glob("large*")):
        harness.run(["cp", "--reflink=never", str(path), str(copies)])
    harness.run(["sync", "-f", str(mount)])
    took = time.monotonic() - started
    harness.run(["rm", "-r", str(copies)])
    return took


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("ext4", "xfs", "btrfs"))
    parser.add_argument("--files", type=int, default=12_000, help="small files")
    parser.add_argument("--large", type=int, default=128, help="MiB of each of 8 large files")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=Path, default=None)
    asked = parser.parse_args()
    small, large = [], []
    with tempfile.TemporaryDirectory(prefix="agewell-speed-", dir=asked.work) as folder:
        base = Path(folder)
        image = base / "image"
        for run in range(asked.runs if asked.files else 0):
            make(asked.kind, image, max(1 << 30, asked.files * 3 * SMALL_BYTES[1]))
            with mounted(image, base) as target:
                plant_small(target.mount, asked.files, random.Random(run))
            with mounted(image, base) as target:
                done = reorganise(target.mount)
            small.append(done["files"] / done["seconds"])
            print(
                f"{asked.kind}: {done['files']:,} small files in {done['seconds']:.2f} s, "
                f"{small[-1]:,.0f} a second",
                flush=True,
            )
        for run in range(asked.runs if asked.large else 0):
            total_bytes = LARGE_FILES * (asked.large << 20)
            make(asked.kind, image, total_bytes * 3 + (256 << 20))
            with mounted(image, base) as target:
                plant_large(target.mount, asked.large << 20, random.Random(run))
            with mounted(image, base) as target:
                copied = total_bytes / copy_seconds(target.mount)
            with mounted(image, base) as target:
                done = reorganise(target.mount)
            moved = done["moved_bytes"] / done["seconds"]
            large.append(moved / copied)
            print(
                f"{asked.kind}: large files moved at {moved / 1e6:,.0f} MB/s, copied by cp at "
                f"{copied / 1e6:,.0f} MB/s: {100 * large[-1]:.0f} %",
                flush=True,
            )
    for name, found, unit in (("small files a second", small, ""), ("of cp", large, " %")):
        if found:
            middle = statistics.median(found) * (100 if unit else 1)
            print(f"{asked.kind}: median of {len(found)}: {middle:,.0f}{unit} {name}")


if __name__ == "__main__":
    main()
