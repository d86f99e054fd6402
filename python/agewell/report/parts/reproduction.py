"""Published figures computed again, ours beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agewell.report.page import Cell, Highlight, PageTable, Section
from agewell.report.part import Part
from agewell.values.plot import Plot

ROWS_FILE = "rows.json"
_COLUMNS = ("what", "paper", "ours", "unit", "tolerance", "verdict")
_TONES = {
    "holds": "good",
    "differs": "bad",
    "fails": "bad",
    "information": "quiet",
    "not run": "quiet",
}
"""Of each verdict (`agewell.studies.study.Verdict`)."""


def part(document: Mapping[str, Any], _path: Path) -> Part:
    """What `rows.json` says of one paper or several."""
    count = Counter(row["verdict"] for row in document["rows"])
    papers = document["papers"]
    titles = "; ".join(each["title"] for each in papers.values())
    paper_names = [each["paper_name"] for each in document["figures"]]
    names = [f"{each['paper_name']}/{each['figure']}" for each in document["figures"]]
    return Part(
        kind="reproduction",
        title=f"{titles}: reproduced",
        subtitle="Published figures computed again, ours beside the paper's.",
        verdict=[each["citation"] for each in papers.values()],
        highlights=[
            Highlight(str(count["holds"]), "hold", tone="good"),
            Highlight(str(count["differs"]), "differ, and say why", tone="bad"),
            Highlight(str(count["fails"]), "fail", tone="bad"),
            Highlight(str(count["information"]), "shown without a verdict"),
            Highlight(str(count["not run"]), "not run"),
        ],
        sections=[
            _section(each, document["rows"], alone=len(set(paper_names)) == 1)
            for each in document["figures"]
        ],
        facts=[
            ("agewell", f"{document['agewell_version']}, build {document['agewell_build']}"),
            ("again", f"agewell reproduce {' '.join(names)}"),
        ],
    )


def _section(
    figure: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], *, alone: bool
) -> Section:
    own = (figure["paper_name"], figure["figure"])
    cells = [
        [
            Cell(row["what"], note=row["why"]),
            Cell(show_value(row["paper"])),
            Cell(show_value(row["ours"])),
            Cell(row["unit"]),
            Cell(row["tolerance"]),
            Cell(row["verdict"], tone=_TONES[row["verdict"]]),
        ]
        for row in rows
        if (row["paper_name"], row["figure"]) == own
    ]
    short = figure["figure"].replace("-", " ").capitalize()
    before = "" if alone else f"{figure['paper_name']}-"
    return Section(
        identifier=f"{before}{figure['figure']}",
        title=f"{short}: {figure['title']}",
        short=short,
        paragraphs=figure["notes"],
        tables=[PageTable(_COLUMNS, cells, frozenset({1, 2}))],
        plots=[Plot.of(each) for each in figure["plots"]],
    )


def show_value(value: float | str | None) -> str:
    """A number of a comparison: four significant digits, or the text as it is."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"  # noqa: PLR2004
