"""`agewell sweep`: many simulations."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.cli.options import CatalogueOption, JobsOption, JsonOption, QuietOption
from agewell.cli.run import ExperimentArgument, SetOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError, RunError
from agewell.experiments.configuration import parse_axis, parse_settings
from agewell.values.metrics import describe, mechanisms, of_row, show

app = typer.Typer()


class Executor(StrEnum):
    """Where the runs are made."""

    LOCAL = "local"


@app.command("sweep")
def sweep(
    experiment: ExperimentArgument,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="TABLE.KEY=V1,V2,...",
            help="Values of one setting; repeatable, every combination is run.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the sweep; the same command continues one that was interrupted.",
        ),
    ],
    settings: SetOption = None,
    executor: Annotated[
        Executor, typer.Option(help="Where the runs are made: processes on this machine.")
    ] = Executor.LOCAL,
    jobs: JobsOption = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run an experiment for every combination of values and collect one table.

    The table is DIR/sweep.parquet, a row a run; the same bytes whatever --jobs says. A run that
    failed is a row with its error; the exit status is then 1, and the same command tries it again.

    Example: agewell sweep experiment.toml --over remap.alpha=0,0.5,0.8 --over remap.interval=1h,1d
        --out runs/alpha
    """
    from agewell.runs.sweeping import TABLE_FILE
    from agewell.runs.sweeping import sweep as run_sweep

    assert executor is Executor.LOCAL, "the only executor"
    axes: dict[str, list[Any]] = {}
    for assignment in over:
        name, values = parse_axis(assignment)
        if name in axes:
            raise InputError(
                f"--over {assignment}: {name} is an axis already; give all its values at once"
            )
        axes[name] = values
    with progress("sweeping", quiet=quiet) as report:
        made = run_sweep(
            experiment,
            axes,
            out,
            settings=parse_settings(settings or []),
            catalogue_directory=catalogue,
            jobs=jobs,
            progress=lambda done, total: report(done / total, f"{done} of {total} runs"),
        )
    rows = made.rows.to_pylist()
    if as_json:
        print_json(made.document)
    else:
        _print_runs(rows, list(axes))
    if not quiet:
        note(f"{len(rows)} runs, table in {out / TABLE_FILE}")
    if made.failed:
        first = made.failed[0]
        raise RunError(
            f"{len(made.failed)} of {len(rows)} runs failed, first "
            f"{', '.join(str(first[axis]) for axis in axes)}: {first['error']}; "
            "the same command tries them again"
        )


def _print_runs(rows: list[dict[str, Any]], axes: list[str]) -> None:
    from agewell.runs.sweeping import SHOWN_METRICS

    shown = [name for name in SHOWN_METRICS if f"metrics.{name}" in rows[0]]
    any_failed = any(row["error"] is not None for row in rows)
    ran = [mechanisms(of_row(row)) for row in rows]
    of_logs = any(text is not None for text in ran)
    print_table(
        [
            *axes,
            *(f">{_heading(name)}" for name in shown),
            *([describe("mechanisms").label] if of_logs else []),
            *(["error"] if any_failed else []),
        ],
        [
            [str(row[axis]) for axis in axes]
            + [show(name, row[f"metrics.{name}"]) for name in shown]
            + ([text or "-"] if of_logs else [])
            + ([row["error"] or ""] if any_failed else [])
            for row, text in zip(rows, ran, strict=True)
        ],
    )


def _heading(name: str) -> str:
    metric = describe(name)
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label
