"""`agewell fs`: mounted file systems of agewell, looked into."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agewell import _agewell
from agewell.cli.options import STATUS_DAMAGED, JsonOption, QuietOption
from agewell.cli.terminal import print_json, print_table, print_text, progress
from agewell.errors import InputError, RunError
from agewell.filesystems import mounted
from agewell.values.documents import document

if TYPE_CHECKING:
    from agewell.filesystems.mounted_layout import Layout

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
        typer.Argument(
            metavar="IMAGE|DIRECTORY",
            help="A file or block device that is not mounted, or where it is mounted.",
        ),
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
    """Give a file system more room, also while it is mounted and used.

    A crash in the midst of it leaves it as it was or as it will be.

    Example: agewell fs grow /mnt/a --size 16GiB
    """
    if image.is_dir():
        mounted.grow(image, size)
    else:
        _agewell.store_grow(image, size=size)


@fs.command("scrub")
def scrub(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where a file system is mounted.")
    ],
    rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Read no faster than this, such as '20 MB/s'."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read every block of a mounted file system against its checksum, and name damaged files.

    It may be used meanwhile. Exit status: 0 clean, 1 something is damaged.

    Example: agewell fs scrub /mnt/a --rate '200 MB/s'
    """
    limit = None if rate is None else _agewell.bytes_per_second("--rate", rate)
    state = mounted.status(directory)
    blocks = state["blocks"]
    damaged: list[int] = []
    first: int | None = 0
    with progress("scrub", quiet=quiet) as report:
        begin = time.monotonic()
        while first is not None:
            found, first = mounted.scrubbed(directory, first)
            damaged += found
            done = blocks if first is None else first
            report(done / blocks, "of the blocks read")
            if limit:
                ahead = done * state["block_bytes"] / limit
                time.sleep(max(0.0, begin + ahead - time.monotonic()))
    files = _damaged_files(directory) if damaged else {}
    in_files = sum(len(places) for places in files.values())
    if as_json:
        print_json(document("fs-scrub", {"damaged_blocks": damaged, "files": files}))
    else:
        for path, places in files.items():
            print_text(f"{path}: damaged from byte {', '.join(f'{one:,}' for one in places)} on\n")
        if len(damaged) > in_files:
            describing = len(damaged) - in_files
            print_text(
                f"{describing:,} blocks that describe files: unmount, and run agewell fsck\n"
            )
        if not quiet and not damaged:
            print_text(f"{directory}: clean\n")
    if damaged:
        raise typer.Exit(STATUS_DAMAGED)


def _damaged_files(directory: Path) -> dict[str, list[int]]:
    """Of each file with damaged blocks, the bytes at which these begin."""
    device = directory.stat().st_dev
    files = {}
    for folder, folders, names in os.walk(directory):
        here = Path(folder)
        folders[:] = [name for name in folders if (here / name).lstat().st_dev == device]
        for name in names:
            path = here / name
            if path.is_file() and not path.is_symlink() and (found := mounted.damaged_bytes(path)):
                files[str(path)] = found
    return files


@fs.command("export-trace")
def export_trace(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where a file system is mounted.")
    ],
    output: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="The trace, a new Parquet file."),
    ],
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help="For how long, as 10min or 1h.")
    ] = "1min",
    quiet: QuietOption = False,
) -> None:
    """Record what a mounted file system asks of its store, for the simulator to run.

    Beside the trace comes an experiment of the same name (.toml) with a log that is divided like
    the store. What is recorded are blocks by number, not what is in them.

    Example: agewell fs export-trace /mnt/a -o load.parquet --for 10min && agewell run load.toml
    """
    from agewell.filesystems import store_load

    seconds = _agewell.duration_ns("--for", duration) / 1e9
    if output.exists() or output.with_suffix(".toml").exists():
        raise InputError(f"{output}: it or the experiment beside it is there already")
    with progress("export-trace", quiet=quiet) as report:
        load = store_load.record(directory, seconds, report)
    if load.lost:
        raise RunError(
            f"{directory}: {load.lost:,} requests came faster than they were fetched; "
            "record for a shorter time"
        )
    experiment = store_load.save(load, directory, output)
    if not quiet:
        amplification = load.write_amplification
        cost = "" if amplification is None else f"; write amplification {amplification:.3f}"
        print_text(f"{output}: {load.blocks():,} blocks{cost}; run it: agewell run {experiment}\n")


_EXTENTS_SHOWN = 20
"""Extents of a file that a table shows; chosen by us: a screen."""

_LIVE_STEPS = 10


