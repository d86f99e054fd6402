"""The functions of `agewell` and what all their results have."""

from __future__ import annotations

import doctest
import importlib
import inspect
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import agewell as api
from agewell.experiments import traces
from conftest import COMMAND_SECONDS, REPOSITORY, heed_interrupts
from findings import check_findings

FUNCTIONS = (
    *("advise", "age", "bench", "compare", "probe", "read_trace", "reproduce", "run", "score"),
    *("diff", "results", "sweep", "validate"),
)

MEASURED = ("start_ns", "finish_ns")


def _requests(rows: int = 400) -> dict[str, np.ndarray[tuple[int], np.dtype[np.uint64]]]:
    draw = np.random.default_rng(1)
    return {
        "enqueue_ns": np.arange(rows, dtype=np.uint64) * np.uint64(20_000_000),
        "sector": draw.integers(0, 130_000, rows, np.uint64),
        "sectors": np.full(rows, 8, np.uint64),
        "operation": draw.integers(0, 2, rows, np.uint64),
    }


def _measured(folder: Path) -> Path:
    """A trace with measured times, as a device of 10 ms a request would have."""
    columns = _requests(60)
    started = columns["enqueue_ns"] + np.uint64(1000)
    times = {"start_ns": started, "finish_ns": started + np.uint64(10_000_000)}
    path = folder / "measured.parquet"
    api.Trace.of({**columns, **times}).write(path)
    return path


MAKERS: dict[str, Callable[[Path], api.Findings]] = {
    "read_trace": lambda folder: api.read_trace(_measured(folder)),
    "run": lambda folder: api.run(folder / "experiment.toml"),
    "sweep": lambda folder: api.sweep(
        folder / "experiment.toml", {"run.seed": [1, 2]}, folder / "sweep", jobs=1
    ),
    "compare": lambda folder: api.compare(
        ["sequential", "lfs"],
        [api.Trace.of(_requests())],
        ["simple:10ms:2MB/s"],
        folder / "compare",
        utilizations=[0.5],
        jobs=2,
    ),
    "age": lambda _: api.age("ffs", "smith-1996", until=["operations=2000"]),
    "probe": lambda _: api.probe("samsung-970-pro", modelled=True, time="30 s"),
    "bench": lambda _: api.bench("ffs", sizes=["64 KiB"], total="1 MiB", repetitions=2),
    "score": api.score,
    "validate": lambda folder: api.validate(folder / "small.toml", _measured(folder)),
}
"""Functions and a small call of each; `advise` and `reproduce` are called beside their commands."""


@pytest.mark.usefixtures("experiment")
@pytest.mark.parametrize("name", MAKERS)
def test_every_result_has_numbers_a_table_a_picture_and_a_record(name: str, tmp_path: Path) -> None:
    check_findings(MAKERS[name](tmp_path))


def test_every_name_is_there_typed_and_described() -> None:
    assert set(FUNCTIONS) <= set(api.__all__)
    for name in api.__all__:
        value = getattr(api, name)
        if name in FUNCTIONS:
            returned = inspect.signature(value).return_annotation
            module = importlib.import_module(value.__module__)
            assert issubclass(getattr(module, returned), api.Findings), name
        if name != "__version__":
            assert value.__doc__


@pytest.mark.parametrize(
    "name",
    [
        "advice.advising",
        "advice.comparing",
        "experiments.probing",
        "experiments.run_result",
        "experiments.traces",
        "experiments.validations",
        "filesystems.aging",
        "filesystems.benchmarking",
        "filesystems.scoring",
        "runs.sweeping",
        "studies.reproduction",
        "values.findings",
    ],
)
def test_examples_do_what_they_say(name: str) -> None:
    module = importlib.import_module(f"agewell.{name}")
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    done = doctest.testmod(module, optionflags=flags)
    assert done.attempted >= 2
    assert done.failed == 0


# --- traces ---------------------------------------------------------------------------------------


