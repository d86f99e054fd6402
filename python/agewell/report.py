"""A report on runs: what was simulated, how it came out, and where the figures come from.

One HTML file that needs no network, and every plot as PNG and SVG in the folder `plots` beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agewell.metrics import change_pct, describe, in_order, show, show_change
from agewell.page import Cell, Highlight, Page, PageTable, Section
from agewell.page import write as write_page
from agewell.plot import Curve, Plot
from agewell.simulation import Result

_HOUR_NS = 3_600_000_000_000
_MINUTE_NS = 60_000_000_000
_SECOND_NS = 1_000_000_000
_NS_PER_MS = 1e6

_HIGHLIGHTS = ("mean_service_ms", "mean_response_ms", "mean_seek_cylinders", "zero_seek_fraction")
_PARTS = ("mean_seek_ms", "mean_rotation_ms", "mean_transfer_ms", "mean_overhead_ms")
_PART_LABELS = ("seek", "rotation", "transfer", "overhead")

BASELINE_LABEL = "as it lies"
RUN_LABEL = "rearranged"

FloatArray = npt.NDArray[np.float64]


def write_report(runs: Sequence[Path], path: Path, title: str | None = None) -> list[Path]:
    """Write a report on runs that lie in folders.

    Args:
        runs: Folders that `agewell run --out` left.
        path: The HTML file.
        title: Heading of the page; made from the runs by default.

    Returns:
        The files written, the page first.

    Raises:
        InputError: A folder holds no result, or a damaged one.
        RunError: A file cannot be written.
    """
    results = [Result.read(run) for run in runs]
    return write_page(page_of(results, _names(runs), title), path)


def page_of(results: Sequence[Result], names: Sequence[str], title: str | None = None) -> Page:
    """The report on results as a value.

    Args:
        results: One or more runs.
        names: What each is called on the page, all different.
        title: Heading of the page; made from the runs by default.
    """
    sections = []
    if len(results) > 1:
        sections.append(_overview(results, names))
    for result, name in zip(results, names, strict=True):
        sections.append(_run_section(result, name, alone=len(results) == 1))
    heading = title or (
        f"{_workload(results[0])} on {_device(results[0])}"
        if len(results) == 1
        else f"{len(results)} runs compared"
    )
    return Page(
        title=heading,
        subtitle="; ".join(dict.fromkeys(_subtitle(result) for result in results)),
        sections=sections,
        facts=[
            fact
            for result, name in zip(results, names, strict=True)
            for fact in _facts(result, name if len(results) > 1 else "")
        ],
    )


def _names(runs: Sequence[Path]) -> list[str]:
    """A name for each run, made of as many trailing parts of its path as tell them apart."""
    paths = [run.parent if run.name == "result.json" else run for run in runs]
    parts = [path.resolve().parts for path in paths]
    for depth in range(1, max(len(each) for each in parts) + 1):
        names = ["/".join(each[-depth:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    # The same folder stands there twice.
    return [f"{path.name} ({place})" for place, path in enumerate(paths, start=1)]


# --- sections -------------------------------------------------------------------------------------


def _run_section(result: Result, name: str, *, alone: bool) -> Section:
    identifier = "run" if alone else f"run-{_identifier(name)}"
    prefix = "" if alone else f"{_identifier(name)}-"
    return Section(
        identifier=identifier,
        title="Result" if alone else name,
        paragraphs=[_sentence(result), *(f"Warning: {each}." for each in _warnings(result))],
        highlights=_highlights(result),
        tables=[_metrics_table(result)],
        plots=_plots(result, prefix),
        listing=("Configuration, every default filled in", _as_toml(result.config)),
    )


def _overview(results: Sequence[Result], names: Sequence[str]) -> Section:
    """One column a run, and the distributions of all of them in one picture each."""
    metrics = [result.metrics for result in results]
    rows = []
    for name in in_order({key: None for each in metrics for key in each}):
        metric = describe(name)
        label = metric.label + (f", {metric.unit}" if metric.unit else "")
        rows.append([Cell(label), *(_overview_cell(name, each, metrics[0]) for each in metrics)])
    plots = [
        Plot(
            name="overview-seek-cdf",
            title="Seek distances",
            x_label="seek distance (cylinders)",
            y_label="share of disk I/Os (%)",
            curves=[
                Curve(name, *_distribution(result, "run", "seek_cylinders", 1.0), style="steps")
                for result, name in zip(results, names, strict=True)
            ],
            caption="Share of disk I/Os that move the arm at most so far.",
        ),
        _time_distribution_plot(
            "overview-response-cdf",
            "Response times",
            "response_ns",
            [(result, "run", name, True) for result, name in zip(results, names, strict=True)],
        ),
    ]
    return Section(
        identifier="overview",
        title="Overview",
        tables=[
            PageTable(
                ("metric", *names),
                rows,
                frozenset(range(1, len(names) + 1)),
                f"Changes are against {names[0]}.",
            )
        ],
        plots=[plot for plot in plots if any(curve.x for curve in plot.curves)],
    )


def _overview_cell(name: str, metrics: dict[str, Any], first: dict[str, Any]) -> Cell:
    if name not in metrics:
        return Cell("")
    change = "" if metrics is first else show_change(name, first.get(name), metrics[name])
    return Cell(show(name, metrics[name]), note=change)


def _highlights(result: Result) -> list[Highlight]:
    baseline = result.baseline
    shown = []
    for name in _HIGHLIGHTS:
        metric = describe(name)
        value = result.metrics.get(name)
        if value is None:
            continue
        text = f"{show(name, value)} {metric.unit}"
        if baseline is None or name not in baseline:
            shown.append(Highlight(text, metric.label))
            continue
        detail = f"{show(name, baseline[name])} to {text}"
        change = change_pct(name, baseline[name], value)
        if change is None:
            shown.append(Highlight(text, metric.label, detail))
        else:
            shown.append(Highlight(f"{change:+.1f} %", metric.label, detail, _tone(name, change)))
    return shown


def _metrics_table(result: Result) -> PageTable:
    metrics, baseline = result.metrics, result.baseline
    names = in_order(metrics)
    if baseline is None:
        rows = [
            [Cell(describe(name).label), Cell(show(name, metrics[name])), Cell(describe(name).unit)]
            for name in names
        ]
        return PageTable(("metric", "value", "unit"), rows, frozenset({1}))
    rows = []
    for name in names:
        change = change_pct(name, baseline.get(name), metrics[name])
        rows.append(
            [
                Cell(describe(name).label),
                Cell(show(name, baseline[name]) if name in baseline else ""),
                Cell(show(name, metrics[name])),
                Cell(
                    show_change(name, baseline.get(name), metrics[name]),
                    tone="" if change is None else _tone(name, change),
                ),
                Cell(describe(name).unit),
            ]
        )
    columns = ("metric", BASELINE_LABEL, RUN_LABEL, "change", "unit")
    return PageTable(columns, rows, frozenset({1, 2, 3}))


def _tone(name: str, change: float) -> str:
    better = describe(name).better
    # A change below a twentieth of a per cent is written as 0.0 and is neither good nor bad.
    if better == "neither" or abs(change) < 0.05:  # noqa: PLR2004
        return ""
    return "good" if (change < 0) == (better == "lower") else "bad"


# --- plots ----------------------------------------------------------------------------------------


def _plots(result: Result, prefix: str) -> list[Plot]:
    has_baseline = result.baseline is not None
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
        _seek_plot(result, prefix),
        _time_distribution_plot(
            f"{prefix}response-cdf", "Response times", "response_ns", _lanes(result)
        ),
    ]
    if has_baseline:
        plots.append(_before_after_plot(result, prefix))
    plots.append(_parts_plot(result, prefix))
    return [plot for plot in plots if any(len(curve.x) for curve in plot.curves)]


def _lanes(result: Result) -> list[tuple[Result, str, str, bool]]:
    """Result, lane, label and emphasis of every lane, the baseline first."""
    if result.baseline is None:
        return [(result, "run", "", True)]
    return [(result, "baseline", BASELINE_LABEL, False), (result, "run", RUN_LABEL, True)]


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
            Curve("reads", positions, (reads / seconds).tolist(), style="steps"),
            Curve("writes", positions, ((requests - reads) / seconds).tolist(), style="steps"),
        ],
        caption=f"Mean rate over intervals of {_duration(interval_ns)}.",
    )


def _series_plot(
    result: Result, name: str, title: str, column: str, y_label: str, caption: str
) -> Plot:
    positions, unit, _, _ = _time_axis(result)
    curves = [
        Curve(
            label,
            positions,
            _filled(
                result, f"baseline_{column}" if lane == "baseline" else column, math.nan
            ).tolist(),
            style="steps",
            emphasis=emphasis,
        )
        for _, lane, label, emphasis in _lanes(result)
    ]
    return Plot(
        name=name,
        title=title,
        x_label=f"time since the start of the trace ({unit})",
        y_label=y_label,
        curves=curves,
        caption=caption,
    )


def _seek_plot(result: Result, prefix: str) -> Plot:
    return Plot(
        name=f"{prefix}seek-cdf",
        title="Seek distances, cumulative",
        x_label="seek distance (cylinders)",
        y_label="share of disk I/Os (%)",
        curves=[
            Curve(
                label,
                *_distribution(result, lane, "seek_cylinders", 1.0),
                style="steps",
                emphasis=emphasis,
            )
            for _, lane, label, emphasis in _lanes(result)
        ],
        caption="Share of disk I/Os that move the arm at most so far.",
    )


def _time_distribution_plot(
    name: str, title: str, quantity: str, lanes: Sequence[tuple[Result, str, str, bool]]
) -> Plot:
    return Plot(
        name=name,
        title=f"{title}, cumulative",
        x_label="response time (ms)",
        y_label="share of requests (%)",
        curves=[
            Curve(
                label,
                *_distribution(result, lane, quantity, 1 / _NS_PER_MS),
                style="steps",
                emphasis=emphasis,
            )
            for result, lane, label, emphasis in lanes
        ],
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
    for _, lane, label, emphasis in _lanes(result):
        metrics = result.metrics if lane == "run" else (result.baseline or {})
        values = [metrics.get(name) for name in _PARTS]
        curves.append(
            Curve(
                label,
                list(range(len(_PARTS))),
                [math.nan if value is None else float(value) for value in values],
                style="bars",
                emphasis=emphasis,
            )
        )
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
    """Positions of all intervals from the first to the last, their unit, length and indices."""
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
    positions: list[float] = (everything * (interval_ns / unit_ns)).tolist()
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


def _filled(result: Result, column: str, absent: float) -> FloatArray:
    """A column over every interval; those without requests, which have no row, hold `absent`."""
    _, _, _, everything = _time_axis(result)
    filled = np.full(len(everything), absent)
    if len(everything):
        indices = result.series["interval"].to_numpy().astype(np.int64)
        values = result.series[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
        filled[indices - everything[0]] = np.where(np.isnan(values), absent, values)
    return filled


def _distribution(
    result: Result, lane: str, quantity: str, scale: float
) -> tuple[list[float], list[float]]:
    """Upper edges times `scale`, and the share of values up to each in per cent."""
    table = result.histograms
    rows = table.filter(
        pc.and_(pc.equal(table["lane"], lane), pc.equal(table["quantity"], quantity))
    )
    if rows.num_rows == 0:
        return [], []
    counts = rows.group_by("upper").aggregate([("count", "sum")]).sort_by("upper")
    upper = counts["upper"].to_numpy().astype(np.float64)
    cumulated = np.cumsum(counts["count_sum"].to_numpy())
    return (upper * scale).tolist(), (100.0 * cumulated / cumulated[-1]).tolist()


# --- words ----------------------------------------------------------------------------------------


def _workload(result: Result) -> str:
    workload = result.config["workload"]
    if workload["kind"] == "trace":
        name = Path(workload["path"]).name
        return name.split(".")[0] if name != "-" else "standard input"
    return f"{workload['kind']} load"


def _device(result: Result) -> str:
    device = result.config["device"]
    return Path(str(device["model"])).stem if "model" in device else f"a {device['kind']} disk"


def _subtitle(result: Result) -> str:
    config = result.config
    remap = config["remap"]["kind"]
    words = [f"queue {config['queue']['discipline']}"]
    words.append("no rearrangement" if remap == "none" else f"rearrangement: {remap}")
    return ", ".join(words)


def _sentence(result: Result) -> str:
    disks = result.document.get("disks", 1)
    where = _device(result) if disks == 1 else f"{disks} disks of type {_device(result)}"
    text = (
        f"{show('requests', result.metrics['requests'])} requests of {_workload(result)} on {where}"
    )
    if result.baseline is None:
        return f"{text}."
    return (
        f"{text}, twice: every sector where the host put it ({BASELINE_LABEL}), and with "
        f"{result.config['remap']['kind']} ({RUN_LABEL})."
    )


def _warnings(result: Result) -> list[str]:
    warnings: list[str] = result.document.get("warnings", [])
    return warnings


def _facts(result: Result, name: str) -> list[tuple[str, str]]:
    document = result.document
    before = f"{name}: " if name else ""
    facts = [
        (f"{before}agewell", str(document["agewell_version"])),
        (f"{before}seed", str(document["seed"])),
        (f"{before}result schema", str(document["schema_version"])),
    ]
    facts += [
        (f"{before}input {entry['name']}", f"sha256 {entry['sha256']}")
        for entry in document["inputs"]
    ]
    return facts


def _duration(nanoseconds: int) -> str:
    for unit_ns, unit in ((_HOUR_NS, "h"), (_MINUTE_NS, "min"), (_SECOND_NS, "s")):
        if nanoseconds % unit_ns == 0:
            return f"{nanoseconds // unit_ns} {unit}"
    return f"{nanoseconds / _NS_PER_MS:g} ms"


def _identifier(name: str) -> str:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    return kept.strip("-").lower() or "run"


def _as_toml(config: dict[str, Any]) -> str:
    """The configuration as the TOML that would be typed; nested tables in one line each."""
    lines: list[str] = []
    for table, entries in config.items():
        lines.append(f"[{table}]")
        lines += [f"{key} = {_toml_value(value)}" for key, value in entries.items()]
        lines.append("")
    return "\n".join(lines).rstrip()


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{key} = {_toml_value(each)}" for key, each in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(each) for each in value) + "]"
    # Strings, numbers and truth values are written alike in JSON and TOML.
    return json.dumps(value, ensure_ascii=False)
