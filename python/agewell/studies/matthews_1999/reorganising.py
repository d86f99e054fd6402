"""Beyond Matthews 1999, chapter 6: when to reorganise, what belongs together, reading ahead.

Every load runs on a log that does not reorganise, on one that moves whatever has a value above 2
(section 6.4.2), and on one that moves what is likely to save more than it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agewell.studies.cases import Metrics, Settings, key, reduction_pct, result
from agewell.studies.context import Context, Label
from agewell.studies.study import FigureResult
from agewell.values.plot import Curve, Plot

Tables = Mapping[str, Any]

_MICRO: Settings = {"kind": "microbenchmark", "blocks": 40_000, "reads": 5}

LOADS: Mapping[str, Tables] = {
    "sequential": {**_MICRO, "write": "sequential", "read": "sequential"},
    "random": {**_MICRO, "write": "random", "read": "sequential"},
    "pattern": {**_MICRO, "write": "pattern", "read": "pattern"},
    "once": {**_MICRO, "write": "random", "read": "sequential", "reads": 1},
    "fragmented": {
        **_MICRO,
        "write": "random",
        "read": "sequential",
        "utilization": 0.9,
        "preallocated": 0.4,
    },
    "update": {"kind": "random-update", "blocks": 40_000, "updates_per_block": 3},
    "tpcb": {"kind": "tpcb", "transactions": 40_000},
    "multimedia": {"kind": "multimedia"},
    "software": {"kind": "software-development"},
    "transactions": {"kind": "transaction-processing"},
    "decision": {"kind": "decision-support"},
    "science": {"kind": "scientific-simulation"},
    "long_term": {"kind": "long-term"},
    "build": {"kind": "file-trace", "path": "build-files.parquet", "repeat": 5},
    "queries": {"kind": "file-trace", "path": "decision-support-files.parquet", "repeat": 5},
    "mail": {"kind": "trace", "path": "mail.parquet"},
    "pgbench": {"kind": "trace", "path": "pgbench.parquet", "utilization": 0.9},
}
"""The workloads, all of them; files are recorded traces of the examples."""

UTILIZATIONS = (0.5, 0.9)

RULES: Mapping[str, Settings] = {
    "none": {"layout.reorganise": "none"},
    "value": {"layout.reorganise": "blocks", "layout.decide": "value"},
    "gain": {"layout.reorganise": "blocks", "layout.decide": "gain"},
}

GAIN_MIN_PCT = 2.0
"""What counts as a gain worth keeping: more than models here are accurate to; chosen by us."""


def _run(
    context: Context, figure: str, load: str, cases: Mapping[Label, Settings]
) -> dict[Label, Metrics]:
    tables = context.tables(figure)
    workload = dict(LOADS[load])
    if "path" in workload:
        workload["path"] = str(context.examples / "traces" / workload["path"])
    utilization = {"utilization": tables["workload"]["utilization"]}
    tables["workload"] = {**utilization, **workload}
    found = context.run_many(tables, cases)
    return {label: run["metrics"] for label, run in found.items()}


def _utilizations(load: str) -> tuple[float, ...]:
    """The utilizations a load is run at: its own, if it has one."""
    own = LOADS[load].get("utilization")
    return UTILIZATIONS if own is None else (own,)


def beyond_reorganisation(context: Context) -> FigureResult:
    """Every load without reorganisation, with that of the paper, and with ours."""
    values: dict[str, float | None] = {}
    losses: dict[str, float] = {}
    kept: dict[str, float] = {}
    paper_losses: list[float] = []
    for load in LOADS:
        cases: dict[Label, Settings] = {
            (rule, utilization): {**settings, "workload.utilization": utilization}
            for rule, settings in RULES.items()
            for utilization in _utilizations(load)
        }
        found = _run(context, "beyond-reorganisation", load, cases)
        for utilization in _utilizations(load):
            seconds = {rule: found[rule, utilization]["disk_seconds"] for rule in RULES}
            place = f"{load}/u{round(100 * utilization)}"
            values[f"{place}_none_s"] = seconds["none"]
            for rule in ("value", "gain"):
                values[f"{place}_{rule}_pct"] = reduction_pct(seconds["none"], seconds[rule])
            losses[place] = 100 * (seconds["gain"] / seconds["none"] - 1)
            saved = {rule: seconds["none"] - seconds[rule] for rule in ("value", "gain")}
            paper_losses.append(100 * (seconds["value"] / seconds["none"] - 1))
            if saved["value"] > GAIN_MIN_PCT / 100 * seconds["none"]:
                kept[place] = 100 * saved["gain"] / saved["value"]
    values["all/worst_loss_pct"] = max(losses.values())
    values["all/worst_loss_of_paper_pct"] = max(paper_losses)
    values["all/least_kept_pct"] = min(kept.values())
    values["all/loads_with_gain"] = float(len(kept))
    names = list(losses)
    plot = Plot(
        name="beyond-reorganisation",
        title="Disk time that reorganising saves",
        x_label="load and utilization",
        y_label="% of the disk time without",
        curves=[
            Curve(
                words,
                range(len(names)),
                [values[f"{name}_{rule}_pct"] or 0.0 for name in names],
                style="bars",
            )
            for rule, words in (("value", "by value (§6.4.2)"), ("gain", "by gain (ours)"))
        ],
        caption="Below zero reorganising costs more than it saves.",
        categories=[name.replace("/u", " ").replace("_", " ") for name in names],
    )
    return result(context, "beyond-reorganisation", values, [plot])


RELATED = ("blocks", "non-sequential", "files", "whole-file", "directory", "frequency")
COMPARED = ("random", "software", "decision", "long_term", "build", "queries")
BUDGET = 0.25
"""Blocks that may be moved for each block read from disk: the equal cost of the comparison."""


def beyond_relatedness(context: Context) -> FigureResult:
    """What is taken to belong together, at equal cost."""
    values: dict[str, float | None] = {}
    curves: dict[str, list[float]] = {related: [] for related in RELATED}
    for load in COMPARED:
        cases: dict[Label, Settings] = {("none",): {}}
        for related in RELATED:
            cases[related,] = {"layout.reorganise": related, "layout.budget": BUDGET}
        found = _run(context, "beyond-relatedness", load, cases)
        before = found["none",]
        values[key(load, "none", "s")] = before["disk_seconds"]
        values[key(load, "none", "read", "ms")] = before["mean_disk_read_block_ms"]
        for related in RELATED:
            run = found[related,]
            saved = reduction_pct(before["disk_seconds"], run["disk_seconds"])
            values[key(load, related.replace("-", "_"), "pct")] = saved
            values[key(load, related.replace("-", "_"), "read", "pct")] = reduction_pct(
                before["mean_disk_read_block_ms"], run["mean_disk_read_block_ms"]
            )
            curves[related].append(saved)
    plot = Plot(
        name="beyond-relatedness",
        title="What belongs together, at equal cost",
        x_label="load",
        y_label="disk time saved, %",
        curves=[
            Curve(related, range(len(COMPARED)), saved, style="bars")
            for related, saved in curves.items()
        ],
        caption=f"At most {BUDGET:g} blocks are moved for each block read from disk.",
        categories=[load.replace("_", " ") for load in COMPARED],
    )
    return result(context, "beyond-relatedness", values, [plot])


PREFETCH: Mapping[str, Settings] = {
    "none": {},
    "sequential": {"host.prefetch": "sequential"},
    "file_graph": {"host.prefetch": "file-graph"},
    "moved": {"layout.reorganise": "blocks"},
    "moved_sequential": {"layout.reorganise": "blocks", "host.prefetch": "sequential"},
    "moved_cluster": {"layout.reorganise": "blocks", "host.prefetch": "cluster"},
}
READ_AHEAD = (
    "sequential",
    "random",
    "pattern",
    "software",
    "decision",
    "long_term",
    "build",
    "queries",
)


def beyond_prefetch(context: Context) -> FigureResult:
    """Reading ahead with and without reorganisation (§7.2.1), and what it costs when wrong."""
    values: dict[str, float | None] = {}
    curves: dict[str, list[float]] = {name: [] for name in PREFETCH if name != "none"}
    for load in READ_AHEAD:
        found = _run(
            context, "beyond-prefetch", load, {(name,): case for name, case in PREFETCH.items()}
        )
        before = found["none",]
        values[key(load, "none", "s")] = before["disk_seconds"]
        values[key(load, "none", "response", "ms")] = before["mean_response_ms"]
        for name, saved in curves.items():
            run = found[name,]
            values[key(load, name, "pct")] = reduction_pct(
                before["disk_seconds"], run["disk_seconds"]
            )
            values[key(load, name, "response", "pct")] = reduction_pct(
                before["mean_response_ms"], run["mean_response_ms"]
            )
            if "prefetch_used_fraction" in run:
                used = run["prefetch_used_fraction"]
                values[key(load, name, "used", "pct")] = None if used is None else 100 * used
            saved.append(values[key(load, name, "pct")] or 0.0)
    plot = Plot(
        name="beyond-prefetch",
        title="Reading ahead, and reorganising",
        x_label="load",
        y_label="disk time saved, %",
        curves=[
            Curve(name.replace("_", ", "), range(len(READ_AHEAD)), heights, style="bars")
            for name, heights in curves.items()
        ],
        caption="Against a log that does neither, behind a cache of 8 MB.",
        categories=[load.replace("_", " ") for load in READ_AHEAD],
    )
    return result(context, "beyond-prefetch", values, [plot])
