"""The benchmark of stores: it is built, it runs, and every store gives back what it was given."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY

PACKAGE = REPOSITORY / "bench" / "stores"


def cargo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run cargo on the package of the benchmark, without a network."""
    manifest = str(PACKAGE / "Cargo.toml")
    command = ["cargo", *arguments, "--locked", "--offline", "--manifest-path", manifest]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def is_wanted() -> bool:
    """Whether the benchmark has been built before, or is asked for."""
    return (PACKAGE / "target").exists() or "AGEWELL_BENCH_STORES" in os.environ


@pytest.fixture(scope="module")
def program() -> Path:
    """The benchmark, built; skips where the crates of the other stores are not at hand."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here")
    if not is_wanted():
        pytest.skip(
            "takes minutes to build: `make bench-stores` builds it, or AGEWELL_BENCH_STORES=1"
        )
    fetched = cargo("fetch")
    if fetched.returncode != 0:
        pytest.skip(f"its crates are not here: {fetched.stderr.strip().splitlines()[-1]}")
    built = cargo("build", "--release")
    assert built.returncode == 0, built.stderr
    return PACKAGE / "target" / "release" / "agewell-stores"


def run(program: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the benchmark."""
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_store_keeps_what_it_is_given(program: Path, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    out = tmp_path / "out.json"
    size = ("--gib", 0.03, "--rounds", 2, "--seconds", 0.05, "--full", 90, "--clients", "1,2")
    done = run(program, "--place", f"here={tmp_path / 'place'}", *size, "--out", out)
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert set(document["versions"]) == {"fjall", "redb", "rusqlite", "sqlite"}
    names = [store["name"] for store in document["stores"]]
    rows = document["rows"]
    assert [row["store"] for row in rows] == 2 * names
    for row in rows:
        assert row["failure"] is None
        assert row["transactions"] > 0
        assert len(row["rounds_transactions_per_s"]) == 2
        assert row["transactions_per_s"] >= row["transactions_per_s_median"] > 0
        assert row["p50_us"] <= row["p99_us"] <= row["max_us"]
        assert row["blocks_wrong"] == 0
        kept = row["store"] != "ceiling"
        assert (row["blocks_read"] > 0) == kept
        assert row["store"] in done.stdout
    read = {row["blocks_read"] for row in rows if row["store"] != "ceiling"}
    assert len(read) == 1, "all stores have the same blocks"
    assert list((tmp_path / "place").iterdir()) == [], "nothing is left"


def test_what_cannot_be_asked_for_is_one_line(program: Path, tmp_path: Path) -> None:
    for arguments, says in (
        ((), "say where: --place NAME=FOLDER"),
        (("--place", "here"), "--place takes NAME=FOLDER"),
        (("--place", f"here={tmp_path}", "--stores", "bdb"), 'no store is called "bdb"'),
        (("--full",), "--full has no value"),
        (("--half", "1"), "no option is called --half"),
    ):
        done = run(program, *arguments)
        assert done.returncode != 0
        assert done.stderr == f"agewell-stores: error: {says}\n"


def test_a_store_that_fails_is_said(program: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    done = run(program, "--place", f"here={missing}", "--stores", "redb", "--gib", 0.03)
    assert done.returncode != 0
    assert "No such file" in done.stdout
    assert done.stderr.endswith("a store failed, or gave what was not written\n")
