"""The study of Seltzer et al., *File System Logging versus Clustering*, USENIX 1995.

Figure 4: TPC-B on a log-structured file system, with its cleaner and without, against the Berkeley
Fast File System, whose every write here goes back to its place and is computed as the paper does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agewell.plot import Curve, Plot
from agewell.studies import Context, FigureResult
from agewell.studies.matthews_1999_runs import (
    Settings,
    column,
    key,
    line,
    reduction_pct,
    result,
    run_cases,
    utilizations,
)
from agewell.studies.paper import PaperStudy
from agewell.studies.running import Label

FIGURE = "figure-04"
UTILIZATIONS = utilizations(48, 55, 60, 65, 70, 75, 80, 85)
"""From the emptiest disk of the paper to what it calls full (80 % in its source [8])."""
_RATE = "transactions_per_s"
_NO_CLEANER = "no_cleaner"
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
    cases: dict[Label, Settings] = {
        ("lfs", at): {"workload.utilization": utilization}
        for at, utilization in UTILIZATIONS.items()
    }
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
    for at, rate in zip(*column(found, "lfs", _RATE), strict=True):
        run = found["lfs", at]
        values[key("tpcb", "lfs", at)] = rate
        values[key("tpcb", "loss_pct", at)] = reduction_pct(fastest, rate)
        values[key("tpcb", "victim_pct", at)] = 100 * float(run["victim_utilization"] or 0)
    points = list(UTILIZATIONS)
    plot = Plot(
        name=f"seltzer-1995-{FIGURE}",
        title="TPC-B: logging with and without the cleaner, and in place",
        x_label="disk utilization, %",
        y_label="transactions per second",
        curves=[
            Curve("LFS without cleaner", points, [fastest] * len(points)),
            line(found, "lfs", "LFS with cleaner", _RATE),
            Curve("FFS, computed", points, [ffs] * len(points), emphasis=False),
        ],
        caption="Without cleaner: on a disk that the log does not fill, as the paper projects it.",
    )
    return result(context, FIGURE, values, [plot])


def _collected(metrics: Mapping[str, Any]) -> int:
    return int(metrics["segments_cleaned"])


STUDY = PaperStudy(
    name="seltzer-1995",
    title="File system logging versus clustering",
    citation=(
        "M. Seltzer, K. A. Smith, H. Balakrishnan, J. Chang, S. McMains and V. Padmanabhan, "
        "File System Logging versus Clustering: A Performance Comparison, USENIX 1995"
    ),
    table=((FIGURE, "TPC-B with and without the cleaner", figure_04),),
)
