"""`agewell report`: an HTML report on what commands left, with plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, print_text, progress
from agewell.values.documents import document

if TYPE_CHECKING:
    from agewell.experiments.run_result import Result

app = typer.Typer()


@app.command("report")
def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="What commands left: folders (run, sweep, compare, advise, reproduce), or the "
            "JSON that they printed (score, age, store, bench, ...). Runs are held against the "
            "first of them.",
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

    The page begins with the verdict, and ends with the commands that make its figures again. What
    stands behind each other on the command line stands behind each other on the page.

    Examples: agewell report runs/alpha-08 -o runs/alpha-08/report.html;
    agewell score /srv --json > score.json; agewell report score.json runs/compare runs/advise
    """
    from agewell import files
    from agewell.report.page import write as write_page
    from agewell.report.part import page_of
    from agewell.report.recognition import parts_of, runs_of
    from agewell.report.run_report import comparison, names_of

    files.require_writable([out, out.parent / "plots" / out.name])
    with progress("drawing", quiet=quiet):
        parts = parts_of(paths)
        written = write_page(page_of(parts, title), out)
    runs = runs_of(paths)
    names = names_of(list(runs)) if runs else []
    if as_json:
        fields = {
            "page": str(written[0]),
            "plots": [str(path) for path in written[1:]],
            "parts": [
                {"kind": part.kind, "title": part.title, "verdict": list(part.verdict)}
                for part in parts
            ],
            "runs": _metrics(list(runs.values()), names),
        }
        print_json(document("report", fields))
    else:
        for part in parts:
            print_text("".join(f"{sentence}\n" for sentence in part.verdict))
        if runs:
            print_table(*comparison(list(runs.values()), names))
    if not quiet:
        note(f"report in {written[0]}, {len(written) - 1} plot files beside it")


def _metrics(runs: list[Result], names: list[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "metrics": each.metrics, "baseline_metrics": each.baseline}
        for name, each in zip(names, runs, strict=True)
    ]
