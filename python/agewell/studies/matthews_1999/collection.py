"""Figures 5-4 to 5-10 of Matthews 1999: cleaning, plugging, the choice between them, the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from agewell.studies.cases import (
    Metrics,
    Settings,
    column,
    costs,
    crossing_pct,
    key,
    line,
    printed,
    reduction_pct,
    result,
    run_cases,
    run_curves,
    utilizations,
)
from agewell.studies.context import Context, Label
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot, Scale, Style

RANDOM = utilizations(50, 60, 70, 80, 85, 90, 95, 98, 99)
AUSPEX = utilizations(50, 60, 70, 80, 85, 90, 95, 97, 99, 99.5, 99.9)
"""Utilizations in per cent. The axes of the paper's figures are not readable; its text names 50,
60, 80, 85, 90, 95 and 99. Of Figure 5-7 it says that the axis is a reverse logarithmic one: 99.9 is
the end of its third decade."""

CLEAN: Settings = {"layout.collect": "clean"}
PLUG: Settings = {"layout.collect": "plug"}
ADAPTIVE: Settings = {"layout.collect": "matthews-1999", "layout.plug_candidate": "policy"}
"""Both estimates for the segment that the policy would clean."""
_LEAST: Settings = {"layout.collect": "matthews-1999", "layout.plug_candidate": "least-utilized"}
"""That of plugging for the least utilized segment, which with greedy victims is the same one."""
OURS: Settings = {"layout.collect": "adaptive", "layout.mechanisms": ["clean", "plug"]}
"""Our choice between the same two mechanisms, by rehearsals on copies of the log."""
_WITHOUT_HEADER: Settings = {"layout.header": "none"}

_SEEDS = (1, 2, 3)
_CACHES_MB = (16, 32, 64, 128, 256, 512, 1024)
_FLAT_CACHES_MB = (16, 256, 1024)
"""Where cost-age is run, whose cost does not depend on the cache."""
_REFERENCE_CACHE_MB = 256
"""The cache that §5.5 gives numbers for."""
_CACHE_UTILIZATIONS = utilizations(60, 85, 95)
_PAPER_AT_99 = 64.5
"""Cleaning random updates at 99 %: the caption of figure 5-4."""


def figure_5_4(context: Context) -> FigureResult:
    """Random updates: cleaning, and plugging with two kinds of headers."""
    curves = {
        "clean": CLEAN,
        "plug": PLUG,
        "plug_segment_header": {**PLUG, "layout.header": "segment"},
    }
    found = run_curves(context, "figure-5-4", curves, "workload.utilization", RANDOM)
    values = costs("random", found)
    plot = _utilization_plot(
        "figure-5-4",
        "Cleaning and plugging, random update",
        [
            line(found, "clean", "cleaning"),
            line(found, "plug", "plug, block headers"),
            line(found, "plug_segment_header", "plug, segment headers"),
            printed("paper", 99, _PAPER_AT_99),
        ],
    )
    return result(context, "figure-5-4", values, [plot])


def figure_5_5(context: Context) -> FigureResult:
    """The Auspex-like load: cleaning and plugging."""
    curves = {"clean": CLEAN, "plug": PLUG}
    found = run_curves(context, "figure-5-5", curves, "workload.utilization", AUSPEX)
    values = costs("auspex", found)
    points, clean = column(found, "clean")
    _, plug = column(found, "plug")
    up_to_99 = [(c / p) for at, c, p in zip(points, clean, plug, strict=True) if at <= 99]  # noqa: PLR2004
    values["auspex/most_clean_over_plug"] = max(up_to_99)
    plot = _utilization_plot(
        "figure-5-5",
        "Cleaning and plugging, Auspex-like load",
        [line(found, "clean", "cleaning, cost-age"), line(found, "plug", "plugging")],
        "linear",
    )
    return result(context, "figure-5-5", values, [plot])


def figure_5_6(context: Context) -> FigureResult:
    """Random updates: the adaptive choice, cost-age cleaning, and the independent simulation."""
    curves = {
        "clean": CLEAN,
        "plug": PLUG,
        "adaptive": ADAPTIVE,
        "ours": OURS,
        "cost_age": {**CLEAN, "layout.victim": "cost-age"},
    }
    found = run_curves(context, "figure-5-6", curves, "workload.utilization", RANDOM)
    plain = _means_over_seeds(context)
    values = {**costs("random", found), **plain}
    for curve in ("adaptive", "ours"):
        values.update(_against_the_better("random", found, curve))
    independent = context.expected("figure-5-6")["independent"]
    plots = [
        _utilization_plot(
            "figure-5-6",
            "Adaptive collection, random update",
            [
                line(found, "clean", "cleaning, greedy"),
                line(found, "cost_age", "cleaning, cost-age"),
                line(found, "plug", "plugging"),
                line(found, "adaptive", "adaptive, eqs. 7-8"),
                Curve("adaptive, ours", *column(found, "ours"), style="points"),
                printed("paper", 99, _PAPER_AT_99),
            ],
        ),
        _utilization_plot(
            "figure-5-6-independent",
            "Two simulations of random update",
            [
                *(
                    Curve(label, list(RANDOM), [plain[key("random", name, at)] for at in RANDOM])
                    for name, label in (
                        ("plain_clean", "cleaning, ours"),
                        ("plain_plug", "plugging, ours"),
                    )
                ),
                Curve(
                    "the other simulation",
                    [*independent["utilization_pct"], *independent["utilization_pct"]],
                    [*independent["clean"], *independent["plug"]],
                    style="points",
                    emphasis=False,
                ),
            ],
        ),
    ]
    return result(context, "figure-5-6", values, plots)


def _means_over_seeds(context: Context) -> dict[str, float]:
    """Overall write cost without headers, the mean of several seeds, by key.

    A single run has 0.05 of chance in it: a rewrite of a block that still waits makes the pieces of
    four blocks fall across segments from then on, or no longer.
    """
    curves: dict[str, Settings] = {
        "plain_clean": CLEAN,
        "plain_plug": {**PLUG, **_WITHOUT_HEADER},
        "plain_adaptive": {**ADAPTIVE, **_WITHOUT_HEADER},
    }
    cases: dict[Label, Settings] = {
        (name, at, seed): {**settings, "workload.utilization": utilization, "run.seed": seed}
        for name, settings in curves.items()
        for at, utilization in RANDOM.items()
        for seed in _SEEDS
    }
    found = run_cases(context, "figure-5-6", cases)
    return {
        key("random", name, at): mean(
            found[name, at, seed]["overall_write_cost"] for seed in _SEEDS
        )
        for name in curves
        for at in RANDOM
    }


def figure_5_7(context: Context) -> FigureResult:
    """The Auspex-like load: the adaptive choice."""
    curves = {"clean": CLEAN, "plug": PLUG, "adaptive": ADAPTIVE, "least": _LEAST, "ours": OURS}
    found = run_curves(context, "figure-5-7", curves, "workload.utilization", AUSPEX)
    values = costs("auspex", found)
    for curve in ("adaptive", "least", "ours"):
        values.update(_against_the_better("auspex", found, curve))
    for (name, at), run in found.items():
        collected = run["segments_cleaned"] + run["segments_plugged"]
        values[key("auspex", name, at, "collected")] = float(collected)
    plot = Plot(
        name="figure-5-7",
        title="Adaptive collection, Auspex-like load",
        x_label="1 / (1 - utilization): 2 is 50 %, 10 is 90 %, 100 is 99 %",
        y_label="overall write cost",
        curves=[
            _towards_full(found, "clean", "cleaning, cost-age"),
            _towards_full(found, "plug", "plugging"),
            _towards_full(found, "adaptive", "adaptive, eqs. 7-8"),
            _towards_full(found, "ours", "adaptive, ours", "points"),
        ],
        caption="The horizontal axis is the paper's reverse logarithmic one.",
        x_scale="log",
    )
    return result(context, "figure-5-7", values, [plot])


def figure_5_8(context: Context) -> FigureResult:
    """Random updates on the slow and on the fast disk."""
    fast = {"device.access_time": "10 ms", "device.bandwidth": "15 MB/s"}
    curves = {
        "clean": CLEAN,
        "plug": PLUG,
        "adaptive": ADAPTIVE,
        "fast_clean": {**CLEAN, **fast},
        "fast_plug": {**PLUG, **fast},
        "fast_adaptive": {**ADAPTIVE, **fast},
    }
    found = run_curves(context, "figure-5-8", curves, "workload.utilization", RANDOM)
    values = costs("random", found)
    for disk, prefix in (("slow", ""), ("fast", "fast_")):
        points, clean = column(found, f"{prefix}clean")
        _, plug = column(found, f"{prefix}plug")
        values[key("random", disk, "crossing_pct")] = crossing_pct(points, clean, plug)
        for at, cleaned, plugged in zip(points, clean, plug, strict=True):
            values[key("random", disk, "gap", at)] = plugged - cleaned
    plot = _utilization_plot(
        "figure-5-8",
        "Cleaning and plugging on two disks, random update",
        [
            line(found, "fast_clean", "cleaning, fast"),
            line(found, "fast_plug", "plugging, fast"),
            line(found, "fast_adaptive", "adaptive, fast"),
            line(found, "clean", "cleaning, slow"),
            line(found, "plug", "plugging, slow"),
            line(found, "adaptive", "adaptive, slow"),
        ],
    )
    return result(context, "figure-5-8", values, [plot])


def figure_5_9(context: Context) -> FigureResult:
    """The Auspex-like load: cleaning from the server's cache."""
    curves = {"age": ("cost-age", _FLAT_CACHES_MB), "cache": ("cost-age-cache", _CACHES_MB)}
    cases: dict[Label, Settings] = {
        (f"{name}_{at:g}", float(size_mb)): {
            "layout.victim": victim,
            "workload.utilization": utilization,
            "host.server_cache": f"{size_mb} MB",
        }
        for name, (victim, sizes_mb) in curves.items()
        for at, utilization in _CACHE_UTILIZATIONS.items()
        for size_mb in sizes_mb
    }
    found = run_cases(context, "figure-5-9", cases)
    values = costs("auspex", found)
    for at in _CACHE_UTILIZATIONS:
        _, age = column(found, f"age_{at:g}")
        values[key("auspex", "age_spread_pct", at)] = 100 * (max(age) / min(age) - 1)
        plain = found[f"age_{at:g}", float(_REFERENCE_CACHE_MB)]
        share = plain["cleaner_cost"] / plain["overall_write_cost"]
        values[key("auspex", "age_share_pct", at)] = 100 * share
        for size_mb in _CACHES_MB:
            cached = found[f"cache_{at:g}", float(size_mb)]
            for what, metric in (("overall", "overall_write_cost"), ("collection", "cleaner_cost")):
                gain = reduction_pct(plain[metric], cached[metric]) if plain[metric] else 0.0
                values[key("auspex", f"{what}_gain_pct", at, float(size_mb))] = gain
    plot = Plot(
        name="figure-5-9",
        title="Cleaning from the server's cache, Auspex-like load",
        x_label="server cache, MB",
        y_label="overall write cost",
        curves=[
            line(found, f"{name}_{at:g}", f"{at:g} %{suffix}")
            for at in reversed(_CACHE_UTILIZATIONS)
            for name, suffix in (("age", ""), ("cache", ", cached"))
        ],
        caption="Cost-age at three utilizations; cached: segments in the cache cost no read.",
        x_scale="log",
    )
    return result(context, "figure-5-9", values, [plot])


