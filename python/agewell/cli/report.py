"""`agewell report`: an HTML report on runs, with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress

app = typer.Typer()


@app.command("report")
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders that `agewell run --out` left; others are held against the first.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The page; plots go to `plots` beside it."
        ),
    ] = Path("report.html"),
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the page.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a self-contained HTML report, and every plot as PNG, SVG and CSV.

    Example: agewell report runs/alpha-08 -o runs/alpha-08/report.html
    """
    from agewell import files
    from agewell.experiments.run_result import Result
    from agewell.report.page import write as write_page
    from agewell.report.run_report import comparison, names_of, page_of

    files.require_writable([out, out.parent / "plots" / out.name])
    results = [Result.read(run) for run in runs]
    names = names_of(runs)
    with progress("drawing", quiet=quiet):
        written = write_page(page_of(results, names, title), out)
    if as_json:
        compared = [
            {"name": name, "metrics": each.metrics, "baseline_metrics": each.baseline}
            for name, each in zip(names, results, strict=True)
        ]
        plots = [str(path) for path in written[1:]]
        print_json({"page": str(written[0]), "plots": plots, "runs": compared})
    else:
        print_table(*comparison(results, names))
    if not quiet:
        note(f"report in {written[0]}, {len(written) - 1} plot files beside it")
