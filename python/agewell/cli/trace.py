"""`agewell trace`: what is in a trace, and traces from traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell import _agewell
from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, print_text, progress
from agewell.files import catalogue
from agewell.values.documents import document

app = typer.Typer()

trace = typer.Typer(
    name="trace",
    help=(
        "Look into block traces and make traces from traces.\n\n"
        "Every format of `agewell trace formats` is read, plain or as .gz, .bz2, .zst or .xz; the "
        "format is detected unless --format names it. Times are counted from the trace's start, "
        "addresses in sectors of 512 bytes. `-` is standard input or output.\n\n"
        "Example: agewell trace info hplajw_1week.srt.zst"
    ),
    no_args_is_help=True,
)
app.add_typer(trace)

TraceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help="A trace, or the name of one that comes with agewell; - is standard input.",
        callback=catalogue.trace,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="The input's format, one of `agewell trace formats`; detected by default.",
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        "-t",
        metavar="FORMAT",
        help=(
            "The output's format: parquet, disksim-ascii, fio-iolog-v2 or fio-iolog-v3; by default "
            "known by its name (.parquet, .trace, .iolog)."
        ),
    ),
]
SkipOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave bad records out and count them; default: stop.")
]
FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        "-F",
        metavar="NAME=VALUE",
        help=(
            "One step of the pipe; repeatable, applied in the order given: time=1h..2h, op=read, "
            "device=0, sector=0..1000000, drop-daily=03:00..06:00, 'split=64 KiB', "
            "rebase=-171760, sample=1/10, scale-time=0.5."
        ),
    ),
]


@trace.command("info")
def info(
    path: TraceArgument,
    format_name: FormatOption = None,
    skip_bad: SkipOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read a whole trace and say what it is and holds.

    Example: agewell trace info hplajw_1week.srt.zst
    """
    found = document(
        "trace-info", json.loads(_agewell.trace_info(str(path), format_name, skip_bad))
    )
    if as_json:
        print_json(found)
    else:
        print_info(found)
    _warn_of_skipped(found["metadata"])


@trace.command("head")
def head(
    path: TraceArgument,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="How many requests to show.")
    ] = 10,
    format_name: FormatOption = None,
    skip_bad: SkipOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the first requests as agewell reads them.

    Example: agewell trace head --count 5 web_0.csv.gz
    """
    records = json.loads(_agewell.trace_head(str(path), format_name, count, skip_bad))
    if as_json:
        print_json(document("trace-head", {"requests": records}))
        return
    columns = (
        ">enqueue s",
        ">start +ms",
        ">finish +ms",
        ">device",
        ">sector",
        ">sectors",
        "operation",
        "flags",
        ">client",
    )
    print_table(columns, (_head_row(record) for record in records))


@trace.command("convert")
def convert(
    source: TraceArgument,
    target: Annotated[Path, typer.Argument(metavar="OUTPUT", help="- is standard output.")],
    format_name: FormatOption = None,
    to: ToOption = None,
    filters: FilterOption = None,
    skip_bad: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a trace in another format.

    Example: agewell trace convert prxy_0.csv.gz prxy_0.parquet
    """
    _convert([source], target, format_name, to, filters or [], skip_bad, as_json, quiet)


