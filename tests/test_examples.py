"""The examples that come with the package: all of them, by name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agewell as api
from agewell.files import catalogue
from conftest import REPOSITORY, Agewell


def test_the_package_has_every_example() -> None:
    there = {path.stem: path.resolve() for path in (REPOSITORY / "examples").glob("*.toml")}
    assert {name: path.resolve() for name, path in catalogue.examples().items()} == there


def test_an_example_is_run_by_its_name(agewell: Agewell, tmp_path: Path) -> None:
    listed = agewell("run", "--list").stdout
    assert re.search(r"^log-random-update +A log-structured file system", listed, re.MULTILINE)
    settings = {"workload.updates_per_block": 1}
    by_name = api.run("log-random-update", settings=settings, out=tmp_path / "run")
    by_path = api.run(REPOSITORY / "examples" / "log-random-update.toml", settings=settings)
    assert by_name.metrics == by_path.metrics
    # What the run leaves can be run again, from anywhere.
    assert api.run(tmp_path / "run").metrics == by_name.metrics


def test_a_file_goes_before_an_example_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-mail").write_text("this is no experiment")
    with pytest.raises(api.InputError, match="demo-mail"):
        api.run("demo-mail")


def test_a_mail_history_is_a_workload(agewell: Agewell, tmp_path: Path) -> None:
    script = REPOSITORY / "examples" / "mail_history.py"
    for name in ("one", "other"):
        command = [sys.executable, str(script), str(tmp_path / name), "--days", "9"]
        subprocess.run(command, check=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    printed = agewell("workload", "info", "one", "--json")
    # Reading it holds every count against the operations.
    info = json.loads(printed.stdout)
    assert info["source"] == "mail-history"
    messages = info["actions"]["create"] - 160
    assert messages == 9 * 600
    assert 0.3 < info["actions"]["delete"] / messages < 0.6
