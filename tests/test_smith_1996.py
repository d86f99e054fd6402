"""The studies of file systems that age: nothing fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agewell.studies import smith_seltzer_1996
from agewell.studies.context import Context
from agewell.studies.study import Verdict


def test_no_row_of_1996_fails(context_of: Callable[[str], Context]) -> None:
    # Figure 1 needs root and minutes of real writing: `make reproduce` runs it.
    study = smith_seltzer_1996.STUDY
    context = context_of(study.name)
    failed, held = [], 0
    for figure in study.figures[1:]:
        rows = study.run(figure.name, context).rows
        failed += [f"{figure.name}: {row.what}" for row in rows if row.verdict is Verdict.FAILS]
        held += sum(row.verdict is Verdict.HOLDS for row in rows)
    assert failed == []
    assert held >= len(study.figures) * 4


def test_scores_of_several_sizes_are_weighed_by_their_blocks() -> None:
    bins = [
        {"blocks_min": 2, "blocks_max": 2, "counted_blocks": 10, "optimal_blocks": 5},
        {"blocks_min": 3, "blocks_max": 4, "counted_blocks": 30, "optimal_blocks": 30},
        {"blocks_min": 5, "blocks_max": 8, "counted_blocks": 99, "optimal_blocks": 0},
    ]
    assert smith_seltzer_1996.pooled(bins, 2, 4) == pytest.approx(35 / 40)
    assert smith_seltzer_1996.pooled(bins, 9, 16) is None
