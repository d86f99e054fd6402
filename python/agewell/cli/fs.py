"""`agewell fs`: mounted file systems of agewell, looked into."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agewell import _agewell
from agewell.cli.options import JsonOption
from agewell.cli.terminal import print_json, print_table
from agewell.filesystems import mounted

app = typer.Typer()

fs = typer.Typer(
    name="fs",
    help="Look into a mounted file system of agewell.\n\nExample: agewell fs status /mnt/a",
    no_args_is_help=True,
)
app.add_typer(fs)


@fs.command("grow")
def grow(
    image: Annotated[
        Path,
        typer.Argument(metavar="IMAGE", help="A file or block device, not mounted meanwhile."),
    ],
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="SIZE",
            help="Of a file, which is lengthened; a device is taken whole.",
        ),
    ] = None,
) -> None:
    """Give a file system that is not mounted more room.

    A crash in the midst of it leaves it as it was or as it will be.

    Example: agewell fs grow disk.img --size 16GiB
    """
    _agewell.store_grow(image, size=size)


_KINDS = {
    "read": "reads",
    "write": "writes",
    "sync": "syncs",
    "names": "files made and removed",
}


@fs.command("status")
def status(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where a file system is mounted.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Say how full it is, how room is made and why, what that costs, and how long requests take.

    Blocks and times are counted since it was mounted.

    Example: agewell fs status /mnt/a
    """
    document = mounted.status(directory)
    if as_json:
        print_json(document)
        return
    print_table(("", ">"), _figures(document))


def _figures(document: dict[str, Any]) -> list[tuple[str, str]]:
    since = document["since_mounted"]
    rows = [
        ("full", f"{document['full']:.1%}"),
        ("free, GiB", f"{document['free_bytes'] / 2**30:,.3f}"),
        ("room is made by", f"{document['mechanism']}: {document['mechanism_is']}"),
        ("write amplification", f"{since['write_amplification'] or 1:.3f}"),
        ("blocks written", f"{since['user_blocks']:,}"),
        (
            "blocks moved",
            f"{since['cleaned_blocks'] + since['plugged_blocks']:,} cleaned and plugged, "
            f"{since['threaded_blocks']:,} threaded",
        ),
        ("blocks regrouped", f"{since['regrouped_blocks']:,}"),
        ("blocks of metadata", f"{since['metadata_blocks']:,}"),
    ]
    for key, what in _KINDS.items():
        times = document[key]
        if times["requests"]:
            rows.append(
                (
                    what,
                    f"{times['requests']:,}: {times['p50_us']:,.0f} us half, "
                    f"{times['p99_us']:,.0f} us 99 %, {times['worst_us']:,.0f} us worst",
                )
            )
    return rows
