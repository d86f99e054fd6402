"""Benchmarks of a simulated file system on a modelled device.

    from agewell.filesystems import simulated_benchmark

    record = simulated_benchmark.simulated("ffs+realloc", workload="smith-1996", hot=True)
    record["summary"]

The record has the shape of that of a mounted file system (`agewell.filesystems.benchmarking`), and
the experiment in full under `config`, so that it can be run again with `agewell run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from agewell.experiments.configuration import Experiment
from agewell.experiments.simulation import run_experiment

GENERATED = "smith-1996"
"""The workload that is generated rather than read from a file."""
DEVICE = "seagate-st32430n"
MACHINE = "pentium-120"
"""Those of Smith & Seltzer 1996, table 1."""

_PHASES = ("create", "read", "overwrite")


def simulated(
    kind: str,
    *,
    workload: str | PathLike[str] | None = None,
    device: str | None = None,
    machine: str | None = None,
    layout: Mapping[str, Any] | None = None,
    sizes: Sequence[str] | None = None,
    total: str | None = None,
    files_per_directory: int | None = None,
    sync_each: Sequence[bool] = (False,),
    repetitions: int | None = None,
    hot: str | None = None,
    raw: bool = False,
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Age a simulated file system and measure it.

    Args:
        kind: `ffs`, `ffs+realloc` or `lfs`.
        workload: What it is aged by: `smith-1996` or a workload file; None leaves it new.
        device: A device of the catalogue or a device file; that of Smith & Seltzer 1996 if None.
        machine: The host, `pentium-120` or `sparcstation-2`.
        layout: Parameters of the file system, as in `[layout]` of an experiment.
        sizes: Sizes of the files; 30 sizes from 1 KiB to 32 MiB if None, none for an empty list.
        total: Bytes of all files of one size; 32 MiB if None.
        files_per_directory: 25 (Smith & Seltzer 1996) if None.
        sync_each: Whether each file is synced, for instance `[False, True]` for both.
        repetitions: 10 if None.
        hot: Also read and overwrite the files modified within so long before the end: `30d`.
        raw: Also read and write the device itself.
        seed: Seed of the workload and of where the platter stands.
        progress: Called with the operations done.

    Returns:
        The record: `target`, `config`, `metrics`, `summary`.

    Raises:
        InputError: A parameter does not do.
        RunError: The file system has no room for the benchmark.
    """
    record: dict[str, Any] = {"target": {"kind": kind}, "summary": []}
    for place, synced in enumerate(sync_each):
        # What does not depend on the syncs is measured once.
        once = place == 0
        measure: dict[str, Any] = {
            "sequential": "default" if sizes is None else list(sizes),
            "sync_each": synced,
            "repetitions": 10 if repetitions is None else repetitions,
            "raw": raw and once,
        }
        if total is not None:
            measure["sequential_size"] = total
        if files_per_directory is not None:
            measure["files_per_directory"] = files_per_directory
        if hot is not None and once:
            measure["hot"] = hot
        experiment = {
            "workload": _workload(workload),
            "layout": {"kind": kind, **(layout or {})},
            "device": {"model": DEVICE if device is None else device},
            "host": {"machine": MACHINE if machine is None else machine},
            "measure": measure,
            "run": {"seed": 1 if seed is None else seed},
        }
        document = run_experiment(Experiment(experiment, Path.cwd()), None, progress=progress)
        record["summary"] += _sequential(document, synced)
        if once:
            record["config"], record["metrics"] = document["config"], document["metrics"]
            record["summary"] += _others(document["metrics"])
    return record


def _workload(workload: str | PathLike[str] | None) -> dict[str, Any]:
    if workload is None:
        return {"kind": "none"}
    if str(workload) == GENERATED:
        return {"kind": GENERATED}
    return {"kind": "file", "path": str(workload)}


def _sequential(document: Mapping[str, Any], synced: bool) -> list[dict[str, Any]]:
    return [
        {
            "phase": phase,
            "file_bytes": row["file_bytes"],
            "sync_each": synced,
            "bytes": row["file_bytes"] * row["files"],
            "mb_per_s": row[f"{phase}_mb_per_s"],
            "mb_per_s_deviation": row[f"{phase}_deviation_mb_per_s"],
            "layout_score": row["layout_score"],
        }
        for row in document["sequential"]
        for phase in _PHASES
    ]


def _others(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Hot files and the device itself, where they were measured."""
    names = {
        "hot_read": "hot files, read",
        "hot_write": "hot files, overwrite",
        "raw_read": "device, read",
        "raw_write": "device, write",
    }
    return [
        {
            "phase": words,
            "file_bytes": None,
            "sync_each": False,
            "bytes": metrics.get("hot_bytes", 0) if name.startswith("hot") else 0,
            "mb_per_s": metrics[f"{name}_mb_per_s"],
            "mb_per_s_deviation": metrics[f"{name}_deviation_mb_per_s"],
            "layout_score": metrics["hot_layout_score"] if name.startswith("hot") else None,
        }
        for name, words in names.items()
        if f"{name}_mb_per_s" in metrics
    ]
