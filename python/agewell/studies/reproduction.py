"""Running figures of a study and laying them out: what `agewell reproduce` does.

Leaves `<out>/<study>/report.html`, the plots beside it, `rows.json` with every comparison, and the
records of the runs under `runs`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import files
from agewell.errors import InputError
from agewell.files import catalogue
from agewell.report.page import write as write_page
from agewell.report.part import page_of
from agewell.report.parts import reproduction as page_part
from agewell.report.parts.reproduction import ROWS_FILE
from agewell.studies import studies
from agewell.studies.context import Context, find_input, missing_input
from agewell.studies.study import Figure, FigureResult, Row, Study, Verdict
from agewell.values import documents
from agewell.values.findings import Findings
from agewell.values.plot import Plot
from agewell.version import __version__, build

if TYPE_CHECKING:
    import pyarrow as pa

_REPORT_FILE = "report.html"


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A figure that was asked for and what came of it."""

    study: Study
    figure: Figure
    result: FigureResult


@dataclass(frozen=True, slots=True)
class Choice:
    """One figure to run.

    Attributes:
        study: Its paper.
        figure: The figure.
        by_name: True if the user named the figure itself, not just its paper: then a missing input
            is an error rather than a row that says so.
    """

    study: Study
    figure: Figure
    by_name: bool


def choose(names: Sequence[str]) -> list[Choice]:
    """The figures that names stand for, each once, in the order of the papers.

    Args:
        names: `PAPER` or `PAPER/FIGURE`; none for everything.

    Raises:
        InputError: A paper or figure is not known; the message names the known ones.
    """
    known = studies()
    chosen: dict[tuple[str, str], bool] = {}
    for name in names or list(known):
        paper, slash, figure = name.partition("/")
        if paper not in known:
            raise InputError(f"'{paper}' is not a known paper; known: {', '.join(known)}")
        figures = [each.name for each in known[paper].figures]
        if slash and figure not in figures:
            raise InputError(f"'{figure}' is not a figure of {paper}; known: {', '.join(figures)}")
        for each in [figure] if slash else figures:
            chosen[paper, each] = chosen.get((paper, each), False) or bool(slash)
    return [
        Choice(study, figure, chosen[study.name, figure.name])
        for study in known.values()
        for figure in study.figures
        if (study.name, figure.name) in chosen
    ]


def reproduce_choices(
    choices: Sequence[Choice],
    out: Path,
    *,
    data: Sequence[Path],
    examples: Path,
    jobs: int = 1,
    progress: Callable[[float, str], None] = lambda _fraction, _words: None,
) -> list[Reproduced]:
    """Run figures and write a report for each paper among them.

    Args:
        choices: What to run, papers together.
        out: Folder to write to; each paper has its own below it.
        data: Folders to search for inputs that are not part of agewell.
        examples: Folder of the recorded traces.
        jobs: How many processes may run at once.
        progress: Called with the fraction done and a few words.

    Returns:
        The outcome of every choice, in order.

    Raises:
        InputError: A figure that was named lacks an input, or an input is bad.
        RunError: A run failed, or a file cannot be written.
    """
    for choice in choices:
        lacking = _lacking(choice.figure, data)
        if choice.by_name and lacking:
            raise InputError(missing_input(lacking[0], data))
    files.require_writable(
        out / study / name
        for study in dict.fromkeys(choice.study.name for choice in choices)
        for name in (_REPORT_FILE, ROWS_FILE)
    )
    caches: dict[str, dict[str, Any]] = {}
    hashes: dict[Path, str] = {}
    done: list[Reproduced] = []
    for place, choice in enumerate(choices):
        words = f"{choice.study.name}/{choice.figure.name}"
        first, share = place / len(choices), 1 / len(choices)

        def within(
            fraction: float,
            detail: str,
            first: float = first,
            share: float = share,
            words: str = words,
        ) -> None:
            progress(first + share * fraction, f"{words} {detail}".strip())

        within(0.0, "")
        folder = out / choice.study.name
        context = Context(
            experiments=catalogue.experiments() / choice.study.name,
            out=files.make_folder(folder),
            examples=examples,
            data=data,
            progress=within,
            jobs=jobs,
            cache=caches.setdefault(choice.study.name, {}),
            hashes=hashes,
        )
        done.append(Reproduced(choice.study, choice.figure, _run(choice, context)))
    for study in {each.study.name: each.study for each in done}.values():
        _write_report(study, [each for each in done if each.study is study], out / study.name)
    return done


def document(reproduced: Sequence[Reproduced]) -> dict[str, Any]:
    """Every comparison as plain values, for `--json` and `rows.json`.

    `figures` holds what the rows do not: the title, notes and plots of each figure that was asked
    for, in the order of the rows; `papers` of each paper what it is.
    """
    fields = {
        "agewell_version": __version__,
        "agewell_build": build(),
        "papers": {
            each.study.name: {"title": each.study.title, "citation": each.study.citation}
            for each in reproduced
        },
        "figures": [
            {
                "paper_name": each.study.name,
                "figure": each.figure.name,
                "title": each.figure.title,
                "notes": list(each.result.notes),
                "plots": [plot.document() for plot in each.result.plots],
            }
            for each in reproduced
        ],
        "rows": [
            {"paper_name": each.study.name, "figure": each.figure.name, **_plain(row)}
            for each in reproduced
            for row in each.result.rows
        ],
    }
    return documents.document("reproduce", fields)


