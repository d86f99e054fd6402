"""Options that several commands share, declared once so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.errors import InputError
from agewell.experiments.configuration import parse_settings

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


LayoutSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="TABLE.KEY=VALUE",
        help=(
            "A parameter of a simulated file system, as in [layout] of an experiment; repeatable: "
            "layout.size='502 MB', layout.maxcontig=7."
        ),
    ),
]


def layout_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """The parameters of a simulated file system, from `--set layout.key=value`.

    Raises:
        InputError: One of them is not of that form, or of another table.
    """
    layout: dict[str, Any] = {}
    for name, value in parse_settings(assignments).items():
        table, _, key = name.partition(".")
        if table != "layout" or not key:
            raise InputError(f"--set {name}: only [layout] can be set here, such as layout.size")
        layout[key] = value
    return layout
