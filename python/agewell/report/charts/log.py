"""The plots of a log-structured run: what writing cost as the run went on, and where time went."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from agewell.experiments.run_result import Result
from agewell.values.plot import Curve, Plot

PURPOSES = {
    "new_data_seconds": "new data",
    "thread_seconds": "new, into holes",
    "collect_read_seconds": "reading victims",
    "collect_write_seconds": "cleaned blocks",
    "plug_seconds": "plugged blocks",
    "header_seconds": "headers",
}
"""Disk time that writing causes, by purpose; reads of users are apart, as in the write cost."""

_MECHANISMS = {
    "clean": "cleaning",
    "plug": "plugging",
    "thread": "threading",
    "matthews-1999": "the rule of 1999",
}

FloatArray = npt.NDArray[np.float64]


def plots_of(result: Result, prefix: str) -> list[Plot]:
    """Every plot of one run that has something to show.

    Args:
        result: The run, of a log or another layout of blocks.
        prefix: Put before the name of each plot, to keep several runs apart.
    """
    course = _cost_plot if has_costs(result) else _course_plot
    plots = [course(result, prefix), purposes_plot(f"{prefix}disk-time", [result], [""])]
    return [plot for plot in plots if any(len(curve.x) for curve in plot.curves)]


def purposes_plot(name: str, results: Sequence[Result], names: Sequence[str]) -> Plot:
    """Disk time that writing caused, by purpose: a stack a run.

    Args:
        name: File name of the plot.
        results: Runs, all of logs.
        names: What each is called; one empty name for a single run.
    """
    places = list(range(len(results)))
    curves = []
    for metric, label in PURPOSES.items():
        seconds = [float(result.metrics.get(metric) or 0.0) for result in results]
        if any(seconds):
            curves.append(Curve(label, places, seconds, style="stacked"))
    return Plot(
        name=name,
        title="Disk time by purpose",
        x_label="",
        y_label="disk time (s)",
        curves=curves or [Curve("", [], [])],
        caption="What writing cost the disk; what users read is not in it.",
        categories=[_broken(name) for name in names] if len(results) > 1 else ["this run"],
    )


def shares_plot(name: str, results: Sequence[Result], names: Sequence[str]) -> Plot:
    """Overall write cost of several runs, new data and collection on top of one another."""
    parts = (("new_data_cost", "new data"), ("cleaner_cost", "collection"))
    places = list(range(len(results)))
    return Plot(
        name=name,
        title="Overall write cost",
        x_label="",
        y_label="overall write cost",
        curves=[
            Curve(
                label,
                places,
                [float(result.metrics.get(metric) or 0.0) for result in results],
                style="stacked",
            )
            for metric, label in parts
        ],
        caption="Disk time of all writing over the time to stream the new data (eq. 4).",
        categories=[_broken(name) for name in names],
    )


def costs_plot(name: str, results: Sequence[Result], names: Sequence[str]) -> Plot:
    """Overall write cost of several runs as they went on, a curve a run."""
    unit, label = _block_unit(
        max((_written(result)[-1] for result in results if has_costs(result)), default=0.0)
    )
    return Plot(
        name=name,
        title="Overall write cost as the run goes on",
        x_label=label,
        y_label="overall write cost",
        curves=[
            Curve(
                run,
                (_written(result) / unit).tolist(),
                _held(_column(result, "overall_write_cost")),
                style="steps",
            )
            for result, run in zip(results, names, strict=True)
            if has_costs(result)
        ],
        caption="Each step is an interval of new blocks.",
    )


def has_costs(result: Result) -> bool:
    """Whether a run has costs by interval, which only a log's has."""
    return "overall_write_cost" in result.series.column_names


def _course_plot(result: Result, prefix: str) -> Plot:
    """Disk time over what users transferred, reads beside all of it."""
    megabytes = (_column(result, "user_bytes") / 1e6).tolist()
    parts = (("all of it", "disk_ns"), ("of it, reads", "read_ns"))
    return Plot(
        name=f"{prefix}disk-time-course",
        title="Disk time as the run goes on",
        x_label="transferred for users (MB)",
        y_label="disk time (s)",
        curves=[
            Curve(label, megabytes, (_column(result, name) / 1e9).tolist()) for label, name in parts
        ],
        caption="Where the curve is steep the disk works long for little.",
    )


def _cost_plot(result: Result, prefix: str) -> Plot:
    """Costs by interval; the curve of the overall cost changes colour with the mechanism."""
    written = _written(result)
    unit, label = _block_unit(float(written[-1]))
    positions = (written / unit).tolist()
    overall = _column(result, "overall_write_cost")
    mechanisms = result.series["mechanism"].to_pylist()
    curves = [
        Curve(
            "of it, new data",
            positions,
            _held(_column(result, "new_data_cost")),
            style="steps",
            emphasis=False,
        )
    ]
    for mechanism in dict.fromkeys(mechanisms):
        used = np.array([each == mechanism for each in mechanisms])
        curves.append(
            Curve(
                f"overall, {_MECHANISMS.get(mechanism, mechanism)}",
                positions,
                _held(np.where(used, overall, math.nan)),
                style="steps",
            )
        )
    if not mechanisms:
        curves = [Curve("", [], [])]
    return Plot(
        name=f"{prefix}write-cost",
        title="Write cost as the run goes on",
        x_label=label,
        y_label="write cost",
        curves=curves,
        caption=(
            "Disk time over the time to stream the new data, by interval; the overall cost in "
            "the colour of the mechanism in use."
        ),
    )


def _written(result: Result) -> FloatArray:
    """New blocks written before each interval, and at the end of the last."""
    return np.append(0.0, np.cumsum(_column(result, "new_blocks")))


def _column(result: Result, name: str) -> FloatArray:
    values: FloatArray = result.series[name].to_numpy().astype(np.float64)
    return values


def _held(values: FloatArray) -> list[float]:
    """Values with the last one repeated, so that its step has an end."""
    held: list[float] = np.append(values, values[-1:]).tolist()
    return held


def _block_unit(blocks: float) -> tuple[float, str]:
    for unit, word in ((1e6, "millions"), (1e3, "thousands")):
        if blocks > 3 * unit:
            return unit, f"new blocks written ({word})"
    return 1.0, "new blocks written"


def _broken(name: str) -> str:
    """A run's name in lines short enough to stand side by side."""
    return name.replace("/", "/\n").replace("-", "-\n") if len(name) > 12 else name  # noqa: PLR2004