@fs.command("layout")
def layout(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A mounted file system, or a file in one.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Show where a file lies, or how whole files lie and how full the segments are.

    The layout score is the share of blocks that lie right behind the block before them.

    Example: agewell fs layout /mnt/a/mail.db
    """
    from agewell.filesystems import mounted_layout

    found = mounted_layout.layout(path)
    if as_json:
        print_json(document("fs-layout", found.document()))
        return
    score = found.score()
    rows = [("files", f"{len(found.files):,}")]
    rows.append(("blocks", f"{sum(file.blocks for file in found.files):,}"))
    rows.append(("extents", f"{sum(len(file.extents) for file in found.files):,}"))
    rows.append(("layout score", "-" if score is None else f"{score:.4f}"))
    if path.is_dir():
        steps = [0] * (_LIVE_STEPS + 1)
        for share in found.live:
            # Of one that is not empty, the upper end.
            steps[-int(-share * _LIVE_STEPS // 1)] += 1
        rows.append(("segments", f"{len(found.live):,}"))
        rows.append(("of these empty", f"{steps[0]:,}"))
        for step, count in enumerate(steps[1:]):
            low, high = (100 * end // _LIVE_STEPS for end in (step, step + 1))
            rows.append((f"above {low} to {high} % live", f"{count:,}"))
    print_table(("", ">"), rows)
    if not path.is_dir():
        print_table(("byte", ">device", ">bytes", ">segment", "kind"), _extents_shown(found))


def _extents_shown(found: Layout) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    extents = [extent for file in found.files for extent in file.extents]
    for extent in extents[:_EXTENTS_SHOWN]:
        place, segment = extent.physical_bytes, found.segment_of(extent)
        rows.append(
            (
                f"{extent.logical_bytes:,}",
                "-" if place is None else f"{place:,}",
                f"{extent.length_bytes:,}",
                "-" if segment is None else f"{segment:,}",
                extent.kind + (", shared" if extent.is_shared else ""),
            )
        )
    if len(extents) > _EXTENTS_SHOWN:
        rows.append((f"{len(extents) - _EXTENTS_SHOWN:,} more", "", "", "", ""))
    return rows


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
    """Say how full it is, how room is made and why, what was put together, and how long it takes.

    Blocks and times are counted since it was mounted.

    Example: agewell fs status /mnt/a
    """
    found = mounted.status(directory)
    if as_json:
        print_json(document("fs-status", found))
        return
    print_table(("", ""), _figures(found))


def _put_together(done: dict[str, Any]) -> str:
    if not done["is_on"]:
        return "nothing: mounted with noregroup, or read-only"
    if not done["groups"]:
        return f"nothing: {done['why']} ({done['reads']:,} reads seen)"
    return (
        f"{done['blocks']:,} blocks in {done['groups']:,} groups, {done['moving_seconds']:,.1f} s; "
        f"reads took {done['read_seconds']:,.1f} s, {done['saved_seconds']:,.1f} s less than before"
    )


def _placement(logs: int) -> str:
    return f"to {logs} logs by expected lifetime" if logs else "behind what is new"


def _figures(found: dict[str, Any]) -> list[tuple[str, str]]:
    since, journal = found["since_mounted"], found["journal"]
    rows = [
        ("full", f"{found['full']:.1%}"),
        ("free, GiB", f"{found['free_bytes'] / 2**30:,.3f}"),
        ("room is made by", f"{found['mechanism']}: {found['mechanism_is']}"),
        ("what is collected goes", _placement(found["collected_logs"])),
        ("write amplification", f"{since['write_amplification'] or 1:.3f}"),
        ("blocks written", f"{since['user_blocks']:,}"),
        (
            "blocks moved",
            f"{since['cleaned_blocks'] + since['plugged_blocks']:,} cleaned and plugged, "
            f"{since['threaded_blocks']:,} threaded",
        ),
        ("put together", _put_together(found["regrouping"])),
        ("scattered files read in sweeps", f"{found['sweeps']:,}"),
        (
            "in the journal",
            f"changes of {journal['nodes']:,} nodes, {journal['blocks']:,} of "
            f"{journal['blocks_max']:,} blocks; {journal['checkpoints']:,} checkpoints",
        ),
        ("blocks of metadata", f"{since['metadata_blocks']:,}"),
    ]
    for key, what in _KINDS.items():
        times = found[key]
        if times["requests"]:
            rows.append(
                (
                    what,
                    f"{times['requests']:,}: {times['p50_us']:,.0f} us half, "
                    f"{times['p99_us']:,.0f} us 99 %, {times['worst_us']:,.0f} us worst",
                )
            )
    return rows
