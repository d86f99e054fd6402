"""`agewell snapshot` and its Python API, on a loop-mounted file system where that is possible."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agewell.errors import InputError
from agewell.filesystems import snapshots
from conftest import heed_interrupts

Agewell = Callable[..., "subprocess.CompletedProcess[str]"]
BAD_INPUT = 2
INTERRUPTED = 130
MEBIBYTE = 1 << 20
FILES = 60


@pytest.fixture
def mounted() -> Iterator[Path]:
    """An ext4 file system on a loop device with some files, one of them in two pieces."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        image, top = folder / "image", folder / "top"
        with image.open("wb") as file:
            file.truncate(64 * MEBIBYTE)
        top.mkdir()
        for command in (
            ["mkfs.ext4", "-q", "-b", "4096", "-N", "40000", str(image)],
            ["mount", "-o", "loop", str(image), str(top)],
        ):
            try:
                subprocess.run(command, check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError) as error:
                pytest.skip(f"no loop mounts here: {error}")
        try:
            _fill(top)
            yield top
        finally:
            subprocess.run(["umount", "-l", str(top)], check=True)


def _fill(top: Path) -> None:
    (top / "many").mkdir()
    for number in range(FILES):
        (top / "many" / f"a file {number}").write_bytes(b"x" * 5000)
    os.sync()
    for number in range(0, FILES, 2):
        (top / "many" / f"a file {number}").unlink()
    (top / "secret").mkdir(mode=0o700)
    (top / "secret" / "f").write_bytes(b"x" * 5000)
    (top / "private").write_bytes(b"x" * 5000)
    (top / "private").chmod(0o600)
    (top / "private").touch()
    os.sync()
    # Files count as unchanging a second after their last change.
    time.sleep(1.1)


def _rows(files: pa.Table) -> list[dict[str, Any]]:
    """The rows without their times, which Python's own cannot hold to the nanosecond."""
    times = ["birth_time", "change_time", "modify_time"]
    rows: list[dict[str, Any]] = files.drop_columns(times).to_pylist()
    return rows


def test_what_it_prints_and_writes(agewell: Agewell, mounted: Path, tmp_path: Path) -> None:
    """The table names what was found; the file holds it and nothing is left beside it."""
    done = agewell("snapshot", mounted, "-o", "snap.parquet")
    assert "ext4, blocks of 4,096 bytes" in done.stdout
    assert "32 files, 4 directories" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["snap.parquet"]
    table = pq.read_table(tmp_path / "snap.parquet")
    assert table.num_rows > 36
    assert "name" not in table.column_names
    assert b"a file" not in (tmp_path / "snap.parquet").read_bytes()


def test_json(agewell: Agewell, mounted: Path) -> None:
    """One document, the facts in it, and nothing else on standard output."""
    before_ns = time.time_ns()
    done = agewell("snapshot", mounted, "-o", "snap.parquet", "--json", "--names")
    document = json.loads(done.stdout)
    assert document["files"] == {"regular": 32, "directory": 4, "link": 0, "other": 0}
    assert document["names"] is True
    facts = document["facts"]
    assert (facts["kind"], facts["total_bytes"]) == ("ext4", 64 * MEBIBYTE)
    assert facts["free_map"] is True
    assert (facts["vanished"], facts["changed"], facts["unreadable"]) == (0, 0, 0)
    assert before_ns <= facts["taken_ns"] <= time.time_ns()


def test_python_api(mounted: Path, tmp_path: Path) -> None:
    """What `take` writes `read` gives back as tables, names as bytes."""
    calls: list[tuple[int, int | None]] = []
    output = tmp_path / "snap.parquet"
    done = snapshots.take(mounted, output, names=True, progress=lambda *seen: calls.append(seen))
    assert calls
    assert calls[-1][1] == 45  # Inodes in use: 36 here, 9 more that ext4 keeps for itself.
    snapshot = snapshots.read(output)
    assert snapshot.facts == done["facts"]
    names = dict(zip(snapshot.files["name"].to_pylist(), _rows(snapshot.files), strict=True))
    one = names[b"a file 1"]
    assert one["kind"] == "regular"
    assert one["size_bytes"] == 5000
    assert [extent["length_bytes"] for extent in one["extents"]] == [8192]
    assert one["directory"] == names[b"many"]["inode"]
    assert one["inode"] == (mounted / "many" / "a file 1").stat().st_ino
    assert snapshot.free.column_names == ["physical_bytes", "length_bytes"]
    assert sum(snapshot.free["length_bytes"].to_pylist()) == done["free_extent_bytes"]
    assert pa.types.is_timestamp(snapshot.files["change_time"].type)


