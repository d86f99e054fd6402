"""Figures 6-12 to 6-17 of Matthews 1999: reorganisation under long-term and decision support loads.

Neither of the paper's traces is public. A load made from published facts stands for the one, a
recorded database for the other; what they save is shown beside what the paper saw.
"""

from __future__ import annotations

from collections.abc import Mapping

from agewell.studies.cases import Settings, reduction_pct, result
from agewell.studies.context import Context, Label
from agewell.studies.matthews_1999.reading import Course, between_rows, read_course
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

RULES: Mapping[str, Settings] = {
    "lfs": {"layout.reorganise": "none"},
    "value": {"layout.reorganise": "blocks", "layout.decide": "value"},
    "gain": {"layout.reorganise": "blocks", "layout.decide": "gain"},
}
NAMES: Mapping[str, str] = {
    "lfs": "LFS",
    "value": "reorganised by value (§6.4.2)",
    "gain": "reorganised by gain (ours)",
}
MOVING = ("value", "gain")
"""The rules that move anything."""
QUERIES = tuple(f"q{number:02}" for number in range(1, 18))
"""The questions of the recorded load."""
TRACE = "decision-support-files.parquet"


def _courses(context: Context, figure: str, cases: Mapping[Label, Settings]) -> dict[Label, Course]:
    """The courses of a figure's experiment by label; a recorded trace is one of the examples."""
    tables = context.tables(figure)
    if "path" in tables["workload"]:
        path = str(context.examples / "traces" / TRACE)
        tables["workload"] = {**tables["workload"], "path": path}
    found = context.run_many(tables, cases)
    return {label: read_course(run["directory"]) for label, run in found.items()}


def _read_ms(course: Course, first: float = 0.0, last: float = 1.0) -> float:
    """Mean time of a block read between two shares of what was read from the disk."""
    # Rows between which nothing was read from the disk say nothing more about its reads.
    rows = [
        row
        for row, blocks in enumerate(course.read_blocks)
        if blocks > (course.read_blocks[row - 1] if row else 0.0)
    ]
    blocks = [course.read_blocks[row] for row in rows]
    times = [course.read_ms[row] for row in rows]
    total = blocks[-1]
    ms = [between_rows(blocks, times, share * total) for share in (first, last)]
    return (ms[1] - ms[0]) / ((last - first) * total)


def _saved(courses: Mapping[str, Course]) -> dict[str, float | None]:
    """What each rule saves of all disk time, and of the time of a block read."""
    plain = courses["lfs"]
    values: dict[str, float | None] = {
        "lfs_s": plain.disk_s[-1],
        "lfs_read_ms": _read_ms(plain),
    }
    for rule in MOVING:
        course = courses[rule]
        values[f"{rule}_overall_pct"] = reduction_pct(plain.disk_s[-1], course.disk_s[-1])
        values[f"{rule}_read_pct"] = reduction_pct(_read_ms(plain), _read_ms(course))
        halves = [
            reduction_pct(_read_ms(plain, first, first + 0.5), _read_ms(course, first, first + 0.5))
            for first in (0.0, 0.5)
        ]
        values[f"{rule}_first_half_read_pct"], values[f"{rule}_second_half_read_pct"] = halves
    return values


def _plots(courses: Mapping[str, Course], overall: str, reads: str, title: str) -> list[Plot]:
    progress = [
        Curve(NAMES[rule], [0.0, *course.disk_s], [0.0, *course.user_mb])
        for rule, course in courses.items()
    ]
    steps = 40
    times = [
        Curve(
            NAMES[rule],
            [course.read_blocks[-1] / 128 * (step + 0.5) / steps for step in range(steps)],
            [_read_ms(course, step / steps, (step + 1) / steps) for step in range(steps)],
        )
        for rule, course in courses.items()
    ]
    return [
        Plot(
            overall,
            f"{title}: progress",
            "disk time, s",
            "data transferred for users, MB",
            progress,
            "On the HP 97560, 90 % full.",
        ),
        Plot(
            reads,
            f"{title}: time of a block read",
            "data read from the disk, MB",
            "ms a block of 8 KB",
            times,
            "Means over fortieths of what was read.",
        ),
    ]


def figure_6_12(context: Context) -> FigureResult:
    """The long-term load."""
    found = _courses(context, "figure-6-12", {(rule,): case for rule, case in RULES.items()})
    courses = {str(rule): course for (rule,), course in found.items()}
    values = {f"long/{name}": value for name, value in _saved(courses).items()}
    plots = _plots(courses, "figure-6-12", "figure-6-13", "Long-term load")
    return result(context, "figure-6-12", values, plots)


def figure_6_14(context: Context) -> FigureResult:
    """All questions, ten times over."""
    found = _courses(context, "figure-6-14", {(rule,): case for rule, case in RULES.items()})
    courses = {str(rule): course for (rule,), course in found.items()}
    values = {f"queries/{name}": value for name, value in _saved(courses).items()}
    plots = _plots(courses, "figure-6-14", "figure-6-16", "Decision support")
    return result(context, "figure-6-14", values, plots)


def figure_6_15(context: Context) -> FigureResult:
    """Every question by itself, ten times over."""
    cases: dict[Label, Settings] = {
        (query, rule): {**case, "workload.part": query}
        for query in QUERIES
        for rule, case in RULES.items()
    }
    found = _courses(context, "figure-6-15", cases)
    values: dict[str, float | None] = {}
    read: dict[str, list[float]] = {rule: [] for rule in MOVING}
    overall: dict[str, list[float]] = {rule: [] for rule in MOVING}
    for query in QUERIES:
        saved = _saved({rule: found[query, rule] for rule in RULES})
        for rule in MOVING:
            read[rule].append(saved[f"{rule}_read_pct"] or 0.0)
            overall[rule].append(saved[f"{rule}_overall_pct"] or 0.0)
            values[f"{query}/{rule}_read_pct"] = saved[f"{rule}_read_pct"]
            values[f"{query}/{rule}_overall_pct"] = saved[f"{rule}_overall_pct"]
    for rule in MOVING:
        values[f"queries/{rule}_most_read_pct"] = max(read[rule])
        values[f"queries/{rule}_least_read_pct"] = min(read[rule])
        values[f"queries/{rule}_least_overall_pct"] = min(overall[rule])
        better = [saved for saved in read[rule] if saved > 1.0]
        values[f"queries/{rule}_better"] = float(len(better))
    plots = [
        Plot(
            name,
            title,
            "question",
            "saved, %",
            [
                Curve(NAMES[rule], range(len(QUERIES)), saved, style="bars")
                for rule, saved in table.items()
            ],
            "Each question ten times over, on a disk of its own.",
            categories=QUERIES,
        )
        for name, title, table in (
            ("figure-6-15", "Time of a block read, question by question", read),
            ("figure-6-17", "All disk time, question by question", overall),
        )
    ]
    return result(context, "figure-6-15", values, plots)
