"""The plots of a file system that aged: its layout by day and by size, and how fast it then was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agewell.experiments.run_result import Result
from agewell.values.plot import Curve, Plot

_PHASES = ("create", "read", "overwrite")


def plots_of(result: Result, prefix: str) -> list[Plot]:
    """Every plot of one run that has something to show.

    Args:
        result: The run, of a file system that aged.
        prefix: Put before the name of each plot, to keep several runs apart.
    """
    plots = [
        scores_plot(f"{prefix}layout-score", [result], [""]),
        sizes_plot(f"{prefix}layout-by-size", [result], [""]),
        _throughput_plot(result, prefix),
    ]
    return [plot for plot in plots if any(len(curve.x) for curve in plot.curves)]


def scores_plot(name: str, results: Sequence[Result], names: Sequence[str]) -> Plot:
    """The layout score at the end of each day, and how full the file system was."""
    curves = []
    for result, label in zip(results, names, strict=True):
        days = [day + 1 for day in result.series["day"].to_pylist()]
        scores = _numbers(result.series["layout_score"].to_pylist())
        curves.append(Curve(label or "layout score", days, scores))
    if len(results) == 1 and curves[0].x:
        used = _numbers(results[0].series["utilization"].to_pylist())
        curves.append(Curve("in use, share", curves[0].x, used, emphasis=False))
    return Plot(
        name=name,
        title="Layout score by day",
        x_label="day",
        y_label="aggregate layout score",
        curves=curves,
        caption="The share of blocks that lie right behind their predecessor.",
    )


def sizes_plot(name: str, results: Sequence[Result], names: Sequence[str]) -> Plot:
    """The layout score of the files of each size, at the end."""
    curves = []
    for result, label in zip(results, names, strict=True):
        bins: Sequence[Mapping[str, Any]] = result.document["score"]["layout"]["by_size"]
        scored = [each for each in bins if each["layout_score"] is not None]
        blocks = [each["blocks_max"] for each in scored]
        curves.append(
            Curve(label or "layout score", blocks, [each["layout_score"] for each in scored])
        )
    return Plot(
        name=name,
        title="Layout score by size of file",
        x_label="size of file, blocks",
        y_label="layout score",
        curves=curves,
        x_scale="log",
    )


def _throughput_plot(result: Result, prefix: str) -> Plot:
    rows: Sequence[Mapping[str, Any]] = result.document["sequential"]
    sizes = [row["file_bytes"] / 1024 for row in rows]
    curves = [
        Curve(phase, sizes, [float(row[f"{phase}_mb_per_s"]) for row in rows]) for phase in _PHASES
    ]
    return Plot(
        name=f"{prefix}throughput",
        title="Throughput by size of file",
        x_label="size of each file, KiB",
        y_label="MB/s",
        curves=curves,
        x_scale="log",
        caption="Files made, read and overwritten on the file system as it lay in the end.",
    )


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else float(value) for value in values]
