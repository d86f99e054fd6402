"""The plots of a run: rates and times over the trace, distributions, before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agewell.experiments.run_result import Result
from agewell.report.charts import aging as aging_charts
from agewell.report.charts import log as log_charts
from agewell.values.metrics import change_pct
from agewell.values.plot import Curve, Plot

_HOUR_NS = 3_600_000_000_000
_MINUTE_NS = 60_000_000_000
_SECOND_NS = 1_000_000_000
_NS_PER_MS = 1e6

_PARTS = ("mean_seek_ms", "mean_rotation_ms", "mean_transfer_ms", "mean_overhead_ms")
_PART_LABELS = ("seek", "rotation", "transfer", "overhead")

BASELINE_LABEL = "as it lies"
RUN_LABEL = "rearranged"

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lane:
    """One replay of a run as a curve: `lane` is `run` or `baseline`, as in the histograms."""

    result: Result
    lane: str
    label: str
    emphasis: bool


def plots_of(result: Result, prefix: str) -> list[Plot]:
    """Every plot of one run that has something to show.

    Args:
        result: The run.
        prefix: Put before the name of each plot, to keep several runs apart.
    """
    if result.is_of_a_layout:
        return log_charts.plots_of(result, prefix)
    if result.is_of_a_file_system:
        return aging_charts.plots_of(result, prefix)
    plots = [
        _rate_plot(result, prefix),
        _series_plot(
            result,
            f"{prefix}service-time",
            "Physical I/O time",
            "mean_service_ms",
            "mean service time (ms)",
            "Time the device spends on a request, by the interval in which the request arrived.",
        ),
        _series_plot(
            result,
            f"{prefix}seek-distance",
            "Seek distance",
            "mean_seek_cylinders",
            "mean seek distance (cylinders)",
            "Arm movement per disk I/O, by the interval in which the request arrived.",
        ),
        seek_plot(f"{prefix}seek-cdf", _lanes(result)),
        response_plot(f"{prefix}response-cdf", _lanes(result)),
    ]
    if result.baseline is not None:
        plots.append(_before_after_plot(result, prefix))
    plots.append(_parts_plot(result, prefix))
    return [plot for plot in plots if any(len(curve.x) for curve in plot.curves)]


def _lanes(result: Result) -> list[Lane]:
    """The replays of a run, the baseline first."""
    if result.baseline is None:
        return [Lane(result, "run", "", emphasis=True)]
    return [
        Lane(result, "baseline", BASELINE_LABEL, emphasis=False),
        Lane(result, "run", RUN_LABEL, emphasis=True),
    ]


def _rate_plot(result: Result, prefix: str) -> Plot:
    positions, unit, interval_ns, _ = _time_axis(result)
    requests = _filled(result, "requests", 0.0)
    reads = _filled(result, "read_requests", 0.0)
    seconds = interval_ns / _SECOND_NS
    return Plot(
        name=f"{prefix}rate",
        title="I/O rate",
        x_label=f"time since the start of the trace ({unit})",
        y_label="requests per second",
        curves=[
            Curve("reads", positions, _held(reads / seconds), style="steps"),
            Curve("writes", positions, _held((requests - reads) / seconds), style="steps"),
        ],
        caption=f"Mean rate over intervals of {duration(interval_ns)}.",
    )


def _series_plot(
    result: Result, name: str, title: str, column: str, y_label: str, caption: str
) -> Plot:
    positions, unit, _, _ = _time_axis(result)
    columns = {"run": column, "baseline": f"baseline_{column}"}
    lanes = [lane for lane in _lanes(result) if columns[lane.lane] in result.series.column_names]
    if len(lanes) < len(_lanes(result)):
        # Under closed replay each replay has its own clock, so their intervals are not the same.
        caption += f" Only {RUN_LABEL}: the two replays run at their own pace."
    curves = [
        Curve(
            lane.label,
            positions,
            _held(_filled(result, columns[lane.lane])),
            style="steps",
            emphasis=lane.emphasis,
        )
        for lane in lanes
    ]
    return Plot(
        name=name,
        title=title,
        x_label=f"time since the start of the trace ({unit})",
        y_label=y_label,
        curves=curves,
        caption=caption,
    )


def seek_plot(name: str, lanes: Sequence[Lane]) -> Plot:
    """Cumulative distribution of seek distances, a curve a lane."""
    return Plot(
        name=name,
        title="Seek distances, cumulative",
        x_label="seek distance (cylinders)",
        y_label="share of disk I/Os (%)",
        curves=[_distribution_curve(lane, "seek_cylinders", 1.0) for lane in lanes],
        caption="Share of disk I/Os that move the arm at most so far.",
    )


def response_plot(name: str, lanes: Sequence[Lane]) -> Plot:
    """Cumulative distribution of response times, a curve a lane."""
    return Plot(
        name=name,
        title="Response times, cumulative",
        x_label="response time (ms)",
        y_label="share of requests (%)",
        curves=[_distribution_curve(lane, "response_ns", 1 / _NS_PER_MS) for lane in lanes],
        caption="Share of requests that were answered within so long, waiting included.",
        x_scale="log",
    )


def _before_after_plot(result: Result, prefix: str) -> Plot:
    """Change of the principal metrics against the baseline."""
    baseline = result.baseline or {}
    names = [
        "mean_service_ms",
        "mean_read_service_ms",
        "mean_write_service_ms",
        "mean_response_ms",
        "p95_response_ms",
        "mean_seek_cylinders",
    ]
    labels = [
        "service",
        "service,\nreads",
        "service,\nwrites",
        "response",
        "response,\n95 %",
        "seek\ndistance",
    ]
    changes = [
        (label, change)
        for name, label in zip(names, labels, strict=True)
        if (change := change_pct(name, baseline.get(name), result.metrics.get(name))) is not None
    ]
    return Plot(
        name=f"{prefix}before-after",
        title="Before and after",
        x_label="",
        y_label=f"change against {BASELINE_LABEL} (%)",
        curves=[
            Curve(
                "",
                list(range(len(changes))),
                [change for _, change in changes],
                style="bars",
            )
        ],
        caption="Below zero is an improvement.",
        categories=[label for label, _ in changes],
    )


def _parts_plot(result: Result, prefix: str) -> Plot:
    curves = []
    for lane in _lanes(result):
        metrics = result.metrics if lane.lane == "run" else (result.baseline or {})
        values = [metrics.get(name) for name in _PARTS]
        heights = [math.nan if value is None else float(value) for value in values]
        places = list(range(len(_PARTS)))
        curves.append(Curve(lane.label, places, heights, style="bars", emphasis=lane.emphasis))
    return Plot(
        name=f"{prefix}parts",
        title="Where the time goes",
        x_label="",
        y_label="mean time per disk I/O (ms)",
        curves=curves,
        caption="Physical I/O time by cause.",
        categories=_PART_LABELS,
    )


def _time_axis(result: Result) -> tuple[list[float], str, int, npt.NDArray[np.int64]]:
    """Edges of all intervals from the first to the last, their unit, length and indices."""
    starts = result.series["start_ns"].to_numpy().astype(np.int64)
    indices = result.series["interval"].to_numpy().astype(np.int64)
    interval_ns = _interval_ns(result, starts, indices)
    everything = np.arange(indices.min(), indices.max() + 1) if len(indices) else indices
    span_ns = interval_ns * max(len(everything), 1)
    # Up to three hours are shown in minutes, up to three minutes in seconds.
    unit_ns, unit = next(
        (
            (unit_ns, unit)
            for unit_ns, unit in ((_HOUR_NS, "hours"), (_MINUTE_NS, "minutes"))
            if span_ns > 3 * unit_ns
        ),
        (_SECOND_NS, "seconds"),
    )
    # One position more than intervals: the end of the last one.
    edges = np.append(everything, everything[-1:] + 1)
    positions: list[float] = (edges * (interval_ns / unit_ns)).tolist()
    return positions, unit, interval_ns, everything


def _interval_ns(
    result: Result, starts: npt.NDArray[np.int64], indices: npt.NDArray[np.int64]
) -> int:
    later = np.flatnonzero(indices > 0)
    if len(later):
        return int(starts[later[0]] // indices[later[0]])
    # A single interval, the first: its length stands in the configuration only.
    text = str(result.config["run"]["series_interval"])
    return int(text.removesuffix("ns").strip()) if text.endswith(" ns") else _HOUR_NS


def _held(values: FloatArray) -> list[float]:
    """Values of intervals with the last one repeated, so that its step has an end."""
    held: list[float] = np.append(values, values[-1:]).tolist()
    return held


def _filled(result: Result, column: str, absent: float = math.nan) -> FloatArray:
    """A column over every interval; those without requests, which have no row, hold `absent`."""
    _, _, _, everything = _time_axis(result)
    filled = np.full(len(everything), absent)
    if len(everything):
        indices = result.series["interval"].to_numpy().astype(np.int64)
        values = result.series[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
        filled[indices - everything[0]] = np.where(np.isnan(values), absent, values)
    return filled


def _distribution_curve(lane: Lane, quantity: str, scale: float) -> Curve:
    """Upper edges times `scale`, and the share of values up to each in per cent."""
    table = lane.result.histograms
    rows = table.filter(
        pc.and_(pc.equal(table["lane"], lane.lane), pc.equal(table["quantity"], quantity))
    )
    if rows.num_rows == 0:
        return Curve(lane.label, [], [], emphasis=lane.emphasis)
    counts = rows.group_by("upper").aggregate([("count", "sum")]).sort_by("upper")
    upper = counts["upper"].to_numpy().astype(np.float64) * scale
    cumulated = np.cumsum(counts["count_sum"].to_numpy())
    shares = 100.0 * cumulated / cumulated[-1]
    return Curve(lane.label, upper.tolist(), shares.tolist(), style="steps", emphasis=lane.emphasis)


def duration(nanoseconds: int) -> str:
    """A length of time in the largest unit that divides it: `1 h`, `10 min`, `250 ms`."""
    for unit_ns, unit in ((_HOUR_NS, "h"), (_MINUTE_NS, "min"), (_SECOND_NS, "s")):
        if nanoseconds % unit_ns == 0:
            return f"{nanoseconds // unit_ns} {unit}"
    return f"{nanoseconds / _NS_PER_MS:g} ms"
