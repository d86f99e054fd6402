"""Figures 6-1 to 6-11 of Matthews 1999: one file written and read in three patterns.

The three layouts of section 6.3 share workload, host and drive. The curves are read from
`throughput.parquet`: data transferred for users over disk time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agewell.files import parquet_tables
from agewell.studies.cases import Settings, result
from agewell.studies.context import Context, Label
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

FILE_MB = 625
"""The file: 80,000 blocks of 8 KiB, in the paper's megabytes of 2^20 bytes."""
_MIB = 2**20

LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "ffs": {"kind": "sequential", "order": "written"},
    "lfs": {},
    "anywhere": {"kind": "write-anywhere", "search": "sweep"},
}
"""The simulators of section 6.2.2; what is empty is the experiment's own."""

NAMES: Mapping[str, str] = {"ffs": "FFS", "lfs": "LFS", "anywhere": "write-anywhere"}

PATTERNS: Mapping[str, Settings] = {
    "sequential": {"workload.write": "sequential", "workload.read": "sequential"},
    "random": {"workload.write": "random", "workload.read": "sequential"},
    "pattern": {"workload.write": "pattern", "workload.read": "pattern"},
}
"""The second write and the reads of the three microbenchmarks."""

PATTERN_NAMES: Mapping[str, str] = {
    "sequential": "Sequential write, sequential read",
    "random": "Random write, sequential read",
    "pattern": "One pattern written and read",
}

UTILIZATIONS: Mapping[int, Settings] = {
    50: {"workload.utilization": 0.5, "workload.preallocated": 0.0},
    90: {"workload.utilization": 0.9, "workload.preallocated": 0.4},
}
"""At 90 %, 40 % of the disk are preallocated in even chunks (section 6.3)."""

REORGANISING: Settings = {"layout.reorganise": "blocks", "layout.decide": "value"}
"""Dynamic reorganisation as section 6.4 describes it."""

THREADING: Settings = {"layout.collect": "adaptive", "layout.placement": "none"}
"""Beyond the paper: a log that may write new data into holes, too."""

DRIVES: Mapping[str, Settings] = {
    "slow": {"device.model": "hp-97560"},
    "fast": {"device.model": "hp-c3323a", "workload.utilization": 0.63},
}
"""The 1.05 GB of the faster drive hold the file at 62 % or more."""
DRIVE_NAMES: Mapping[str, str] = {"slow": "HP 97560", "fast": "HP C3323A"}


@dataclass(frozen=True, slots=True)
class Course:
    """How a run went on: what had been done when so much had been transferred for users.

    Attributes:
        user_mb: Data written and read for users.
        disk_s: Disk time of everything.
        read_ms: Disk time of users' reads.
        read_blocks: Blocks that they brought in.
    """

    user_mb: Sequence[float]
    disk_s: Sequence[float]
    read_ms: Sequence[float]
    read_blocks: Sequence[float]

    def seconds_between(self, first_mb: float, last_mb: float) -> float:
        """Disk time from one amount of data to another."""
        return self._at(self.disk_s, last_mb) - self._at(self.disk_s, first_mb)

    def read_ms_between(self, first_mb: float, last_mb: float) -> float:
        """Mean time of a block read from the disk meanwhile."""
        ms = self._at(self.read_ms, last_mb) - self._at(self.read_ms, first_mb)
        blocks = self._at(self.read_blocks, last_mb) - self._at(self.read_blocks, first_mb)
        return ms / blocks

    def phase(self, number: int) -> float:
        """Disk time of one transfer of the whole file: 0 and 1 are writes, then come the reads."""
        return self.seconds_between(number * FILE_MB, (number + 1) * FILE_MB)

    def read_pass(self, number: int) -> float:
        """Mean time of a block read from the disk in one pass, the first of which is 0."""
        return self.read_ms_between((number + 2) * FILE_MB, (number + 3) * FILE_MB)

    def _at(self, values: Sequence[float], mb: float) -> float:
        """A value when `mb` had been transferred."""
        return between_rows(self.user_mb, values, mb)


def between_rows(points: Sequence[float], values: Sequence[float], point: float) -> float:
    """A value that grows from zero at zero, at a point, by the line between two rows."""
    place = bisect_left(points, point - 1e-6)
    if place >= len(points):
        return values[-1]
    if place == 0:
        return values[0] * point / points[0]
    left, right = points[place - 1], points[place]
    share = (point - left) / (right - left)
    return values[place - 1] + share * (values[place] - values[place - 1])


def read_course(directory: Path) -> Course:
    """The course of a finished run."""
    table = parquet_tables.read(directory / "throughput.parquet")
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    block = 8192
    return Course(
        user_mb=[value / _MIB for value in columns["user_bytes"]],
        disk_s=[value / 1e9 for value in columns["disk_ns"]],
        read_ms=[value / 1e6 for value in columns["read_ns"]],
        read_blocks=[value / block for value in columns["disk_read_bytes"]],
    )