def test_same_bytes(mounted: Path, tmp_path: Path) -> None:
    """Two snapshots of a file system that no one touches differ in when they were taken only."""
    first = snapshots.take(mounted, tmp_path / "first.parquet")
    second = snapshots.take(mounted, tmp_path / "second.parquet")
    first["facts"].pop("taken_ns")
    second["facts"].pop("taken_ns")
    assert first["facts"] == second["facts"]
    one, two = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("first", "second"))
    assert one.equals(two)


AS_NOBODY = """\
import json, os, sys
from agewell.filesystems import snapshots
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(json.dumps(snapshots.take(sys.argv[1], sys.argv[2])))
"""
"""Changes its user only after Python has been loaded, which others may not be allowed to read."""


def test_without_root(mounted: Path) -> None:
    """What may be read is read; the rest is counted, and unknown where it has a place."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        output = folder / "snap.parquet"
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, mounted, output],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        facts = json.loads(done.stdout)["facts"]
        # lost+found, secret and private.
        assert facts["unreadable"] == 3
        assert facts["group_bytes"] == 0
        assert "root" in facts["parameters"]["group_size"]
        rows = _rows(snapshots.read(output).files)
        private = (mounted / "private").stat().st_ino
        extents = next(row["extents"] for row in rows if row["inode"] == private)
        assert [(extent["length_bytes"], extent["flags"]) for extent in extents] == [(8192, 16)]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere", "nowhere: No such file or directory"),
        ("/proc", "/proc: proc does not tell where files lie (no FIEMAP)"),
    ],
)
def test_refusals(agewell: Agewell, tmp_path: Path, path: str, words: str) -> None:
    """One line that says what is wrong; nothing is written."""
    done = agewell("snapshot", path, "-o", "snap.parquet", check=False)
    assert done.returncode == BAD_INPUT
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_output_refusals(agewell: Agewell, mounted: Path, tmp_path: Path) -> None:
    """A directory is no output, and a missing --out is a mistake of usage."""
    (tmp_path / "folder").mkdir()
    done = agewell("snapshot", mounted, "-o", "folder", check=False)
    assert done.returncode == BAD_INPUT
    assert "folder: is a directory" in done.stderr
    assert agewell("snapshot", mounted, check=False).returncode == BAD_INPUT
    done = agewell("snapshot", mounted, "-o", "snap.parquet", "--resume", check=False)
    assert done.returncode == BAD_INPUT
    assert "nothing to go on with" in done.stderr


def test_reading_something_else(tmp_path: Path) -> None:
    """A Parquet file that is no snapshot is refused by name."""
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"kind": ["regular"]}), path)
    with pytest.raises(InputError, match=r"other\.parquet: holds something else"):
        snapshots.read(path)


TAKE = """\
import sys, time
from agewell import _agewell
_agewell.snapshot_take(sys.argv[1], sys.argv[2], time.time_ns(), checkpoint_files=64)
"""


def _interrupted(top: Path, output: Path, how: signal.Signals) -> int | None:
    """Take a snapshot and stop it as soon as it has kept some work; its exit status."""
    partial = Path(f"{output}.partial")
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE, str(top), str(output)],
        preexec_fn=heed_interrupts,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None:
        if partial.exists():
            process.send_signal(how)
            break
    return process.wait() if partial.exists() else None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_and_resumed(
    agewell: Agewell, mounted: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """Stopped at any moment nothing stands under the final name; resumed it ends the same."""
    for folder in range(60):
        (mounted / f"d{folder}").mkdir()
        for number in range(200):
            (mounted / f"d{folder}" / f"f{number}").touch()
    os.sync()
    snapshots.take(mounted, tmp_path / "plain.parquet")
    output = tmp_path / "snap.parquet"
    for _attempt in range(10):
        status = _interrupted(mounted, output, how)
        if status is not None:
            break
        output.unlink()
    else:
        pytest.skip("every snapshot was complete before it could be stopped")
    assert status != 0
    assert not output.exists()
    refused = agewell("snapshot", mounted, "-o", output, check=False)
    assert refused.returncode == BAD_INPUT
    assert "--resume" in refused.stderr
    done = agewell("snapshot", mounted, "-o", output, "--resume", "--json")
    assert json.loads(done.stdout)["facts"]["parameters"]["resumed"] == "true"
    assert not Path(f"{output}.partial").exists()
    assert pq.read_table(output).equals(pq.read_table(tmp_path / "plain.parquet"))
