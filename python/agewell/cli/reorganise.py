"""`agewell reorganise`: the files of a mounted file system where they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.cli.options import CatalogueOption, JsonOption, QuietOption
from agewell.cli.terminal import print_json, print_table, print_text, progress
from agewell.cli.watching import watch as show_watch
from agewell.errors import InputError
from agewell.filesystems import reorganising, watching
from agewell.filesystems.scoring import number_text as number
from agewell.filesystems.scoring import percent_text as percent
from agewell.filesystems.scoring import size_text as size
from agewell.values.documents import document

app = typer.Typer()


@app.command("reorganise")
def reorganise(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A directory of a mounted ext4, xfs or btrfs."),
    ],
    by: Annotated[
        str,
        typer.Option(
            metavar="names|directory|RECORDING",
            help=(
                "The order in which files are to lie: directory by directory by name, or as "
                "directories are listed (how tar and grep -r read), or as a recording of block "
                "requests reads them."
            ),
        ),
    ] = "names",
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            metavar="DEVICE",
            help=(
                "The disk that the saving is estimated for: a name of the catalogue, or a file. "
                f"Default: {reorganising.DEFAULT_DEVICE}; with --watch, the disk itself, by the "
                "times of its requests."
            ),
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be moved; move nothing.")
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the plan here; --apply carries it out later."),
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Carry out this plan. Files that changed since are left out."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help=(
                "Move no more than this, such as '1 GB': what saves most for its bytes. With "
                "--watch, in any hour, such as '2 GB/h'."
            ),
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Move no more than this, such as '20 MB/s'."),
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End after so long, such as '1 h'.")
    ] = None,
    whole_files: Annotated[
        bool,
        typer.Option(
            "--whole-files",
            help=(
                "With a recording, lay every file whole. Else long files are laid in the parts "
                "that it reads of them, where that is faster."
            ),
        ),
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Move files also where it is not expected to pay.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help=(
                "Keep the files in shape: record what is read, and again and again move those that "
                "are read together and pay. Ends with Ctrl-C."
            ),
        ),
    ] = False,
    every: Annotated[
        str,
        typer.Option(metavar="TIME", help="With --watch, how long a round is at least."),
    ] = watching.EVERY,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "With --watch, where its history is kept. Default: in $STATE_DIRECTORY, or the "
                "folder agewell in $XDG_STATE_HOME."
            ),
        ),
    ] = None,
    catalogue: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Lay the files of a mounted file system one behind another, in the order they are read.

    Tools such as e4defrag make each file whole and leave neighbours apart; this lays the files of a
    directory side by side. First it plans: what would move, and whether that pays on your disk. The
    kernel moves the data: contents, times and attributes stay, also when it is interrupted with
    Ctrl-C, killed, or the power fails. What is finished then stays finished; start it again to go
    on.

    Example: agewell reorganise /srv --dry-run

    Example: agewell reorganise /srv --rate '20 MB/s' --for '1 h'

    Example: agewell reorganise /srv --watch --budget '2 GB/h' --for '8 h'
    """
    if watch:
        if by != "names" or plan or apply or rate or anyway or whole_files:
            raise InputError(
                "--watch goes by what it records, moves only what pays and paces itself; leave "
                "--by, --whole-files, --plan, --apply, --rate and --anyway out"
            )
        show_watch(
            path,
            budget=budget,
            every=every,
            time_limit=time_limit,
            device=device,
            state=state,
            dry_run=dry_run,
            catalogue_directory=catalogue,
            as_json=as_json,
            quiet=quiet,
        )
        return
    if state is not None or every != watching.EVERY:
        raise InputError("--every and --state are of --watch; add it, or leave them out")
    if apply is not None and (plan is not None or dry_run):
        raise InputError("--apply carries a plan out; leave --plan and --dry-run out")
    if whole_files and (by in {"names", "directory"} or apply is not None):
        raise InputError(
            "--whole-files is of --by RECORDING, and all else keeps files whole; leave it out"
        )
    with progress("reorganise", quiet=quiet) as report:

        def show(phase: str, done: int, of: int | None, seconds: float) -> None:
            if phase == "look":
                report(None, f"{done:,} files looked at")
                return
            fraction = min(done / of, 1.0) if of else None
            left = f", {seconds / fraction - seconds:,.0f} s left" if fraction else ""
            report(fraction, f"{size(done)} moved{left}")

        found = reorganising.reorganise(
            path,
            by=by,
            device=device or reorganising.DEFAULT_DEVICE,
            budget=budget,
            rate=rate,
            time_limit=time_limit,
            dry_run=dry_run,
            anyway=anyway,
            whole_files=whole_files,
            plan=apply if apply is not None else plan,
            apply=apply is not None,
            catalogue_directory=catalogue,
            progress=show,
        )
    if as_json:
        print_json(document("reorganise", found))
    else:
        print_text(_verdict(found, dry_run=dry_run))
        print_table(("", ">before", ">after"), _rows(found))
        _print_left_out(found)


