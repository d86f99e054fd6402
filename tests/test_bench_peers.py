"""Benchmarks beside peers: what is kept and shown, and peers that programs play."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY

sys.path.append(str(REPOSITORY / "bench"))

from peers import caches, comparison, drives, fragments, host, placement, runs

RUNS = REPOSITORY / "bench" / "runs"


def kept(rows: list[comparison.Row]) -> dict[str, object]:
    """A run as it is kept."""
    return {"rows": [one.document() for one in rows], "absent": {}, "host": {}}


def test_a_ratio_says_how_many_times_better_ours_is() -> None:
    more = comparison.row("a", "peer", "1/s", "more", [(4.0, 2.0), (9.0, 3.0), (8.0, 1.0)])
    assert (more.ours, more.theirs, more.ratio) == (8.0, 2.0, 3.0)
    less = comparison.row("a", "peer", "s", "less", [(4.0, 2.0)])
    assert less.ratio == 0.5
    assert comparison.row("a", "peer", "s", "same", [(4.0, 2.0)]).ratio == 2.0


def test_runs_are_columns_and_what_was_not_there_is_a_dash(tmp_path: Path) -> None:
    lru = comparison.row("caches/lru", "lib", "1/s", "more", [(4.0, 2.0)])
    pieces = comparison.row("fragments/pieces", "filefrag", "pieces", "same", [(3.0, 3.0)])
    runs.write(tmp_path / "2026-01-02-later.json", kept([lru, pieces]))
    runs.write(tmp_path / "2026-01-01-first.json", kept([lru]))
    lines = runs.table(runs.read(tmp_path))
    assert lines[0][3:] == ["2026-01-01-first", "2026-01-02-later"]
    assert lines[1:] == [
        ["caches/lru", "lib", "1/s", "2", "2"],
        ["fragments/pieces", "filefrag", "pieces", "-", "=1"],
    ]


def test_history_shows_the_kept_runs_and_says_where_there_are_none(tmp_path: Path) -> None:
    command = [sys.executable, "bench/history"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("comparison")
    none = subprocess.run(
        [*command, tmp_path], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert none.returncode == 1
    assert none.stderr.startswith("history: error: no runs in ")
    assert none.stderr.count("\n") == 1


@pytest.mark.tidy
def test_kept_runs_say_when_and_on_what_and_no_names_of_machines() -> None:
    paths = sorted(RUNS.glob("*.json"))
    assert paths
    for path in paths:
        text = path.read_text()
        document = json.loads(text)
        assert path.name.startswith(document["date"])
        assert set(document["host"]) == set(host.description())
        assert document["rows"]
        for one in document["rows"]:
            assert one["ratios"] == sorted(one["ratios"])
            assert one["ratio"] > 0


def test_absent_peers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(drives.FOLDER, raising=False)
    monkeypatch.delenv(placement.JAR, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for peer in (drives, placement, fragments):
        with pytest.raises(comparison.AbsentError, match=r"AGEWELL_\w+ names no|not installed"):
            next(peer.compare(tmp_path, 1))


def test_a_disksim_is_asked_as_its_own_validation_asks_it(tmp_path: Path) -> None:
    program = tmp_path / "disksim"
    program.write_text('#!/bin/sh\necho "$@" > asked\necho "rms = 0.378078" > "$2"\n')
    program.chmod(0o755)
    trace = tmp_path / "atlas.trace"
    assert drives.theirs(program, trace, tmp_path) == 0.378078
    asked = (tmp_path / "asked").read_text().split()
    assert asked == [
        "atlas.parv",
        str(tmp_path / "atlas.outv"),
        *["validate", "atlas.trace", "0", "0"],
    ]
    program.write_text("#!/bin/sh\necho nothing\n")
    (tmp_path / "atlas.outv").unlink()
    with pytest.raises(comparison.AbsentError, match="no rms"):
        drives.theirs(program, trace, tmp_path)


def test_the_last_write_amplification_counts() -> None:
    printed = "  0: x , garbage prop = 0.1  , segment WA = 1.5\n 0: y , segment WA = 2.098765\n"
    assert placement.write_amplification(printed) == 2.098765
    with pytest.raises(comparison.AbsentError):
        placement.write_amplification("")


def test_references_are_the_same_in_every_run_and_skewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "REFERENCES", 10_000)
    monkeypatch.setattr(caches, "OBJECTS", 1000)
    keys = caches.zipf_keys()
    assert (keys == caches.zipf_keys()).all()
    assert keys.max() < 1000
    # 1 / H(1000) of all, the share of the first of a thousand.
    share = (keys == max(set(keys.tolist()), key=keys.tolist().count)).mean()
    assert share == pytest.approx(1 / 7.485, rel=0.1)