def run_courses(
    context: Context, figure: str, layout: str, cases: Mapping[Label, Settings]
) -> dict[Label, Course]:
    """Run the experiment of a figure on one of the layouts in many forms; the courses by label."""
    tables = context.tables(figure)
    if LAYOUTS[layout]:
        tables["layout"] = dict(LAYOUTS[layout])
        # Their simulators place one block after another.
        tables["host"] = {**tables["host"], "buffer_size": "block"}
    found = context.run_many(tables, cases)
    return {label: read_course(run["directory"]) for label, run in found.items()}


def three_layouts(figure: str, pattern: str, percent: int, context: Context) -> FigureResult:
    """One of figures 6-1 to 6-6: FFS, LFS and write-anywhere under one pattern."""
    courses = {
        layout: run_courses(context, figure, layout, {(layout,): {}})[(layout,)]
        for layout in LAYOUTS
    }
    prefix = f"{pattern}_{percent}"
    values: dict[str, float | None] = {}
    for layout, course in courses.items():
        for number, phase in enumerate(("fill", "write", "read")):
            values[f"{prefix}/{layout}_{phase}_s"] = course.phase(number)
            values[f"{prefix}/{layout}_{phase}_mb_s"] = FILE_MB / course.phase(number)
        values[f"{prefix}/{layout}_total_s"] = course.seconds_between(0, 3 * FILE_MB)
    for phase in ("fill", "write", "read", "total"):
        seconds = {layout: values[f"{prefix}/{layout}_{phase}_s"] or 0.0 for layout in LAYOUTS}
        values[f"{prefix}/{phase}_spread_pct"] = 100 * (
            max(seconds.values()) / min(seconds.values()) - 1
        )
        for layout in LAYOUTS:
            values[f"{prefix}/{layout}_{phase}_over_lfs"] = seconds[layout] / seconds["lfs"]
    values[f"{prefix}/anywhere_bend_mb"] = bend_mb(courses["anywhere"])
    threading = run_courses(context, figure, "lfs", {("threading",): THREADING})
    total = threading[("threading",)].seconds_between(0, 3 * FILE_MB)
    values[f"{prefix}/anywhere_total_over_threading"] = (
        courses["anywhere"].seconds_between(0, 3 * FILE_MB) / total
    )
    plot = Plot(
        name=figure,
        title=f"{PATTERN_NAMES[pattern]} at {percent} %",
        x_label="disk time, s",
        y_label="data transferred for users, MB",
        curves=[_progress(NAMES[layout], course, 3) for layout, course in courses.items()],
        caption="A sequential write, a write and a read of a 625 MB file on the HP 97560.",
    )
    return result(context, figure, values, [plot])


def bend_mb(course: Course) -> float:
    """Where write-anywhere's writing slows down.

    It is the first place behind 400 MB from which 25 MB go at less than four fifths of the speed
    before.
    """
    pace = course.seconds_between(0, 400) / 400
    stretch = 25
    for end in range(400, 2 * FILE_MB - stretch, 5):
        if course.seconds_between(end, end + stretch) / stretch > pace / 0.8:
            return float(end)
    return float(2 * FILE_MB)


def _progress(label: str, course: Course, passes: int) -> Curve:
    last = passes * FILE_MB + 1
    points = [
        (seconds, mb)
        for seconds, mb in zip(course.disk_s, course.user_mb, strict=True)
        if mb <= last
    ]
    return Curve(label, [0.0, *(x for x, _ in points)], [0.0, *(y for _, y in points)])


def _read_times(label: str, course: Course) -> Curve:
    """Mean time of a block over every 25 MB read."""
    starts = range(2 * FILE_MB, int(course.user_mb[-1]) - 24, 25)
    values = [course.read_ms_between(start, start + 25) for start in starts]
    return Curve(label, [start - 2 * FILE_MB + 12.5 for start in starts], values)


def _with_and_without(
    context: Context, figure: str, cases: Mapping[Label, Settings]
) -> dict[Label, dict[str, Course]]:
    """LFS and LFS with dynamic reorganisation."""
    plain = run_courses(context, figure, "lfs", cases)
    moving = run_courses(
        context, figure, "lfs", {label: {**case, **REORGANISING} for label, case in cases.items()}
    )
    return {label: {"lfs": plain[label], "moving": moving[label]} for label in cases}


def break_even_passes(plain: Course, moving: Course) -> float:
    """Read passes after which reorganisation has paid for itself.

    It has when the run with it is behind the run without for the last time; 0 if it never is,
    infinite if it still is at the end.
    """
    passes = 5
    behind = [
        tenth / 10
        for tenth in range(1, 10 * passes + 1)
        if moving.seconds_between(0, (2 + tenth / 10) * FILE_MB)
        > 1.0001 * plain.seconds_between(0, (2 + tenth / 10) * FILE_MB)
    ]
    if not behind:
        return 0.0
    return float("inf") if behind[-1] == passes else behind[-1] + 0.1


