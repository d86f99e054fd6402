"""A sweep: every metric over what varies."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agewell.errors import InputError
from agewell.experiments.configuration import read_json
from agewell.files import parquet_tables
from agewell.report.page import Cell, PageTable, Section
from agewell.report.part import Part
from agewell.runs.sweeping import DESCRIPTION_FILE, SHOWN_METRICS, TABLE_FILE, shown_value
from agewell.values.metrics import describe, mechanisms, of_row, show
from agewell.values.plot import Curve, Plot

_VERDICTS_MAX = 3

_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[A-Za-zµ][A-Za-z/]*)")


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
    is_cloud = bool(description.get("together"))
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
        title=f"{len(rows)} runs over {_listed(axes)}",
        subtitle=folder.resolve().name,
        verdict=[each for each in verdict if each][:_VERDICTS_MAX],
        sections=[
            Section(
                identifier="runs",
                title="Runs",
                tables=[_table(rows, axes, shown)],
                plots=[
                    plot
                    for name in shown
                    for plot in (_clouds if is_cloud else _curves)(made, axes, name)
                ],
            )
        ],
        facts=[
            ("agewell", f"{description['version']}, build {description['build']}"),
            *(_drawn(sample) for sample in description.get("samples", [])),
            (
                "one run again",
                f"agewell run {shlex.quote(folder.resolve().name)}/runs/RUN/result.json",
            ),
        ],
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


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
    bounds = (f"{low}{unit} at {_where(least, axes)}", f"{high}{unit} at {_where(most, axes)}")
    return f"{_label(name)}: {'; '.join(bounds)}."


def _where(row: Mapping[str, Any], axes: Sequence[str]) -> str:
    return ", ".join(f"{axis} {shown_value(row[axis])}" for axis in axes)


def _table(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], shown: Sequence[str]
) -> PageTable:
    of_logs = any(mechanisms(of_row(dict(row))) for row in rows)
    any_failed = any(row["error"] is not None for row in rows)
    cells = [
        [
            *(Cell(shown_value(row[axis])) for axis in axes),
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


def _label(name: str) -> str:
    label = describe(name).label
    return label[0].upper() + label[1:]


def _heading(name: str) -> str:
    metric = describe(name)
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label


def _drawn(sample: Mapping[str, Any]) -> tuple[str, str]:
    """How the points of a sample were drawn, as a fact."""
    ranges = ", ".join(
        f"{name} {'|'.join(map(str, of)) if isinstance(of, list) else of}"
        for name, of in sample["ranges"].items()
    )
    drawn = f"{sample['count']} points, {sample['method']}, seed {sample['seed']}"
    return "drawn", f"{drawn}: {ranges}"


def _clouds(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], name: str) -> list[Plot]:
    """A metric over each axis that varies, a point a run: rows and samples join no curve."""
    plots = []
    for axis in axes:
        known = [row for row in rows if None not in (row[axis], row[f"metrics.{name}"])]
        places, categories, unit = _places([row[axis] for row in known])
        if len(set(places)) > 1:
            heights = [float(row[f"metrics.{name}"]) for row in known]
            plots.append(
                Plot(
                    name=re.sub(r"[^a-z0-9]+", "-", f"{name} over {axis}".lower()),
                    title=f"{_label(name)} over {axis}",
                    x_label=f"{axis} ({unit})" if unit else axis,
                    y_label=_heading(name),
                    curves=[Curve("", places, heights, style="points")],
                    caption="A point a run.",
                    categories=categories,
                )
            )
    return plots


def _places(values: Sequence[Any]) -> tuple[list[float], list[str], str]:
    """Where values of an axis lie: numbers, or quantities of one unit, or places of categories."""
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in values):
        return [float(each) for each in values], [], ""
    quantities = [_QUANTITY.fullmatch(str(each)) for each in values]
    units = {each["unit"] if each else "" for each in quantities}
    if len(units) == 1 and "" not in units:
        return [float(each["number"]) for each in quantities if each], [], units.pop()
    categories = list(dict.fromkeys(map(str, values)))
    return [float(categories.index(str(each))) for each in values], categories, ""


def _curves(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], name: str) -> list[Plot]:
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
    plot = Plot(
        name=name.replace("_", "-"),
        title=_label(name),
        x_label=along,
        y_label=_heading(name),
        curves=[
            Curve(label, [x for x, _ in sorted(points)], [y for _, y in sorted(points)])
            for label, points in curves.items()
        ],
        caption=f"A curve for each {', '.join(others)}." if others else "",
        categories=() if numeric else [str(each) for each in values],
    )
    return [plot]
