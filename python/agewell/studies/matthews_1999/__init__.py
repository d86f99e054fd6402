"""The study of workloads, log-structured writing and reading in Matthews 1999, chapters 4 to 6.

J. N. Matthews, *Improving File System Performance With Adaptive Methods*, dissertation, University
of California at Berkeley, 1999.

Chapter 4 as a table, figures 5-1 to 5-10 and 6-1 to 6-11 with the numbers of their text and
captions, and two comparisons that chapter 5 lacks. The numbers and tests lie in
`experiments/matthews-1999/<figure>/`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agewell.studies.context import Context
from agewell.studies.matthews_1999 import (
    beyond,
    collection,
    measured,
    reading,
    reorganising,
    segments,
)
from agewell.studies.study import FigureResult, PaperStudy


def _chapter_4(context: Context) -> FigureResult:
    # What it makes tables with takes longer to load than all studies take to be listed.
    from agewell.studies.matthews_1999 import axes

    return axes.chapter_4(context)


_FIGURES: tuple[tuple[str, str, Callable[[Context], FigureResult]], ...] = (
    ("chapter-4", "How sensitive layouts are to workloads", _chapter_4),
    ("figure-5-1", "Segment size, Auspex-like load", segments.figure_5_1),
    ("figure-5-2", "Segment size and disks, Auspex-like load", segments.figure_5_2),
    ("figure-5-3", "Segment size, random update", segments.figure_5_3),
    ("figure-5-4", "Cleaning and plugging, random update", collection.figure_5_4),
    ("figure-5-5", "Cleaning and plugging, Auspex-like load", collection.figure_5_5),
    ("figure-5-6", "Adaptive collection, random update", collection.figure_5_6),
    ("figure-5-7", "Adaptive collection, Auspex-like load", collection.figure_5_7),
    ("figure-5-8", "Two disks, random update", collection.figure_5_8),
    ("figure-5-9", "Cleaning from the server's cache", collection.figure_5_9),
    ("figure-5-10", "Original and modified, both workloads", collection.figure_5_10),
    (
        "figure-6-1",
        "Sequential write and read at 50 %",
        partial(reading.three_layouts, "figure-6-1", "sequential", 50),
    ),
    (
        "figure-6-2",
        "Sequential write and read at 90 %",
        partial(reading.three_layouts, "figure-6-2", "sequential", 90),
    ),
    (
        "figure-6-3",
        "Random write, sequential read at 50 %",
        partial(reading.three_layouts, "figure-6-3", "random", 50),
    ),
    (
        "figure-6-4",
        "Random write, sequential read at 90 %",
        partial(reading.three_layouts, "figure-6-4", "random", 90),
    ),
    (
        "figure-6-5",
        "One pattern written and read at 50 %",
        partial(reading.three_layouts, "figure-6-5", "pattern", 50),
    ),
    (
        "figure-6-6",
        "One pattern written and read at 90 %",
        partial(reading.three_layouts, "figure-6-6", "pattern", 90),
    ),
    ("figure-6-7", "Reorganisation at 50 %", reading.figure_6_7),
    ("figure-6-9", "Reorganisation at 50 and 90 %", reading.figure_6_9),
    ("figure-6-11", "Reorganisation on two drives", reading.figure_6_11),
    ("figure-6-12", "Reorganisation under a long-term load", measured.figure_6_12),
    ("figure-6-14", "Reorganisation under decision support", measured.figure_6_14),
    ("figure-6-15", "Decision support, question by question", measured.figure_6_15),
    ("beyond-adaptive", "Beyond the paper: never the wrong choice", beyond.beyond_adaptive),
    ("beyond-placement", "Beyond the paper: placement of data", beyond.beyond_placement),
    (
        "beyond-reorganisation",
        "Beyond the paper: when reorganising pays",
        reorganising.beyond_reorganisation,
    ),
    (
        "beyond-relatedness",
        "Beyond the paper: what belongs together",
        reorganising.beyond_relatedness,
    ),
    ("beyond-prefetch", "Beyond the paper: reading ahead", reorganising.beyond_prefetch),
)


STUDY = PaperStudy(
    name="matthews-1999",
    title="Adaptive methods for writing and for reading what was written",
    citation=(
        "J. N. Matthews, Improving File System Performance With Adaptive Methods, "
        "dissertation, University of California at Berkeley, 1999, chapters 4 to 6"
    ),
    table=_FIGURES,
)
