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
    Metric("offered_load", "offered load", "%", "lower", 1, 100.0),
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
    Metric("mechanisms", "room was made by"),
    Metric("overall_write_cost", "overall write cost", "", "lower", 3),
    Metric("new_data_cost", "of it, new data", "", "lower", 3),
    Metric("cleaner_cost", "of it, collection", "", "lower", 3),
    Metric("foreground_write_cost", "overall write cost, idle time left out", "", "lower", 3),
    Metric("lower_bound_overall_write_cost", "overall write cost, deaths known", "", "lower", 3),
    Metric("write_cost", "write cost in blocks", "", "lower", 3),
    Metric("cleaner_overhead", "cleaner overhead in blocks", "", "lower", 3),
    Metric("transfer_inefficiency", "transfer inefficiency of a segment", "", "lower", 3),
    Metric("write_amplification", "write amplification", "", "lower", 3),
    Metric("flash_write_amplification", "write amplification within the drive", "", "lower", 3),
    Metric("lower_bound_write_amplification", "write amplification, deaths known", "", "lower", 3),
    Metric("user_blocks", "blocks written by users"),
    Metric("absorbed_blocks", "blocks absorbed in buffers"),
    Metric("new_blocks", "new blocks sent to the disk"),
    Metric("moved_blocks", "blocks moved by the layout", better="lower"),
    Metric("cleaned_blocks", "blocks copied by cleaning", better="lower"),
    Metric("plugged_blocks", "blocks copied into holes", better="lower"),
    Metric("threaded_blocks", "new blocks written into holes"),
    Metric("segments_cleaned", "segments cleaned"),
    Metric("segments_plugged", "segments emptied into holes"),
    Metric("segments_threaded", "segments threaded"),
    Metric("segments_emptied", "segments that emptied by themselves"),
    Metric("segments_from_cache", "segments collected without a read"),
    Metric("victim_utilization", "use of a collected segment", "%", "lower", 1, 100.0),
    Metric("capacity_blocks", "capacity in blocks"),
    Metric("segments", "segments"),
    Metric("peak_live_blocks", "live blocks at the peak"),
    Metric("initial_blocks", "live blocks before the first request"),
    Metric("new_data_seconds", "disk time, new data", "s", "lower", 2),
    Metric("thread_seconds", "disk time, new data into holes", "s", "lower", 2),
    Metric("collect_read_seconds", "disk time, reading for collection", "s", "lower", 2),
    Metric("collect_write_seconds", "disk time, cleaned blocks", "s", "lower", 2),
    Metric("plug_seconds", "disk time, blocks into holes", "s", "lower", 2),
    Metric("header_seconds", "disk time, headers", "s", "lower", 2),
    Metric("read_seconds", "disk time, reads of users", "s", "lower", 2),
    Metric("prefetch_seconds", "disk time, reading ahead", "s", "lower", 2),
    Metric("regroup_read_seconds", "disk time, reading to reorganise", "s", "lower", 2),
    Metric("regroup_write_seconds", "disk time, reorganising", "s", "lower", 2),
    Metric("patch_seconds", "disk time, patching reorganised blocks", "s", "lower", 2),
    Metric("journal_seconds", "disk time, journal", "s", "lower", 2),
    Metric("propagate_seconds", "disk time, propagation from the journal", "s", "lower", 2),
    Metric("metadata_read_seconds", "disk time, reading metadata", "s", "lower", 2),
    Metric("metadata_write_seconds", "disk time, writing metadata", "s", "lower", 2),
    Metric("discard_seconds", "disk time of discards", "s", "lower", 3),
    Metric("flush_seconds", "disk time, flushes", "s", "lower", 3),
    Metric("regrouped_blocks", "blocks put together"),
    Metric("groups_moved", "groups put together"),
    Metric("groups_declined", "groups not worth it"),
    Metric(
        "reorganisation_bytes", "memory of what reorganisation knows", "MB", digits=2, scale=1e-6
    ),
    Metric("write_seconds", "disk time, all but reads of users", "s", "lower", 2),
    Metric("recovery_seconds", "disk time after a crash", "s", "lower", 3),
    Metric("hidden_seconds", "disk time, collection while idle", "s", digits=2),
    Metric("read_blocks", "blocks read by users"),
    Metric("client_cache_hit_fraction", "read from clients' caches", "%", "higher", 1, 100.0),
    Metric("server_cache_hit_fraction", "read from the server's cache", "%", "higher", 1, 100.0),
    Metric("disk_reads", "reads from disk", better="lower"),
    Metric("mean_disk_read_ms", "mean time of a disk read", "ms", "lower", 3),
    Metric("disk_read_blocks", "blocks read from disk", better="lower"),
    Metric("mean_disk_read_block_ms", "mean time of a block read from disk", "ms", "lower", 3),
    Metric("prefetched_blocks", "blocks read ahead"),
    Metric("prefetch_used_fraction", "read ahead and used", "%", "higher", 1, 100.0),
    Metric("transactions", "transactions"),
    Metric("transactions_per_s", "transactions per second", "", "higher", 2),
    Metric("elapsed_seconds", "time that passed", "s", digits=2),
    Metric("operations", "operations asked of the file system"),
    Metric("file_operations", "files made, removed and moved"),
    Metric("written_bytes", "written", "MB", digits=1, scale=1e-6),
    Metric("no_space", "operations without room", better="lower"),
    Metric("files", "files"),
    Metric("file_bytes", "size of all files", "MB", digits=1, scale=1e-6),
    Metric("utilization", "in use", "%", digits=1, scale=100.0),
    Metric("utilization_max", "in use, most", "%", digits=1, scale=100.0),
    Metric("layout_score", "layout score", better="higher", digits=4),
    Metric("layout_score_with_tails", "layout score, fragments counted", "", "higher", 4),
    Metric("tails_behind_share", "fragments behind their block", "%", "higher", 1, 100.0),
    Metric("hot_files", "hot files"),
    Metric("hot_bytes", "size of the hot files", "MB", digits=1, scale=1e-6),
    Metric("hot_layout_score", "layout score of the hot files", "", "higher", 4),
    Metric("hot_read_mb_per_s", "hot files, read", "MB/s", "higher", 3),
    Metric("hot_read_deviation_mb_per_s", "hot files, read, deviation", "MB/s", "lower", 3),
    Metric("hot_write_mb_per_s", "hot files, overwrite", "MB/s", "higher", 3),
    Metric("hot_write_deviation_mb_per_s", "hot files, overwrite, deviation", "MB/s", "lower", 3),
    Metric("raw_read_mb_per_s", "device, read", "MB/s", "higher", 3),
    Metric("raw_read_deviation_mb_per_s", "device, read, deviation", "MB/s", "lower", 3),
    Metric("raw_write_mb_per_s", "device, write", "MB/s", "higher", 3),
    Metric("raw_write_deviation_mb_per_s", "device, write, deviation", "MB/s", "lower", 3),
)

