"""The same operations through the simulator and through a store: the same blocks moved.

Blocks are counted from the first write on, the fill included, for each block written; so is the
overall write cost (eq. 4 of Matthews 1999) of the log's transfers, each at the price that both the
simulated disk and the store's options say. The store's records, its ring and its map are not among
them: their blocks are rows of their own.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell.errors import InputError
from agewell.studies.cases import key, result
from agewell.studies.context import Context, Label
from agewell.studies.store import workloads
from agewell.studies.store.replays import replays
from agewell.studies.store.workloads import BLOCK_BYTES, Load
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

COLLECT = ("clean", "plug", "thread", "adaptive")

LIFETIME = "lifetime"
"""Cleaning into logs by expected lifetime."""

COLLECTED_LOGS = 3
"""How many of these there are."""

LIFETIME_PERCENT = (50.0, 80.0, 90.0, 95.0)
"""Where it is tried: at 98 % the few segments that are free would all be open ones."""

PERCENT = (50.0, 80.0, 90.0, 95.0, 98.0)

RESERVE_SEGMENTS = 8
"""Kept from users, the least that a store keeps: at 98 % no more can be."""

MORE_SEGMENTS = (-1, 0, 1)
"""Segments more than the utilization asks for in the runs of a recording, whose mean is taken.
Chosen by us: it is short, so that a segment more or less moves 2 % more or fewer blocks."""

_COUNTS = ("cleaned", "plugged", "threaded")
_NOT_ATOMIC = "thread-not-atomic"
"""Threading in a simulation whose syncs may write over what they replace."""

_MECHANISM = {LIFETIME: "clean", _NOT_ATOMIC: "thread"}
_PLACEMENT = {LIFETIME: workloads.collected_by_lifetime(COLLECTED_LOGS)}


def saved(context: Context, name: str, *, as_recorded: bool = False) -> tuple[Load, Path]:
    """A load, its trace in the study's folder.

    Args:
        context: Of the study.
        name: Of the load.
        as_recorded: A recording's requests as they are; else a block at a time.

    Returns:
        The load and the file of its trace.

    Raises:
        InputError: It is a recorded one, and the recording is missing.
    """
    if name in workloads.GENERATED:
        load, file_name = workloads.generated(name), f"{name}.parquet"
    else:
        path = context.examples / "traces" / f"{name}.parquet"
        if not path.is_file():
            raise InputError(f"{path} is missing; examples/record makes it")
        load = workloads.recorded(name, path)
        load, file_name = (
            (load, f"{name}-recorded.parquet")
            if as_recorded
            else (load.singly(), f"{name}.parquet")
        )
    trace = context.out / "traces" / file_name
    trace.parent.mkdir(parents=True, exist_ok=True)
    load.save(trace)
    return load, trace


def figure(name: str, context: Context) -> FigureResult:
    """Every mechanism at every utilization under one load."""
    try:
        load, trace = saved(context, name)
    except InputError as error:
        return result(context, name, {}, [], {name: str(error)})
    tables = context.tables(name)
    # As seen from the folder that the experiments of a study start from.
    path = os.path.relpath(trace.resolve(), context.experiments.resolve())
    sizes = {
        (percent, more): load.segments(percent) + more
        for percent in PERCENT
        for more in ((0,) if name in workloads.GENERATED else MORE_SEGMENTS)
    }
    changes: dict[Label, dict[str, Any]] = {
        (collect, *size): {
            "workload.path": path,
            "workload.utilization": load.utilization(segments),
            "layout.collect": _MECHANISM.get(collect, collect),
            "layout.atomic_syncs": collect != _NOT_ATOMIC,
            **_PLACEMENT.get(collect, {}),
        }
        for collect in (*COLLECT, LIFETIME, _NOT_ATOMIC)
        for size, segments in sizes.items()
        if collect != LIFETIME or size[0] in LIFETIME_PERCENT
    }
    options: dict[Label, dict[str, Any]] = {
        (collect, *size): {
            "by": _MECHANISM.get(collect, collect),
            "collected_logs": COLLECTED_LOGS if collect == LIFETIME else 0,
            "segments": segments,
            "segment_blocks": workloads.SEGMENT_BLOCKS,
            "block_bytes": BLOCK_BYTES,
            "reserve_segments": RESERVE_SEGMENTS,
            **_prices(tables["device"]),
        }
        for collect in (*COLLECT, LIFETIME)
        for size, segments in sizes.items()
        if collect != LIFETIME or size[0] in LIFETIME_PERCENT
    }
    simulated = context.run_many(tables, changes)
    found = {label: _of_simulation(run["metrics"]) for label, run in simulated.items()}
    values = _means(name, found, "simulated")
    stored = replays(context, trace, options)
    found = {label: _of_store(run["at_end"], tables["device"]) for label, run in stored.items()}
    values.update(_means(name, found))
    return result(context, name, values, [_plot(load, values)])


def _means(
    name: str, found: Mapping[Label, Mapping[str, float]], *of: str
) -> dict[str, float | None]:
    """The mean over the sizes of the disk, by key."""
    by_key: dict[str, list[float]] = {}
    for (collect, percent, _), measures in found.items():
        for measure, value in measures.items():
            by_key.setdefault(key(name, collect, percent, measure, *of), []).append(value)
    return {label: statistics.fmean(values) for label, values in by_key.items()}


def _prices(device: Mapping[str, Any]) -> dict[str, int]:
    """What transfers cost on the simple disk of the experiment, as in the options of a store."""
    seek_ns, rotation_ns = (
        round(float(device[name].removesuffix(" ms")) * 1e6)
        for name in ("seek_time", "rotation_time")
    )
    return {
        "access_ns": seek_ns + rotation_ns // 2,
        "further_ns": rotation_ns // 2,
        "bandwidth_bytes_per_s": bandwidth_bytes_per_s(device),
    }


def bandwidth_bytes_per_s(device: Mapping[str, Any]) -> int:
    """Of the simple disk of an experiment."""
    return round(float(device["bandwidth"].removesuffix(" MB/s")) * 1e6)


def _of_simulation(metrics: Mapping[str, Any]) -> dict[str, float]:
    new = metrics["new_blocks"]
    counts = {each: metrics[f"{each}_blocks"] / new for each in _COUNTS}
    return {**counts, "cost": metrics["overall_write_cost"]}


def _of_store(end: Mapping[str, Any], device: Mapping[str, Any]) -> dict[str, float]:
    log, medium = end["log"], end["medium"]
    new = log["new_blocks"]
    spent_s = sum(account["seconds"] for account in end["transfers"].values())
    ideal_s = new * BLOCK_BYTES / bandwidth_bytes_per_s(device)
    metadata = medium["inline_blocks"] + medium["ring_blocks"] + medium["map_blocks"]
    counts = {each: log[f"{each}_blocks"] / new for each in _COUNTS}
    return {**counts, "cost": spent_s / ideal_s, "metadata": metadata / new}


def _plot(load: Load, values: Mapping[str, float | None]) -> Plot:
    def heights(collect: str, *of: str) -> list[float]:
        found = [values.get(key(load.name, collect, percent, *of)) for percent in PERCENT]
        return [each if each is not None else float("nan") for each in found]

    curves = []
    for collect in (*COLLECT[:-1], LIFETIME):
        curves.append(Curve(collect, list(PERCENT), heights(collect, "cost", "simulated")))
        points = Curve(f"{collect}, store", list(PERCENT), heights(collect, "cost"), style="points")
        curves.append(points)
    return Plot(
        name=f"store-{load.name}",
        title=f"What the store's log transfers costs, {load.title}",
        x_label="disk utilization, %",
        y_label="overall write cost",
        curves=curves,
        caption="Lines: simulated. Points: the store, its own records apart.",
        y_scale="log",
    )
