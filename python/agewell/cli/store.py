"""`agewell store`: stores of blocks made, enlarged, looked into, checked and salvaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from agewell import _agewell
from agewell.cli.options import STATUS_DAMAGED, JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, print_text, progress
from agewell.errors import InputError, RunError
from agewell.values.documents import document

RANGES_SHOWN_MAX = 8
"""Ranges of lost blocks that are shown; chosen by us: a line. The table has all."""

app = typer.Typer()

store = typer.Typer(
    name="store",
    help=(
        "Make, enlarge, look into, check and salvage a store of blocks, in a file or on a device."
        "\n\nA store is read by its published format alone (docs/internals/format.md), and never "
        "written to but by 'format' and 'grow'. It should not be in use meanwhile.\n\n"
        "Example: agewell store check --read-data disk.store"
    ),
    no_args_is_help=True,
)
app.add_typer(store)

ImageArgument = Annotated[
    Path, typer.Argument(metavar="IMAGE", help="A file or block device with a store on it.")
]


@store.command("info")
def info(image: ImageArgument, as_json: JsonOption = False) -> None:
    """Say how a store is made, how full it is, and whether it was closed in order.

    The figures have the names of the simulator's metrics where it has them. Data is not read.

    Example: agewell store info disk.store
    """
    found = json.loads(_agewell.store_check(image))
    if found["store"] is None:
        raise RunError(f"{image}: no superblock is whole; see 'agewell store check {image}'")
    if as_json:
        fields = {"store": found["store"], "metrics": found["metrics"]}
        print_json(document("store-info", fields))
    else:
        print_table(("", ">"), _figures(found))
    damaged = sum(one["severity"] == "damage" for one in found["findings"])
    if damaged:
        note(f"agewell: warning: {image} is damaged; see 'agewell store check {image}'")


@store.command("format")
def make(
    image: ImageArgument,
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="Of a file that is made, such as 8GiB."),
    ] = None,
    block_bytes: Annotated[
        int, typer.Option("--block-bytes", help="512 to 65,536, a power of two.")
    ] = 4096,
    segment_blocks: Annotated[
        int, typer.Option("--segment-blocks", help="Blocks of a segment, 8 to 1,048,576.")
    ] = 256,
    sparse: Annotated[
        bool,
        typer.Option(
            "--sparse",
            help="Make a file with holes, in which each first write of a place waits for the file "
            "system. It is filled with zeros otherwise.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Make it in the place of something that is there.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an empty store, in a file or on a device.

    A file that is there, or a device, keeps its size. Its first and last MiB must be all zeros,
    unless --force is given.

    Example: agewell store format disk.store --size 8GiB
    """
    _agewell.store_format(
        image,
        uuid4().bytes,
        size=size,
        block_bytes=block_bytes,
        segment_blocks=segment_blocks,
        sparse=sparse,
        force=force,
    )
    info(image, as_json=as_json)


