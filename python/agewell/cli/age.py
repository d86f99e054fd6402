"""`agewell age`: a file system is aged by replaying a workload onto it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from agewell.cli.options import JsonOption, LayoutSetOption, QuietOption, layout_settings
from agewell.cli.terminal import ProgressCallback, note, print_json, print_table, progress

if TYPE_CHECKING:
    from agewell.filesystems.aging import Progress

app = typer.Typer()


class Allocation(StrEnum):
    """How space is asked for below a directory."""

    WRITE = "write"
    FALLOCATE = "fallocate"
    APPEND_INTERLEAVED = "append-interleaved"


class Hold(StrEnum):
    """Which files are removed to hold a utilization."""

    RANDOM = "random"
    OLDEST = "oldest"


class Data(StrEnum):
    """What is written below a directory."""

    RANDOM = "random"
    ZEROS = "zeros"


TABLE_ROWS_MAX = 12
"""Rows of the table of scores over time; chosen by us: the series has them all."""


@app.command("age")
def age(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help=(
                "A directory of a mounted file system, or a simulated one: ffs, ffs+realloc, lfs. "
                "May be left out with --recipe."
            ),
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="FILE",
            help=(
                "A workload, as `agewell workload` makes it, or smith-1996, made with --seed. "
                "May be left out with the --recipe of such a one."
            ),
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Make again what another replay made, as its --save-recipe says."
        ),
    ] = None,
    utilization: Annotated[
        float | None,
        typer.Option(
            "--utilization",
            "-u",
            metavar="SHARE",
            help=(
                "Used over total that is not exceeded: before a write that would, files of the "
                "workload are removed. Default: as full as the workload makes it."
            ),
        ),
    ] = None,
    hold: Annotated[
        Hold | None, typer.Option(help="Which files are removed for that. Default: random.")
    ] = None,
    until: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=VALUE",
            help=(
                "End early at score=0.8, utilization=0.9, days=30, writes='20 GB' or "
                "operations=100000; repeatable, the first that is reached counts."
            ),
        ),
    ] = None,
    copies: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Copies of the workload side by side.")
    ] = None,
    streams: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Deal files out among N concurrent streams. Default: as the workload says.",
        ),
    ] = None,
    sync_every: Annotated[
        str | None,
        typer.Option(
            metavar="HOW-OFTEN",
            help=(
                "Sync after a number of operations (1000), bytes written ('64 MiB') or time of the "
                "workload ('1 d'), beside the syncs of the workload."
            ),
        ),
    ] = None,
    allocate: Annotated[
        Allocation | None,
        typer.Option(
            help=(
                "How space is asked for below a directory: data is written, allocated without "
                "writing, or written with the files of the streams growing in turns. "
                "Default: write."
            )
        ),
    ] = None,
    chunk: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Size of a write call below a directory. Default: 128 KiB."
        ),
    ] = None,
    contents: Annotated[
        Data | None,
        typer.Option(
            help=(
                "What is written below a directory. Default: random, which neither compresses "
                "nor repeats."
            )
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Writers at once below a directory; the streams are divided among them.",
        ),
    ] = None,
    settings: LayoutSetOption = None,
    series: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write fullness and score over time, .parquet or .csv."),
    ] = None,
    daily: Annotated[
        bool | None,
        typer.Option(
            "--daily/--no-daily",
            help=(
                "Sample them at the end of each day of the workload. Default: on simulated "
                "targets, where it costs nothing."
            ),
        ),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw them, as PNG, SVG and CSV.")
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a snapshot of the aged state.")
    ] = None,
    save_recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what makes the same again, to be shared instead of an image.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the operations asked of the target, as a workload."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an interrupted replay stopped.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Where a replay onto a directory notes how far it has come. "
                "Default: beside the directory, NAME.agewell."
            ),
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of what is drawn.")] = None,
    allow_occupied: Annotated[
        bool,
        typer.Option(
            "--allow-occupied", help="Take a directory that is not empty; what is there stays."
        ),
    ] = False,
    allow_system_disk: Annotated[
        bool,
        typer.Option(
            "--allow-system-disk",
            help="Take a directory on the disk that the running system stands on.",
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Age a file system: replay a workload onto it, and watch fullness and layout score.

    Below a directory real data is written, and nothing outside it is touched. Where there is no
    room the operation is counted and the replay goes on. The same workload and seed ask for the
    same operations on every target and any number of threads. Killed at any moment, the replay goes
    on with --resume and ends with the same files.

    Example: agewell age ffs --workload smith-1996.parquet --series daily.parquet

    Example: agewell age /mnt/x --workload git.parquet --copies 40 --utilization 0.8
    """
    given = locals()
    from agewell import files
    from agewell.filesystems import aging

    simulated = target in aging.SIMULATED or (target is None and recipe is not None)
    given["until"] = until or []
    given["daily"] = simulated if daily is None else daily
    options = cast("aging.Options", {name: given[name] for name in aging.Options.__annotations__})
    if plots is not None:
        files.make_folder(plots)
    started_seconds = time.monotonic()
    with progress("aging", quiet=quiet) as report:
        replay_progress = _ReplayProgress(report)
        try:
            aged = aging.age(
                target,
                workload,
                layout=layout_settings(settings or []),
                recipe=recipe,
                state=state,
                log=log,
                series=series,
                snapshot=snapshot,
                save_recipe=save_recipe,
                progress=replay_progress.show,
                **options,
            )
        except KeyboardInterrupt:
            if not simulated:
                note(
                    f"agewell: {replay_progress.operations:,} operations are done and noted; go on "
                    "with --resume"
                )
            raise
    elapsed_seconds = time.monotonic() - started_seconds
    if plots is not None:
        from agewell.report import drawing

        drawing.save(aging.score_plot(aged.series), files.make_folder(plots))
    if as_json:
        print_json(aged.document)
    else:
        _print_record(aged.document)
        _print_series(aged.series.to_pylist())
    _warn_of_refused(aged.document["report"])
    if not quiet:
        operations = aged.document["report"]["planned"]["operations"]
        note(
            f"done in {elapsed_seconds:.2f} s, "
            f"{operations / max(elapsed_seconds, 1e-3):,.0f} operations a second"
        )


