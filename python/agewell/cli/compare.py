"""`agewell compare`: every layout on the same workloads and disks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agewell.cli.options import CatalogueOption, JobsOption, JsonOption, QuietOption
from agewell.cli.run import SetOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError
from agewell.experiments.configuration import parse_settings
from agewell.values.documents import document
from agewell.values.metrics import describe, mechanisms, show

if TYPE_CHECKING:
    from agewell.advice.comparing import Cell, Comparison, Entry

app = typer.Typer()

WorkloadsOption = Annotated[
    str | None,
    typer.Option(
        "--workload",
        "-w",
        metavar="WORKLOAD,...",
        help="A generator by name, an experiment file (all but its layout and device), a block "
        "trace, taken as one large file, or a trace of file operations.",
    ),
]

DevicesOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="DEVICE,...",
        help="A device of the catalogue, a device file, or two numbers: simple:15ms:5MB/s.",
    ),
]

_HEADINGS = {
    "overall_write_cost": "write cost",
    "mean_disk_read_block_ms": "read, per block (ms)",
    "disk_seconds": "disk time (s)",
    "p99_response_ms": "p99 response (ms)",
    "recovery_seconds": "recovery (s)",
}


@app.command("compare")
def compare(
    workload: WorkloadsOption = None,
    device: DevicesOption = None,
    layouts: Annotated[
        str,
        typer.Option(
            "--layouts",
            "-l",
            metavar="all|NAME,...",
            help="Which layouts; --list says what they are.",
        ),
    ] = "all",
    utilization: Annotated[
        str | None,
        typer.Option(
            "--utilization",
            "-u",
            metavar="SHARE,...",
            help="How full the disk is, between 0 and 1; by default as the workload's file says, "
            "or 0.5,0.7,0.9.",
        ),
    ] = None,
    settings: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Leave runs, tables and the picture here; the same command continues.",
        ),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List the layouts and run nothing.")
    ] = False,
    jobs: JobsOption = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Every layout on the same workloads and disks, and which of them never goes far wrong.

    All layouts get the same requests through the same caches and write buffer (256 KiB, unless the
    workload's file has [host] buffer_size). The ratio is total disk time over the least in its
    table; a layout that cannot do a cell stands there with the reason. DIR/compare.png is the
    picture; DIR/runs/KEY can be run again by 'agewell run'.

    Example: agewell compare --workload hot-cold,microbenchmark --device hp-97560 --out runs/compare
    """
    from agewell.experiments import choices
    from agewell.experiments import layouts as known

    if listing:
        _list(as_json=as_json)
        return
    if workload is None or device is None:
        lacking = "--workload" if workload is None else "--device"
        raise InputError(f"{lacking} is missing; see 'agewell compare --help'")
    asked = known.chosen(layouts)
    workloads = choices.workloads(workload)
    devices = choices.devices(device, catalogue)
    shares = utilizations(utilization)
    values = parse_settings(settings or [])

    def run(folder: Path) -> tuple[Comparison, list[Path]]:
        from agewell.advice.comparing import compare as run_comparison
        from agewell.report.charts.comparison import save

        with progress("comparing", quiet=quiet) as report:
            comparison = run_comparison(
                asked,
                workloads,
                devices,
                folder,
                utilizations=shares,
                settings=values,
                catalogue_directory=catalogue,
                jobs=jobs,
                progress=lambda done, total: report(done / total, f"{done} of {total} runs"),
            )
        return comparison, [] if out is None else save(comparison.document, folder)

    if out is not None:
        comparison, pictures = run(out)
    else:
        with tempfile.TemporaryDirectory(prefix="agewell-") as folder:
            comparison, pictures = run(Path(folder))
    if as_json:
        print_json({**comparison.document, "plots": [str(path) for path in pictures]})
    else:
        _print(comparison, default_segments="layout.segment_size" not in values)
    if not quiet and out is not None:
        note(f"runs, tables and picture in {out}")


