"""Documents about published figures."""

from typing import TypedDict


class CurveOfPlot(TypedDict):
    """One curve of a plot.

    Attributes:
        label: What the legend says.
        x: Horizontal positions; for bars over `Plot.categories` the indices 0, 1, 2, and so
            on.
        y: Heights, one per entry of `x`. A NaN leaves a gap.
        style: How the points are joined. `steps` holds each value until the next `x`;
            `stacked` bars stand on those of the stacked curves before.
        dashed: Draw the line dashed, for a published curve beside ours.
        emphasis: False draws the curve in the quiet grey of a baseline.
    """

    label: str
    x: list[float]
    y: list[float]
    style: str
    dashed: bool
    emphasis: bool


class PlotOfFigure(TypedDict):
    """One plot.

    Attributes:
        name: File name without extension, for example `figure-06`; lower case, digits and
            hyphens.
        title: One line above the picture.
        x_label: Horizontal axis with its unit.
        y_label: Vertical axis with its unit.
        curves: The series, in legend order.
        caption: What the reader should see in it, a sentence or two.
        x_scale: Linear or logarithmic horizontal axis.
        y_scale: Linear or logarithmic vertical axis.
        categories: Labels of the positions 0, 1, 2, and so on, for bars and for discrete
            settings.
        y_from_zero: Start a linear vertical axis at zero, so that ratios can be read off.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: list[CurveOfPlot]
    caption: str
    x_scale: str
    y_scale: str
    categories: list[str]
    y_from_zero: bool


class Figure(TypedDict):
    """One figure, without its numbers.

    Attributes:
        paper_name: Name of the paper.
        figure: Name of the figure.
        title: What it shows.
        notes: What a reader should know, in sentences.
        plots: Its plots.
    """

    paper_name: str
    figure: str
    title: str
    notes: list[str]
    plots: list[PlotOfFigure]


class Row(TypedDict):
    """One number of a figure.

    Attributes:
        paper_name: Name of the paper.
        figure: Name of the figure.
        what: The quantity, with the workload and device it is for: `mean seek distance,
            hplajw disk 0, shuffled`.
        paper: The published value as printed, with its sign but without the unit; None if
            there is none.
        ours: Our value, in the same unit.
        unit: `cylinders`, `ms`, `%`, and so on; empty for a count or a yes/no.
        tolerance: The test that decided the verdict, in words: `within 20 %`, `same sign`,
            `50 to 150`.
        verdict: The outcome.
        why: A sentence; where ours differs it says why.
    """

    paper_name: str
    figure: str
    what: str
    paper: float | str | None
    ours: float | str | None
    unit: str
    tolerance: str
    verdict: str
    why: str


class Reproduce(TypedDict):
    """Published figures computed again, beside the paper's.

    Attributes:
        agewell_version: Version of agewell that made it.
        agewell_build: Build of agewell that made it.
        papers: What each paper is, by name.
        figures: The figures that were asked for.
        rows: Their numbers, ours beside the paper's.
    """

    agewell_version: str
    agewell_build: str
    papers: dict[str, dict[str, str]]
    figures: list[Figure]
    rows: list[Row]


class FigureOfPaper(TypedDict):
    """A figure or table that a study can reproduce.

    Attributes:
        name: The name on the command line and of the folder: `figure-06`, `table-04`.
        title: What it shows, one line.
        inputs: File names of the traces it needs that are not part of the repository.
    """

    name: str
    title: str
    inputs: list[str]


class Paper(TypedDict):
    """The figures of one paper.

    Attributes:
        name: Its name on the command line and of its folder of experiments.
        title: What it is about, one line.
        citation: The paper.
        figures: Its figures.
    """

    name: str
    title: str
    citation: str
    figures: list[FigureOfPaper]


class ReproducePapers(TypedDict):
    """The papers and figures that can be computed again.

    Attributes:
        papers: The papers.
    """

    papers: list[Paper]
