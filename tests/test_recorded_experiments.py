"""The demo experiments: every recorded request is served, and shuffling does what it can."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
Agewell = Callable[..., "subprocess.CompletedProcess[str]"]
FLUSH = 3
FIRST_SHUFFLE_NS = 300_000_000_000


def run(agewell: Agewell, name: str, *changes: str) -> dict[str, Any]:
    """The result of a demo with settings changed."""
    settings = [word for change in changes for word in ("--set", change)]
    done = agewell("run", EXAMPLES / f"demo-{name}.toml", "--json", "--quiet", *settings)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_every_trace_has_its_demo() -> None:
    demos = {path.stem.removeprefix("demo-") for path in EXAMPLES.glob("demo-*.toml")}
    assert demos == {"pgbench", "mail", "build"}


@pytest.mark.parametrize("name", ["pgbench", "mail", "build"])
def test_every_request_is_served_with_and_without_shuffling(agewell: Agewell, name: str) -> None:
    result = run(agewell, name, "run.after_first_rearrangement=false")
    table = pq.read_table(EXAMPLES / "traces" / f"{name}.parquet")
    moves = table["operation"].to_numpy() != FLUSH
    metrics, baseline = result["metrics"], result["baseline_metrics"]
    for lane in (metrics, baseline):
        assert lane["requests"] == moves.sum()
        assert lane["mean_response_ms"] >= lane["mean_service_ms"] > 0
    assert metrics["requests_without_transfer"] == (~moves).sum()
    assert baseline["split_requests"] == 0
    assert metrics["rearrangements"] >= 1
    trace = EXAMPLES / "traces" / f"{name}.parquet"
    digest = hashlib.sha256(trace.read_bytes()).hexdigest()
    assert {"name": f"traces/{name}.parquet", "sha256": digest} in result["inputs"]


@pytest.mark.parametrize("name", ["pgbench", "mail"])
def test_only_requests_after_the_first_shuffle_are_compared(agewell: Agewell, name: str) -> None:
    result = run(agewell, name, "workload.replay=open")
    table = pq.read_table(EXAMPLES / "traces" / f"{name}.parquet")
    late = table["enqueue_ns"].to_numpy().astype(np.int64) >= FIRST_SHUFFLE_NS
    expected = int((late & (table["operation"].to_numpy() != FLUSH)).sum())
    assert result["metrics"]["requests"] == expected
    assert result["baseline_metrics"]["requests"] == expected


def test_a_load_that_the_disk_cannot_carry_is_named_with_its_remedy(agewell: Agewell) -> None:
    """Two checkpoints of the database ask for more than the minute that they fall into."""
    result = run(agewell, "pgbench", "workload.replay=open")
    warning = " ".join(result["warnings"])
    assert "the disk is overloaded" in warning
    assert "in 2 of 15 intervals" in warning
    assert 'replay = "closed"' in warning
    assert 0.6 < result["metrics"]["offered_load"] < 0.8
    slower = warning.split("scale-time=")[1].split('"')[0]
    filters = f'workload.filters=["scale-time={slower}"]'
    for remedy in (["workload.replay=closed"], ["workload.replay=open", filters]):
        result = run(agewell, "pgbench", *remedy)
        assert not any("overloaded" in each for each in result["warnings"]), remedy


def test_shuffled_cylinders_shorten_the_way_of_the_head(agewell: Agewell) -> None:
    # In the order of arrival nothing but the placement decides the distance. The hot parts of the
    # mail server's file system (journal, directories, indexes) lie far apart as mkfs left them.
    # pgbench is no such case: TPC-B chooses its accounts evenly.
    result = run(agewell, "mail", "queue.discipline=fcfs")
    shuffled = result["metrics"]["mean_seek_cylinders"]
    assert shuffled < 0.9 * result["baseline_metrics"]["mean_seek_cylinders"]


def test_the_same_experiment_gives_the_same_result(agewell: Agewell) -> None:
    assert run(agewell, "mail") == run(agewell, "mail")


def test_a_part_of_the_decision_support_load_is_repeated(agewell: Agewell) -> None:
    """Requests of one question, twice, counted in the trace itself."""
    experiment = EXAMPLES / "log-decision-support.toml"
    settings = ("--set", "workload.part=q11", "--set", "workload.repeat=2")
    done = agewell("run", experiment, "--json", "--quiet", *settings)
    result: dict[str, Any] = json.loads(done.stdout)
    table = pq.read_table(EXAMPLES / "traces" / "decision-support-files.parquet")
    path = table["path"].to_pylist()
    begin, end = path.index("marks/q11"), path.index("marks/q12")
    operation = table["operation"].to_numpy()[begin:end]
    length = table["length"].fill_null(0).to_numpy()[begin:end]
    moves = np.isin(operation, (3, 4)) & (length > 0)
    others = np.isin(operation, (5, 6, 7))
    metrics = result["metrics"]
    assert metrics["requests"] == 2 * (moves.sum() + others.sum())
    assert metrics["read_blocks"] >= 2 * (operation == 3).sum()
    # All tables lie on the disk, whether the question asks for them or not.
    assert metrics["initial_blocks"] > 30_000
