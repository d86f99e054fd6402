"""What a study is: its figures, what computing one gives, and how a number of ours is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from agewell.errors import InputError
from agewell.studies.context import Context
from agewell.values.plot import Plot


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


Computation = Callable[[Context], FigureResult]


@dataclass(frozen=True, slots=True)
class PaperStudy:
    """The figures of one paper.

    Attributes:
        name: Its name on the command line and of its folder of experiments.
        title: What it is about, one line.
        citation: The paper.
        table: Name, title and computation of each figure, in the order of the paper.
    """

    name: str
    title: str
    citation: str
    table: tuple[tuple[str, str, Computation], ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """What can be reproduced."""
        return tuple(Figure(name, title) for name, title, _ in self.table)

    def run(self, figure: str, context: Context) -> FigureResult:
        """Compute one figure.

        Raises:
            InputError: The figure is not known, or an input is bad.
            RunError: A simulation failed.
        """
        for name, _, compute in self.table:
            if name == figure:
                return compute(context)
        raise InputError(f"'{figure}' is not a figure of {self.name}")
