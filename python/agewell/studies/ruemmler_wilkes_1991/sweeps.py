"""Figures 9 to 14 of the disk-shuffling report, and what it lacks: one parameter at a time.

Improvements are the report's weighted ones (§5.1), each over the hours after its own first
rearrangement unless a label says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agewell.studies.cases import result
from agewell.studies.context import Context
from agewell.studies.ruemmler_wilkes_1991.recorded import recorded
from agewell.studies.ruemmler_wilkes_1991.workloads import (
    DAY_HOURS,
    Workload,
    Workloads,
    hplajw,
    run,
    series,
    weighted_improvement_pct,
)
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

QUANTA = ("block", "track", "half-cylinder", "cylinder")
INTERVALS = ("1 h", "4 h", "8 h", "1 day", "4 days")
"""Those of §5.2 that end within the trace: it is a day's fraction short of the seventh day."""
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
COVERAGES_PCT = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)

_LINK_BYTES_PER_QUANTUM = 10
"""Two pointers of four bytes and two counts of one (figure 13); as in crates/shuffle."""
_FROM_LAST_FIRST_HOUR = 4 * DAY_HOURS
"""From here on every interval of figure 9 has rearranged at least once."""


def figure_09(context: Context) -> FigureResult:
    """Intervals from an hour to four days."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    curves: list[Curve] = []
    for workload in workloads.present:
        own: list[float] = []
        same: list[float] = []
        for interval in INTERVALS:
            found = run(context, "figure-09", workload, {"remap.interval": interval})
            name = interval.replace(" ", "_")
            improvement = _improvement(found)
            common = weighted_improvement_pct(series(found), _FROM_LAST_FIRST_HOUR)
            values[f"{workload.key}/improvement_{name}_pct"] = improvement
            values[f"{workload.key}/same_hours_{name}_pct"] = common
            own.append(_number(improvement))
            same.append(_number(common))
        places = list(range(len(INTERVALS)))
        disk = workload.short.removeprefix("hplajw, ")
        curves.append(Curve(disk, places, own))
        curves.append(Curve(f"{disk}, same hours", places, same))
        values[f"{workload.key}/improvement_7_days_pct"] = None
    plot = Plot(
        name="figure-09",
        title="Interval between rearrangements, whole cylinders, hplajw",
        x_label="interval",
        y_label="weighted improvement, %",
        curves=curves,
        categories=INTERVALS,
        caption=("Each after its own first rearrangement. Same hours: from hour 96 on for all."),
    )
    plots = [plot] if curves else []
    return result(context, "figure-09", values, plots, workloads.missing)


def section_5_3(context: Context) -> FigureResult:
    """Weights of the last interval from 0.2 to 1.0."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    curves: list[Curve] = []
    for workload in workloads.present:
        times = []
        for alpha in ALPHAS:
            found = run(context, "section-5-3", workload, {"remap.alpha": alpha})
            times.append(_number(found["metrics"]["mean_service_ms"]))
        spread = 100 * (max(times) - min(times)) / min(times)
        values[f"{workload.key}/spread_pct"] = spread
        values[f"{workload.key}/shuffled_ms"] = times[ALPHAS.index(0.8)]
        curves.append(Curve(workload.short, list(ALPHAS), times))
    plot = Plot(
        name="section-5-3",
        title="Weight of the most recent interval, whole cylinders daily",
        x_label="alpha",
        y_label="mean physical I/O time, ms",
        curves=curves,
        caption="alpha = 1 forgets everything before the last day.",
    )
    return result(context, "section-5-3", values, [plot] if curves else [], workloads.missing)


def figure_10(context: Context) -> FigureResult:
    """Four sizes of quantum."""
    workloads = _all_workloads(context)
    values: dict[str, float | None] = {}
    curves: list[Curve] = []
    for workload in workloads.present:
        heights = []
        for quantum in QUANTA:
            found = run(context, "figure-10", workload, {"remap.quantum": quantum})
            improvement = _improvement(found)
            values[f"{workload.key}/improvement_{quantum}_pct"] = improvement
            heights.append(_number(improvement))
        curves.append(Curve(workload.short, list(range(len(QUANTA))), heights, style="bars"))
    plots = [_quanta_plot("figure-10", "Size of the shuffling quantum", curves)] if curves else []
    return result(context, "figure-10", values, plots, workloads.missing)


