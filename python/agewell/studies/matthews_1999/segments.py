"""Figures 5-1 to 5-3 of Matthews 1999: what the size of a segment does to the cost of writing."""

from __future__ import annotations

from collections.abc import Mapping

from agewell.studies.cases import (
    Metrics,
    Settings,
    column,
    key,
    result,
    run_curves,
    sizes_kib,
)
from agewell.studies.context import Context, Label
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

SIZES_KIB = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)

_PLACES = tuple(range(len(SIZES_KIB)))
_NAMES = tuple(str(size) for size in SIZES_KIB)
"""Sizes double, so that even steps are the paper's logarithmic axis."""

DISKS: Mapping[str, tuple[float, float]] = {
    "sprite": (17.5, 1.3),
    "baseline": (15.0, 5.0),
    "equal": (7.5, 10.0),
    "fast": (10.0, 15.0),
}
"""Access time in ms and bandwidth in MB/s of the disks of figure 5-2. The second of the two disks
with the same product of both is ours: the paper says that there is one and does not name it."""


def figure_5_1(context: Context) -> FigureResult:
    """The Auspex-like load over segment sizes."""
    found = run_curves(
        context, "figure-5-1", {"auspex": {}}, "layout.segment_size", sizes_kib(*SIZES_KIB)
    )
    plot = _sizes_plot("figure-5-1", "Segment size, Auspex-like load", "auspex", found)
    return result(context, "figure-5-1", _sizes_values("auspex", found), [plot])


def figure_5_3(context: Context) -> FigureResult:
    """Random updates over segment sizes."""
    found = run_curves(
        context, "figure-5-3", {"random": {}}, "layout.segment_size", sizes_kib(*SIZES_KIB)
    )
    plot = _sizes_plot("figure-5-3", "Segment size, random update", "random", found)
    return result(context, "figure-5-3", _sizes_values("random", found), [plot])


def figure_5_2(context: Context) -> FigureResult:
    """The Auspex-like load over segment sizes on four disks."""
    disks: dict[str, Settings] = {
        name: {
            "device.access_time": f"{access_ms:g} ms",
            "device.bandwidth": f"{mb_per_s:g} MB/s",
        }
        for name, (access_ms, mb_per_s) in DISKS.items()
    }
    found = run_curves(context, "figure-5-2", disks, "layout.segment_size", sizes_kib(*SIZES_KIB))
    values: dict[str, float | None] = {}
    for name, (access_ms, mb_per_s) in DISKS.items():
        sizes, overall = column(found, name)
        best = sizes[overall.index(min(overall))]
        values[key("auspex", name, "best_kib")] = best
        values[key("auspex", name, "best_products")] = best * 1.024 / (access_ms * mb_per_s)
        values[key("auspex", name, "least")] = min(overall)
        for size, cost in zip(sizes, overall, strict=True):
            values[key("auspex", name, size, "kib")] = cost
    _, one = column(found, "baseline")
    _, other = column(found, "equal")
    apart = [100 * abs(a - b) / a for a, b in zip(one, other, strict=True)]
    values["auspex/equal_products_apart_pct"] = max(apart)
    plot = Plot(
        name="figure-5-2",
        title="Segment size on four disks, Auspex-like load",
        x_label="segment size, KiB",
        y_label="overall write cost",
        curves=[
            Curve(f"{access_ms:g} ms, {mb_per_s:g} MB/s", _PLACES, column(found, name)[1])
            for name, (access_ms, mb_per_s) in DISKS.items()
        ],
        caption="Two of the disks have the same product of access time and bandwidth.",
        y_scale="log",
        categories=_NAMES,
    )
    return result(context, "figure-5-2", values, [plot])


def _sizes_values(workload: str, found: Mapping[Label, Metrics]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    excess = []
    for (_, size), run in found.items():
        product = run["write_cost"] * run["transfer_inefficiency"]
        values[key(workload, "overall", size)] = run["overall_write_cost"]
        values[key(workload, "write_cost", size)] = run["write_cost"]
        values[key(workload, "inefficiency", size)] = run["transfer_inefficiency"]
        values[key(workload, "product", size)] = product
        excess.append(run["overall_write_cost"] / product)
    sizes, overall = column(found, workload)
    values[key(workload, "best_kib")] = sizes[overall.index(min(overall))]
    values[key(workload, "least_of_larger")] = min(overall[1:])
    values[key(workload, "least_excess")] = min(excess)
    return values


def _sizes_plot(name: str, title: str, workload: str, found: Mapping[Label, Metrics]) -> Plot:
    _, write_cost = column(found, workload, "write_cost")
    _, inefficiency = column(found, workload, "transfer_inefficiency")
    product = [a * b for a, b in zip(write_cost, inefficiency, strict=True)]
    _, overall = column(found, workload)
    return Plot(
        name=name,
        title=title,
        x_label="segment size, KiB",
        y_label="cost, times the ideal",
        curves=[
            Curve("overall (eq. 4)", _PLACES, overall),
            Curve("write cost x TI (eq. 5)", _PLACES, product),
            Curve("write cost (eq. 1)", _PLACES, write_cost),
            Curve("TI (eq. 3)", _PLACES, inefficiency, emphasis=False),
        ],
        caption="TI: transfer inefficiency. 85 % of the disk in use; 15 ms access time, 5 MB/s.",
        y_scale="log",
        categories=_NAMES,
    )
