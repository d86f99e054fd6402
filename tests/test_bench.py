"""`agewell bench` on a directory: what it measures, and what it leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agewell.errors import InputError
from agewell.filesystems import aging, benchmarking, workloads

COMMAND = [sys.executable, "-m", "agewell", "bench"]
MEMORY = Path("/dev/shm")  # noqa: S108 (in memory; folders there have names of their own)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder for files, in memory where there is such a place: a sync waits for nothing there."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="agewell-test-", dir=MEMORY))
    yield folder
    shutil.rmtree(folder)


def run(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run `agewell bench`."""
    words = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done


def test_sizes_phases_and_repetitions(place: Path, tmp_path: Path) -> None:
    """Each size has its phases, its medians are those of its measurements, nothing is left."""
    table = tmp_path / "measurements.parquet"
    done = run(
        place, "--sizes", "1 KiB,64 KiB", "--bytes", "1 MiB", "--fsync", "both", "-r", "3",
        "--out", table, "--plots", tmp_path / "plots", "--json", "--quiet",
    )  # fmt: skip
    record = json.loads(done.stdout)
    rows = pq.read_table(table).to_pylist()
    assert len(rows) == 2 * 2 * 3 * 3, "sizes, with and without sync, phases, repetitions"
    assert len(record["summary"]) == 2 * 2 * 3
    for entry in record["summary"]:
        rates = [
            row["bytes"] * 1e3 / row["time_ns"]
            for row in rows
            if all(row[key] == entry[key] for key in ("phase", "file_bytes", "sync_each"))
        ]
        assert len(rates) == 3
        assert entry["mb_per_s"] == pytest.approx(statistics.median(rates))
        assert entry["mb_per_s_deviation"] == pytest.approx(statistics.stdev(rates))
        assert entry["bytes"] == 1 << 20
    assert list(place.iterdir()) == []
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "throughput.csv",
        "throughput.png",
        "throughput.svg",
    }


def test_the_table_is_for_people(place: Path) -> None:
    """A row a size, rates with their spread."""
    done = run(place, "--sizes", "64 KiB", "--bytes", "256 KiB", "-r", "2", "-q")
    assert "64 KiB" in done.stdout
    assert "+-" in done.stdout


def test_hot_files_of_a_log(place: Path, tmp_path: Path) -> None:
    """Those changed in the last days of the workload, no others; written only when asked."""
    listing = tmp_path / "list.csv"
    lines = ["commit,unix_time,op,file_id,dir_id,depth,old_size,new_size"]
    lines += [f"{day},{86_400 * day},A,{day},{day % 3},1,0,5000" for day in range(50)]
    listing.write_text("\n".join(lines) + "\n")
    workload, log = tmp_path / "workload.parquet", tmp_path / "log.parquet"
    workloads.make({"source": "oplist", "list": str(listing)}, workload)
    target = place / "target"
    target.mkdir()
    aging.age(target, workload, log=log)
    before = {path: path.read_bytes() for path in target.rglob("f*")}
    measured = benchmarking.directory(target, sizes=[], hot_log=log, hot="10d", repetitions=2)
    assert measured.document["hot_files"] == 11, "day 49 and the ten before it"
    assert {row["phase"] for row in measured.document["summary"]} == {"hot-read"}
    assert measured.document["summary"][0]["bytes"] == 11 * 5000
    assert before == {path: path.read_bytes() for path in target.rglob("f*")}
    measured = benchmarking.directory(
        target, sizes=[], hot_log=log, hot="10d", overwrite_hot=True, repetitions=1
    )
    changed = [path for path in before if path.read_bytes() != before[path]]
    assert len(changed) == 11
    assert all(len(path.read_bytes()) == len(before[path]) for path in before)


def test_hot_files_by_their_times(place: Path) -> None:
    """Without a log the clock's times of modification count."""
    for number in range(6):
        path = place / f"file-{number}"
        path.write_bytes(b"x" * 100)
        os.utime(path, (0, number * 86_400))
    measured = benchmarking.directory(place, sizes=[], hot="2d", repetitions=1)
    assert measured.document["hot_files"] == 3


# One at a time: the count is the system's.
@pytest.mark.xdist_group("caches of the system")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root empties the caches of the system")
@pytest.mark.parametrize("asked", [False, True])
def test_the_caches_of_the_system_are_emptied_only_when_asked(place: Path, *, asked: bool) -> None:
    """`drop_caches` of /proc counts in vmstat (`drop_pagecache`, `drop_slab`)."""

    def dropped() -> int:
        vmstat = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
        return int(vmstat["drop_slab"])

    before = dropped()
    options = ["--drop-system-caches"] if asked else []
    done = run(place, "--sizes", "1 KiB", "--bytes", "64 KiB", "-r", "1", *options)
    assert (dropped() > before) == asked
    assert ("all caches of the system were emptied" in done.stderr) == asked


@pytest.mark.skipif(os.geteuid() == 0, reason="root may empty the caches of the system")
def test_who_may_not_empty_the_caches_of_the_system_is_refused_before_the_work(place: Path) -> None:
    done = run(place, "--bytes", "64 KiB", "--drop-system-caches", check=False)
    assert done.returncode == 1
    assert "run it as root, or leave out --drop-system-caches" in done.stderr
    assert not any(place.iterdir())


def test_a_device_is_read(tmp_path: Path, place: Path) -> None:
    """Past the cache; an image stands for it where the file system allows that."""
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20) * 9)
    try:
        descriptor = os.open(image, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        pytest.skip(f"reading past the cache is not possible here: {error}")
    os.close(descriptor)
    before = image.read_bytes()
    measured = benchmarking.directory(
        place, sizes=[], read_device=image, total="8 MiB", repetitions=1
    )
    assert measured.document["summary"][0]["phase"] == "raw-read"
    assert measured.document["summary"][0]["bytes"] == 8 << 20
    assert image.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sizes", "16"], "has no unit"),
        (["--sizes", "0 B"], "measures nothing"),
        (["--fsync", "maybe"], "write no, yes or both"),
        (["--hot-log", "/nonexistent"], "/nonexistent"),
    ],
)
def test_bad_options_are_refused(place: Path, arguments: list[str], words: str) -> None:
    """In one line, with exit 2, and nothing is made."""
    refused = run(place, *arguments, check=False)
    assert refused.returncode == 2, refused.stderr
    assert words in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert list(place.iterdir()) == []


def test_no_directory_is_bad_input(tmp_path: Path) -> None:
    """Of the library, too."""
    with pytest.raises(InputError, match="no such directory"):
        benchmarking.directory(tmp_path / "nowhere", repetitions=1)
