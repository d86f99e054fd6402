"""Benchmarks of a mounted file system, below a directory of it.

    from agewell.filesystems import benchmarking

    measured = benchmarking.directory("/mnt/x", sizes=["16 KiB", "1 MiB"], repetitions=3)
    measured.record["summary"]

What the record holds is described in `docs/reference/aging.md`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import pyarrow as pa

from agewell import _agewell
from agewell.files import path_text
from agewell.values.plot import Curve, Plot

PHASES = ("create", "read", "overwrite")
"""What is measured of files of one size, in this order."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What benchmarks took.

    Attributes:
        record: Options, `summary` with medians and spread, by the names of
            `docs/reference/aging.md`.
        measurements: A row a measurement.
    """

    record: dict[str, Any]
    measurements: pa.Table


def directory(
    path: str | PathLike[str],
    *,
    sizes: Sequence[str] | None = None,
    total: str | None = None,
    files_per_directory: int | None = None,
    sync_each: Sequence[bool] | None = None,
    repetitions: int | None = None,
    hot: bool = False,
    hot_log: str | PathLike[str] | None = None,
    hot_days: int | None = None,
    overwrite_hot: bool = False,
    device: str | PathLike[str] | None = None,
    drop_system_caches: bool = False,
    seed: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Measured:
    """Measure the file system of a directory.

    Args:
        path: The directory; what is made below it is removed again.
        sizes: Sizes of the files, each a benchmark: `16 KiB`; 30 sizes from 1 KiB to 32 MiB if
            None, none for an empty list.
        total: Bytes of all files of one size; 32 MiB if None.
        files_per_directory: 25 (Smith & Seltzer 1996) if None; 100 in Seltzer et al. 1995.
        sync_each: Whether each file is synced, for instance `[False, True]` for both.
        repetitions: 10 if None.
        hot: Read the files below the directory that were modified last.
        hot_log: Take for these the files that this log of a replay modified last.
        hot_days: Days before the last modification that count; 30 if None.
        overwrite_hot: Write the hot files again in place. Their contents are lost.
        device: Read this device, past the cache. It is never written.
        drop_system_caches: Between phases empty all caches of the system, inodes and directories
            too, which slows down whatever else runs on it, and needs root. Else the pages of the
            files that are measured leave memory, and nothing else.
        seed: Seed of the bytes that are written.
        progress: Called with the benchmarks done and how many there are.

    Raises:
        InputError: The directory or an option does not do.
        RunError: A benchmark failed.
    """
    request = {
        "directory": path_text(path),
        "sizes": None if sizes is None else list(sizes),
        "total": total,
        "files_per_directory": files_per_directory,
        "sync_each": None if sync_each is None else list(sync_each),
        "repetitions": repetitions,
        "hot": hot,
        "hot_log": None if hot_log is None else path_text(hot_log),
        "hot_days": hot_days,
        "overwrite_hot": overwrite_hot,
        "device": None if device is None else path_text(device),
        "drop_caches": drop_system_caches,
        "seed": seed,
    }
    record: dict[str, Any] = json.loads(_agewell.bench_directory(json.dumps(request), progress))
    rows = record.pop("measurements")
    return Measured(record=record, measurements=_table(rows))


def throughput_plot(record: dict[str, Any]) -> Plot:
    """Median throughput by size of file, a curve a phase.

    Args:
        record: The record of `directory`.
    """
    curves = []
    for phase in PHASES:
        for sync_each in (False, True):
            rows = [
                row
                for row in record["summary"]
                if row["phase"] == phase and row["sync_each"] is sync_each
            ]
            if rows:
                label = f"{phase}, each file synced" if sync_each else phase
                sizes_kib = [row["file_bytes"] / 1024 for row in rows]
                rates = [row["mb_per_s"] for row in rows]
                curves.append(Curve(label, sizes_kib, rates, dashed=sync_each))
    return Plot(
        name="throughput",
        title="Throughput by size of file",
        x_label="size of each file (KiB)",
        y_label="MB/s",
        curves=curves,
        x_scale="log",
        caption="Medians; a phase ends when everything is on the device.",
    )


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema(
        [
            ("phase", pa.string()),
            ("file_bytes", pa.uint64()),
            ("sync_each", pa.bool_()),
            ("repetition", pa.uint32()),
            ("bytes", pa.uint64()),
            ("time_ns", pa.uint64()),
            ("layout_optimal", pa.uint64()),
            ("layout_counted", pa.uint64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)
