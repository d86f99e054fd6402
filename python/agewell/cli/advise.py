"""`agewell advise`: what to choose, and what another choice would cost."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from agewell.cli.options import CatalogueOption, JobsOption, JsonOption, QuietOption
from agewell.cli.run import SetOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError
from agewell.experiments.configuration import Experiment, parse_settings, with_settings
from agewell.values.metrics import describe, show
from agewell.values.sizes import percent, size_text

if TYPE_CHECKING:
    from agewell.advice.advising import Advice as LayoutAdvice
    from agewell.advice.segment_size import Advice

app = typer.Typer()


class _WhatOrCommand(TyperGroup):
    """Takes a directory, a recording or an experiment in the place of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the base class does, with what is advised on as `--workload`."""
        valued = {name for each in self.params if not _is_flag(each) for name in each.opts}
        place = 0
        while place < len(args) and args[place].startswith("-"):
            place += 2 if args[place] in valued else 1
        if place < len(args) and args[place] not in self.commands:
            if "--workload" in args or "-w" in args:
                raise InputError(f"{args[place]}: --workload is given already; say one of them")
            args = [*args[:place], "--workload", *args[place:]]
        return super().parse_args(ctx, args)


def _is_flag(option: Any) -> bool:
    return bool(getattr(option, "is_flag", False))


advise = typer.Typer(
    name="advise",
    cls=_WhatOrCommand,
    no_args_is_help=True,
    invoke_without_command=True,
    subcommand_metavar="[PATH|TRACE|EXPERIMENT | COMMAND [ARGS]...]",
)
app.add_typer(advise)


@advise.callback()
def layouts(
    context: typer.Context,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="WORKLOAD",
            help="A generator by name, an experiment file (all but its layout and device), a block "
            "trace, taken as one large file, a trace of file operations, or a directory of a "
            "mounted file system. What stands by itself is taken as this.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            metavar="DEVICE",
            help="A device of the catalogue, a device file, or two numbers: simple:15ms:5MB/s.",
        ),
    ] = None,
    utilization: Annotated[
        str | None,
        typer.Option(
            "--utilization",
            "-u",
            metavar="SHARE",
            help="How full the disk is; by default as the workload's file says, or 0.85.",
        ),
    ] = None,
    settings: SetOption = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Leave runs and their experiments here; the same command continues.",
        ),
    ] = Path("runs/advise"),
    jobs: JobsOption = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """What to choose for a workload and a disk, and what another choice would cost.

    Without a further command: which layout, with which segments, collection, placement,
    reorganisation and reading ahead, and whether shuffling its requests pays, by total disk time;
    what it gains over layouts as they are by default, how steadily, and where it does not pay.
    Every run that the advice rests on is an experiment in DIR/experiments.

    For a directory: whether moving its files would pay on the disk, and the command to do it.

    Examples: agewell advise mail --device hp-97560;
    agewell advise /srv --device my-disk.toml
    """
    if context.invoked_subcommand is not None:
        given = [name for name, value in (("--workload", workload), ("--device", device)) if value]
        if given:
            raise InputError(
                f"{given[0]} stands before '{context.invoked_subcommand}', which has options of "
                "its own; say them behind it"
            )
        return
    if workload is None or device is None:
        lacking = "--workload" if workload is None else "--device"
        raise InputError(f"{lacking} is missing; see 'agewell advise --help'")
    if Path(workload).is_dir():
        _advise_on_directory(
            workload, device, catalogue, utilization, settings, as_json=as_json, quiet=quiet
        )
        return
    _advise_on_layouts(
        workload, device, utilization, settings, out, jobs, catalogue, as_json=as_json, quiet=quiet
    )


def _advise_on_directory(
    directory: str,
    device: str,
    catalogue: Path | None,
    utilization: str | None,
    settings: list[str] | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Whether moving the files would pay: what `agewell score` says, without its metrics."""
    from agewell.cli.score import print_verdict
    from agewell.experiments import choices
    from agewell.filesystems import scoring

    if utilization is not None or settings:
        given = "--utilization" if utilization is not None else "--set"
        raise InputError(f"{given} is for a workload; '{directory}' is a directory")
    table = choices.device(device, catalogue).table
    two_numbers = table.get("kind") == "simple"
    with progress("reading where files lie", quiet=quiet) as report:
        scored = scoring.score(
            directory,
            device=None if two_numbers else device,
            access_time=table.get("access_time"),
            bandwidth=table.get("bandwidth"),
            catalogue_directory=catalogue,
            progress=lambda files, in_all: report(
                min(files / in_all, 1.0) if in_all else None, f"{files:,} files"
            ),
        )
    if as_json:
        print_json({**scoring.document([scored]), "advice": scoring.remedy(scored, device)})
        return
    typer.echo(
        "Which layout would serve it best depends on its requests: record them by "
        f"'agewell record {shlex.quote(directory)} -o week.parquet', then "
        f"'agewell advise week.parquet --device {shlex.quote(device)}'."
    )
    print_verdict(scored, device)