def test_columns_go_in_and_out_without_copies(tmp_path: Path) -> None:
    columns = _requests()
    trace = api.Trace.of(columns)
    for name in ("enqueue_ns", "sector"):
        assert np.shares_memory(trace[name], columns[name])
        assert not trace[name].flags.writeable
    assert trace["operation"].dtype == np.uint8, "converted, as every value fits"
    trace.write(tmp_path / "trace.parquet")
    again = api.read_trace(tmp_path / "trace.parquet")
    table = again.table()
    for name, values in columns.items():
        assert (again[name] == values).all()
        [chunk] = table[name].chunks
        assert np.shares_memory(again[name], np.frombuffer(chunk.buffers()[1], np.uint8))
    assert again["start_ns"].mask.all(), "nothing measured"  # type: ignore[attr-defined]
    assert pa.table(again) == table


def test_frames_go_in_and_out() -> None:
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    columns = _requests(50)
    for frame in (polars.DataFrame(columns), pandas.DataFrame(columns)):
        trace = api.Trace.of(frame)
        assert {name: trace[name].tolist() for name in columns} == {
            name: values.tolist() for name, values in columns.items()
        }
        assert trace.table().to_pandas().shape == (50, 4)
        assert polars.from_arrow(trace.table()).shape == (50, 4)
        assert polars.DataFrame(trace).shape == (50, 4)


def test_times_that_are_missing_in_places_are_masked(tmp_path: Path) -> None:
    columns = _requests(4)
    start = np.ma.MaskedArray(columns["enqueue_ns"] + np.uint64(1), [False, True, False, True])
    finish = np.ma.MaskedArray(start.data + np.uint64(1), start.mask)
    trace = api.Trace.of({**columns, "start_ns": start, "finish_ns": finish})
    for each in (trace, api.read_trace(trace.path)):
        found = each["start_ns"]
        assert isinstance(found, np.ma.MaskedArray)
        assert found.mask.tolist() == [False, True, False, True]
        assert found.compressed().tolist() == start.compressed().tolist()


