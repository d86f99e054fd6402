"""Advice on a layout: what to choose, what it saves, and what was tried."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell.advice.advising import disk_time_plot
from agewell.experiments.experiment_file import to_toml
from agewell.report.page import Cell, Highlight, PageTable, Section
from agewell.report.part import Part
from agewell.values.sizes import percent


def part(document: Mapping[str, Any], path: Path) -> Part:
    """What `advice.json` says."""
    recommended = document["recommended"]
    where = f"{document['workload']} on {document['device']}"
    shuffling, installable = document["shuffling"], document["installable"]
    nearest = f"Nearest to install: {installable['name']}, which {installable['likeness']}."
    if installable["command"]:
        nearest += f" To make one: {installable['command']}"
    return Part(
        kind="advice",
        title=f"Advice for {where}",
        subtitle=f"{percent(document['utilization'])} full",
        verdict=[*document["advice"], shuffling["advice"], nearest],
        highlights=[
            # The least first: what is gained at any rate.
            _saved(each)
            for each in sorted(document["against"], key=lambda each: each["saved_pct"])
        ],
        sections=[
            Section(
                identifier="tried",
                title="What was tried",
                plots=[disk_time_plot(document)],
                tables=[*_against(document), *(_step(each) for each in document["steps"])],
                listing=("The recommended experiment", to_toml(recommended["config"])),
            )
        ],
        facts=[
            ("agewell", f"{document['agewell_version']}, build {document['agewell_build']}"),
            ("recommended again", f"agewell run {shlex.quote(str(path / recommended['file']))}"),
        ],
    )


def _saved(each: Mapping[str, Any]) -> Highlight:
    saved = each["saved_pct"]
    value = f"{-saved:+.1f} %"
    label = f"disk time against {each['baseline']['what']}"
    return Highlight(value, label, tone="good" if saved > 0 else "bad" if saved < 0 else "")


def _against(document: Mapping[str, Any]) -> list[PageTable]:
    if not document["against"]:
        return []
    shares = list(document["against"][0]["saved_pct_by_utilization"])
    rows = [
        [
            Cell(each["baseline"]["what"]),
            *(_signed(each["saved_pct_by_utilization"][share]) for share in shares),
        ]
        for each in document["against"]
    ]
    columns = ("disk time saved against (%)", *(f"{percent(float(each))} full" for each in shares))
    return [PageTable(columns, rows, frozenset(range(1, len(columns))))]


def _signed(value: float | None) -> Cell:
    if value is None:
        return Cell("-")
    return Cell(f"{value:+.1f}", "good" if value > 0 else "bad" if value < 0 else "")


def _step(step: Mapping[str, Any]) -> PageTable:
    rows = [
        [
            Cell(each["what"], note=each["cannot"] or ""),
            Cell("-" if each["disk_seconds"] is None else f"{each['disk_seconds']:,.2f}"),
            Cell("yes" if each["what"] == step["chosen"] else ""),
            Cell(each["room_made_by"] or "-"),
            Cell(each["file"]),
        ]
        for each in step["tried"]
    ]
    caption = ". ".join(text for text in (step["note"], step["left_out"]) if text)
    columns = (step["question"], "disk time (s)", "chosen", "room made by", "experiment")
    return PageTable(columns, rows, frozenset({1}), caption)
