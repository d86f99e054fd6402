"""One simulation from Python, and what it gave: `agewell.run`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell.errors import InputError
from agewell.experiments.configuration import Configuration, Experiment, read_json
from agewell.experiments.policies import Policies, PolicyFunction
from agewell.experiments.simulation import (
    HISTOGRAMS_FILE,
    RESULT_FILE,
    SERIES_FILE,
    THROUGHPUT_FILE,
    ProgressCallback,
    resolve,
    run_experiment,
)
from agewell.experiments.traces import Trace, kind_of, path_of
from agewell.values.findings import Findings

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, repr=False)
class Result(Findings):
    """What a simulation gave.

    Attributes:
        document: The whole record, as in `result.json`.
        series: A row an interval of the trace (an hour unless set otherwise): `interval`,
            `start_ns`, `requests`, `read_requests`, `sectors`, `mean_service_ms`,
            `mean_response_ms`, `mean_seek_cylinders`, `zero_seek_fraction`, and the last four again
            with the prefix `baseline_` when a baseline ran and shares the intervals; under closed
            replay it does not. Of a log: a row for a number of new blocks, with `interval`,
            `new_blocks`, `overall_write_cost`, `new_data_cost`, `cleaned_blocks`, `plugged_blocks`,
            `threaded_blocks`, `live_blocks` and `mechanism`. Of another layout of blocks: the
            running totals of `throughput.parquet`.
        histograms: A row a filled bucket: `lane` (`run` or `baseline`), `quantity` (`response_ns`,
            `service_ns`, `seek_cylinders`), `day` (of the trace, for seek distances), `upper`
            (inclusive upper edge), `count`. Empty for a log.
        directory: The folder that holds the record, or None if none was kept.
    """

    document: dict[str, Any]
    series: pa.Table
    histograms: pa.Table
    directory: Path | None = None

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics under their fixed names; None stands for a mean over nothing."""
        metrics: dict[str, Any] = self.document["metrics"]
        return metrics

    def table(self) -> pa.Table:
        """The series."""
        return self.series

    @property
    def baseline(self) -> dict[str, Any] | None:
        """The metrics of the same requests without remapping, if a baseline ran."""
        baseline: dict[str, Any] | None = self.document.get("baseline_metrics")
        return baseline

    @property
    def config(self) -> Configuration:
        """The configuration with every default filled in."""
        config: Configuration = self.document["config"]
        return config

    @property
    def kind(self) -> str:
        """Which kind of experiment it is of: `requests`, `layout` or `file-system`."""
        return _kind(self.document)

    @property
    def is_of_a_layout(self) -> bool:
        """Whether file requests went through a host into a layout of blocks."""
        return self.kind == "layout"

    @property
    def is_of_a_file_system(self) -> bool:
        """Whether a file system was aged and measured."""
        return self.kind == "file-system"

    def _shown(self) -> dict[str, object]:
        return {"kind": self.kind, **_first_numbers(self.metrics)}

    @classmethod
    def read(cls, directory: Path | str) -> Result:
        """The result that lies in a folder.

        Raises:
            InputError: The folder holds no result, or a file of it is damaged.
        """
        folder = Path(directory)
        if folder.name == RESULT_FILE:
            folder = folder.parent
        document = read_json(folder / RESULT_FILE, "a result of agewell run")
        if not isinstance(document, dict) or not isinstance(document.get("metrics"), dict):
            raise InputError(
                f"{folder / RESULT_FILE}: not a result of agewell run: no table 'metrics'"
            )
        return cls(
            document,
            _read_table(folder / _series_file(document)),
            _read_table(folder / HISTOGRAMS_FILE)
            if _kind(document) == "requests"
            else _no_histograms(),
            folder,
        )


def _first_numbers(metrics: Mapping[str, Any]) -> dict[str, object]:
    """What stands first for a reader: the time of requests, of the disk, or the layout score."""
    names = ("mean_response_ms", "overall_write_cost", "disk_seconds", "layout_score")
    return {name: metrics[name] for name in names if metrics.get(name) is not None}


