"""`agewell snapshot`: which files a file system holds, where they lie, and what is free."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.values.documents import document

app = typer.Typer()


@app.command("snapshot")
def snapshot(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A directory of a mounted file system, or an image."),
    ],
    output: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The snapshot, Parquet.")
    ],
    names: Annotated[
        bool, typer.Option("--names", help="Keep the names of files; default: leave them out.")
    ] = False,
    sync: Annotated[
        bool,
        typer.Option(
            "--sync",
            help=(
                "Have delayed data written to the device first, so that its place is known. "
                "Default: touch nothing, and record such data as unknown."
            ),
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted snapshot (FILE.partial).")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Record where every file of a file system lies, and what is free, without their contents.

    Any mounted file system with FIEMAP is read (ext4, xfs, btrfs, ...), and unmounted images.
    Nothing is written to what is read. Root sees more: files of others, the map of free space,
    the sizes of block groups. What could not be seen is counted and said.

    Example: agewell snapshot /srv -o srv.parquet
    """
    from agewell.filesystems import snapshots

    started_seconds = time.monotonic()
    with progress("snapshot", quiet=quiet) as report:

        def show(files: int, in_all: int | None) -> None:
            elapsed_seconds = max(time.monotonic() - started_seconds, 1e-3)
            fraction = min(files / in_all, 1.0) if in_all else None
            report(fraction, f"{files:,} files, {files / elapsed_seconds:,.0f} a second")

        try:
            done = snapshots.take(
                path, output, names=names, sync=sync, resume=resume, progress=show
            )
        except KeyboardInterrupt:
            partial = Path(f"{output}.partial")
            if partial.exists():
                note(f"agewell: {partial} keeps what is finished; go on with --resume")
            raise
    if as_json:
        print_json(document("snapshot", done))
    elif not quiet:
        _print_done(done, output)
    _warn_of_missed(done["facts"])


def _print_done(done: dict[str, Any], output: Path) -> None:
    facts, files = done["facts"], done["files"]
    kinds = ", ".join(
        f"{files[kind]:,} {words}"
        for kind, words in (
            ("regular", "files"),
            ("directory", "directories"),
            ("link", "links"),
            ("other", "others"),
        )
        if files[kind]
    )
    if facts["free_map"]:
        free = (
            f"{_mebibytes(done['free_extent_bytes'])} in {done['free_extents']:,} extents, "
            f"of {_mebibytes(facts['total_bytes'])}"
        )
    else:
        free = f"{_mebibytes(facts['free_bytes'])}; where is not known"
    rows = [
        ("file system", f"{facts['kind']}, blocks of {facts['block_bytes']:,} bytes"),
        ("holds", kinds or "nothing"),
        ("extents", f"{done['extents']:,}"),
        ("free", free),
        ("written", f"{output}, {done['bytes']:,} bytes"),
    ]
    print_table(("", ""), rows)


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"


def _warn_of_missed(facts: dict[str, Any]) -> None:
    words = {
        "vanished": "vanished meanwhile and are left out",
        "changed": "changed meanwhile and may be recorded half old, half new",
        "unreadable": "could not be read; their place is recorded as unknown",
    }
    for key, what in words.items():
        if facts[key]:
            note(f"agewell: warning: {facts[key]:,} entries {what}")
    elsewhere = facts["parameters"].get("left_out_on_other_devices")
    if elsewhere:
        note(f"agewell: warning: {int(elsewhere):,} entries on other devices are left out")
