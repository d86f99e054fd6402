"""A study as a table: each figure with its title and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agewell.errors import InputError
from agewell.studies import Context, Figure, FigureResult

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
