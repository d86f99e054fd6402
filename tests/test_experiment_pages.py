"""The pages of published figures are what their generator makes, and rows outlive a lost trace."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

import experiment_pages
from agewell.experiments.configuration import read_toml
from agewell.studies import studies
from conftest import REPOSITORY
from prose import sentences, words

pytestmark = pytest.mark.tidy

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")

NOTES = sorted(
    path.relative_to(REPOSITORY)
    for path in (
        *experiment_pages.EXPERIMENTS.glob("*/*/NOTES.md"),
        *(experiment_pages.PAGES / "notes").glob("*.md"),
        experiment_pages.PAGES / "index.md",
    )
)
"""What is written by hand."""

SENTENCE_WORDS_MAX = 35
SENTENCE_WORDS_MEDIAN_MAX = 20

PLOT_BYTES_MAX = 3_000_000
"""All plots together, chosen by us: what a clone carries along."""


def row(what: str, verdict: str, **others: Any) -> dict[str, Any]:
    return {"what": what, "verdict": verdict, **others}


def figure(build: str, *rows: dict[str, Any]) -> experiment_pages.Stored:
    return {"version": "1.0", "build": build, "notes": [], "plots": [], "rows": list(rows)}


def test_the_pages_are_fresh() -> None:
    stale = [
        str(path.relative_to(REPOSITORY))
        for path, text in experiment_pages.pages().items()
        if not path.is_file() or path.read_text() != text
    ]
    assert stale == [], "make experiment-pages writes them again"


def test_every_figure_has_a_page_and_every_page_a_figure() -> None:
    folder = experiment_pages.PAGES
    made = set(experiment_pages.pages())
    for paper, study in studies().items():
        assert {folder / paper / f"{one.name}.md" for one in study.figures} <= made
        assert set((folder / paper).glob("*.md")) <= made
        shown = {
            folder / paper / name
            for page in (folder / paper).glob("*.md")
            for name in PICTURE.findall(page.read_text())
        }
        assert shown == {path for path in (folder / paper).iterdir() if path.suffix != ".md"}
    assert {path.stem for path in experiment_pages.DATA.iterdir()} == set(studies())


def test_the_gallery_shows_every_figure_with_a_picture_and_a_verdict() -> None:
    text = (experiment_pages.PAGES / "gallery.md").read_text()
    cards = re.split(r"^-   ", text, flags=re.MULTILINE)[1:]
    shown = {}
    for card in cards:
        [page] = set(re.findall(r"\]\(([^)]+)\.md\)\*?", card.partition("\n</div>")[0]))
        assert re.search(r"\*\*(holds|differs|fails|no verdict)\*\*", card), page
        shown[page] = card
    kept = {
        f"{paper}/{name}": figure
        for paper in studies()
        for name, figure in experiment_pages.stored(paper).items()
    }
    assert set(shown) == set(kept)
    for page, figure in kept.items():
        assert bool(PICTURE.search(shown[page])) == bool(figure["plots"])


@pytest.mark.parametrize(
    ("count", "words"),
    [
        ({"holds": 1, "information": 7}, "**holds**{ .holds } in 1 row."),
        ({"holds": 4}, "**holds**{ .holds } in all 4 rows."),
        ({"holds": 4, "differs": 2}, "**differs**{ .differs } in 2 of 6 rows."),
        ({"holds": 4, "differs": 2, "fails": 1}, "**fails**{ .fails } in 1 of 7 rows."),
        ({"holds": 2, "not run": 3}, "**holds**{ .holds } in all 2 rows; 3 not run."),
    ],
)
def test_the_gravest_verdict_is_said_first(count: dict[str, int], words: str) -> None:
    assert experiment_pages._verdict_in_words(count) == words


def test_plots_are_of_modest_size() -> None:
    plots = list(experiment_pages.PAGES.rglob("*.svg"))
    assert plots
    assert sum(path.stat().st_size for path in plots) <= PLOT_BYTES_MAX


@pytest.mark.parametrize("paper", studies())
def test_stored_rows_are_those_that_are_expected(paper: str) -> None:
    """A number or a tolerance of the paper that is changed asks for a new run."""
    for name, kept in experiment_pages.stored(paper).items():
        path = experiment_pages.EXPERIMENTS / paper / name / "expected.toml"
        expected = [
            (one["what"], one.get("paper"), one.get("unit", "")) for one in read_toml(path)["row"]
        ]
        assert expected == [
            (one["what"], one.get("paper"), one.get("unit", "")) for one in kept["rows"]
        ], name


@pytest.mark.parametrize("path", NOTES, ids=str)
def test_sentences_of_notes_are_short(path: Path) -> None:
    found = sentences((REPOSITORY / path).read_text())
    assert [sentence for sentence in found if words(sentence) > SENTENCE_WORDS_MAX] == []
    assert statistics.median(map(words, found)) <= SENTENCE_WORDS_MEDIAN_MAX


def test_a_run_is_taken_over_with_six_digits_and_without_empty_fields() -> None:
    document = {
        "agewell_version": "1.0",
        "agewell_build": "b",
        "figures": [{"paper_name": "p", "figure": "f", "notes": ["n"], "plots": []}],
        "rows": [
            {
                "paper_name": "p",
                "figure": "f",
                "what": "w",
                "paper": None,
                "ours": 1.23456789,
                "unit": "",
                "tolerance": "at most 2",
                "verdict": "holds",
                "why": "",
            }
        ],
    }
    found = experiment_pages.figures(document)
    kept = row("w", "holds", ours=1.23457, tolerance="at most 2")
    assert found == {"f": {**figure("b", kept), "notes": ["n"]}}
    assert json.loads(experiment_pages.as_text(found))["figures"] == found


def test_a_row_that_could_not_be_run_stays_as_it_was() -> None:
    before = figure("old", row("a", "holds", ours=1.0), row("b", "holds", ours=2.0))
    partly = figure("new", row("a", "not run"), row("b", "differs", ours=3.0))
    assert experiment_pages.merged(before, partly) == figure(
        "new", row("a", "holds", ours=1.0, build="old"), row("b", "differs", ours=3.0)
    )
    nothing = figure("new", row("the figure", "not run"))
    assert experiment_pages.merged(before, nothing) == before
    whole = figure("new", row("a", "holds", ours=1.0))
    assert experiment_pages.merged(before, whole) == whole
    partly["plots"] = [{"name": "of a part", "title": "", "caption": ""}]
    assert experiment_pages.merged(None, partly) == {**partly, "plots": []}


def test_a_row_that_was_kept_twice_names_the_build_that_made_it() -> None:
    kept = figure("second", row("a", "holds", build="first"), row("b", "holds"))
    again = figure("third", row("a", "not run"), row("b", "holds"))
    found = experiment_pages.merged(kept, again)["rows"]
    assert found == [row("a", "holds", build="first"), row("b", "holds")]


def test_a_folder_of_runs_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_pages, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(experiment_pages, "DATA", tmp_path / "pages" / "data")
    paper = next(iter(studies()))
    plots = tmp_path / "runs" / paper / "plots"
    plots.mkdir(parents=True)

    def run(build: str, verdict: str, picture: str) -> None:
        (plots / "plot.svg").write_text(f"<svg>{picture}</svg>")
        plot = {"name": "plot", "title": "", "caption": ""}
        one = {"paper_name": paper, "figure": "f"}
        document = {
            "agewell_version": "1.0",
            "agewell_build": build,
            "figures": [{**one, "notes": [], "plots": [plot]}],
            "rows": [{**one, "what": "w", "paper": None, "ours": 1, "verdict": verdict}],
        }
        (plots.parent / "rows.json").write_text(json.dumps(document))
        experiment_pages.store(tmp_path / "runs")

    run("first", "holds", "seen")
    run("second", "not run", "empty")
    kept = experiment_pages.stored(paper)["f"]
    assert (kept["build"], kept["rows"]) == ("first", [row("w", "holds", ours=1)])
    assert (tmp_path / "pages" / paper / "plot.svg").read_text() == "<svg>seen</svg>\n"
    run("third", "differs", "again")
    assert experiment_pages.stored(paper)["f"]["rows"] == [row("w", "differs", ours=1)]
    assert (tmp_path / "pages" / paper / "plot.svg").read_text() == "<svg>again</svg>\n"
    assert list(experiment_pages.DATA.iterdir()) == [tmp_path / "pages" / "data" / f"{paper}.json"]


def test_a_plot_loses_only_what_nobody_sees() -> None:
    plot = """<?xml version="1.0"?>
<svg width="1.50pt">
 <metadata>who made it</metadata>
 <!-- 0.123456 -->
 <path d="M 0.123456 -0.001
L 7.999 12
"/>
 <text style="font: 9px 'DejaVu Sans'">0.123456</text>
</svg>
"""
    assert experiment_pages.compact(plot).splitlines() == [
        '<svg width="1.5pt">',
        '<path d="M 0.12 0 L 8 12 "/>',
        "<text style=\"font: 9px 'DejaVu Sans', sans-serif\">0.123456</text>",
        "</svg>",
    ]
