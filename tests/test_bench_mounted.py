"""`bench/mounted`: what does not depend on how fast the machine is holds; errors are clear."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY
from test_mounted import why_not

COMMAND = [sys.executable, "bench/mounted"]


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_what_df_says_is_what_can_be_written(tmp_path: Path) -> None:
    kept = tmp_path / "figures.json"
    words = ["--memory", str(tmp_path), "--only", "room", "--json", str(kept)]
    done = subprocess.run(
        [*COMMAND, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(kept.read_text())
    assert len(figures) == len(done.stdout.splitlines()) == 5
    assert all(figure["holds"] for figure in figures)
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--only", "room,speed"], "and no speed"),
        pytest.param(
            ["--only", "room", "--memory", "/nowhere"],
            "mounted: error: [Errno 2] No such file or directory: '/nowhere/",
            marks=pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_line(words: list[str], why: str) -> None:
    done = subprocess.run(
        [*COMMAND, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert why in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