def _order(order: dict[str, Any] | None) -> list[str]:
    """Which order of the files of a recording was taken, and why."""
    if order is None:
        return []
    first, graph = order["first_reads_seconds"], order["access_graph_seconds"]
    if order["order"] == "access-graph" and graph is None:
        return ["Order along the access graph: only parts of files are come back to."]
    if graph is None:
        return ["Order of first reads: no file is come back to."]
    if order["order"] == "access-graph":
        return [
            f"Order along the access graph: laid so, the recording reads in {graph:.1f} s, "
            f"and in {first:.1f} s in the order of first reads."
        ]
    return [
        f"Order of first reads: laid so, the recording reads in {first:.1f} s, "
        f"and in {graph:.1f} s along the access graph."
    ]


def _parted(found: dict[str, Any]) -> list[str]:
    """Which files are laid in parts, what that saves and costs."""
    parted, order = found["parted"], found["order"]
    if parted is None:
        return []
    gain = ""
    if order and order["in_parts"]:
        whole = min(
            seconds
            for seconds in (order["first_reads_seconds"], order["access_graph_seconds"])
            if seconds is not None
        )
        gain = (
            f": the recording reads in {order['in_parts']['seconds']:.1f} s, "
            f"and in {whole:.1f} s with whole files"
        )
    before, after = parted["layout_score_before"], parted["layout_score_after"]
    return [
        f"{parted['files']:,} files are laid in {parted['parts']:,} parts, as they are read{gain}.",
        f"The layout score of these files is {number(before)} before and {number(after)} after; "
        "--whole-files keeps them whole.",
    ]


def _nodes(work: dict[str, Any]) -> str:
    """What of it is not of files."""
    if not work["node_bytes"]:
        return ""
    return f", {size(work['node_bytes'])} of it nodes of btrfs, whose chunks data is given"


def _verdict(found: dict[str, Any], *, dry_run: bool) -> str:
    work, saving = found["work"], found["saving"]
    lines = [*_order(found["order"]), *_parted(found)]
    if not work["moved_bytes"]:
        lines.append("There is nothing to move: the files lie in this order already.")
    elif saving:
        gain = (
            f"about {saving['gain_pct']:.0f} % of the time of a cold read on {saving['title']} "
            f"(an estimate, {saving['uncertainty_pct']:.0f} % either way)"
        )
        if saving["pays"]:
            lines.append(f"Likely to pay: it saves {gain}.")
        elif found["carried_out"]:
            lines.append(f"Moved all the same; it saves {gain}.")
        else:
            lines.append(f"Does not pay: it would save {gain}. To do it anyway: --anyway.")
    if work["moved_bytes"]:
        lines.append(
            f"{work['files']:,} files of {size(work['file_bytes'])} "
            f"{'move' if found['carried_out'] else 'would move'}, "
            f"{size(work['moved_bytes'])} in all with what makes room{_nodes(work)}."
        )
    if dry_run:
        lines.append("Nothing was moved (--dry-run).")
    done = found.get("done")
    if done:
        lines.append(
            f"Moved {done['files']:,} files, {size(done['moved_bytes'])}, "
            f"in {done['seconds']:.1f} s."
        )
        if done["out_of_time"]:
            lines.append(f"The time was over; {done['remaining']:,} files wait for the next run.")
        elif done["remaining"]:
            lines.append(f"For {done['remaining']:,} files there was no room.")
    return "".join(f"{line}\n" for line in lines) + "\n"


def _rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    work, saving = found["work"], found["saving"]
    before, after = found["layout"], found.get("layout_after")

    def both(name: str, text: Any) -> tuple[str, str, str]:
        return (name, text(before), text(after) if after else "-")

    rows = [
        both("layout score", lambda layout: number(layout["layout_score"])),
        both("neighbours by name", lambda layout: percent(layout["by_name"]["adjacency"])),
        both("neighbours as listed", lambda layout: percent(layout["by_readdir"]["adjacency"])),
        ("stretches", f"{work['stretches_before']:,}", f"{work['stretches_after']:,} (planned)"),
    ]
    if saving:
        rows.append(
            (
                "cold read, estimated",
                f"{saving['before_seconds']:.1f} s",
                f"{saving['after_seconds']:.1f} s",
            )
        )
    return rows


def _print_left_out(found: dict[str, Any]) -> None:
    rows = [*found["left_out"], *found.get("done", {}).get("left", [])]
    if rows:
        print_text("\nleft as they are\n")
        shown = [(f"{row['files']:,}", f"files {row['words']}", size(row["bytes"])) for row in rows]
        print_table((">", "", ">"), shown)
