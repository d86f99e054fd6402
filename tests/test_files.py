"""Nothing half-written is left under its final name, whatever goes wrong."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agewell import files
from agewell.errors import InputError, RunError
from agewell.files import parquet_tables


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "document.json"
    files.write_json(path, {"b": 1, "a": "ü"})
    assert json.loads(path.read_text()) == {"b": 1, "a": "ü"}
    assert path.read_text().startswith('{\n  "b": 1')
    assert [each.name for each in path.parent.iterdir()] == ["document.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match=r"table\.txt: cannot be written: No space left on device"):
        files.write_whole(path, fail)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["table.txt"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(temporary: Path) -> None:
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_whole(tmp_path / "table.txt", interrupt)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_taken_over(tmp_path: Path) -> None:
    script = (
        "import os, signal, pathlib, agewell.files as files\n"
        "def write(path):\n"
        "    path.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_whole(pathlib.Path('table.txt'), write)"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
        assert done.returncode == -signal.SIGKILL
        assert [each.name for each in tmp_path.iterdir()] == [".table.txt.partial"]
    files.write_text(tmp_path / "table.txt", "whole")
    assert [each.name for each in tmp_path.iterdir()] == ["table.txt"]
    assert (tmp_path / "table.txt").read_text() == "whole"


def test_writers_of_one_name_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"

    def slow(partial: Path) -> None:
        partial.write_text("slow")
        files.write_text(path, "quick")
        assert path.read_text() == "quick"

    files.write_whole(path, slow)
    assert path.read_text() == "slow"
    assert [each.name for each in tmp_path.iterdir()] == ["table.txt"]


def test_a_link_in_the_place_of_a_partial_file_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / ".table.txt.partial").symlink_to(other)
    (tmp_path / ".table.txt.1.partial").hardlink_to(other)
    files.write_text(tmp_path / "table.txt", "new")
    assert other.read_text() == "kept"
    assert (tmp_path / "table.txt").read_text() == "new"


def test_what_could_not_be_written_later_is_known_now(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "folder").mkdir()
    for path in ("taken/table.txt", "folder"):
        with pytest.raises(RunError, match=f"{path}: cannot be written: "):
            files.require_writable([tmp_path / path])
    files.require_writable([tmp_path / "new" / "table.txt", None, "-"])
    assert list((tmp_path / "new").iterdir()) == []


def test_others_may_read_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    files.write_text(path, "text")
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_folder_in_the_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(RunError, match=r"page\.html: cannot be written") as raised:
        files.write_text(tmp_path / "page.html", "text")
    assert "\n" not in str(raised.value)


def test_what_is_read_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"twelve bytes")
    assert files.read_bounded(path, 12) == b"twelve bytes"
    with pytest.raises(InputError, match="longer than 11 bytes"):
        files.read_bounded(path, 11)
    with pytest.raises(InputError, match="a device"):
        files.read_bounded(Path("/dev/zero"))


def test_a_flipped_bit_in_a_table_is_found(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    table = pa.table({"number": list(range(50)), "name": [f"n{n % 3}" for n in range(50)]})
    parquet_tables.write(path, table)
    assert parquet_tables.read(path).equals(table)
    assert pq.read_table(path).equals(table), "other readers look past the checksums"
    sound = path.read_bytes()
    found = 0
    for at in range(0, len(sound), 3):
        flipped = bytearray(sound)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            read = parquet_tables.read(path)
        except InputError:
            found += 1
        else:
            assert read.equals(table), "a flip in the name of the checksums is no harm"
    assert found > len(range(0, len(sound), 3)) - 10
    pq.write_table(table, path)
    assert parquet_tables.read(path).equals(table), "a table without checksums is read"


def test_a_table_is_read_by_this_thread_alone(tmp_path: Path) -> None:
    """One of Arrow's threads that still held the file when Python ended would abort the process."""
    path = tmp_path / "table.parquet"
    columns = {f"column_{number}": list(range(1000)) for number in range(8)}
    parquet_tables.write(path, pa.table(columns))
    script = (
        "import os, sys, pyarrow.parquet\n"
        "from agewell.files import parquet_tables\n"
        "before = os.listdir('/proc/self/task')\n"
        "parquet_tables.read(sys.argv[1])\n"
        "assert os.listdir('/proc/self/task') == before\n"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)
