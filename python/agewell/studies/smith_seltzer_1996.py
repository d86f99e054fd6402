"""The study of Smith & Seltzer, *A Comparison of FFS Disk Allocation Policies*, USENIX 1996.

Two simulated file systems are aged by the same ten months of operations, one with the allocator of
4.4BSD alone, one with its reallocation of clusters; the benchmarks of the paper run on both as they
are on the last day.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agewell.experiments.simulation import SERIES_FILE
from agewell.files import parquet_tables
from agewell.filesystems import aging, workloads
from agewell.studies.cases import result
from agewell.studies.context import Context, Label
from agewell.studies.loop_file_system import missing, mounted
from agewell.studies.study import FigureResult, PaperStudy
from agewell.values.plot import Curve, Plot

PAPER = "smith-seltzer-1996"
POLICIES = {"ffs": "FFS", "realloc": "FFS + realloc"}
KINDS = {"ffs": "ffs", "realloc": "ffs+realloc"}
"""The two allocators: keys of our values, and what the paper's legends say."""

Run = Mapping[str, Any]
"""The result document of one run."""
Bins = Mapping[tuple[int, int], float]
"""Layout scores by the smallest and the largest size of a bin, in blocks."""

KIB = 1024
BLOCK_KIB = 8
CLUSTER_KIB = 56
DIRECT_KIB = 96
"""The largest file without an indirect block: twelve blocks."""
SEEDS = (1, 2, 3)
"""The workload's, for the spread; everything else is with the first."""
DAYS = 300
FILE_SYSTEM_BYTES = 502 << 20
"""The ten months, and the size of the file system (§3.1, table 1)."""
MOSTLY_IN_USE = 0.7
"""What the paper says of the file system for most of the ten months (§3.1)."""


def age(context: Context, figure: str) -> dict[str, Run]:
    """Run the experiment of a figure under both allocators."""
    experiment = context.tables(figure)
    cases: dict[Label, Mapping[str, Any]] = {
        (name,): {"layout.kind": KINDS[name]} for name in POLICIES
    }
    found = context.run_many(experiment, cases)
    return {str(label[0]): run for label, run in found.items()}


def daily_scores(run: Run) -> list[float]:
    """The aggregate layout score at the end of each day."""
    return _column(run, "layout_score")


def _column(run: Run, name: str) -> list[float]:
    table = parquet_tables.read(run["directory"] / SERIES_FILE, columns=[name])
    return [float(value) for value in table[name].to_pylist()]


def score_by_size(bins: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], float]:
    """The scores of the bins that have one."""
    return {
        (each["blocks_min"], each["blocks_max"]): float(each["layout_score"])
        for each in bins
        if each["layout_score"] is not None
    }


def pooled(bins: Sequence[Mapping[str, Any]], least: int, most: int) -> float | None:
    """The score of all files of `least` to `most` blocks together; None if there are none."""
    chosen = [each for each in bins if least <= each["blocks_min"] <= each["blocks_max"] <= most]
    counted = sum(each["counted_blocks"] for each in chosen)
    return sum(each["optimal_blocks"] for each in chosen) / counted if counted else None


def figure_01(context: Context) -> FigureResult:
    """The layout score over time on a real file system, beside the simulated one."""
    why = missing("ext4")
    experiment = context.tables("figure-01")
    simulated = context.run_many(experiment, {("ffs",): {}})["ffs",]
    scores = daily_scores(simulated)
    values: dict[str, float | None] = {"ffs/end": scores[-1]}
    curves = [Curve("simulated FFS", list(range(1, len(scores) + 1)), scores)]
    if not why:
        real, refused = _aged_ext4(context, int(experiment["run"]["seed"]))
        days = [day for day in real if day < len(scores)]
        values["ext4/end"] = real[days[-1]]
        values["ext4/fall"] = real[days[0]] - real[days[-1]]
        values["both/correlation"] = statistics.correlation(
            [scores[day] for day in days], [real[day] for day in days]
        )
        values["ext4/no_space"] = refused
        curves.append(Curve("real ext4", [day + 1 for day in days], [real[day] for day in days]))
    plot = Plot(
        name=f"{PAPER}-figure-01",
        title="Layout score over ten months, real and simulated",
        x_label="day",
        y_label="aggregate layout score",
        curves=curves,
        caption="The paper's curves end at 0.68 (real) and 0.77 (simulated).",
    )
    absent = {"ext4": why, "both": why} if why else {}
    return result(context, "figure-01", values, [plot], absent)


