"""Beyond Matthews 1999: a third mechanism, a choice that is never the wrong one, and placement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agewell.studies.cases import (
    Metrics,
    Settings,
    column,
    costs,
    key,
    line,
    reduction_pct,
    result,
    run_curves,
    utilizations,
)
from agewell.studies.context import Context, Label
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

SINGLE = ("clean", "plug", "thread")
"""The mechanisms that can be used alone."""
COLLECT = (*SINGLE, "matthews-1999", "adaptive")
UTILIZATIONS = utilizations(50, 70, 80, 85, 90, 95, 97, 99)

_TRACES = ("pgbench", "mail", "build")

ALPHAS = (0.0, 0.6, 1.0)
PLACEMENTS = ("none", "user-collected", "sepbit", "dac", "sfs", "fadac")
VICTIMS: Mapping[str, str] = {"greedy": "greedy", "root": "benefit-root-age"}
_OURS: Settings = {
    "layout.placement": "life-table",
    "layout.victim": "renewal",
    "layout.logs": 12,
}
_ORACLE: Settings = {"layout.placement": "oracle", "layout.logs": 256}


@dataclass(frozen=True, slots=True)
class Load:
    """A workload of the comparison.

    Attributes:
        key: Prefix of its values.
        title: Words for its plot.
        workload: The table `workload` of its experiment.
        host: The table `host`.
        device: The table `device`, if it is not the experiment's.
    """

    key: str
    title: str
    workload: Mapping[str, Any]
    host: Mapping[str, Any]
    device: Mapping[str, Any] | None = None


_SATURATED: Settings = {"sync_every": 4}
"""Host of loads without a clock: a sync after every fourth write (§5.2.1.1)."""
_TIMED: Settings = {"sync_every": 0, "flush_interval": "30 s"}
"""Host of loads with a clock of their own, and with syncs of their own if they have any."""


def _synthetic(key: str, title: str, kind: str, **workload: float) -> Load:
    table = {"kind": kind, "blocks": 80_000, "updates_per_block": 10, **workload}
    return Load(key, title, table, _SATURATED)


_RANDOM = _synthetic("random", "random update", "random-update")
_HOT = _synthetic("hot", "hot-and-cold, 90 % to 10 %", "hot-cold")
_AUSPEX = Load("auspex", "the Auspex-like load", {"kind": "auspex-like"}, _TIMED)
_NO_SHARED_SEEK: Settings = {"kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s"}
"""The disk of the paper's figures: every transfer pays the whole access time."""


def _without_shared_seeks(load: Load) -> Load:
    title = f"{load.title}, 15 ms a transfer"
    return replace(load, key=f"{load.key}_15ms", title=title, device=_NO_SHARED_SEEK)


_LOADS = (
    _RANDOM,
    _HOT,
    _synthetic("zipf", "Zipf, alpha 1.0", "zipf", alpha=1.0),
    _synthetic("sequential", "sequential", "sequential"),
    _AUSPEX,
    _without_shared_seeks(_RANDOM),
    _without_shared_seeks(_HOT),
    _without_shared_seeks(_AUSPEX),
)


def beyond_adaptive(context: Context) -> FigureResult:
    """Five ways to collect on every workload."""
    loads, missing = _loads(context)
    tables = context.tables("beyond-adaptive")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    curves: dict[str, Settings] = {name: {"layout.collect": name} for name in COLLECT}
    for load in loads:
        experiment = {**tables, "workload": dict(load.workload), "host": dict(load.host)}
        if load.device is not None:
            experiment["device"] = dict(load.device)
        found = run_curves(context, experiment, curves, "workload.utilization", UTILIZATIONS)
        values.update(costs(load.key, found))
        values.update(_against_the_best(load.key, found))
        plots.append(_collect_plot(load, found))
    return result(context, "beyond-adaptive", values, plots, missing)


