"""`agewell reproduce`: the frame around the studies, with a study made for the purpose."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

import agewell as api
from agewell import studies
from agewell.cli import main
from agewell.studies.context import Context
from agewell.studies.study import Figure, FigureResult, Row, Study, Verdict
from agewell.values.plot import Curve, Plot
from agewell.version import __version__, build
from conftest import SMALL_DEVICE, SMALL_EXPERIMENT, Agewell
from findings import check_findings


class MadeUp:
    """A paper with a figure that holds, one that fails, and one that needs a trace."""

    name = "made-up-2000"
    title = "Made up"
    citation = "Nobody, Made up, 2000"
    figures: Sequence[Figure] = (
        Figure("figure-01", "A service time that holds"),
        Figure("figure-02", "A claim that fails"),
        Figure("figure-03", "A figure of a trace", inputs=("week.trace",)),
    )

    def run(self, figure: str, context: Context) -> FigureResult:
        match figure:
            case "figure-01":
                return self._service_time(context)
            case "figure-02":
                row = Row("claim [in brackets]", "+5", -1.0, "%", "same sign", Verdict.FAILS, "why")
                known = Row("explained", 1.0, 2.0, "", "same", Verdict.DIFFERS, "another trace")
                return FigureResult([row, known])
            case _:
                path = context.input("week.trace")
                row = Row("bytes", None, float(path.stat().st_size), "B", "", Verdict.INFORMATION)
                return FigureResult([row])

    def _service_time(self, context: Context) -> FigureResult:
        experiment = context.experiment("figure-01")
        first = context.run_experiment(experiment, {"run.seed": 3})
        assert context.run_experiment(experiment, {"run.seed": 3}) is first
        assert (first["directory"] / "series.parquet").is_file()
        expected = context.expected("figure-01")["mean_service_ms"]
        ours = first["metrics"]["mean_service_ms"]
        holds = abs(ours - expected) <= 0.5
        verdict = Verdict.HOLDS if holds else Verdict.FAILS
        row = Row("mean service time", expected, ours, "ms", "within 0.5", verdict)
        plot = Plot("figure-01", "Times", "x", "ms", [Curve("ours", [0, 1], [ours, ours])])
        return FigureResult([row], [plot], ["A note."])


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    """The made-up paper as the only one, its experiments below the test's folder."""
    folder = tmp_path / "experiments" / "made-up-2000" / "figure-01"
    folder.mkdir(parents=True)
    (folder / "experiment.toml").write_text(SMALL_EXPERIMENT)
    (folder / "small.toml").write_text(SMALL_DEVICE)
    # 10 ms access time and 8 KiB at 2 MB/s.
    (folder / "expected.toml").write_text("mean_service_ms = 14.096\n")
    study = MadeUp()
    module = types.ModuleType("made_up")
    module.STUDY = study  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "made_up", module)
    monkeypatch.setattr(studies, "_MODULES", ("made_up",))
    monkeypatch.setattr("agewell.files.catalogue.experiments", lambda: tmp_path / "experiments")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGEWELL_DATA", raising=False)
    # A checkout may have real traces beside it; these tests bring their own.
    monkeypatch.setattr("agewell.files.catalogue.repository", lambda: None)
    return study


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_status:
        main(["reproduce", *arguments])
    assert isinstance(exit_status.value.code, int)
    return exit_status.value.code


@pytest.mark.usefixtures("paper")
def test_a_figure_that_holds_is_exit_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("made-up-2000/figure-01", "--quiet", "--json") == 0
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert row["figure"] == "figure-01"
    assert row["verdict"] == "holds"
    assert row["ours"] == pytest.approx(14.096)
    folder = tmp_path / "runs" / "reproduce" / "made-up-2000"
    written = json.loads((folder / "rows.json").read_text())
    assert written["rows"] == [row]
    ours = row["ours"]
    curve = Curve("ours", [0, 1], [ours, ours])
    plot = Plot("figure-01", "Times", "x", "ms", [curve]).document()
    page = tmp_path / "again" / "report.html"
    with pytest.raises(SystemExit, match="0"):
        main(["report", str(folder), "--out", str(page), "--quiet"])
    assert page.read_bytes() == (folder / "report.html").read_bytes()
    assert written["figures"] == [
        {
            "paper_name": "made-up-2000",
            "figure": "figure-01",
            "title": "A service time that holds",
            "notes": ["A note."],
            "plots": [plot],
        }
    ]
    assert (written["agewell_version"], written["agewell_build"]) == (__version__, build())
    text = (folder / "report.html").read_text()
    assert "A note." in text
    assert "mean service time" in text
    assert sorted(path.name for path in (folder / "plots").iterdir()) == [
        "figure-01.csv",
        "figure-01.png",
        "figure-01.svg",
    ]


