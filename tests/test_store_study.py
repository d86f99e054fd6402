"""The study of stores: its traces, and traces carried out by a store and in place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from agewell import _agewell
from agewell.errors import InputError
from agewell.files import catalogue, parquet_tables
from agewell.studies.claims import rows
from agewell.studies.context import Context
from agewell.studies.store import against_simulation, workloads
from agewell.studies.store.replays import replays
from agewell.studies.store.workloads import Load
from agewell.studies.study import Verdict
from conftest import REPOSITORY

BLOCKS = 4096
DEVICE = "seagate-st2000dm006"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """An eighth of the random updates of the study."""
    monkeypatch.setattr(workloads, "BLOCKS", BLOCKS)
    return workloads.generated("random")


@pytest.fixture
def trace(load: Load, tmp_path: Path) -> Path:
    path = tmp_path / "load.parquet"
    load.save(path)
    return path


def replay(trace: Path, **options: Any) -> dict[str, Any]:
    done = _agewell.store_replay(trace, json.dumps(options), catalogue.directory())
    found: dict[str, Any] = json.loads(done)
    return found


def simulate(trace: Path, load: Load, collect: str, segments: int) -> dict[str, Any]:
    folder = REPOSITORY / "experiments" / "store-against-simulation"
    context = Context(folder, trace.parent, trace.parent, [], lambda _fraction, _words: None)
    changes = {
        "workload.path": str(trace),
        "workload.utilization": load.utilization(segments),
        "layout.collect": collect,
    }
    metrics: dict[str, Any] = context.run_experiment(context.tables("random"), changes)["metrics"]
    return metrics


@pytest.mark.parametrize(
    ("collect", "count", "within"),
    [
        ("clean", "cleaned", 0.0),
        ("plug", "plugged", 0.01),
        ("thread", "threaded", 0.01),
    ],
)
def test_a_store_moves_what_the_simulator_says(
    load: Load, trace: Path, collect: str, count: str, within: float
) -> None:
    segments = load.segments(80)
    done = replay(trace, by=collect, segments=segments)
    simulated = simulate(trace, load, collect, segments)
    log = done["at_end"]["log"]
    assert done["segments"] == segments
    assert log["new_blocks"] == simulated["new_blocks"] >= BLOCKS * 4.9
    assert log[f"{count}_blocks"] == pytest.approx(simulated[f"{count}_blocks"], rel=within, abs=0)


def test_the_mark_divides_the_fill_from_the_updates(load: Load, trace: Path) -> None:
    done = replay(trace, by="clean", segments=load.segments(50), device=DEVICE)
    before, after = done["at_mark"], done["at_end"]
    assert before["log"]["user_blocks"] == BLOCKS
    assert after["log"]["user_blocks"] == BLOCKS * (1 + workloads.PASSES)
    in_place = replay(trace, by="in-place", segments=1, device=DEVICE)
    # A flush for each sync of the updates; those of the store's opening lie before.
    flushes = [
        each["at_end"]["disk"]["flushes"]["requests"]
        - each["at_mark"]["disk"]["flushes"]["requests"]
        for each in (done, in_place)
    ]
    syncs = BLOCKS * workloads.PASSES // workloads.WRITES_A_SYNC
    assert flushes[1] == syncs <= flushes[0]
    assert in_place["at_end"]["disk"]["seconds"] > in_place["at_mark"]["disk"]["seconds"] > 0


def test_without_a_device_there_is_no_time(trace: Path) -> None:
    assert replay(trace, by="adaptive", segments=100)["at_end"]["disk"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "dig", "segments": 100}, "'dig'"),
        ({"by": "clean", "segments": 100, "blocks": 7}, "blocks"),
        ({"by": "clean", "segments": 30}, "no room"),
        ({"by": "clean", "segments": 100, "device": "no-such-drive"}, "no-such-drive"),
        ({"by": "clean", "segments": 4_000_000_000}, "too many"),
        ({"by": "clean"}, "full_percent"),
        ({"by": "clean", "segments": 100, "full_percent": 90}, "full_percent"),
        ({"by": "clean", "full_percent": 101}, "full_percent"),
        ({"by": "in-place", "segments": 1, "device": "hgst-hsh721415ale6m0"}, None),
    ],
)
def test_bad_options_are_one_line(trace: Path, options: dict[str, Any], said: str | None) -> None:
    if said is None:
        # Its first zones are written anywhere.
        assert replay(trace, **options)["at_end"]["disk"]["seconds"] > 0
        return
    with pytest.raises(InputError) as refused:
        replay(trace, **options)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_trace_of_several_files_is_refused(trace: Path, tmp_path: Path) -> None:
    table = parquet_tables.read(trace)
    file = np.arange(table.num_rows, dtype=np.uint32) % 2
    place = table.schema.get_field_index("file")
    other = table.set_column(place, table.schema.field(place), [file])
    parquet_tables.write(
        tmp_path / "two.parquet", other.replace_schema_metadata(table.schema.metadata)
    )
    with pytest.raises(InputError, match="names several files"):
        replay(tmp_path / "two.parquet", by="clean", segments=100)


def test_an_exception_of_progress_stops_a_replay(tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def progress(_share: float) -> None:
        raise EnoughError

    # All of it takes many times as long as it is until somebody is asked.
    load = workloads.generated("random")
    load.save(tmp_path / "long.parquet")
    options = json.dumps({"by": "clean", "segments": load.segments(90), "device": DEVICE})
    with pytest.raises(EnoughError):
        _agewell.store_replay(tmp_path / "long.parquet", options, catalogue.directory(), progress)


def test_replays_are_in_the_order_of_the_cases(
    trace: Path, context_of: Callable[[str], Context]
) -> None:
    cases: dict[tuple[str | float, ...], dict[str, Any]] = {
        ("plug",): {"by": "plug", "segments": 80},
        ("clean",): {"by": "clean", "segments": 80},
    }
    found = replays(context_of("store-against-simulation"), trace, cases)
    assert list(found) == [("plug",), ("clean",)]
    assert found["clean",]["at_end"]["log"]["plugged_blocks"] == 0
    bad: dict[str, Any] = {"by": "clean", "segments": 3}
    with pytest.raises(InputError):
        replays(context_of("store-against-simulation"), trace, {("bad",): bad})


def test_a_recording_singly_writes_the_same_blocks() -> None:
    path = REPOSITORY / "examples" / "traces" / "mail.parquet"
    load = workloads.recorded("mail", path)
    singly = load.singly()
    writes = load.operation == 4

    def blocks(of: Load) -> list[tuple[int, int]]:
        pairs = zip(of.first[of.operation == 4], of.count[of.operation == 4], strict=True)
        return [(int(first), int(count)) for first, count in pairs]

    expanded = [(first + at, 1) for first, count in blocks(load) for at in range(count)]
    assert blocks(singly) == expanded
    assert int((singly.operation == 7).sum()) == int((load.operation == 7).sum())
    operation = pq.read_table(path, columns=["operation"])["operation"].to_numpy()
    assert int(writes.sum()) == int((operation == 1).sum())
    assert load.segments(98) == -(-load.blocks * 100 // (98 * 64))


def test_a_missing_recording_is_said_row_by_row(context_of: Callable[[str], Context]) -> None:
    found = against_simulation.figure("mail", context_of("store-against-simulation"))
    assert {row.verdict for row in found.rows} == {Verdict.NOT_RUN}
    assert all("mail.parquet is missing" in row.why for row in found.rows)


@pytest.mark.parametrize(
    ("ours", "test", "verdict"),
    [
        (1.02, {"to": "disk/other", "within_pct": 3}, Verdict.HOLDS),
        (1.04, {"to": "disk/other", "within_pct": 3}, Verdict.FAILS),
        (0.96, {"to": "disk/other", "within_pct": 3}, Verdict.FAILS),
        (1.04, {"to": "disk/other", "within_pct": 3, "least": 2}, Verdict.HOLDS),
    ],
)
def test_a_value_may_have_to_be_near_another(
    ours: float, test: Mapping[str, Any], verdict: Verdict
) -> None:
    expected = {"row": [{"key": "disk/x", "what": "x", "near": test}]}
    row = rows(expected, {"disk/x": ours, "disk/other": 1.0}, {})[0]
    assert row.verdict is verdict
    assert row.tolerance.startswith("within 3 % of 1, other")