def figure_5_10(context: Context) -> FigureResult:
    """Both workloads: original against modified."""
    cached: Settings = {"layout.victim": "cost-age-cache", "host.server_cache": "128 MB"}
    auspex = run_curves(
        context,
        "figure-5-10",
        {
            "original": {**CLEAN, "layout.victim": "cost-age"},
            "modified": {**ADAPTIVE, **cached},
            "cache": {**CLEAN, **cached},
            "ours": {**OURS, **cached},
        },
        "workload.utilization",
        AUSPEX,
    )
    random = run_curves(
        context,
        "figure-5-6",
        {
            "original": CLEAN,
            "modified": ADAPTIVE,
            "modified_cache": {**ADAPTIVE, **cached},
            "ours": OURS,
        },
        "workload.utilization",
        RANDOM,
    )
    values = {**costs("auspex", auspex), **costs("random", random)}
    for modified in ("modified", "cache", "ours"):
        values.update(_gains("auspex", auspex, modified))
    for modified in ("modified", "modified_cache", "ours"):
        values.update(_gains("random", random, modified))
    plot = Plot(
        name="figure-5-10",
        title="Original and modified, both workloads",
        x_label="1 / (1 - utilization): 2 is 50 %, 10 is 90 %, 100 is 99 %",
        y_label="overall write cost",
        curves=[
            _towards_full(random, "original", "random, original"),
            _towards_full(random, "modified", "random, eqs. 7-8"),
            _towards_full(random, "ours", "random, ours", "points"),
            _towards_full(auspex, "original", "Auspex, original"),
            _towards_full(auspex, "modified", "Auspex, eqs. 7-8"),
            _towards_full(auspex, "ours", "Auspex, ours", "points"),
        ],
        caption="Random update and the Auspex-like load, the latter with cleaning from cache.",
        x_scale="log",
        y_scale="log",
    )
    return result(context, "figure-5-10", values, [plot])


