"""`agewell score`: how well files lie, how free space is broken, and whether reorganising pays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell import files
from agewell.cli.options import CatalogueOption, JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError, RunError
from agewell.filesystems import scoring
from agewell.filesystems.scoring import Score, metric_text, time_text
from agewell.filesystems.scoring import number_text as number
from agewell.filesystems.scoring import percent_text as percent
from agewell.filesystems.scoring import share_text as share
from agewell.filesystems.scoring import size_text as size
from agewell.values.limits import Limit

app = typer.Typer()

_DIRECTORIES_SHOWN = 8
_FILES_SHOWN = 5
_PLOT_SUFFIXES = (".png", ".svg", ".html")
_SHORT_ROWS = (
    "layout score",
    "  hot files",
    "files split",
    "fragments a file",
    "neighbours by name",
    "free-space score",
    "free extents",
)
"""What is printed without `--all`: what the verdict stands on."""


@app.command("score")
def score(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH|IMAGE|SNAPSHOT...",
            help="Directories of mounted file systems, images, snapshots.",
        ),
    ],
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            metavar="DEVICE",
            help="Say whether reorganising is likely to pay on this device of the catalogue.",
        ),
    ] = None,
    access_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help='In place of --device, for example "15 ms"; needs --bandwidth.'
        ),
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE", help='For example "5 MB/s"; needs --access-time.')
    ] = None,
    hot: Annotated[
        str | None,
        typer.Option(
            metavar="PERIOD", help="Score also the files modified within so long before: 30d."
        ),
    ] = None,
    strict_holes: Annotated[
        bool,
        typer.Option(
            "--strict-holes", help="Count a block behind a hole as badly placed wherever it lies."
        ),
    ] = False,
    count_tails: Annotated[
        bool,
        typer.Option(
            "--count-tails",
            help="Count fragments at the end of a file (FFS) as a block of the layout score.",
        ),
    ] = False,
    sync: Annotated[
        bool,
        typer.Option(
            "--sync",
            help=(
                "Have delayed data of a mounted file system written first, so that its place is "
                "known. Default: touch nothing, and leave such data out."
            ),
        ),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Leave a picture here: .png, .svg or .html.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            "-v",
            help=(
                "Print every metric, and tables by size, free extent, place on the disk, directory "
                "and file. Default: the verdict and what it stands on."
            ),
        ),
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=VALUE",
            help="Exit with 1 if a metric of --json is less: layout_score=0.9. Repeatable.",
        ),
    ] = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=VALUE",
            help="The same if it is more: fragments_per_file=1.5. Repeatable.",
        ),
    ] = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure how well files lie and how free space is broken, and say whether it matters.

    The layout score is the share of a file's blocks that lie right behind the block before (Smith &
    Seltzer 1996): 1 is perfect. Beside it stand what it does not see: how files of a directory
    lie to each other, and free space. Several arguments are compared; several snapshots of one file
    system are shown over time. Nothing is written to what is measured. The verdict comes first;
    --all shows all that it stands on.

    Example: agewell score /srv --hot 30d --device seagate-st2000dm006 --plot srv.png
    """
    if plot is not None and plot.suffix not in _PLOT_SUFFIXES:
        raise InputError(f"{plot}: a picture ends in {', '.join(_PLOT_SUFFIXES)}")
    files.require_writable([plot])
    limits = [*_limits(fail_under, is_least=True), *_limits(fail_over, is_least=False)]
    with progress("score", quiet=quiet) as report:

        def show(files: int, in_all: int | None) -> None:
            report(min(files / in_all, 1.0) if in_all else None, f"{files:,} files")

        scores = [
            scoring.score(
                path,
                strict_holes=strict_holes,
                count_tails=count_tails,
                hot=hot,
                sync=sync,
                device=device,
                access_time=access_time,
                bandwidth=bandwidth,
                catalogue_directory=catalogue,
                progress=show,
            )
            for path in paths
        ]
    if plot is not None:
        _draw(scores, plot)
    if as_json:
        print_json(scoring.document(scores))
    elif len(scores) == 1:
        _print_one(scores[0], device, everything=everything)
    else:
        _print_compared(scores)
    for scored in scores:
        _warn(scored, len(scores) > 1)
    if plot is not None and not quiet:
        note(f"picture in {plot}")
    _hold(limits, scores)


