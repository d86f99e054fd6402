"""Studies: published figures and tables, computed again and held against what was printed.

A study is one module of this package, named after its paper (`ruemmler_wilkes_1991`), that has a
module attribute `STUDY` satisfying the `Study` protocol and is listed in `_MODULES` below. Its
experiments, the paper's numbers and the tolerances lie in `experiments/<paper>/<figure>/`
(`experiment.toml`, `expected.toml`, `README.md`).

`agewell reproduce` does the rest: it picks the figures, gives each a `Context`, prints the rows as
one table, writes the plots and the report, and exits 1 when a verdict fails.

    def figure_06(context: Context) -> FigureResult:
        trace = context.input("hplajw_1week.srt.zst")
        before = context.run_experiment(context.experiment("figure-06"), {"remap.kind": "none"})
        ...
        return FigureResult(rows=[...], plots=[...])

    STUDY = PaperStudy(
        name="ruemmler-wilkes-1991",
        title="Disk shuffling",
        citation="C. Ruemmler and J. Wilkes, Disk shuffling, HPL-91-156, 1991",
        table=(("figure-06", "Cumulative distribution of seek distances", figure_06), ...),
    )
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agewell.errors import InputError
from agewell.plot import Plot

_MODULES = (
    "agewell.studies.rosenblum_ousterhout_1992",
    "agewell.studies.ruemmler_wilkes_1991",
    "agewell.studies.matthews_1999",
    "agewell.studies.seltzer_1995",
    "agewell.studies.smith_seltzer_1996",
    "agewell.studies.smith_fragmentation",
)


class Verdict(StrEnum):
    """What a comparison came to."""

    HOLDS = "holds"
    """Ours lies within the stated tolerance of the paper's figure, or the stated effect is
    there."""
    DIFFERS = "differs"
    """It does not, for a reason that `expected.toml` states beforehand and `Row.why` repeats."""
    FAILS = "fails"
    """It does not. `Row.why` says why, as far as is known; the command exits 1."""
    INFORMATION = "information"
    """Shown for the reader; nothing was published that it could be held against."""
    NOT_RUN = "not run"
    """An input is missing; `Row.why` says which."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a figure, ours beside the paper's.

    Attributes:
        what: The quantity, with the workload and device it is for: `mean seek distance, hplajw disk
            0, shuffled`.
        paper: The published value as printed, with its sign but without the unit; None if there is
            none.
        ours: Our value, in the same unit.
        unit: `cylinders`, `ms`, `%`, and so on; empty for a count or a yes/no.
        tolerance: The test that decided the verdict, in words: `within 20 %`, `same sign`, `50 to
            150`.
        verdict: The outcome.
        why: A sentence; where ours differs it says why.
    """

    what: str
    paper: float | str | None
    ours: float | str | None
    unit: str
    tolerance: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or table that a study can reproduce.

    Attributes:
        name: The name on the command line and of the folder: `figure-06`, `table-04`.
        title: What it shows, one line.
        inputs: File names of the traces it needs that are not part of the repository.
    """

    name: str
    title: str
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FigureResult:
    """What running a figure gives.

    Attributes:
        rows: Comparisons, in reading order.
        plots: Pictures, each with a name unique in the study.
        notes: Sentences for the report: choices that the paper leaves open, known differences.
    """

    rows: Sequence[Row]
    plots: Sequence[Plot] = ()
    notes: Sequence[str] = ()


RunFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a study may use: everything comes in through here, nothing is looked up behind it.

    Attributes:
        experiments: Folder of this paper: `experiments/<paper>`.
        out: Folder of this paper's output; it exists. Runs go to `runs/<key>` below it.
        examples: Folder of the recorded traces and demo experiments.
        data: Folders to search for inputs that are not part of the repository.
        progress: Called with the fraction done (0 to 1) and a few words.
        jobs: How many processes may run at once.
        cache: Results by key, kept between the figures of one command, so that two figures that
            share a run make it once.
    """

    experiments: Path
    out: Path
    examples: Path
    data: Sequence[Path]
    progress: Callable[[float, str], None]
    jobs: int = 1
    cache: dict[str, Any] = field(default_factory=dict)

    def input(self, file_name: str) -> Path:
        """Find an input by file name below the data folders.

        Args:
            file_name: Name without folders, `hplajw_1week.srt.zst`.

        Returns:
            Its path.

        Raises:
            InputError: It is in none of the folders; the message says what to do.
        """
        found = find_input(file_name, self.data)
        if found is None:
            raise InputError(missing_input(file_name, self.data))
        return found

    def experiment(self, figure: str) -> Path:
        """The experiment file of a figure, `experiments/<paper>/<figure>/experiment.toml`."""
        return self.experiments / figure / "experiment.toml"

    def expected(self, figure: str) -> dict[str, Any]:
        """The paper's numbers and tolerances of a figure, from its `expected.toml`.

        Raises:
            InputError: The file is missing or is not TOML.
        """
        from agewell.configuration import read_toml

        return read_toml(self.experiments / figure / "expected.toml")

    def run_experiment(
        self, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run one experiment, or take its result from the cache of this command.

        Args:
            experiment: A TOML file or the same as a dict; relative paths in a dict are taken from
                `experiments`.
            overrides: Settings by `table.key`, typed:
                `{"remap.kind": "shuffle", "remap.alpha": 0.8}`.

        Returns:
            The result document: `config`, `inputs`, `metrics`, and so on. The key `directory` is
            added: the folder that holds `result.json` and `series.parquet`.
        """
        from agewell.studies.running import run_for_study

        return run_for_study(self, experiment, overrides or {})


@runtime_checkable
class Study(Protocol):
    """One paper."""

    @property
    def name(self) -> str:
        """Name on the command line and of the folder: `ruemmler-wilkes-1991`."""

    @property
    def title(self) -> str:
        """Title of the paper."""

    @property
    def citation(self) -> str:
        """Authors, title, where and when, in one line."""

    @property
    def figures(self) -> Sequence[Figure]:
        """What can be reproduced, in the paper's order."""

    def run(self, figure: str, context: Context) -> FigureResult:
        """Compute one figure.

        Raises:
            InputError: An input is missing or bad.
            RunError: A simulation failed.
        """


def studies() -> dict[str, Study]:
    """Every study, by name."""
    found: dict[str, Study] = {}
    for module in _MODULES:
        study: Study = importlib.import_module(module).STUDY
        found[study.name] = study
    return found


def find_input(file_name: str, data: Sequence[Path]) -> Path | None:
    """The first file of that name in or below the folders, in sorted order, or None."""
    for folder in data:
        direct = folder / file_name
        if direct.is_file():
            return direct
        below = sorted(path for path in folder.rglob(file_name) if path.is_file())
        if below:
            return below[0]
    return None


def missing_input(file_name: str, data: Sequence[Path]) -> str:
    """The one-line message for an input that is in none of the folders."""
    where = ", ".join(str(folder) for folder in data) or "no data folder"
    return (
        f"the input {file_name} was not found (looked in: {where}); "
        "give its folder with --data DIR or in AGEWELL_DATA"
    )
