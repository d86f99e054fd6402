"""The page docs/reference/command-line.md, made from the commands themselves.

`make command-reference` writes it; a test holds it against the program.
"""

from __future__ import annotations

import sys
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
    command: Any = get_command(app)
    return _HEAD + "".join(_sections(command, "agewell", None))


def _sections(command: Any, path: str, parent: Any) -> list[str]:
    context = command.make_context(
        path.rsplit(" ", maxsplit=1)[-1],
        [],
        parent=parent,
        resilient_parsing=True,
        terminal_width=_COLUMNS,
        max_content_width=_COLUMNS,
    )
    sections = [f"\n## `{path}`\n\n```text\n{command.get_help(context).rstrip()}\n```\n"]
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            sections += _sections(command.get_command(context, name), f"{path} {name}", context)
    return sections


if __name__ == "__main__":
    sys.stdout.write(reference())
