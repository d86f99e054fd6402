"""Runs of the comparisons: kept as files, shown as ratios over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
SHOWN_RUNS = 4


def write(path: Path, document: dict[str, Any]) -> None:
    """Leave a run at `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    half.replace(path)


def read(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every run below `folder` with its name, oldest first."""
    return [(path.stem, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def table(runs: Sequence[tuple[str, dict[str, Any]]]) -> list[list[str]]:
    """A line a comparison: name, peer, what is measured, and the ratio of each run.

    The ratio says how many times better agewell is; of what should be the same (`=`), ours over
    theirs. A peer that was not there is a dash.
    """
    names: dict[str, tuple[str, str]] = {}
    ratios: list[dict[str, str]] = []
    for _, run in runs:
        found = {}
        for one in run["rows"]:
            sign = "=" if one["better"] == "same" else ""
            names[one["name"]] = (one["peer"], one["unit"])
            found[one["name"]] = f"{sign}{one['ratio']:.3g}"
        ratios.append(found)
    head = ["comparison", "peer", "of", *(name for name, _ in runs)]
    lines = [
        [name, peer, unit, *(found.get(name, "-") for found in ratios)]
        for name, (peer, unit) in sorted(names.items())
    ]
    return [head, *lines]


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with its columns below each other; numbers to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = 3
    return [
        "  ".join(
            cell.ljust(width) if column < texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
