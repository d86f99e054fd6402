"""Disk time of a store on a modelled drive, and of the same updates in place.

Stores as they are formatted (segments of 1 MiB) are full by what they say that they hold. Those
that are held against simulations are full by all slots there are, of which they keep no more from
their users than they must.

Updates in place are as good as they can be: what is written between two syncs is kept, sorted and
joined, sent together to the drive's queue, and followed by one flush, as after a sync of the store.
They are not atomic, as the store's are. Nothing waits between requests. The fill does not count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from agewell.errors import InputError
from agewell.experiments.time_slices import course
from agewell.studies.cases import key, result
from agewell.studies.context import Context, Label
from agewell.studies.store import workloads
from agewell.studies.store.against_simulation import COLLECT, RESERVE_SEGMENTS, saved
from agewell.studies.store.replays import replays
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

FIGURE = "disk-time"
PERCENT = (90.0, 98.0)
OPERATIONS = ("reads", "writes", "flushes")
FORMATTED = "formatted"


def figure(context: Context) -> FigureResult:
    """Every mechanism at both utilizations under both recorded loads."""
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    missing: dict[str, str] = {}
    for name in workloads.RECORDED:
        try:
            found = _load(context, name)
        except InputError as error:
            missing[name] = str(error)
            continue
        values.update(found)
        plots.append(_plot(name, found))
    return result(context, FIGURE, values, plots, missing)


def _load(context: Context, name: str) -> dict[str, float | None]:
    load, trace = saved(context, name, as_recorded=True)
    tables = context.tables(FIGURE)
    device = tables["device"]["model"]
    path = os.path.relpath(trace.resolve(), context.experiments.resolve())
    labels: list[Label] = [(collect, percent) for collect in COLLECT for percent in PERCENT]
    options: dict[Label, dict[str, Any]] = {
        label: {
            "by": label[0],
            "segments": load.segments(float(label[1])),
            "segment_blocks": workloads.SEGMENT_BLOCKS,
            "block_bytes": workloads.BLOCK_BYTES,
            "reserve_segments": RESERVE_SEGMENTS,
            "device": device,
            "leaves_gaps": True,
        }
        for label in labels
    }
    formatted: list[Label] = [
        (FORMATTED, collect, percent) for collect in COLLECT for percent in PERCENT
    ]
    options |= {
        label: {
            "by": label[1],
            "full_percent": round(float(label[2])),
            "segment_blocks": workloads.FORMATTED_SEGMENT_BLOCKS,
            "block_bytes": workloads.BLOCK_BYTES,
            "device": device,
            "leaves_gaps": True,
        }
        for label in formatted
    }
    in_place: Label = ("in-place",)
    options[in_place] = {"by": "in-place", "device": device}
    stored = replays(context, trace, options)
    simulated = context.run_many(
        tables,
        {
            label: {
                "workload.path": path,
                "layout.collect": label[0],
                "workload.utilization": float(label[1]) / 100,
            }
            for label in labels
        },
    )
    values: dict[str, float | None] = {}
    base_s = _seconds(stored[in_place])
    for label, replayed in stored.items():
        values[key(name, *label, "seconds")] = _seconds(replayed)
        for operation in OPERATIONS:
            values[key(name, *label, operation)] = _seconds(replayed, operation)
    for label in labels:
        values[key(name, *label, "over_in_place")] = _seconds(stored[label]) / base_s
        user_bytes, disk_ns = course(simulated[label]["directory"])
        filled_ns = np.interp(load.blocks * workloads.BLOCK_BYTES, user_bytes, disk_ns)
        values[key(name, *label, "simulated")] = float(disk_ns[-1] - filled_ns) / 1e9
    for percent in PERCENT:
        single = min(_seconds(stored[collect, percent]) for collect in COLLECT[:-1])
        ours = _seconds(stored["adaptive", percent])
        values[key(name, "adaptive", percent, "over_best")] = ours / single
        stores = [_seconds(stored[FORMATTED, collect, percent]) for collect in COLLECT]
        values[key(name, FORMATTED, percent, "over_in_place")] = stores[-1] / base_s
        values[key(name, FORMATTED, percent, "over_best")] = stores[-1] / min(stores[:-1])
    return values


def _seconds(replayed: Mapping[str, Any], operation: str | None = None) -> float:
    """Disk time behind the mark, of one operation or of all."""
    before, after = (replayed[at]["disk"] for at in ("at_mark", "at_end"))
    if operation is not None:
        before, after = before[operation], after[operation]
    return float(after["seconds"] - before["seconds"])


def _plot(name: str, values: Mapping[str, float | None]) -> Plot:
    def heights(percent: float) -> list[float]:
        found = [values[key(name, FORMATTED, collect, percent, "seconds")] for collect in COLLECT]
        return [
            float("nan") if each is None else each
            for each in (*found, values[key(name, "in-place", "seconds")])
        ]

    places = list(range(len(COLLECT) + 1))
    return Plot(
        name=f"store-disk-time-{name}",
        title=f"Disk time, {workloads.RECORDED[name]}",
        x_label="",
        y_label="seconds",
        curves=[
            Curve(f"{percent:g} % full", places, heights(percent), style="bars")
            for percent in PERCENT
        ],
        caption="Seagate ST2000DM006, stores as formatted; a flush after every recorded one.",
        categories=[*COLLECT, "in place"],
    )