@pytest.mark.usefixtures("paper")
def test_a_verdict_that_fails_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("made-up-2000", "--quiet") == 1
    captured = capsys.readouterr()
    assert "claim [in brackets]" in captured.out
    assert "not run" in captured.out
    assert captured.err.startswith("agewell: error: 1 verdict fails")


@pytest.mark.usefixtures("paper")
def test_a_named_figure_without_its_input_is_exit_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("made-up-2000/figure-03", "--quiet") == 2
    assert "the input week.trace was not found" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("paper")
def test_an_input_is_found_below_a_data_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "traces" / "deep").mkdir(parents=True)
    (tmp_path / "traces" / "deep" / "week.trace").write_text("12345")
    assert run("made-up-2000/figure-03", "--quiet", "--json", "--data", "traces") == 0
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert row["ours"] == 5.0


@pytest.mark.usefixtures("paper")
def test_the_list_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "made-up-2000/figure-01",
        "made-up-2000/figure-02",
        "made-up-2000/figure-03",
    ]


@pytest.mark.usefixtures("paper")
def test_an_unknown_figure_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("made-up-2000/figure-04") == 2
    assert "known: figure-01, figure-02, figure-03" in capsys.readouterr().err


# --- runs that are there --------------------------------------------------------------------------


def results_below(folder: Path) -> dict[Path, int]:
    """When each result was written."""
    found = folder.glob("*/runs/*/result.json")
    return {path: path.stat().st_mtime_ns for path in found}


@pytest.mark.usefixtures("paper")
def test_a_run_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    arguments = ("made-up-2000/figure-01", "--quiet", "--out", "out")
    assert run(*arguments) == 0
    rows = (tmp_path / "out" / "made-up-2000" / "rows.json").read_bytes()
    (before,) = results_below(tmp_path / "out").items()
    assert run(*arguments) == 0
    assert results_below(tmp_path / "out") == dict([before])
    assert (tmp_path / "out" / "made-up-2000" / "rows.json").read_bytes() == rows
    # An input that has changed since makes it another run, though the question reads the same.
    device = tmp_path / "experiments" / "made-up-2000" / "figure-01" / "small.toml"
    device.write_text(SMALL_DEVICE.replace("10.0", "20.0"))
    assert run(*arguments) == 1
    (after,) = results_below(tmp_path / "out").items()
    assert after != before
    (row,) = json.loads((tmp_path / "out" / "made-up-2000" / "rows.json").read_text())["rows"]
    assert row["ours"] == pytest.approx(24.096)


def test_the_same_tables_in_two_folders_are_two_runs(tmp_path: Path) -> None:
    """Paths in them start elsewhere, and may lead to other files."""
    context = Context(tmp_path, tmp_path / "out", tmp_path, [], lambda _fraction, _words: None)
    means = []
    for place, access_ms in enumerate(("10.0", "20.0")):
        folder = tmp_path / f"figure-{place}"
        folder.mkdir()
        (folder / "experiment.toml").write_text(SMALL_EXPERIMENT)
        (folder / "small.toml").write_text(SMALL_DEVICE.replace("10.0", access_ms))
        result = context.run_experiment(folder / "experiment.toml")
        means.append(result["metrics"]["mean_service_ms"])
    assert means == pytest.approx([14.096, 24.096])
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2


def test_a_reproduction_that_was_killed_goes_on(agewell: Agewell, tmp_path: Path) -> None:
    arguments = ("reproduce", "seltzer-1995/figure-04", "--jobs", "1", "--quiet", "--out", "out")
    process = subprocess.Popen(
        [sys.executable, "-m", "agewell", *arguments],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(results_below(tmp_path / "out")) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = results_below(tmp_path / "out")
    assert not (tmp_path / "out" / "seltzer-1995" / "rows.json").exists()
    printed = agewell(*arguments, "--json").stdout
    after = results_below(tmp_path / "out")
    assert 3 <= len(before) < len(after)
    assert {path: after[path] for path in before} == before
    assert agewell(*arguments, "--json").stdout == printed
    assert results_below(tmp_path / "out") == after


def test_every_study_that_is_shipped_satisfies_the_protocol() -> None:
    known = studies.studies()
    assert known
    for name, study in known.items():
        assert isinstance(study, Study)
        assert study.name == name
        names = [figure.name for figure in study.figures]
        assert len(set(names)) == len(names)


@pytest.mark.usefixtures("paper")
def test_the_function_gives_what_the_command_writes(tmp_path: Path) -> None:
    reproduced = api.reproduce("made-up-2000", "out", jobs=1)
    check_findings(reproduced)
    assert reproduced.document == json.loads((tmp_path / "out/made-up-2000/rows.json").read_text())
    found = {name: rows for name, rows in reproduced.metrics.items() if rows}
    assert found == {"holds": 1, "fails": 1, "differs": 1, "not run": 1}
    assert reproduced.table()["verdict"].to_pylist() == ["holds", "fails", "differs", "not run"]
