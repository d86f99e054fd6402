"""The study of 1995: the log beats writing in place, and no figure of files fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agewell.studies.cases import Settings, run_cases
from agewell.studies.context import Context, Label
from agewell.studies.seltzer_1995 import FIGURE, STUDY, ffs_transactions_per_s
from agewell.studies.study import Verdict


@pytest.fixture
def context(context_of: Callable[[str], Context]) -> Context:
    return context_of(STUDY.name)


@pytest.mark.parametrize("figure", ["figure-01", "figure-02", "figure-03", "figure-05"])
def test_no_row_of_files_fails(figure: str, context: Context) -> None:
    rows = STUDY.run(figure, context).rows
    assert [row.what for row in rows if row.verdict is Verdict.FAILS] == []
    assert any(row.verdict is Verdict.HOLDS for row in rows)


def test_in_place_is_the_arithmetic_of_the_paper() -> None:
    # Section 3: 17.5 ms a random I/O, two a transaction, 28.6 transactions a second.
    assert ffs_transactions_per_s() == pytest.approx(28.6, abs=0.05)


def test_the_log_is_faster_until_it_is_cleaned(context: Context) -> None:
    cases: dict[Label, Settings] = {
        ("lfs", 5.0): {"workload.utilization": 0.05, "workload.transactions": 20_000},
        ("lfs", 80.0): {"workload.utilization": 0.80, "workload.transactions": 100_000},
    }
    found = run_cases(context, FIGURE, cases)
    alone, cleaned = found["lfs", 5.0], found["lfs", 80.0]
    assert alone["segments_cleaned"] == 0
    assert cleaned["segments_cleaned"] > 0
    assert alone["transactions_per_s"] == pytest.approx(42.6, rel=0.05)
    assert cleaned["transactions_per_s"] < alone["transactions_per_s"]
