"""`agewell run`: one simulation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from agewell.cli.options import CatalogueOption, JsonOption, QuietOption
from agewell.cli.terminal import note, output, print_json, progress
from agewell.configuration import parse_settings
from agewell.metrics import change_pct, describe, in_order, show

app = typer.Typer()

ExperimentArgument = Annotated[
    Path,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A TOML file, or the folder or result.json of an earlier run, to run it again.",
        show_default=False,
    ),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="TABLE.KEY=VALUE",
        help="Replace one setting; repeatable. VALUE is as in TOML, quotes may be left out.",
        show_default=False,
    ),
]


@app.command("run")
def run(
    experiment: ExperimentArgument,
    settings: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Leave the record of the run in this folder."
        ),
    ] = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run one simulation and print its metrics.

    Example: agewell run experiment.toml --set remap.alpha=0.8 --out runs/alpha-08
    """
    from agewell.simulation import resolve, run_experiment

    resolved = resolve(experiment, settings=parse_settings(settings or []))
    started_seconds = time.perf_counter()
    with progress("simulating", quiet=quiet) as report:
        document = run_experiment(
            resolved, out, catalogue, lambda requests: report(None, f"{requests:,} requests")
        )
    elapsed_seconds = time.perf_counter() - started_seconds
    if as_json:
        print_json(document)
    else:
        output().print(metrics_table(document))
    for warning in document["warnings"]:
        note(f"agewell: warning: {warning}")
    if not quiet:
        where = f", record in {out}" if out is not None else ""
        note(f"done in {elapsed_seconds:.2f} s{where}")


def metrics_table(document: dict[str, Any]) -> Table:
    """The metrics of a run, beside those of its baseline if it has one."""
    metrics = document["metrics"]
    baseline = document.get("baseline_metrics")
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    if baseline is not None:
        table.add_column("as it lies", justify="right")
        table.add_column("rearranged", justify="right")
        table.add_column("change", justify="right")
    else:
        table.add_column("value", justify="right")
    table.add_column("unit")
    for name in in_order(metrics):
        metric = describe(name)
        cells = [metric.label]
        if baseline is not None:
            before = baseline.get(name)
            change = change_pct(name, before, metrics[name])
            cells.append(show(name, before) if name in baseline else "")
            cells.append(show(name, metrics[name]))
            cells.append("" if change is None else f"{change:+.1f} %")
        else:
            cells.append(show(name, metrics[name]))
        table.add_row(*cells, metric.unit)
    return table
