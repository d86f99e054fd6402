"""`agewell bench` beside fio: the rates of one file system, by both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from peers.comparison import AbsentError, Row, agewell, row, run
from peers.host import said

FILE_BYTES = 32 << 20
FILES = 4
CALL_BYTES = 4 << 20


def compare(work: Path, rounds: int) -> Iterator[Row]:
    """Two rows: files of 32 MiB written until they are on the device, and read."""
    if shutil.which("fio") is None:
        raise AbsentError("fio is not installed")
    measured = [(ours(work), theirs(work)) for _ in range(rounds)]
    for phase in ("create", "read"):
        pairs = [(mine[phase], others[phase]) for mine, others in measured]
        yield row(f"throughput/{phase}", said("fio", "--version"), "MB/s", "same", pairs)


def ours(work: Path) -> dict[str, float]:
    """MB/s of `agewell bench` by phase."""
    sizes = ["--sizes", f"{FILE_BYTES >> 20} MiB", "--bytes", f"{FILES * FILE_BYTES >> 20} MiB"]
    document = agewell("bench", work, *sizes, "--repetitions", "1")
    return {one["phase"]: one["mb_per_s"] for one in document["summary"]}


def theirs(work: Path) -> dict[str, float]:
    """The same of fio: whole files, one after another, by calls as large."""
    folder = work / "fio"
    folder.mkdir(exist_ok=True)
    job = [
        *("--name=files", f"--directory={folder}", "--ioengine=psync", "--output-format=json"),
        *(f"--bs={CALL_BYTES}", f"--nrfiles={FILES}", "--file_service_type=sequential"),
        *(f"--size={FILES * FILE_BYTES}", "--fallocate=none", "--unlink=0", "--randseed=1"),
    ]
    rates = {}
    for phase, options in (
        ("create", ["--rw=write", "--end_fsync=1", "--refill_buffers"]),
        ("read", ["--rw=read", "--invalidate=1"]),
    ):
        printed = run("fio", *job, *options)
        kind = "write" if phase == "create" else "read"
        found = json.loads(printed)["jobs"][0]
        # Its own time ends with the last call; the sync at the end is in the time of the job.
        rates[phase] = found[kind]["io_bytes"] / (found["job_runtime"] / 1e3) / 1e6
    shutil.rmtree(folder)
    return rates
