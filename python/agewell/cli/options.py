"""Options that several commands share, declared once so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.errors import InputError
from agewell.experiments.configuration import parse_value

STATUS_DAMAGED = 1
"""The exit status of commands that look for damage and have found some."""

JsonOption = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON document on standard output, and nothing else there."
    ),
]

QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress on standard error.")
]

CatalogueOption = Annotated[
    Path | None,
    typer.Option(
        "--catalogue",
        metavar="DIR",
        help="Folder of device files to use instead of the catalogue that comes with agewell.",
    ),
]

JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Runs at once; one a processor by default."
    ),
]


def layout_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """The parameters of a simulated file system, from `--layout key=value`.

    Raises:
        InputError: One of them is not of that form.
    """
    layout: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(f"--layout {assignment}: write KEY=VALUE, for example maxcontig=7")
        layout[key.strip()] = parse_value(value.strip())
    return layout
