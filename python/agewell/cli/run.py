"""`agewell run`: one simulation."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agewell.cli.options import CatalogueOption, JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.experiments.configuration import parse_settings
from agewell.values.metrics import describe, in_order, show, show_change, with_mechanisms

if TYPE_CHECKING:
    from agewell.experiments.policies import Policies

app = typer.Typer()

ExperimentArgument = Annotated[
    Path,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A TOML file, the folder or result.json of an earlier run, to run it again, or the "
        "name of an example.",
    ),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="TABLE.KEY=VALUE",
        help="Replace one setting; repeatable. VALUE is as in TOML, quotes may be left out.",
    ),
]


def _list_examples(requested: bool) -> None:
    if requested:
        from agewell.files import catalogue

        rows = [(name, _first_line(path)) for name, path in catalogue.examples().items()]
        print_table(["example", "what it is"], rows)
        raise typer.Exit


def _first_line(path: Path) -> str:
    """What an experiment says of itself: the first sentence of its comment."""
    with path.open(encoding="utf-8") as lines:
        head = itertools.takewhile(lambda line: line.startswith("# "), lines)
        said = " ".join(line.removeprefix("# ").strip() for line in head)
    return re.sub(r" \([^)]*\)", "", said).split(". ")[0].split(": ")[0].rstrip(".") + "."


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
    victim: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME", help="Collect the segments that a function chooses."),
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME", help="Put blocks into the logs that it chooses."),
    ] = None,
    allocator: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME", help="Write blocks where it chooses."),
    ] = None,
    examples: Annotated[  # noqa: ARG001 (its callback does all)
        bool,
        typer.Option(
            "--list", callback=_list_examples, is_eager=True, help="List the examples, and end."
        ),
    ] = False,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run one simulation and print its metrics.

    Examples: agewell run log-random-update;
    agewell run experiment.toml --set remap.alpha=0.8 --out runs/alpha-08
    """
    from agewell.experiments.simulation import resolve, run_experiment

    resolved = resolve(experiment, settings=parse_settings(settings or []))
    given = {"victim": victim, "placement": placement, "allocator": allocator}
    policies = _loaded({kind: place for kind, place in given.items() if place is not None})
    started_seconds = time.perf_counter()
    with progress("simulating", quiet=quiet) as report:
        document = run_experiment(
            resolved,
            out,
            catalogue,
            lambda requests: report(None, f"{requests:,} requests"),
            policies,
        )
    elapsed_seconds = time.perf_counter() - started_seconds
    if as_json:
        print_json(document)
    else:
        _print_metrics(document)
    for warning in document["warnings"]:
        note(f"agewell: warning: {warning}")
    if not quiet:
        where = f", record in {out}" if out is not None else ""
        note(f"done in {elapsed_seconds:.2f} s{where}")


def _loaded(places: dict[str, str]) -> Policies | None:
    """The functions that are named, if any is."""
    if not places:
        return None
    from agewell.experiments.policies import Policies, load

    return Policies(**{kind: load(place, kind) for kind, place in places.items()})


def _print_metrics(document: dict[str, Any]) -> None:
    """The metrics of a run, beside those of its baseline if it has one."""
    metrics, baseline = with_mechanisms(document["metrics"]), document["baseline_metrics"]
    if baseline is None:
        rows = [
            (describe(name).label, show(name, metrics[name]), describe(name).unit)
            for name in in_order(metrics)
        ]
        print_table(("metric", ">value", "unit"), rows)
        return
    print_table(
        ("metric", ">as it lies", ">rearranged", ">change", "unit"),
        [
            (
                describe(name).label,
                show(name, baseline[name]) if name in baseline else "",
                show(name, metrics[name]),
                show_change(name, baseline.get(name), metrics[name]),
                describe(name).unit,
            )
            for name in in_order(metrics)
        ],
    )