_BY_NAME = {metric.name: metric for metric in METRICS}


_MECHANISMS = {
    "clean": "segments_cleaned",
    "plug": "segments_plugged",
    "thread": "segments_threaded",
}
"""How a log makes room, and the metric that counts the segments it has done so with."""


def mechanisms(metrics: Mapping[str, Any]) -> str | None:
    """How a log made room, by shares of the segments it did so with: `clean 12 %, thread 88 %`.

    A log that chooses does not do what its victim policy is for where threading is cheaper, so that
    no cost should stand without this beside it.

    Args:
        metrics: By name.

    Returns:
        None if they are of no log, `nothing` if it never ran short of room.
    """
    if any(metrics.get(name) is None for name in _MECHANISMS.values()):
        return None
    counts = {mechanism: int(metrics[name]) for mechanism, name in _MECHANISMS.items()}
    whole = sum(counts.values())
    shares = {name: 100.0 * count / whole for name, count in counts.items() if count}
    # One segment of thousands is not none.
    texts = [
        f"{name} {'under 1' if share < 1 else f'{share:.0f}'} %" for name, share in shares.items()
    ]
    return ", ".join(texts) or "nothing"


def of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics by name in a row of a table of runs, whose columns are `metrics.NAME`."""
    prefix = "metrics."
    return {
        name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)
    }


def with_mechanisms(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics as tables for people show them: with `mechanisms` where they are of a log."""
    text = mechanisms(metrics)
    return dict(metrics) if text is None else {"mechanisms": text, **metrics}


_BETTER_ELSEWHERE: Mapping[str, Better] = {
    "mean_file_score": "higher",
    "split_share": "lower",
    "fragments_per_file": "lower",
    "mean_gap_bytes": "lower",
    "name_adjacency": "higher",
    "creation_adjacency": "higher",
    "readdir_adjacency": "higher",
    "free_space_score": "higher",
    "mean_free_extent_bytes": "higher",
    "walk_seconds": "lower",
    "mb_per_s": "higher",
    "ratio": "lower",
    "above_best_pct": "lower",
    "damaged_blocks": "lower",
}
"""Which direction is an improvement of what other commands measure than runs."""

_BETTER_BY_BEGINNING: Mapping[str, Better] = {
    "demerit_": "lower",
    "paired_rms_": "lower",
    "within_5_pct": "higher",
}
"""The same of errors of a device model, each of several clocks and parts of a trace."""


def describe(name: str) -> Metric:
    """The metric of a name; one that is not in the list is shown under its own name."""
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    better = _BETTER_ELSEWHERE.get(name)
    for beginning, direction in _BETTER_BY_BEGINNING.items():
        if name.startswith(beginning):
            better = direction
    return Metric(name, name.replace("_", " "), better=better or "neither", digits=3)


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
