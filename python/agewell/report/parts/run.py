"""Runs of `agewell run`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from agewell.experiments.run_result import Result
from agewell.report import run_report
from agewell.report.part import Part


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
        verdict=(),
        sections=page.sections,
        facts=[
            *page.facts,
            *((f"{name}: again" if len(names) > 1 else "again", _again(name)) for name in names),
        ],
    )


def _again(name: str) -> str:
    return f"agewell run {shlex.quote(f'{name}/result.json')} --out FOLDER"