def _loads(context: Context) -> tuple[list[Load], dict[str, str]]:
    """The workloads that can be run, and why the others cannot."""
    loads = list(_LOADS)
    missing: dict[str, str] = {}
    for name in _TRACES:
        path = context.examples / "traces" / f"{name}.parquet"
        if path.is_file():
            table = {"kind": "trace", "path": str(path.resolve())}
            loads.append(Load(name, f"recorded: {name}", table, _TIMED))
        else:
            missing[name] = f"{path} is missing; examples/record makes it"
    return loads, missing


def _against_the_best(workload: str, found: Mapping[Label, Metrics]) -> dict[str, float]:
    """The adaptive choices over the best single mechanism, and the gain over the paper's two."""
    values: dict[str, float] = {}
    points, _ = column(found, "clean")
    single = [column(found, name)[1] for name in SINGLE]
    best = [min(each) for each in zip(*single, strict=True)]
    of_the_paper = [min(each) for each in zip(*single[:2], strict=True)]
    for name, short in (("adaptive", "adaptive"), ("matthews-1999", "matthews")):
        _, cost = column(found, name)
        ratios = [ours / least for ours, least in zip(cost, best, strict=True)]
        values[key(workload, f"{short}_most_over_best")] = max(ratios)
        for at, ratio in zip(points, ratios, strict=True):
            values[key(workload, f"{short}_over_best", at)] = ratio
    _, ours = column(found, "adaptive")
    for at, before, after in zip(points, of_the_paper, ours, strict=True):
        values[key(workload, "gain_pct", at)] = reduction_pct(before, after)
    return values


def _collect_plot(load: Load, found: Mapping[Label, Metrics]) -> Plot:
    labels = {"matthews-1999": "eqs. 7-8"}
    ours = column(found, "adaptive")
    return Plot(
        name=f"beyond-adaptive-{load.key}".replace("_", "-"),
        title=f"Five ways to collect, {load.title}",
        x_label="disk utilization, %",
        y_label="overall write cost",
        curves=[
            *(line(found, name, labels.get(name, name)) for name in COLLECT[:-1]),
            # Points, because they lie on the line of the mechanism that was chosen.
            Curve("ours", *ours, style="points"),
        ],
        caption="5 MB/s; seek 9.5 ms and rotation 11 ms unless the title says otherwise.",
        y_scale="log",
    )


def beyond_placement(context: Context) -> FigureResult:
    """Write amplification of placements under three skews."""
    curves = {
        f"{placement}_{short}": {"layout.placement": placement, "layout.victim": victim}
        for placement in PLACEMENTS
        for short, victim in VICTIMS.items()
    }
    curves["oracle_greedy"] = {**_ORACLE, "layout.victim": "greedy"}
    curves["life_table_renewal"] = dict(_OURS)
    points = {float(round(100 * alpha)): alpha for alpha in ALPHAS}
    found = run_curves(context, "beyond-placement", curves, "workload.alpha", points)
    values: dict[str, float | None] = {
        key("zipf", *label): run["write_amplification"] for label, run in found.items()
    }
    for at in points:
        values[key("zipf", "best_published", at)] = min(
            found[curve, at]["write_amplification"]
            for curve in curves
            if curve not in {"oracle_greedy", "life_table_renewal"}
        )
    plot = Plot(
        name="beyond-placement",
        title="Placement of data by expected lifetime",
        x_label="exponent of the Zipf updates",
        y_label="write amplification",
        curves=[
            _bars(found, curve, label, points)
            for curve, label in (
                ("none_greedy", "none, greedy"),
                ("sepbit_root", "SepBIT"),
                ("dac_root", "DAC"),
                ("fadac_root", "FADaC"),
                ("life_table_renewal", "life table (ours)"),
                ("oracle_greedy", "oracle, 256 logs"),
            )
        ],
        categories=[f"{alpha:g}" for alpha in ALPHAS],
        caption=(
            "First writes included; 15 % of what is written is dead. SepBIT, DAC and FADaC with "
            "(1-u)/u x sqrt(age)."
        ),
    )
    return result(context, "beyond-placement", values, [plot])


def _bars(found: Mapping[Label, Metrics], curve: str, label: str, points: Iterable[float]) -> Curve:
    heights = [found[curve, at]["write_amplification"] for at in points]
    return Curve(label, list(range(len(heights))), heights, style="bars")
