"""The workloads and runs of the disk-shuffling study.

Trace E of the report is a workstation called hplajw, traced in 1991; a week of the same machine in
1992 survives. It runs on its own disk (HP C2200A) and on two others of the report: the slow one
that shuffling was first tried on (HP 7935H) and the fast one (HP 97560). Traces C, F and G are
lost; traces recorded for agewell stand beside them where the report shows more than one machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agewell.experiments.simulation import HISTOGRAMS_FILE, SERIES_FILE
from agewell.files import parquet_tables
from agewell.studies.context import Context, find_input, missing_input

HPLAJW_FILE = "hplajw_1week.srt.zst"

HOUR_NS = 3_600_000_000_000
DAY_HOURS = 24


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests on a disk.

    Attributes:
        key: Prefix of the values computed with it.
        title: Words for the title of a plot.
        short: Words for a legend with several workloads.
        settings: What it changes in a figure's experiment.
        period: What an interval of the series is called.
        time_unit: Of the horizontal axes: `h` or `min`.
    """

    key: str
    title: str
    short: str
    settings: Mapping[str, Any]
    period: str = "hour"
    time_unit: str = "h"

    @property
    def units_an_hour(self) -> float:
        """How many units of the horizontal axes make an hour."""
        return 60.0 if self.time_unit == "min" else 1.0


@dataclass(frozen=True, slots=True)
class Workloads:
    """What can be run here, and what cannot.

    Attributes:
        present: Workloads whose trace was found.
        missing: Why the others cannot be run, by key.
    """

    present: Sequence[Workload]
    missing: Mapping[str, str] = field(default_factory=dict)


_HPLAJW_DISKS = (
    ("c2200a", "HP C2200A", "hp-c2200a"),
    ("97560", "HP 97560", "hp-97560"),
    ("7935h", "HP 7935H", "hp-7935h"),
)


def hplajw(context: Context, *keys: str) -> Workloads:
    """The week of hplajw on the disks named by `keys`."""
    path = find_input(HPLAJW_FILE, context.data)
    chosen = [disk for disk in _HPLAJW_DISKS if disk[0] in keys]
    if path is None:
        why = missing_input(HPLAJW_FILE, context.data)
        return Workloads([], {key: why for key, _, _ in chosen})
    return Workloads(
        [
            Workload(
                key,
                f"hplajw on the {disk}",
                f"hplajw, {disk.removeprefix('HP ')}",
                {"workload.path": str(path.resolve()), "device.model": model},
            )
            for key, disk, model in chosen
        ]
    )


def run(
    context: Context, figure: str, workload: Workload, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Run the experiment of a figure on a workload.

    Args:
        context: Of the study.
        figure: Whose `experiment.toml`.
        workload: Trace and disk.
        settings: Further settings by `table.key`.

    Returns:
        The result document, with `directory`.
    """
    merged = {**workload.settings, **(settings or {})}
    return context.run_experiment(context.experiment(figure), merged)


@dataclass(frozen=True, slots=True)
class Series:
    """A run by the hour, the hours without requests left out.

    Attributes:
        start_hours: When each interval begins, in hours of the trace.
        requests: Requests in it.
        service_ms: Mean physical I/O time.
        seek_cylinders: Mean seek distance.
        baseline_service_ms: The time without shuffling; empty if no baseline ran.
        baseline_seek_cylinders: The distance without shuffling.
    """

    start_hours: list[float]
    requests: list[int]
    service_ms: list[float]
    seek_cylinders: list[float]
    baseline_service_ms: list[float]
    baseline_seek_cylinders: list[float]


def series(result: Mapping[str, Any]) -> Series:
    """The series of a run."""
    table = parquet_tables.read(Path(result["directory"]) / SERIES_FILE).to_pydict()
    return Series(
        start_hours=[start / HOUR_NS for start in table["start_ns"]],
        requests=list(table["requests"]),
        service_ms=list(table["mean_service_ms"]),
        seek_cylinders=list(table["mean_seek_cylinders"]),
        baseline_service_ms=list(table.get("baseline_mean_service_ms", [])),
        baseline_seek_cylinders=list(table.get("baseline_mean_seek_cylinders", [])),
    )


def improvements_pct(of: Series) -> list[float]:
    """Improvement of the mean physical I/O time of each hour, in per cent."""
    return [
        100 * (1 - ours / theirs)
        for ours, theirs in zip(of.service_ms, of.baseline_service_ms, strict=True)
    ]


def weighted_improvement_pct(of: Series, from_hour: float) -> float | None:
    """The report's figure of merit over the hours from `from_hour` on (§5.1)."""
    chosen = [
        (improvement, requests)
        for start, improvement, requests in zip(
            of.start_hours, improvements_pct(of), of.requests, strict=True
        )
        if start >= from_hour
    ]
    total = sum(requests for _, requests in chosen)
    if total == 0:
        return None
    return sum(improvement * requests for improvement, requests in chosen) / total


def weighted_by_hour_pct(of: Series, from_hour: float) -> list[float]:
    """Each hour's improvement times its request rate over the mean rate of the hours that count."""
    counting = [
        requests
        for start, requests in zip(of.start_hours, of.requests, strict=True)
        if start >= from_hour
    ]
    mean = sum(counting) / len(counting) if counting else 1.0
    return [
        improvement * requests / mean if start >= from_hour else 0.0
        for start, improvement, requests in zip(
            of.start_hours, improvements_pct(of), of.requests, strict=True
        )
    ]


def seek_counts(result: Mapping[str, Any], lane: str = "run") -> dict[int, dict[int, int]]:
    """How often each seek distance occurred, by day of the trace."""
    table = parquet_tables.read(Path(result["directory"]) / HISTOGRAMS_FILE).to_pylist()
    counts: dict[int, dict[int, int]] = {}
    for row in table:
        if row["lane"] == lane and row["quantity"] == "seek_cylinders":
            counts.setdefault(row["day"], {})[row["upper"]] = row["count"]
    return counts


def cumulative_pct(counts: Mapping[int, int]) -> tuple[list[float], list[float]]:
    """Distances and the share of seeks up to each, in per cent."""
    total = sum(counts.values())
    distances: list[float] = []
    shares: list[float] = []
    seen = 0
    for distance in sorted(counts):
        seen += counts[distance]
        distances.append(float(distance))
        shares.append(100 * seen / total)
    return distances, shares


def share_up_to_pct(counts: Mapping[int, int], limit: int) -> float | None:
    """Share of the seeks of at most `limit` cylinders, in per cent."""
    total = sum(counts.values())
    if total == 0:
        return None
    return 100 * sum(count for distance, count in counts.items() if distance <= limit) / total
