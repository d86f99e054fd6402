"""The state of a store, or what was found when it was checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell.report.page import Cell, Highlight, PageTable, Section
from agewell.report.part import Part
from agewell.report.parts.plain import words_of


def part(document: Mapping[str, Any], path: Path) -> Part:
    """What `agewell store info --json` or `agewell store check --json` printed."""
    made, metrics = document["store"], document["metrics"]
    findings = document.get("findings", [])
    rows = [
        [Cell(name.replace("_", " ")), Cell(words_of(value))]
        for name, value in {**metrics, **made}.items()
    ]
    tables = [PageTable(("what", "value"), rows, frozenset({1}))]
    if findings:
        found = [[Cell(each["severity"]), Cell(each["text"])] for each in findings]
        tables.insert(0, PageTable(("severity", "finding"), found))
    used = 100 * metrics["utilization"]
    return Part(
        kind="store",
        title=f"Store {made['uuid']}",
        subtitle=f"{path}; format {made['version']}",
        verdict=[_verdict(document, used)],
        highlights=[Highlight(f"{used:.1f} %", "full")],
        sections=[Section(identifier="state", title="State", tables=tables)],
    )


def _verdict(document: Mapping[str, Any], used_pct: float) -> str:
    made, metrics = document["store"], document["metrics"]
    closed = "closed in order" if made["closed_in_order"] else "not closed"
    holds = (
        f"{metrics['live_blocks']:,} blocks, {used_pct:.1f} % full, "
        f"{metrics['free_segments']:,} of {metrics['segments']:,} segments free, {closed}."
    )
    if "clean" not in document:
        return f"Holds {holds}"
    return f"{'Clean' if document['clean'] else 'Damaged'}: {holds}"
