"""`agewell fsck`: an adaptive file system, checked and repaired."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from agewell.cli.options import STATUS_DAMAGED, JsonOption, QuietOption
from agewell.cli.terminal import print_json, print_text
from agewell.filesystems import mounted
from agewell.values.documents import document

app = typer.Typer()


@app.command("fsck")
def fsck(
    image: Annotated[
        Path,
        typer.Argument(metavar="IMAGE", help="A file or block device, not mounted meanwhile."),
    ],
    data: Annotated[
        bool, typer.Option("--read-data", help="Read all data as well, against its checksums.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Set right what has one right answer.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a file system: one line on standard output for each thing that is wrong.

    Looked at is everything that describes files: every node of the tree, every inode, directory,
    extent and count, and which blocks are in use; with --read-data also the data of every file.
    What a crash has left undone is brought to its end first, as mounting does. Files are named.
    'agewell store check' looks below: at the blocks, by the published format alone. Exit status:
    0 clean, 1 something is wrong, and still so after --repair.

    Example: agewell fsck disk.img --read-data
    """
    words: list[str | Path] = ["check", image]
    words += ["--data"] * data + ["--repair"] * repair
    found = document("fsck", json.loads(mounted.call(words)))
    if as_json:
        print_json(found)
    else:
        for one in found["findings"]:
            cure = f" (--repair: {one['repair']})" if one["repair"] and not repair else ""
            print_text(f"{one['text']}{cure}\n")
        if not quiet:
            wrong = len(found["findings"]) + found["further"]
            repaired = f", {found['repaired']:,} set right" if repair else ""
            verdict = f"{wrong:,} things are wrong" if wrong else "clean"
            print_text(
                f"{image}: {verdict}{repaired}; {found['inodes']:,} files, "
                f"{found['data_blocks']:,} blocks of data\n"
            )
    if not found["clean"]:
        raise typer.Exit(STATUS_DAMAGED)
