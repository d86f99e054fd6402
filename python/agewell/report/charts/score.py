"""Pictures of layout metrics: the score by size, free extents, a map of the device, a series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agewell.filesystems import scoring
from agewell.filesystems.scoring import Score, size_text, time_text
from agewell.report import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAP_COLUMNS = 64
_MAPS_MAX = 4
_TARGETS_MAX = len(drawing.SERIES)
_WIDTH_INCHES = 10.0
_ROW_INCHES = 3.6
_MAP_INCHES = 2.9
_TICKS_MAX = 7
_LABEL_CHARACTERS = 30

_MAP_PARTS = (
    ("free_bytes", "free", "#e8ebef"),
    ("whole_file_bytes", "files in one piece", "#5b6b7d"),
    ("long_piece_bytes", "pieces of 1 MiB or more", "#c2a14d"),
    ("short_piece_bytes", "shorter pieces", "#a3123a"),
    ("other_bytes", "other: metadata, not in the tree", "#b9add0"),
)
"""Parts of a cell, their names and colours; a cell is the mean of its parts.

None is a colour of `drawing`: there they stand for the trees that are distinguished, and on a page
they follow the reader's theme, which the cells of a map cannot.
"""


def save(scores: Sequence[Score], path: Path) -> None:
    """Write a picture of one or several scores; the same scores give the same bytes.

    Args:
        scores: What to show; a series in the order of time.
        path: A .png or .svg file.

    Raises:
        RunError: The file cannot be written.
    """
    with drawing.style("score"):
        drawn = figure(scores)
        drawing.save_figure(drawn, path)


def figure(scores: Sequence[Score]) -> Figure:
    """The scores as a figure, drawn within `drawing.style`."""
    from agewell.report.shown_figure import ShownFigure

    mapped = _mapped(scores)
    series = scoring.is_series(scores)
    heights = [_ROW_INCHES, *([_ROW_INCHES] if series else []), *([_MAP_INCHES] * len(mapped))]
    drawn = ShownFigure(figsize=(_WIDTH_INCHES, sum(heights) + 0.4), layout="constrained")
    grid = drawn.add_gridspec(len(heights), 2, height_ratios=heights)
    shown = _shown(scores)
    _draw_sizes(drawn.add_subplot(grid[0, 0]), shown)
    # Bars of more than a few would be too thin to read: of a series the first and the last.
    places = [0, len(shown) - 1] if series else list(range(len(shown)))
    _draw_free(drawn.add_subplot(grid[0, 1]), shown, places)
    row = 1
    if series:
        _draw_series(drawn.add_subplot(grid[row, :]), scores)
        row += 1
    for scored in mapped:
        _draw_map(drawn.add_subplot(grid[row, :]), scored, several=len(scores) > 1)
        row += 1
    _map_legend(drawn)
    return drawn


def _shown(scores: Sequence[Score]) -> list[Score]:
    """As many as there are colours; of a longer series evenly, first and last included."""
    if len(scores) <= _TARGETS_MAX:
        return list(scores)
    places = np.linspace(0, len(scores) - 1, _TARGETS_MAX).round().astype(int)
    return [scores[place] for place in places]


def _mapped(scores: Sequence[Score]) -> list[Score]:
    """Those whose map is drawn: of a series the first and the last."""
    if scoring.is_series(scores):
        return [scores[0], scores[-1]]
    return list(scores[:_MAPS_MAX])


def _draw_sizes(axes: Axes, scores: Sequence[Score]) -> None:
    """Layout score by size of file: every size up to 16 blocks, powers of two beyond."""
    lowest = 1.0
    ends = [1.0]
    for place, scored in enumerate(scores):
        block_bytes = scored.report["contents"]["block_bytes"]
        bins = [
            each
            for each in scoring.size_bins(scored.report["layout"])
            if each["layout_score"] is not None
        ]
        sizes = [each["blocks_max"] * block_bytes for each in bins]
        values = [each["layout_score"] for each in bins]
        colour = drawing.SERIES[place]
        axes.plot(sizes, values, color=colour, marker="o", markersize=3, label=_label(scored))
        aggregate = scored.report["layout"]["layout_score"]
        if aggregate is not None:
            axes.axhline(aggregate, color=colour, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        lowest = min([lowest, *values])
        ends += sizes
    axes.set_xscale("log", base=2)
    _size_ticks(axes, ends[1:])
    bottom = max(0.0, math.floor(lowest * 10 - 0.2) / 10)
    axes.set_ylim(bottom, 1.0 + 0.03 * (1 - bottom))
    axes.set_xlabel("size of file (every size up to 16 blocks, then powers of two)")
    axes.set_ylabel("layout score")
    axes.set_title("Layout score by size; dashed: all files")
    if len(scores) > 1:
        axes.legend(loc="lower right")


def _draw_free(axes: Axes, shown: Sequence[Score], places: Sequence[int]) -> None:
    """Share of free bytes by length of the extents that hold them, of those at `places`."""
    spaces = [shown[place].report["free_space"] for place in places]
    powers = [_power(each) for space in spaces for each in space["by_length"]]
    axes.set_title("Free space by length of extent")
    axes.set_xlabel("length of extent, from")
    axes.set_ylabel("share of free bytes (%)")
    if not powers:
        message = "where free space lies is not known"
        axes.text(0.5, 0.5, message, ha="center", transform=axes.transAxes)
        axes.set_xticks([])
        return
    first = min(powers)
    width = 0.84 / len(places)
    for bar, (place, space) in enumerate(zip(places, spaces, strict=True)):
        offset = (bar - (len(places) - 1) / 2) * width - first
        axes.bar(
            [_power(each) + offset for each in space["by_length"]],
            [100 * each["bytes"] / space["bytes"] for each in space["by_length"]],
            width=width * 0.94,
            color=drawing.SERIES[place],
            label=_label(shown[place]),
        )
    if len(places) > 1:
        axes.legend(loc="upper left")
    count = max(powers) - first + 1
    step = max(1, math.ceil(count / _TICKS_MAX))
    axes.set_xticks(
        range(0, count, step), [size_text(1 << (first + place)) for place in range(0, count, step)]
    )
    axes.grid(visible=False, axis="x")
    axes.set_ylim(bottom=0)


def _power(each: dict[str, Any]) -> int:
    """Which power of two a bin of free extents begins at."""
    return int(each["bytes_min"]).bit_length() - 1


def _draw_series(axes: Axes, scores: Sequence[Score]) -> None:
    """The aggregates over time."""
    from matplotlib import dates

    times: Any = [datetime.fromtimestamp((scored.taken_ns or 0) / 1e9, tz=UTC) for scored in scores]
    lines = (
        ("layout_score", "layout score"),
        ("name_adjacency", "neighbours by name that are adjacent"),
        ("free_space_score", "free-space score"),
        ("utilization", "full"),
    )
    for place, (name, label) in enumerate(lines):
        values = [scored.metrics[name] for scored in scores]
        axes.plot(
            times,
            [math.nan if value is None else value for value in values],
            color=drawing.SERIES[place],
            marker="o",
            markersize=3.5,
            label=label,
        )
    untyped: Any = dates
    locator = untyped.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    axes.set_ylim(0, 1.03)
    axes.set_title("Over time")
    axes.legend(loc="lower left", ncols=4, bbox_to_anchor=(0.15, 1.0))


def _draw_map(axes: Axes, scored: Score, *, several: bool) -> None:
    """The device, row by row from its start: a cell's colour is the mean of what it holds."""
    image = _map_image(scored.report["map"])
    axes.imshow(image, aspect="auto", interpolation="nearest")
    axes.set_title(f"Map of the device{f': {_label(scored)}' if several else ''}")
    rows = image.shape[0]
    row_bytes = scored.report["map"]["cell_bytes"] * _MAP_COLUMNS
    step = max(1, rows // 4)
    axes.set_yticks(
        range(0, rows, step), [size_text(row * row_bytes) for row in range(0, rows, step)]
    )
    axes.set_xticks([])
    axes.set_xlabel(
        f"each row {size_text(row_bytes)}, "
        f"each cell {size_text(scored.report['map']['cell_bytes'])}"
    )
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _map_image(cells: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Rows, columns, and red, green and blue from 0 to 1; places behind the end are transparent."""
    parts = np.array([cells[name] for name, _, _ in _MAP_PARTS], dtype=np.float64)
    colours = np.array([_rgb(colour) for _, _, colour in _MAP_PARTS])
    totals = parts.sum(axis=0)
    count = len(totals)
    rows = max(1, math.ceil(count / _MAP_COLUMNS))
    image = np.zeros((rows * _MAP_COLUMNS, 4))
    image[:count, :3] = (parts / np.maximum(totals, 1)).T @ colours
    image[:count, 3] = 1.0
    return image.reshape(rows, _MAP_COLUMNS, 4)


def _map_legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=label) for _, label, colour in _MAP_PARTS]
    figure.legend(handles=patches, loc="outside lower left", ncols=len(patches), borderaxespad=0.3)


def _size_ticks(axes: Axes, sizes: Sequence[float]) -> None:
    powers = range(
        math.floor(math.log2(min(sizes, default=1.0))),
        math.ceil(math.log2(max(sizes, default=1.0))) + 1,
    )
    step = max(1, math.ceil(len(powers) / _TICKS_MAX))
    shown = list(powers)[::step]
    axes.set_xticks([2.0**power for power in shown], [size_text(2**power) for power in shown])
    axes.minorticks_off()


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))


def _label(scored: Score) -> str:
    """What a target is called in a legend: the end of its path, its time in a series."""
    if scored.taken_ns is not None and scored.path.endswith(".parquet"):
        return time_text(scored.taken_ns)
    path = scored.path
    return path if len(path) <= _LABEL_CHARACTERS else "..." + path[3 - _LABEL_CHARACTERS :]
