"""The runs below folders as tables: one of runs, one of metrics, one of series.

The files of the runs are the truth. What many of them say is kept in one file beside them,
`results.parquet`, a row a run with the stamp of its files. Where a run is new, gone or has another
stamp, all are read again and the file is written again as a whole: to take the rest over takes as
long. It has the same bytes whenever it is made from the same files, and may be deleted.

Columns are made of buffers, not of lists of Python: for a list Arrow loads pandas where there is
one, which takes longer than all the rest.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow as pa

from agewell.errors import InputError, RunError
from agewell.experiments.simulation import SERIES_FILE, THROUGHPUT_FILE
from agewell.files import parquet_tables
from agewell.runs.found_runs import DONE, FoundRun, Place, places, read
from agewell.values.metrics import describe
from agewell.values.units import unit_of_name
from agewell.version import __version__

KEPT_FILE = "results.parquet"
KEPT_RUNS_MIN = 50
"""Runs below a folder from which on what they say is kept; chosen by us: fewer are read in the time
that it takes to load Arrow."""

_KEPT_VERSION = "1"
"""Of the form of the kept table; with the version of agewell it says who can read it."""

_VERSION_KEY = b"agewell.results"

_INTEGERS = pa.int64()

_ROW = pa.schema(
    [
        ("path", pa.string()),
        ("stamp", pa.string()),
        ("kind", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("error_kind", pa.string()),
        ("version", pa.string()),
        ("build", pa.string()),
        ("seed", pa.uint64()),
        ("configuration", pa.string()),
        ("configuration_id", pa.string()),
        ("inputs", pa.string()),
        ("warnings", pa.string()),
        ("run_seconds", pa.float64()),
        ("made", pa.timestamp("ms")),
        (
            "metrics",
            pa.list_(
                pa.struct([("lane", pa.string()), ("metric", pa.string()), ("value", pa.float64())])
            ),
        ),
    ]
)

RUN_COLUMNS = {
    "run": "folder of the run, as other commands take it",
    "key": "name of that folder, as in the table of a sweep",
    "kind": "kind of experiment: requests, layout or file-system",
    "status": "done, failed or damaged",
    "error": "why a run is not done",
    "error_kind": "what kind of error that was",
    "version": "version of agewell that made it",
    "build": "build of agewell that made it",
    "seed": "seed of its random numbers",
    "configuration": "resolved configuration, as JSON",
    "configuration_id": "the same for runs that differ in their seed only",
    "inputs": "names and sha256 of its input files, as JSON",
    "warnings": "what it warned of, as JSON",
    "run_seconds": "how long it took to make",
    "made": "when it was made, UTC",
}
METRIC_COLUMNS = {
    "run": "folder of the run",
    "lane": "run, or baseline: the same requests without remapping",
    "metric": "name of the metric",
    "unit": "unit of the value; empty for counts, ratios and fractions",
    "better": "which direction is an improvement: lower, higher or neither",
    "value": "the number; null for a mean over nothing",
}
SERIES_COLUMNS = {
    "run": "folder of the run",
    "file": "series.parquet, or throughput.parquet of a layout",
    "...": "the columns of those files; what a run does not measure is null",
}
VIEWS: Mapping[str, Mapping[str, str]] = {
    "runs": RUN_COLUMNS,
    "metrics": METRIC_COLUMNS,
    "series": SERIES_COLUMNS,
}
"""What can be asked: tables, their columns and what each holds."""


@dataclass(frozen=True, slots=True)
class RunTables:
    """Runs as tables, in the order of the folders and of the paths within each.

    Attributes:
        runs: A row a run: `RUN_COLUMNS`.
        metrics: A row a number: `METRIC_COLUMNS`.
        folders: Those of the runs.
    """

    runs: pa.Table
    metrics: pa.Table
    folders: Sequence[Path]


def unit(metric: str) -> str:
    """Of the values of a metric, as they are stored; empty for counts, ratios and fractions."""
    if named := unit_of_name(metric):
        return named
    known = describe(metric)
    return known.unit if known.scale == 1.0 else ""


def tables(folders: Sequence[Path]) -> RunTables:
    """The runs below some folders, each once.

    Raises:
        InputError: A folder cannot be read, or there is no run below any of them.
    """
    seen: set[Path] = set()
    parts = []
    names: list[Path] = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: not a folder; name folders below which there are runs")
        found, paths = _known(folder)
        fresh = []
        for index, path in enumerate(paths):
            place = (folder / path).resolve() if len(folders) > 1 else Path(path)
            if place not in seen:
                seen.add(place)
                fresh.append(index)
                names.append(folder / path)
        parts.append(found if len(fresh) == len(paths) else found.take(_integers(fresh)))
    if not names:
        where = ", ".join(map(str, folders))
        raise InputError(f"{where}: no runs are below; 'agewell run --out' and sweeps leave some")
    every = pa.concat_tables(parts)
    keys = [name.name or name.resolve().name for name in names]
    columns = {"run": _texts(list(map(str, names))), "key": _texts(keys)}
    runs = pa.table(columns | {name: every[name] for name in list(RUN_COLUMNS)[len(columns) :]})
    measured = every["metrics"].combine_chunks()
    return RunTables(runs, _metrics(columns["run"], measured), names)


def series(tables: RunTables) -> pa.Table:
    """The series of every run that left one, under one another, with `run` and `file`.

    Raises:
        InputError: A file of them is damaged.
    """
    parts = []
    for folder, status in zip(tables.folders, tables.runs["status"].to_pylist(), strict=True):
        for name in (SERIES_FILE, THROUGHPUT_FILE) if status == DONE else ():
            path = folder / name
            if path.is_file():
                part = parquet_tables.read(path).replace_schema_metadata()
                run = _texts([str(folder)] * len(part))
                columns = {"run": run, "file": _texts([name] * len(part))}
                parts.append(
                    pa.table(columns | dict(zip(part.column_names, part.columns, strict=True)))
                )
    if not parts:
        return pa.schema([("run", pa.string()), ("file", pa.string())]).empty_table()
    return pa.concat_tables(parts, promote_options="permissive")


def _metrics(runs: pa.Array, measured: pa.ListArray) -> pa.Table:
    """The metrics of all runs under one another."""
    import pyarrow.compute as pc

    flat = measured.flatten()
    names = flat.field("metric").dictionary_encode()
    known = names.dictionary.to_pylist()
    columns = {
        "run": runs.take(pc.list_parent_indices(measured)),
        "lane": flat.field("lane"),
        "metric": flat.field("metric"),
        "unit": _texts([unit(name) for name in known]).take(names.indices),
        "better": _texts([describe(name).better for name in known]).take(names.indices),
        "value": flat.field("value"),
    }
    return pa.table(columns)


def _known(folder: Path) -> tuple[pa.Table, list[str]]:
    """What is known of the runs below a folder, from what was kept where that still holds.

    Returns:
        A row a run, and the path of each.
    """
    there = places(folder)
    paths = [place.path for place in there]
    if len(there) < KEPT_RUNS_MIN:
        return _of_runs(there, [read(folder, place) for place in there]), paths
    kept = _kept(folder)
    stamps = [place.stamp for place in there]
    if kept is not None and _holds(kept, paths, stamps):
        return kept, paths
    table = _of_runs(there, [read(folder, place) for place in there])
    marked = table.replace_schema_metadata({_VERSION_KEY: _stamp_of_form()})
    # Whose folder this is need not be ours to write to; then every time is the first.
    with contextlib.suppress(RunError):
        parquet_tables.write(folder / KEPT_FILE, marked, compression="zstd")
    return table, paths


def _of_runs(where: Sequence[Place], found: Sequence[FoundRun]) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "path": _texts([place.path for place in where]),
        "stamp": _texts([place.stamp for place in where]),
        "seed": _integers([run.seed for run in found], pa.uint64()),
        "run_seconds": _reals([run.run_seconds for run in found]),
        "made": _integers([place.made_ns // 10**6 for place in where], _ROW.field("made").type),
        "metrics": _measured([run.metrics for run in found]),
    }
    for field in _ROW:
        if field.name not in columns:
            columns[field.name] = _texts([getattr(run, field.name) for run in found])
    return pa.table([columns[name] for name in _ROW.names], schema=_ROW)


def _measured(found: Sequence[Mapping[str, Mapping[str, float | None]]]) -> pa.ListArray:
    """The metrics of runs, a list a run."""
    lanes: list[str] = []
    names: list[str] = []
    values: list[float | None] = []
    offsets = [0]
    for metrics in found:
        for lane, measured in metrics.items():
            lanes += [lane] * len(measured)
            names += measured
            values += measured.values()
        offsets.append(len(values))
    inner = _ROW.field("metrics").type.value_type
    rows = pa.StructArray.from_arrays(
        [_texts(lanes), _texts(names), _reals(values)], fields=list(inner)
    )
    return pa.ListArray.from_arrays(_integers(offsets, pa.int32()), rows)


def _holds(kept: pa.Table, paths: Sequence[str], stamps: Sequence[str]) -> bool:
    """Whether what was kept is of these runs, and of what their files are now."""
    return bool(kept["path"].to_pylist() == paths and kept["stamp"].to_pylist() == stamps)


def _kept(folder: Path) -> pa.Table | None:
    """What was kept beside the runs; none where it cannot be had."""
    try:
        kept = parquet_tables.read(folder / KEPT_FILE)
    except InputError:
        return None
    metadata = kept.schema.metadata or {}
    plain = kept.replace_schema_metadata()
    if metadata.get(_VERSION_KEY) != _stamp_of_form() or plain.schema.types != _ROW.types:
        return None
    return plain.combine_chunks()


def _stamp_of_form() -> bytes:
    return f"{_KEPT_VERSION} {__version__}".encode()


def _texts(values: Sequence[str | None]) -> pa.StringArray:
    """A column of texts."""
    texts = [value or "" for value in values]
    whole = "".join(texts)
    lengths = (
        map(len, texts)
        if whole.isascii()
        else (len(text.encode("utf-8", "replace")) for text in texts)
    )
    offsets = array("i", accumulate(lengths, initial=0))
    buffers = [
        _valid(values),
        pa.py_buffer(offsets),
        pa.py_buffer(whole.encode("utf-8", "replace")),
    ]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _reals(values: Sequence[float | None]) -> pa.Array:
    """A column of numbers."""
    numbers = array("d", [0.0 if value is None else value for value in values])
    return pa.Array.from_buffers(pa.float64(), len(values), [_valid(values), pa.py_buffer(numbers)])


def _integers(values: Sequence[int | None], of: pa.DataType = _INTEGERS) -> pa.Array:
    """A column of integers, or of what is stored as one."""
    code = {pa.int32(): "i", pa.uint64(): "Q"}.get(of, "q")
    numbers = array(code, [value or 0 for value in values])
    return pa.Array.from_buffers(of, len(values), [_valid(values), pa.py_buffer(numbers)])


def _valid(values: Sequence[object]) -> pa.Buffer | None:
    """Which values of a column are not None, a bit each from the lowest; None if all are."""
    if None not in values:
        return None
    bits = bytearray((len(values) + 7) // 8)
    for index, value in enumerate(values):
        if value is not None:
            bits[index >> 3] |= 1 << (index & 7)
    return pa.py_buffer(bytes(bits))
