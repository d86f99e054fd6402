"""A file system that was aged, and the series of its score."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell.errors import InputError
from agewell.filesystems import aging
from agewell.report.page import Cell, Highlight, PageTable, Section
from agewell.report.part import Part

if TYPE_CHECKING:
    import pyarrow as pa


def part(document: Mapping[str, Any], _path: Path) -> Part:
    """What `agewell age --json` printed."""
    report, workload, target = document["report"], document["workload"], document["target"]
    on = target["layout"]["kind"] if "layout" in target else target.get("directory", "a directory")
    score, planned = report["layout_score"], report["planned"]
    fullest = 100 * report["utilization_max"]
    said = "no file has two blocks" if score is None else f"the layout score is {score:.3f}"
    seconds = planned["time_ns"] / 1e9
    days = f"{seconds / 86_400:,.0f} days"
    rows = [
        ("operations", f"{planned['operations']:,}"),
        ("of them done", f"{report['outcomes']['done']:,}"),
        ("without room", f"{report['outcomes']['no_space']:,}"),
        ("written", f"{planned['written_bytes'] / 1e9:,.2f} GB"),
        ("files in the end", f"{planned['live_files']:,}"),
        ("bytes in the end", f"{planned['live_bytes'] / 1e9:,.3f} GB"),
        ("fullest", f"{fullest:.1f} %"),
        ("blocks with a block before them in their file", f"{report['layout_counted']:,}"),
        ("of them right behind it", f"{report['layout_optimal']:,}"),
    ]
    return Part(
        kind="aging",
        title=f"{on}, aged by {workload['source']}",
        subtitle=f"{planned['operations']:,} operations",
        verdict=[
            f"After {days} of {workload['source']}, {fullest:.0f} % full at its fullest, {said}."
        ],
        highlights=[] if score is None else [Highlight(f"{score:.3f}", "layout score, aged")],
        sections=[
            Section(
                identifier="aging",
                title="How it was aged",
                tables=[
                    PageTable(
                        ("what", "value"),
                        [[Cell(name), Cell(text)] for name, text in rows],
                        frozenset({1}),
                    )
                ],
            )
        ],
        facts=[("workload", f"{workload['source']}, sha256 {workload['sha256']}")],
    )


def series_part(series: pa.Table, path: Path) -> Part:
    """What `agewell age --series` wrote.

    Raises:
        InputError: The table is no series of aging.
    """
    lacking = {"time_ns", "layout_score", "utilization"} - set(series.column_names)
    if lacking or not len(series):
        why = f"has no column {min(lacking)}" if lacking else "has no rows"
        raise InputError(f"{path}: is no series of 'agewell age --series': it {why}")
    last = series.slice(len(series) - 1).to_pylist()[0]
    score = last["layout_score"]
    said = "No file has two blocks" if score is None else f"The layout score is {score:.3f}"
    return Part(
        kind="aging series",
        title="Layout score over time",
        subtitle=str(path),
        verdict=[f"{said} at the end, {100 * last['utilization']:.0f} % full."],
        sections=[
            Section(identifier="series", title="Over time", plots=[aging.score_plot(series)])
        ],
    )
