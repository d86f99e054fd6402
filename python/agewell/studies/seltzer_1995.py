"""The study of Seltzer et al., *File System Logging versus Clustering*, USENIX 1995.

Figures 1 to 3: files of many sizes read and written on new file systems, FFS and a log. Figure 4:
TPC-B on a log-structured file system, with its cleaner and without, against the Berkeley Fast File
System, whose every write here goes back to its place and is computed as the paper does. Figure 5:
layout scores on a file system with rotational gaps that has aged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from agewell.studies.cases import (
    Settings,
    column,
    key,
    line,
    reduction_pct,
    result,
    run_cases,
    utilizations,
)
from agewell.studies.context import Context, Label
from agewell.studies.smith_seltzer_1996 import pooled, score_by_size
from agewell.studies.study import FigureResult, PaperStudy
from agewell.values.plot import Curve, Plot

FIGURE = "figure-04"
UTILIZATIONS = utilizations(48, 50, 55, 60, 65, 70, 75, 80, 85)
"""From the emptiest disk of the paper to what it calls full (80 % in its source [8])."""
_RATE = "transactions_per_s"
_NO_CLEANER = "no_cleaner"
_WAITING = "waiting"
"""A cleaner that begins when no segment is free."""
_SHRUNK = "shrunk"
"""The database on a smaller disk, with nothing beside it."""
_FULL_PCT = 80.0
"""What the paper calls full: the utilization of its source [8]."""
_ALL_BLOCKS = 1 << 20
"""What lies on the disk besides lies in one piece."""
_LARGE_DISK = 5.0
"""Per cent in use of a disk on which the log never comes round."""

FFS_SEEK_MS = 9.5
FFS_ROTATION_MS = 5.5
FFS_COPY_MS = 0.9
FFS_TRANSFER_MS = 1.6
"""What one random read or write of a block takes on FFS (§3)."""
_IOS_A_TRANSACTION = 2


def ffs_transactions_per_s() -> float:
    """Transactions per second where each reads a random block and writes another in place."""
    one_ms = FFS_SEEK_MS + FFS_ROTATION_MS + FFS_COPY_MS + FFS_TRANSFER_MS
    return 1000 / (_IOS_A_TRANSACTION * one_ms)


def figure_04(context: Context) -> FigureResult:
    """Transactions per second over disk utilizations."""
    curves: dict[str, Settings] = {"lfs": {}, _WAITING: {"layout.trigger": "no-free-segment"}}
    cases: dict[Label, Settings] = {
        (name, at): {**settings, **_fuller_by_other_files(utilization)}
        for name, settings in curves.items()
        for at, utilization in UTILIZATIONS.items()
    }
    cases[_SHRUNK, _FULL_PCT] = {"workload.utilization": _FULL_PCT / 100}
    cases[_NO_CLEANER, _LARGE_DISK] = {"workload.utilization": _LARGE_DISK / 100}
    found = run_cases(context, FIGURE, cases)
    alone = found[_NO_CLEANER, _LARGE_DISK]
    fastest, ffs = float(alone[_RATE]), ffs_transactions_per_s()
    values: dict[str, float | None] = {
        "tpcb/no_cleaner": fastest,
        "tpcb/no_cleaner_collected": float(_collected(alone)),
        "tpcb/ffs": ffs,
        "tpcb/no_cleaner_over_ffs": fastest / ffs,
    }
    for name in (*curves, _SHRUNK):
        for at, rate in zip(*column(found, name, _RATE), strict=True):
            victim_pct = 100 * float(found[name, at]["victim_utilization"] or 0)
            values[key("tpcb", name, at)] = rate
            values[key("tpcb", name, "over_ffs", at)] = rate / ffs
            values[key("tpcb", name, "loss_pct", at)] = reduction_pct(fastest, rate)
            values[key("tpcb", name, "victim_pct", at)] = victim_pct
    points = list(UTILIZATIONS)
    plot = Plot(
        name=f"seltzer-1995-{FIGURE}",
        title="TPC-B: logging with and without the cleaner, and in place",
        x_label="disk utilization, %",
        y_label="transactions per second",
        curves=[
            Curve("LFS without cleaner", points, [fastest] * len(points)),
            line(found, "lfs", "LFS with the cleaner of 4.4BSD", _RATE),
            line(found, _WAITING, "with one that waits", _RATE),
            Curve("FFS, computed", points, [ffs] * len(points), emphasis=False),
        ],
        caption="Without cleaner: on a disk that the log does not fill, as the paper projects it.",
    )
    return result(context, FIGURE, values, [plot])


def _fuller_by_other_files(utilization: float) -> Settings:
    """The disk that the database fills to the least utilization, with more on it."""
    others = round(utilization - min(UTILIZATIONS.values()), 6)
    return {
        "workload.utilization": utilization,
        "workload.preallocated": others,
        "workload.preallocated_chunk": _ALL_BLOCKS,
    }


def _collected(metrics: Mapping[str, Any]) -> int:
    return int(metrics["segments_cleaned"])


KIB = 1024
MAXIMUM_MB_PER_S = 2.2
"""The most that the bus of the paper's machine gives (§2.1)."""
LOG = {
    "kind": "lfs",
    "size": "1000 MiB",
    "segment_size": "1 MiB",
    "victim": "cost-age",
    "collect": "clean",
}
"""The log of 4.4BSD (§2.3): segments of a megabyte, cleaned by cost and age."""
Rates = Mapping[str, Mapping[int, float]]
"""Values by file system and size of file, KiB."""


