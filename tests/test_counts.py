"""Instructions of the hot loops: no more, and no fewer, than those that are kept."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess

import pytest

from conftest import REPOSITORY

KEPT = REPOSITORY / "bench" / "counts" / f"{platform.machine()}.json"


def test_hot_loops_take_the_instructions_that_are_kept() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind here")
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here")
    if not KEPT.exists():
        pytest.skip(f"no counts are kept for {platform.machine()}")
    compiler = subprocess.run(
        ["rustc", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    kept = json.loads(KEPT.read_text())["rustc"]
    if compiler != kept:
        pytest.skip(f"counts are of {kept}, this is {compiler}; bench/count --accept keeps others")
    done = subprocess.run(
        ["bench/count"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("%") == len(json.loads(KEPT.read_text())["instructions"])


def test_a_loop_that_nobody_knows_is_one_line() -> None:
    if shutil.which("valgrind") is None or shutil.which("cargo") is None:
        pytest.skip("no valgrind here, or no cargo")
    done = subprocess.run(
        ["bench/count", "--only", "log-lazy"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("count: error: no loop is called log-lazy; log-greedy, ")
