"""Pages of what commands leave: recognised, verdict first, and readable by everybody."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import agewell as api
import documents
from agewell.report import drawing
from agewell.report.part import page_of
from agewell.report.parts import comparison, plain
from agewell.report.recognition import parts_of
from agewell.values.plot import Curve, Plot
from chromium import Browser
from conftest import REPOSITORY

# What commands leave is made once: in one process of the tests.
pytestmark = pytest.mark.xdist_group("what commands leave")

KINDS = ("aging", "series", "score", "sweep", "comparison", "advice", "segments", "store", "probe")
VERDICTS = {
    "aging": r"After \d+ days of smith-1996, \d+ % full at its fullest, the layout score is 0\.\d+",
    "series": r"The layout score is 0\.\d+ at the end",
    "score": r"Files lie \w+",
    "sweep": r"Overall write cost: [\d.]+ at layout.collect",
    "comparison": r"is the most robust: [\d.]+ times the best at worst",
    "advice": r"Use layout [\w-]+",
    "segments": r"Use segments of \d+ [KM]iB",
    "store": r"Holds 0 blocks, 0.0 % full, \d+ of \d+ segments free, closed in order",
    "probe": r"Values",
}
"""What each page says first."""

FEW_BLOCKS = ("--set", "workload.blocks=6000", "--set", "workload.updates_per_block=4")
"""Pages have the same parts and pictures, and runs take a tenth of the time."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What commands leave, by kind: folders, and what they print with `--json`."""
    folder = tmp_path_factory.mktemp("left")

    def made(name: str, *arguments: object) -> Path:
        path = folder / f"{name}.json"
        text = _printed([str(each) for each in (*arguments, "--json")])
        documents.check(text)
        path.write_text(text)
        return path

    series, snapshot = folder / "series.parquet", folder / "snapshot.parquet"
    aged = ("--until", "days=3", "--daily", "--series", series, "--snapshot", snapshot, "--quiet")
    found = {"aging": made("aging", "age", "ffs", "--workload", "smith-1996", *aged)}
    found["series"] = series
    found["score"] = made("score", "score", snapshot, "--device", "hp-97560")
    log = folder / "log.toml"
    example = (REPOSITORY / "examples" / "log-random-update.toml").read_text()
    log.write_text(example.replace("blocks = 80000", "blocks = 8000"))
    collect = ("--over", "layout.collect=clean,plug")
    made("sweep", "sweep", log, *collect, "--out", folder / "sweep", "--quiet")
    found["sweep"] = folder / "sweep"
    load = ("--workload", "hot-cold", "--device", "hp-97560", "--quiet")
    layouts = ("--layouts", "lfs,lfs-adaptive,ffs,lfs-zones", "-u", "0.5,0.8")
    made("compare", "compare", *load, *layouts, "--out", folder / "compare")
    found["comparison"] = folder / "compare"
    made("advise", "advise", *load, *FEW_BLOCKS, "--out", folder / "advise")
    found["advice"] = folder / "advise"
    disk = ("--device", "hp-97560", "--quiet")
    found["segments"] = made("segments", "advise", "segment-size", log, *disk)
    found["store"] = made(
        "store", "store", "format", folder / "a.store", "--size", "64MiB", "--sparse"
    )
    probe = ("--modelled", "-o", folder / "p.toml", "--quiet")
    found["probe"] = made("probe", "probe", "hp-97560", *probe)
    return found


