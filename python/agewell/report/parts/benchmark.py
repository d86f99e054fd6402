"""Throughput of a file system, as `agewell bench` measured it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell.filesystems.benchmarking import throughput_plot
from agewell.report.page import Cell, PageTable, Section
from agewell.report.part import Part
from agewell.values.sizes import size_text


def part(document: Mapping[str, Any], path: Path) -> Part:
    """What `agewell bench --json` printed."""
    rows = [
        [
            Cell(row["phase"]),
            Cell("-" if row["file_bytes"] is None else size_text(row["file_bytes"])),
            Cell(f"{row['bytes'] / 1e6:,.1f}"),
            Cell(f"{row['mb_per_s']:,.2f}", note=f"+- {row['mb_per_s_deviation']:,.2f}"),
            Cell("-" if row["layout_score"] is None else f"{row['layout_score']:.3f}"),
        ]
        for row in document["summary"]
    ]
    fastest = max(document["summary"], key=lambda row: row["mb_per_s"])
    slowest = min(document["summary"], key=lambda row: row["mb_per_s"])
    columns = ("phase", "file", "MB", "MB/s", "layout score")
    return Part(
        kind="benchmark",
        title="Throughput by size of file",
        subtitle=str(path),
        verdict=[f"From {_rate(slowest)} to {_rate(fastest)}."],
        sections=[
            Section(
                identifier="throughput",
                title="Throughput",
                tables=[PageTable(columns, rows, frozenset({1, 2, 3, 4}))],
                plots=[throughput_plot(dict(document))],
            )
        ],
    )


def _rate(row: Mapping[str, Any]) -> str:
    of = "" if row["file_bytes"] is None else f" of files of {size_text(row['file_bytes'])}"
    return f"{row['mb_per_s']:,.2f} MB/s ({row['phase']}{of})"
