"""How plots look: one palette, one set of axes, as files (PNG, SVG, CSV) and inside a page.

The first six series colours are those of Okabe & Ito ("Color Universal Design", 2008), which people
with any of the common colour vision deficiencies distinguish, the others are after Tol ("Colour
Schemes", 2021, muted); lines also differ in dash, so that a print in grey can be read.
Plots that are read together (`places_of`) give each name one colour, and each colour one name for
as long as there are colours.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import files
from agewell.values.plot import Curve, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1c2024"
"""Text and axes on a light page."""
QUIET = "#8b919a"
"""Baselines and published curves."""
GRID = "#dfe2e6"
PAPER = "#ffffff"
ALONE = "#566474"
"""A curve without a name, the only one of its plot."""
SERIES = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#332288", "#882255", "#999933", "#117733", "#aa4499", "#661100", "#44aa99", "#888800"),
)

_DASHES: tuple[Any, ...] = (
    "solid",
    (0, (5, 1.5)),
    (0, (1.5, 1.5)),
    (0, (6, 1.5, 1.5, 1.5)),
    "solid",
    (0, (3, 1)),
)
_WIDTH_INCHES = 6.4
_HEIGHT_INCHES = 3.6
_PNG_DOTS_PER_INCH = 160
_BARS_WIDTH = 0.8
"""Of a group of bars; groups are 1 apart."""
_BAR_LABELS_MAX = 24
"""More numbers than that above bars would touch each other."""
_MARKED_POINTS_MAX = 16
"""A line through more points than that is drawn without marks."""

_THEME_VARIABLES = {
    INK: "var(--ink)",
    QUIET: "var(--quiet)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    ALONE: "var(--alone)",
    **{colour: f"var(--series-{place})" for place, colour in enumerate(SERIES, start=1)},
}

_SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.titlepad": 12,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.7,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 9,
}


def places_of(plots: Iterable[Plot]) -> dict[str, int]:
    """The place in the palette of every name in plots that are read together.

    A name has one colour in all of them. Two names share a colour only when there are more names
    than colours, and then never two names of one plot, unless it has that many itself.
    """
    together = [_names(plot) for plot in plots]
    places: dict[str, int] = {}
    for names in together:
        for name in names:
            if name in places:
                continue
            others = {other for with_it in together if name in with_it for other in with_it}
            beside = [place for other, place in places.items() if other in others]
            used = list(places.values())
            places[name] = min(
                range(len(SERIES)),
                key=lambda place: (beside.count(place), used.count(place), place),
            )
    return places


def _names(plot: Plot) -> list[str]:
    return [curve.label for curve in plot.curves if curve.emphasis and curve.label]


def save(plot: Plot, directory: Path, places: Mapping[str, int] | None = None) -> list[Path]:
    """Write `<name>.png`, `.svg` and `.csv` of a plot; the same plot gives the same bytes.

    The CSV table has a row a point: curve, x (a category by its name) and y, empty for a gap.

    Args:
        plot: What to draw.
        directory: Where to.
        places: From `places_of`, if the plot is read together with others.

    Raises:
        RunError: The folder cannot be written.
    """
    paths = [directory / f"{plot.name}.png", directory / f"{plot.name}.svg"]
    with style(plot.name):
        figure_ = figure(plot, places)
        for path in reversed(paths):
            save_figure(figure_, path)
            # Both are laid out as text is in an SVG, and once: it takes longer than to draw.
            figure_.set_layout_engine("none")
    table = directory / f"{plot.name}.csv"
    files.write_text(table, table_text(plot))
    return [*paths, table]


def table_text(plot: Plot) -> str:
    """The points of a plot as CSV text, with the labels of its axes as headings."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["curve", plot.x_label or "x", plot.y_label or "y"])
    for curve in plot.curves:
        for x, y in zip(curve.x, curve.y, strict=True):
            where = plot.categories[int(x)] if plot.categories else f"{x:.10g}"
            rows.writerow([curve.label, where, "" if math.isnan(y) else f"{y:.10g}"])
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class Inline:
    """A plot for an HTML page.

    Attributes:
        svg: The picture as text, in the page's theme colours, without its title.
        points: Where its points lie, for a reader who points at them: `x_label`, `y_label` and
            `points`, each the name of its curve, its x and y as text, and its place in the view box
            of the picture.
    """

    svg: str
    points: dict[str, Any]


