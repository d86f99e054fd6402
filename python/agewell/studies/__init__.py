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

from agewell.studies.study import Study

_MODULES = (
    "agewell.studies.rosenblum_ousterhout_1992",
    "agewell.studies.ruemmler_wilkes_1991",
    "agewell.studies.matthews_1999",
    "agewell.studies.seltzer_1995",
    "agewell.studies.smith_seltzer_1996",
    "agewell.studies.smith_fragmentation",
    "agewell.studies.store",
    "agewell.studies.file_systems",
)


def studies() -> dict[str, Study]:
    """Every study, by name."""
    found: dict[str, Study] = {}
    for module in _MODULES:
        study: Study = importlib.import_module(module).STUDY
        found[study.name] = study
    return found
