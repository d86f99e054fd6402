"""The pictures of any result as matplotlib figures: what `Findings.plot` draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from agewell.advice.comparing import Comparison
from agewell.errors import InputError
from agewell.experiments.run_result import Result
from agewell.filesystems.scoring import Score
from agewell.report import drawing
from agewell.report.charts import comparison as comparison_charts
from agewell.report.charts import requests as request_charts
from agewell.report.charts import score as score_charts
from agewell.values.findings import Findings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(findings: Findings, name: str | None = None) -> Figure:
    """A picture of a result; the first one if no name is given.

    Raises:
        InputError: It has none of that name, or none at all.
    """
    known = _pictures(findings)
    if not known:
        raise InputError(f"{findings!r}: has no picture")
    if name is None:
        name = next(iter(known))
    if name not in known:
        raise InputError(f"'{name}' is not a picture of {findings!r}; it has {', '.join(known)}")
    with drawing.style(name):
        return known[name]()


def _pictures(findings: Findings) -> dict[str, Callable[[], Figure]]:
    if isinstance(findings, Comparison):
        return {comparison_charts.NAME: lambda: comparison_charts.figure(findings.document)}
    if isinstance(findings, Score):
        return {"score": lambda: score_charts.figure([findings])}
    plots = (
        request_charts.plots_of(findings, "") if isinstance(findings, Result) else findings.plots()
    )
    return {plot.name: partial(drawing.figure, plot, None) for plot in plots}