def _aged_ext4(context: Context, seed: int) -> tuple[dict[int, float], int]:
    """The score of an ext4 at the end of each day, and how many operations found no room."""
    workload = context.out / "smith-1996.parquet"
    workloads.make({"source": "smith-1996", "seed": seed}, workload)

    def show(state: aging.Progress) -> None:
        context.progress(min(state.days / DAYS, 1.0), f"ext4, day {state.days:.0f}")

    with mounted("ext4", FILE_SYSTEM_BYTES) as root:
        aged = aging.age(
            root, workload, daily=True, sync_every="1 d", allow_system_disk=True, progress=show
        )
    by_day = zip(
        aged.series["day"].to_pylist(), aged.series["layout_score"].to_pylist(), strict=True
    )
    scores = {int(day): float(score) for day, score in by_day if score is not None}
    return scores, int(aged.document["report"]["outcomes"]["no_space"])


def figure_02(context: Context) -> FigureResult:
    """The layout score over time."""
    runs = age(context, "figure-02")
    days = {name: daily_scores(run) for name, run in runs.items()}
    plain, realloc = days["ffs"], days["realloc"]
    # The series counts what users can have, snapshots count everything (§3.1).
    minfree = runs["ffs"]["config"]["layout"]["minfree_pct"] / 100
    used = [share * (1 - minfree) for share in _column(runs["ffs"], "utilization")]
    metrics = runs["ffs"]["metrics"]
    bad = {name: 100 * (1 - scores[-1]) for name, scores in days.items()}
    above = sum(ours > theirs for ours, theirs in zip(realloc, plain, strict=True))
    values: dict[str, float | None] = {
        "both/improvement_pct": 100 * (1 - bad["realloc"] / bad["ffs"]),
        "both/days_above_pct": 100 * above / len(plain),
        "both/difference_day_1": realloc[0] - plain[0],
        "both/difference_end": realloc[-1] - plain[-1],
        "both/days_under_70_pct": sum(each < MOSTLY_IN_USE for each in used),
        "both/utilization_most_pct": 100 * max(used),
        "both/operations": metrics["file_operations"],
        "both/written_gb": metrics["written_bytes"] / 1e9,
    }
    for name, ends in _ends(context, "figure-02").items():
        values[f"{name}/end_lowest"], values[f"{name}/end_highest"] = min(ends), max(ends)
    for name, scores in days.items():
        values[f"{name}/day_1"] = scores[0]
        values[f"{name}/end"] = scores[-1]
        values[f"{name}/non_optimal_pct"] = bad[name]
    numbers = list(range(1, len(plain) + 1))
    plot = Plot(
        name=f"{PAPER}-figure-02",
        title="Layout score over ten months",
        x_label="day",
        y_label="aggregate layout score",
        curves=[
            *(Curve(POLICIES[name], numbers, scores) for name, scores in days.items()),
            Curve("in use, share", numbers, used, emphasis=False),
        ],
        caption="The paper prints 0.924 and 0.950 after the first day, 0.766 and 0.899 at the end.",
    )
    return result(context, "figure-02", values, [plot])


def _ends(context: Context, figure: str) -> dict[str, list[float]]:
    """The score on the last day under both allocators, with each seed."""
    cases: dict[Label, Mapping[str, Any]] = {
        (name, seed): {"layout.kind": KINDS[name], "run.seed": seed}
        for name in POLICIES
        for seed in SEEDS
    }
    found = context.run_many(context.tables(figure), cases)
    return {
        name: [float(found[name, seed]["metrics"]["layout_score"]) for seed in SEEDS]
        for name in POLICIES
    }