def _gains(workload: str, found: Mapping[Label, Metrics], modified: str) -> dict[str, float]:
    """The most that the modified log saves at any utilization, and where."""
    values: dict[str, float] = {}
    points, _ = column(found, "original")
    for what, metric in (("overall", "overall_write_cost"), ("collection", "cleaner_cost")):
        _, before = column(found, "original", metric)
        _, after = column(found, modified, metric)
        factors = [(b / a, at) for at, b, a in zip(points, before, after, strict=True) if a > 0]
        most, at = max(factors)
        values[key(workload, f"{modified}_{what}_factor")] = most
        values[key(workload, f"{modified}_{what}_gain_pct")] = 100 * (1 - 1 / most)
        values[key(workload, f"{modified}_{what}_gain_at_pct")] = at
    return values


def _against_the_better(
    workload: str, found: Mapping[Label, Metrics], curve: str
) -> dict[str, float]:
    """A choice over the better of cleaning and plugging, at each utilization."""
    points, clean = column(found, "clean")
    _, plug = column(found, "plug")
    _, chosen = column(found, curve)
    ratios = [a / min(c, p) for a, c, p in zip(chosen, clean, plug, strict=True)]
    name = f"{curve}_over_better"
    values = {key(workload, name, at): ratio for at, ratio in zip(points, ratios, strict=True)}
    values[key(workload, f"{curve}_most_over_better")] = max(ratios)
    values[key(workload, f"{curve}_least_over_better")] = min(ratios)
    return values


def _utilization_plot(
    name: str, title: str, curves: Sequence[Curve], y_scale: Scale = "log"
) -> Plot:
    return Plot(
        name=name,
        title=title,
        x_label="disk utilization, %",
        y_label="overall write cost",
        curves=curves,
        caption="Segments of 256 KiB, blocks of 8 KiB; new data is part of the cost.",
        y_scale=y_scale,
    )


def _towards_full(
    found: Mapping[Label, Metrics], curve: str, label: str, style: Style = "line"
) -> Curve:
    points, values = column(found, curve)
    return Curve(label, [100 / (100 - at) for at in points], values, style)