def figure_11(context: Context) -> FigureResult:
    """Every quantum at every interval, trace E."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        grid: dict[tuple[str, str], float] = {}
        for quantum in QUANTA:
            for interval in INTERVALS:
                settings = {"remap.quantum": quantum, "remap.interval": interval}
                found = run(context, "figure-11", workload, settings)
                common = weighted_improvement_pct(series(found), _FROM_LAST_FIRST_HOUR)
                grid[quantum, interval] = _number(common)
        best_quantum, best_interval = max(grid, key=grid.__getitem__)
        values[f"{workload.key}/best_pct"] = grid[best_quantum, best_interval]
        values[f"{workload.key}/best_quantum"] = float(QUANTA.index(best_quantum))
        values[f"{workload.key}/best_interval"] = float(INTERVALS.index(best_interval))
        values[f"{workload.key}/block_longest_pct"] = grid["block", INTERVALS[-1]]
        values[f"{workload.key}/cylinder_1_h_pct"] = grid["cylinder", INTERVALS[0]]
        curves = [
            Curve(
                quantum,
                list(range(len(INTERVALS))),
                [grid[quantum, interval] for interval in INTERVALS],
            )
            for quantum in QUANTA
        ]
        plots.append(
            Plot(
                name=f"figure-11-{workload.key}",
                title=f"Quantum and interval, {workload.title}",
                x_label="interval",
                y_label="weighted improvement from hour 96 on, %",
                curves=curves,
                categories=INTERVALS,
                caption="All over the same hours, after every first rearrangement.",
            )
        )
    return result(context, "figure-11", values, plots, workloads.missing)


def figure_12(context: Context) -> FigureResult:
    """Only the quanta that cover a share of the accesses."""
    workloads = hplajw(context, "c2200a")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        gains: list[Curve] = []
        moves: list[Curve] = []
        for quantum in QUANTA:
            improvement: list[float] = []
            moved: list[float] = []
            for coverage in COVERAGES_PCT:
                settings = {"remap.quantum": quantum, "remap.coverage": f"{coverage} %"}
                found = run(context, "figure-12", workload, settings)
                improvement.append(_number(_improvement(found)))
                moved.append(100 * _number(found["metrics"]["moved_fraction"]))
                values[f"{workload.key}/{quantum}_improvement_{coverage}_pct"] = improvement[-1]
                values[f"{workload.key}/{quantum}_moved_{coverage}_pct"] = moved[-1]
            key = f"{workload.key}/{quantum}"
            values[f"{key}_moved_share_90_of_all_pct"] = (
                100 * moved[COVERAGES_PCT.index(90)] / moved[-1]
            )
            values[f"{key}_gain_share_60_of_all_pct"] = (
                100 * improvement[COVERAGES_PCT.index(60)] / improvement[-1]
            )
            values[f"{key}_gain_share_90_of_all_pct"] = (
                100 * improvement[COVERAGES_PCT.index(90)] / improvement[-1]
            )
            gains.append(Curve(quantum, list(COVERAGES_PCT), improvement))
            moves.append(Curve(quantum, list(COVERAGES_PCT), moved))
        plots.append(
            _coverage_plot("figure-12a", "Gain", "weighted improvement, %", gains, workload)
        )
        plots.append(
            _coverage_plot(
                "figure-12b", "Data moved", "share of the disk moved a day, %", moves, workload
            )
        )
    return result(context, "figure-12", values, plots, workloads.missing)


def _coverage_plot(
    name: str, what: str, y_label: str, curves: list[Curve], workload: Workload
) -> Plot:
    return Plot(
        name=name,
        title=f"{what} by coverage, {workload.title}",
        x_label="share of the accesses that the arranged quanta cover, %",
        y_label=y_label,
        curves=curves,
        caption="Rearranged daily; 100 % arranges everything that was accessed.",
    )


def figure_13(context: Context) -> FigureResult:
    """The memory that links take on the report's fast disk."""
    sectors, cylinders = 2_684_016, 1962
    blocks = sectors // 16
    values: dict[str, float | None] = {
        "97560/link_bytes_block_mb": blocks * _LINK_BYTES_PER_QUANTUM / 1e6,
        "97560/link_bytes_cylinder_kb": cylinders * _LINK_BYTES_PER_QUANTUM / 1e3,
    }
    return result(context, "figure-13", values, [])


def figure_14(context: Context) -> FigureResult:
    """With links and without, by quantum."""
    workloads = _all_workloads(context)
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        bars: dict[bool, list[float]] = {False: [], True: []}
        for quantum in QUANTA:
            for links in (False, True):
                settings = {"remap.quantum": quantum, "remap.links": links}
                found = run(context, "figure-14", workload, settings)
                bars[links].append(_number(_improvement(found)))
            plain, linked = bars[False][-1], bars[True][-1]
            values[f"{workload.key}/plain_{quantum}_pct"] = plain
            values[f"{workload.key}/linked_{quantum}_pct"] = linked
            values[f"{workload.key}/gain_{quantum}_points"] = linked - plain
        places = list(range(len(QUANTA)))
        curves = [
            Curve("by count alone", places, bars[False], style="bars", emphasis=False),
            Curve("with link closures", places, bars[True], style="bars"),
        ]
        name = f"figure-14-{workload.key}"
        plots.append(_quanta_plot(name, f"Dependency tracking, {workload.title}", curves))
    return result(context, "figure-14", values, plots, workloads.missing)


