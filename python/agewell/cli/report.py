"""`agewell report`: an HTML report on runs, with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, progress

app = typer.Typer()


@app.command("report")
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders that `agewell run --out` left; the first is what others are held against.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The page; plots go to `plots` beside it."
        ),
    ] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Heading of the page.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a self-contained HTML report, and every plot as PNG and SVG.

    Example: agewell report runs/alpha-08 -o runs/alpha-08/report.html
    """
    from agewell.report import write_report

    with progress("drawing", quiet=quiet):
        written = write_report(runs, out, title)
    if as_json:
        print_json({"page": str(written[0]), "plots": [str(path) for path in written[1:]]})
    elif not quiet:
        note(f"report in {written[0]}, {len(written) - 1} plot files beside it")