def inline(plot: Plot, places: Mapping[str, int] | None = None) -> Inline:
    """The plot as it stands in a page."""
    with style(plot.name):
        drawn = figure(plot, places, with_title=False)
        svg = inline_figure(drawn, plot.name, plot.title)
        points = [point for curve in plot.curves for point in _points(drawn, plot, curve)]
    return Inline(svg, {"x_label": plot.x_label, "y_label": plot.y_label, "points": points})


_POINTS_MAX = 200
"""Of a curve; more lie closer together than a reader can point. Chosen by us."""
_POINTS_PER_INCH = 72.0


def _points(drawn: Figure, plot: Plot, curve: Curve) -> list[list[Any]]:
    """Name, x, y and place of at most `_POINTS_MAX` points, evenly from the first to the last."""
    axes = drawn.axes[0]
    bars = [each for each in plot.curves if each.style == "bars"]
    stacked = [each for each in plot.curves if each.style == "stacked"]
    step = max(1, -(-len(curve.x) // _POINTS_MAX))
    scale = _POINTS_PER_INCH / drawn.dpi
    points = []
    for place in range(0, len(curve.x), step):
        x, y = float(curve.x[place]), float(curve.y[place])
        at_x, at_y = x, y
        if curve.style == "bars":
            at_x += _bar_offset(bars.index(curve), len(bars))
        elif curve.style == "stacked":
            below = stacked[: stacked.index(curve)]
            at_y = y / 2 + sum(
                other_y
                for each in below
                for other_x, other_y in zip(each.x, each.y, strict=True)
                if other_x == x
            )
        right, up = axes.transData.transform((at_x, at_y))
        if not (math.isfinite(right) and math.isfinite(up)):
            continue
        across, down = right * scale, _HEIGHT_INCHES * _POINTS_PER_INCH - up * scale
        points.append([curve.label, *_texts(plot, x, y), round(across, 1), round(down, 1)])
    return points


def _texts(plot: Plot, x: float, y: float) -> tuple[str, str]:
    return (plot.categories[int(x)] if plot.categories else f"{x:.5g}", f"{y:.5g}")


def values_of(plot: Plot, most: int = 60) -> list[tuple[str, str, str]]:
    """Curve, x and y of every point as text, of a plot with few; empty of one with more."""
    if sum(len(curve.x) for curve in plot.curves) > most:
        return []
    return [
        (curve.label, *_texts(plot, x, y))
        for curve in plot.curves
        for x, y in zip(curve.x, curve.y, strict=True)
        if not math.isnan(y)
    ]


def inline_figure(figure: Figure, name: str, title: str) -> str:
    """A figure as SVG text for an HTML page, in the page's theme colours.

    Args:
        figure: What to write.
        name: Put before every identifier, so that several pictures can share a page.
        title: What the picture is called where it cannot be seen.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]
    for colour, variable in _THEME_VARIABLES.items():
        text = re.sub(re.escape(colour), variable, text, flags=re.IGNORECASE)
    # Points fix the size; a page wants the picture as wide as its column.
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = _own_identifiers(text, name)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"font: ([^;'\"]*)'DejaVu Sans'[^;\"]*", r"font: \1var(--sans)", text)
    label = f'role="img" aria-label="{_attribute(title)}"'
    return text.replace("<svg ", f"<svg {label} ", 1)


def style(name: str) -> Any:
    """A context in which matplotlib draws as agewell does; `name` fixes identifiers in an SVG."""
    import matplotlib as mpl

    # Without a salt the identifiers inside an SVG are random.
    settings: Any = _SETTINGS | {"svg.hashsalt": name}
    return mpl.rc_context(settings)


def figure(plot: Plot, places: Mapping[str, int] | None, *, with_title: bool = True) -> Figure:
    """The plot as a figure, drawn within `style`."""
    from agewell.report.shown_figure import ShownFigure

    drawn = ShownFigure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained")
    axes: Axes = drawn.add_subplot()
    bars = [curve for curve in plot.curves if curve.style == "bars"]
    heights: dict[float, float] = {}
    for place, (curve, colour, dash) in enumerate(_coloured(plot, places)):
        if curve.style == "bars":
            _draw_bars(axes, curve, colour, bars.index(curve), len(bars), plot.y_scale == "linear")
        elif curve.style == "stacked":
            _draw_stacked(axes, curve, colour, heights)
        else:
            _draw_line(axes, curve, colour, dash, zorder=3 + place)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    if with_title:
        axes.set_title(plot.title)
    _scale(axes, plot)
    if len(plot.curves) > 1 or plot.curves[0].label:
        drawn.legend(
            *axes.get_legend_handles_labels(),
            loc="outside lower left",
            ncols=_legend_columns([curve.label for curve in plot.curves]),
            borderaxespad=0.3,
        )
    return drawn


def _coloured(plot: Plot, places: Mapping[str, int] | None) -> list[tuple[Curve, str, Any]]:
    """Every curve with its colour and dash; baselines take no colour from the others."""
    places = places_of([plot]) if places is None else places
    coloured: list[tuple[Curve, str, Any]] = []
    for curve in plot.curves:
        colour, dash = (ALONE if curve.emphasis else QUIET), _DASHES[0]
        if curve.emphasis and curve.label:
            place = places[curve.label]
            colour, dash = SERIES[place], _DASHES[place % len(_DASHES)]
        coloured.append((curve, colour, (0, (4, 2)) if curve.dashed else dash))
    return coloured


def _draw_line(axes: Axes, curve: Curve, colour: str, dash: Any, zorder: int) -> None:
    style: dict[str, Any] = {"color": colour, "label": curve.label, "zorder": zorder}
    if curve.style == "points":
        axes.plot(curve.x, curve.y, linestyle="none", marker="o", markersize=4, **style)
    elif curve.style == "steps":
        axes.step(curve.x, curve.y, where="post", linestyle=dash, **style)
    else:
        few = len(curve.x) <= _MARKED_POINTS_MAX
        axes.plot(
            curve.x, curve.y, linestyle=dash, marker="o" if few else None, markersize=3.5, **style
        )


def _draw_bars(axes: Axes, curve: Curve, colour: str, place: int, count: int, write: bool) -> None:
    width = _BARS_WIDTH / count
    centres = [x + _bar_offset(place, count) for x in curve.x]
    drawn = axes.bar(
        centres, curve.y, width=width * 0.92, color=colour, label=curve.label, zorder=3
    )
    if write and len(curve.x) * count <= _BAR_LABELS_MAX:
        labels = ["" if math.isnan(y) else f"{y:.3g}" for y in curve.y]
        axes.bar_label(drawn, labels, padding=2, fontsize=8, color=INK)


def _bar_offset(place: int, count: int) -> float:
    """How far the middle of one bar of a group lies from the middle of the group."""
    return (place - (count - 1) / 2) * _BARS_WIDTH / count


def _draw_stacked(axes: Axes, curve: Curve, colour: str, heights: dict[float, float]) -> None:
    """Draw bars on top of `heights`, which grow by them."""
    bottoms = [heights.get(x, 0.0) for x in curve.x]
    # An edge in the colour of the paper parts neighbours that look alike in a grey print.
    axes.bar(
        curve.x,
        curve.y,
        width=0.6,
        bottom=bottoms,
        color=colour,
        edgecolor=PAPER,
        linewidth=0.8,
        label=curve.label,
        zorder=3,
    )
    for x, y, bottom in zip(curve.x, curve.y, bottoms, strict=True):
        heights[x] = bottom + y


def _scale(axes: Axes, plot: Plot) -> None:
    axes.set_xscale(plot.x_scale)
    axes.set_yscale(plot.y_scale)
    if plot.categories:
        axes.set_xticks(range(len(plot.categories)), plot.categories)
        axes.grid(visible=False, axis="x")
    if plot.y_scale == "linear":
        lowest = min(
            (y for curve in plot.curves for y in curve.y if not math.isnan(y)), default=0.0
        )
        if plot.y_from_zero and lowest >= 0:
            axes.set_ylim(bottom=0)
        elif lowest < 0:
            axes.axhline(0, color=QUIET, linewidth=0.8, zorder=2)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, by the suffix; the same figure gives the same bytes.

    Raises:
        RunError: It cannot be written.
    """
    options: dict[str, Any] = {"format": "svg", "metadata": {"Date": None}}
    if path.suffix != ".svg":
        options = {
            "format": "png",
            "dpi": _PNG_DOTS_PER_INCH,
            "metadata": {"Software": None},
        }
    files.write_whole(path, lambda partial: figure.savefig(partial, **options))


def _own_identifiers(text: str, name: str) -> str:
    """Prefix every identifier with the plot's name, so that several pictures can share a page."""
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


_LEGEND_CHARACTERS = 92
"""Letters and line samples that a row of the legend has room for: 10.24 inches at 9 points."""
_SAMPLE_CHARACTERS = 9
"""Room of a line sample and the gaps around it, in letters."""


def _legend_columns(labels: Sequence[str]) -> int:
    """Columns of a legend, four at most, so that no row of it is wider than the picture."""
    width = max((len(label) for label in labels), default=1) + _SAMPLE_CHARACTERS
    return max(1, min(len(labels), 4, _LEGEND_CHARACTERS // width))