def run(
    experiment: Configuration | Path | str,
    *,
    trace: Trace | Path | str | None = None,
    settings: Mapping[str, Any] | None = None,
    base: Path | str | None = None,
    out: Path | str | None = None,
    catalogue_directory: Path | str | None = None,
    progress: ProgressCallback | None = None,
    victim: PolicyFunction | None = None,
    placement: PolicyFunction | None = None,
    allocator: PolicyFunction | None = None,
) -> Result:
    """Run one simulation.

    Args:
        experiment: A TOML file, the `result.json` of an earlier run, or the tables as a dict.
        trace: What to replay in place of the workload of the experiment; keys of a workload that is
            a trace already stay.
        settings: Single values by `table.key` that replace those of the experiment:
            `{"remap.kind": "none"}`.
        base: Folder that relative paths in a dict start from; the current folder by default.
        out: Folder to leave the record in (`result.json`, `series.parquet`, and unless of a log
            `histograms.parquet`); made if needed.
        catalogue_directory: Folder of device files to use instead of the catalogue that comes with
            agewell.
        progress: Called now and then with the number of requests read so far.
        victim: Which segment of a log is collected: called with `Segments`; returns a position, or
            a score a segment, of which the highest is taken.
        placement: Which open log of a log blocks go to: called with `Blocks`; returns a log a
            block, or one for all.
        allocator: Which free place a write-anywhere layout writes next: called with `Places`;
            returns a place, or a pair of one and a direction.

    Returns:
        The result, the same for the same configuration, inputs, seed and policies. It names the
        functions, and cannot be run again without them.

    Raises:
        InputError: The experiment, a device file or a trace is bad.
        RunError: The run failed, or a policy raised an exception, which is the cause.

    Examples:
        >>> import agewell
        >>> experiment = {
        ...     "workload": {"kind": "random-update", "blocks": 2000, "updates_per_block": 2},
        ...     "layout": {"kind": "lfs", "segment_size": "256 KiB"},
        ...     "device": {"kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s"},
        ... }
        >>> result = agewell.run(experiment)
        >>> result.metrics["user_blocks"]
        4000
    """
    policies = Policies(victim, placement, allocator)
    resolved = resolve(experiment, base=base)
    if trace is not None:
        resolved = _replaying(resolved, trace)
    resolved = resolve(resolved.configuration, settings=settings, base=resolved.base)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="agewell-") as temporary:
            run_experiment(resolved, Path(temporary), catalogue_directory, progress, policies)
            kept = Result.read(temporary)
        return Result(kept.document, kept.series, kept.histograms)
    run_experiment(resolved, Path(out), catalogue_directory, progress, policies)
    return Result.read(out)


def _replaying(experiment: Experiment, trace: Trace | Path | str) -> Experiment:
    """The experiment with the trace for its workload."""
    path = path_of(trace)
    kind = "file-trace" if kind_of(path) == "file" else "trace"
    table = experiment.configuration.get("workload", {})
    kept = table if isinstance(table, Mapping) and table.get("kind") == kind else {}
    workload = {**kept, "kind": kind, "path": str(path.absolute())}
    return Experiment({**experiment.configuration, "workload": workload}, experiment.base)


def _kind(document: Mapping[str, Any]) -> str:
    """The kind that a result says; older ones do not, and are recognised by their tables."""
    if isinstance(kind := document.get("kind"), str):
        return kind
    config = document.get("config")
    if not (isinstance(config, dict) and "layout" in config):
        return "requests"
    return "file-system" if "score" in document else "layout"


def _series_file(document: Mapping[str, Any]) -> str:
    """Of layouts only a log has costs by interval."""
    if _kind(document) != "layout":
        return SERIES_FILE
    return SERIES_FILE if document["config"]["layout"]["kind"] == "lfs" else THROUGHPUT_FILE


def _no_histograms() -> pa.Table:
    """Logs and file systems measure no requests one by one: no distributions."""
    import pyarrow as pa

    return pa.schema(
        [
            ("lane", pa.string()),
            ("quantity", pa.string()),
            ("day", pa.uint64()),
            ("upper", pa.uint64()),
            ("count", pa.uint64()),
        ]
    ).empty_table()


def _read_table(path: Path) -> pa.Table:
    from agewell.files import parquet_tables

    return parquet_tables.read(path, what="a table of agewell run")
