"""The small example of each crate that its page names: it runs, and prints what it is about."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY

# They are built once: in one process of the tests.
pytestmark = pytest.mark.xdist_group("examples")

SAYS = {
    "times": "128 sectors, 8500000 ns",
    "table": "did you mean 'parts'?",
    "requests": "3 requests",
    "drive": "at random, 64 KiB: 14.37 ms",
    "collect": "write amplification",
    "fast_file_system": "with large ones in their holes",
    "related": "block 400 belongs to",
    "organ_pipe": "block 10 lies at block",
    "caches": '"policy": "lru"',
    "score": "",
    "modelled": 'title = "two-numbers as measured"',
    "recording": "a block device or a path on one",
    "aging": "layout score",
    "damaged": "damaged: [(42, 42)]",
    "names": "",
    "store": "block 12: none",
    "files": "good morning",
}
"""What each prints; those that look at the machine's own files may say anything."""


@pytest.fixture(scope="module")
def folder() -> Path:
    """Where cargo puts the examples, which are built here."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here")
    build = ["cargo", "build", "--quiet", "--locked", "--release", "--workspace"]
    examples = [word for name in SAYS for word in ("--example", name)]
    subprocess.run([*build, *examples], cwd=REPOSITORY, check=True)
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["target_directory"], "release", "examples")


def test_every_page_names_an_example_that_is_run_here() -> None:
    pages = [path.read_text() for path in (REPOSITORY / "crates").glob("*/README.md")]
    named = {word for page in pages for word in re.findall(r"cargo run --example (\w+)", page)}
    # That of the kernel's protocol waits for mounts.
    assert named - {"memory"} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_the_example_runs(folder: Path, name: str) -> None:
    done = subprocess.run(
        [folder / name], cwd=REPOSITORY / "docs", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
    assert done.stdout
