"""What looks into a mount: its load for the simulator, where files lie, and what is free."""

from __future__ import annotations

import json
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agewell.filesystems import mounted, mounted_layout, store_load
from test_mounted import KIB, MIB, agewell, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

BLOCK = 4 * KIB
UPDATES = 40_000
"""Several times the room that is left, so that it is made."""
SECONDS_MAX = 240
"""Of a load; nothing depends on it unless the mount hangs."""


@pytest.fixture
def point(tmp_path: Path) -> Iterator[Path]:
    """A mount that makes room by cleaning."""
    image, point = tmp_path / "disk.img", tmp_path / "point"
    point.mkdir()
    assert agewell("mkfs", image, "--size", "256 MiB", "--sparse", "--quiet") == 0
    assert agewell("mount", image, point, "-o", "means=clean") == 0
    yield point
    mounted.unmount(point, lazily=True)


def _begun(
    work: Callable[[threading.Event], None],
) -> tuple[threading.Thread, threading.Event]:
    ends = threading.Event()
    thread = threading.Thread(target=work, args=(ends,))
    thread.start()
    return thread, ends


def test_the_simulator_runs_the_load_of_a_mount(
    point: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    blocks = os.statvfs(point).f_bavail * 85 // 100

    def work(ends: threading.Event) -> None:
        draw = random.Random(3)  # noqa: S311 (no secret)
        descriptor = os.open(point / "file", os.O_WRONLY | os.O_CREAT)
        for at in range(0, blocks, 16):
            os.pwrite(descriptor, os.urandom(16 * BLOCK), at * BLOCK)
        for number in range(UPDATES):
            if ends.is_set():
                break
            os.pwrite(descriptor, number.to_bytes(8) * 512, draw.randrange(blocks) * BLOCK)
            if number % 4 == 3:
                os.fsync(descriptor)
        os.close(descriptor)

    def is_running(done: float, _: str) -> None:
        # As many as it takes, however busy the machine is; it ends as a user would end it.
        if not started:
            started.append(_begun(work))
        elif not started[0][0].is_alive():
            raise KeyboardInterrupt

    started: list[tuple[threading.Thread, threading.Event]] = []
    load = store_load.record(point, SECONDS_MAX, is_running)
    thread, ends = started[0]
    ends.set()
    thread.join()
    assert load.lost == 0
    assert load.collect == "clean"
    experiment = store_load.save(load, point, tmp_path / "load.parquet")
    capfd.readouterr()
    assert agewell("run", experiment, "--json", "--quiet") == 0
    metrics = json.loads(capfd.readouterr().out)["metrics"]
    assert load.write_amplification is not None
    assert load.write_amplification > 1.2
    assert metrics["write_amplification"] == pytest.approx(load.write_amplification, rel=0.05)
    # Blocks that were written again while they waited are new once.
    assert metrics["user_blocks"] == load.blocks()


def test_exporting_begins_with_what_there_is(point: Path, tmp_path: Path) -> None:
    for number in range(300):
        (point / f"{number}").write_bytes(os.urandom(5 * BLOCK))
    os.sync()
    for number in range(0, 300, 2):
        (point / f"{number}").unlink()

    def change(done: float, _: str) -> None:
        (point / f"{len(seen)}").write_bytes(os.urandom(3 * BLOCK))
        seen.append(done)

    seen: list[float] = []
    load = store_load.record(point, 0.5, change)
    # A hundred and fifty files of five blocks, and what describes them.
    assert 750 < len(load.held) < 850
    assert set(load.requests["asked"]) <= {1, 2, 3, 4}
    experiment = store_load.save(load, point, tmp_path / "load.parquet")
    assert agewell("run", experiment, "--quiet", "--json") == 0
    trace = tmp_path / "again.parquet"
    assert agewell("fs", "export-trace", point, "-o", trace, "--for", "100ms", "--quiet") == 0
    assert agewell("fs", "export-trace", point, "-o", trace, "--for", "100ms") == 2
    assert agewell("fs", "export-trace", tmp_path, "-o", tmp_path / "x.parquet") == 2
    assert agewell("fs", "export-trace", point, "-o", tmp_path / "x.parquet", "--for", "long") == 2


def test_the_layout_of_a_file_and_of_all(point: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole, torn = point / "whole", point / "torn"
    whole.write_bytes(os.urandom(64 * BLOCK))
    torn.write_bytes(os.urandom(64 * BLOCK))
    (point / "small").write_bytes(b"s" * 100)
    os.sync()
    with torn.open("r+b", buffering=0) as file:
        for number in range(0, 64, 8):
            os.pwrite(file.fileno(), b"t" * BLOCK, number * BLOCK)
            os.fsync(file.fileno())
    os.posix_fallocate(os.open(point / "promised", os.O_CREAT | os.O_WRONLY), 0, 3 * BLOCK)
    assert agewell("fs", "layout", whole, "--json") == 0
    document = json.loads(capfd.readouterr().out)
    assert document["layout_score"] == 1
    (extent,) = document["files"][0]["extents"]
    assert (extent["logical_bytes"], extent["length_bytes"]) == (0, 64 * BLOCK)
    first = document["segments_offset_bytes"] + extent["segment"] * document["segment_bytes"]
    assert first <= extent["physical_bytes"] < first + document["segment_bytes"]
    found = mounted_layout.layout(torn)
    # Each block that was written over lies elsewhere, and so its neighbours do not follow.
    assert found.files[0].following <= 63 - 15
    assert sum(extent.length_bytes for extent in found.files[0].extents) == 64 * BLOCK
    every = mounted_layout.layout(point)
    assert [Path(file.path).name for file in every.files] == ["promised", "small", "torn", "whole"]
    assert [file.extents[0].kind for file in every.files] == ["promised", "inline", "data", "data"]
    assert sum(every.live) * document["segment_bytes"] >= 128 * BLOCK
    for path in (point, torn):
        assert agewell("fs", "layout", path) == 0
        assert "layout score" in capfd.readouterr().out
    assert agewell("fs", "layout", point.parent) == 2


def test_a_snapshot_says_what_is_free(
    point: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in range(40):
        (point / f"{number}").write_bytes(os.urandom(MIB))
    os.sync()
    for number in range(0, 40, 2):
        (point / f"{number}").unlink()
    os.sync()
    taken = tmp_path / "taken"
    assert agewell("snapshot", point, "-o", taken) == 0
    said = capfd.readouterr().out
    found = re.search(r"free +([\d.,]+) MiB in (\d+) extents", said)
    assert found is not None, said
    status, live = mounted.status(point), mounted.live_blocks(point)
    empty = status["segments"] * status["segment_blocks"] - sum(live)
    assert float(found[1]) == pytest.approx(empty * BLOCK / MIB, abs=0.1)
    # Files lie where nothing is free.
    free = [(piece, piece + length) for piece, length in _free(point)]
    for number in range(1, 40, 8):
        for extent in mounted_layout.layout(point / f"{number}").files[0].extents:
            begin = extent.physical_bytes
            assert begin is not None
            assert not any(low < begin + extent.length_bytes and begin < high for low, high in free)


def test_a_mount_is_aged_and_measured(
    point: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    aged, measured = point / "aged", point / "measured"
    aged.mkdir()
    measured.mkdir()
    workload = ["--workload", "smith-1996", "--until", "operations=2000"]
    assert agewell("age", aged, *workload, "--quiet") == 0
    assert "2,000" in capfd.readouterr().out
    sizes = ["--sizes", "4 KiB,256 KiB", "--bytes", "2 MiB", "--repetitions", "1", "--quiet"]
    assert agewell("bench", measured, *sizes) == 0
    # Its files are moved by nobody while it is mounted, and that is said.
    capfd.readouterr()
    assert agewell("reorganise", point, "--dry-run", "--quiet") == 2
    assert "cannot be moved while it is mounted" in capfd.readouterr().err


def _free(point: Path) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while piece := os.getxattr(point, f"agewell.free.{found[-1][0] + 1 if found else 0}"):
        words = [int.from_bytes(piece[at : at + 8], "little") for at in range(0, len(piece), 8)]
        found += zip(words[::2], words[1::2], strict=True)
    return found
