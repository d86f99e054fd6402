"""Figures 3 to 8 and table 4 of the disk-shuffling report: before and after.

Each figure computes values by key, which `expected.toml` holds against the report, and plots.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from agewell.experiments.configuration import read_toml
from agewell.files import catalogue
from agewell.studies.cases import result
from agewell.studies.context import Context
from agewell.studies.ruemmler_wilkes_1991.recorded import recorded
from agewell.studies.ruemmler_wilkes_1991.workloads import (
    DAY_HOURS,
    Series,
    Workload,
    Workloads,
    cumulative_pct,
    hplajw,
    run,
    seek_counts,
    series,
    share_up_to_pct,
    weighted_by_hour_pct,
)
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

SHORT_SEEK_CYLINDERS = 50
"""Seeks that the report calls short (§5.1)."""

_AFTER_MONDAY = "3 days"
_AFTER_MONDAY_DAY = 3
"""The trace begins on a Saturday with 398 requests; the report's traces E and C began on a Monday
and a Friday, so their first day was a working day. Ours ends with day 2."""

_SEEK_TIME_DISTANCES = (150, 20)
"""The reduction whose worth the report works out for two disks (§5.1)."""


def section_5_1(context: Context) -> FigureResult:
    """What a seek of 150 cylinders costs against one of 20, from the catalogue's seek curves."""
    values: dict[str, float | None] = {}
    for key, model in (("7935h", "hp-7935h"), ("97560", "hp-97560")):
        far, near = (_seek_ms(model, distance) for distance in _SEEK_TIME_DISTANCES)
        values[f"{key}/far_ms"] = far
        values[f"{key}/near_ms"] = near
        values[f"{key}/reduction_pct"] = 100 * (1 - near / far)
    return result(context, "section-5-1", values, [])


def _seek_ms(model: str, distance: int) -> float:
    seek = read_toml(catalogue.directory() / f"{model}.toml")["seek"]
    constant, factor = seek["root_ms"]
    if distance >= seek["boundary_cylinders"]:
        constant, factor = seek["line_ms"]
        return float(constant + factor * distance)
    return float(constant + factor * distance**0.5)


