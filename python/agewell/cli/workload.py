"""`agewell workload`: make aging workloads, and look into them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.errors import InputError
from agewell.experiments.configuration import parse_value
from agewell.files import path_text
from agewell.filesystems import workloads
from agewell.values.documents import document

app = typer.Typer()

workload = typer.Typer(
    name="workload",
    help=(
        "Make aging workloads: file operations that `agewell age` replays onto a file system, "
        "simulated or real.\n\n"
        "The same inputs and seed give the same bytes. A workload is a Parquet file with a row an "
        "operation; names and contents of files are not in it.\n\n"
        "Example: agewell workload smith-1996 -o smith.parquet"
    ),
    no_args_is_help=True,
)
app.add_typer(workload)

OutputOption = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="The workload, Parquet.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of every draw.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[TABLE.]KEY=VALUE",
        help="Change a parameter of the reference page; repeatable. VALUE is as in TOML, quotes "
        "may be left out.",
    ),
]
CopiesOption = Annotated[
    int,
    typer.Option(
        "--copies",
        min=1,
        max=65_536,
        metavar="N",
        help="Trees updated in turns, each by a writer of its own.",
    ),
]
RewriteOption = Annotated[
    str,
    typer.Option(
        "--rewrite",
        metavar="HOW",
        help="How a change is written: replace (unlink, create, write, as git does) or in-place.",
    ),
]
SyncOption = Annotated[
    int,
    typer.Option("--sync-every", min=0, metavar="N", help="Commits between two syncs; 0 for none."),
]
ScaleOption = Annotated[
    float, typer.Option("--scale", metavar="X", help="Multiply every size by this.")
]


@workload.command("git")
def git(
    repository: Annotated[Path, typer.Argument(metavar="REPOSITORY", help="A git repository.")],
    output: OutputOption,
    revision: Annotated[str, typer.Option(metavar="REV", help="Where the history ends.")] = "HEAD",
    copies: CopiesOption = 1,
    rewrite: RewriteOption = "replace",
    sync_every: SyncOption = 20,
    scale: ScaleOption = 1.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a workload of a repository's first-parent history, without a checkout.

    Every commit is an update of a working copy, at the commit's own time. Only sizes are asked
    for, no content is read, and nothing is written to the repository.

    Example: agewell workload git ~/src/linux -o linux.parquet --copies 4
    """
    request = {
        "source": "git",
        "repository": path_text(repository),
        "revision": revision,
        "history": _history(copies, rewrite, sync_every, scale),
    }
    _make(request, output, as_json, quiet)


@workload.command("oplist")
def oplist(
    operations: Annotated[
        Path, typer.Argument(metavar="LIST", help="A list of operations, CSV, plain or .zst.")
    ],
    output: OutputOption,
    copies: CopiesOption = 1,
    rewrite: RewriteOption = "replace",
    sync_every: SyncOption = 20,
    scale: ScaleOption = 1.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a workload of a version history that is written as a list of operations.

    Columns: commit, unix_time, op (A, M, D or T), file_id, dir_id, depth, old_size, new_size.

    Example: agewell workload oplist history.csv.zst -o history.parquet --copies 8
    """
    request = {
        "source": "oplist",
        "list": path_text(operations),
        "history": _history(copies, rewrite, sync_every, scale),
    }
    _make(request, output, as_json, quiet)


@workload.command("snapshots")
def snapshots(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="SNAPSHOT...",
            help="Snapshots of one file system in the order of time, two or more.",
        ),
    ],
    output: OutputOption,
    placement: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help=(
                "Where files go: into the directories of the snapshot, or into one directory for "
                "each cylinder group (groups)."
            ),
        ),
    ] = "directories",
    short_files: Annotated[
        int, typer.Option(min=0, metavar="N", help="Short-lived files a day, generated.")
    ] = 0,
    short_size: Annotated[
        str, typer.Option(metavar="SIZE", help="Mean size of those, such as '60 KB'.")
    ] = "60 KB",
    short_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE",
            help="Take short-lived files from this trace of file operations instead.",
        ),
    ] = None,
    seed: SeedOption = 1,
    settings: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a workload of what changed between snapshots, as Smith & Seltzer did in 1996.

    New files are made at their change time, changed ones are removed and written again, and what
    is gone was removed at some time of the day. Files that no snapshot sees, because they live less
    than a day, are added to the directories that change most.

    Example: agewell workload snapshots mon.parquet tue.parquet wed.parquet -o week.parquet
    """
    if placement not in ("directories", "groups"):
        raise InputError(
            f"agewell workload: --placement '{placement}' is neither directories nor groups"
        )
    parameters: dict[str, Any] = {"placement": placement}
    if short_trace is not None and short_files:
        raise InputError("agewell workload: say --short-files or --short-trace, not both")
    if short_trace is not None:
        parameters["short_lived"] = {"kind": "trace", "trace": path_text(short_trace)}
    elif short_files:
        parameters["short_lived"] = {
            "kind": "nfs-like",
            "files_a_day": short_files,
            "mean_bytes": short_size,
        }
    request = {
        "source": "snapshots",
        "snapshots": [path_text(path) for path in paths],
        "seed": seed,
        "parameters": _merged(parameters, _settings(settings or [])),
    }
    _make(request, output, as_json, quiet)


@workload.command("profile")
def profile(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIRECTORY", help="A folder with age_, size_ and dir_distribution.txt."
        ),
    ],
    output: OutputOption,
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="What files can take on the target.")
    ] = "2 GiB",
    utilization: Annotated[
        float,
        typer.Option("--utilization", "-u", metavar="SHARE", help="Share of it that is held."),
    ] = 0.8,
    overwrites: Annotated[
        float,
        typer.Option(
            metavar="X", help="How often the capacity is written again while files come and go."
        ),
    ] = 5.0,
    days: Annotated[float, typer.Option(metavar="N", help="How long it lasts.")] = 365.0,
    seed: SeedOption = 1,
    settings: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a workload that ends with the sizes, ages and depths of a published study.

    The target is filled at once and stays filled to the asked share; at the end the ages are those
    of the study.

    Example: agewell workload profile profiles/agrawal -o agrawal.parquet --capacity '2 GiB'
    """
    parameters = {
        "capacity_bytes": capacity,
        "utilization_pct": 100 * utilization,
        "overwrites": overwrites,
        "days": days,
    }
    request = {
        "source": "profile",
        "profile": path_text(directory),
        "seed": seed,
        "parameters": _merged(parameters, _settings(settings or [])),
    }
    _make(request, output, as_json, quiet)


@workload.command("trace")
def trace(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE",
            help="A trace of file operations, as `agewell trace convert` makes of strace output.",
        ),
    ],
    output: OutputOption,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a workload of a trace of file operations.

    What was there before the trace began is made first.

    Example: agewell workload trace build.parquet -o build-workload.parquet
    """
    _make({"source": "trace", "trace": path_text(path)}, output, as_json, quiet)