def figure_03(context: Context) -> FigureResult:
    """The layout score by size of file."""
    runs = age(context, "figure-03")
    layouts = {name: run["score"]["layout"] for name, run in runs.items()}
    values: dict[str, float | None] = {}
    for name, layout in layouts.items():
        exact, powers = layout["by_blocks"], layout["by_size"]
        values |= {
            f"{name}/blocks_2": pooled(exact, 2, 2),
            f"{name}/blocks_3_to_4": pooled(exact, 3, 4),
            f"{name}/below_cluster": pooled(exact, 3, 7),
            f"{name}/blocks_11_to_12": pooled(exact, 11, 12),
            f"{name}/blocks_13_to_14": pooled(exact, 13, 14),
            f"{name}/blocks_65_to_128": pooled(powers, 65, 128),
        }
    scores = {name: score_by_size(layout["by_size"]) for name, layout in layouts.items()}
    values["both/bins_above_pct"] = _share_above(scores["realloc"], scores["ffs"])
    curves = [_by_size(POLICIES[name], layout["by_size"]) for name, layout in layouts.items()]
    plot = _size_plot("figure-03", "Layout score by size of file", curves)
    fine = Plot(
        name=f"{PAPER}-figure-03-blocks",
        title="Layout score by size of file, up to 16 blocks",
        x_label="size, blocks",
        y_label="layout score",
        curves=[
            Curve(
                POLICIES[name],
                [low for low, _ in score_by_size(layout["by_blocks"])],
                list(score_by_size(layout["by_blocks"]).values()),
            )
            for name, layout in layouts.items()
        ],
        caption="Realloc is not called before the second block is full; the thirteenth block lies "
        "in another cylinder group.",
    )
    return result(context, "figure-03", values, [plot, fine])


def _share_above(ours: Bins, theirs: Bins) -> float:
    shared = [size for size in ours if size in theirs]
    return 100 * sum(ours[size] >= theirs[size] for size in shared) / len(shared)


def _by_size(label: str, bins: Sequence[Mapping[str, Any]]) -> Curve:
    scores = score_by_size(bins)
    return Curve(label, [BLOCK_KIB * most for _, most in scores], list(scores.values()))


def _size_plot(figure: str, title: str, curves: Sequence[Curve]) -> Plot:
    return Plot(
        name=f"{PAPER}-{figure}",
        title=title,
        x_label="size of file, KB",
        y_label="layout score",
        curves=curves,
        x_scale="log",
    )


