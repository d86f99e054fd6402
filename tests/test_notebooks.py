"""The notebooks run, and their pages show what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

import notebook_pages

NOTEBOOKS = notebook_pages.notebooks()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_page_shows_what_it_says(path: Path, tmp_path: Path) -> None:
    page = notebook_pages.run(path, tmp_path)
    kept = path.with_suffix(".md").read_text()
    assert kept.splitlines() == page.text.splitlines(), "make notebook-pages writes it again"
    # How they are drawn is the matter of a release of matplotlib; that there are as many is not.
    kept_pictures = {one.name for one in path.parent.glob(f"{path.stem}-*.svg")}
    assert kept_pictures == set(page.pictures)


@pytest.mark.tidy
def test_notebooks_are_kept_without_what_a_run_leaves() -> None:
    assert len(NOTEBOOKS) >= 3
    for path in NOTEBOOKS:
        for cell in notebook_pages.read(path).cells:
            if cell.cell_type == "code":
                assert (cell.outputs, cell.execution_count) == ([], None), path.name
