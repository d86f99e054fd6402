"""`agewell umount`: a mount of the adaptive file system, ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agewell.filesystems import mounted

app = typer.Typer()


@app.command("umount")
def umount(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where a file system is mounted.")
    ],
    lazy: Annotated[
        bool, typer.Option("--lazy", "-l", help="Take it away now, and end when nobody uses it.")
    ] = False,
) -> None:
    """Unmount a file system, and return when everything is on the medium.

    Example: agewell umount /mnt/a
    """
    mounted.unmount(directory, lazily=lazy)
