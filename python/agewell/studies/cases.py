"""The runs of the study of Matthews 1999 and what is read from them.

A figure's `experiment.toml` is read as a dict, so that figures with the same settings share their
runs; what a figure varies is laid over it, curve by curve and point by point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agewell.studies.claims import rows
from agewell.studies.context import Context, Label
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

Settings = Mapping[str, Any]
"""Values by `table.key`."""
Metrics = Mapping[str, Any]
"""The metrics of one run by name."""

NEW_DATA_AND_COLLECTION = ("new_data_cost", "cleaner_cost")
"""The two shares of the overall write cost (eq. 4)."""


def run_cases(
    context: Context, experiment: str | Mapping[str, Any], cases: Mapping[Label, Settings]
) -> dict[Label, Metrics]:
    """Run an experiment in many forms, as many at once as the command may.

    Args:
        context: Of the study.
        experiment: The tables, or the figure whose `experiment.toml` has them.
        cases: Settings by label.

    Returns:
        The metrics of each case.
    """
    if isinstance(experiment, str):
        experiment = context.tables(experiment)
    found = context.run_many(experiment, cases)
    return {label: result["metrics"] for label, result in found.items()}


def run_curves(
    context: Context,
    experiment: str | Mapping[str, Any],
    curves: Mapping[str, Settings],
    axis: str,
    points: Mapping[float, Any],
) -> dict[Label, Metrics]:
    """Run every curve at every point of an axis.

    Args:
        context: Of the study.
        experiment: The tables, or the figure whose `experiment.toml` has them.
        curves: What each curve changes, by its name.
        axis: The setting that varies along a curve.
        points: The values of that setting by the number they stand for.

    Returns:
        The metrics by curve and point: `("clean", 95)`.
    """
    cases: dict[Label, Settings] = {
        (name, point): {**settings, axis: value}
        for name, settings in curves.items()
        for point, value in points.items()
    }
    return run_cases(context, experiment, cases)


def utilizations(*percent: float) -> dict[float, float]:
    """Utilizations by the per cent that they are."""
    return {each: round(each / 100, 6) for each in percent}


def sizes_kib(*kib: int) -> dict[float, str]:
    """Segment sizes by KiB."""
    return {float(each): f"{each} KiB" for each in kib}


def key(workload: str, *parts: str | float) -> str:
    """The key of a value in `expected.toml`: `random/clean_99_5`."""
    words = [part if isinstance(part, str) else f"{part:g}".replace(".", "_") for part in parts]
    return f"{workload}/{'_'.join(words)}"


def costs(workload: str, found: Mapping[Label, Metrics]) -> dict[str, float | None]:
    """Overall write cost of every run, and what collection has of it, by key."""
    values: dict[str, float | None] = {}
    for label, metrics in found.items():
        values[key(workload, *label)] = metrics["overall_write_cost"]
        values[key(workload, *label, "collection")] = metrics["cleaner_cost"]
    return values


def column(
    found: Mapping[Label, Metrics], curve: str, metric: str = "overall_write_cost"
) -> tuple[list[float], list[float]]:
    """One metric along a curve: the points and its values."""
    chosen = [(float(label[1]), run[metric]) for label, run in found.items() if label[0] == curve]
    return [point for point, _ in chosen], [float(value) for _, value in chosen]


def line(
    found: Mapping[Label, Metrics], curve: str, label: str, metric: str = "overall_write_cost"
) -> Curve:
    """One curve of a plot."""
    points, values = column(found, curve, metric)
    return Curve(label, points, values)


def printed(label: str, x: float, y: float) -> Curve:
    """A number that the paper prints, as a point."""
    return Curve(label, [x], [y], style="points", emphasis=False)


def reduction_pct(before: float, after: float) -> float:
    """By how much a cost falls, in per cent."""
    return 100 * (1 - after / before)


def crossing_pct(points: Sequence[float], left: Sequence[float], right: Sequence[float]) -> float:
    """Where a curve that is below another at first passes it, by the line between two points.

    Returns:
        The point; the first one if it is above from the start, the last one if it never passes.
    """
    gaps = [a - b for a, b in zip(left, right, strict=True)]
    for place, gap in enumerate(gaps):
        if gap >= 0:
            if place == 0:
                return points[0]
            share = -gaps[place - 1] / (gap - gaps[place - 1])
            return points[place - 1] + share * (points[place] - points[place - 1])
    return points[-1]


def result(
    context: Context,
    figure: str,
    values: Mapping[str, float | None],
    plots: Sequence[Plot],
    missing: Mapping[str, str] | None = None,
) -> FigureResult:
    """The rows of a figure's `expected.toml` with its plots and notes."""
    expected = context.expected(figure)
    judged = rows(expected, values, missing or {})
    return FigureResult(rows=judged, plots=plots, notes=expected.get("notes", []))
