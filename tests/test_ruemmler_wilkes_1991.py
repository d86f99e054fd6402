"""The disk-shuffling study: its expectations can fail, its files fit together, and trace E's week
comes out as the report says.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agewell.errors import InputError
from agewell.files import catalogue
from agewell.studies.claims import rows
from agewell.studies.context import Context, find_input
from agewell.studies.ruemmler_wilkes_1991 import STUDY
from agewell.studies.ruemmler_wilkes_1991.workloads import (
    HPLAJW_FILE,
    Series,
    weighted_by_hour_pct,
    weighted_improvement_pct,
)
from agewell.studies.study import Row, Verdict

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def judged(ours: float | None, **table: Any) -> Row:
    """The row that one value and one table of tests give."""
    expected = {"row": [{"key": "disk/x", "what": "x", **table}]}
    return rows(expected, {"disk/x": ours, "disk/other": 10.0}, {})[0]


@pytest.mark.parametrize(
    ("ours", "table", "holds"),
    [
        (100.0, {"paper": 50, "factor": 3}, True),
        (151.0, {"paper": 50, "factor": 3}, False),
        (16.0, {"paper": 50, "factor": 3}, False),
        (-50.0, {"paper": 50, "factor": 3}, False),
        (0.0, {"paper": 50, "factor": 3}, False),
        (-0.1, {"paper": 3.5, "same_sign": True}, False),
        (0.1, {"paper": 3.5, "same_sign": True}, True),
        (11.6, {"paper": 10, "within_pct": 15}, False),
        (11.4, {"paper": 10, "within_pct": 15}, True),
        (9.9, {"below": "disk/other"}, True),
        (10.0, {"below": "disk/other"}, False),
        (10.1, {"above": "disk/other"}, True),
        (5.0, {"at_least": 5, "at_most": 5}, True),
        (5.1, {"at_least": 5, "at_most": 5}, False),
        (None, {"at_least": 0}, False),
    ],
)
def test_a_test_decides_and_can_fail(
    ours: float | None, table: dict[str, Any], holds: bool
) -> None:
    assert judged(ours, **table).verdict is (Verdict.HOLDS if holds else Verdict.FAILS)


def test_the_reason_is_shown_only_when_a_test_fails() -> None:
    table = {"at_least": 5, "note": "remark", "differs": "reason"}
    assert judged(6.0, **table).why == "remark"
    row = judged(4.0, **table)
    assert (row.verdict, row.why) == (Verdict.DIFFERS, "reason")


def test_without_a_test_there_is_no_verdict_and_without_a_trace_no_run() -> None:
    assert judged(1.0).verdict is Verdict.INFORMATION
    expected = {"row": [{"key": "disk/x", "what": "x", "at_least": 5}]}
    row = rows(expected, {}, {"disk": "no trace"})[0]
    assert (row.verdict, row.ours, row.why) == (Verdict.NOT_RUN, None, "no trace")


def test_a_slip_in_an_expectation_is_an_error() -> None:
    with pytest.raises(InputError, match="no test is called 'at_lest'"):
        judged(1.0, at_lest=5)
    with pytest.raises(InputError, match="computes no value 'disk/y'"):
        rows({"row": [{"key": "disk/y", "what": "y"}]}, {}, {})
    with pytest.raises(InputError, match="computes no value 'disk/z'"):
        judged(1.0, above="disk/z")


def test_the_weighted_improvement_weighs_hours_by_their_requests() -> None:
    series = Series(
        start_hours=[0.0, 24.0, 25.0],
        requests=[1000, 10, 30],
        service_ms=[20.0, 10.0, 22.0],
        seek_cylinders=[1.0, 1.0, 1.0],
        baseline_service_ms=[10.0, 20.0, 20.0],
        baseline_seek_cylinders=[1.0, 1.0, 1.0],
    )
    # 50 % better with 10 requests, 10 % worse with 30; the hour before the shuffle does not count.
    assert weighted_improvement_pct(series, 24.0) == pytest.approx((500 - 300) / 40)
    assert weighted_by_hour_pct(series, 24.0) == pytest.approx([0.0, 25.0, -15.0])
    assert weighted_improvement_pct(series, 26.0) is None


def test_every_figure_has_its_experiment() -> None:
    for figure in STUDY.figures:
        folder = catalogue.experiments() / STUDY.name / figure.name
        tomllib.loads((folder / "experiment.toml").read_text())


def run_figure(name: str, tmp_path: Path, data: list[Path]) -> dict[str, Row]:
    """The rows of a figure by what they say."""
    context = Context(
        experiments=catalogue.experiments() / STUDY.name,
        out=tmp_path,
        examples=tmp_path,
        data=data,
        progress=lambda _fraction, _words: None,
    )
    return {row.what: row for row in STUDY.run(name, context).rows}


@pytest.mark.parametrize("name", [figure.name for figure in STUDY.figures])
def test_without_its_traces_a_figure_says_so(name: str, tmp_path: Path) -> None:
    verdicts = {row.verdict for row in run_figure(name, tmp_path, []).values()}
    computed = {"section-5-1", "figure-13"}
    expected = {Verdict.HOLDS} if name in computed else {Verdict.NOT_RUN}
    assert verdicts == expected


def test_trace_e_is_shuffled_as_in_the_report(tmp_path: Path) -> None:
    if find_input(HPLAJW_FILE, [DATA]) is None:
        pytest.skip(f"{HPLAJW_FILE} is not below {DATA}")
    for what, row in run_figure("figure-07", tmp_path, [DATA]).items():
        # Once means by a Saturday of 398 requests; expected.toml says why that need not hold.
        assert "shuffled once" in what or row.verdict in (Verdict.HOLDS, Verdict.INFORMATION), what
