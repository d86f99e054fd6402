"""The study of 1992: sorting by age saves what it is said to save."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agewell.studies.cases import Settings, run_cases
from agewell.studies.context import Context, Label
from agewell.studies.rosenblum_ousterhout_1992 import STUDY


@pytest.fixture
def context(context_of: Callable[[str], Context]) -> Context:
    return context_of(STUDY.name)


def test_sorting_by_age_and_cost_benefit_need_each_other(context: Context) -> None:
    small: Settings = {"workload.blocks": 65_536, "workload.utilization": 0.85}
    cases: dict[Label, Settings] = {
        (victim, order): {**small, "layout.victim": victim, "layout.collected_order": order}
        for victim in ("greedy", "cost-age")
        for order in ("found", "age")
    }
    found = run_cases(context, "figure-7", cases)
    cost = {label: float(metrics["write_cost"]) for label, metrics in found.items()}
    assert cost["cost-age", "age"] < 0.7 * cost["greedy", "age"]
    assert cost["cost-age", "age"] < 0.95 * cost["cost-age", "found"]
    assert 0.8 < cost["greedy", "age"] / cost["greedy", "found"] < 1.1
