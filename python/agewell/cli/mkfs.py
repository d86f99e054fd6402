"""`agewell mkfs`: an adaptive file system, made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agewell.cli.options import QuietOption
from agewell.cli.terminal import note
from agewell.errors import InputError
from agewell.filesystems import mounted

app = typer.Typer()


@app.command("mkfs")
def mkfs(
    image: Annotated[
        Path, typer.Argument(metavar="IMAGE", help="A block device, or a file, made if need be.")
    ],
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="Of a file that is made, such as 8GiB."),
    ] = None,
    label: Annotated[str, typer.Option("--label", help="A name of up to 32 bytes.")] = "",
    segment_blocks: Annotated[
        int, typer.Option("--segment-blocks", help="Blocks of 4 KiB in a segment: 64 or more.")
    ] = 256,
    sparse: Annotated[
        bool, typer.Option("--sparse", help="Make a file with holes, not filled with zeros.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Make it in the place of something that is there.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Make an empty file system, in a file or on a block device.

    A file that is there, or a device, keeps its size. Its first and last MiB must be all zeros,
    unless --force is given. Mount it by 'agewell mount'.

    Example: agewell mkfs disk.img --size 8GiB
    """
    words: list[str | Path] = ["make", image, "--segment-blocks", str(segment_blocks)]
    if size is not None:
        words += ["--size", size]
    if len(label.encode()) > 32:  # noqa: PLR2004 (what the format has room for)
        raise InputError("--label: at most 32 bytes")
    if label:
        words += ["--label", label]
    words += ["--sparse"] * sparse + ["--force"] * force
    mounted.call(words)
    if not quiet:
        note(f"agewell: made a file system in {image}")