def utilizations(text: str | None) -> list[float]:
    """The utilizations of `SHARE,...`.

    Raises:
        InputError: One is not a number between 0 and 1, or stands twice.
    """
    found: list[float] = []
    for part in [] if text is None else text.split(","):
        try:
            share = float(part)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            raise InputError(f"--utilization {text}: '{part}' is not a number between 0 and 1")
        if share in found:
            raise InputError(f"--utilization {text}: {share:g} stands there twice")
        found.append(share)
    return found


def _list(*, as_json: bool) -> None:
    from agewell.experiments.layouts import LAYOUTS

    if as_json:
        known = [
            {
                "name": layout.name,
                "words": layout.words,
                "is_adaptive": layout.is_adaptive,
                "table": dict(layout.table),
            }
            for layout in LAYOUTS
        ]
        print_json(document("compare-layouts", {"layouts": known}))
        return
    print_table(
        ("layout", "what it is", "[layout]"),
        [
            (
                layout.name,
                layout.words,
                ", ".join(f"{key} = {value}" for key, value in layout.table.items()),
            )
            for layout in LAYOUTS
        ],
    )


def _print(comparison: Comparison, *, default_segments: bool) -> None:
    for cell, row in comparison.cells.items():
        typer.echo(f"{cell}:")
        _print_cell(comparison, cell, row)
        typer.echo("")
    able = comparison.robustness()[0].cells
    lost = len(comparison.cells) - able
    beside = f"; {_count(lost, 'cell')} no layout can do" if lost else ""
    typer.echo(f"robustness, over {_count(able, 'cell')}{beside}:")
    _print_robustness(comparison)
    typer.echo("")
    for sentence in comparison.verdict():
        typer.echo(sentence)
    if default_segments and any(layout.table["kind"] == "lfs" for layout in comparison.layouts):
        typer.echo(
            "Logs have the segments of their default here; 'agewell advise' finds the size that a "
            "workload and a disk want, and --set layout.segment_size=SIZE compares logs with it."
        )


def _print_cell(comparison: Comparison, cell: Cell, row: list[Entry] | Any) -> None:
    from agewell.advice.comparing import SHOWN_METRICS
    from agewell.report.charts.comparison import ratio_text

    rows = []
    for entry in sorted(row, key=lambda each: each.disk_seconds):
        ratio = comparison.ratio(cell, entry)
        if entry.metrics is None or ratio is None:
            rows.append([entry.layout, *([""] * (len(SHOWN_METRICS) + 2)), entry.cannot])
            continue
        shown = [_shown(name, entry.metrics.get(name)) for name in SHOWN_METRICS]
        rows.append([entry.layout, *shown, ratio_text(ratio), mechanisms(entry.metrics) or "-", ""])
    unable = any(cells[-1] for cells in rows)
    headings = [
        "layout",
        *(f">{_HEADINGS.get(name, describe(name).label)}" for name in SHOWN_METRICS),
        ">ratio",
        describe("mechanisms").label,
        *(["cannot"] if unable else []),
    ]
    print_table(headings, [cells if unable else cells[:-1] for cells in rows])


def _shown(name: str, value: Any) -> str:
    return "-" if value is None else show(name, value)


def _print_robustness(comparison: Comparison) -> None:
    from agewell.report.charts.comparison import ratio_text

    headings = (
        "layout",
        ">worst ratio",
        "where",
        ">geometric mean",
        ">best in (within 1 %)",
        ">cannot do",
    )
    print_table(
        headings,
        [
            (
                each.layout,
                "-" if each.worst_ratio is None else ratio_text(each.worst_ratio),
                "-" if each.worst_at is None else str(each.worst_at),
                "-" if each.mean_ratio is None else ratio_text(each.mean_ratio),
                str(each.best_in),
                str(each.cells - each.done),
            )
            for each in comparison.robustness()
        ],
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
