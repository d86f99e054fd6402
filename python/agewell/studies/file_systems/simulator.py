"""The mounted file system against the simulated log, under the same random updates.

The updates that a mounted file system took are handed to a simulated log of as many segments, as
full, as a trace of one file; what each has moved for each new block is held against the other. The
cost is that of blocks (eq. 1 of Matthews 1999, with what is plugged counted as what is cleaned):
all that is read and written for each block that is new.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from agewell import _agewell
from agewell.filesystems import mounted
from agewell.studies.cases import key, result
from agewell.studies.context import Context
from agewell.studies.file_systems import mounts
from agewell.studies.file_systems.loads import RandomUpdates
from agewell.studies.file_systems.mounts import FIXED, Kind, device
from agewell.studies.file_systems.rounds import IMAGE_BYTES
from agewell.studies.store import workloads
from agewell.studies.study import FigureResult

PERCENT = (80, 90, 95, 98)
LOG_RESERVE = 2
"""Segments that the store's log keeps free."""
AHEAD_OF_RESERVE = 4
"""Of the segments that a file system keeps from its users, the collector of a mount keeps this part
empty (`Store::room_ahead`)."""

_WRITE, _SYNC = 4, 7
_MOVED = ("cleaned", "plugged", "threaded")


class _Noted(RandomUpdates):
    """Random updates that are noted: numbers of blocks, as though all files were one."""

    def __init__(self, point: Path, room_bytes: int, percent: float) -> None:
        super().__init__(point, room_bytes, percent)
        self.noted: list[int] = []

    def note(self, file: int, block: int) -> None:
        self.noted.append(file * self.blocks + block)


def _mounted(kind: Kind, percent: float) -> tuple[dict[str, Any], list[int]]:
    """What it has moved and holds after the load, and the blocks that were written over."""
    with device(IMAGE_BYTES) as loop:
        loop.make(kind)
        loop.mount(kind)
        load = _Noted(loop.point, loop.room_bytes(), percent)
        load.prepare()
        status = mounted.status(loop.point)
        loop.unmount()
        store = json.loads(_agewell.store_check(loop.path))
        logs = {"collected_logs": status["collected_logs"]}
        return {**status["since_mounted"], **logs, **store["store"], **store["metrics"]}, load.noted


def figure(context: Context) -> FigureResult:
    """Each way of making room, at each fullness."""
    values: dict[str, float | None] = {}
    missing: dict[str, str] = {}
    why = mounts.missing()
    cases = [(kind, percent) for kind in FIXED for percent in PERCENT]
    for place, (kind, percent) in enumerate(cases):
        case = f"{kind.name}-{percent}"
        if why:
            missing[case] = why
            continue
        context.progress(place / len(cases), f"{kind.name}, {percent} % full")
        found, noted = _mounted(kind, percent)
        values.update(_costs(case, found))
        ahead = LOG_RESERVE + int(found["reserve_segments"]) // AHEAD_OF_RESERVE
        for name, reserve in (("simulated", LOG_RESERVE), ("ahead", ahead)):
            simulated = _simulated(context, (kind.name, percent, reserve), found, noted)
            values.update(_costs(case, simulated, name))
    return result(context, "simulator", values, [], missing)


def _simulated(
    context: Context, case: tuple[str, float, int], found: Mapping[str, Any], noted: list[int]
) -> Mapping[str, Any]:
    collect, percent, reserve = case
    live = int(found["live_blocks"])
    updates = np.array(noted, np.uint64).reshape(-1, RandomUpdates.SYNC_EVERY)
    none = np.zeros((len(updates), 1), np.uint64)
    operation = np.full((len(updates), RandomUpdates.SYNC_EVERY + 1), _WRITE, np.uint64)
    operation[:, -1] = _SYNC
    # What describes the files lies beside their blocks, and nobody writes over it.
    load = workloads.Load(
        f"updates-{collect}-{percent}",
        "random updates",
        live,
        operation.ravel(),
        np.concatenate([updates, none], axis=1).ravel(),
        np.ones(operation.size, np.uint64),
    )
    trace = context.out / "traces" / f"{load.name}.parquet"
    trace.parent.mkdir(parents=True, exist_ok=True)
    load.save(trace)
    segments = int(found["segments"])
    changes = {
        "workload.path": os.path.relpath(trace.resolve(), context.experiments.resolve()),
        "workload.utilization": live / ((segments - 0.5) * workloads.FORMATTED_SEGMENT_BLOCKS),
        "layout.collect": collect,
        "layout.reserve_segments": reserve,
    }
    if collect == "clean":
        changes |= workloads.collected_by_lifetime(int(found["collected_logs"]))
    metrics: Mapping[str, Any] = context.run_experiment(context.tables("simulator"), changes)[
        "metrics"
    ]
    return metrics


def _costs(case: str, counts: Mapping[str, Any], *of: str) -> dict[str, float | None]:
    new = counts["new_blocks"]
    moved = {each: counts[f"{each}_blocks"] / new for each in _MOVED}
    values: dict[str, float | None] = {key(case, each, *of): moved[each] for each in _MOVED}
    values[key(case, "cost", *of)] = 1 + 2 * (moved["cleaned"] + moved["plugged"])
    return values