class _ReplayProgress:
    """Turns the state of a replay into a bar or a line."""

    def __init__(self, report: ProgressCallback) -> None:
        self.operations = 0
        self._report = report
        self._began_seconds: float | None = None
        self._began_operations = 0

    def show(self, state: Progress) -> None:
        """Show `state`."""
        self.operations = state.operations
        fraction = None
        if state.operations_total:
            fraction = min(state.operations / state.operations_total, 1.0)
        if state.resuming:
            self._report(fraction, f"{state.operations:,} operations were done before")
            return
        now_seconds = time.monotonic()
        if self._began_seconds is None:
            self._began_seconds, self._began_operations = now_seconds, state.operations
        elapsed_seconds = max(now_seconds - self._began_seconds, 1e-3)
        rate = (state.operations - self._began_operations) / elapsed_seconds
        words = [
            f"{state.operations:,} operations done",
            f"{rate:,.0f}/s",
            f"{100 * state.utilization:.0f} % full",
        ]
        if state.layout_score is not None:
            words.append(f"score {state.layout_score:.3f}")
        if state.no_space:
            words.append(f"{state.no_space:,} without room")
        self._report(fraction, ", ".join(words))


def _print_record(record: dict[str, Any]) -> None:
    report, planned = record["report"], record["report"]["planned"]
    after, outcomes = report["usage_after"], report["outcomes"]
    full = after["used_bytes"] / after["total_bytes"] if after["total_bytes"] else 0.0
    score = report["layout_score"]
    rows = [
        ("ended", _stop(report["stop"])),
        ("workload", f"{record['workload']['source']}, {planned['time_ns'] / 86_400e9:,.1f} days"),
        (
            "operations",
            f"{planned['operations']:,}: {outcomes['done']:,} done, "
            f"{outcomes['no_space']:,} without room, {outcomes['skipped']:,} skipped for that",
        ),
        ("written", _amount(planned["written_bytes"])),
        (
            "files",
            f"{planned['live_files']:,}, {_amount(planned['live_bytes'])} in blocks and fragments",
        ),
        ("full", f"{100 * full:.1f} % of {_amount(after['total_bytes'])}"),
        ("layout score", "no block counts" if score is None else f"{score:.4f}"),
    ]
    asked = report["utilization_asked"]
    if asked is not None:
        rows.insert(
            6,
            (
                "asked",
                f"{100 * asked:.1f} %; {100 * (full - asked):+.1f} points at the end, at most "
                f"{100 * (report['utilization_max'] - asked):+.1f}; {planned['removed']:,} files "
                "removed for it",
            ),
        )
    print_table(("", ""), rows)


def _stop(stop: Any) -> str:
    if stop == "workload-end":
        return "the workload has no more"
    ((name, value),) = stop["reached"].items()
    words = {
        "score": f"layout score {value}",
        "utilization": f"utilization {value}",
        "days": f"{value} days",
        "written-bytes": f"{_amount(value)} written",
        "operations": f"{value} operations",
    }
    return f"reached {words[name]}"


def _print_series(rows: Sequence[dict[str, Any]]) -> None:
    """A few rows of the series, evenly spaced, the last among them."""
    if not rows:
        return
    shown = min(len(rows), TABLE_ROWS_MAX)
    chosen = [rows[(place + 1) * len(rows) // shown - 1] for place in range(shown)]
    print_table(
        (">day", ">operations", ">written", ">files", ">full %", ">layout score"),
        [
            (
                f"{row['day']:,}",
                f"{row['operations']:,}",
                _amount(row["written_bytes"]),
                f"{row['live_files']:,}",
                f"{100 * row['utilization']:.1f}",
                "-" if row["layout_score"] is None else f"{row['layout_score']:.4f}",
            )
            for row in chosen
        ],
    )


def _warn_of_refused(report: dict[str, Any]) -> None:
    outcomes = report["outcomes"]
    if outcomes["no_space"]:
        note(
            f"agewell: warning: for {outcomes['no_space']:,} operations there was no room; "
            f"{outcomes['no_space_creates']:,} files were not made, and "
            f"{outcomes['skipped']:,} operations skipped"
        )


def _amount(count: float) -> str:
    """Bytes for people, in powers of 1024, as file systems are sized."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":  # noqa: PLR2004 (the step between the units)
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError
