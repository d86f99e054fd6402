"""A figure that a notebook shows; matplotlib's own is a line of text, unless pyplot made it."""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure of matplotlib that shows itself where it is the value of a cell.

    Examples:
        >>> "<svg" in ShownFigure()._repr_svg_()
        True
    """

    def _repr_svg_(self) -> str:
        """The picture as text, the same for the same figure."""
        picture = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "agewell"}):
            self.savefig(picture, format="svg", metadata={"Date": None})
        return picture.getvalue()