@trace.command("filter")
def filter_(
    source: TraceArgument,
    target: Annotated[Path, typer.Argument(metavar="OUTPUT", help="- is standard output.")],
    filters: FilterOption = None,
    format_name: FormatOption = None,
    to: ToOption = None,
    skip_bad: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Keep, drop or change requests; the filters work as a pipe, in the order given.

    Example: agewell trace filter hplajw_1week.srt.zst nights-off.parquet
    --filter device=0 --filter drop-daily=03:00..06:00
    """
    if not filters:
        raise _agewell.InputError(
            "agewell trace filter: no --filter was given; see 'agewell trace filter --help'"
        )
    _convert([source], target, format_name, to, filters, skip_bad, as_json, quiet)


@trace.command("merge")
def merge(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACE... OUTPUT",
            help="Two traces or more, then the output; - is standard output.",
        ),
    ],
    format_name: FormatOption = None,
    to: ToOption = None,
    filters: FilterOption = None,
    skip_bad: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Merge traces by time: by the wall clock if all know it, else as if started together.

    Devices of the same name become one device.

    Example: agewell trace merge hm_0.csv.gz hm_1.csv.gz hm.parquet
    """
    if len(paths) < 3:  # noqa: PLR2004 (two traces and the output)
        raise _agewell.InputError(
            "agewell trace merge: give at least two traces and the output, in this order"
        )
    *sources, target = paths
    _convert(sources, target, format_name, to, filters or [], skip_bad, as_json, quiet)


@trace.command("formats")
def formats(as_json: JsonOption = False) -> None:
    """List the formats that are read and written, and what is treacherous about each.

    Example: agewell trace formats --json
    """
    known = json.loads(_agewell.trace_formats())
    if as_json:
        print_json(document("trace-formats", {"formats": known}))
        return
    rows = (
        (
            entry["name"],
            "read, written" if entry["writes"] else "read",
            entry["title"],
            entry["trap"],
        )
        for entry in known
    )
    print_table(("format", "", "what it is", "beware"), rows)


def _convert(
    sources: list[Path],
    target: Path,
    format_name: str | None,
    to: str | None,
    filters: list[str],
    skip_bad: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """The one conversion behind convert, filter and merge."""
    to_stdout = str(target) == "-"
    if to_stdout and as_json:
        raise _agewell.InputError(
            "agewell trace: --json and an output of '-' both need standard output; name a file"
        )
    if to_stdout and to is None:
        raise _agewell.InputError(
            "agewell trace: an output of '-' has no name to show its format; say --to"
        )
    with progress("converting", quiet=quiet) as report:
        done = json.loads(
            _agewell.trace_convert(
                [str(source) for source in sources],
                str(target),
                format_name,
                to,
                json.dumps(filters),
                skip_bad,
                lambda bytes_read, requests: report(
                    None, f"{requests:,} requests, {bytes_read / 1e6:,.0f} MB"
                ),
            )
        )
    if as_json:
        print_json(document("trace-convert", done))
    elif not quiet:
        note(_done_line(done, target))
    for warning, count in done["warnings"].items():
        note(f"agewell: warning: {count:,} {warning}")
    if done["left_out"]:
        note(
            f"agewell: warning: {done['left_out']:,} discards and flushes left out, which "
            f"{done['output_format']} cannot express"
        )
    _warn_of_skipped(done)


def _done_line(done: dict[str, Any], target: Path) -> str:
    kept = f"{done['requests_out']:,} requests"
    if done["requests_out"] != done["requests_in"]:
        kept += f" of {done['requests_in']:,}"
    if done["split_requests"]:
        kept += f" ({done['split_requests']:,} were split)"
    return f"{target}: {kept} as {done['output_format']}, {done['bytes_out']:,} bytes"


def _warn_of_skipped(found: dict[str, Any]) -> None:
    if found["skipped_records"]:
        note(
            f"agewell: warning: {found['skipped_records']:,} bad records were left out; the "
            f"first: {found['first_skipped']}"
        )


FLAG_LETTERS = {1: "S", 2: "a", 4: "M", 8: "r"}
"""Synchronous, asynchronous, metadata, read-ahead."""


def _head_row(record: dict[str, Any]) -> tuple[str, ...]:
    enqueue_ns = record["enqueue_ns"]

    def since(time_ns: int | None) -> str:
        return "-" if time_ns is None else f"{(time_ns - enqueue_ns) / 1e6:.3f}"

    letters = "".join(letter for bit, letter in FLAG_LETTERS.items() if record["flags"] & bit)
    return (
        f"{enqueue_ns / 1e9:.6f}",
        since(record["start_ns"]),
        since(record["finish_ns"]),
        str(record["device"]),
        str(record["sector"]),
        str(record["sectors"]),
        record["operation"],
        letters or "-",
        str(record["client"]),
    )


def _amount(count: float) -> str:
    """Bytes for people, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":  # noqa: PLR2004 (the step between the units)
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError


def _span(seconds: float) -> str:
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{days:.0f} d"] if days else []
    if days or hours:
        parts.append(f"{hours:.0f} h")
    if days or hours or minutes:
        parts.append(f"{minutes:.0f} min")
    parts.append(f"{rest:.3f} s")
    return " ".join(parts)


def print_info(found: dict[str, Any]) -> None:
    """What a trace is and holds, as `_agewell.trace_info` gives it."""
    metadata, summary = found["metadata"], found["summary"]
    origin = metadata["format"]
    kind = found["title"] + (f", from {origin}" if origin != found["format"] else "")
    compressed = f", compressed ({metadata['compression']})" if metadata["compression"] else ""
    rows = [
        ("format", f"{kind}{compressed} ({found['sureness']})"),
        ("requests", f"{summary['requests']:,}"),
        (
            "of them",
            f"{summary['reads']:,} reads, {summary['writes']:,} writes"
            + _if_any(summary["discards"], "discards")
            + _if_any(summary["flushes"], "flushes")
            + f" ({summary['reads_pct']:.1f} % reads)",
        ),
        (
            "transferred",
            f"{_amount(summary['read_bytes'])} read, {_amount(summary['written_bytes'])} written",
        ),
        ("span", _span(summary["span_s"])),
    ]
    if found["start_wall"]:
        rows.append(("begins", f"{found['start_wall']} {metadata['start_wall_zone'] or ''}"))
    if summary["synchronous"] or summary["asynchronous"]:
        rows.append(
            (
                "waited for",
                f"{summary['synchronous']:,} synchronous, {summary['asynchronous']:,} asynchronous",
            )
        )
    estimate = "about " if summary["footprint_is_estimate"] else ""
    rows += [
        ("sequential", f"{summary['sequential_pct']:.1f} %"),
        ("footprint", f"{estimate}{_amount(summary['footprint_bytes'])} in 4 KiB blocks"),
        (
            "sizes",
            f"mean {_amount(summary['mean_bytes'])}, largest {_amount(summary['max_bytes'])}",
        ),
        (
            "commonest",
            ", ".join(f"{size['bytes']}: {size['requests']:,}" for size in summary["sizes"][:5]),
        ),
    ]
    print_table(("", ""), rows)
    times = [
        ("between requests", summary["interarrival"]),
        ("response", summary["response"]),
        ("  reads", summary["read_response"]),
        ("  writes", summary["write_response"]),
        ("service", summary["service"]),
        ("  reads", summary["read_service"]),
        ("  writes", summary["write_service"]),
    ]
    columns = ("times, ms", ">mean", ">p50", ">p90", ">p99", ">max")
    keys = ("mean_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms")
    print_table(
        columns, [(name, *(f"{value[key]:,.3f}" for key in keys)) for name, value in times if value]
    )
    _print_devices(metadata, summary)
    if found["files"]:
        _print_files(found["files"])
    header = [(key, " ".join(str(value).split())) for key, value in metadata["header"].items()]
    if header:
        print_table(("header", ""), header)
    for warning, count in metadata["warnings"].items():
        note(f"agewell: warning: {count:,} {warning}")


def _if_any(count: int, what: str) -> str:
    return f", {count:,} {what}" if count else ""


def _print_files(files: dict[str, Any]) -> None:
    """The busiest files of a trace whose requests say which file they are of."""
    rows = [
        (
            file["path"],
            f"{file['requests']:,}",
            _amount(file["read_bytes"]),
            _amount(file["written_bytes"]),
        )
        for file in files["busiest"]
    ]
    share = 100 * files["file_sectors"] / max(files["sectors"], 1)
    print_table((f"busiest of {files['files']:,} files", ">requests", ">read", ">written"), rows)
    print_text(f"{share:.1f} % of the sectors read and written are of known files\n")


def _print_devices(metadata: dict[str, Any], summary: dict[str, Any]) -> None:
    shown = 20
    described = {device["id"]: device for device in metadata["devices"]}
    rows = []
    for device in summary["devices"][:shown]:
        drive = described.get(device["id"], {}).get("drive") or {}
        rows.append(
            (
                str(device["id"]),
                device["name"],
                drive.get("model") or "",
                f"{device['requests']:,}",
                f"{100 * device['reads'] / device['requests']:.1f}",
                f"{device['sector_min']:,}",
                f"{device['sector_end']:,}",
            )
        )
    columns = (">device", "name", "drive", ">requests", ">reads %", ">first sector", ">end sector")
    print_table(columns, rows)
    if len(summary["devices"]) > shown:
        note(f"{len(summary['devices']) - shown:,} more devices; --json lists them all")
