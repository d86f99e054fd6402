"""The study of K. A. Smith, *The effects of age and fragmentation on file system performance*.

What the snapshots and benchmarks of 1994 showed, each finding as a number on simulated file systems
that have aged by different workloads for different times.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from agewell.studies.cases import result
from agewell.studies.context import Context, Label
from agewell.studies.smith_seltzer_1996 import pooled
from agewell.studies.study import FigureResult, PaperStudy
from agewell.values.plot import Curve, Plot

PAPER = "smith-fragmentation"
FIGURE = "findings"
SEEDS = (1, 2, 3)
DAYS = (60, 150, 300)
"""The file systems: each seed after each of these days."""
LARGE_BLOCKS = 33
TENTHS = 3
"""The first and the last part of a cylinder group, in tenths."""

Run = Mapping[str, Any]


def findings(context: Context) -> FigureResult:
    """Every finding as a number."""
    experiment = context.tables(FIGURE)
    cases: dict[Label, Mapping[str, Any]] = {
        (seed, days): {"run.seed": seed, "run.days": days} for seed in SEEDS for days in DAYS
    }
    cases["near", 1] = {"layout.fragments": "near-previous", "measure.sequential": []}
    cases["new", 0] = {"workload.kind": "none"}
    found = context.run_many(experiment, cases)
    near, new = found.pop(("near", 1)), found.pop(("new", 0))
    aged = found[SEEDS[0], DAYS[-1]]
    layout = aged["score"]["layout"]
    first, last = (_free(aged, tenths) for tenths in (slice(TENTHS), slice(-TENTHS, None)))
    scores = [float(run["metrics"]["layout_score"]) for run in found.values()]
    losses = [_loss_pct(run, new) for run in found.values()]
    values: dict[str, float | None] = {
        "size/two_blocks_pct": _pct(pooled(layout["by_blocks"], 2, 2)),
        "size/above_32_blocks_pct": _pct(pooled(layout["by_size"], LARGE_BLOCKS, 1 << 40)),
        "fragments/behind_pct": _pct(aged["metrics"]["tails_behind_share"]),
        "fragments/behind_near_previous_pct": _pct(near["metrics"]["tails_behind_share"]),
        "free/first_third_share_pct": first[0],
        "free/last_third_share_pct": last[0],
        "free/extent_first_kib": first[1],
        "free/extent_last_kib": last[1],
        "all/lowest_pct": 100 * min(scores),
        "speed/correlation": _mean_correlation(list(found.values())),
        "speed/predictor": statistics.correlation(scores, [_made(run) for run in found.values()]),
        "speed/loss_most_pct": max(losses),
    }
    return result(context, FIGURE, values, [_plot(list(found.values())), _free_plot(aged)])


def _pct(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _tenths(run: Run) -> Sequence[Mapping[str, Any]]:
    tenths: Sequence[Mapping[str, Any]] = run["score"]["placement"]["tenths"]
    return tenths


def _free(run: Run, part: slice) -> tuple[float, float]:
    """Share of the free blocks in a part of the groups, per cent, and its mean free extent, KiB."""
    tenths = _tenths(run)
    free = sum(each["free_blocks"] for each in tenths[part])
    extents = sum(each["free_extents"] for each in tenths[part])
    block_kib = run["score"]["contents"]["block_bytes"] / 1024
    share = 100 * free / sum(each["free_blocks"] for each in tenths)
    return share, free * block_kib / max(extents, 1)


def _rates(run: Run) -> list[float]:
    return [float(each["read_mb_per_s"]) for each in run["sequential"]]


def _scores(run: Run) -> list[float]:
    return [float(each["layout_score"]) for each in run["sequential"]]


def _made(run: Run) -> float:
    """The mean layout score of the files that the benchmark made."""
    return statistics.fmean(_scores(run))


def _loss_pct(run: Run, new: Run) -> float:
    """How much slower files are read than on a new file system, mean of the sizes."""
    pairs = zip(_rates(run), _rates(new), strict=True)
    return statistics.fmean(100 * (1 - aged / fresh) for aged, fresh in pairs)


def _mean_correlation(runs: Sequence[Run]) -> float:
    """Of layout score and read rate over file systems, at each size; the mean of the sizes."""
    rates = zip(*(_rates(run) for run in runs), strict=True)
    scores = zip(*(_scores(run) for run in runs), strict=True)
    return statistics.fmean(
        statistics.correlation(score, rate) for score, rate in zip(scores, rates, strict=True)
    )


def _plot(runs: Sequence[Run]) -> Plot:
    sizes = [each["file_bytes"] // 1024 for each in runs[0]["sequential"]]
    curves = [
        Curve(
            f"{size} KB",
            [_scores(run)[place] for run in runs],
            [_rates(run)[place] for run in runs],
            style="points",
        )
        for place, size in enumerate(sizes)
    ]
    return Plot(
        name=f"{PAPER}-speed",
        title="Reading the benchmark's files against their layout",
        x_label="layout score of the files read",
        y_label="MB/s",
        curves=curves,
        caption="A point a file system and size of file.",
    )


def _free_plot(run: Run) -> Plot:
    tenths = _tenths(run)
    names = [str(number) for number in range(1, len(tenths) + 1)]
    shares = [100 * each["free_share"] for each in tenths]
    return Plot(
        name=f"{PAPER}-free-space",
        title="Where in the cylinder groups free space lies",
        x_label="tenth of a cylinder group",
        y_label="free, %",
        curves=[Curve("free", list(range(len(tenths))), shares, style="bars")],
        categories=names,
        caption="Small files fill the front of a group; what is free accumulates at its end.",
    )


STUDY = PaperStudy(
    name=PAPER,
    title="What age and fragmentation do to a file system",
    citation=(
        "K. A. Smith, The effects of age and fragmentation on file system performance, summary of "
        "Harvard University TR-35-94, 1994"
    ),
    table=((FIGURE, "The findings of the 1994 study", findings),),
)
