"""The page docs/reference/command-line.md, made from the commands themselves.

`make command-reference` writes it; a test holds it against the program.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from agewell.cli import app
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "command-line.md"
_COLUMNS = 96

_HEAD = """\
# Command line

This page is made from the program's own help texts.

Exit status: 0 done, 1 the run failed or a verdict does not hold, 2 bad usage or bad input, 130
interrupted. An error is one line on standard error. With `--json` standard output holds one JSON
document and nothing else.
"""


def reference() -> str:
    """The text of the page."""
    return _HEAD + "".join(
        f"\n## `{path}`\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
        for path, command, context in commands()
    )


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Every command, in order: its words, itself, and the context in which it is asked for help."""
    yield from _below(get_command(app), "agewell", None)


def _below(command: Any, path: str, parent: Any) -> Iterator[tuple[str, Any, Any]]:
    context = command.make_context(
        path.rsplit(" ", maxsplit=1)[-1],
        [],
        parent=parent,
        resilient_parsing=True,
        terminal_width=_COLUMNS,
        max_content_width=_COLUMNS,
    )
    yield path, command, context
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            yield from _below(command.get_command(context, name), f"{path} {name}", context)


if __name__ == "__main__":
    sys.stdout.write(reference())