def figure_03(context: Context) -> FigureResult:
    """The week as it lies."""
    workloads = hplajw(context, "7935h", "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        found = run(context, "figure-03", workload)
        metrics, by_hour = found["metrics"], series(found)
        counts = _all_days(seek_counts(found))
        key = workload.key
        values[f"{key}/requests_per_hour"] = metrics["requests"] / (by_hour.start_hours[-1] + 1)
        values[f"{key}/service_ms"] = metrics["mean_service_ms"]
        values[f"{key}/seek_cylinders"] = metrics["mean_seek_cylinders"]
        values[f"{key}/zero_seek_pct"] = 100 * metrics["zero_seek_fraction"]
        values[f"{key}/short_seek_pct"] = share_up_to_pct(counts, SHORT_SEEK_CYLINDERS)
        if key == "c2200a":
            plots += [
                _rate_plot("figure-03a", workload, by_hour),
                _hours_plot("figure-03b", workload, by_hour, "service"),
                _hours_plot("figure-03c", workload, by_hour, "seek"),
                _distances_plot("figure-03d", workload, {"the whole week": counts}),
            ]
    return result(context, "figure-03", values, plots, workloads.missing)


def figure_04(context: Context) -> FigureResult:
    """One cylinder shuffle, on three disks: after a day, and after the first working day."""
    workloads = hplajw(context, "7935h", "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        key = workload.key
        counted = {"run.after_first_rearrangement": True}
        _before_and_after(values, f"{key}/", run(context, "figure-04", workload, counted))
        monday = {**counted, "remap.first_after": _AFTER_MONDAY}
        _before_and_after(values, f"{key}/monday_", run(context, "figure-04", workload, monday))
        if key != "7935h":
            continue
        found = run(context, "figure-04", workload, {"remap.first_after": _AFTER_MONDAY})
        unaligned = run(context, "figure-04", workload, {**monday, "remap.offset": "0 B"})
        values[f"{key}/unaligned_split_pct"] = _split_pct(unaligned)
        by_hour, by_day = series(found), seek_counts(found)
        first_day, last_day = _AFTER_MONDAY_DAY, max(by_day)
        values[f"{key}/near_first_day_pct"] = share_up_to_pct(
            by_day[first_day], SHORT_SEEK_CYLINDERS
        )
        values[f"{key}/near_last_day_pct"] = share_up_to_pct(by_day[last_day], SHORT_SEEK_CYLINDERS)
        before = _all_days(seek_counts(found, "baseline"))
        days = {f"shuffled, day {day}": by_day[day] for day in range(first_day, last_day + 1)}
        from_hour = _AFTER_MONDAY_DAY * DAY_HOURS
        plots += [
            _hours_plot("figure-04a", workload, by_hour, "service"),
            _hours_plot("figure-04b", workload, by_hour, "seek"),
            _distances_plot("figure-04c", workload, {"unshuffled": before, **days}),
            _improvement_plot("figure-04d", workload, by_hour, from_hour),
        ]
    return result(context, "figure-04", values, plots, workloads.missing)


def figure_05(context: Context) -> FigureResult:
    """A machine other than trace E's: many small files."""
    return _other_machines(context, "figure-05", recorded(context, "mail"))


def figure_06(context: Context) -> FigureResult:
    """Two more: a database and a build."""
    return _other_machines(context, "figure-06", recorded(context, "pgbench", "build"))


def _other_machines(context: Context, figure: str, workloads: Workloads) -> FigureResult:
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        found = run(context, figure, workload)
        _before_and_after(values, f"{workload.key}/", found)
        by_hour = series(found)
        plots += [
            _rate_plot(f"{figure}-{workload.key}-rate", workload, by_hour),
            _hours_plot(f"{figure}-{workload.key}-time", workload, by_hour, "service"),
            _hours_plot(f"{figure}-{workload.key}-seek", workload, by_hour, "seek"),
        ]
    return result(context, figure, values, plots, workloads.missing)


def figure_07(context: Context) -> FigureResult:
    """Trace E, shuffled daily and once, on its own disk and on the fast one."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        counted = {"run.after_first_rearrangement": True}
        daily = run(context, "figure-07", workload, counted)
        once = run(context, "figure-07", workload, {**counted, "remap.interval": "once"})
        _before_and_after(values, f"{workload.key}/", daily)
        _before_and_after(values, f"{workload.key}/once_", once)
        if workload.key == "c2200a":
            by_hour = series(run(context, "figure-07", workload))
            plots += [
                _rate_plot("figure-07a", workload, by_hour),
                _hours_plot("figure-07bc", workload, by_hour, "service"),
                _hours_plot("figure-07de", workload, by_hour, "seek"),
                _improvement_plot("figure-07f", workload, by_hour, DAY_HOURS),
            ]
    return result(context, "figure-07", values, plots, workloads.missing)


def table_04(context: Context) -> FigureResult:
    """Leaving out the hours of the nightly back-up."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        key = workload.key
        _before_and_after(values, f"{key}/with_", run(context, "table-04", workload))
        window = {"run.exclude_daily": ["03:00..06:00"]}
        without = run(context, "table-04", workload, window)
        _before_and_after(values, f"{key}/without_", without)
        all_requests = values[f"{key}/with_requests"] or 0
        left = values[f"{key}/without_requests"] or 0
        values[f"{key}/window_requests_pct"] = 100 * (1 - left / all_requests)
        if key == "c2200a":
            plots.append(_table_04_plot(context.expected("table-04"), values))
    return result(context, "table-04", values, plots, workloads.missing)


def _table_04_plot(expected: Mapping[str, Any], values: Mapping[str, float | None]) -> Plot:
    printed = {row["key"]: row.get("paper") for row in expected["row"]}
    cases = [
        f"c2200a/{backups}_{state}_cylinders"
        for backups in ("with", "without")
        for state in ("unshuffled", "shuffled")
    ]
    places = list(range(len(cases)))
    return Plot(
        name="table-04",
        title="Seek distance with and without the back-up periods, trace E",
        x_label="",
        y_label="mean seek distance, cylinders",
        curves=[
            Curve(
                "report (1991)",
                places,
                [float(printed[case] or 0) for case in cases],
                style="bars",
                emphasis=False,
            ),
            Curve("ours (1992)", places, [values[case] or 0 for case in cases], style="bars"),
        ],
        categories=(
            "included,\nunshuffled",
            "included,\nshuffled",
            "excluded,\nunshuffled",
            "excluded,\nshuffled",
        ),
        caption="Whole cylinders on the HP C2200A; back-ups ran from 0300 to 0600.",
    )


def figure_08(context: Context) -> FigureResult:
    """Day by day after a single shuffle, after a day and after the first working day."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        key = workload.key
        _drift(values, f"{key}/", run(context, "figure-08", workload), 1)
        monday = run(context, "figure-08", workload, {"remap.first_after": _AFTER_MONDAY})
        _drift(values, f"{key}/monday_", monday, _AFTER_MONDAY_DAY)
        if key == "c2200a":
            plots.append(_drift_plot(workload, monday))
    return result(context, "figure-08", values, plots, workloads.missing)


def _drift(
    values: dict[str, float | None], prefix: str, found: Mapping[str, Any], first_day: int
) -> None:
    """Mean seek distance of each day from `first_day` on, shuffled over unshuffled."""
    before, after = _means_by_day(found, "baseline"), _means_by_day(found, "run")
    ratios = [after[day] / before[day] for day in sorted(after) if day >= first_day]
    values[f"{prefix}days_better"] = float(sum(ratio < 1 for ratio in ratios))
    values[f"{prefix}first_day_ratio"] = ratios[0]
    values[f"{prefix}last_day_ratio"] = ratios[-1]
    values[f"{prefix}mean_ratio"] = sum(ratios) / len(ratios)


def _means_by_day(found: Mapping[str, Any], lane: str) -> dict[int, float]:
    return {day: _mean(counts) for day, counts in seek_counts(found, lane).items()}


def _before_and_after(
    values: dict[str, float | None], prefix: str, found: Mapping[str, Any]
) -> None:
    """The numbers of table 4, from the first rearrangement on."""
    metrics, baseline = found["metrics"], found["baseline_metrics"]
    values[f"{prefix}requests"] = metrics["requests"]
    values[f"{prefix}unshuffled_cylinders"] = baseline["mean_seek_cylinders"]
    values[f"{prefix}shuffled_cylinders"] = metrics["mean_seek_cylinders"]
    values[f"{prefix}unshuffled_ms"] = baseline["mean_service_ms"]
    values[f"{prefix}shuffled_ms"] = metrics["mean_service_ms"]
    values[f"{prefix}zero_seek_pct"] = 100 * (baseline["zero_seek_fraction"] or 0)
    values[f"{prefix}improvement_pct"] = metrics["weighted_improvement_pct"]
    values[f"{prefix}split_pct"] = _split_pct(found)
    values[f"{prefix}moved_pct"] = 100 * metrics["moved_fraction"]


def _split_pct(found: Mapping[str, Any]) -> float:
    metrics = found["metrics"]
    return 100 * float(metrics["split_requests"]) / float(metrics["requests"])


def _all_days(by_day: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for counts in by_day.values():
        for distance, count in counts.items():
            total[distance] = total.get(distance, 0) + count
    return total


def _mean(counts: Mapping[int, int]) -> float:
    total = sum(counts.values())
    return sum(distance * count for distance, count in counts.items()) / total


def _rate_plot(name: str, workload: Workload, by_hour: Series) -> Plot:
    return Plot(
        name=name,
        title=f"I/O rate, {workload.title}",
        x_label=f"time from the start of the trace, {workload.time_unit}",
        y_label=f"requests per {workload.period}",
        curves=[Curve("", *_gapped(workload, by_hour, by_hour.requests), style="steps")],
        caption="Requests by the period of their arrival.",
    )


def _hours_plot(name: str, workload: Workload, by_hour: Series, what: str) -> Plot:
    service = what == "service"
    ours = by_hour.service_ms if service else by_hour.seek_cylinders
    theirs = by_hour.baseline_service_ms if service else by_hour.baseline_seek_cylinders
    curves = []
    if theirs:
        before = Curve(
            "unshuffled", *_gapped(workload, by_hour, theirs), style="steps", emphasis=False
        )
        curves.append(before)
    label = "shuffled" if theirs else ""
    curves.append(Curve(label, *_gapped(workload, by_hour, ours), style="steps"))
    return Plot(
        name=name,
        title=f"{'Physical I/O time' if service else 'Seek distance'}, {workload.title}",
        x_label=f"time from the start of the trace, {workload.time_unit}",
        y_label="mean physical I/O time, ms" if service else "mean seek distance, cylinders",
        curves=curves,
        caption="Means over the requests that arrived in each period; gaps had none.",
    )


def _improvement_plot(name: str, workload: Workload, by_hour: Series, from_hour: float) -> Plot:
    weighted = weighted_by_hour_pct(by_hour, from_hour)
    return Plot(
        name=name,
        title=f"Weighted improvement, {workload.title}",
        x_label=f"time from the start of the trace, {workload.time_unit}",
        y_label="weighted improvement, %",
        curves=[Curve("", *_gapped(workload, by_hour, weighted), style="steps")],
        caption=(
            "Improvement of each hour's mean physical I/O time, times the hour's rate over the "
            "mean rate; zero before the first rearrangement."
        ),
    )


def _distances_plot(name: str, workload: Workload, counts: Mapping[str, Mapping[int, int]]) -> Plot:
    curves = []
    for label, of in counts.items():
        distances, shares = cumulative_pct(of)
        curves.append(
            Curve(
                label if len(counts) > 1 else "",
                distances,
                shares,
                style="steps",
                emphasis=label != "unshuffled",
            )
        )
    return Plot(
        name=name,
        title=f"Distribution of seek distances, {workload.title}",
        x_label="seek distance, cylinders",
        y_label="share of seeks up to this distance, %",
        curves=curves,
        caption="The height at zero is the share of requests that needed no seek.",
    )


def _drift_plot(workload: Workload, found: Mapping[str, Any]) -> Plot:
    before, after = _means_by_day(found, "baseline"), _means_by_day(found, "run")
    days = sorted(after)
    edges = [float(day * DAY_HOURS) for day in [*days, days[-1] + 1]]
    unshuffled = [before[day] for day in days]
    shuffled = [after[day] for day in days]
    by_hour = series(found)
    return Plot(
        name="figure-08",
        title=f"A single shuffle after hour 72, {workload.title}",
        x_label=f"time from the start of the trace, {workload.time_unit}",
        y_label="mean seek distance, cylinders",
        curves=[
            Curve(
                "unshuffled, by day",
                edges,
                [*unshuffled, unshuffled[-1]],
                style="steps",
                emphasis=False,
            ),
            Curve("shuffled once, by day", edges, [*shuffled, shuffled[-1]], style="steps"),
            Curve(
                "shuffled once, by hour",
                [start + 0.5 for start in by_hour.start_hours],
                by_hour.seek_cylinders,
                style="points",
            ),
        ],
        caption="Nothing is moved after hour 72; the layout ages with the workload.",
    )


def _gapped(
    workload: Workload, by_hour: Series, heights: list[float] | list[int]
) -> tuple[list[float], list[float]]:
    """Steps that fall to a gap where a period had no requests."""
    starts = [start * workload.units_an_hour for start in by_hour.start_hours]
    if not starts:
        return [], []
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    width = min(gaps, default=1.0)
    xs: list[float] = []
    ys: list[float] = []
    for place, (start, height) in enumerate(zip(starts, heights, strict=True)):
        xs.append(start)
        ys.append(float(height))
        follows = place + 1 < len(starts)
        if not follows or starts[place + 1] > start + 1.5 * width:
            xs.append(start + width)
            ys.append(float("nan"))
    return xs, ys
