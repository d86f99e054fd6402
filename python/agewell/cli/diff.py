"""`agewell diff`: two sets of runs, pair by pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import Styled, note, print_json, print_table, print_text
from agewell.errors import InputError, RunError
from agewell.values.metrics import describe, show

if TYPE_CHECKING:
    from agewell.runs.differences import Comparison, Difference

app = typer.Typer()

_STYLES = {"better": "green", "worse": "bold red", "neither": "magenta"}

_SHOWN_MAX = 20
"""Comparisons beyond the tolerance that are shown; chosen by us: a screen."""


@app.command("diff")
def diff(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Folder of runs, or a document, as before.")
    ],
    b: Annotated[
        Path, typer.Argument(metavar="B", help="Folder of runs, or a document, as it is now.")
    ],
    tolerance: Annotated[
        str, typer.Option(metavar="SHARE", help="Change that is taken for none: 2% or 0.02.")
    ] = "2%",
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Compare this metric; repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE[.KEY]",
            help="A setting that may differ within a pair; repeatable.",
        ),
    ] = None,
    worse_only: Annotated[
        bool, typer.Option("--worse-only", help="Count changes for the worse only.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Pair the runs of two folders, or two documents, and show what has changed, as B over A.

    A pair has the same resolved configuration and seed; by which build, and where, makes no
    difference. A ratio is beyond the tolerance if that of every pair is or, with several seeds, its
    95 % interval. Exit status 1 if a metric is beyond it. Documents are what score, compare,
    bench, validate and others print with --json.

    Examples: agewell diff runs/main runs/branch --tolerance 1% --metric mean_response_ms;
    agewell diff before.json after.json --worse-only
    """
    from agewell.runs.differences import diff as hold

    found = hold(
        a,
        b,
        tolerance=_share(tolerance),
        metrics=metrics or (),
        ignore=ignore or (),
        worse_only=worse_only,
    )
    if as_json:
        print_json(found.document)
    else:
        _print(found)
    if not quiet:
        for line in _remarks(found):
            note(line)
    if found.beyond:
        raise RunError(_failure(found))


def _share(text: str) -> float:
    """The fraction that `2%` or `0.02` says.

    Raises:
        InputError: It says none.
    """
    stripped = text.strip()
    try:
        share = float(stripped.removesuffix("%"))
    except ValueError as error:
        raise InputError(f"--tolerance {text}: write a share, for example 2% or 0.02") from error
    if not 0 <= share < float("inf"):
        raise InputError(f"--tolerance {text}: must be a share that is not negative")
    return share / 100.0 if stripped.endswith("%") else share


def _print(found: Difference) -> None:
    changed = [each for each in found.summaries() if (each.ratio_min, each.ratio_max) != (1.0, 1.0)]
    same = len(found.metrics) - len(changed)
    if changed:
        print_table(
            ("metric", ">B / A", ">least", ">most", ">configurations", ">beyond", ">unsure", ""),
            [
                (
                    describe(each.metric).label,
                    _ratio(each.ratio),
                    _ratio(each.ratio_min),
                    _ratio(each.ratio_max),
                    str(each.configurations),
                    str(each.beyond),
                    str(each.unsure),
                    Styled(_direction(each.direction), _STYLES[each.direction])
                    if each.beyond
                    else "",
                )
                for each in changed
            ],
        )
    if same:
        print_text(f"{_count(same, 'metric')} {'is' if same == 1 else 'are'} the same in all\n")
    if found.beyond and found.configurations > 1:
        print_text("\n")
        _print_beyond(found)


def _print_beyond(found: Difference) -> None:
    worst = sorted(found.beyond, key=_how_far, reverse=True)[:_SHOWN_MAX]
    print_table(
        ("beyond", "configuration", ">A", ">B", ">B / A", "95 % interval", ""),
        [
            (
                describe(each.metric).label,
                each.label,
                show(each.metric, each.a),
                show(each.metric, each.b),
                _ratio(each.ratio),
                _interval(each),
                Styled(_direction(each.direction), _STYLES[each.direction]),
            )
            for each in worst
        ],
    )


def _how_far(comparison: Comparison) -> float:
    """How far a ratio is from 1, in either direction; without one it is farthest."""
    if comparison.ratio is None:
        return float("inf")
    return max(comparison.ratio, 1.0 / comparison.ratio)


def _remarks(found: Difference) -> list[str]:
    """What a reader should know besides the ratios."""
    lines = [f"{_count(found.pairs, 'pair')} in {_count(found.configurations, 'configuration')}"]
    for side, runs in found.unpaired.items():
        if runs:
            folder = found.a if side == "a" else found.b
            lines.append(
                f"{_count(len(runs), 'run')} of {folder} without a partner, first "
                f"{runs[0]['run']}: {runs[0]['why']}"
            )
    if found.other_inputs:
        lines.append(f"{_count(found.other_inputs, 'pair')} read inputs with other bytes")
    if len(found.beyond) > _SHOWN_MAX:
        lines.append(f"the first {_SHOWN_MAX} beyond are shown; --json has all")
    return lines


def _failure(found: Difference) -> str:
    first = max(found.beyond, key=_how_far)
    ratio = "without a ratio" if first.ratio is None else f"{first.ratio:.4g} times"
    where = f" at {first.label}" if first.label else ""
    return (
        f"{len(found.beyond)} of {len(found.comparisons)} comparisons are beyond "
        f"{100 * found.tolerance:g} %, most {first.metric}{where}: {ratio}"
    )


def _interval(comparison: Comparison) -> str:
    if comparison.ratio_low is None:
        return "-"
    return f"{_ratio(comparison.ratio_low)} to {_ratio(comparison.ratio_high)}"


def _direction(direction: str) -> str:
    return "" if direction == "neither" else direction


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
