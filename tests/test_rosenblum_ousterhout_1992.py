"""The study of 1992: its files fit together, and sorting by age saves what it is said to save."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from agewell import catalogue
from agewell.studies import Context
from agewell.studies.matthews_1999_runs import Settings, run_cases
from agewell.studies.rosenblum_ousterhout_1992 import STUDY
from agewell.studies.running import Label


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(
        experiments=catalogue.experiments() / STUDY.name,
        out=tmp_path,
        examples=tmp_path,
        data=[],
        progress=lambda _fraction, _words: None,
        jobs=2,
    )


def test_every_figure_has_its_folder() -> None:
    folder = catalogue.experiments() / STUDY.name
    assert {path.name for path in folder.iterdir()} == {figure.name for figure in STUDY.figures}
    for figure in STUDY.figures:
        assert (folder / figure.name / "README.md").is_file()
        for row in tomllib.loads((folder / figure.name / "expected.toml").read_text())["row"]:
            assert set(row) >= {"key", "what", "unit"}


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