@pytest.fixture(scope="module")
def page_with(
    left: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The page of what one command left, or of all of it, which is written once."""
    folder = tmp_path_factory.mktemp("pages")

    def written(kind: str) -> Path:
        page = folder / f"{kind}.html"
        if not page.exists():
            paths = [str(path) for path in left.values()] if kind == "all" else [str(left[kind])]
            _printed(["report", *paths, "--out", str(page), "--quiet"])
        return page

    return written


def _printed(arguments: list[str]) -> str:
    """What a command prints, run in a process of its own."""
    command = [sys.executable, "-m", "agewell", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_begins_with_what_was_found(page_with: Callable[[str], Path], kind: str) -> None:
    body = page_with(kind).read_text().split("<main>")[1]
    text = re.sub(r"<[^>]*>", "", body)[:1500]
    assert re.search(VERDICTS[kind], text), text


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("kind", [*KINDS, "all"])
def test_every_page_can_be_read_by_everybody(
    page_with: Callable[[str], Path],
    kind: str,
    browser: Browser,
    axe: dict[str, str],
    width: int,
) -> None:
    seen = browser.visit(page_with(kind), axe, width=width)
    assert seen.console == []
    assert seen.values["light"] == []
    assert seen.values["dark"] == []
    assert seen.values["overprinted"] == []
    assert seen.values["too wide"] is False


@pytest.mark.browser
def test_values_are_shown_to_pointer_and_keyboard(
    page_with: Callable[[str], Path], browser: Browser
) -> None:
    tip = "document.querySelector('.tip').textContent"
    figure = "document.querySelector('#plot-overall-write-cost svg')"
    points = (
        "JSON.parse(document.querySelector('#plot-overall-write-cost script.points').textContent)"
        ".points"
    )
    # The second point is pointed at where its script says it lies.
    pointed = (
        f"(() => {{ const svg = {figure}, box = svg.getBoundingClientRect(), "
        f"view = svg.viewBox.baseVal, point = {points}[1]; "
        "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: "
        "box.left + point[3] / view.width * box.width, "
        "clientY: box.top + point[4] / view.height * box.height})); "
        f"return {tip}; }})()"
    )
    key = (
        f"(() => {{ {figure}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowLeft'}})); "
        f"return {tip}; }})()"
    )
    asked = {"points": points, "pointed": pointed, "key": key}
    seen = browser.visit(page_with("sweep"), asked)
    first, second = seen.values["points"]
    assert seen.values["pointed"].endswith(f"overall write cost {second[2]}")
    assert seen.values["key"].endswith(f"overall write cost {first[2]}")
    assert first[2] != second[2]


def test_a_group_stays_in_one_process(request: pytest.FixtureRequest) -> None:
    """Only releases of pytest and pytest-xdist that know each other see to that."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("one process runs all tests, or groups are not asked for")
    assert request.node.nodeid.endswith("@what commands leave")


def test_points_lie_where_the_picture_has_its_marks() -> None:
    drawn = drawing.inline(
        Plot("p", "P", "x", "y", [Curve("one", [0, 1, 2], [3, 1, 2]), Curve("two", [1], [2.5])])
    )
    marks = [
        (float(x), float(y))
        for x, y in re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill:', drawn.svg)
    ]
    for _, _, _, across, down in drawn.points["points"]:
        assert any(abs(across - x) < 0.2 and abs(down - y) < 0.2 for x, y in marks)
    assert [point[:3] for point in drawn.points["points"]] == [
        ["one", "0", "3"],
        ["one", "1", "1"],
        ["one", "2", "2"],
        ["two", "1", "2.5"],
    ]


def test_parts_on_one_page_do_not_touch_each_other(left: dict[str, Path]) -> None:
    page = page_of(parts_of([left["sweep"], left["sweep"], left["score"]]))
    identifiers = [section.identifier for section in page.sections]
    plots = [plot.name for section in page.sections for plot in section.plots]
    assert len(set(identifiers)) == len(identifiers)
    assert len(set(plots)) == len(plots) > 0
    assert page.sections[0].identifier == "in-short"


def test_a_plot_is_the_same_after_json() -> None:
    gap = Plot(
        "p", "P", "x", "y", [Curve("one", [0.0, 1.0], [float("nan"), 2.0])], categories=["a", "b"]
    )
    again = Plot.of(json.loads(json.dumps(gap.document())))
    assert repr(again) == repr(gap)


def test_a_score_is_the_same_after_json(left: dict[str, Path]) -> None:
    (target,) = json.loads(left["score"].read_text())["targets"]
    scored = api.Score.of(target)
    assert scored.document == target


def test_what_no_command_left_is_refused(left: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.json").write_text("[1]")
    broken = json.loads((left["comparison"] / "compare.json").read_text())
    del broken["robustness"][0]["worst_ratio"]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    cases = {
        "nothing": "there is nothing",
        "empty": "holds none of result.json",
        "list.json": "is not a JSON object",
        "broken.json": "damaged or of another version (KeyError: 'worst_ratio')",
    }
    for name, why in cases.items():
        with pytest.raises(api.InputError, match=re.escape(why)):
            parts_of([tmp_path / name])


def test_a_sweep_under_way_is_told_from_one_that_has_ended(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text('{"axes": {}}')
    with pytest.raises(api.InputError, match="has not ended"):
        parts_of([tmp_path])


def test_layouts_that_cannot_do_a_cell_have_no_ratio(left: dict[str, Path]) -> None:
    document = json.loads((left["comparison"] / "compare.json").read_text())
    for cell in document["cells"]:
        for entry in cell["layouts"]:
            if entry["layout"] == "lfs-zones":
                entry.update(cannot="it does not fit", ratio=None, run=None, disk_seconds=None)
    for each in document["robustness"]:
        if each["layout"] == "lfs-zones":
            each.update(worst_ratio=None, worst_at=None, geometric_mean_ratio=None, done=0)
    part = comparison.part(document, Path("compare"))
    (table,) = next(each for each in part.sections if each.identifier == "robustness").tables
    texts = {row[0].text: row[1].text for row in table.rows}
    assert texts["lfs-zones"] == "-"
    assert texts["lfs-adaptive"] != "-"
    (cells, _) = next(each for each in part.sections if each.identifier == "cells").tables
    assert cells.rows[-1][0].note == "it does not fit"


def test_runs_that_are_no_logs_are_held_against_the_first(tmp_path: Path) -> None:
    load = {"kind": "random-update", "utilization": 0.8, "blocks": 2000, "updates_per_block": 2}
    disk = {"kind": "simple", "seek_time": "9 ms", "rotation_time": "11 ms", "bandwidth": "5 MB/s"}
    seconds = []
    for kind in ("sequential", "write-anywhere"):
        experiment = {"workload": load, "layout": {"kind": kind}, "device": disk}
        ran = api.run(experiment, out=tmp_path / kind)
        seconds.append(ran.metrics["disk_seconds"])
    (part,) = parts_of([tmp_path / "sequential", tmp_path / "write-anywhere"])
    change = 100 * (seconds[1] / seconds[0] - 1)
    assert part.verdict[0].endswith(f"{change:+.1f} %.")
    assert part.highlights[0].value == f"{change:+.1f} %"
    plots = [plot for section in part.sections for plot in section.plots]
    assert plots
    assert all(any(len(curve.x) for curve in plot.curves) for plot in plots)


def test_any_other_document_has_its_numbers() -> None:
    part = plain.part({"a": {"b": 1_234}, "rows": [{"x": 1.5, "y": None}]}, Path("some.json"))
    single, rows = part.sections[0].tables
    assert [[cell.text for cell in row] for row in single.rows] == [["a.b", "1,234"]]
    assert [[cell.text for cell in row] for row in rows.rows] == [["1.5", "none"]]