def _by_file_size(run: Run, metric: str) -> dict[int, float]:
    """One metric of the sequential benchmark by KiB."""
    return {each["file_bytes"] // KIB: float(each[metric]) for each in run["sequential"]}


def gain_pct(before: float, after: float) -> float:
    """By how much a rate rises, in per cent."""
    return 100 * (after / before - 1)


def figure_04(context: Context) -> FigureResult:
    """Throughput of sequential reads and writes by size of file."""
    runs = age(context, "figure-04")
    values: dict[str, float | None] = {}
    plots: list[Plot] = []
    deviations: list[float] = []
    for direction, phase in (("read", "read"), ("write", "create")):
        rates = {name: _by_file_size(run, f"{phase}_mb_per_s") for name, run in runs.items()}
        gains = {
            size: gain_pct(before, rates["realloc"][size])
            for size, before in rates["ffs"].items()
            if size >= 2 * BLOCK_KIB
        }
        raw = float(runs["ffs"]["metrics"][f"raw_{direction}_mb_per_s"])
        values |= {f"{direction}/gain_{size}_pct": gain for size, gain in gains.items()}
        values |= {
            f"{direction}/{name}_{size}": rate
            for name, of_size in rates.items()
            for size, rate in of_size.items()
        }
        large = [gain for size, gain in gains.items() if size >= 4 * KIB]
        values[f"{direction}/gain_most_pct"] = max(gains.values())
        values[f"{direction}/gain_large_pct"] = sum(large) / len(large)
        values[f"{direction}/raw"] = raw
        for name, run in runs.items():
            spread = _by_file_size(run, f"{phase}_deviation_mb_per_s")
            of_size = rates[name]
            deviations += [100 * spread[size] / of_size[size] for size in spread]
        plots.append(_throughput_plot(direction, rates, raw))
    values["both/deviation_most_pct"] = max(deviations)
    return result(context, "figure-04", values, plots)


def _throughput_plot(direction: str, rates: Mapping[str, Mapping[int, float]], raw: float) -> Plot:
    sizes = list(rates["ffs"])
    curves = [Curve(POLICIES[name], sizes, list(of.values())) for name, of in rates.items()]
    return Plot(
        name=f"{PAPER}-figure-04-{direction}",
        title=f"Sequential {direction} throughput by size of file",
        x_label="size of file, KB",
        y_label="MB/s",
        curves=[*curves, Curve("raw disk", sizes, [raw] * len(sizes), emphasis=False)],
        caption="Files of more than 96 KB have an indirect block, in another cylinder group.",
        x_scale="log",
    )


def figure_05(context: Context) -> FigureResult:
    """The layout of the files that the sequential benchmark makes."""
    runs = age(context, "figure-05")
    scores = {name: _sequential_scores(run) for name, run in runs.items()}
    values: dict[str, float | None] = {"both/sizes_above_pct": 0.0}
    for name, of_size in scores.items():
        values[f"{name}/to_56"] = _lowest(of_size, 2 * BLOCK_KIB, CLUSTER_KIB)
        values[f"{name}/to_96"] = _lowest(of_size, CLUSTER_KIB + 1, DIRECT_KIB)
    pairs = [(scores["realloc"][size], before) for size, before in scores["ffs"].items()]
    values["both/sizes_above_pct"] = 100 * sum(a >= b for a, b in pairs) / len(pairs)
    curves = [Curve(POLICIES[name], list(of), list(of.values())) for name, of in scores.items()]
    plot = _size_plot("figure-05", "Layout score of the benchmark's files", curves)
    return result(context, "figure-05", values, [plot])


def _sequential_scores(run: Run) -> dict[int, float]:
    found = {each["file_bytes"] // KIB: each["layout_score"] for each in run["sequential"]}
    return {size: float(score) for size, score in found.items() if score is not None}


def _lowest(scores: Mapping[int, float], least: int, most: int) -> float:
    return min(score for size, score in scores.items() if least <= size <= most)


def table_02(context: Context) -> FigureResult:
    """Layout and throughput of the files modified in the last month."""
    runs = age(context, "table-02")
    values: dict[str, float | None] = {}
    for name, run in runs.items():
        metrics = run["metrics"]
        values[f"{name}/layout_score"] = metrics["hot_layout_score"]
        values[f"{name}/read"] = metrics["hot_read_mb_per_s"]
        values[f"{name}/write"] = metrics["hot_write_mb_per_s"]
    plain, realloc = (runs[name]["metrics"] for name in ("ffs", "realloc"))
    for direction in ("read", "write"):
        rate = f"hot_{direction}_mb_per_s"
        values[f"both/{direction}_gain_pct"] = gain_pct(plain[rate], realloc[rate])
    values["both/files"] = plain["hot_files"]
    values["both/files_pct"] = 100 * plain["hot_files"] / plain["files"]
    values["both/megabytes"] = plain["hot_bytes"] / 1e6
    values["both/bytes_pct"] = 100 * plain["hot_bytes"] / plain["file_bytes"]
    return result(context, "table-02", values, [])


def figure_06(context: Context) -> FigureResult:
    """The layout of the hot files by size, beside that of the benchmark's files."""
    hot, made = age(context, "figure-06"), age(context, "figure-05")
    values: dict[str, float | None] = {}
    curves: list[Curve] = []
    for name, run in hot.items():
        bins = run["score"]["layout"]["hot"]["by_size"]
        values[f"{name}/blocks_2"] = pooled(bins, 2, 2)
        above = [pooled(bins, 3, 4), pooled(bins, 5, 8), pooled(bins, 9, 16)]
        values[f"{name}/blocks_3_to_16"] = min(score for score in above if score is not None)
        values[f"{name}/hot_to_128"] = pooled(bins, 2, 16)
        sequential = _sequential_scores(made[name])
        to_128 = [sequential[size] for size in sequential if size <= 16 * BLOCK_KIB]
        values[f"{name}/sequential_to_128"] = sum(to_128) / len(to_128)
        curves.append(_by_size(f"{POLICIES[name]}, hot files", bins))
        curves.append(
            Curve(
                f"{POLICIES[name]}, benchmark",
                list(sequential),
                list(sequential.values()),
                dashed=True,
            )
        )
    plot = _size_plot("figure-06", "Layout score of hot files and of the benchmark's", curves)
    return result(context, "figure-06", values, [plot])


_TABLE: tuple[tuple[str, str, Callable[[Context], FigureResult]], ...] = (
    ("figure-01", "Layout score over time, real and simulated", figure_01),
    ("figure-02", "Layout score over time, FFS and realloc", figure_02),
    ("figure-03", "Layout score by size of file", figure_03),
    ("figure-04", "Sequential throughput by size of file", figure_04),
    ("figure-05", "Layout score of the sequential benchmark's files", figure_05),
    ("table-02", "Files modified in the last month", table_02),
    ("figure-06", "Layout score of hot files by size", figure_06),
)

STUDY = PaperStudy(
    name=PAPER,
    title="FFS allocation and reallocation as file systems age",
    citation=(
        "K. A. Smith and M. Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996"
    ),
    table=_TABLE,
)