@store.command("grow")
def grow(
    image: ImageArgument,
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="How long a file is to be, such as 16GiB."),
    ] = None,
    sparse: Annotated[
        bool,
        typer.Option(
            "--sparse", help="Make the file longer by a hole. It is filled with zeros otherwise."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Have a store take in all of its file or device, which has become larger.

    It takes a new map, behind its segments. A loss of power meanwhile leaves the store as it was or
    as it will be. All that is in it stays.

    Example: agewell store grow disk.store --size 16GiB
    """
    _agewell.store_grow(image, size=size, sparse=sparse)
    info(image, as_json=as_json)


@store.command("check")
def check(
    image: ImageArgument,
    data: Annotated[
        bool, typer.Option("--read-data", help="Read the data of every block as well.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a store: one line on standard output for each thing that is wrong.

    Looked at are all copies of superblock and root, the map, every record since it was written,
    and whether blocks have places of their own; with --read-data also whether the data of each
    block is what was written. A note is what a loss of power explains. Exit status:
    0 clean, 1 damaged.

    Example: agewell store check --read-data disk.store
    """
    with progress("check", quiet=quiet) as report:
        found = json.loads(
            _agewell.store_check(image, data, lambda share: report(share, "of the data read"))
        )
    if as_json:
        print_json(document("store-check", found))
    else:
        print_text("".join(f"{one['text']}\n" for one in found["findings"]))
        if not quiet:
            print_text(_verdict(image, found, data=data))
    if not found["clean"]:
        raise typer.Exit(STATUS_DAMAGED)


@store.command("salvage")
def salvage(
    image: ImageArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER|FILE",
            help="A folder for blocks.bin and blocks.csv; or a name with an ending for the blocks, "
            "and the same with .csv for the table.",
        ),
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Copy out of a store every block that is intact, and say which are lost.

    Each block comes to its number times the length of a block, in a file with holes for what is
    not there; a table says of each where it was and what has become of it. Damaged superblocks
    and roots are done without. Where what says which version is current is lost, the newest that
    is found is taken: it may be old. Exit status: 0 all is there, 1 something is lost or damaged.

    Example: agewell store salvage disk.store -o saved
    """
    blocks, table = _outputs(output)
    for path in (blocks, table):
        if path.exists():
            raise InputError(f"{path}: is there already; name another place with -o")
    blocks.parent.mkdir(parents=True, exist_ok=True)
    with progress("salvage", quiet=quiet) as report:
        done = json.loads(
            _agewell.store_salvage(image, blocks, table, lambda share: report(share, ""))
        )
    if as_json:
        print_json(document("store-salvage", {**done, "output": [str(blocks), str(table)]}))
    else:
        print_text("".join(f"{one['text']}\n" for one in done["findings"]))
        if not quiet:
            print_text(_salvaged(done, blocks, table))
    if not done["whole"]:
        raise typer.Exit(STATUS_DAMAGED)


def _outputs(output: Path) -> tuple[Path, Path]:
    """Where the blocks go, and where the table of them."""
    if output.is_dir() or not output.suffix:
        return output / "blocks.bin", output / "blocks.csv"
    table = output.with_suffix(".csv")
    if table == output:
        raise InputError(f"{output}: is the name of the table; give the file of blocks another")
    return output, table


def _figures(found: dict[str, Any]) -> list[tuple[str, str]]:
    made, metrics = found["store"], found["metrics"]
    rows = [
        ("uuid", made["uuid"]),
        ("format", made["version"]),
        ("block_bytes", f"{made['block_bytes']:,}"),
        ("segment_blocks", f"{made['segment_blocks']:,}"),
        ("reserve_segments", f"{made['reserve_segments']:,}"),
    ]
    for name, value in metrics.items():
        if value is None:
            text = "none"
        elif isinstance(value, float):
            text = f"{value:.4f}"
        else:
            text = f"{value:,}"
        rows.append((name, text))
    rows += [
        ("sequence", f"{made['sequence']:,}"),
        ("incarnation", f"{made['incarnation']:,}"),
        ("closed_in_order", "yes" if made["closed_in_order"] else "no"),
    ]
    return rows


def _verdict(image: Path, found: dict[str, Any], *, data: bool) -> str:
    made = found["store"]
    if found["clean"]:
        looked_at = "structures and data" if data else "structures"
        live = found["metrics"]["live_blocks"]
        closed = "closed in order" if made["closed_in_order"] else "not closed"
        noted = len(found["findings"])
        notes = f", {noted:,} note{'s' if noted != 1 else ''}" if noted else ""
        group = f"group {made['sequence']:,}"
        return f"{image}: clean ({looked_at}{notes}): {live:,} blocks, {group}, {closed}\n"
    damaged = sum(one["severity"] == "damage" for one in found["findings"])
    findings = f"{damaged:,} finding{'s' if damaged != 1 else ''}"
    affected = found["affected_blocks"]
    blocks = "" if affected is None else f", {affected:,} blocks affected"
    return f"{image}: damaged: {findings}{blocks}\n"


def _salvaged(done: dict[str, Any], blocks: Path, table: Path) -> str:
    lines = [f"{status}: {count:,} blocks" for status, count in done["counts"].items()]
    for status, ranges in done["blocks"].items():
        if ranges:
            lines.append(f"{status}: {_ranges(ranges, table)}")
    if done["unknown_blocks"]:
        lines.append(f"nothing is known of blocks {_ranges(done['unknown'], table)}")
    if done["counts"]["newest found"]:
        lines.append("What says which version is current is lost: those found may be old.")
    lines.append(f"written: {blocks}, {table}")
    return "\n".join(lines) + "\n"


def _ranges(ranges: list[list[int]], table: Path) -> str:
    shown = ", ".join(
        str(first) if first == last else f"{first} to {last}"
        for first, last in ranges[:RANGES_SHOWN_MAX]
    )
    left = len(ranges) - RANGES_SHOWN_MAX
    return f"{shown} and {left:,} ranges more ({table})" if left > 0 else shown
