"""Traces recorded for agewell, as further workloads of the disk-shuffling study.

They are minutes long, not weeks, so a sixth of their length stands for the report's day: the first
sixth only counts accesses, and each later one begins with a rearrangement. They were taken on a
device of their own below ext4, and run here on the report's fast disk.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from agewell import _agewell
from agewell.errors import InputError
from agewell.studies.context import Context
from agewell.studies.ruemmler_wilkes_1991.workloads import Workload, Workloads

_TITLES = {
    "pgbench": ("PostgreSQL under pgbench on the HP 97560", "pgbench"),
    "build": ("a software build on the HP 97560", "build"),
    "mail": ("a server of small files on the HP 97560", "small files"),
}
_DAYS = 6
"""Periods that a recorded trace is divided into; chosen by us: one to learn, five to compare."""
_HOURS_A_DAY = 8
"""Points of the series a period; chosen by us."""
_SECTOR_BYTES = 512


def recorded(context: Context, *names: str) -> Workloads:
    """The recorded traces of these names, those that are there."""
    present: list[Workload] = []
    missing: dict[str, str] = {}
    for name in names:
        path = context.examples / "traces" / f"{name}.parquet"
        if not path.is_file():
            missing[name] = f"{path} is missing; examples/record makes it"
            continue
        extent = _extent(context, str(path))
        day_ns = extent.span_ns // _DAYS
        day, hour = f"{day_ns} ns", f"{day_ns // _HOURS_A_DAY} ns"
        settings = {
            "workload.path": str(path.resolve()),
            "workload.filters": [],
            "device.model": "hp-97560",
            "remap.interval": day,
            "remap.first_after": day,
            "remap.offset": "0 B",
            "remap.block_size": "4 KiB",
            "remap.logical_size": f"{extent.end_bytes} B",
            "run.series_interval": hour,
        }
        period = f"{day_ns / _HOURS_A_DAY / 1e9:.0f} s"
        title, short = _TITLES[name]
        present.append(Workload(name, title, short, settings, period, "min"))
    return Workloads(present, missing)


@dataclass(frozen=True, slots=True)
class _Extent:
    """How long a trace is and how far it reaches."""

    span_ns: int
    end_bytes: int


def _extent(context: Context, path: str) -> _Extent:
    key = f"extent of {path}"
    if key not in context.cache:
        summary = json.loads(_agewell.trace_info(path, None, False))["summary"]
        span_ns = round((summary["first_s"] + summary["span_s"]) * 1e9)
        end = max(device["sector_end"] for device in summary["devices"])
        if span_ns < _DAYS * _HOURS_A_DAY:
            raise InputError(f"{path}: the trace is too short to divide into periods")
        context.cache[key] = _Extent(span_ns, end * _SECTOR_BYTES)
    extent: _Extent = context.cache[key]
    return extent
