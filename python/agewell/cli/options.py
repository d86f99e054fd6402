"""Options that several commands share, declared once so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON document on standard output, and nothing else there."
    ),
]

QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Show no progress on standard error."),
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
