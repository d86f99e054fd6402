"""The metrics: their order on paper, their units, and how their values are written for people.

The names are fixed and carry the unit; `docs/reference/metrics.md` says what each means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """How one metric is shown.

    Attributes:
        name: The fixed name.
        label: The name in words.
        unit: What stands behind the number; empty for a count.
        better: Which direction is an improvement.
        digits: Digits behind the point.
        scale: Factor from the stored value to the shown one (100 shows a fraction in per cent).
    """

    name: str
    label: str
    unit: str = ""
    better: Better = "neither"
    digits: int = 0
    scale: float = 1.0


METRICS = (
    Metric("requests", "requests"),
    Metric("read_requests", "reads"),
    Metric("write_requests", "writes"),
    Metric("requests_without_transfer", "requests without transfer"),
    Metric("skipped_requests", "requests left out"),
    Metric("split_requests", "requests split", better="lower"),
    Metric("mean_response_ms", "mean response time", "ms", "lower", 3),
    Metric("p50_response_ms", "median response time", "ms", "lower", 3),
    Metric("p95_response_ms", "95th percentile of response time", "ms", "lower", 3),
    Metric("p99_response_ms", "99th percentile of response time", "ms", "lower", 3),
    Metric("mean_service_ms", "mean service time", "ms", "lower", 3),
    Metric("mean_read_service_ms", "mean service time, reads", "ms", "lower", 3),
    Metric("mean_write_service_ms", "mean service time, writes", "ms", "lower", 3),
    Metric("mean_seek_cylinders", "mean seek distance", "cylinders", "lower", 2),
    Metric("zero_seek_fraction", "I/Os without a seek", "%", "higher", 1, 100.0),
    Metric("buffer_hit_fraction", "served from the drive's buffer", "%", "higher", 1, 100.0),
    Metric("mean_seek_ms", "seek, per I/O", "ms", "lower", 3),
    Metric("mean_rotation_ms", "rotation, per I/O", "ms", "lower", 3),
    Metric("mean_transfer_ms", "transfer, per I/O", "ms", "lower", 3),
    Metric("mean_overhead_ms", "overhead, per I/O", "ms", "lower", 3),
    Metric("disk_seconds", "disk busy", "s", "lower", 2),
    Metric("read_mb_per_s", "read rate while busy", "MB/s", "higher", 3),
    Metric("write_mb_per_s", "write rate while busy", "MB/s", "higher", 3),
    Metric("weighted_improvement_pct", "weighted improvement", "%", "higher", 2),
    Metric("rearrangements", "rearrangements"),
    Metric("moved_fraction", "quanta moved", "%", digits=1, scale=100.0),
    Metric("moved_quanta", "quanta moved, number"),
    Metric("moves_left", "moves not carried out"),
    Metric("moves_dropped", "moves given up"),
    Metric("move_ios", "I/Os spent on moves"),
    Metric("move_bytes", "bytes moved", "MB", digits=2, scale=1e-6),
    Metric("move_disk_seconds", "disk time spent on moves", "s", "lower", 2),
)

_BY_NAME = {metric.name: metric for metric in METRICS}


def describe(name: str) -> Metric:
    """The metric of a name; one that is not in the list is shown under its own name."""
    return _BY_NAME.get(name) or Metric(name, name.replace("_", " "), digits=3)


def in_order(names: Mapping[str, Any]) -> list[str]:
    """Names in the order of `METRICS`, unknown ones after them."""
    known = [metric.name for metric in METRICS if metric.name in names]
    return known + [name for name in names if name not in _BY_NAME]


def show(name: str, value: Any) -> str:
    """A value for people, without its unit: thousands are spaced, a mean over nothing is a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    if not isinstance(value, int | float):
        return str(value)
    metric = describe(name)
    if isinstance(value, int) and metric.scale == 1.0 and metric.digits == 0:
        return f"{value:,}".replace(",", " ")
    return f"{value * metric.scale:,.{metric.digits}f}".replace(",", " ")


def change_pct(name: str, before: Any, after: Any) -> float | None:
    """The change from `before` to `after` in per cent of `before`; None where that says nothing."""
    if describe(name).better == "neither":
        return None
    numbers = (int, float)
    if not isinstance(before, numbers) or not isinstance(after, numbers) or before == 0:
        return None
    return 100.0 * (after - before) / before


def show_change(name: str, before: Any, after: Any) -> str:
    """The change for people, `-12.3 %`; empty where it says nothing."""
    change = change_pct(name, before, after)
    return "" if change is None else f"{change:+.1f} %"