def _reorganisation_values(prefix: str, courses: Mapping[str, Course]) -> dict[str, float | None]:
    plain, moving = courses["lfs"], courses["moving"]
    values: dict[str, float | None] = {}
    for number in range(5):
        values[f"{prefix}/lfs_pass_{number + 1}_ms"] = plain.read_pass(number)
        values[f"{prefix}/moving_pass_{number + 1}_ms"] = moving.read_pass(number)
    values[f"{prefix}/first_pass_change_pct"] = 100 * (moving.phase(2) / plain.phase(2) - 1)
    values[f"{prefix}/second_pass_time_ratio"] = moving.phase(3) / plain.phase(3)
    values[f"{prefix}/last_pass_time_ratio"] = moving.phase(6) / plain.phase(6)
    values[f"{prefix}/total_ratio"] = moving.seconds_between(
        0, 7 * FILE_MB
    ) / plain.seconds_between(0, 7 * FILE_MB)
    values[f"{prefix}/break_even_passes"] = break_even_passes(plain, moving)
    return values


def _reorganisation_plots(
    found: Mapping[str, Mapping[str, Course]], names: tuple[str, str], where: str, caption: str
) -> list[Plot]:
    """Progress and read times of LFS with and without reorganisation, case by case."""
    progress, times = [], []
    for case, courses in found.items():
        for key, words in (("lfs", "LFS"), ("moving", "reorganised")):
            label = f"{case}, {words}"
            progress.append(_progress(label, courses[key], 7))
            times.append(_read_times(label, courses[key]))
    return [
        Plot(
            names[0],
            f"LFS and dynamic reorganisation {where}",
            "disk time, s",
            "data transferred for users, MB",
            progress,
            caption,
        ),
        Plot(
            names[1],
            f"Mean time of a block read {where}",
            "data read, MB",
            "ms a block of 8 KB",
            times,
            "Each 625 MB are one pass.",
        ),
    ]


def figure_6_7(context: Context) -> FigureResult:
    """All three microbenchmarks with five reads, with and without reorganisation, at 50 %."""
    cases: dict[Label, Settings] = {(pattern,): settings for pattern, settings in PATTERNS.items()}
    found = _with_and_without(context, "figure-6-7", cases)
    values: dict[str, float | None] = {}
    for (pattern,), courses in found.items():
        values |= _reorganisation_values(str(pattern), courses)
    last = {pattern: values[f"{pattern}/moving_pass_5_ms"] or 0.0 for pattern in PATTERNS}
    values["random/last_over_matching"] = last["random"] / last["sequential"]
    named = {str(pattern): courses for (pattern,), courses in found.items()}
    plots = _reorganisation_plots(
        named,
        ("figure-6-7", "figure-6-8"),
        "at 50 %",
        "Two writes of a 625 MB file, then five reads.",
    )
    return result(context, "figure-6-7", values, plots)


def figure_6_9(context: Context) -> FigureResult:
    """Random write and sequential reads at both utilizations."""
    cases: dict[Label, Settings] = {
        (percent,): settings for percent, settings in UTILIZATIONS.items()
    }
    found = _with_and_without(context, "figure-6-9", cases)
    values: dict[str, float | None] = {}
    for (percent,), courses in found.items():
        values |= _reorganisation_values(f"u{percent}", courses)
    last = [values[f"u{percent}/moving_pass_5_ms"] or 0.0 for percent in (50, 90)]
    values["u90/last_over_50"] = last[1] / last[0]
    for (percent,), courses in found.items():
        # What the pass that moves cost more than the same reads without moving.
        overhead_s = courses["moving"].phase(3) - courses["lfs"].phase(3)
        values[f"u{percent}/moving_overhead_s"] = overhead_s
    named = {f"{percent} %": courses for (percent,), courses in found.items()}
    plots = _reorganisation_plots(
        named,
        ("figure-6-9", "figure-6-10"),
        "at 50 and 90 %",
        "Random write, then five sequential reads.",
    )
    return result(context, "figure-6-9", values, plots)


def figure_6_11(context: Context) -> FigureResult:
    """The gain on a slower and a faster drive."""
    cases: dict[Label, Settings] = {
        (drive,): {**REORGANISING, **settings} for drive, settings in DRIVES.items()
    }
    courses = run_courses(context, "figure-6-11", "lfs", cases)
    values: dict[str, float | None] = {}
    for (drive,), course in courses.items():
        before, after = course.read_pass(0), course.read_pass(4)
        values[f"{drive}/before_ms"] = before
        values[f"{drive}/after_ms"] = after
        values[f"{drive}/gain"] = before / after
    values["fast/gain_over_slow"] = (values["fast/gain"] or 0.0) / (values["slow/gain"] or 1.0)
    plot = Plot(
        "figure-6-11",
        "Reorganisation on two drives",
        "data read, MB",
        "ms a block of 8 KB",
        [_read_times(DRIVE_NAMES[str(drive)], course) for (drive,), course in courses.items()],
        "Random write, then five sequential reads; each 625 MB are one pass.",
    )
    return result(context, "figure-6-11", values, [plot])
