"""The picture of a comparison: every layout's ratio to the best, cell by cell.

A row a layout, the most robust on top; a column a cell, grouped by workload and device. The darker,
the more disk time over the best of the column; hatched where the layout cannot do the cell. On the
right the worst and the geometric mean of each row. It is drawn from the values of `compare.json`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell.advice.measure import CLOSE_RATIO
from agewell.report import drawing
from agewell.values.sizes import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "compare"

_DARKEST_RATIO = 8.0
"""Ratios from here on look alike; chosen by us, the number stands beside the colour."""
_COLUMN_INCHES = 0.62
_ROW_INCHES = 0.36
_SUMMARY_INCHES = 3.4
_MARGIN_INCHES = 2.2
_LIGHT = "#fefefe"
_DARK = "#1b1f23"
"""Neither is a colour of the theme: cells look alike on a light and on a dark page."""
_TICKS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_WRITTEN_COLUMNS_MAX = 30
"""In more columns than that numbers would touch."""
_LIGHT_TEXT_FROM = 0.4
"""Share of the darkest shade from which text is white."""


def save(document: Mapping[str, Any], directory: Path) -> list[Path]:
    """Write `compare.png` and `compare.svg`; the same comparison gives the same bytes.

    Raises:
        RunError: The folder cannot be written.
    """
    paths = [directory / f"{NAME}.png", directory / f"{NAME}.svg"]
    with drawing.style(NAME):
        drawn = figure(document)
        for path in paths:
            drawing.save_figure(drawn, path)
    return paths


def figure(document: Mapping[str, Any]) -> Figure:
    """The comparison as a figure, drawn within `drawing.style`."""
    from agewell.report.shown_figure import ShownFigure

    cells = document["cells"]
    ranked = [each["layout"] for each in document["robustness"]]
    width = max(len(cells), 3) * _COLUMN_INCHES
    drawn = ShownFigure(
        figsize=(
            width + _SUMMARY_INCHES + _MARGIN_INCHES,
            len(ranked) * _ROW_INCHES + _MARGIN_INCHES,
        ),
        layout="constrained",
    )
    grid = drawn.add_gridspec(1, 2, width_ratios=[width, _SUMMARY_INCHES])
    table: Axes = drawn.add_subplot(grid[0, 0])
    _draw_cells(table, cells, ranked)
    summary: Axes = drawn.add_subplot(grid[0, 1], sharey=table)
    _draw_summary(summary, document)
    drawn.suptitle(
        "Total disk time over that of the best layout",
        x=0.01,
        ha="left",
        fontweight="bold",
        fontsize=11,
        color=drawing.INK,
    )
    return drawn


def _draw_cells(axes: Axes, cells: Sequence[Mapping[str, Any]], ranked: Sequence[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    shades = LinearSegmentedColormap.from_list("ratio", [_LIGHT, drawing.SERIES[0], "#00243d"])
    for column, cell in enumerate(cells):
        entries = {entry["layout"]: entry for entry in cell["layouts"]}
        for row, name in enumerate(ranked):
            ratio = _ratio(entries[name])
            corner = (column - 0.5, row - 0.5)
            if ratio is None:
                axes.add_patch(
                    Rectangle(
                        corner,
                        1,
                        1,
                        facecolor="none",
                        edgecolor=drawing.QUIET,
                        hatch="////",
                        linewidth=0,
                    )
                )
                continue
            depth = min(math.log(ratio) / math.log(_DARKEST_RATIO), 1.0)
            axes.add_patch(
                Rectangle(
                    corner, 1, 1, facecolor=shades(depth), edgecolor=drawing.PAPER, linewidth=1.2
                )
            )
            if len(cells) <= _WRITTEN_COLUMNS_MAX:
                axes.text(
                    column,
                    row,
                    ratio_text(ratio),
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    fontweight="bold" if ratio <= CLOSE_RATIO else "normal",
                    color=_LIGHT if depth > _LIGHT_TEXT_FROM else _DARK,
                )
    axes.set_xlim(-0.5, max(len(cells), 3) - 0.5)
    axes.set_ylim(len(ranked) - 0.5, -0.5)
    axes.set_yticks(range(len(ranked)), ranked)
    axes.set_xticks(
        range(len(cells)), [percent(cell["utilization"]) for cell in cells], fontsize=7.5
    )
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    _name_groups(axes, cells)


def _name_groups(axes: Axes, cells: Sequence[Mapping[str, Any]]) -> None:
    """Write workload and device above the columns that share them, and rules between groups."""
    place = 0
    for (workload, device), group in itertools.groupby(
        cells, key=lambda cell: (cell["workload"], cell["device"])
    ):
        count = len(list(group))
        axes.text(
            place - 0.45,
            -0.62,
            f"{workload}\n{device}" if count > 1 else f"{workload}, {device}",
            ha="left",
            va="bottom",
            fontsize=8,
            rotation=0 if count > 1 else 35,
            rotation_mode="anchor",
        )
        if place:
            axes.axvline(place - 0.5, color=drawing.INK, linewidth=1.0)
        place += count


def _draw_summary(axes: Axes, document: Mapping[str, Any]) -> None:
    ranked = document["robustness"]
    adaptive = {layout["name"] for layout in document["layouts"] if layout["is_adaptive"]}
    limit = max(_or_infinite(each["worst_ratio"], each["done"]) or 1.0 for each in ranked)
    limit = limit if math.isfinite(limit) else _DARKEST_RATIO
    for row, each in enumerate(ranked):
        worst_ratio = _or_infinite(each["worst_ratio"], each["done"])
        mean_ratio = _or_infinite(each["geometric_mean_ratio"], each["done"])
        if worst_ratio is None or mean_ratio is None:
            continue
        colour = drawing.SERIES[1] if each["layout"] in adaptive else drawing.QUIET
        worst = min(worst_ratio, limit)
        axes.plot([1, worst], [row, row], color=colour, linewidth=2.2, zorder=2)
        axes.plot([worst], [row], marker="o", color=colour, markersize=6, zorder=3)
        axes.plot(
            [min(mean_ratio, limit)],
            [row],
            marker="|",
            color=drawing.INK,
            markersize=11,
            markeredgewidth=2,
            zorder=4,
        )
        missing = each["cells"] - each["done"]
        note = f"{ratio_text(worst_ratio)}" + (f"; cannot {missing}" if missing else "")
        axes.annotate(
            note, (worst, row), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8
        )
    axes.set_xscale("log")
    axes.set_xlim(0.97, limit**1.35 * 1.25)
    right = axes.get_xlim()[1]
    axes.set_xticks([tick for tick in _TICKS if tick < right])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_xlabel("worst ratio (dot) and geometric mean (bar);\norange: adaptive", fontsize=8)
    axes.tick_params(axis="y", left=False, labelleft=False)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")


def _ratio(entry: Mapping[str, Any]) -> float | None:
    """Of a layout in a cell; None where it cannot do it. JSON has no infinite number."""
    return _or_infinite(entry["ratio"], 0 if entry["cannot"] else 1)


def _or_infinite(ratio: float | None, done: int) -> float | None:
    return math.inf if ratio is None and done else ratio


def ratio_text(ratio: float) -> str:
    """A ratio in as few characters as say it: `1.04`, `12.3`, `140`."""
    if math.isinf(ratio):
        return "inf"
    for limit, digits in ((9.995, 2), (99.95, 1)):
        if ratio < limit:
            return f"{ratio:.{digits}f}"
    return f"{ratio:.0f}"
