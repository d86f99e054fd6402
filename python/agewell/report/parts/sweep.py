"""A sweep: every metric over what varies."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agewell.errors import InputError
from agewell.experiments.configuration import read_json
from agewell.files import parquet_tables
from agewell.report.page import Cell, PageTable, Section
from agewell.report.part import Part
from agewell.runs.sweeping import DESCRIPTION_FILE, SHOWN_METRICS, TABLE_FILE
from agewell.values.metrics import describe, mechanisms, of_row, show
from agewell.values.plot import Curve, Plot

_VERDICTS_MAX = 3


def part(folder: Path) -> Part:
    """A sweep that has ended.

    Raises:
        InputError: It has not, or its files are damaged.
    """
    if not (folder / TABLE_FILE).is_file():
        raise InputError(
            f"{folder}: the sweep has not ended, there is no {TABLE_FILE}; the command that began "
            "it goes on with it"
        )
    description = read_json(folder / DESCRIPTION_FILE, "the description of a sweep")
    table = parquet_tables.read(folder / TABLE_FILE)
    axes = list(description["axes"])
    rows = table.to_pylist()
    made = [row for row in rows if row["error"] is None]
    shown = [
        name
        for name in SHOWN_METRICS
        if any(row.get(f"metrics.{name}") is not None for row in made)
    ]
    verdict = [_extremes(made, axes, name) for name in shown]
    failed = len(rows) - len(made)
    if failed:
        verdict.insert(
            0, f"{failed} of {len(rows)} runs failed; the same command tries them again."
        )
    return Part(
        kind="sweep",
        title=f"{len(rows)} runs over {' and '.join(axes)}",
        subtitle=folder.resolve().name,
        verdict=[each for each in verdict if each][:_VERDICTS_MAX],
        sections=[
            Section(
                identifier="runs",
                title="Runs",
                tables=[_table(rows, axes, shown)],
                plots=[_plot(made, axes, name) for name in shown],
            )
        ],
        facts=[
            ("agewell", f"{description['version']}, build {description['build']}"),
            (
                "one run again",
                f"agewell run {shlex.quote(folder.resolve().name)}/runs/RUN/result.json",
            ),
        ],
    )


def _extremes(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], name: str) -> str:
    """Where a metric is least and greatest; empty where it is the same everywhere."""
    known = [row for row in rows if row[f"metrics.{name}"] is not None]
    least = min(known, key=lambda row: row[f"metrics.{name}"])
    most = max(known, key=lambda row: row[f"metrics.{name}"])
    low, high = (show(name, row[f"metrics.{name}"]) for row in (least, most))
    if low == high:
        return ""
    metric = describe(name)
    unit = f" {metric.unit}" if metric.unit else ""
    label = metric.label[0].upper() + metric.label[1:]
    return f"{label}: {low}{unit} at {_where(least, axes)}; {high}{unit} at {_where(most, axes)}."


def _where(row: Mapping[str, Any], axes: Sequence[str]) -> str:
    return ", ".join(f"{axis} {row[axis]}" for axis in axes)


def _table(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], shown: Sequence[str]
) -> PageTable:
    of_logs = any(mechanisms(of_row(dict(row))) for row in rows)
    any_failed = any(row["error"] is not None for row in rows)
    cells = [
        [
            *(Cell(str(row[axis])) for axis in axes),
            *(Cell(_text(name, row.get(f"metrics.{name}"))) for name in shown),
            *([Cell(mechanisms(of_row(dict(row))) or "-")] if of_logs else []),
            *([Cell(row["error"] or "", "bad")] if any_failed else []),
            Cell(row["run"]),
        ]
        for row in rows
    ]
    numbers = range(len(axes), len(axes) + len(shown))
    columns = (
        *axes,
        *(_heading(name) for name in shown),
        *([describe("mechanisms").label] if of_logs else []),
        *(["error"] if any_failed else []),
        "run",
    )
    return PageTable(columns, cells, frozenset(numbers))


def _text(name: str, value: Any) -> str:
    return "-" if value is None else show(name, value)


def _heading(name: str) -> str:
    metric = describe(name)
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label


def _plot(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], name: str) -> Plot:
    """A metric over the axis with most values, a curve for each choice of the others."""
    along = max(axes, key=lambda axis: len({str(row[axis]) for row in rows}))
    others = [axis for axis in axes if axis != along]
    values = list(dict.fromkeys(row[along] for row in rows))
    numeric = all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        value = row[f"metrics.{name}"]
        if value is not None:
            x = float(row[along]) if numeric else float(values.index(row[along]))
            label = ", ".join(str(row[axis]) for axis in others)
            curves.setdefault(label, []).append((x, float(value)))
    metric = describe(name)
    return Plot(
        name=name.replace("_", "-"),
        title=metric.label[0].upper() + metric.label[1:],
        x_label=along,
        y_label=_heading(name),
        curves=[
            Curve(label, [x for x, _ in sorted(points)], [y for _, y in sorted(points)])
            for label, points in curves.items()
        ],
        caption=f"A curve for each {', '.join(others)}." if others else "",
        categories=() if numeric else [str(each) for each in values],
    )