def beyond_moves(context: Context) -> FigureResult:
    """Moves in no time, as in the report, and moves as disk requests in idle periods."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        bars: dict[str, list[float]] = {"instant": [], "idle": []}
        cases = [(q, i) for q in ("block", "cylinder") for i in ("1 h", "1 day")]
        for quantum, interval in cases:
            for moves in ("instant", "idle"):
                found = run(
                    context,
                    "beyond-moves",
                    workload,
                    {
                        "remap.quantum": quantum,
                        "remap.interval": interval,
                        "remap.moves": moves,
                    },
                )
                case = f"{workload.key}/{quantum}_{interval.replace(' ', '_')}_{moves}"
                _costs(values, case, found)
                bars[moves].append(_number(values[f"{case}_improvement_pct"]))
        places = list(range(len(cases)))
        plots.append(
            Plot(
                name=f"beyond-moves-{workload.key}",
                title=f"What the moves cost, {workload.title}",
                x_label="quantum and interval",
                y_label="weighted improvement, %",
                curves=[
                    Curve("moved in no time", places, bars["instant"], "bars", emphasis=False),
                    Curve("moved in idle periods", places, bars["idle"], "bars"),
                ],
                categories=[f"{quantum}, {interval}" for quantum, interval in cases],
                caption=(
                    "Moves in idle periods delay requests that arrive during one, and the layout "
                    "is only as good as the moves done so far."
                ),
            )
        )
    return result(context, "beyond-moves", values, plots, workloads.missing)


def _costs(values: dict[str, float | None], case: str, found: Mapping[str, Any]) -> None:
    metrics = found["metrics"]
    values[f"{case}_improvement_pct"] = _improvement(found)
    values[f"{case}_response_ms"] = metrics["mean_response_ms"]
    values[f"{case}_baseline_response_ms"] = found["baseline_metrics"]["mean_response_ms"]
    values[f"{case}_moved_mb"] = metrics["move_bytes"] / 1e6
    values[f"{case}_move_ios"] = metrics["move_ios"]
    values[f"{case}_move_seconds"] = metrics["move_disk_seconds"]
    values[f"{case}_disk_seconds"] = metrics["disk_seconds"]
    values[f"{case}_moves_left"] = metrics["moves_left"]


def beyond_baselines(context: Context) -> FigureResult:
    """Nothing, chance, counts alone, links, and a reserved region."""
    workloads = hplajw(context, "c2200a", "97560")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    for workload in workloads.present:
        # The hidden region needs room beside the workload, which only the larger disk has.
        full = workload.key == "c2200a"
        region = "reserved-exchange" if full else "reserved-copy"
        placements: dict[str, dict[str, Any]] = {
            "random": {"remap.kind": "random", "remap.interval": "once"},
            "counts": {"remap.kind": "shuffle"},
            "links": {"remap.kind": "shuffle", "remap.links": True},
            "reserved": {"remap.kind": region},
        }
        bars: dict[str, list[float]] = {"block": [0.0], "cylinder": [0.0]}
        for quantum, heights in bars.items():
            for name, settings in placements.items():
                all_settings = {"remap.quantum": quantum, **settings}
                found = run(context, "beyond-baselines", workload, all_settings)
                case = f"{workload.key}/{quantum}_{name}"
                metrics, unshuffled = found["metrics"], found["baseline_metrics"]
                values[f"{case}_improvement_pct"] = _improvement(found)
                values[f"{case}_cylinders"] = metrics["mean_seek_cylinders"]
                values[f"{case}_ms"] = metrics["mean_service_ms"]
                values[f"{case}_moved_pct"] = 100 * _number(metrics["moved_fraction"])
                values[f"{workload.key}/none_cylinders"] = unshuffled["mean_seek_cylinders"]
                values[f"{workload.key}/none_ms"] = unshuffled["mean_service_ms"]
                heights.append(_number(values[f"{case}_improvement_pct"]))
        places = list(range(1 + len(placements)))
        plots.append(
            Plot(
                name=f"beyond-baselines-{workload.key}",
                title=f"Ways to place hot data, {workload.title}",
                x_label="placement",
                y_label="weighted improvement, %",
                curves=[Curve(quantum, places, bars[quantum], "bars") for quantum in bars],
                categories=["nothing", "random", "by count", "with links", "reserved region"],
                caption="Rearranged daily, in no time; random once.",
            )
        )
    return result(context, "beyond-baselines", values, plots, workloads.missing)


def _all_workloads(context: Context) -> Workloads:
    ours = hplajw(context, "c2200a", "97560")
    other = recorded(context, "pgbench", "build", "mail")
    return Workloads([*ours.present, *other.present], {**ours.missing, **other.missing})


def _quanta_plot(name: str, title: str, curves: list[Curve]) -> Plot:
    return Plot(
        name=name,
        title=title,
        x_label="shuffling quantum",
        y_label="weighted improvement, %",
        curves=curves,
        categories=QUANTA,
        caption="Rearranged daily (the recorded traces: at every sixth of their length).",
    )


def _improvement(found: Mapping[str, Any]) -> float | None:
    improvement: float | None = found["metrics"]["weighted_improvement_pct"]
    return improvement


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
