"""What the tests share: running the program, and a small experiment that needs no trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import accessibility
import chromium
import documents
from agewell.cli import terminal
from agewell.files import catalogue, json_text
from agewell.studies.context import Context

# A busy machine is no reason for a test to fail.
settings.register_profile("agewell", deadline=None)
settings.load_profile("agewell")

REPOSITORY = Path(__file__).resolve().parents[1]
SNAPSHOTS = Path(__file__).resolve().parent / "snapshots"
COMMAND_SECONDS = 600
"""However busy the machine is, what takes longer hangs."""

SMALL_EXPERIMENT = """\
# A synthetic load on a simple disk: small, and the same on every machine.
[workload]
kind = "poisson"
requests = 2000
rate_per_s = 40.0
read_fraction = 0.7

[queue]
discipline = "fcfs"

[device]
model = "small.toml"

[run]
seed = 7
series_interval = "10 s"
"""

SMALL_DEVICE = """\
name = "small"
title = "A small disk for tests"
kind = "simple"
capacity_sectors = 131072

[sources]
capacity_sectors = "chosen by us"
simple = "chosen by us"

[simple]
access_time_ms = 10.0
bandwidth = "2 MB/s"
"""

Agewell = Callable[..., subprocess.CompletedProcess[str]]


def heed_interrupts() -> None:
    """For `preexec_fn`: let Ctrl-C reach a program even where the tests run in the background.

    A shell without job control starts background jobs with the signal ignored, and a program
    inherits that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def agewell(tmp_path: Path) -> Agewell:
    """Run `agewell ARGUMENTS` in the test's own folder, as a user would.

    What it prints with `--json` is held against the schema of its kind.
    """

    def run(
        *arguments: str | Path, check: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "agewell", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "100", "TERM": "dumb", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert not check or done.returncode == 0, done.stderr
        if "--json" in arguments and done.stdout:
            documents.check(done.stdout)
        return done

    return run


@pytest.fixture(autouse=True)
def _documents_are_as_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands print in the test's own process is held against its schema, too."""

    def checked(document: dict[str, Any]) -> str:
        assert documents.complaints(document) == []
        return json_text(document)

    monkeypatch.setattr(terminal, "json_text", checked)


def small_experiment(folder: Path) -> Path:
    """The small experiment as a file, its device beside it."""
    (folder / "small.toml").write_text(SMALL_DEVICE)
    path = folder / "experiment.toml"
    path.write_text(SMALL_EXPERIMENT)
    return path


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    return small_experiment(tmp_path)


@pytest.fixture
def context_of(tmp_path: Path) -> Callable[[str], Context]:
    """Contexts of studies by name, with their own experiments and no data."""
    return lambda name: Context(
        experiments=catalogue.experiments() / name,
        out=tmp_path,
        examples=tmp_path,
        data=[],
        progress=lambda _fraction, _words: None,
        jobs=2,
    )


@pytest.fixture
def snapshot() -> Callable[[str, str], None]:
    """Compare a text with `snapshots/<name>`; `make snapshots` accepts what is printed now."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        if os.environ.get("AGEWELL_ACCEPT_SNAPSHOTS"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.is_file(), f"no snapshot {name}; make snapshots makes it"
        assert text == path.read_text()

    return compare


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    """A Chromium that is open for all visits."""
    found = chromium.find()
    if found is None:
        pytest.skip("there is no chromium; scripts/install-test-tools installs it where it can")
    opened = chromium.Browser(found, tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Expressions that look for what is wrong with a page."""
    folder = tmp_path_factory.mktemp("axe")
    why = accessibility.install(folder)
    if why is not None:
        pytest.skip(why)
    return accessibility.expressions(folder)
