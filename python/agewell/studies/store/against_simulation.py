"""The same operations through the simulator and through a store: the same blocks moved.

Blocks are counted from the first write on, the fill included, for each block written; so is the
overall write cost (eq. 4 of Matthews 1999) of the log's transfers, each at the price that both the
simulated disk and the store's options say. The store's records, its ring and its map are not among
them: their blocks are rows of their own.
"""

from __future__ import annotations

import os
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
PERCENT = (50.0, 80.0, 90.0, 95.0, 98.0)

RESERVE_SEGMENTS = 8
"""Kept from users, the least that a store keeps: at 98 % no more can be."""

_COUNTS = ("cleaned", "plugged", "threaded")
_NOT_ATOMIC = "thread-not-atomic"
"""Threading in a simulation whose syncs may write over what they replace."""


def saved(context: Context, name: str, rounds: int = workloads.ROUNDS) -> tuple[Load, Path]:
    """A load, its trace in the study's folder.

    Args:
        context: Of the study.
        name: Of the load.
        rounds: How often a recording's updates follow one another.

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
        load, file_name = workloads.recorded(name, path, rounds), f"{name}-{rounds}.parquet"
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
    labels: list[Label] = [(collect, percent) for collect in COLLECT for percent in PERCENT]
    changes: dict[Label, dict[str, Any]] = {
        label: {
            "workload.path": path,
            "layout.collect": label[0],
            "workload.utilization": float(label[1]) / 100,
        }
        for label in labels
    }
    for percent in PERCENT:
        atomic = {**changes["thread", percent], "layout.atomic_syncs": False}
        changes[_NOT_ATOMIC, percent] = atomic
    simulated = context.run_many(tables, changes)
    options = {
        label: {
            "by": label[0],
            "segments": load.segments(float(label[1])),
            "segment_blocks": workloads.SEGMENT_BLOCKS,
            "block_bytes": BLOCK_BYTES,
            "reserve_segments": RESERVE_SEGMENTS,
            **_prices(tables["device"]),
        }
        for label in labels
    }
    stored = replays(context, trace, options)
    values: dict[str, float | None] = {}
    for label in labels:
        values.update(_of_simulation(name, label, simulated[label]["metrics"]))
        values.update(_of_store(name, label, stored[label]["at_end"], tables["device"]))
    for percent in PERCENT:
        label = (_NOT_ATOMIC, percent)
        values.update(_of_simulation(name, label, simulated[label]["metrics"]))
    return result(context, name, values, [_plot(load, values)])


def _prices(device: Mapping[str, Any]) -> dict[str, int]:
    """What transfers cost on the simple disk of the experiment, as a store is told."""
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


def _of_simulation(name: str, label: Label, metrics: Mapping[str, Any]) -> dict[str, float | None]:
    new = metrics["new_blocks"]
    values = {
        key(name, *label, each, "simulated"): metrics[f"{each}_blocks"] / new for each in _COUNTS
    }
    return {**values, key(name, *label, "cost", "simulated"): metrics["overall_write_cost"]}


def _of_store(
    name: str, label: Label, end: Mapping[str, Any], device: Mapping[str, Any]
) -> dict[str, float | None]:
    log, medium = end["log"], end["medium"]
    new = log["new_blocks"]
    spent_s = sum(account["seconds"] for account in end["transfers"].values())
    ideal_s = new * BLOCK_BYTES / bandwidth_bytes_per_s(device)
    metadata = medium["inline_blocks"] + medium["ring_blocks"] + medium["map_blocks"]
    values = {key(name, *label, each): log[f"{each}_blocks"] / new for each in _COUNTS}
    return {
        **values,
        key(name, *label, "cost"): spent_s / ideal_s,
        key(name, *label, "metadata"): metadata / new,
    }


def _plot(load: Load, values: Mapping[str, float | None]) -> Plot:
    def heights(collect: str, *of: str) -> list[float]:
        found = [values[key(load.name, collect, percent, *of)] for percent in PERCENT]
        return [each if each is not None else float("nan") for each in found]

    curves = []
    for collect in COLLECT[:-1]:
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
