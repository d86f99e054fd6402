"""`agewell sweep`: many simulations."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agewell.cli.options import CatalogueOption, JobsOption, JsonOption, QuietOption
from agewell.cli.run import ExperimentArgument, SetOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError, RunError
from agewell.experiments.configuration import parse_axis, parse_settings
from agewell.values.metrics import describe, mechanisms, of_row, show

if TYPE_CHECKING:
    from agewell.runs.samples import Sample

app = typer.Typer()


class Executor(StrEnum):
    """Where the runs are made."""

    LOCAL = "local"
    DASK = "dask"


class Sampling(StrEnum):
    """How points are drawn."""

    RANDOM = "random"
    SOBOL = "sobol"


@app.command("sweep")
def sweep(
    experiment: ExperimentArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the sweep; the same command continues one that was interrupted.",
        ),
    ],
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE.KEY=V1,V2,...",
            help="Values of one setting; repeatable, every combination is run.",
        ),
    ] = None,
    points: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A run a row of this CSV, Parquet or JSON file, whose columns are TABLE.KEY; an "
            "empty cell leaves what the experiment says.",
        ),
    ] = None,
    sample: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE.KEY=LOW..HIGH",
            help="Draw a setting from a range, repeatable: 0.5..0.9, whole numbers 1..64, 64..1024 "
            "KiB, 'log 1..4096', or choices V1,V2.",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many points are drawn; more keep the first."),
    ] = None,
    sampling: Annotated[
        Sampling | None,
        typer.Option(
            help="How they are drawn: random by default; sobol fills the space more evenly and "
            "needs agewell[samples]."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, metavar="N", help="Seed of the drawn points; 0 by default."),
    ] = None,
    settings: SetOption = None,
    executor: Annotated[
        Executor | None,
        typer.Option(
            help="Where the runs are made: local, processes of this machine, by default; dask, a "
            "cluster of Dask, made for this sweep unless --scheduler names one."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:PORT",
            help="The scheduler of a Dask cluster, whose workers share the folders of the sweep "
            "and of its inputs.",
        ),
    ] = None,
    jobs: JobsOption = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run an experiment for many values, and collect one table.

    What varies is given by --over, --points and --sample; of several of them every combination is
    run. The table is DIR/sweep.parquet, a row a run; the same bytes wherever the runs are made. A
    run that failed is a row with its error; the exit status is then 1, and the same command tries
    it again.

    Example: agewell sweep experiment.toml --over remap.alpha=0,0.5,0.8 --over remap.interval=1h,1d
        --out runs/alpha
    """
    from agewell.runs.sweeping import TABLE_FILE, shown_value
    from agewell.runs.sweeping import sweep as run_sweep

    varied = (
        *_grid(over or []),
        *(points or []),
        *_drawn(sample or [], samples, sampling, seed),
    )
    with progress("sweeping", quiet=quiet) as report:
        made = run_sweep(
            experiment,
            varied,
            out,
            settings=parse_settings(settings or []),
            catalogue_directory=catalogue,
            jobs=jobs,
            executor=executor,
            scheduler=scheduler,
            progress=lambda done, total: report(done / total, f"{done} of {total} runs"),
        )
    rows, axes = made.rows.to_pylist(), list(made.axes)
    if as_json:
        print_json(made.document)
    else:
        _print_runs(rows, axes)
    if not quiet:
        note(f"{len(rows)} runs, table in {out / TABLE_FILE}")
    if made.failed:
        first = made.failed[0]
        raise RunError(
            f"{len(made.failed)} of {len(rows)} runs failed, first "
            f"{', '.join(shown_value(first[axis]) for axis in axes)}: {first['error']}; "
            "the same command tries them again"
        )


def _grid(over: list[str]) -> list[dict[str, list[Any]]]:
    """The grid of `--over`; none without one.

    Raises:
        InputError: A setting stands there twice.
    """
    grid: dict[str, list[Any]] = {}
    for assignment in over:
        name, values = parse_axis(assignment)
        if name in grid:
            raise InputError(
                f"--over {assignment}: {name} is an axis already; give all its values at once"
            )
        grid[name] = values
    return [grid] if grid else []


def _drawn(
    assignments: list[str], count: int | None, sampling: Sampling | None, seed: int | None
) -> list[Sample]:
    """The sample of `--sample`; none without one.

    Raises:
        InputError: A setting stands there twice, or only a part of what a sample needs is given.
    """
    from agewell.runs.samples import Sample, parse_range

    if not assignments:
        if (count, sampling, seed) != (None, None, None):
            raise InputError(
                "--samples, --sampling and --seed are of --sample TABLE.KEY=LOW..HIGH, which is "
                "not given"
            )
        return []
    if count is None:
        raise InputError("--sample needs --samples N, the number of points that are drawn")
    ranges: dict[str, Any] = {}
    for assignment in assignments:
        name, values = parse_range(assignment)
        if name in ranges:
            raise InputError(f"--sample {assignment}: {name} is drawn already")
        ranges[name] = values
    return [Sample(ranges, count, sampling or Sampling.RANDOM, seed or 0)]


def _print_runs(rows: list[dict[str, Any]], axes: list[str]) -> None:
    from agewell.runs.sweeping import SHOWN_METRICS, shown_value

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
            [shown_value(row[axis]) for axis in axes]
            + [show(name, row[f"metrics.{name}"]) for name in shown]
            + ([text or "-"] if of_logs else [])
            + ([row["error"] or ""] if any_failed else [])
            for row, text in zip(rows, ran, strict=True)
        ],
    )


def _heading(name: str) -> str:
    metric = describe(name)
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label
