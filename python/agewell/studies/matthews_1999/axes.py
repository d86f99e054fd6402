"""Chapter 4 of Matthews 1999 as a table: how sensitive each layout is to each axis, measured.

The chapter states opinions ("all systems are sensitive to read order"). Each becomes a number: the
disk time, or the quantity that the section speaks of, at one end of the axis over that at the
other, with everything else the same (`chapter_4_workloads`). The claims and what counts as
sensitive stand in `experiments/matthews-1999/chapter-4/expected.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from agewell.experiments.layouts import LAYOUTS as NAMED_LAYOUTS
from agewell.experiments.layouts import NamedLayout
from agewell.experiments.time_slices import course
from agewell.studies.cases import result
from agewell.studies.context import Context, Label
from agewell.studies.matthews_1999.chapter_4_workloads import AXES, BLOCK_BYTES, Axis, End
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

FIGURE = "chapter-4"

LAYOUTS = tuple(layout for layout in NAMED_LAYOUTS if layout.name != "lfs-zones")
"""All that the data here is large enough for: a zone would hold all of it."""

_INFINITE = 1e9
"""Stands for a quantity that is nothing at one end only; a plot and a test need a number."""


def chapter_4(context: Context) -> FigureResult:
    """Sensitivity of every layout to every axis of §4.2."""
    ends = {axis.name: axis.ends() for axis in AXES}
    quantities = _measured(context, ends)
    values: dict[str, float | None] = {}
    for axis in AXES:
        for layout in LAYOUTS:
            first, second = (quantities[axis.name, place, layout.name] for place in (0, 1))
            values[f"{axis.name}/{layout.name}"] = _ratio(second, first)
    for axis_name in ("write_locality", "write_region"):
        # For the claim that the order of writes matters more (§4.2.1.2), under a name of its own.
        for layout in LAYOUTS:
            name = f"{axis_name}/order_of_writes_of_{layout.name}"
            values[name] = values.get(f"write_order/{layout.name}")
    return result(context, FIGURE, values, [_plot(axis, ends[axis.name], values) for axis in AXES])


def _measured(
    context: Context, ends: Mapping[str, tuple[End, End]]
) -> dict[tuple[str, int, str], float]:
    """The quantity of each axis by axis, end and layout."""
    experiment = context.tables(FIGURE)
    cases: dict[Label, dict[str, Any]] = {}
    for axis in AXES:
        for place, end in enumerate(ends[axis.name]):
            path = context.out / "traces" / f"{axis.name}-{place}.parquet"
            end.script.save(path)
            for layout in LAYOUTS:
                cases[axis.name, place, layout.name] = {
                    **{f"layout.{key}": value for key, value in layout.table.items()},
                    # As seen from the folder that the experiments of a study start from.
                    "workload.path": os.path.relpath(path.resolve(), context.experiments.resolve()),
                    **end.settings,
                }
    runs = context.run_many(experiment, cases)
    found = {
        (axis.name, place, layout.name): _quantity(
            axis, ends[axis.name][place], runs[axis.name, place, layout.name]
        )
        for axis in AXES
        for place in (0, 1)
        for layout in LAYOUTS
    }
    for axis in AXES:
        if axis.quantity == "ratio_to_others":
            for place in (0, 1):
                found.update(_against_the_others(axis.name, place, found))
    return found


def _against_the_others(
    axis: str, place: int, found: Mapping[tuple[str, int, str], float]
) -> dict[tuple[str, int, str], float]:
    """Each layout's quantity over the least of the layouts that are optimized for the other."""
    ratios = {}
    for layout in LAYOUTS:
        others = [
            found[axis, place, other.name]
            for other in LAYOUTS
            if _is_write_optimized(other) != _is_write_optimized(layout)
        ]
        # With one family there is nothing to be held against.
        least = min(others, default=1.0)
        ratios[axis, place, layout.name] = found[axis, place, layout.name] / least
    return ratios


def _is_write_optimized(layout: NamedLayout) -> bool:
    """Whether new data goes where it is convenient, rather than by its file (§4.2.1.1)."""
    return layout.table["kind"] in {"lfs", "write-anywhere"}


def _quantity(axis: Axis, end: End, run: Mapping[str, Any]) -> float:
    if axis.quantity not in {"disk_seconds", "ratio_to_others"}:
        return float(run["metrics"][axis.quantity])
    user_bytes, disk_ns = course(Path(run["directory"]))
    marks = [end.first * BLOCK_BYTES, end.last * BLOCK_BYTES]
    first_ns, last_ns = np.interp(marks, user_bytes, disk_ns)
    return float(last_ns - first_ns) / 1e9


def _ratio(over: float, under: float) -> float:
    if under == 0:
        return 1.0 if over == 0 else _INFINITE
    return over / under


def _plot(axis: Axis, ends: tuple[End, End], values: Mapping[str, float | None]) -> Plot:
    heights = [values[f"{axis.name}/{layout.name}"] or float("nan") for layout in LAYOUTS]
    return Plot(
        name=f"chapter-4-{axis.name.replace('_', '-')}",
        title=f"{axis.title[:1].upper()}{axis.title[1:]}",
        x_label="",
        y_label=f"{ends[1].label} / {ends[0].label}",
        curves=[Curve("", list(range(len(LAYOUTS))), heights, style="bars")],
        caption=f"Section {axis.section}: 1 is insensitive.",
        categories=[layout.name.replace("-", "-\n") for layout in LAYOUTS],
    )