def _advise_on_layouts(
    workload: str,
    device: str,
    utilization: str | None,
    settings: list[str] | None,
    out: Path,
    jobs: int | None,
    catalogue: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from agewell.advice.advising import advise as find
    from agewell.cli.compare import utilizations
    from agewell.experiments import choices

    asked = choices.workload(workload)
    on = choices.device(device, catalogue)
    shares = utilizations(utilization)
    if len(shares) > 1:
        raise InputError(f"--utilization {utilization}: advice is for one; others are tried anyway")
    with progress("searching", quiet=quiet) as report:
        found = find(
            asked,
            on,
            out,
            utilization=shares[0] if shares else None,
            settings=parse_settings(settings or []),
            catalogue_directory=catalogue,
            jobs=jobs,
            progress=report,
        )
    if as_json:
        print_json(found.document)
    else:
        print_layouts(found)
    if not quiet:
        note(f"runs and experiments in {out}")


def print_layouts(advice: LayoutAdvice) -> None:
    """Write the search and what it says to standard output."""
    typer.echo(
        f"{advice.workload} on {advice.device}, {percent(advice.utilization)} full; "
        "total disk time (s):"
    )
    for step in advice.steps:
        if step.note:
            typer.echo(f"\n{step.question}: {step.note}")
            continue
        typer.echo("")
        logs = any(each.room_made_by for each in step.tried)
        unable = any(each.cannot for each in step.tried)
        print_table(
            (
                step.question,
                ">disk time (s)",
                "",
                *([describe("mechanisms").label] if logs else []),
                "experiment",
                *(["cannot"] if unable else []),
            ),
            [
                (
                    each.label,
                    "" if each.cannot else f"{each.disk_seconds:,.2f}",
                    "chosen" if each is step.chosen else "",
                    *([each.room_made_by or "-"] if logs else []),
                    each.file,
                    *([each.cannot] if unable else []),
                )
                for each in step.tried
            ],
        )
        if step.left_out:
            typer.echo(f"left out: {step.left_out}")
    typer.echo("")
    _print_utilizations(advice)
    if advice.shuffling.tried:
        typer.echo("")
        print_table(
            ("shuffling", "every", ">free moves save (%)", ">moves counted (%)", "experiment"),
            [
                (
                    each.quantum,
                    each.interval,
                    _signed(each.free_saved_pct),
                    _signed(each.paid_saved_pct),
                    each.cannot or each.files[-1],
                )
                for each in advice.shuffling.tried
            ],
        )
    typer.echo("")
    sentences = [*advice.sentences(), advice.shuffling.sentence(), advice.installable.sentence()]
    for sentence in sentences:
        typer.echo(sentence)


def _print_utilizations(advice: LayoutAdvice) -> None:
    """What the choice saves against each baseline at every utilization tried."""
    if not advice.against:
        return
    shares = list(advice.against[0].by_utilization)
    print_table(
        ("saved against (%)", *(f">{percent(share)} full" for share in shares)),
        [
            (each.baseline.label, *(_signed(each.by_utilization[share]) for share in shares))
            for each in advice.against
        ],
    )


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


@advise.command("segment-size")
def segment_size(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="A log-structured experiment; by default a file server's week on a disk 85 % "
            "full, cleaned by cost and age, without caches of clients to be quick.",
        ),
    ] = None,
    settings: SetOption = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            metavar="DEVICE",
            help="Access time and bandwidth of a device of the catalogue, or of a device file.",
        ),
    ] = None,
    access_time: Annotated[
        str | None, typer.Option(metavar="TIME", help='For example "15 ms"; needs --bandwidth.')
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE", help='For example "5 MB/s"; needs --access-time.')
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Leave the plot and the table of all runs here."
        ),
    ] = None,
    jobs: JobsOption = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Which segment size a log should have on a disk, and what a wrong one costs.

    Runs the experiment on every segment size from one block up. The disk is that of the experiment
    unless --device, or --access-time with --bandwidth, says two numbers for it. `agewell probe`
    measures a disk of this machine and writes a file for --device.

    Example: agewell advise segment-size --device hp-97560
    """
    from agewell.advice.segment_size import advise as find
    from agewell.advice.segment_size import plot_of
    from agewell.report import drawing

    asked, source = _on_disk(
        _experiment(experiment, settings), device, access_time, bandwidth, catalogue
    )
    with progress("trying segment sizes", quiet=quiet) as report:
        advice = find(
            asked,
            disk_source=source,
            out=out,
            catalogue_directory=catalogue,
            jobs=jobs,
            progress=lambda done, total: report(done / total, f"{done} of {total} sizes"),
        )
    plots = [] if out is None else drawing.save(plot_of(advice), out)
    if as_json:
        print_json({**advice.document(), "plots": [str(path) for path in plots]})
    else:
        _print(advice)
    _warn(advice)
    if not quiet and out is not None:
        note(f"plot and table in {out}")


def _experiment(path: Path | None, settings: list[str] | None) -> Experiment:
    from agewell.advice.segment_size import DEFAULT_EXPERIMENT
    from agewell.experiments.simulation import resolve

    values = parse_settings(settings or [])
    if path is not None:
        return resolve(path, settings=values)
    return Experiment(with_settings(DEFAULT_EXPERIMENT, values), Path.cwd())


def _on_disk(
    experiment: Experiment,
    device: str | None,
    access_time: str | None,
    bandwidth: str | None,
    catalogue: Path | None,
) -> tuple[Experiment, str]:
    """The experiment on the disk that the options name, and where its numbers come from."""
    from agewell.advice.segment_size import numbers_of_model, with_disk

    by_hand = access_time is not None or bandwidth is not None
    if device is not None and by_hand:
        raise InputError("say one of --device and --access-time with --bandwidth, not both")
    if device is not None:
        numbers = numbers_of_model(device, Path.cwd(), catalogue)
        access_ns = round(numbers.access_ms * 1e6)
        rate = max(round(numbers.bandwidth_mb_per_s * 1e6), 1)
        return with_disk(experiment, f"{access_ns} ns", f"{rate} B/s"), numbers.source
    if access_time is not None and bandwidth is not None:
        return with_disk(experiment, access_time, bandwidth), "the command line"
    if by_hand:
        lacking = "--bandwidth" if bandwidth is None else "--access-time"
        raise InputError(f"--access-time and --bandwidth go together; {lacking} is missing")
    return experiment, ""


def _print(advice: Advice) -> None:
    from agewell.advice.segment_size import SHOWN_METRICS

    disk = advice.disk
    typer.echo(
        f"disk: access time {disk.access_ms:.4g} ms, bandwidth {disk.bandwidth_mb_per_s:,.4g} MB/s "
        f"({disk.source})"
    )
    typer.echo(f"load: {_load(advice)}")
    print_table(
        (
            ">segment size",
            ">disk time (s)",
            ">overall write cost",
            ">of it, new data",
            ">of it, collection",
            ">transfer inefficiency",
            ">above the best (%)",
            describe("mechanisms").label,
        ),
        [
            (
                size_text(size),
                *(show(name, (each.metrics or {})[name]) for name in SHOWN_METRICS),
                f"{advice.above_best_pct(size):.1f}",
                each.room_made_by or "-",
            )
            for size, each in advice.costs.items()
        ],
    )
    for sentence in advice.sentences():
        typer.echo(sentence)


def _warn(advice: Advice) -> None:
    """Say on standard error which sizes are not in the table."""
    if advice.failed_bytes:
        sizes = ", ".join(size_text(size) for size in advice.failed_bytes)
        note(f"agewell: warning: the log could make no progress with segments of {sizes}")
    if advice.tried.left_out:
        note(f"agewell: warning: {advice.tried.left_out}")


def _load(advice: Advice) -> str:
    """The experiment in a few words."""
    workload, host, layout = (advice.config[name] for name in ("workload", "host", "layout"))
    caches = [host["client_cache"], host["server_cache"]]
    words = [f"{workload['kind']}, at its fullest {100 * workload['utilization']:.4g} % live"]
    words.append(f"collection {layout['collect']}, victims {layout['victim']}")
    if caches == ["0 B", "0 B"]:
        words.append("no read caches")
    return ", ".join(words)
