"""A self-contained HTML page: sections, tables and plots, in one file that needs no network.

What is on the page is said with the values below; how it looks is in `templates/page.html`. Style,
script and pictures are inside the file. Colours follow the reader's light or dark setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agewell import files
from agewell.report import drawing
from agewell.values.plot import Plot
from agewell.version import __version__

_TEMPLATES = Path(__file__).resolve().parent / "templates"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: What stands in it.
        tone: `good`, `bad`, `quiet`, or empty; shown by colour, beside what the text says.
        note: A second, smaller line.
    """

    text: str
    tone: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table.

    Attributes:
        columns: Headings.
        rows: Cells; every row as long as `columns`.
        numeric: Indices of the columns that hold numbers; they are right-aligned.
        caption: A sentence above it.
        folded: If not empty, the table stands after the plots and unfolds on a click on this text.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: frozenset[int] = frozenset()
    caption: str = ""
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Highlight:
    """One large figure at the top: `-38.2 %`, `mean seek distance`, `119 to 53 cylinders`."""

    value: str
    label: str
    detail: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is more than one plot, as SVG text of `drawing.inline_figure`."""

    name: str
    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with its heading.

    Attributes:
        identifier: Anchor for links, lower case with hyphens.
        title: Heading.
        short: What the list of sections at the top says; the title by default.
        paragraphs: Text before the rest.
        highlights: Large figures.
        tables: Tables, before the plots unless folded.
        plots: Plots.
        pictures: Pictures as wide as the page, before the plots.
        listing: Preformatted text that can be unfolded, with its heading; None for none.
    """

    identifier: str
    title: str
    short: str = ""
    paragraphs: Sequence[str] = ()
    highlights: Sequence[Highlight] = ()
    tables: Sequence[PageTable] = ()
    plots: Sequence[Plot] = ()
    pictures: Sequence[Picture] = ()
    listing: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page."""

    title: str
    subtitle: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = field(default=())


def values_table(plot: Plot) -> PageTable | None:
    """The points of a plot that has few, for those who read rather than look."""
    values = drawing.values_of(plot)
    if not values:
        return None
    named = any(curve for curve, _, _ in values)
    columns = ("curve", plot.x_label or "x", plot.y_label or "y")[0 if named else 1 :]
    rows = [[Cell(text) for text in each[0 if named else 1 :]] for each in values]
    return PageTable(columns, rows, frozenset({len(columns) - 1}))


def render(page: Page) -> str:
    """The page as HTML text; the same page gives the same text."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    text: str = template.render(
        page=page,
        series_colours=drawing.SERIES,
        alone_colour=drawing.ALONE,
        inline=partial(drawing.inline, places=_places(page)),
        values_table=values_table,
        version=__version__,
    )
    # Names of files are any bytes; a page is UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def write(page: Page, path: Path) -> list[Path]:
    """Write a page, and beside it every plot as PNG, SVG and CSV.

    Args:
        page: What to write.
        path: The HTML file; plots go to the folder `plots` beside it.

    Returns:
        The files written, the page first.

    Raises:
        RunError: A file cannot be written.
    """
    written = [path]
    places = _places(page)
    for section in page.sections:
        for plot in section.plots:
            written += drawing.save(plot, path.parent / "plots", places)
    files.write_text(path, render(page))
    return written


def _places(page: Page) -> dict[str, int]:
    """One colour for one name on the whole page."""
    return drawing.places_of(plot for section in page.sections for plot in section.plots)
