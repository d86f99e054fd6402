"""What commands write: results on standard output, progress and errors on standard error.

With `--json` standard output carries one JSON document and nothing else. Progress is a bar on a
terminal, a line every few seconds in a log, and nothing with `--quiet`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

ProgressCallback = Callable[[float | None, str], None]
"""Called with the fraction done (None where the end is not known) and a few words."""

_UNLIMITED_COLUMNS = 10_000

LOG_INTERVAL_SECONDS = 5.0
"""Time between two progress lines in a log; chosen by us: short enough to see life, long enough to
read."""


def print_json(document: Any) -> None:
    """Write one JSON document to standard output; numbers read back exactly."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def output() -> Console:
    """A console on standard output for tables.

    In a pipe or a file a table is as wide as it needs to be, so that no cell is cut or wrapped.
    """
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=_UNLIMITED_COLUMNS, no_color=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Write a table to standard output.

    Args:
        columns: Headings; one that begins with `>` is right-aligned, for numbers.
        rows: Cells, shown as they are; a `Text` brings its own style.
    """
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column[:1] == ">" else "left")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    output().print(table)


def note(message: str) -> None:
    """Write one line to standard error."""
    print(message, file=sys.stderr, flush=True)  # noqa: T201 (this is where commands print)


@contextmanager
def progress(description: str, *, quiet: bool) -> Iterator[ProgressCallback]:
    """Show how far a long step has come, on standard error.

    Args:
        description: What is being done, a few words.
        quiet: Show nothing.

    Yields:
        A function to call with the fraction done and a few words.
    """
    if quiet:
        yield lambda _fraction, _words: None
        return
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
        with bar:
            task = bar.add_task(description, total=None)

            def update(fraction: float | None, words: str) -> None:
                shown = f"{description}: {words}" if words else description
                if fraction is None:
                    bar.update(task, description=shown)
                else:
                    bar.update(task, total=1.0, completed=fraction, description=shown)

            yield update
        return

    last_line_seconds = time.monotonic()

    def log(fraction: float | None, words: str) -> None:
        nonlocal last_line_seconds
        now_seconds = time.monotonic()
        if now_seconds - last_line_seconds >= LOG_INTERVAL_SECONDS:
            last_line_seconds = now_seconds
            parts = [] if fraction is None else [f"{100 * fraction:.0f} %"]
            note(f"{description}: {', '.join([*parts, *([words] if words else [])])}")

    yield log
