"""A report on runs: what was simulated, how it came out, and where the figures come from.

One HTML file that needs no network, and every plot as PNG, SVG and CSV in the folder `plots`
beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agewell.experiments.experiment_file import to_toml
from agewell.experiments.run_result import Result
from agewell.report.charts import aging as aging_charts
from agewell.report.charts import log as log_charts
from agewell.report.charts.requests import (
    BASELINE_LABEL,
    RUN_LABEL,
    Lane,
    plots_of,
    response_plot,
    seek_plot,
)
from agewell.report.page import Cell, Highlight, Page, PageTable, Section
from agewell.report.page import write as write_page
from agewell.values.metrics import (
    change_pct,
    describe,
    in_order,
    show,
    show_change,
    with_mechanisms,
)
from agewell.values.plot import Plot
from agewell.values.sizes import bytes_of, size_text

LOG_HEADLINES = (
    "overall_write_cost",
    "new_data_cost",
    "cleaner_cost",
    "write_amplification",
    "mechanisms",
)
LOG_OVERVIEW = (*LOG_HEADLINES, "disk_seconds", "read_seconds", "transactions_per_s")
FILES_HEADLINES = ("layout_score", "utilization", "hot_layout_score", "hot_read_mb_per_s")
HEADLINES = ("mean_service_ms", "mean_response_ms", "mean_seek_cylinders", "zero_seek_fraction")


def write_report(runs: Sequence[Path], path: Path, title: str | None = None) -> list[Path]:
    """Write a report on runs that lie in folders.

    Args:
        runs: Folders that `agewell run --out` left.
        path: The HTML file.
        title: Heading of the page; made from the runs by default.

    Returns:
        The files written, the page first.

    Raises:
        InputError: A folder holds no result, or a damaged one.
        RunError: A file cannot be written.
    """
    results = [Result.read(run) for run in runs]
    return write_page(page_of(results, names_of(runs), title), path)


def page_of(results: Sequence[Result], names: Sequence[str], title: str | None = None) -> Page:
    """The report on results as a value.

    Args:
        results: One or more runs.
        names: What each is called on the page, all different.
        title: Heading of the page; made from the runs by default.
    """
    if len(results) == 1:
        sections = _run_sections(results[0])
    else:
        sections = [_overview(results, names)]
        sections += [
            _run_section(result, name, f"{_identifier(name)}-", _identifier(name))
            for result, name in zip(results, names, strict=True)
        ]
    heading = title or (
        f"{_workload(results[0])} on {_device(results[0])}"
        if len(results) == 1
        else f"{len(results)} runs compared"
    )
    return Page(
        title=heading,
        subtitle="; ".join(dict.fromkeys(_subtitle(result) for result in results)),
        sections=sections,
        facts=[
            fact
            for result, name in zip(results, names, strict=True)
            for fact in _facts(result, name if len(results) > 1 else "")
        ],
    )


def names_of(runs: Sequence[Path]) -> list[str]:
    """A name for each run, made of as many trailing parts of its path as distinguish them."""
    paths = [run.parent if run.name == "result.json" else run for run in runs]
    parts = [path.resolve().parts for path in paths]
    for depth in range(1, max(len(each) for each in parts) + 1):
        names = ["/".join(each[-depth:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    # The same folder stands there twice.
    return [f"{path.name} ({place})" for place, path in enumerate(paths, start=1)]


# --- sections -------------------------------------------------------------------------------------


def _run_sections(result: Result) -> list[Section]:
    """The sections of a report on one run: what came out, and the figures in full."""
    metrics = Section(
        identifier="metrics",
        title="Metrics",
        tables=[_metrics_table(result)],
        listing=_configuration(result),
    )
    shown = Section(
        identifier="result",
        title="Result",
        paragraphs=_paragraphs(result),
        highlights=_highlights(result),
        plots=_with_points(plots_of(result, "")),
    )
    return [shown, metrics]


def _run_section(result: Result, name: str, prefix: str, identifier: str) -> Section:
    """One run among several: everything in one section."""
    return Section(
        identifier=f"run-{identifier}",
        title=name,
        paragraphs=_paragraphs(result),
        highlights=_highlights(result),
        tables=[replace(_metrics_table(result), folded="All metrics")],
        plots=_with_points(plots_of(result, prefix)),
        listing=_configuration(result),
    )


def _overview(results: Sequence[Result], names: Sequence[str]) -> Section:
    """The runs in one table, and their distributions or costs in one picture each."""
    if any(result.is_of_a_file_system for result in results):
        return _files_overview(results, names)
    if any(result.is_of_a_layout for result in results):
        return _log_overview(results, names)
    lanes = [
        Lane(result, "run", name, emphasis=True)
        for result, name in zip(results, names, strict=True)
    ]
    plots = [
        seek_plot("overview-seek-cdf", lanes),
        response_plot("overview-response-cdf", lanes),
    ]
    with_baseline = all(result.baseline is not None for result in results)
    table = _before_after_table if with_baseline else _side_by_side_table
    return Section(
        identifier="overview",
        title="Overview",
        tables=[table(results, names)],
        plots=_with_points(plots),
    )


def _with_points(plots: Sequence[Plot]) -> list[Plot]:
    """Those that have anything to show: what one layout does another may not."""
    return [plot for plot in plots if any(len(curve.x) for curve in plot.curves)]


def _files_overview(results: Sequence[Result], names: Sequence[str]) -> Section:
    """The runs in one table; the layouts of those that are of file systems."""
    files = [
        (result, name)
        for result, name in zip(results, names, strict=True)
        if result.is_of_a_file_system
    ]
    aged, labels = [result for result, _ in files], [name for _, name in files]
    return Section(
        identifier="overview",
        title="Overview",
        tables=[_side_by_side_table(results, names)],
        plots=[
            aging_charts.scores_plot("overview-layout-score", aged, labels),
            aging_charts.sizes_plot("overview-layout-by-size", aged, labels),
        ],
    )


def _log_overview(results: Sequence[Result], names: Sequence[str]) -> Section:
    """The runs in one table; costs and times of those that are of logs."""
    logs = [
        (result, name) for result, name in zip(results, names, strict=True) if result.is_of_a_layout
    ]
    log_results, log_names = [result for result, _ in logs], [name for _, name in logs]
    return Section(
        identifier="overview",
        title="Overview",
        tables=[
            _side_by_side_table(results, names, LOG_OVERVIEW),
            replace(_side_by_side_table(results, names), folded="All metrics"),
        ],
        plots=_with_points(
            [
                log_charts.shares_plot("overview-write-cost", log_results, log_names),
                log_charts.purposes_plot("overview-disk-time", log_results, log_names),
                log_charts.costs_plot("overview-costs", log_results, log_names),
            ]
        ),
    )


def comparison(
    results: Sequence[Result], names: Sequence[str]
) -> tuple[Sequence[str], list[list[str]]]:
    """The headline metrics as a table of text: headings (numbers begin with `>`) and rows.

    Runs of logs, and of file systems, stand side by side, with the change against the first; other
    runs before and after.
    """
    of_requests = any(
        not (result.is_of_a_layout or result.is_of_a_file_system) for result in results
    )
    if of_requests or len({result.is_of_a_file_system for result in results}) > 1:
        return COMPARISON_COLUMNS, comparison_rows(results, names)
    first = with_mechanisms(results[0].metrics)
    rows = []
    for result, name in zip(results, names, strict=True):
        metrics = with_mechanisms(result.metrics)
        for place, metric in enumerate(_headlines(result)):
            value = metrics.get(metric)
            change = "" if result is results[0] else show_change(metric, first.get(metric), value)
            label = name if place == 0 else ""
            rows.append([label, describe(metric).label, show(metric, value), change])
    return ("run", "metric", ">value", ">change against the first"), rows


COMPARISON_COLUMNS = (
    "run",
    "metric",
    f">{BASELINE_LABEL}",
    f">{RUN_LABEL}",
    ">change",
    "unit",
)
"""Headings of `comparison_rows`; those of numbers begin with `>`."""


def comparison_rows(results: Sequence[Result], names: Sequence[str]) -> list[list[str]]:
    """A row a run and headline metric, as text.

    A run without a baseline has nothing under "as it lies" and its own values under "rearranged".
    """
    rows = []
    for result, name in zip(results, names, strict=True):
        before = result.baseline or {}
        for place, metric in enumerate(_headlines(result)):
            after = result.metrics.get(metric)
            rows.append(
                [
                    name if place == 0 else "",
                    describe(metric).label,
                    show(metric, before[metric]) if metric in before else "",
                    show(metric, after),
                    show_change(metric, before.get(metric), after),
                    describe(metric).unit,
                ]
            )
    return rows


def _before_after_table(results: Sequence[Result], names: Sequence[str]) -> PageTable:
    """A row a run: each headline metric, its value before below it."""
    rows = []
    for result, name in zip(results, names, strict=True):
        baseline = result.baseline or {}
        row = [Cell(name), Cell(show("requests", result.metrics.get("requests")))]
        for metric in HEADLINES:
            before, after = baseline.get(metric), result.metrics.get(metric)
            change = change_pct(metric, before, after)
            tone = "" if change is None else _tone(metric, change)
            note = f"{show(metric, before)} to {show(metric, after)} {describe(metric).unit}"
            row.append(Cell(show_change(metric, before, after) or "-", tone, note))
        rows.append(row)
    columns = ("run", "requests", *(describe(metric).label for metric in HEADLINES))
    caption = f"Change from {BASELINE_LABEL} to {RUN_LABEL}."
    return PageTable(columns, rows, frozenset(range(1, len(columns))), caption)


def _side_by_side_table(
    results: Sequence[Result], names: Sequence[str], only: Sequence[str] | None = None
) -> PageTable:
    """A column a run, with the change against the first; of the metrics in `only`, or of all."""
    metrics = [with_mechanisms(result.metrics) for result in results]
    rows = []
    known = {key: None for each in metrics for key in each if only is None or key in only}
    for name in in_order(known):
        metric = describe(name)
        label = metric.label + (f" ({metric.unit})" if metric.unit else "")
        rows.append([Cell(label), *(_against_first(name, each, metrics[0]) for each in metrics)])
    caption = f"Changes are against {names[0]}."
    return PageTable(("metric", *names), rows, frozenset(range(1, len(names) + 1)), caption)


def _against_first(name: str, metrics: dict[str, Any], first: dict[str, Any]) -> Cell:
    if name not in metrics:
        return Cell("")
    change = "" if metrics is first else show_change(name, first.get(name), metrics[name])
    return Cell(show(name, metrics[name]), note=change)


def _highlights(result: Result) -> list[Highlight]:
    baseline, metrics = result.baseline, with_mechanisms(result.metrics)
    shown = []
    for name in _headlines(result):
        metric = describe(name)
        value = metrics.get(name)
        if value is None:
            continue
        text = f"{show(name, value)} {metric.unit}".rstrip()
        if baseline is None or name not in baseline:
            shown.append(Highlight(text, metric.label))
            continue
        detail = f"{show(name, baseline[name])} to {text}"
        change = change_pct(name, baseline[name], value)
        if change is None:
            shown.append(Highlight(text, metric.label, detail))
        else:
            shown.append(Highlight(f"{change:+.1f} %", metric.label, detail, _tone(name, change)))
    return shown


def _headlines(result: Result) -> Sequence[str]:
    if result.is_of_a_file_system:
        return FILES_HEADLINES
    return LOG_HEADLINES if result.is_of_a_layout else HEADLINES


def _metrics_table(result: Result) -> PageTable:
    metrics, baseline = with_mechanisms(result.metrics), result.baseline
    names = in_order(metrics)
    if baseline is None:
        rows = [
            [Cell(describe(name).label), Cell(show(name, metrics[name])), Cell(describe(name).unit)]
            for name in names
        ]
        return PageTable(("metric", "value", "unit"), rows, frozenset({1}))
    rows = []
    for name in names:
        change = change_pct(name, baseline.get(name), metrics[name])
        rows.append(
            [
                Cell(describe(name).label),
                Cell(show(name, baseline[name]) if name in baseline else ""),
                Cell(show(name, metrics[name])),
                Cell(
                    show_change(name, baseline.get(name), metrics[name]),
                    tone="" if change is None else _tone(name, change),
                ),
                Cell(describe(name).unit),
            ]
        )
    columns = ("metric", BASELINE_LABEL, RUN_LABEL, "change", "unit")
    return PageTable(columns, rows, frozenset({1, 2, 3}))


def _tone(name: str, change: float) -> str:
    better = describe(name).better
    # A change below a twentieth of a per cent is written as 0.0 and is neither good nor bad.
    if better == "neither" or abs(change) < 0.05:  # noqa: PLR2004
        return ""
    return "good" if (change < 0) == (better == "lower") else "bad"


# --- words ----------------------------------------------------------------------------------------


def _workload(result: Result) -> str:
    workload = result.config["workload"]
    if "path" in workload:
        name = Path(workload["path"]).name
        return name.split(".")[0] if name != "-" else "standard input"
    return f"{workload['kind']} load"


def _device(result: Result) -> str:
    device = result.config.get("device")
    if device is None:
        return "no disk"
    return Path(str(device["model"])).stem if "model" in device else f"a {device['kind']} disk"


def _subtitle(result: Result) -> str:
    config = result.config
    if result.is_of_a_layout:
        return _log_subtitle(config)
    if result.is_of_a_file_system:
        return f"{config['layout']['kind']}, aged by {_workload(result)}"
    remap = config["remap"]["kind"]
    words = [f"queue {config['queue']['discipline']}"]
    words.append("no rearrangement" if remap == "none" else f"rearrangement: {remap}")
    return ", ".join(words)


def _log_subtitle(config: dict[str, Any]) -> str:
    layout = config["layout"]
    if layout["kind"] != "lfs":
        others = {key: value for key, value in layout.items() if key not in {"kind", "block_size"}}
        return ", ".join([layout["kind"], *(f"{key} {value}" for key, value in others.items())])
    words = [f"log of {size_text(bytes_of(layout['segment_size']))} segments"]
    words.append(f"collection {layout['collect']}, victims {layout['victim']}")
    if layout["placement"] != "none":
        words.append(f"placement {layout['placement']}")
    return ", ".join(words)


def _log_sentence(result: Result) -> str:
    layout, workload = result.config["layout"], result.config["workload"]
    if layout["kind"] != "lfs":
        return (
            f"{show('user_blocks', result.metrics['user_blocks'])} block writes of "
            f"{_workload(result)} on {_device(result)}: layout {layout['kind']}, at its fullest "
            f"{100 * workload['utilization']:.4g} % live. Costs are disk time over the time to "
            "stream the new data at full bandwidth."
        )
    size = size_text(bytes_of(layout["segment_size"]))
    return (
        f"{show('user_blocks', result.metrics['user_blocks'])} block writes of "
        f"{_workload(result)} on {_device(result)}: a log of {size} segments, at its fullest "
        f"{100 * workload['utilization']:.4g} % live. Costs are disk time over the time to stream "
        "the new data at full bandwidth."
    )


def _files_sentence(result: Result) -> str:
    metrics = result.metrics
    return (
        f"{show('operations', metrics['operations'])} operations of {_workload(result)} on "
        f"{result.config['layout']['kind']}, which holds {show('files', metrics['files'])} files "
        f"in the end; measured on {_device(result)}."
    )


def _sentence(result: Result) -> str:
    if result.is_of_a_file_system:
        return _files_sentence(result)
    if result.is_of_a_layout:
        return _log_sentence(result)
    disks = result.document.get("disks", 1)
    where = _device(result) if disks == 1 else f"{disks} disks of type {_device(result)}"
    text = (
        f"{show('requests', result.metrics['requests'])} requests of {_workload(result)} on {where}"
    )
    if result.baseline is None:
        return f"{text}."
    return (
        f"{text}, twice: every sector where the host put it ({BASELINE_LABEL}), and with "
        f"{result.config['remap']['kind']} ({RUN_LABEL})."
    )


def _paragraphs(result: Result) -> list[str]:
    warnings: list[str] = result.document.get("warnings", [])
    return [_sentence(result), *(f"Warning: {each}." for each in warnings)]


def _configuration(result: Result) -> tuple[str, str]:
    return "Configuration, every default filled in", to_toml(result.config)


def _facts(result: Result, name: str) -> list[tuple[str, str]]:
    document = result.document
    before = f"{name}: " if name else ""
    facts = [
        (f"{before}agewell", _software(document)),
        (f"{before}seed", str(document["seed"])),
        (f"{before}result schema", str(document["schema_version"])),
    ]
    facts += [
        (f"{before}input {entry['name']}", f"sha256 {entry['sha256']}")
        for entry in document["inputs"]
    ]
    return facts


def _software(document: Mapping[str, Any]) -> str:
    # Results of 0.1.0 before builds were distinguished name none.
    build = document.get("agewell_build")
    version = str(document["agewell_version"])
    return f"{version}, build {build}" if build else version


def _identifier(name: str) -> str:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    return kept.strip("-").lower() or "run"
