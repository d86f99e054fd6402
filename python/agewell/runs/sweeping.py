"""Many simulations, in parallel and resumable: `agewell.sweep`.

A sweep is a folder:

    sweep.json            the build of agewell, the axes, how points were drawn, and the keys of
                          the runs
    runs/<key>/           one run each, as `agewell run --out` leaves it; the key is a hash of what
                          was asked for and of the build that answered
    sweep.parquet         a row a run, in the order of the axes, the last one fastest; written when
                          all runs have ended. A run that failed is a row with its error and
                          without numbers; the same call tries it again

A run whose folder holds a result of the same question, by the same build and on the same inputs is
not made again, so an interrupted sweep goes on where it was, and one with more values keeps what it
has. The table has the same bytes however many processes made the runs. A folder that holds another
sweep is refused and left as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from agewell import files
from agewell.errors import InputError, RunError
from agewell.experiments.configuration import (
    Configuration,
    Experiment,
    canonical_json,
    read_json,
    with_settings,
)
from agewell.experiments.simulation import resolve
from agewell.files import parquet_tables
from agewell.runs.axes import Axis, Varied, axes_of
from agewell.runs.keyed_runs import KeyedRun, Progress, RunFolder
from agewell.runs.workers import RunJobs
from agewell.values import documents
from agewell.values.findings import Findings
from agewell.values.plot import Curve, Plot
from agewell.version import __version__, build

TABLE_FILE = "sweep.parquet"
DESCRIPTION_FILE = "sweep.json"

EXECUTORS = ("local", "dask")
"""Where runs are made: in processes of this machine, or by a cluster."""

_LABELS_MAX = 40
"""Runs that a plot names one by one; chosen by us: more are not read."""

SHOWN_METRICS = (
    "mean_service_ms",
    "mean_response_ms",
    "mean_seek_cylinders",
    "zero_seek_fraction",
    "weighted_improvement_pct",
    "overall_write_cost",
    "new_data_cost",
    "cleaner_cost",
    "write_amplification",
    "transactions_per_s",
)
"""What a terminal and a page show; chosen by us, the Parquet table has every metric."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep and its values on the axes."""

    values: tuple[Any, ...]
    run: KeyedRun

    @property
    def key(self) -> str:
        """The name of its folder."""
        return self.run.key

    @property
    def label(self) -> str:
        """The values for a message: `0.5, none`."""
        return ", ".join(map(shown_value, self.values))


