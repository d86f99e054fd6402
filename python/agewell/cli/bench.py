"""`agewell bench`: how fast a file system is as it lies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError
from agewell.sizes import size_text

app = typer.Typer()


@app.command("bench")
def bench(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="A directory of a mounted file system.",
            show_default=False,
        ),
    ],
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,SIZE,...",
            help=(
                "Sizes of the files: '16 KiB,1 MiB'; none measures only what else is asked for. "
                "Default: 30 sizes from 1 KiB to 32 MiB."
            ),
            show_default=False,
        ),
    ] = None,
    total: Annotated[
        str | None,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="Bytes of all files of one size. Default: 32 MiB.",
            show_default=False,
        ),
    ] = None,
    files_per_directory: Annotated[
        int, typer.Option(min=1, metavar="N", help="Files of a directory, at most.")
    ] = 25,
    fsync: Annotated[
        str,
        typer.Option(
            metavar="WHEN", help="Sync each file once it is written: no, yes, or both in turn."
        ),
    ] = "no",
    repetitions: Annotated[
        int, typer.Option("--repetitions", "-r", min=1, metavar="N", help="Of each benchmark.")
    ] = 10,
    hot: Annotated[
        bool,
        typer.Option(
            "--hot",
            help="Also read the files that were modified last, sorted by directory.",
        ),
    ] = False,
    hot_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Take for these the files that a replay modified last, as its --log says: times "
                "of the workload count, not those of the clock."
            ),
            show_default=False,
        ),
    ] = None,
    hot_days: Annotated[
        int, typer.Option(min=1, metavar="N", help="Days before the last modification.")
    ] = 30,
    overwrite_hot: Annotated[
        bool,
        typer.Option(
            "--overwrite-hot", help="Then write them again in place. Their contents are lost."
        ),
    ] = False,
    device: Annotated[
        Path | None,
        typer.Option(
            metavar="DEVICE",
            help="Also read this device, past the cache; it is never written.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Every measurement, Parquet.", show_default=False
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Draw the medians, as PNG and SVG.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure a file system: files of many sizes created, read and overwritten, and hot files.

    Files are made below TARGET and removed again. Times run until everything is on the device;
    caches are dropped between phases, for the whole system where that is allowed.

    Example: agewell bench /mnt/x --sizes '16 KiB,1 MiB' --repetitions 3
    """
    from agewell import benchmarking, files

    if fsync not in ("no", "yes", "both"):
        raise InputError(f"--fsync {fsync}: write no, yes or both")
    chosen = None if sizes is None else [size.strip() for size in sizes.split(",") if size.strip()]
    if chosen == ["none"]:
        chosen = []
    with progress("measuring", quiet=quiet) as report:
        measured = benchmarking.directory(
            target,
            sizes=chosen,
            total=total,
            files_per_directory=files_per_directory,
            sync_each={"no": [False], "yes": [True], "both": [False, True]}[fsync],
            repetitions=repetitions,
            hot=hot or hot_log is not None,
            hot_log=hot_log,
            hot_days=hot_days,
            overwrite_hot=overwrite_hot,
            device=device,
            progress=lambda done, in_all: report(done / in_all, f"{done:,} of {in_all:,}"),
        )
    if out is not None:
        import pyarrow.parquet as pq

        files.write_whole(out, lambda path: pq.write_table(measured.measurements, path))
    if plots is not None:
        from agewell import drawing

        drawing.save(benchmarking.throughput_plot(measured.record), files.make_folder(plots))
    if as_json:
        print_json(measured.record)
    else:
        _print_record(measured.record)
    if not quiet and measured.record["target"]["cache"] == "advise":
        note(
            "agewell: warning: caches are dropped file by file; inodes and directories may still "
            "be in memory (as root all are dropped)"
        )


def _print_record(record: dict[str, Any]) -> None:
    """A row a size with its three phases, then what else was measured."""
    summary = record["summary"]
    by_size: dict[tuple[int, bool], dict[str, dict[str, Any]]] = {}
    for row in summary:
        if row["file_bytes"] is not None:
            key = (row["file_bytes"], row["sync_each"])
            by_size.setdefault(key, {})[row["phase"]] = row
    if by_size:
        print_table(
            (">file", "synced", ">create MB/s", ">read MB/s", ">overwrite MB/s", ">layout score"),
            [
                (
                    size_text(file_bytes),
                    "each" if sync_each else "at the end",
                    _rate(phases["create"]),
                    _rate(phases["read"]),
                    _rate(phases["overwrite"]),
                    _score(phases["create"]),
                )
                for (file_bytes, sync_each), phases in by_size.items()
            ],
        )
    others = [row for row in summary if row["file_bytes"] is None]
    if others:
        print_table(
            ("", ">MB", ">MB/s", ">layout score"),
            [
                (row["phase"], f"{row['bytes'] / 1e6:,.1f}", _rate(row), _score(row))
                for row in others
            ],
        )


def _rate(row: dict[str, Any]) -> str:
    return f"{row['mb_per_s']:,.2f} ± {row['mb_per_s_deviation']:,.2f}"


def _score(row: dict[str, Any]) -> str:
    return "-" if row["layout_score"] is None else f"{row['layout_score']:.3f}"
