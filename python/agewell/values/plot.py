"""Plots as plain values: what to draw is said here, `agewell.report.drawing` decides how it looks.

A `Plot` holds numbers and words only, so that a study, a report and a test can make and compare
plots without a drawing library. The same value becomes a PNG and an SVG file and the figure inside
an HTML report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Style = Literal["line", "steps", "points", "bars", "stacked"]
Scale = Literal["linear", "log"]


@dataclass(frozen=True, slots=True)
class Curve:
    """One named series of a plot.

    Attributes:
        label: What the legend says.
        x: Horizontal positions; for bars over `Plot.categories` the indices 0, 1, 2, and so on.
        y: Heights, one per entry of `x`. A NaN leaves a gap.
        style: How the points are joined. `steps` holds each value until the next `x`; `stacked`
            bars stand on those of the stacked curves before.
        dashed: Draw the line dashed, for a published curve beside ours.
        emphasis: False draws the curve in the quiet grey of a baseline.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "line"
    dashed: bool = False
    emphasis: bool = True

    def __post_init__(self) -> None:
        """Refuse a curve whose columns differ in length."""
        if len(self.x) != len(self.y):
            raise ValueError(
                f"curve '{self.label}': {len(self.x)} x values but {len(self.y)} y values"
            )


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture: axes with their units, curves, and a sentence that says what it shows.

    Attributes:
        name: File name without extension, for example `figure-06`; lower case, digits and hyphens.
        title: One line above the picture.
        x_label: Horizontal axis with its unit.
        y_label: Vertical axis with its unit.
        curves: The series, in legend order.
        caption: What the reader should see in it, a sentence or two.
        x_scale: Linear or logarithmic horizontal axis.
        y_scale: Linear or logarithmic vertical axis.
        categories: Labels of the positions 0, 1, 2, and so on, for bars and for discrete settings.
        y_from_zero: Start a linear vertical axis at zero, so that ratios can be read off.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    caption: str = ""
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    categories: Sequence[str] = field(default=())
    y_from_zero: bool = True

    def document(self) -> dict[str, Any]:
        """The plot as JSON values; a gap is null."""
        values = asdict(self)
        for curve in values["curves"]:
            curve["x"] = [float(x) for x in curve["x"]]
            curve["y"] = [None if math.isnan(y) else float(y) for y in curve["y"]]
        return {**values, "curves": list(values["curves"]), "categories": list(self.categories)}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Plot:
        """The plot that `document` wrote; what it lacks is empty."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in document.items() if name in known}
        curves = [
            Curve(
                **{
                    **curve,
                    "y": [math.nan if y is None else y for y in curve["y"]],
                }
            )
            for curve in values.pop("curves")
        ]
        return cls(**values, curves=curves)