@dataclass(frozen=True, slots=True, repr=False)
class Sweep(Findings):
    """A finished sweep.

    Attributes:
        axes: Values by `table.key`, the first slowest. Of settings that vary together, as in rows
            or in a sample, one a point.
        rows: A column an axis, then `run` (the key), `status` (`ok` or `failed`) and `error` (one
            line, or null), then a column a metric (`metrics.` and, where a baseline ran,
            `baseline_metrics.` before the name), null where the run failed.
        directory: The folder that holds the runs and the table.
    """

    axes: Mapping[str, Sequence[Any]]
    rows: pa.Table
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        """As `agewell sweep --json` prints it."""
        table = str(self.directory / TABLE_FILE)
        fields = {"axes": list(self.axes), "table": table, "runs": self.rows.to_pylist()}
        return documents.document("sweep-runs", fields)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Of each run that failed its values on the axes, its key and its `error`."""
        chosen = self.rows.select([*self.axes, "run", "error"]).to_pylist()
        return [row for row in chosen if row["error"] is not None]

    @property
    def metrics(self) -> dict[str, list[Any]]:
        """The values of each metric, in the order of the rows; None where a run failed."""
        prefix = "metrics."
        names = [name for name in self.rows.column_names if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.rows[name].to_pylist() for name in names}

    def table(self) -> pa.Table:
        """The rows."""
        return self.rows

    def plots(self) -> list[Plot]:
        """Each metric that is a number, over the runs that have it."""
        labels = [
            ", ".join(shown_value(row[axis]) for axis in self.axes)
            for row in self.rows.select(list(self.axes)).to_pylist()
        ]
        plots = []
        for name, values in self.metrics.items():
            made = [place for place, value in enumerate(values) if value is not None]
            numbers = [values[place] for place in made]
            if made and all(isinstance(value, int | float) for value in numbers):
                plots.append(
                    Plot(
                        name=name.replace("_", "-"),
                        title=name,
                        x_label=", ".join(self.axes),
                        y_label=name,
                        curves=[Curve("", made, numbers, style="points")],
                        categories=labels if len(labels) <= _LABELS_MAX else (),
                    )
                )
        return plots

    def _shown(self) -> dict[str, object]:
        failed = {"failed": len(self.failed)} if self.failed else {}
        return {"axes": list(self.axes), "runs": len(self.rows), **failed}


def sweep(
    experiment: Configuration | Path | str,
    over: Varied,
    out: Path | str,
    *,
    settings: Mapping[str, Any] | None = None,
    base: Path | str | None = None,
    catalogue_directory: Path | str | None = None,
    jobs: int | None = None,
    executor: str | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run an experiment once for every combination of values, row of a table or drawn point.

    Args:
        experiment: A TOML file, the `result.json` of an earlier run, or the tables as a dict.
        over: What varies. Lists by `table.key`: every combination, the first name slowest. A list
            of dicts, an Arrow table, a data frame, or the CSV, Parquet or JSON file of one: a run a
            row, where None leaves what the experiment says. An `agewell.Sample`: a run a point. A
            tuple of those: every combination of them.
        out: Folder of the sweep; made if needed, continued if all runs of the sweep that it holds
            are runs of this one.
        settings: Single values by `table.key`, the same in every run.
        base: Folder that relative paths in a dict start from; the current folder by default.
        catalogue_directory: Folder of device files to use instead of the catalogue that comes with
            agewell.
        jobs: Runs at once; one a processor by default, of a cluster one a thread of its workers.
        executor: `local`, processes of this machine, by default; or `dask`, a cluster of Dask that
            is made for this sweep or the one that `scheduler` names.
        scheduler: The address of a Dask scheduler, such as `tcp://10.0.0.1:8786`. Its workers must
            have this build of agewell, and see `out` and all inputs under the same paths.
        progress: Called after each run.

    Returns:
        The sweep; its table has a row a run. A run that failed is in `failed`, and the same call
        tries it again.

    Raises:
        InputError: The experiment is bad, whatever the values; or `out` holds another sweep or one
            by another build.
        RunError: Not one run could be made; or there is no such cluster, or none of this build.

    Examples:
        >>> import tempfile, agewell
        >>> experiment = {
        ...     "workload": {"kind": "random-update", "blocks": 2000, "updates_per_block": 2},
        ...     "layout": {"kind": "lfs", "segment_size": "256 KiB"},
        ...     "device": {"kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s"},
        ... }
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     agewell.sweep(experiment, {"workload.utilization": [0.5, 0.8]}, folder, jobs=1)
        Sweep(axes=['workload.utilization'], runs=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     drawn = agewell.Sample({"workload.utilization": agewell.Range(0.5, 0.9)}, 3)
        ...     agewell.sweep(experiment, drawn, folder, jobs=1)
        Sweep(axes=['workload.utilization'], runs=3)
    """
    elsewhere = _elsewhere(Path(out), executor, scheduler, jobs)
    asked = resolve(experiment, settings=settings, base=base)
    axes = axes_of(over)
    points = plan(asked, axes)
    runs = RunFolder(Path(out), catalogue_directory, jobs, elsewhere=elsewhere)
    folder = runs.root
    columns = {name: axis.column(name) for axis in axes for name in axis.names}
    _claim(folder, points, axes, columns)

    outcomes = runs.make([point.run for point in points], progress)
    if all(outcome.error for outcome in outcomes):
        first = outcomes[0]
        kind = InputError if first.is_input_error else RunError
        raise kind(f"run {points[0].label}: {first.error}; no other run could be made either")
    table = tabulate(folder, points, list(columns), [outcome.error for outcome in outcomes])
    parquet_tables.write(folder / TABLE_FILE, table)
    return Sweep(columns, table, folder)


def _elsewhere(
    folder: Path, executor: str | None, scheduler: str | None, jobs: int | None
) -> RunJobs | None:
    """What makes the runs, if not processes of this machine.

    Raises:
        InputError: There is no such executor, or it takes no scheduler, or is not installed.
    """
    if executor is not None and executor not in EXECUTORS:
        raise InputError(f"the executor '{executor}': it is {' or '.join(EXECUTORS)}")
    if scheduler is not None and executor == "local":
        raise InputError("a scheduler is of Dask: leave --executor out, or say dask")
    if scheduler is None and executor != "dask":
        return None
    from agewell.runs.dask_cluster import on_dask

    return on_dask(folder, scheduler, jobs)


