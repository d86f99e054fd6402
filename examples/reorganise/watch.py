"""A file system under `agewell reorganise --watch`: one program is started again and again, others once.

Copies Python packages onto an ext4, xfs or btrfs on a loop device, file after file in a drawn order, so that they lie
scattered. A program that imports a part of the modules is started again and again with its files out of memory; after each
start another program imports some of the rest, each of them once. Meanwhile the file system is watched on a modelled disk.
The program's start is recorded before and afterwards, and both recordings are replayed on the modelled disk; which files
moved is read off snapshots.

Needs root, loop devices, tracefs, and mkfs of the kind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
from measure import disk_seconds, mounted
from speed import make
from start import IMAGE_BYTES, PACKAGES, PROGRAM, harness, reads_of, record_start, scatter, stage

from agewell.cli.watching import round_text

PART = 4
"""The program imports one of so many modules."""

OTHERS = 20
"""Modules that another program imports, once."""

ROUNDS_AFTER = 2
"""Rounds that are watched after the last one that moved files."""


def forget(mount: Path) -> None:
    """Have no data of the files in memory."""
    os.sync()
    for path in mount.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def start(mount: Path, listed: Path) -> None:
    """Start a program that imports the modules of a list, from the disk."""
    forget(mount)
    subprocess.run(
        [sys.executable, "-c", PROGRAM, mount / "site", listed], check=True, capture_output=True
    )


class Load(threading.Thread):
    """Starts the program and another in turns."""

    def __init__(self, mount: Path, program: Path, others: list[str]) -> None:
        super().__init__(daemon=True)
        self.mount, self.program, self.others = mount, program, others
        self.ends = threading.Event()
        self.starts = 0

    def run(self) -> None:
        """Until it is asked to end."""
        once = self.program.with_name("once.json")
        while not self.ends.wait(1.0):
            start(self.mount, self.program)
            self.starts += 1
            part, self.others = self.others[:OTHERS], self.others[OTHERS:]
            if part:
                once.write_text(json.dumps(part))
                start(self.mount, once)


def watched(
    mount: Path, folder: Path, device: str, every: str, most_seconds: float
) -> list[dict[str, object]]:
    """Watch until nothing is moved any more, and show each round."""
    command = [
        "reorganise",
        mount,
        "--watch",
        "--budget",
        "2 GB/h",
        "--every",
        every,
        "--device",
        device,
    ]
    options = ["--state", folder / "state", "--json", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "agewell", *map(str, [*command, *options])],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    rounds: list[dict[str, object]] = []
    until = time.monotonic() + most_seconds
    for line in process.stdout:
        rounds.append(json.loads(line))
        print(round_text(rounds[-1]), flush=True)
        last = [number for number, found in enumerate(rounds) if found["outcome"] == "moved"]
        settled = last and len(rounds) > last[-1] + ROUNDS_AFTER
        if settled or time.monotonic() > until:
            asked = time.monotonic()
            process.send_signal(signal.SIGTERM)
            status = process.wait()
            print(f"SIGTERM: ended with status {status} after {time.monotonic() - asked:.2f} s")
            break
    return rounds


def main() -> None:
    """Measure one load."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("ext4", "xfs", "btrfs"))
    parser.add_argument("--packages", default=PACKAGES)
    parser.add_argument("--device", default="seagate-st2000dm006")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", default="20 s")
    parser.add_argument("--most", type=float, default=600.0, help="longest time, s")
    parser.add_argument("--work", type=Path, default=None)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    with tempfile.TemporaryDirectory(prefix="agewell-watch-", dir=asked.work) as name:
        folder = Path(name)
        image, program = folder / "image", folder / "program.json"
        staged, listed = stage(asked.packages.split(","), folder)
        modules = json.loads(listed.read_text())
        packages = sorted({module.partition(".")[0] for module in modules})
        draw.shuffle(packages)
        chosen: list[str] = []
        while len(chosen) < len(modules) / PART:
            package = packages.pop()
            chosen += [module for module in modules if module.partition(".")[0] == package]
        program.write_text(json.dumps(chosen))
        others = [module for module in modules if module.partition(".")[0] in packages]
        draw.shuffle(others)
        make(asked.kind, image, IMAGE_BYTES)
        with mounted(image, folder) as target:
            scatter(staged, target.mount, draw)
        traces = folder / "before.parquet", folder / "after.parquet"
        start = [sys.executable, "-c", PROGRAM, "{tree}", str(program)]
        with mounted(image, folder) as target:
            record_start(target, start, traces[0], "--files")
        with mounted(image, folder) as target:
            load = Load(target.mount, program, others)
            load.start()
            rounds = watched(target.mount, folder, asked.device, asked.every, asked.most)
            load.ends.set()
            load.join()
            harness.run(["sync", "-f", str(target.mount)])
        with mounted(image, folder) as target:
            record_start(target, start, traces[1], "--files")
        moved = sum(int(str(found["bytes"])) for found in rounds if found["outcome"] == "moved")
        print(
            f"{asked.kind}: {len(chosen):,} modules started {load.starts} times, {len(others):,} others "
            f"once; {moved / 1e6:.1f} MB moved"
        )
        reads = [reads_of(trace) for trace in traces]
        seconds = [disk_seconds(trace, folder, asked.device) for trace in reads]
        counts = [pq.read_metadata(trace).num_rows for trace in reads]
        print(
            f"{asked.kind}: before {counts[0]:,} reads, {seconds[0]:.2f} s; after {counts[1]:,} reads, "
            f"{seconds[1]:.2f} s: {seconds[0] / seconds[1]:.1f} times faster"
        )


if __name__ == "__main__":
    main()
