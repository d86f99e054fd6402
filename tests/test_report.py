"""Reports: a page that needs nothing but itself, pictures with the same bytes every time."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import agewell as api
import documents
from agewell.errors import InputError
from agewell.experiments.run_result import Result
from agewell.report import drawing
from agewell.report.charts import score as score_charts
from agewell.report.page import Cell, Highlight, Page, PageTable, Section, render
from agewell.report.run_report import names_of, page_of
from agewell.values.plot import Curve, Plot
from chromium import Browser
from conftest import REPOSITORY, Agewell, small_experiment

SHUFFLED = {
    "device.model": "hp-97560",
    "remap.kind": "shuffle",
    "remap.interval": "10 s",
    "remap.first_after": "10 s",
    "run.baseline": True,
}

PLOT = Plot(
    name="figure-00",
    title='Before & after "<it>"',
    x_label="time (h)",
    y_label="rate (1/s)",
    curves=[
        Curve("before", [0, 1, 2], [3.0, math.nan, 1.0], style="steps", emphasis=False),
        Curve("after", [0, 1, 2], [1.0, 2.0, 1.5]),
        Curve("printed", [0, 2], [1.5, 1.5], dashed=True),
        Curve("measured", [1], [2.5], style="points"),
    ],
)
BARS = Plot(
    name="bars",
    title="Bars",
    x_label="",
    y_label="ms",
    curves=[
        Curve("a", [0, 1], [1.0, -2.0], style="bars"),
        Curve("b", [0, 1], [2.0, 1.0], style="bars"),
    ],
    categories=["seek", "rotation"],
)


def two_runs(experiment: Path, folder: Path) -> list[Path]:
    """A run of the small experiment on a mechanical disk, as it lies and shuffled, twice."""
    folders = [folder / "runs" / name for name in ("seven", "eight")]
    for seed, each in zip((7, 8), folders, strict=True):
        api.run(experiment, settings={**SHUFFLED, "run.seed": seed}, out=each)
    return folders


@pytest.fixture
def runs(experiment: Path, tmp_path: Path) -> list[Path]:
    return two_runs(experiment, tmp_path)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A page of two runs, made once for all that look at it, and the document that said so."""
    folder = tmp_path_factory.mktemp("report")
    runs = two_runs(small_experiment(folder), folder)
    command = [sys.executable, "-m", "agewell", "report", *map(str, runs)]
    done = subprocess.run(
        [*command, "--out", "report.html", "--json", "--quiet"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert documents.check(done.stdout) == "report"
    return folder / "report.html", done.stdout


# In one process of the tests, which makes it.
looks_at_the_report = pytest.mark.xdist_group("a report")


@looks_at_the_report
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_can_be_read_by_everybody(
    report: tuple[Path, str], browser: Browser, axe: dict[str, str], width: int
) -> None:
    page, _ = report
    seen = browser.visit(page, axe, width=width)
    assert seen.console == []
    assert seen.values["axe"] == "object"
    assert seen.values["light"] == []
    assert seen.values["dark"] == []
    assert seen.values["texts"] > 100
    assert seen.values["overprinted"] == []
    assert seen.values["too wide"] is False


@pytest.mark.browser
def test_what_is_wrong_with_a_page_is_found(
    browser: Browser, axe: dict[str, str], tmp_path: Path
) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><html><title>bad</title><style>[data-theme=dark] p { color: #ddd }</style>"
        "<body><img src='data:,'><p>only light</p>"
        "<figure id='one'><svg width='200' height='100'><text x='5' y='50'>under</text>"
        "<text x='8' y='52'>over</text><text x='180' y='90'>beyond</text></svg></figure>"
        "<div style='width: 3000px'>wide</div></body></html>"
    )
    seen = browser.visit(page, axe)
    light, dark = ({each[0] for each in seen.values[theme]} for theme in ("light", "dark"))
    assert {"image-alt", "html-has-lang"} <= light
    assert "color-contrast" in dark - light
    assert sorted(seen.values["overprinted"]) == [
        "clipped in one: beyond",
        "overprinted in one: under and over",
    ]
    assert seen.values["too wide"] is True


@pytest.mark.browser
def test_a_table_is_sorted_by_a_click_on_a_heading(browser: Browser, tmp_path: Path) -> None:
    rows = [[Cell(name), Cell(text)] for name, text in (("b", "1,200"), ("c", "-3 %"), ("a", "-"))]
    table = PageTable(["name", "value"], rows, numeric=frozenset({1}))
    page = tmp_path / "page.html"
    page.write_text(render(Page("T", "", [Section("s", "S", tables=[table])])))
    order = "[...document.querySelectorAll('tbody tr')].map(each => each.cells[0].innerText)"
    click = "(document.querySelectorAll('button.sort')[{}].click(), {})"
    seen = browser.visit(
        page,
        {
            "as written": order,
            "by value": click.format(1, order),
            "down": click.format(1, order),
            "by name": click.format(0, order),
            "marks": "[...document.querySelectorAll('th')].map(each => each.ariaSort)",
        },
    )
    assert seen.values == {
        "as written": ["b", "c", "a"],
        "by value": ["c", "b", "a"],
        "down": ["b", "c", "a"],
        "by name": ["a", "b", "c"],
        "marks": ["ascending", None],
    }


@looks_at_the_report
@pytest.mark.browser
def test_the_page_opens_in_a_browser_without_a_network(
    report: tuple[Path, str], browser: Browser, tmp_path: Path
) -> None:
    page, _ = report
    seen = browser.visit(
        page,
        {
            "title": "document.title",
            "pictures": "document.querySelectorAll('figure svg').length",
            "empty": (
                "[...document.querySelectorAll('figure svg')]"
                ".filter(each => each.getBoundingClientRect().height < 100).length"
            ),
            "sections": "[...document.querySelectorAll('section')].map(each => each.id)",
            "links": (
                "[...document.querySelectorAll('nav a')]"
                ".filter(each => !document.querySelector(each.getAttribute('href'))).length"
            ),
            "too wide": "document.documentElement.scrollWidth > window.innerWidth",
            "light": "document.documentElement.dataset.theme",
            "dark": (
                "(document.querySelector('button.theme').click(),"
                " document.documentElement.dataset.theme)"
            ),
            "colour": (
                "(document.querySelector('button.theme').click(),"
                " getComputedStyle(document.body).color)"
            ),
        },
        themes=("light", "dark"),
    )
    assert seen.requests == [page.as_uri()]
    assert seen.console == []
    assert seen.values["title"] == "2 runs compared"
    assert seen.values["sections"] == ["overview", "run-seven", "run-eight", "provenance"]
    assert seen.values["pictures"] == 2 + 2 * 7
    assert seen.values["empty"] == 0
    assert seen.values["links"] == 0
    assert seen.values["too wide"] is False
    assert {seen.values["light"], seen.values["dark"]} == {"light", "dark"}
    assert seen.values["colour"].startswith("rgb")
    assert seen.screenshots["light"] != seen.screenshots["dark"]
    for name, picture in seen.screenshots.items():
        (tmp_path / f"{name}.png").write_bytes(picture)
        assert len(picture) > 50_000


@looks_at_the_report
def test_the_page_refers_to_nothing_outside(report: tuple[Path, str]) -> None:
    page, _ = report
    text = page.read_text()
    references = re.findall(r'(?:src|href|action|data)="([^"]*)"|url\(([^)]*)\)|@import', text)
    outside = [
        each
        for pair in references
        for each in pair
        if each and not each.startswith(("#", "data:,"))
    ]
    assert outside == []
    assert str(page.parent) not in text


def test_the_same_run_gives_the_same_page_and_pictures(
    agewell: Agewell, runs: list[Path], tmp_path: Path
) -> None:
    agewell("report", runs[0], "--out", "first/report.html", "--quiet")
    agewell("report", runs[0], "--out", "second/report.html", "--quiet")
    first = sorted(path for path in (tmp_path / "first").rglob("*") if path.is_file())
    assert len(first) == 1 + 3 * 7
    for path in first:
        twin = tmp_path / "second" / path.relative_to(tmp_path / "first")
        assert path.read_bytes() == twin.read_bytes(), path.name


@looks_at_the_report
def test_json_names_what_was_written(report: tuple[Path, str]) -> None:
    page, said = report
    document = json.loads(said)
    assert document["page"] == "report.html"
    assert all((page.parent / name).is_file() for name in document["plots"])
    assert [each["name"] for each in document["runs"]] == ["seven", "eight"]


def test_runs_of_the_same_name_are_distinguished(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "b" / "other"]
    assert names_of(paths) == ["a/run", "b/run", "b/other"]
    assert names_of([tmp_path / "a", tmp_path / "a"]) == ["a (1)", "a (2)"]


def test_a_run_without_a_baseline_has_values_instead_of_changes(
    experiment: Path, tmp_path: Path
) -> None:
    result = api.run(experiment, out=tmp_path / "run")
    page = page_of([result], ["run"])
    assert [section.identifier for section in page.sections] == ["result", "metrics"]
    assert page.sections[1].tables[0].columns == ("metric", "value", "unit")
    names = [plot.name for plot in page.sections[0].plots]
    assert "before-after" not in names
    assert "service-time" in names


def test_two_replays_at_their_own_pace_have_one_curve_by_interval() -> None:
    result = api.run(REPOSITORY / "examples" / "demo-build.toml")
    assert result.config["workload"]["replay"] == "closed"
    assert "baseline_mean_service_ms" not in result.series.column_names
    plots = {plot.name: plot for plot in page_of([result], ["build"]).sections[0].plots}
    assert [curve.label for curve in plots["service-time"].curves] == ["rearranged"]
    assert "at their own pace" in plots["service-time"].caption
    assert [curve.label for curve in plots["seek-cdf"].curves] == ["as it lies", "rearranged"]


def test_the_series_of_a_plot_add_up_to_the_metrics(runs: list[Path]) -> None:
    result = Result.read(runs[0])
    plots = {plot.name: plot for plot in page_of([result], ["run"]).sections[0].plots}
    rate = plots["rate"]
    # The last value of each curve only ends the step before it.
    assert sum(sum(curve.y[:-1]) for curve in rate.curves) * 10 == pytest.approx(2000)
    seeks = plots["seek-cdf"].curves[1]
    assert seeks.y[-1] == pytest.approx(100)
    assert seeks.y[0] == pytest.approx(100 * result.metrics["zero_seek_fraction"])


def test_a_damaged_table_is_refused(runs: list[Path]) -> None:
    (runs[0] / "series.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(InputError, match=r"series\.parquet: not a table of agewell run"):
        Result.read(runs[0])


@pytest.mark.parametrize("plot", [PLOT, BARS], ids=lambda plot: plot.name)
def test_a_picture_has_the_same_bytes_every_time(plot: Plot, tmp_path: Path) -> None:
    first = drawing.save(plot, tmp_path / "first")
    second = drawing.save(plot, tmp_path / "second")
    assert [path.name for path in first] == [
        f"{plot.name}.{kind}" for kind in ("png", "svg", "csv")
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_points_of_a_picture_are_a_table(tmp_path: Path) -> None:
    drawing.save(PLOT, tmp_path)
    drawing.save(BARS, tmp_path)
    assert (tmp_path / "figure-00.csv").read_text().splitlines()[:4] == [
        "curve,time (h),rate (1/s)",
        "before,0,3",
        "before,1,",
        "before,2,1",
    ]
    assert (tmp_path / "bars.csv").read_text().splitlines() == [
        "curve,x,ms",
        "a,seek,1",
        "a,rotation,-2",
        "b,seek,2",
        "b,rotation,1",
    ]


def test_an_inline_picture_takes_the_colours_of_the_page() -> None:
    text = drawing.inline(PLOT).svg
    tree = ET.fromstring(text)  # noqa: S314 (our own text)
    assert tree.get("aria-label") == PLOT.title
    assert "var(--series-1)" in text
    assert "var(--quiet)" in text
    assert not any(colour in text for colour in (*drawing.SERIES, drawing.INK, drawing.QUIET))
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert all(name.startswith("figure-00-") for name in identifiers)
    for target in re.findall(r'(?:href="#|url\(#)([^")]+)', text):
        assert target in identifiers


def _plot_of(*names: str) -> Plot:
    return replace(PLOT, curves=[Curve(name, [0, 1], [0, 1]) for name in names])


def test_a_name_has_one_colour_on_a_page_and_a_colour_one_name() -> None:
    plots = [_plot_of("reads", "writes"), _plot_of("writes", "moves"), _plot_of("", "reads")]
    assert drawing.places_of(plots) == {"reads": 0, "writes": 1, "moves": 2}
    section = Section(identifier="a", title="A", plots=plots)
    text = render(Page(title="T", subtitle="", sections=[section]))
    body = text[text.index("<main>") :]
    assert all(f"var(--series-{place})" in body for place in (1, 2, 3))
    assert "var(--series-4)" not in body
    assert "var(--alone)" in body


def test_names_of_one_plot_share_no_colour_where_a_page_has_more_names_than_colours() -> None:
    many = [_plot_of(*(f"{group}-{each}" for each in range(4))) for group in range(8)]
    places = drawing.places_of(many)
    for plot in many:
        assert len({places[curve.label] for curve in plot.curves}) == len(plot.curves)
    assert set(places.values()) == set(range(len(drawing.SERIES)))


def test_the_map_of_a_score_has_no_colour_of_a_series() -> None:
    assert not {colour for _, _, colour in score_charts._MAP_PARTS} & set(drawing.SERIES)


def test_curves_of_unequal_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="curve 'a': 2 x values but 1 y values"):
        Curve("a", [0, 1], [1.0])


def test_text_on_a_page_is_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    section = Section(
        "s",
        hostile,
        paragraphs=[hostile],
        highlights=[Highlight(hostile, hostile)],
        tables=[PageTable([hostile], [[Cell(hostile, note=hostile)]], folded=hostile)],
        listing=(hostile, hostile),
    )
    text = render(Page(hostile, hostile, [section], facts=[(hostile, hostile)]))
    assert "alert(1)" in text
    assert hostile not in text