def plan(experiment: Experiment, axes: Sequence[Axis]) -> list[Point]:
    """Every run of a sweep, in order: every combination of the points of its axes.

    Raises:
        InputError: A setting goes through something that is not a table.
    """
    names = [name for axis in axes for name in axis.names]
    points = []
    for parts in itertools.product(*(axis.points for axis in axes)):
        values = tuple(itertools.chain.from_iterable(parts))
        settings = {
            name: value for name, value in zip(names, values, strict=True) if value is not None
        }
        configuration = with_settings(experiment.configuration, settings)
        points.append(Point(values, KeyedRun.of(Experiment(configuration, experiment.base))))
    return points


def shown_value(value: Any) -> str:
    """A value on an axis as tables show it; `-` where a point leaves what the experiment says."""
    return "-" if value is None else str(value)


def tabulate(
    folder: Path, points: Sequence[Point], axes: Sequence[str], errors: Sequence[str | None]
) -> pa.Table:
    """The table of a finished sweep, a row a run.

    Args:
        folder: Of the sweep.
        points: Its runs.
        axes: Names of their values.
        errors: Of each run why it failed, or None.
    """
    documents = [
        point.run.document(folder) if error is None else {}
        for point, error in zip(points, errors, strict=True)
    ]
    columns: dict[str, pa.Array] = {}
    for place, axis in enumerate(axes):
        columns[axis] = _column([point.values[place] for point in points])
    columns["run"] = pa.array([point.key for point in points], pa.string())
    status = ["ok" if error is None else "failed" for error in errors]
    columns["status"] = pa.array(status, pa.string())
    columns["error"] = pa.array(errors, pa.string())
    for section in ("metrics", "baseline_metrics"):
        tables = [document.get(section) or {} for document in documents]
        names = dict.fromkeys(name for table in tables for name in table)
        for name in names:
            columns[f"{section}.{name}"] = _column([table.get(name) for table in tables])
    return pa.table(columns)


def _column(values: Sequence[Any]) -> pa.Array:
    """A column of one type; values of several types become JSON text."""
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present):
        return pa.array(values, pa.bool_())
    if not any(isinstance(value, bool) for value in present):
        if all(isinstance(value, int) for value in present):
            return pa.array(values, pa.int64())
        if all(isinstance(value, int | float) for value in present):
            return pa.array(values, pa.float64())
    if all(isinstance(value, str) for value in present):
        return pa.array(values, pa.string())
    texts = [
        value if value is None or isinstance(value, str) else canonical_json(value)
        for value in values
    ]
    return pa.array(texts, pa.string())


def _claim(
    folder: Path,
    points: Sequence[Point],
    axes: Sequence[Axis],
    columns: Mapping[str, Sequence[Any]],
) -> None:
    """Say in `sweep.json` what this sweep is, or refuse a folder that holds another one."""
    together = [list(axis.names) for axis in axes if axis.is_table]
    samples = [axis.sample.document() for axis in axes if axis.sample is not None]
    fields = {
        "version": __version__,
        "build": build(),
        "axes": columns,
        **({"together": together} if together else {}),
        **({"samples": samples} if samples else {}),
        "runs": [point.key for point in points],
    }
    description = documents.document("sweep", fields)
    path = folder / DESCRIPTION_FILE
    if path.is_file():
        earlier = read_json(path, "the description of a sweep")
        if earlier == description:
            return
        difference = _difference(earlier, description)
        if difference:
            raise InputError(f"{folder}: {difference}; give another folder with --out")
    elif any(folder.iterdir()):
        raise InputError(
            f"{folder}: is not empty and holds no sweep; give another folder with --out"
        )
    files.write_json(path, description)


def _difference(earlier: Any, now: Mapping[str, Any]) -> str:
    """Why the folder of an earlier sweep cannot hold this one; empty if it can.

    It can if every run of the earlier one is a run of this one, so that the table only gains rows.
    """
    if not isinstance(earlier, dict) or not isinstance(earlier.get("axes"), dict):
        return f"its {DESCRIPTION_FILE} does not describe a sweep"
    if (earlier.get("version"), earlier.get("build")) != (now["version"], now["build"]):
        made_by = f"agewell {earlier.get('version')}, build {earlier.get('build', 'unknown')}"
        return (
            f"holds a sweep made by {made_by}; this is {now['version']}, build {now['build']}, "
            "and numbers of two builds do not belong in one table"
        )
    if set(earlier["axes"]) != set(now["axes"]):
        return f"holds a sweep over {', '.join(earlier['axes'])}, not {', '.join(now['axes'])}"
    runs = earlier.get("runs", [])
    lacking = len(set(runs) - set(now["runs"]))
    if lacking:
        return (
            f"holds another sweep, of which {lacking} of {len(runs)} runs are not among these; "
            "a sweep can be continued with the same settings and more values"
        )
    return ""
