"""The store held against the simulator, and against updating in place.

The same operations through `agewell run` and through a real store (`crates/store`), on a disk in
memory and on a modelled disk: what it collects, plugs and threads, and what its transfers cost,
must be what the simulation says. Ours: nothing was published of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agewell.studies.context import Context
from agewell.studies.study import FigureResult, PaperStudy


def _against_simulation(load: str, context: Context) -> FigureResult:
    # What it makes tables with takes longer to load than all studies take to be listed.
    from agewell.studies.store import against_simulation

    return against_simulation.figure(load, context)


def _disk_time(context: Context) -> FigureResult:
    from agewell.studies.store import disk_time

    return disk_time.figure(context)


_FIGURES: tuple[tuple[str, str, Callable[[Context], FigureResult]], ...] = (
    ("random", "Blocks moved, random update", partial(_against_simulation, "random")),
    ("hot", "Blocks moved, hot-and-cold", partial(_against_simulation, "hot")),
    ("zipf", "Blocks moved, Zipf", partial(_against_simulation, "zipf")),
    ("mail", "Blocks moved, recorded mail", partial(_against_simulation, "mail")),
    ("pgbench", "Blocks moved, recorded pgbench", partial(_against_simulation, "pgbench")),
    ("disk-time", "Disk time, and that of updates in place", _disk_time),
)

STUDY = PaperStudy(
    name="store-against-simulation",
    title="The store against the simulator",
    citation="not in a paper; J. N. Matthews, dissertation, 1999, section 7.2.2, asks for it",
    table=_FIGURES,
)
