"""The studies of file systems that age: their files fit together, and nothing fails."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from agewell import catalogue
from agewell.errors import InputError
from agewell.studies import Context, Verdict, smith_fragmentation, smith_seltzer_1996
from agewell.studies.paper import PaperStudy

STUDIES = [smith_seltzer_1996.STUDY, smith_fragmentation.STUDY]


def _context(study: PaperStudy, out: Path) -> Context:
    return Context(
        experiments=catalogue.experiments() / study.name,
        out=out,
        examples=out,
        data=[],
        progress=lambda _fraction, _words: None,
        jobs=2,
    )


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_figure_has_its_folder(study: PaperStudy) -> None:
    folder = catalogue.experiments() / study.name
    assert {path.name for path in folder.iterdir()} == {figure.name for figure in study.figures}
    for figure in study.figures:
        assert (folder / figure.name / "README.md").is_file()
        for row in tomllib.loads((folder / figure.name / "expected.toml").read_text())["row"]:
            assert set(row) >= {"key", "what", "unit"}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_an_unknown_figure_is_an_error(study: PaperStudy, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'figure-77' is not a figure"):
        study.run("figure-77", _context(study, tmp_path))


def test_no_row_of_1996_fails(tmp_path: Path) -> None:
    # Figure 1 needs root and minutes of real writing: `make reproduce` runs it.
    study = smith_seltzer_1996.STUDY
    context = _context(study, tmp_path)
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
