"""The study of 1995: its files fit together, the log beats writing in place, and no figure of files
fails."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from agewell import catalogue
from agewell.errors import InputError
from agewell.studies import Context, Verdict
from agewell.studies.matthews_1999_runs import Settings, run_cases
from agewell.studies.running import Label
from agewell.studies.seltzer_1995 import FIGURE, STUDY, ffs_transactions_per_s


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


def test_an_unknown_figure_is_an_error(context: Context) -> None:
    with pytest.raises(InputError, match="'figure-06' is not a figure"):
        STUDY.run("figure-06", context)


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
