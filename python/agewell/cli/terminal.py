"""What commands write: results on standard output, progress and errors on standard error.

With `--json` standard output carries one JSON document and nothing else. Progress is a bar on a
terminal, a line every few seconds in a log, and nothing with `--quiet`.
"""

from __future__ import annotations

import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agewell.files import json_text
from agewell.values.documents import VERSIONS

ProgressCallback = Callable[[float | None, str], None]
"""Called with the fraction done (None where the end is not known) and a few words."""

LOG_INTERVAL_SECONDS = 5.0
"""Time between two progress lines in a log; chosen by us: short enough to see life, long enough to
read."""


def print_json(document: Mapping[str, Any]) -> None:
    """Write one JSON document to standard output; numbers and names of files read back exactly.

    Args:
        document: It says what it is, as `agewell.values.documents` makes it.
    """
    assert document["schema_version"] == VERSIONS[document["document"]], "of a kind that is known"
    sys.stdout.write(json_text(document))
    sys.stdout.flush()


ESTIMATED_AFTER_SECONDS = 2.0
"""What work must have taken before its end is estimated; chosen by us: sooner it is a guess."""


@dataclass(frozen=True, slots=True)
class Styled:
    """A cell of a table with a style that terminals show.

    Attributes:
        text: What it says.
        style: As `rich` writes styles: `bold red`.
    """

    text: str
    style: str


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Styled]]) -> None:
    """Write a table to standard output.

    On a terminal it is fitted to the width there is. In a pipe or a file it is as wide as it needs
    to be, so that no cell is cut or wrapped.

    Args:
        columns: Headings; one that begins with `>` is right-aligned, for numbers.
        rows: Cells, shown as they are.
    """
    if sys.stdout.isatty():
        _print_on_terminal(columns, rows)
        return
    headings = [column.removeprefix(">") for column in columns]
    texts = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in rows]
    columns_of_texts = zip(headings, *texts, strict=True)
    widths = [max(1, *map(_columns_taken, column)) for column in columns_of_texts]
    lines = []
    for row in (headings, *texts):
        cells = [
            _padded(cell, width, to_the_right=column[:1] == ">")
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    print_text("\n".join(lines) + "\n")


def print_text(text: str) -> None:
    """Write text to standard output as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _columns_taken(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(letter) for letter in text)


def _columns_of(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1


def _padded(text: str, width: int, *, to_the_right: bool) -> str:
    room = " " * (width - _columns_taken(text))
    return room + text if to_the_right else text + room


def _print_on_terminal(columns: Sequence[str], rows: Iterable[Sequence[str | Styled]]) -> None:
    # Loading rich takes longer than most commands; only a terminal needs it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column[:1] == ">" else "left")
    for row in rows:
        cells = [Styled(cell, "") if isinstance(cell, str) else cell for cell in row]
        table.add_row(*(Text(cell.text, style=cell.style) for cell in cells))
    Console(highlight=False).print(table)


def note(message: str) -> None:
    """Write one line to standard error."""
    print(message, file=sys.stderr, flush=True)  # noqa: T201 (this is where commands print)


class TimeLeft:
    """How long work may still take, by how far it came since it was first heard of.

    Work that is taken up again begins with what was done before, which says nothing of its pace.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: tuple[float, float] | None = None

    def after(self, fraction: float | None) -> str:
        """`about 3 min left`, now that this fraction is done; empty where nothing can be said."""
        now_seconds = self._clock()
        if fraction is None:
            return ""
        if self._began is None:
            self._began = (now_seconds, fraction)
        began_seconds, began_fraction = self._began
        done, taken_seconds = fraction - began_fraction, now_seconds - began_seconds
        if done <= 0.0 or taken_seconds < ESTIMATED_AFTER_SECONDS or fraction >= 1.0:
            return ""
        return f"about {_duration(taken_seconds * (1.0 - fraction) / done)} left"


def _duration(seconds: float) -> str:
    """A time to wait, as precise as an estimate is: `40 s`, `3 min`, `1 h 20 min`, `2 d 3 h`."""
    if seconds < 55:  # noqa: PLR2004 (then it is said in minutes)
        return f"{max(5, 5 * round(seconds / 5))} s"
    minutes = max(1, round(seconds / 60))
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes} min"
    hours, minutes = divmod(10 * round(minutes / 10), 60)
    if hours < 24:  # noqa: PLR2004
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


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
    left = TimeLeft()
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
        with bar:
            task = bar.add_task(description, total=None, left="")

            def update(fraction: float | None, words: str) -> None:
                shown = f"{description}: {words}" if words else description
                words_left = left.after(fraction)
                if fraction is None:
                    bar.update(task, description=shown, left=words_left)
                else:
                    bar.update(
                        task, total=1.0, completed=fraction, description=shown, left=words_left
                    )

            yield update
        return

    last_line_seconds = time.monotonic()

    def log(fraction: float | None, words: str) -> None:
        nonlocal last_line_seconds
        words_left = left.after(fraction)
        now_seconds = time.monotonic()
        if now_seconds - last_line_seconds >= LOG_INTERVAL_SECONDS:
            last_line_seconds = now_seconds
            share = "" if fraction is None else f"{100 * fraction:.0f} %"
            note(f"{description}: {', '.join(filter(None, (share, words, words_left)))}")

    yield log
