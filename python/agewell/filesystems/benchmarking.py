"""Benchmarks of a mounted file system, below a directory of it, or of a simulated one.

    from agewell.filesystems import benchmarking

    measured = benchmarking.directory("/mnt/x", sizes=["16 KiB", "1 MiB"], repetitions=3)
    measured.document["summary"]

What the record holds is described in `docs/reference/aging.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pyarrow as pa

from agewell import _agewell
from agewell.errors import InputError
from agewell.files import path_text
from agewell.filesystems import simulated_benchmark
from agewell.filesystems.aging import SIMULATED
from agewell.values import documents
from agewell.values.findings import Findings
from agewell.values.plot import Curve, Plot

PHASES = ("create", "read", "overwrite")
"""What is measured of files of one size, in this order."""


@dataclass(frozen=True, slots=True, repr=False)
class Measured(Findings):
    """What benchmarks took.

    Attributes:
        document: Options, `summary` with medians and spread, by the names of
            `docs/reference/aging.md`.
        measurements: A row a measurement; None of a simulated file system.
    """

    document: dict[str, Any]
    measurements: pa.Table | None = None

    @property
    def metrics(self) -> dict[str, Any]:
        """The median rate of each row of the summary: `read_16384_mb_per_s`.

        Behind the phase stand the bytes of each file, and `synced` where each was.
        """
        return {f"{_row_name(row)}_mb_per_s": row["mb_per_s"] for row in self.document["summary"]}

    def table(self) -> pa.Table:
        """The summary: a row a phase and size of file, with medians and spread."""
        names = ("phase", "file_bytes", "sync_each", "mb_per_s", "mb_per_s_deviation")
        rows = [{name: row[name] for name in names} for row in self.document["summary"]]
        return pa.Table.from_pylist(rows, schema=_SUMMARY)

    def plots(self) -> list[Plot]:
        """Throughput by size of file, if files were written one behind another."""
        plot = throughput_plot(self.document)
        return [plot] if plot.curves else []

    def _shown(self) -> dict[str, object]:
        phases = dict.fromkeys(row["phase"] for row in self.document["summary"])
        return {"phases": list(phases), "rows": len(self.document["summary"])}


_SUMMARY = pa.schema(
    [
        ("phase", pa.string()),
        ("file_bytes", pa.uint64()),
        ("sync_each", pa.bool_()),
        ("mb_per_s", pa.float64()),
        ("mb_per_s_deviation", pa.float64()),
    ]
)


def _row_name(row: dict[str, Any]) -> str:
    words = re.sub("[^a-z0-9]+", "_", row["phase"])
    size = "" if row["file_bytes"] is None else f"_{row['file_bytes']}"
    return words + size + ("_synced" if row["sync_each"] else "")


def bench(
    target: str | PathLike[str],
    *,
    workload: str | PathLike[str] | None = None,
    device: str | None = None,
    machine: str | None = None,
    layout: Mapping[str, Any] | None = None,
    raw: bool = False,
    hot: str | None = None,
    sync_each: Sequence[bool] | None = None,
    on_operations: Callable[[int], None] | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Unpack[Options],
) -> Measured:
    """Measure a simulated file system, or the mounted one that a directory is on.

    Args:
        target: `ffs`, `ffs+realloc`, `lfs` or `early-unix`, or a directory.
        workload: What a simulated one is aged by: `smith-1996` or a workload file; None leaves it
            new.
        device: The disk that it is modelled on: one of the catalogue or a device file.
        machine: Its host, `pentium-120` or `sparcstation-2`.
        layout: Its parameters, as in `[layout]` of an experiment.
        raw: Also read and write its device itself.
        hot: Also measure the files modified within so long before the last modification: `30d`.
        sync_each: Whether each file is synced, for instance `[False, True]` for both.
        on_operations: Called with the operations that a simulated one has done.
        progress: Called with the benchmarks of a directory done and how many there are.
        **options: Those of `Options`.

    Returns:
        What it took.

    Raises:
        InputError: The target or an option does not do.
        RunError: A benchmark failed.

    Examples:
        >>> import agewell
        >>> new = agewell.bench("ffs", sizes=["64 KiB"], total="1 MiB", repetitions=2)
        >>> new
        Measured(phases=['create', 'read', 'overwrite'], rows=3)
    """
    simulated = {
        "workload": workload,
        "device": device,
        "machine": machine,
        "layout": layout or None,
        "raw": raw or None,
    }
    if str(target) not in SIMULATED or Path(target).is_dir():
        _refuse(simulated, "is of a simulated file system; write ffs, ffs+realloc or lfs as target")
        return directory(
            target,
            hot=hot,
            sync_each=sync_each,
            progress=progress,
            **options,
        )
    shared = ("sizes", "total", "files_per_directory", "repetitions", "seed")
    _refuse(
        {name: value or None for name, value in options.items() if name not in shared},
        "is of a mounted file system; a simulated one has none",
    )
    record = simulated_benchmark.simulated(
        str(target),
        workload=workload,
        device=device,
        machine=machine,
        layout=layout,
        sizes=options.get("sizes"),
        total=options.get("total"),
        files_per_directory=options.get("files_per_directory"),
        sync_each=(False,) if sync_each is None else sync_each,
        repetitions=options.get("repetitions"),
        hot=hot,
        raw=raw,
        seed=options.get("seed"),
        progress=on_operations,
    )
    return Measured(documents.document("bench", record))


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse the first option that was given."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} {why}")


class Options(TypedDict, total=False):
    """What `bench` is given by name besides; those after `seed` are of a directory.

    Attributes:
        sizes: Sizes of the files; 30 sizes from 1 KiB to 32 MiB if None, none for an empty list.
        total: Bytes of all files of one size; 32 MiB if None.
        files_per_directory: 25 (Smith & Seltzer 1996) if None.
        repetitions: 10 if None.
        seed: Seed of what is drawn.
        hot_log: Take for hot files those that this log of a replay modified last.
        overwrite_hot: Write the hot files again in place. Their contents are lost.
        read_device: Read this device, past the cache. It is never written.
        drop_system_caches: Between phases empty all caches of the system, which needs root.
    """

    sizes: Sequence[str] | None
    total: str | None
    files_per_directory: int | None
    repetitions: int | None
    seed: int | None
    hot_log: str | PathLike[str] | None
    overwrite_hot: bool
    read_device: str | PathLike[str] | None
    drop_system_caches: bool


def directory(
    path: str | PathLike[str],
    *,
    sizes: Sequence[str] | None = None,
    total: str | None = None,
    files_per_directory: int | None = None,
    sync_each: Sequence[bool] | None = None,
    repetitions: int | None = None,
    hot: str | None = None,
    hot_log: str | PathLike[str] | None = None,
    overwrite_hot: bool = False,
    read_device: str | PathLike[str] | None = None,
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
        hot: Read the files below the directory that were modified within so long before the last
            modification, in whole days: `30d`.
        hot_log: Take for these the files that this log of a replay modified last; 30 days before
            the last modification if `hot` is None.
        overwrite_hot: Write the hot files again in place. Their contents are lost.
        read_device: Read this device, past the cache. It is never written.
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
        "hot": hot is not None or hot_log is not None,
        "hot_log": None if hot_log is None else path_text(hot_log),
        "hot_days": None if hot is None else _days(hot),
        "overwrite_hot": overwrite_hot,
        "device": None if read_device is None else path_text(read_device),
        "drop_caches": drop_system_caches,
        "seed": seed,
    }
    record: dict[str, Any] = json.loads(_agewell.bench_directory(json.dumps(request), progress))
    rows = record.pop("measurements")
    return Measured(documents.document("bench", record), _table(rows))


def _days(period: str) -> int:
    """Whole days of a period that is given as text."""
    days, rest = divmod(_agewell.duration_ns("--hot", period), 86_400 * 10**9)
    if rest or not days:
        raise InputError(f"--hot {period}: files are chosen by whole days, such as 30d")
    return days


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
