"""The study of M. Rosenblum and J. K. Ousterhout, 1992: cleaning by age.

The simulations of §3.5 and 3.6: files of one block on a log, overwritten at random; a cleaner that
reads some tens of segments at a time and sorts their live blocks by age. The write cost is counted
in blocks (eq. 1 of Matthews 1999), in the steady state: what is reported is the later half of a
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agewell.studies.cases import Settings, key, reduction_pct, result, run_cases
from agewell.studies.context import Context, Label
from agewell.studies.study import FigureResult, PaperStudy
from agewell.values.plot import Curve, Plot

_UTILIZATIONS_PCT = (20, 40, 60, 75, 80, 85, 90, 95)
"""The paper's axis goes from 0 to 100 %; its text names 20, 60, 75 and 80."""

_SEGMENT_BLOCKS = 256
"""As in the experiments."""
_UNIFORM: Settings = {"workload.hot_share": 0.1}
"""A tenth of the blocks gets a tenth of the writes."""
_COST_BENEFIT: Settings = {"layout.victim": "cost-age"}
_UNSORTED: Settings = {"layout.collected_order": "found"}
_YOUNGEST_BLOCK: Settings = {**_COST_BENEFIT, "layout.segment_age": "block"}
_APART: Settings = {"layout.placement": "user-collected", "layout.segment_age": "data", **_UNSORTED}
_UPDATES_PER_BLOCK = "workload.updates_per_block"

Costs = Mapping[tuple[str, float], float]
"""Write cost by curve and utilization, per cent."""


def _steady_costs(
    context: Context, figure: str, curves: Mapping[str, Settings]
) -> dict[tuple[str, float], float]:
    """The write cost of the later half of each run.

    Two runs of one seed begin alike, so that the longer one's blocks less the shorter one's are
    those of its later part.
    """
    experiment = context.tables(figure)
    passes = int(experiment["workload"]["updates_per_block"])
    cases: dict[Label, Settings] = {
        (name, float(at), long): {
            **settings,
            "workload.utilization": _utilization_of_all(experiment, at / 100),
            _UPDATES_PER_BLOCK: 2 * passes if long else passes,
        }
        for name, settings in curves.items()
        for at in _UTILIZATIONS_PCT
        for long in (False, True)
    }
    found = run_cases(context, experiment, cases)
    return {
        (name, float(at)): 2 * float(found[name, float(at), True]["write_cost"])
        - float(found[name, float(at), False]["write_cost"])
        for name in curves
        for at in _UTILIZATIONS_PCT
    }


def _utilization_of_all(experiment: Mapping[str, Any], utilization: float) -> float:
    """Live data over all segments, where so much of those not kept for the cleaner is live."""
    blocks = int(experiment["workload"]["blocks"])
    kept = int(experiment["layout"]["reserve_segments"]) * _SEGMENT_BLOCKS
    return round(blocks / (blocks / utilization + kept), 6)


def _values(costs: Costs) -> dict[str, float | None]:
    return {key("write", name, at): cost for (name, at), cost in costs.items()}


def _curve(costs: Costs, name: str, label: str) -> Curve:
    points = [at for curve, at in costs if curve == name]
    return Curve(label, points, [costs[name, at] for at in points])


def _plot(name: str, title: str, curves: list[Curve]) -> Plot:
    # Eq. 1 of the paper: without variance every segment is as full as the disk.
    points = [float(at) for at in _UTILIZATIONS_PCT if at < 95]  # noqa: PLR2004
    plain = [2 / (1 - at / 100) for at in points]
    return Plot(
        name=f"rosenblum-ousterhout-1992-{name}",
        title=title,
        x_label="disk utilization, %",
        y_label="write cost",
        curves=[*curves, Curve("no variance", points, plain, emphasis=False)],
        caption="Blocks written and read over new ones, in the steady state.",
        y_scale="log",
    )


def figure_4(context: Context) -> FigureResult:
    """Greedy cleaning: updates of all alike, and hot and cold."""
    costs = _steady_costs(context, "figure-4", {"uniform": _UNIFORM, "hot_cold": {}})
    values = _values(costs)
    ratios = {at: costs["hot_cold", at] / costs["uniform", at] for _, at in costs}
    values["write/least_over_uniform_40_80"] = min(ratios[at] for at in (40.0, 60.0, 75.0, 80.0))
    curves = [
        _curve(costs, "uniform", "uniform"),
        _curve(costs, "hot_cold", "hot and cold"),
    ]
    return result(context, "figure-4", values, [_plot("figure-4", "Greedy cleaning", curves)])


def figure_7(context: Context) -> FigureResult:
    """Hot and cold: cost-benefit against greedy, and what its choices bring."""
    curves: dict[str, Settings] = {
        "greedy": {},
        "cost_benefit": _COST_BENEFIT,
        "unsorted": {**_COST_BENEFIT, **_UNSORTED},
        "youngest_block": _YOUNGEST_BLOCK,
        "apart_greedy": _APART,
        "apart": {**_APART, **_COST_BENEFIT},
    }
    costs = _steady_costs(context, "figure-7", curves)
    values = _values(costs)
    for name, base in (
        ("cost_benefit", "greedy"),
        ("unsorted", "greedy"),
        ("youngest_block", "greedy"),
        ("apart", "apart_greedy"),
    ):
        gains = {
            float(at): reduction_pct(costs[base, float(at)], costs[name, float(at)])
            for at in _UTILIZATIONS_PCT
        }
        values.update({key("write", name, "gain_pct", at): gain for at, gain in gains.items()})
        values[key("write", name, "most_gain_pct")] = max(gains.values())
    plot = _plot(
        "figure-7",
        "Cost-benefit and greedy cleaning, hot and cold",
        [
            _curve(costs, "greedy", "greedy"),
            _curve(costs, "cost_benefit", "cost-benefit"),
            _curve(costs, "youngest_block", "the same, age of the youngest block"),
        ],
    )
    return result(context, "figure-7", values, [plot])


STUDY = PaperStudy(
    name="rosenblum-ousterhout-1992",
    title="Cleaning a log by cost and benefit",
    citation=(
        "M. Rosenblum and J. K. Ousterhout, The Design and Implementation of a Log-Structured "
        "File System, ACM Transactions on Computer Systems 10(1), 1992"
    ),
    table=(
        ("figure-4", "Greedy cleaning, uniform and hot-and-cold", figure_4),
        ("figure-7", "Cost-benefit cleaning, hot-and-cold", figure_7),
    ),
)
