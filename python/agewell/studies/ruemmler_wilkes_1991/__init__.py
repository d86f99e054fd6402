"""The study of C. Ruemmler and J. Wilkes, *Disk shuffling*, HPL-91-156, October 1991.

Every figure of the report's results (3 to 14), table 4 and the statements of §5.1 and §5.3 that
have no figure, and two comparisons that the report lacks: what the moves cost, and other ways of
placing hot blocks. The numbers and tests lie in `experiments/ruemmler-wilkes-1991/<figure>/`.
"""

from __future__ import annotations

from collections.abc import Callable

from agewell.studies.context import Context
from agewell.studies.ruemmler_wilkes_1991 import figures, sweeps
from agewell.studies.study import FigureResult, PaperStudy

_FIGURES: tuple[tuple[str, str, Callable[[Context], FigureResult]], ...] = (
    ("section-5-1", "Seek times of the report's disks", figures.section_5_1),
    ("figure-03", "A week before shuffling: rate, time and seek distance", figures.figure_03),
    ("figure-04", "A single cylinder shuffle after 24 hours", figures.figure_04),
    ("figure-05", "Before and after, another machine: small files", figures.figure_05),
    ("figure-06", "Before and after, two more: a database and a build", figures.figure_06),
    ("figure-07", "Before and after, trace E (hplajw)", figures.figure_07),
    ("table-04", "With and without the back-up periods", figures.table_04),
    ("figure-08", "Long-term drift after a single shuffle", figures.figure_08),
    ("figure-09", "The interval between rearrangements", sweeps.figure_09),
    ("section-5-3", "Ageing of the access counts: alpha", sweeps.section_5_3),
    ("figure-10", "The size of the shuffling quantum", sweeps.figure_10),
    ("figure-11", "Quantum and interval together", sweeps.figure_11),
    ("figure-12", "Shuffling only the most active quanta", sweeps.figure_12),
    ("figure-13", "Links and what they cost in memory", sweeps.figure_13),
    ("figure-14", "Dependency tracking", sweeps.figure_14),
    ("beyond-moves", "Beyond the report: moves that cost time", sweeps.beyond_moves),
    ("beyond-baselines", "Beyond the report: other placements", sweeps.beyond_baselines),
)


STUDY = PaperStudy(
    name="ruemmler-wilkes-1991",
    title="Disk shuffling",
    citation=(
        "C. Ruemmler and J. Wilkes, Disk shuffling, "
        "Hewlett-Packard Laboratories technical report HPL-91-156, October 1991"
    ),
    table=_FIGURES,
)