def _measured(context: Context, figure: str, metric: str) -> dict[str, dict[int, float]]:
    """One metric of the sequential benchmark on both file systems."""
    experiment = context.tables(figure)
    log = {**experiment, "layout": LOG}
    found: dict[str, dict[int, float]] = {}
    for name, tables in (("ffs", experiment), ("lfs", log)):
        run = context.run_many(tables, {(name,): {}})[name,]
        rows = run["sequential"]
        found[name] = {
            each["file_bytes"] // KIB: float(each[metric])
            for each in rows
            if each[metric] is not None
        }
    return found


def _by_key(direction: str, rates: Rates) -> dict[str, float | None]:
    return {
        f"{direction}/{name}_{size}": rate
        for name, of in rates.items()
        for size, rate in of.items()
    }


def _over(rates: Rates, least_kib: int, most_kib: int) -> list[float]:
    """LFS over FFS at each size of a range."""
    lfs, ffs = rates["lfs"], rates["ffs"]
    return [lfs[size] / ffs[size] for size in ffs if least_kib <= size <= most_kib]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rates_plot(figure: str, title: str, rates: Rates) -> Plot:
    legends = {"ffs": "FFS", "lfs": "LFS"}
    return Plot(
        name=f"seltzer-1995-{figure}",
        title=title,
        x_label="size of file, KB",
        y_label="MB/s",
        curves=[Curve(legends[name], list(of), list(of.values())) for name, of in rates.items()],
        x_scale="log",
    )


def figure_01(context: Context) -> FigureResult:
    """Read performance by size of file."""
    rates = _measured(context, "figure-01", "read_mb_per_s")
    scores = _measured(context, "figure-01", "layout_score")["ffs"]
    ffs, lfs = rates["ffs"], rates["lfs"]
    values: dict[str, float | None] = _by_key("read", rates) | {
        "read/lfs_over_ffs_small": _mean(_over(rates, 16, 64)),
        "read/lfs_over_ffs_large": _mean(_over(rates, 128, 4 * KIB)),
        "read/drop_ffs_over_lfs": (ffs[96] / ffs[104]) / (lfs[96] / lfs[104]),
        "read/ffs_score_56": scores[56],
        "read/ffs_score_512": scores[512],
    }
    plot = _rates_plot("figure-01", "Read performance by size of file", rates)
    return result(context, "figure-01", values, [plot])


