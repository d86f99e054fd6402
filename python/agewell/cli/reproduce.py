"""`agewell reproduce`: published figures, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import Styled, note, print_json, print_table, progress
from agewell.errors import InputError, RunError
from agewell.files import catalogue
from agewell.values.documents import document

if TYPE_CHECKING:
    from agewell.studies.reproduction import Reproduced
    from agewell.studies.study import Study

app = typer.Typer()

_STYLES = {
    "holds": "green",
    "differs": "magenta",
    "fails": "bold red",
    "not run": "yellow",
    "information": "dim",
}


@app.command("reproduce")
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER[/FIGURE]]...",
            help="What to reproduce; every figure of every paper by default.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where runs, plots and reports go.")
    ] = Path("runs/reproduce"),
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Folder with traces that agewell cannot ship; repeatable. Also "
                f"{catalogue.DATA_VARIABLE}."
            ),
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Runs at once; one a processor."),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List papers and figures, and run nothing.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute published figures again and hold them against the paper's numbers.

    Exit status 1 if a verdict fails; one that differs for a reason stated beforehand does not. Runs
    that DIR holds already, by this build and on the same inputs, are not made again.

    Example: agewell reproduce ruemmler-wilkes-1991/figure-06 --data traces
    """
    from agewell.studies import studies
    from agewell.studies.reproduction import reproduce as run_figures
    from agewell.studies.study import Verdict

    if listing:
        _list(list(studies().values()), as_json=as_json)
        return
    with progress("reproducing", quiet=quiet) as report:
        reproduction = run_figures(
            names or (),
            out,
            data=data,
            jobs=jobs,
            progress=report,
        )
    reproduced = reproduction.figures
    if as_json:
        print_json(reproduction.document)
    else:
        _print_rows(reproduced)
    if not quiet:
        for study in dict.fromkeys(each.study.name for each in reproduced):
            note(f"report in {out / study / 'report.html'}")
    failed = reproduction.metrics[Verdict.FAILS.value]
    if failed:
        verdicts = "1 verdict fails" if failed == 1 else f"{failed} verdicts fail"
        raise RunError(f"{verdicts}; the table and the report say which and why")
    rows = [row for each in reproduced for row in each.result.rows]
    if rows and all(row.verdict is Verdict.NOT_RUN for row in rows):
        raise InputError(f"nothing could be run: {rows[0].why}")


def _list(known: Sequence[Study], *, as_json: bool) -> None:
    if as_json:
        papers = [
            {
                "name": study.name,
                "title": study.title,
                "citation": study.citation,
                "figures": [
                    {"name": each.name, "title": each.title, "inputs": list(each.inputs)}
                    for each in study.figures
                ],
            }
            for study in known
        ]
        print_json(document("reproduce-papers", {"papers": papers}))
        return
    print_table(
        ("name", "shows", "needs"),
        [
            (f"{study.name}/{figure.name}", figure.title, ", ".join(figure.inputs))
            for study in known
            for figure in study.figures
        ],
    )


def _print_rows(reproduced: Sequence[Reproduced]) -> None:
    from agewell.report.parts.reproduction import show_value

    print_table(
        ("figure", "what", ">paper", ">ours", "unit", "tolerance", "verdict", "why"),
        [
            (
                each.figure.name,
                row.what,
                show_value(row.paper),
                show_value(row.ours),
                row.unit,
                row.tolerance,
                Styled(row.verdict.value, _STYLES[row.verdict.value]),
                row.why,
            )
            for each in reproduced
            for row in each.result.rows
        ],
    )
