"""Runs of `agewell run`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from agewell.experiments.run_result import Result
from agewell.report import run_report
from agewell.report.page import Highlight
from agewell.report.part import Part
from agewell.values.metrics import describe, show


def part(results: Sequence[Result], paths: Sequence[Path]) -> Part:
    """One run, or several held against the first.

    Args:
        results: The runs.
        paths: Where each lies.
    """
    names = run_report.names_of(paths)
    page = run_report.page_of(results, names)
    return Part(
        kind="run",
        title=page.title,
        subtitle=page.subtitle,
        verdict=_verdict(results, names),
        highlights=_highlights(results, names),
        sections=page.sections,
        facts=[
            *page.facts,
            *((f"{name}: again" if len(names) > 1 else "again", _again(name)) for name in names),
        ],
    )


def _again(name: str) -> str:
    return f"agewell run {shlex.quote(f'{name}/result.json')} --out FOLDER"


_COMPARED = "disk_seconds"
"""What runs of layouts are held against each other by; other runs have their own changes."""


def _compared(results: Sequence[Result]) -> list[float]:
    """Disk time of each run of a layout; empty if there is one alone, or one of something else."""
    values = [result.metrics.get(_COMPARED) for result in results if result.is_of_a_layout]
    if len(results) == 1 or len(values) < len(results) or not all(values):
        return []
    return [float(value or 0) for value in values]


def _verdict(results: Sequence[Result], names: Sequence[str]) -> list[str]:
    values = _compared(results)
    metric = describe(_COMPARED)
    return [
        f"{name} takes {show(_COMPARED, value)} {metric.unit} of disk time, {names[0]} "
        f"{show(_COMPARED, values[0])}: {100 * (value / values[0] - 1):+.1f} %."
        for name, value in list(zip(names, values, strict=False))[1:]
    ]


def _highlights(results: Sequence[Result], names: Sequence[str]) -> list[Highlight]:
    values = _compared(results)
    return [
        Highlight(
            f"{100 * (value / values[0] - 1):+.1f} %",
            f"disk time, {name}",
            f"against {names[0]}",
            "good" if value < values[0] else "bad" if value > values[0] else "",
        )
        for name, value in list(zip(names, values, strict=False))[1:]
    ]