def test_parts_make_the_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reading, checking and writing go part by part; no part is lost, doubled or out of place."""
    monkeypatch.setattr(traces, "_PART_ROWS", 7)
    columns = _requests(100)
    missing = np.random.default_rng(2).random(100) < 0.3
    times = {name: np.ma.MaskedArray(columns["enqueue_ns"], missing) for name in MEASURED}
    trace = api.Trace.of({**columns, **times})
    trace.write(tmp_path / "trace.parquet")
    again = api.read_trace(tmp_path / "trace.parquet")
    for name, values in {**columns, **times}.items():
        assert again[name].tolist() == values.tolist()
    swapped = columns["enqueue_ns"].copy()
    swapped[[6, 7]] = swapped[[7, 6]]
    with pytest.raises(api.InputError, match="times go back"):
        api.Trace.of({**columns, "enqueue_ns": swapped})


def test_columns_are_never_there_twice(tmp_path: Path) -> None:
    """On the way in, out to a file, and in again."""
    rows = 1_500_000
    columns = _requests(rows)
    columns["sectors"] = columns["sectors"].astype(np.uint32)
    columns["operation"] = columns["operation"].astype(np.uint8)
    columns |= {name: columns["enqueue_ns"] + np.uint64(1) for name in MEASURED}
    one_bytes = sum(values.nbytes for values in columns.values())
    script = (
        "import sys, tracemalloc, numpy, pyarrow, agewell\n"
        "pyarrow.array(numpy.zeros(1))\n"
        "tracemalloc.start()\n"
        "trace = agewell.read_trace(sys.argv[1])\n"
        "held = [trace[name] for name in trace.table().column_names]\n"
        "print(tracemalloc.get_traced_memory()[1], pyarrow.default_memory_pool().max_memory())\n"
    )
    # Arrow imports pandas when it first takes an array, where there is one; that is no trace.
    pa.array(np.zeros(1))
    tracemalloc.start()
    pool = pa.default_memory_pool()
    before_bytes = pool.bytes_allocated()
    trace = api.Trace.of(columns)
    path = trace.path
    held = [trace[name] for name in columns]
    python_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(held) == len(columns)
    assert python_bytes < one_bytes / 4
    assert pool.bytes_allocated() - before_bytes < one_bytes / 4
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    )
    read_bytes = sum(map(int, done.stdout.split()))
    assert read_bytes < 1.7 * one_bytes, "what is read also has columns that were not given"


def test_a_trace_that_was_read_runs_as_its_file_does(experiment: Path, tmp_path: Path) -> None:
    api.Trace.of(_requests()).write(tmp_path / "trace.parquet")
    settings = {"run.series_interval": "1 s"}
    by_name = api.run(experiment, trace=tmp_path / "trace.parquet", settings=settings)
    as_value = api.run(experiment, trace=api.Trace.of(_requests()), settings=settings)
    assert by_name.metrics["requests"] == 400
    assert as_value.metrics == by_name.metrics
    filtered = api.read_trace(tmp_path / "trace.parquet", filters=["op=read"])
    reads = int((_requests()["operation"] == 0).sum())
    assert len(filtered) == reads
    assert api.run(experiment, trace=filtered).metrics["requests"] == reads


GOOD: dict[str, list[object] | None] = {
    "enqueue_ns": [0, 1],
    "sector": [0, 8],
    "sectors": [8, 8],
    "operation": [0, 1],
}
BAD: dict[str, tuple[dict[str, list[object] | None], str]] = {
    "absent": ({"sector": None}, "no column 'sector'"),
    "unknown": ({"blocks": [1, 2]}, "'blocks' is not a column of a trace"),
    "length": ({"sector": [1, 2, 3]}, "need one length"),
    "negative": ({"sector": [-1, 2]}, "column sector: "),
    "fraction": ({"sector": [1.5, 2.0]}, "column sector: "),
    "too large": ({"operation": [0, 300]}, "column operation: "),
    "missing": ({"sector": [None, 2]}, "column sector: 1 values are missing"),
    "back": ({"enqueue_ns": [2, 1]}, "times go back"),
    "words": ({"sector": ["a", "b"]}, "column sector: "),
}


@pytest.mark.parametrize("case", BAD)
def test_columns_that_make_no_trace_are_refused(case: str) -> None:
    changes, message = BAD[case]
    columns = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    with pytest.raises(api.InputError, match=message) as caught:
        api.Trace.of(columns)
    assert "\n" not in str(caught.value)


# --- interrupts -----------------------------------------------------------------------------------

LONG = {
    "run": "agewell.run({'workload': {'kind': 'poisson', 'requests': 10**9, 'rate_per_s': 40.0},"
    " 'device': {'model': 'hp-97560'}, 'queue': {'discipline': 'fcfs'}}, progress=say)",
    "age": "agewell.age('ffs', 'smith-1996', copies=200, progress=say)",
    "bench": "agewell.bench('ffs', sizes=['8 MiB'], repetitions=1000, on_operations=say)",
    "validate": "[agewell.validate('hp-97560', 'trace.parquet', fit=True) for _ in iter(say, 0)]",
    "trace": "[agewell.read_trace('trace.parquet').document for _ in iter(say, 0)]",
}
"""Work that does not end by itself before the signal comes."""


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_native_work(name: str, tmp_path: Path) -> None:
    api.Trace.of(_requests(200_000)).write(tmp_path / "trace.parquet")
    script = (
        "import agewell\n"
        "def say(*_): print('at work', flush=True)\n"
        f"try: {LONG[name]}\n"
        "except KeyboardInterrupt: raise SystemExit(130)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "at work\n"
        child.send_signal(signal.SIGINT)
        _, complaints = child.communicate(timeout=COMMAND_SECONDS)
    assert child.returncode == 130, complaints
    assert list(tmp_path.iterdir()) == [tmp_path / "trace.parquet"]


def test_the_reference_names_every_name() -> None:
    page = (REPOSITORY / "docs" / "reference" / "python.md").read_text()
    names = set(api.__all__) - {"AgewellError", "InputError", "RunError", "__version__"}
    assert [name for name in sorted(names) if f"::: agewell.{name}\n" not in page] == []
