"""Nothing half-written is left under its final name, whatever goes wrong."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from agewell import files
from agewell.errors import RunError


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
