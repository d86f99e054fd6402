"""Every study: its files fit together, and it says which figures it has."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import pytest

from agewell.errors import InputError
from agewell.files import catalogue
from agewell.studies import studies
from agewell.studies.context import Context
from agewell.studies.study import Study

every_study = pytest.mark.parametrize("study", studies().values(), ids=studies().keys())


@every_study
def test_every_figure_has_its_folder_and_every_folder_its_figure(study: Study) -> None:
    folder = catalogue.experiments() / study.name
    names = {figure.name for figure in study.figures}
    assert names == {path.name for path in folder.iterdir() if path.is_dir()}
    for name in names:
        assert (folder / name / "README.md").is_file(), name
        for row in tomllib.loads((folder / name / "expected.toml").read_text())["row"]:
            assert set(row) >= {"key", "what", "unit"}, name


@every_study
def test_an_unknown_figure_is_an_error(study: Study, context_of: Callable[[str], Context]) -> None:
    with pytest.raises(InputError, match="'figure-77' is not a figure"):
        study.run("figure-77", context_of(study.name))
