"""A comparison of layouts: who is robust, the heat map, and every cell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell.advice.comparing import SHOWN_METRICS
from agewell.report import drawing
from agewell.report.charts import comparison as charts
from agewell.report.page import Cell, Highlight, PageTable, Picture, Section
from agewell.report.part import Part
from agewell.values.metrics import describe, show
from agewell.values.sizes import percent


def part(document: Mapping[str, Any], path: Path) -> Part:
    """What `compare.json` says."""
    with drawing.style(charts.NAME):
        figure = charts.figure(document)
        svg = drawing.inline_figure(figure, charts.NAME, "Disk time of every layout over the best")
    first = document["robustness"][0]
    return Part(
        kind="comparison",
        title=f"{len(document['layouts'])} layouts compared",
        subtitle=_cells_text(document),
        verdict=[*_most_robust(document), *document["verdict"]],
        highlights=[_robust(first)] if first["worst_ratio"] is not None else [],
        sections=[
            Section(
                identifier="heat-map",
                title="Heat map",
                pictures=[Picture(charts.NAME, "Total disk time over that of the best", svg)],
            ),
            Section(
                identifier="robustness",
                title="Robustness",
                tables=[_robustness(document)],
            ),
            Section(
                identifier="cells",
                title="Every cell",
                tables=[_cell(cell) for cell in document["cells"]],
            ),
        ],
        facts=[
            ("agewell", f"{document['agewell_version']}, build {document['agewell_build']}"),
            ("one run again", f"agewell run {shlex.quote(str(path))}/RUN/result.json"),
        ],
    )


def _most_robust(document: Mapping[str, Any]) -> list[str]:
    """Which layout never goes far wrong."""
    first = document["robustness"][0]
    if first["worst_ratio"] is None:
        return []
    ratio = charts.ratio_text(first["worst_ratio"])
    where = _cell_text(first["worst_at"])
    return [f"{first['layout']} is the most robust: {ratio} times the best at worst ({where})."]


def _robust(each: Mapping[str, Any]) -> Highlight:
    ratio = charts.ratio_text(each["worst_ratio"])
    detail = f"{each['layout']}; geometric mean {charts.ratio_text(each['geometric_mean_ratio'])}"
    return Highlight(ratio, "times the best layout's disk time, at worst", detail)


def _cells_text(document: Mapping[str, Any]) -> str:
    names = [(each["workload"], each["device"]) for each in document["cells"]]
    return "; ".join(f"{workload} on {device}" for workload, device in dict.fromkeys(names))


def _robustness(document: Mapping[str, Any]) -> PageTable:
    words = {each["name"]: each["words"] for each in document["layouts"]}
    rows = []
    for each in document["robustness"]:
        worst, mean = each["worst_ratio"], each["geometric_mean_ratio"]
        at = each["worst_at"]
        rows.append(
            [
                Cell(each["layout"], note=words[each["layout"]]),
                Cell("-" if worst is None else charts.ratio_text(worst)),
                Cell("-" if at is None else _cell_text(at)),
                Cell("-" if mean is None else charts.ratio_text(mean)),
                Cell(f"{each['best_in']} of {each['cells']}"),
            ]
        )
    columns = ("layout", "worst ratio", "where", "geometric mean", "best in (within 1 %)")
    return PageTable(columns, rows, frozenset({1, 3, 4}))


def _cell_text(cell: Mapping[str, Any]) -> str:
    return f"{cell['workload']} on {cell['device']}, {percent(cell['utilization'])} full"


def _cell(cell: Mapping[str, Any]) -> PageTable:
    rows = [
        [
            Cell(each["layout"], note=each["cannot"] or each["run"] or ""),
            Cell("-" if each["ratio"] is None else charts.ratio_text(each["ratio"])),
            *(
                Cell("-" if each[name] is None else show(name, each[name]))
                for name in SHOWN_METRICS
            ),
        ]
        for each in sorted(cell["layouts"], key=lambda each: each["disk_seconds"] or float("inf"))
    ]
    columns = ("layout", "ratio", *(_heading(name) for name in SHOWN_METRICS))
    return PageTable(columns, rows, frozenset(range(1, len(columns))), caption=_cell_text(cell))


def _heading(name: str) -> str:
    metric = describe(name)
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label