@workload.command("smith-1996")
def smith_1996(
    output: OutputOption,
    seed: SeedOption = 1,
    settings: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make the ten months of Smith & Seltzer 1996 again from what they published.

    300 days on a 502 MB file system of 27 cylinder groups, 9 % to 90 % full, about 800,000
    operations that write 48.6 GB, 8,774 files at the end.

    Example: agewell workload smith-1996 -o smith.parquet --set active_days=30
    """
    request = {"source": "smith-1996", "seed": seed, "parameters": _settings(settings or [])}
    _make(request, output, as_json, quiet)


@workload.command("info")
def info(
    path: Annotated[Path, typer.Argument(metavar="WORKLOAD", help="A workload file.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read a whole workload, check it against the rules, and say what it holds.

    Example: agewell workload info smith.parquet
    """
    with progress("reading", quiet=quiet) as report:
        facts = workloads.info(path, progress=lambda done: report(None, f"{done:,} operations"))
    if as_json:
        print_json(document("workload-info", facts))
    else:
        _print_facts(facts)


def _history(copies: int, rewrite: str, sync_every: int, scale: float) -> dict[str, Any]:
    if rewrite not in ("replace", "in-place"):
        raise InputError(
            f"agewell workload: --rewrite '{rewrite}' is neither replace nor in-place; say one"
        )
    return {"copies": copies, "rewrite": rewrite, "sync_every_commits": sync_every, "scale": scale}


def _settings(settings: list[str]) -> dict[str, Any]:
    """`a.b=1` as {"a": {"b": 1}}; a value as TOML would read it."""
    document: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise InputError(f"agewell workload: --set '{setting}' must be KEY=VALUE")
        value = parse_value(text)
        *outer, last = name.split(".")
        table = document
        for part in outer:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):
                raise InputError(f"agewell workload: --set '{setting}': {part} has a value already")
            table = inner
        table[last] = value
    return document


def _merged(parameters: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings win, table by table."""
    merged = dict(parameters)
    for name, value in settings.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = _merged(before, value)
        else:
            merged[name] = value
    return merged


def _make(request: dict[str, Any], output: Path, as_json: bool, quiet: bool) -> None:
    """The one way behind every source."""
    if output.is_dir():
        raise InputError(f"{output}: is a directory; name an output file")
    started_seconds = time.monotonic()
    with progress("workload", quiet=quiet) as report:

        def show(operations: int) -> None:
            elapsed_seconds = max(time.monotonic() - started_seconds, 1e-3)
            rate = operations / elapsed_seconds
            report(None, f"{operations:,} operations, {rate:,.0f} a second")

        done = workloads.make(request, output, progress=show)
    if as_json:
        print_json(document("workload", done))
        return
    _print_facts(done["facts"])
    if not quiet:
        note(f"written: {output}, {done['bytes']:,} bytes")


def _print_facts(facts: dict[str, Any]) -> None:
    rows = [("source", facts["source"])]
    if facts["seed"]:
        rows.append(("seed", str(facts["seed"])))
    if facts["start_unix_s"] is not None:
        rows.append(("begins", _civil(facts["start_unix_s"])))
    actions = ", ".join(f"{count:,} {action}" for action, count in facts["actions"].items())
    directories = f"{facts['live_directories']:,} at the end, with the root"
    if facts["groups"] is not None:
        directories += f"; 1 to {facts['groups']} stand for cylinder groups"
    rows += [
        ("lasts", f"{facts['days']:,} days"),
        ("operations", f"{facts['operations']:,}: {actions}"),
        ("written", _amount(facts["written_bytes"])),
        ("files", f"{facts['live_files']:,} at the end, at most {facts['peak_live_files']:,}"),
        (
            "live",
            f"{_amount(facts['live_bytes'])} at the end, at most "
            f"{_amount(facts['peak_live_bytes'])}",
        ),
        ("directories", directories),
        ("writers", str(facts["streams"])),
    ]
    print_table(("", ""), rows)
    if facts["notes"]:
        notes = [(f"{count:,}", what) for what, count in facts["notes"].items()]
        print_table((">", "noted"), notes)


def _amount(count: int) -> str:
    """Bytes with a decimal unit, as everywhere in agewell."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004 (MB is 10^6)
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def _civil(unix_s: int) -> str:
    """A date and time of UTC; a number where the calendar does not reach."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_s))
    except (OverflowError, OSError, ValueError):
        return f"{unix_s} s since 1970"
