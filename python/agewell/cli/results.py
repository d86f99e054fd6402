"""`agewell results`: SQL over runs."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agewell import files
from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, print_text
from agewell.errors import InputError
from agewell.values.documents import document

if TYPE_CHECKING:
    import pyarrow as pa

    from agewell.runs.results import Results

app = typer.Typer()

EXAMPLES = (
    "SELECT run, value FROM metrics WHERE metric = 'disk_seconds' ORDER BY value LIMIT 5",
    "SELECT configuration->>'$.queue.discipline' AS discipline, avg(value) AS response_ms "
    "FROM runs JOIN metrics USING (run) WHERE metric = 'mean_response_ms' GROUP BY ALL",
    "SELECT key, error FROM runs WHERE status = 'failed'",
)
"""Queries to begin with, printed where none is given; a test asks each of them."""

_FORMS = (".parquet", ".csv", ".json")

_TERMINAL_ROWS_MAX = 500
"""Rows that are shown on a terminal; chosen by us: more are for a file."""

_SHOWN_DIGITS = 6


@app.command("results")
def results(
    query: Annotated[
        str | None,
        typer.Argument(metavar="[SQL]", help="A SELECT; what can be asked by default."),
    ] = None,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Folders below which the runs lie; the current one by default.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the rows there: .parquet, .csv or .json."
        ),
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the rows as comma-separated values.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Ask runs in SQL: which there are, what they measured, and how it went on.

    The runs are those that any command has left below the folders. The query is of DuckDB, over the
    tables runs, metrics and series; without one their columns are listed, with examples.

    Example: agewell results "SELECT key, value FROM runs JOIN metrics USING (run)
        WHERE metric = 'mean_response_ms' ORDER BY value" alpha
    """
    if as_csv and as_json:
        raise InputError("--csv and --json: both go to standard output; give one of them")
    if out is not None and out.suffix not in _FORMS:
        raise InputError(f"--out {out}: the name must end in {', '.join(_FORMS)}")
    if query is None:
        _list_views(as_json=as_json)
        return
    if query and Path(query).is_dir():
        raise InputError(
            f"{query}: a folder, where the query should be; agewell results 'FROM runs' {query}"
        )
    from agewell.runs import results as asked

    files.require_writable([out])
    found = asked.results(*(folders or []))
    rows = found.sql(query)
    if out is not None:
        _write(rows, out)
    elif as_json:
        print_json(asked.document(rows))
    elif as_csv:
        print_text(_csv_text(rows))
    else:
        _print(rows)
    if not quiet:
        _remark(found, rows, out)


def _remark(found: Results, rows: pa.Table, out: Path | None) -> None:
    """What a reader should know besides the rows."""
    damaged = found.runs["status"].to_pylist().count("damaged")
    if damaged:
        note(f"{damaged} of {len(found.runs)} runs are damaged; their column error says how")
    if out is not None:
        note(f"{len(rows)} rows in {out}")


def _list_views(*, as_json: bool) -> None:
    from agewell.runs.run_tables import VIEWS

    if as_json:
        views = {name: dict(columns) for name, columns in VIEWS.items()}
        print_json(document("results-views", {"views": views, "examples": list(EXAMPLES)}))
        return
    print_table(
        ("view", "column", "what it is"),
        [
            (view if index == 0 else "", column, words)
            for view, columns in VIEWS.items()
            for index, (column, words) in enumerate(columns.items())
        ],
    )
    print_text("\nExamples:\n\n" + "".join(f"  {example}\n" for example in EXAMPLES))


def _write(rows: pa.Table, path: Path) -> None:
    if path.suffix == ".json":
        from agewell.runs.results import document as answer

        files.write_json(path, answer(rows))
    elif path.suffix == ".csv":
        files.write_text(path, _csv_text(rows))
    else:
        _write_parquet(rows, path)


def _write_parquet(rows: pa.Table, path: Path) -> None:
    import pyarrow as pa

    from agewell.files import parquet_tables

    try:
        parquet_tables.write(path, rows)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: Parquet has no such column: {reason}; cast it") from error


def _csv_text(rows: pa.Table) -> str:
    from agewell.runs.results import plain_rows

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows.column_names)
    writer.writerows([_exact(value) for value in row] for row in plain_rows(rows))
    return text.getvalue()


def _exact(value: Any) -> str:
    """A value as a text that says all of it; nothing where there is none."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def _print(rows: pa.Table) -> None:
    import pyarrow as pa

    from agewell.runs.results import plain_rows

    shown = rows.slice(0, _TERMINAL_ROWS_MAX) if sys.stdout.isatty() else rows
    headings = [
        f">{each.name}"
        if pa.types.is_integer(each.type)
        or pa.types.is_floating(each.type)
        or pa.types.is_decimal(each.type)
        else each.name
        for each in rows.schema
    ]
    print_table(headings, [[_brief(value) for value in row] for row in plain_rows(shown)])
    if len(shown) < len(rows):
        note(f"{len(rows) - len(shown)} rows more; --csv, --json and --out give all")


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{_SHOWN_DIGITS}g}"
    return "-" if value is None else " ".join(_exact(value).split())
