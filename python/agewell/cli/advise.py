"""`agewell advise`: what to choose, and what another choice would cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agewell.cli.options import CatalogueOption, JobsOption, JsonOption, QuietOption
from agewell.cli.run import SetOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.configuration import Experiment, parse_settings, with_settings
from agewell.errors import InputError
from agewell.metrics import show
from agewell.sizes import size_text

if TYPE_CHECKING:
    from agewell.segment_size import Advice

app = typer.Typer()

advise = typer.Typer(
    name="advise",
    help=(
        "What to choose for a workload and a disk, and what another choice would cost.\n\n"
        'Example: agewell advise segment-size --access-time "15 ms" --bandwidth "5 MB/s"'
    ),
    no_args_is_help=True,
)
app.add_typer(advise)


@advise.callback()
def _group() -> None:
    """Keeps `segment-size` a command of its own while it is the only one."""


@advise.command("segment-size")
def segment_size(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="A log-structured experiment; by default a file server's week on a disk 85 % "
            "full, cleaned by cost and age, without read caches to be quick.",
            show_default=False,
        ),
    ] = None,
    settings: SetOption = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME|FILE",
            help="Access time and bandwidth of a device of the catalogue, or of a device file.",
            show_default=False,
        ),
    ] = None,
    access_time: Annotated[
        str | None,
        typer.Option(
            "--access-time", metavar="TIME", help='For example "15 ms"; needs --bandwidth.'
        ),
    ] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option(
            "--bandwidth", metavar="RATE", help='For example "5 MB/s"; needs --access-time.'
        ),
    ] = None,
    measure: Annotated[
        Path | None,
        typer.Option(
            "--measure",
            metavar="PATH",
            help="Measure a block device or a large file; it is only read.",
            show_default=False,
        ),
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
    unless --device, --access-time with --bandwidth, or --measure says two numbers for it.

    Example: agewell advise segment-size --device hp-97560
    """
    from agewell import drawing
    from agewell.segment_size import advise as find
    from agewell.segment_size import plot_of

    asked, source = _on_disk(
        _experiment(experiment, settings), device, access_time, bandwidth, measure, catalogue, quiet
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
        document = advice.document()
        document["plots"] = [str(path) for path in plots]
        print_json(document)
    else:
        _print(advice)
    _warn(advice)
    if not quiet and out is not None:
        note(f"plot and table in {out}")


def _experiment(path: Path | None, settings: list[str] | None) -> Experiment:
    from agewell.segment_size import DEFAULT_EXPERIMENT
    from agewell.simulation import resolve

    values = parse_settings(settings or [])
    if path is not None:
        return resolve(path, settings=values)
    return Experiment(with_settings(DEFAULT_EXPERIMENT, values), Path.cwd())


def _on_disk(
    experiment: Experiment,
    device: str | None,
    access_time: str | None,
    bandwidth: str | None,
    measure: Path | None,
    catalogue: Path | None,
    quiet: bool,
) -> tuple[Experiment, str]:
    """The experiment on the disk that the options name, and where its numbers come from."""
    from agewell.segment_size import numbers_of_model, with_disk

    by_hand = access_time is not None or bandwidth is not None
    if sum((device is not None, by_hand, measure is not None)) > 1:
        raise InputError(
            "say one of --device, --access-time with --bandwidth, and --measure, not several"
        )
    if device is not None:
        numbers = numbers_of_model(device, Path.cwd(), catalogue)
        access_ns = round(numbers.access_ms * 1e6)
        rate = max(round(numbers.bandwidth_mb_per_s * 1e6), 1)
        return with_disk(experiment, f"{access_ns} ns", f"{rate} B/s"), numbers.source
    if measure is not None:
        from agewell.device_measurement import measure as read

        found = read(measure)
        if not quiet:
            note(found.sentence())
        disk = with_disk(experiment, f"{found.access_ns} ns", f"{found.bandwidth_bytes_per_s} B/s")
        return disk, found.sentence()
    if access_time is not None and bandwidth is not None:
        return with_disk(experiment, access_time, bandwidth), "the command line"
    if by_hand:
        lacking = "--bandwidth" if bandwidth is None else "--access-time"
        raise InputError(f"--access-time and --bandwidth go together; {lacking} is missing")
    return experiment, ""


def _print(advice: Advice) -> None:
    disk = advice.disk
    typer.echo(
        f"disk: access time {disk.access_ms:.4g} ms, bandwidth {disk.bandwidth_mb_per_s:,.4g} MB/s "
        f"({disk.source})"
    )
    typer.echo(f"load: {_load(advice)}")
    print_table(
        (
            ">segment size",
            ">overall write cost",
            ">of it, new data",
            ">of it, collection",
            ">transfer inefficiency",
            ">above the best (%)",
        ),
        [
            (
                size_text(row.segment_bytes),
                show("overall_write_cost", row.overall_write_cost),
                show("new_data_cost", row.new_data_cost),
                show("cleaner_cost", row.cleaner_cost),
                show("transfer_inefficiency", row.transfer_inefficiency),
                f"{advice.above_best_pct(row):.1f}",
            )
            for row in advice.costs
        ],
    )
    for sentence in advice.sentences():
        typer.echo(sentence)


def _warn(advice: Advice) -> None:
    """Say on standard error which sizes are not in the table."""
    if advice.failed_bytes:
        sizes = ", ".join(size_text(size) for size in advice.failed_bytes)
        note(f"agewell: warning: the log could make no progress with segments of {sizes}")
    if advice.left_out:
        note(f"agewell: warning: {advice.left_out}")


def _load(advice: Advice) -> str:
    """The experiment in a few words."""
    workload, host, layout = (advice.config[name] for name in ("workload", "host", "layout"))
    caches = [host["client_cache"], host["server_cache"]]
    words = [f"{workload['kind']}, at its fullest {100 * workload['utilization']:.4g} % live"]
    words.append(f"collection {layout['collect']}, victims {layout['victim']}")
    if caches == ["0 B", "0 B"]:
        words.append("no read caches")
    return ", ".join(words)
