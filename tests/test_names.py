"""Names of files that are no UTF-8 text, which on Linux they need not be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agewell.files import json_text, path_text
from conftest import SMALL_DEVICE, SMALL_EXPERIMENT, Agewell

NAME = os.fsdecode(b"bad\xff")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with such a name, and a small experiment in it."""
    folder = tmp_path / NAME
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system here takes names in UTF-8 only")
    (folder / "small.toml").write_text(SMALL_DEVICE)
    (folder / "experiment.toml").write_text(SMALL_EXPERIMENT)
    return folder


def test_runs_sweeps_and_reports_in_such_a_folder(agewell: Agewell, folder: Path) -> None:
    agewell("run", folder / "experiment.toml", "--out", folder / "run", "--quiet")
    over = ("--over", "run.seed=1,2", "--out", folder / "sweep")
    agewell("sweep", folder / "experiment.toml", *over)
    agewell("report", folder / "run", "-o", folder / "report.html")
    assert (folder / "sweep" / "sweep.parquet").is_file()
    assert (folder / "report.html").is_file()


def test_aging_and_snapshots_of_such_a_folder(
    agewell: Agewell, folder: Path, tmp_path: Path
) -> None:
    lines = ["commit,unix_time,op,file_id,dir_id,depth,old_size,new_size"]
    lines += [f"{day},{86_400 * day},A,{day},{day % 3},1,0,5000" for day in range(5)]
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    workload = folder / "workload.parquet"
    agewell("workload", "oplist", folder / "list.csv", "-o", workload)
    target = folder / "target"
    target.mkdir()
    outputs = ("--series", folder / "series.csv", "--save-recipe", folder / "recipe.json")
    agewell("age", target, "-w", workload, *outputs, "--allow-system-disk")
    assert len(list(target.rglob("f*"))) == 5
    assert (folder / "series.csv").is_file()
    agewell("age", "ffs", "-w", workload, "--snapshot", folder / "taken.parquet")
    done = agewell("score", folder / "taken.parquet", "--json", "--quiet")
    (scored,) = json.loads(done.stdout)["targets"]
    assert scored["path"] == str(folder / "taken.parquet")


def test_a_listing_prints_the_name_as_it_is(folder: Path) -> None:
    words = [sys.executable, "-m", "agewell", "report", NAME]
    done = subprocess.run(words, cwd=folder.parent, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["devices", NAME],
        ["run", "experiment.toml", "--set", f"device.model={NAME}/small.toml"],
    ],
)
def test_where_a_name_must_be_text_that_is_said_in_one_line(folder: Path, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agewell", *words], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"not UTF-8" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_names_come_back_from_json() -> None:
    text = json_text({"path": NAME})
    assert text.encode("utf-8")
    assert json.loads(text) == {"path": NAME}
    assert path_text(NAME) == "bad\0ff"
    assert path_text("plain/ü") == "plain/ü"