@dataclass(frozen=True, slots=True, repr=False)
class Reproduction(Findings):
    """Published figures computed again.

    Attributes:
        figures: What came of each that was asked for, in order.
        directory: The folder that holds a report for each paper, its plots and runs.
    """

    figures: Sequence[Reproduced]
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        """Every comparison, as in `rows.json`."""
        return document(self.figures)

    @property
    def metrics(self) -> dict[str, int]:
        """How many rows came to each verdict."""
        return {verdict.value: count(self.figures, verdict) for verdict in Verdict}

    def table(self) -> pa.Table:
        """A row a number, ours beside the paper's; both as text, as some are words."""
        import pyarrow as pa

        rows = self.document["rows"]
        names = ("paper_name", "figure", "what", "paper", "ours", "unit", "tolerance")
        return pa.table(
            {
                name: pa.array(
                    [None if row[name] is None else str(row[name]) for row in rows], pa.string()
                )
                for name in (*names, "verdict", "why")
            }
        )

    def plots(self) -> list[Plot]:
        """The pictures of all figures."""
        return [plot for each in self.figures for plot in each.result.plots]

    def _shown(self) -> dict[str, object]:
        shown = {name.replace(" ", "_"): rows for name, rows in self.metrics.items() if rows}
        return {"figures": len(self.figures), **shown}


def reproduce(
    names: Sequence[str] | str = (),
    out: Path | str = "runs/reproduce",
    *,
    data: Sequence[Path | str] | None = None,
    jobs: int | None = None,
    progress: Callable[[float, str], None] = lambda _fraction, _words: None,
) -> Reproduction:
    """Compute published figures again and hold them against the paper's numbers.

    Args:
        names: `PAPER` or `PAPER/FIGURE`, one or several; every figure of every paper by default.
        out: Folder for runs, plots and reports. Runs that it holds already, by this build and on
            the same inputs, are not made again.
        data: Folders with traces that agewell cannot ship; by default those of `AGEWELL_DATA`.
        jobs: Processes at once; one a processor by default.
        progress: Called with the fraction done and a few words.

    Returns:
        The figures; a verdict that fails is no error.

    Raises:
        InputError: A figure that was named lacks an input, or an input is bad.
        RunError: A run failed, or a file cannot be written.

    Examples:
        >>> import agewell
        >>> agewell.reproduce("matthews-1998")
        Traceback (most recent call last):
        ...
        _agewell.InputError: 'matthews-1998' is not a known paper; known: ...
    """
    figures = reproduce_choices(
        choose([names] if isinstance(names, str) else names),
        Path(out),
        data=_data_folders([Path(folder) for folder in data or ()]),
        examples=_examples(),
        jobs=jobs or os.cpu_count() or 1,
        progress=progress,
    )
    return Reproduction(figures, Path(out))


def _data_folders(given: Sequence[Path]) -> list[Path]:
    """Where to look for traces: what was given, or the variable, or the usual places.

    The usual places are `data` in the current folder and, for a checkout, `shared/data` beside it.
    """
    for folder in given:
        if not folder.is_dir():
            raise InputError(f"--data {folder}: is not a folder")
    if given:
        return list(given)
    variable = os.environ.get(catalogue.DATA_VARIABLE, "")
    if variable:
        return [Path(part) for part in variable.split(os.pathsep) if part]
    places = [Path("data")]
    root = catalogue.repository()
    if root is not None:
        places.append(root.parent / "shared" / "data")
    return [place for place in places if place.is_dir()]


def _examples() -> Path:
    root = catalogue.repository()
    return (root if root is not None else Path.cwd()) / "examples"


def count(reproduced: Sequence[Reproduced], verdict: Verdict) -> int:
    """How many rows came to a verdict."""
    return sum(row.verdict is verdict for each in reproduced for row in each.result.rows)


def _run(choice: Choice, context: Context) -> FigureResult:
    lacking = _lacking(choice.figure, context.data)
    if not lacking:
        return choice.study.run(choice.figure.name, context)
    row = Row(
        what=choice.figure.title,
        paper=None,
        ours=None,
        unit="",
        tolerance="",
        verdict=Verdict.NOT_RUN,
        why=missing_input(lacking[0], context.data),
    )
    return FigureResult(rows=[row])


def _lacking(figure: Figure, data: Sequence[Path]) -> list[str]:
    return [name for name in figure.inputs if find_input(name, data) is None]


def _plain(row: Row) -> dict[str, Any]:
    return {**asdict(row), "verdict": row.verdict.value}


def _write_report(study: Study, reproduced: Sequence[Reproduced], folder: Path) -> None:
    rows = document(reproduced)
    files.write_json(folder / ROWS_FILE, rows)
    part = page_part.part(rows, folder)
    write_page(page_of([part], f"{study.title}: reproduced"), folder / _REPORT_FILE)