def _limits(texts: Sequence[str] | None, *, is_least: bool) -> list[Limit]:
    option = "--fail-under" if is_least else "--fail-over"
    known = scoring.METRIC_NAMES
    return [Limit.read(text, known, is_least=is_least, option=option) for text in texts or ()]


def _hold(limits: Sequence[Limit], scores: Sequence[Score]) -> None:
    """Hold the scores against limits.

    Raises:
        RunError: One is broken.
        InputError: What it is of is not known.
    """
    held = [(scored.path, limit.broken_by(scored.metrics)) for scored in scores for limit in limits]
    broken = [f"{path}: {words}" for path, words in held if words is not None]
    if broken:
        raise RunError("; ".join(broken))


def _draw(scores: list[Score], path: Path) -> None:
    if path.suffix == ".html":
        from agewell.filesystems.scoring import document
        from agewell.report.page import write
        from agewell.report.part import page_of
        from agewell.report.parts.score import part

        write(page_of([part(document(scores), path)]), path)
        return
    from agewell.filesystems.scoring import in_time
    from agewell.report.charts.score import save

    save(in_time(scores), path)


def _print_one(scored: Score, device: str | None, *, everything: bool) -> None:
    print_verdict(scored, device)
    typer.echo()
    typer.echo(_headline(scored))
    rows = list(_headline_rows(scored.report))
    if not everything:
        rows = [row for row in rows if row[0] in _SHORT_ROWS]
    print_table(("", ">", "of what"), rows)
    if everything:
        _print_details(scored.report)
    if scored.reorganising is not None:
        _print_reorganising(scored.reorganising)


def print_verdict(scored: Score, device: str | None) -> None:
    """Write how the files lie, whether that matters, and what to do about it."""
    for sentence in scoring.verdict(scored):
        typer.echo(sentence)
    todo = scoring.remedy(scored, device)
    if todo is not None:
        typer.echo(todo)


def _print_details(report: dict[str, Any]) -> None:
    typer.echo("\nby size")
    print_table(
        (">blocks", ">up to", ">files", ">split %", ">layout score", ">blocks counted"),
        [_size_row(bin_, report) for bin_ in scoring.size_bins(report["layout"])],
    )
    if report["free_space"]["extents"]:
        typer.echo("\nfree extents")
        print_table((">from", ">extents", ">bytes", ">% of free"), _free_rows(report))
    if report["placement"] is not None:
        _print_placement(report["placement"])
    directories = [each for each in report["layout"]["by_directory"] if _badly_placed(each)]
    if directories:
        typer.echo("\nby directory of the root, the most badly placed blocks first")
        print_table(
            ("directory", ">files", ">split %", ">layout score", ">badly placed blocks"),
            [_directory_row(each) for each in directories[:_DIRECTORIES_SHOWN]],
        )
        if len(directories) > _DIRECTORIES_SHOWN:
            typer.echo(f"and {len(directories) - _DIRECTORIES_SHOWN:,} more; --json has them all")
    if report["layout"]["worst_files"]:
        typer.echo("\nthe files with the most badly placed blocks")
        print_table(
            ("file", ">blocks", ">fragments", ">layout score", ">badly placed blocks"),
            [_file_row(each) for each in report["layout"]["worst_files"][:_FILES_SHOWN]],
        )


def _headline(scored: Score) -> str:
    contents = scored.report["contents"]
    words = [
        f"{scored.path}: {contents['kind']}, {size(contents['total_bytes'])}, "
        f"blocks of {size(contents['block_bytes'])}"
    ]
    if contents["fragment_bytes"] != contents["block_bytes"]:
        words.append(f"fragments of {size(contents['fragment_bytes'])}")
    if contents["utilization"] is not None:
        words.append(f"{100 * contents['utilization']:.1f} % full")
    words.append(f"{contents['files']:,} files, {size(contents['file_bytes'])}")
    if scored.taken_ns is not None:
        words.append(f"{time_text(scored.taken_ns)} UTC")
    return "; ".join(words)


