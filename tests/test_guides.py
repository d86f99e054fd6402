"""What the guides ask a reader to type works as they say."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY, Agewell

GUIDE = REPOSITORY / "docs" / "guides" / "first-run.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language in the guide, in order."""
    every = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return [text for name, text in every if name == language]


def commands() -> list[list[str]]:
    """Every agewell command of the guide, as arguments."""
    lines = [line for block in blocks("") for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("agewell ")]


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """The guide's experiment, shortened: the text is the same but for the number of requests."""
    [text] = blocks("toml")
    assert "requests = 100000" in text
    path = tmp_path / "first.toml"
    path.write_text(text.replace("requests = 100000", "requests = 2000"))
    return path


@pytest.mark.usefixtures("first")
def test_every_command_of_the_first_run_works_in_order(agewell: Agewell, tmp_path: Path) -> None:
    assert len(commands()) >= 5
    for arguments in commands():
        agewell(*arguments)
    names = re.findall(r"^\| `([a-z]+\.(?:json|parquet))` \|", GUIDE.read_text(), re.MULTILINE)
    assert sorted(path.name for path in (tmp_path / "runs" / "again").iterdir()) == sorted(names)
    assert (tmp_path / "runs" / "first" / "report.html").is_file()
    assert (tmp_path / "runs" / "disciplines" / "sweep.parquet").is_file()


@pytest.mark.usefixtures("first")
def test_the_python_of_the_first_run_works(tmp_path: Path) -> None:
    [code] = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
