"""`agewell bench`: how fast a file system is as it lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.cli.options import JsonOption, LayoutSetOption, QuietOption, layout_settings
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError
from agewell.values.sizes import size_text

app = typer.Typer()


@app.command("bench")
def bench(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help=(
                "A directory of a mounted file system, or a simulated one: ffs, ffs+realloc, lfs, "
                "early-unix."
            ),
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
        ),
    ] = None,
    total: Annotated[
        str | None,
        typer.Option(
            "--bytes", metavar="SIZE", help="Bytes of all files of one size. Default: 32 MiB."
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
        str | None,
        typer.Option(
            metavar="PERIOD",
            help=(
                "Also read, sorted by directory, the files modified within so long before the last "
                "modification: 30d."
            ),
        ),
    ] = None,
    hot_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Take for these the files that a replay modified last, as its --log says: times "
                "of the workload count, not those of the clock. Without --hot those of 30 days."
            ),
        ),
    ] = None,
    overwrite_hot: Annotated[
        bool,
        typer.Option(
            "--overwrite-hot", help="Then write them again in place. Their contents are lost."
        ),
    ] = False,
    read_device: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Also read this device, past the cache; it is never written."
        ),
    ] = None,
    drop_system_caches: Annotated[
        bool,
        typer.Option(
            "--drop-system-caches",
            help=(
                "Empty all caches of the system between phases, so that inodes and directories are "
                "read from the device, too. It slows down whatever else runs, and needs root."
            ),
        ),
    ] = False,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="FILE",
            help="Simulated: age it by this workload first; smith-1996 generates one.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            metavar="DEVICE",
            help="Simulated: the disk, of the catalogue or a file. Default: seagate-st32430n.",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Simulated: the host, pentium-120 (default) or sparcstation-2."
        ),
    ] = None,
    settings: LayoutSetOption = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Simulated: also read and write the disk itself.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Every measurement, Parquet.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw the medians, as PNG, SVG and CSV.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure a file system: files of many sizes created, read and overwritten, and hot files.

    Files are made below TARGET and removed again. Times run until everything is on the device;
    between phases the pages of these files leave memory, and nothing else does unless asked for.

    A simulated file system is aged by a workload first, if one is given, and timed on a modelled
    disk.

    Examples: agewell bench /mnt/x --sizes '16 KiB,1 MiB' --repetitions 3;
    agewell bench ffs+realloc --workload smith-1996 --sizes 96KiB,104KiB --hot 30d
    """
    from agewell import files
    from agewell.files import parquet_tables
    from agewell.filesystems import aging, benchmarking

    files.require_writable([out])
    if plots is not None:
        files.make_folder(plots)
    if fsync not in ("no", "yes", "both"):
        raise InputError(f"--fsync {fsync}: write no, yes or both")
    synced = {"no": [False], "yes": [True], "both": [False, True]}[fsync]
    chosen = None if sizes is None else [size.strip() for size in sizes.split(",") if size.strip()]
    if chosen == ["none"]:
        chosen = []
    if str(target) in aging.SIMULATED and not target.is_dir():
        only = {
            "--read-device": read_device,
            "--out": out,
            "--hot-log": hot_log,
            "--drop-system-caches": drop_system_caches or None,
        }
        _refuse(only, "is of a mounted file system; a simulated one has none")
        with progress("aging and measuring", quiet=quiet) as report:
            measured = benchmarking.bench(
                target,
                workload=workload,
                device=device,
                machine=machine,
                layout=layout_settings(settings or []),
                sizes=chosen,
                total=total,
                files_per_directory=files_per_directory,
                sync_each=synced,
                repetitions=repetitions,
                hot=hot,
                raw=raw,
                on_operations=lambda done: report(None, f"{done:,} operations"),
            )
        _show(measured.document, plots, as_json=as_json)
        return
    only_simulated = {"--workload": workload, "--device": device, "--machine": machine}
    _refuse(
        {**only_simulated, "--set": settings, "--raw": raw or None},
        "is of a simulated file system; write ffs, ffs+realloc or lfs as TARGET",
    )
    with progress("measuring", quiet=quiet) as report:
        measured = benchmarking.bench(
            target,
            sizes=chosen,
            total=total,
            files_per_directory=files_per_directory,
            sync_each=synced,
            repetitions=repetitions,
            hot=hot,
            hot_log=hot_log,
            overwrite_hot=overwrite_hot,
            read_device=read_device,
            drop_system_caches=drop_system_caches,
            progress=lambda done, in_all: report(done / in_all, f"{done:,} of {in_all:,}"),
        )
    if out is not None and measured.measurements is not None:
        parquet_tables.write(out, measured.measurements)
    _show(measured.document, plots, as_json=as_json)
    _warn_of_caches(measured.document["target"], quiet=quiet)


def _warn_of_caches(target: dict[str, Any], *, quiet: bool) -> None:
    """What was emptied between phases, and whether it was."""
    if not quiet:
        done = (
            "all caches of the system were emptied between phases"
            if target["cache"] == "drop-caches"
            else "the pages of these files left memory between phases; inodes and directories "
            "stayed (--drop-system-caches, as root, empties all caches of the system)"
        )
        note(f"agewell: {done}")
    if target["still_cached"]:
        note(
            f"agewell: warning: files were in memory still {target['still_cached']:,} times when "
            "they were read or written again, so that rates are the memory's, not the device's"
        )


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse the first option that was given."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} {why}")


def _show(record: dict[str, Any], plots: Path | None, *, as_json: bool) -> None:
    if plots is not None:
        from agewell import files
        from agewell.filesystems import benchmarking
        from agewell.report import drawing

        drawing.save(benchmarking.throughput_plot(record), files.make_folder(plots))
    if as_json:
        print_json(record)
    else:
        _print_record(record)


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
    return f"{row['mb_per_s']:,.2f} +- {row['mb_per_s_deviation']:,.2f}"


def _score(row: dict[str, Any]) -> str:
    return "-" if row["layout_score"] is None else f"{row['layout_score']:.3f}"
