"""The adaptive file system beside ext4, xfs and btrfs, by disk time and by time.

Each has the same load on a device of the same size; the requests that each really made are recorded
and replayed on modelled drives, which no noise of this machine touches. Ours: nothing was published
of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agewell.studies.context import Context
from agewell.studies.study import FigureResult, PaperStudy


def _comparison(load: str, context: Context) -> FigureResult:
    # What it makes tables with takes longer to load than all studies take to be listed.
    from agewell.studies.file_systems import comparison

    return comparison.figure(load, context)


def _simulator(context: Context) -> FigureResult:
    from agewell.studies.file_systems import simulator

    return simulator.figure(context)


_TITLES = {
    "random": "Random updates",
    "mail": "Mail",
    "database": "Database commits, as of pgbench",
    "git": "Git checkout and status",
    "history": "Ten copies of a git history",
    "build": "Sources unpacked, and what compiling them writes",
}
_FIGURES: tuple[tuple[str, str, Callable[[Context], FigureResult]], ...] = (
    *((name, title, partial(_comparison, name)) for name, title in _TITLES.items()),
    ("simulator", "What it moves, against the simulator", _simulator),
)

STUDY = PaperStudy(
    name="adaptive-file-system",
    title="The adaptive file system beside others",
    citation="not in a paper; J. N. Matthews, dissertation, 1999, section 7.2.2, asks for it",
    table=_FIGURES,
)