def _headline_rows(report: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    layout, broken, free = (report[name] for name in ("layout", "fragmentation", "free_space"))
    yield "layout score", share(layout["layout_score"]), _of_blocks(layout)
    yield "  mean of files", share(layout["mean_file_score"]), f"{layout['scored_files']:,} files"
    hot = layout["hot"]
    if hot is not None:
        period = f"modified in the last {hot['period_ns'] / 86_400e9:g} d"
        yield (
            "  hot files",
            share(hot["layout_score"]),
            f"{hot['files']:,} files {period}; {_of_blocks(hot)}",
        )
    directory = report["directory_layout"]
    if directory["counted_blocks"]:
        yield "  directories", share(directory["layout_score"]), _of_blocks(directory)
    yield (
        "files split",
        percent(broken["split_share"]),
        f"{broken['split_files']:,} of {broken['multi_block_files']:,} of two blocks or more",
    )
    yield (
        "fragments a file",
        number(broken["fragments_per_file"]),
        f"{broken['fragments']:,} in {broken['files']:,} files",
    )
    if broken["breaks"]:
        yield (
            "breaks out of order",
            percent(broken["out_of_order"] / broken["breaks"]),
            f"{broken['out_of_order']:,} of {broken['breaks']:,}, "
            f"in {broken['out_of_order_files']:,} files",
        )
        yield (
            "gap at a break",
            size(broken["mean_gap_bytes"]),
            f"mean; median {size(broken['median_gap_bytes'])}",
        )
    for key, words in (("name", "by name"), ("creation", "by creation"), ("readdir", "as listed")):
        order = report["neighbours"][f"by_{key}"]
        if order["pairs"]:
            yield (
                f"neighbours {words}",
                percent(order["adjacency"]),
                f"{order['adjacent_pairs']:,} of {order['pairs']:,} pairs adjacent; gap "
                f"{size(order['mean_gap_bytes'])} mean, {size(order['median_gap_bytes'])} median",
            )
    if report["contents"]["free_map"]:
        yield (
            "free-space score",
            share(free["free_space_score"]),
            f"{free['following_blocks']:,} of {free['counted_blocks']:,} free blocks",
        )
        yield (
            "free extents",
            f"{free['extents']:,}",
            f"mean {size(free['mean_extent_bytes'])}, "
            f"largest {size(free['largest_extent_bytes'])}, "
            f"half in {size(free['half_in_extents_of_bytes'])} or more",
        )
        for reach in free["reach"]:
            yield (
                f"  of {size(reach['extent_bytes'])} or more",
                percent(reach["share"]),
                f"{size(reach['bytes'])} of {size(free['bytes'])} free",
            )


def _size_row(each: dict[str, Any], report: dict[str, Any]) -> tuple[str, ...]:
    low, high = each["blocks_min"], each["blocks_max"]
    return (
        f"{high:,}" if low == high else f"{low:,} to {high:,}",
        size(high * report["contents"]["block_bytes"]),
        f"{each['files']:,}",
        f"{100 * each['split_files'] / each['files']:.1f}",
        share(each["layout_score"]),
        f"{each['counted_blocks']:,}",
    )


def _free_rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    free = report["free_space"]
    return [
        (
            size(each["bytes_min"]),
            f"{each['extents']:,}",
            size(each["bytes"]),
            f"{100 * each['bytes'] / free['bytes']:.1f}",
        )
        for each in free["by_length"]
    ]


def _print_placement(placement: dict[str, Any]) -> None:
    typer.echo(f"\nby tenth of {placement['groups']:,} groups, front to end")
    rows = [
        (
            str(place),
            percent(tenth["free_share"]),
            size(tenth["mean_free_extent_bytes"]),
            share(tenth["layout_score"]),
            f"{tenth['counted_blocks']:,}",
        )
        for place, tenth in enumerate(placement["tenths"], start=1)
    ]
    print_table((">tenth", ">free", ">mean free extent", ">layout score", ">blocks counted"), rows)


def _badly_placed(each: dict[str, Any]) -> int:
    blocks: int = each["counted_blocks"] - each["optimal_blocks"]
    return blocks


def _directory_row(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        _named(each["name"], each["inode"]),
        f"{each['files']:,}",
        f"{100 * each['split_files'] / each['files']:.1f}",
        share(each["layout_score"]),
        f"{_badly_placed(each):,}",
    )


def _print_reorganising(estimate: dict[str, Any]) -> None:
    walk, alone = estimate["walk"], estimate["alone"]
    typer.echo(f"\nexpected time to read all files on {estimate['title']} (an estimate)")
    rows = [
        (
            "all, in a walk by names",
            seconds(walk["as_they_lie_seconds"]),
            _saved(walk["defragmented_seconds"], walk["defragmenting_gain_pct"]),
            _saved(walk["rewritten_seconds"], walk["rewriting_gain_pct"]),
        ),
        (
            "each file alone",
            seconds(alone["as_they_lie_seconds"]),
            _saved(alone["defragmented_seconds"], alone["gain_pct"]),
            "",
        ),
    ]
    print_table(("", ">as they lie", ">each in one piece", ">written in order"), rows)
    if estimate["walks_to_pay"] is not None:
        typer.echo(
            f"rewriting all takes {seconds(estimate['rewriting_seconds'])} and has paid for itself "
            f"after {estimate['walks_to_pay']:,.1f} walks"
        )
    if estimate["scaled"]:
        typer.echo("the file system is larger than the device: distances are scaled to it")


def _file_row(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        _named(each["path"], each["inode"]),
        f"{each['blocks']:,}",
        f"{each['fragments']:,}",
        share(each["layout_score"]),
        f"{_badly_placed(each):,}",
    )


def _named(name: str | None, inode: int) -> str:
    """A name from a file system, fit for a terminal; the inode where there is none."""
    if name is None:
        return f"inode {inode}"
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _saved(value: float, gain_pct: float) -> str:
    # Adding zero turns a negative zero into a plain one.
    return f"{seconds(value)} ({round(-gain_pct, 1) + 0:+.1f} %)"


def _print_compared(scores: Sequence[Score]) -> None:
    """A row a target, in the order of time where they are one file system's."""
    ordered = scoring.in_time(scores)
    shown = scoring.known_metrics(scores)
    timed = any(scored.reorganising is not None for scored in ordered)
    columns = ["snapshot (UTC)" if scoring.is_series(scores) else "what"]
    columns += [f">{metric.label}" for metric in shown]
    if timed:
        columns += [">walk", ">one piece saves", ">in order saves"]
    rows = []
    for scored in ordered:
        name = scored.path
        if scoring.is_series(scores) and scored.taken_ns is not None:
            name = f"{time_text(scored.taken_ns)}  {scored.path}"
        row = [name, *(metric_text(metric, scored.metrics[metric.name]) for metric in shown)]
        if scored.reorganising is not None:
            walk = scored.reorganising["walk"]
            row += [
                seconds(walk["as_they_lie_seconds"]),
                f"{walk['defragmenting_gain_pct']:.1f} %",
                f"{walk['rewriting_gain_pct']:.1f} %",
            ]
        rows.append(row)
    print_table(columns, rows)


def _warn(scored: Score, several: bool) -> None:
    """Say on standard error what the metrics do not hold."""
    where = f"{scored.path}: " if several else ""
    contents, special = scored.report["contents"], scored.report["layout"]["special"]

    def warn(message: str) -> None:
        note(f"agewell: warning: {where}{message}")

    if special["unknown_extents"]:
        warn(
            f"{special['unknown_extents']:,} extents without a known place are left out; delayed "
            "data get one with --sync"
        )
    if contents["unreadable"]:
        warn(f"{contents['unreadable']:,} entries could not be read")
    if not contents["free_map"]:
        warn("where free space lies is not known; as root, or on the image, it may be")
    for key, what in (
        ("inline_extents", "extents of inline data are left out: they have no blocks"),
        ("encoded_blocks", "compressed or encrypted blocks are counted by the blocks of the file"),
        ("shared_blocks", "shared blocks are counted in every file that they belong to"),
        ("unwritten_blocks", "unwritten blocks are counted"),
    ):
        if special[key]:
            note(f"agewell: note: {where}{special[key]:,} {what}")


def _of_blocks(part: dict[str, Any]) -> str:
    return f"{part['optimal_blocks']:,} of {part['counted_blocks']:,} blocks"


def seconds(value: float) -> str:
    """A length of time for people."""
    if value >= 7200:  # noqa: PLR2004 (two hours)
        return f"{value / 3600:,.1f} h"
    if value >= 120:  # noqa: PLR2004 (two minutes)
        return f"{value / 60:,.1f} min"
    return f"{value:,.3g} s"