def figure_02(context: Context) -> FigureResult:
    """Write performance by size of file."""
    rates = _measured(context, "figure-02", "overwrite_mb_per_s")
    small = _over(rates, 8, 384)
    values: dict[str, float | None] = _by_key("write", rates) | {
        "write/lfs_over_ffs_1_8": _mean(_over(rates, 1, 8)),
        "write/lfs_over_ffs_small_least": min(small),
        "write/lfs_over_ffs_small_most": max(small),
        "write/lfs_over_ffs_large": _mean(_over(rates, KIB, 4 * KIB)),
        "write/lfs_of_maximum": rates["lfs"][4 * KIB] / MAXIMUM_MB_PER_S,
        "write/ffs_of_maximum": rates["ffs"][4 * KIB] / MAXIMUM_MB_PER_S,
    }
    plot = _rates_plot("figure-02", "Write performance by size of file", rates)
    return result(context, "figure-02", values, [plot])


def figure_03(context: Context) -> FigureResult:
    """Write performance with an fsync after each file."""
    rates = _measured(context, "figure-03", "overwrite_mb_per_s")
    without = _measured(context, "figure-02", "overwrite_mb_per_s")

    def loss_pct(name: str, least_kib: int, most_kib: int) -> float:
        sizes = [size for size in rates[name] if least_kib <= size <= most_kib]
        return _mean([reduction_pct(without[name][size], rates[name][size]) for size in sizes])

    values: dict[str, float | None] = {
        "sync/lfs_loss_mid_pct": loss_pct("lfs", 32, 256),
        "sync/lfs_loss_large_pct": loss_pct("lfs", KIB, 4 * KIB),
        "sync/ffs_loss_mid_pct": loss_pct("ffs", 32, 256),
        "sync/lfs_over_ffs_mid": _mean(_over(rates, 32, 256)),
    }
    plot = _rates_plot("figure-03", "Synchronous write performance by size of file", rates)
    return result(context, "figure-03", values, [plot])


def figure_05(context: Context) -> FigureResult:
    """Layout score by size of file on an aged file system with rotational gaps."""
    experiment = context.tables("figure-05")
    run = context.run_many(experiment, {("aged",): {}})["aged",]
    layout = run["score"]["layout"]
    powers = layout["by_size"]
    rising = [pooled(powers, least, most) for least, most in RISING_BLOCKS]
    scores = [score for score in rising if score is not None]
    steps = list(pairwise(scores))
    values: dict[str, float | None] = {
        "score/blocks_2": pooled(layout["by_blocks"], 2, 2),
        "score/blocks_8": pooled(layout["by_blocks"], 8, 8),
        "score/blocks_9_up": pooled(powers, 9, 1 << 40),
        "score/rises": 100 * sum(after > before for before, after in steps) / len(steps),
        "score/aggregate": layout["layout_score"],
    }
    bins = score_by_size(powers)
    plot = Plot(
        name="seltzer-1995-figure-05",
        title="Layout score by size of file, with rotational gaps",
        x_label="size of file, blocks",
        y_label="layout score",
        curves=[
            Curve("aged FFS", [most for _, most in bins], list(bins.values())),
            Curve("paper", [2, 8], [0.37, 0.74], style="points", emphasis=False),
        ],
        x_scale="log",
    )
    return result(context, "figure-05", values, [plot])


RISING_BLOCKS = ((2, 2), (3, 4), (5, 8), (9, 16), (17, 32))
"""Sizes over which the paper says that the score rises (§4.2)."""

STUDY = PaperStudy(
    name="seltzer-1995",
    title="File system logging versus clustering",
    citation=(
        "M. Seltzer, K. A. Smith, H. Balakrishnan, J. Chang, S. McMains and V. Padmanabhan, "
        "File System Logging versus Clustering: A Performance Comparison, USENIX 1995"
    ),
    table=(
        ("figure-01", "Read performance by size of file", figure_01),
        ("figure-02", "Write performance by size of file", figure_02),
        ("figure-03", "Synchronous write performance by size of file", figure_03),
        (FIGURE, "TPC-B with and without the cleaner", figure_04),
        ("figure-05", "Layout score by size of file, with rotational gaps", figure_05),
    ),
)
