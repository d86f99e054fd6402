"""`agewell advise`: the search, the runs that stand behind it, and when the choice does not pay."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import agewell as api
from agewell.advice import advising, segment_size
from agewell.advice.advising import Advice, Against, advise
from agewell.advice.comparing import compare
from agewell.advice.measure import CLOSE_PCT, CLOSE_RATIO
from agewell.advice.search import Choice, Search, Step, Tried
from agewell.advice.shuffling import Shuffled, ShufflingAdvice
from agewell.cli.advise import print_layouts
from agewell.errors import InputError
from agewell.experiments import choices
from agewell.experiments.configuration import Experiment, load
from agewell.experiments.experiment_file import to_toml, write
from agewell.experiments.layouts import LAYOUTS, named
from agewell.experiments.time_slices import Spread, spread
from agewell.runs.keyed_runs import KeyedRun
from agewell.values.sizes import bytes_of
from conftest import Agewell
from findings import check_findings

SMALL_LOAD = """\
[workload]
kind = "hot-cold"
utilization = 0.8
blocks = 2000
updates_per_block = 3
interval = "20 ms"

[host]
sync_every = 4
"""

ARGUMENTS = ("advise", "--workload", "load.toml", "--quiet", "--out", "out")
ON_TWO_NUMBERS = ("--device", "simple:15ms:5MB/s")


@pytest.fixture
def small_load(tmp_path: Path) -> Path:
    """A small load with time between its writes, as a file."""
    path = tmp_path / "load.toml"
    path.write_text(SMALL_LOAD)
    return path


# --- the search -----------------------------------------------------------------------------------


def test_every_word_rests_on_runs_that_can_be_made_again(
    agewell: Agewell, small_load: Path, tmp_path: Path
) -> None:
    document = json.loads(agewell(*ARGUMENTS, "--device", "hp-97560", "--json").stdout)
    assert set(document) == {
        *(
            "document",
            "schema_version",
            "agewell_version",
            "agewell_build",
            "workload",
            "device",
            "device_uncertainty",
            "utilization",
        ),
        *(
            "recommended",
            "steps",
            "against",
            "quicker_to_recover",
            "advice",
            "shuffling",
            "installable",
        ),
    }
    folder = tmp_path / "out"
    assert json.loads((folder / "advice.json").read_text()) == document
    recommended = document["recommended"]
    again = api.run(folder / recommended["file"])
    assert again.metrics["disk_seconds"] == recommended["disk_seconds"]
    # The choice is the best of everything that was tried, but for what counts as equal.
    tried = [each for step in document["steps"] for each in step["tried"] if not each["cannot"]]
    least = min(each["disk_seconds"] for each in tried)
    assert recommended["disk_seconds"] <= least * CLOSE_RATIO
    for each in tried:
        assert (folder / each["file"]).is_file()
        assert (folder / each["run"] / "result.json").is_file()
    for against in document["against"]:
        baseline = api.run(folder / against["baseline"]["file"])
        saved = 1 - again.metrics["disk_seconds"] / baseline.metrics["disk_seconds"]
        assert against["saved_pct"] == pytest.approx(100 * saved)
        assert against["over_time"]["slices"] >= 8
        assert against["over_time"]["least_pct"] <= saved * 100 <= against["over_time"]["most_pct"]
        assert set(against["saved_pct_by_utilization"]) == {"0.5", "0.7", "0.8", "0.9"}
    quanta = {each["quantum"] for each in document["shuffling"]["tried"]}
    assert quanta == {"cylinder", "track", "block"}
    # Where free moves save nothing worth while, nobody asks what they cost.
    for each in document["shuffling"]["tried"]:
        asked = each["free_saved_pct"] > CLOSE_PCT
        assert (each["paid_saved_pct"] is not None) == asked
        assert len(each["files"]) == 1 + asked
        assert all((folder / name).is_file() for name in each["files"])
    replay = api.run(folder / document["shuffling"]["tried"][0]["files"][0])
    baseline_seconds = replay.document["baseline_metrics"]["disk_seconds"]
    # The requests as they lie take what the layout took for them.
    assert baseline_seconds == pytest.approx(recommended["disk_seconds"], rel=0.01)


def test_the_same_command_goes_on_where_it_was(
    agewell: Agewell, small_load: Path, tmp_path: Path
) -> None:
    agewell(*ARGUMENTS, *ON_TWO_NUMBERS, "--jobs", "1")
    first = (tmp_path / "out" / "advice.json").read_bytes()
    results = sorted((tmp_path / "out" / "runs").glob("*/result.json"))
    times = {path: path.stat().st_mtime_ns for path in results}
    gone = results[3]
    gone.unlink()
    agewell(*ARGUMENTS, *ON_TWO_NUMBERS, "--jobs", "2")
    assert (tmp_path / "out" / "advice.json").read_bytes() == first
    assert gone.stat().st_mtime_ns != times.pop(gone)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_a_log_far_from_the_best_is_not_refined(
    small_load: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advising, "LOG_MARGIN", 0.0)
    asked = choices.workload(str(small_load))
    advice = advise(asked, choices.device("simple:15ms:5MB/s"), tmp_path / "out")
    (refinement,) = [step for step in advice.steps if step.question == "log"]
    assert "times the disk time" in refinement.note
    assert "segment size" not in {step.question for step in advice.steps}


def test_what_cannot_win_is_not_run_and_said(small_load: Path, tmp_path: Path) -> None:
    """Omissions are named with their reason, and what was left out would not have won."""
    asked = choices.workload(str(small_load))
    device = choices.device("samsung-970-pro")
    advice = advise(asked, device, tmp_path / "out")
    first = advice.steps[0]
    tried = {each.label for each in first.tried}
    left_out = {layout.name for layout in LAYOUTS} - tried
    assert left_out == {"ffs-metadata", "lfs-zones"}
    assert all(name in first.left_out for name in left_out)
    more = {name: Choice(named(name).table) for name in left_out}
    best = min(each.disk_seconds for each in first.tried)
    search = Search(
        asked,
        device,
        tmp_path / "out",
        settings={},
        catalogue_directory=None,
        jobs=None,
        progress=lambda _fraction, _words: None,
    )
    for each in search.try_all("left out", more, advice.utilization, 0.0):
        assert each.disk_seconds * CLOSE_RATIO >= best
    # Nobody reads in this load, so that no way of reading is asked about.
    notes = {step.question: step.note for step in advice.steps}
    assert "reads of users take 0.0 %" in notes["prefetch"]
    assert not advice.shuffling.tried
    assert "flash has no arm" in advice.shuffling.sentence()


def test_on_zones_the_layout_of_zones_is_run() -> None:
    kinds = {"zoned": False, "mechanical": True, "flash": True, "simple": True}
    for kind, left_out in kinds.items():
        assert ("lfs-zones" in advising._cannot_win({"kind": kind})) == left_out


def test_one_question_has_one_answer(small_load: Path, tmp_path: Path) -> None:
    """`advise`, `advise segment-size` and `compare` know one best segment size and its time."""
    asked, disk = choices.workload(str(small_load)), choices.device("simple:15ms:5MB/s")
    advice = advise(asked, disk, tmp_path / "out")
    (step,) = [each for each in advice.steps if each.question == advising.SEGMENT_SIZE]
    seconds = {
        bytes_of((each.document or {})["config"]["layout"]["segment_size"]): each.disk_seconds
        for each in step.tried
        if each.document is not None
    }
    best = min(seconds, key=lambda size: (seconds[size], size))
    assert step.chosen.disk_seconds == seconds[best]
    # The log as it was before the question, and with the size that it was given.
    layout = {key: each for key, each in step.chosen.choice.layout.items() if key != "segment_size"}
    log = next(each for each in advice.steps[0].tried if each.choice.layout == layout)
    for tried in (log, step.chosen):
        other = segment_size.advise(load(tmp_path / "out" / tried.place))
        assert other.best_bytes == best
        assert {size: each.disk_seconds for size, each in other.costs.items()} == seconds
    compared = {}
    for size in seconds:
        settings = {"layout.segment_size": f"{size} B"}
        comparison = compare([named(log.label)], [asked], [disk], tmp_path / "c", settings=settings)
        ((entry,),) = comparison.cells.values()
        compared[size] = entry.disk_seconds
    assert compared == seconds


def test_who_asks_in_python_gets_what_the_command_writes(
    agewell: Agewell, small_load: Path, tmp_path: Path
) -> None:
    agewell(*ARGUMENTS, *ON_TWO_NUMBERS)
    advice = api.advise(str(small_load), "simple:15ms:5MB/s", tmp_path / "python")
    found = (tmp_path / "python" / "advice.json").read_text()
    assert json.loads(found) == json.loads((tmp_path / "out" / "advice.json").read_text())
    assert json.loads(found) == json.loads(json.dumps(advice.document))
    check_findings(advice)
    assert "shuffling" in json.loads(found)


# --- slices of time -------------------------------------------------------------------------------


def course(folder: Path, rows: list[tuple[int, int]]) -> Path:
    """A run's folder with nothing but running totals: user bytes and disk time."""
    folder.mkdir()
    table = pa.table(
        {
            "user_bytes": pa.array([row[0] for row in rows], pa.uint64()),
            "disk_ns": pa.array([row[1] for row in rows], pa.uint64()),
        }
    )
    pq.write_table(table, folder / "throughput.parquet")
    return folder


def test_slices_are_of_equal_work(tmp_path: Path) -> None:
    # Theirs: 10 ns a byte throughout. Ours: 5 in the first half, 20 in the second, cut elsewhere.
    theirs = course(tmp_path / "theirs", [(250, 2500), (1000, 10_000)])
    ours = course(tmp_path / "ours", [(500, 2500), (600, 4500), (1000, 12_500)])
    found = spread(ours, theirs, slices=4)
    assert found is not None
    assert found.saved_pct == pytest.approx([50.0, 50.0, -100.0, -100.0])
    assert (found.least, found.median, found.most) == pytest.approx((-100.0, -25.0, 50.0))
    assert found.losing == [3, 4]


def test_slices_of_different_requests_are_refused(tmp_path: Path) -> None:
    ours, theirs = course(tmp_path / "ours", [(10, 1)]), course(tmp_path / "theirs", [(20, 1)])
    with pytest.raises(InputError, match="different requests"):
        spread(ours, theirs)
    with pytest.raises(InputError, match="not the running totals"):
        spread(tmp_path, theirs)


def test_a_slice_without_disk_time_says_nothing(tmp_path: Path) -> None:
    ours = course(tmp_path / "ours", [(500, 0), (1000, 100)])
    theirs = course(tmp_path / "theirs", [(500, 0), (1000, 200)])
    found = spread(ours, theirs, slices=2)
    assert found is not None
    assert found.saved_pct == pytest.approx([50.0])


# --- the words ------------------------------------------------------------------------------------


def tried(label: str, seconds: float, recovery_s: float = 100.0, **layout: Any) -> Tried:
    table = {"kind": "lfs", **layout}
    metrics = {"disk_seconds": seconds, "recovery_seconds": recovery_s, "p99_response_ms": 2.0}
    if "collect" in layout:
        metrics |= {"segments_cleaned": 1, "segments_plugged": 0, "segments_threaded": 3}
    return Tried(
        label=label,
        choice=Choice(table),
        file=f"{label}.toml",
        run=KeyedRun.of(Experiment({"layout": table}, Path())),
        document={"metrics": metrics, "config": table},
    )


def advice_of(
    *against: Against, others: tuple[Tried, ...] = (), shuffling: tuple[Shuffled, ...] = ()
) -> Advice:
    choice = tried("lfs-adaptive", 50.0, collect="adaptive")
    return Advice(
        workload="load",
        device="disk",
        utilization=0.8,
        steps=[Step("layout", [choice, *others], choice)],
        choice=choice,
        against=against,
        file="experiments/recommended.toml",
        configuration={"layout": {"kind": "lfs", "collect": "adaptive"}},
        shuffling=ShufflingAdvice(shuffling),
    )


def test_where_it_does_not_pay_is_said() -> None:
    ffs = tried("ffs", 100.0)
    against = Against(ffs, 50.0, Spread([60.0, -5.0, 40.0]), {0.5: -25.0, 0.8: 50.0, 0.9: None})
    advice = advice_of(against)
    gain, when_not = advice.sentences()[1:3]
    assert gain == (
        "Against ffs it saves 50.0 % of the disk time; over 3 slices of what users transferred "
        "-5.0 % at least, 40.0 % in the middle, 60.0 % at most (experiments/ffs.toml)."
    )
    # 25 % more for the choice is 20 % less for the baseline.
    assert when_not == (
        "It does not pay where: ffs takes 20.0 % less at 50 % full; "
        "ffs takes less in 1 of 3 slices of time."
    )
    assert against.loses_at == [0.5]


def test_what_is_printed(
    capsys: pytest.CaptureFixture[str], snapshot: Callable[[str, str], None]
) -> None:
    unable = dataclasses.replace(tried("ffs+", 0.0), document=None, cannot="it does not fit")
    against = Against(tried("ffs", 100.0), 50.0, Spread([60.0, 5.0]), {0.5: None, 0.8: 50.0})
    soon = tried("soon", 54.0, recovery_s=2.0)
    moved = (shuffled(9.0, -4.0), shuffled(None, None))
    advice = advice_of(against, others=(tried("ffs", 100.0), unable, soon), shuffling=moved)
    print_layouts(advice)
    snapshot("advise.txt", capsys.readouterr().out)


def test_moves_that_cost_more_than_they_gain_are_said_so() -> None:
    def moved(label: str, seconds: float, reads_s: float, moves_s: float) -> Tried:
        answer = tried(label, seconds)
        accounts = {"read_seconds": reads_s, "regroup_write_seconds": moves_s}
        metrics = {**(answer.metrics or {}), **accounts}
        return dataclasses.replace(answer, document={"metrics": metrics, "config": label})

    plain = moved("none", 100.0, 60.0, 0.0)

    def sentence(blocks: Tried) -> str:
        step = Step("reorganisation", [plain, blocks], plain)
        advice = dataclasses.replace(advice_of(), steps=[step])
        return next(one for one in advice.sentences() if one.startswith("Reorganisation"))

    gains = sentence(moved("blocks", 90.0, 45.0, 5.0))
    assert "pays on the log: at its best (blocks) moves take 5.00 s" in gains
    loses = sentence(moved("blocks", 110.0, 55.0, 15.0))
    assert "does not pay on the log" in loses
    assert "reads 5.00 s less, in all 10.0 % lost" in loses


def test_a_choice_that_never_loses_says_so() -> None:
    against = Against(tried("ffs", 100.0), 50.0, Spread([60.0, 5.0]), {0.8: 50.0})
    assert advice_of(against).sentences()[2].startswith("It does not lose to any baseline")


def test_another_run_is_named_if_it_recovers_much_sooner() -> None:
    slow, soon = tried("slow", 51.0, recovery_s=20.0), tried("soon", 54.0, recovery_s=2.0)
    dear = tried("dear", 60.0, recovery_s=1.0)
    advice = advice_of(others=(slow, soon, dear))
    assert advice.quicker_to_recover is soon
    assert "'soon' of the step 'layout' takes 8.0 % more disk time" in advice.sentences()[-1]
    assert advice_of(others=(slow, dear)).quicker_to_recover is None


def shuffled(free: float | None, paid: float | None, moves: int = 5) -> Shuffled:
    files = ["free.toml", "paid.toml"]
    cannot = "no cylinders" if paid is None else ""
    return Shuffled("cylinder", "60 s", free, paid, moves, 0, files, cannot)


@pytest.mark.parametrize(
    ("shuffled", "words"),
    [
        (shuffled(9.0, 4.0), "Shuffle by cylinder, every 60 s: it saves 4.0 % more, moves counted"),
        (shuffled(9.0, -4.0), "would save 9.0 % (experiments/free.toml), with the moves counted"),
        (shuffled(9.0, 0.0, moves=0), "but the disk is never quiet for a move"),
        (shuffled(0.5, 0.1), "even with moves for nothing no quantum and interval saves more"),
        (shuffled(None, None), "No advice on shuffling: no cylinders."),
    ],
)
def test_shuffling_in_words(shuffled: Shuffled, words: str) -> None:
    assert words in ShufflingAdvice([shuffled]).sentence()


def test_an_experiment_is_written_as_it_is_read(tmp_path: Path) -> None:
    tables = {
        "workload": {"kind": 'tr\u00e4ce "x"\\', "utilization": 0.85, "blocks": 1_000_000},
        "layout": {"zones": ["0.5 512 KiB", "0.5 256 KiB"], "join_holes": True, "odd key": 1e-9},
        "device": {"inner": {"a": [1, 2], "b": "c"}},
    }
    assert tomllib.loads(to_toml(tables)) == tables
    write(tables, tmp_path / "load.toml", "two\nlines")
    text = (tmp_path / "load.toml").read_text()
    assert text.startswith("# two\n# lines\n\n[workload]\n")
    assert tomllib.loads(text) == tables


# --- bad usage ------------------------------------------------------------------------------------

BAD = {
    "no-device": (["--workload", "zipf"], "--device is missing"),
    "no-workload": (["--device", "hp-97560"], "--workload is missing"),
    "unknown-kind": (["-w", "zipff", "-d", "hp-97560"], "no layout can do it: [workload]: kind"),
    "unknown-device": (["-w", "zipf", "-d", "hp-97650"], "no device 'hp-97650'"),
    "two-shares": (["-w", "zipf", "-d", "hp-97560", "-u", "0.5,0.7"], "advice is for one"),
    "layout": (["-w", "zipf", "-d", "hp-97560", "--set", "layout.kind=lfs"], "as their names say"),
    "before": (["--workload", "zipf", "segment-size"], "say them behind it"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_usage_is_one_line(agewell: Agewell, name: str) -> None:
    options, reason = BAD[name]
    done = agewell("advise", "--quiet", *options, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


# --- a directory ----------------------------------------------------------------------------------


def test_a_directory_is_judged_by_how_its_files_lie(tmp_path: Path, agewell: Agewell) -> None:
    (tmp_path / "files").mkdir()
    for number in range(3):
        (tmp_path / "files" / f"{number}").write_bytes(bytes(20_000))
    words = agewell("advise", "files", *ON_TWO_NUMBERS, "--quiet").stdout.splitlines()
    assert "agewell record files -o week.parquet" in words[0]
    assert "agewell reorganise" in words[-1] or "Leave the files" in words[-1]
    found = json.loads(agewell("advise", "files", *ON_TWO_NUMBERS, "--quiet", "--json").stdout)
    assert found["advice"] == words[-1]


def test_what_is_advised_on_stands_by_itself_or_behind_its_option(
    small_load: Path, agewell: Agewell
) -> None:
    del small_load
    failed = agewell("advise", "load.toml", "--workload", "mail", *ON_TWO_NUMBERS, check=False)
    assert failed.returncode == 2
    assert "load.toml: --workload is given already" in failed.stderr
    missing = agewell("advise", "load.toml", check=False)
    assert "--device is missing" in missing.stderr


def test_a_directory_has_no_utilization_of_its_own(tmp_path: Path, agewell: Agewell) -> None:
    (tmp_path / "files").mkdir()
    failed = agewell("advise", "files", *ON_TWO_NUMBERS, "-u", "0.9", check=False)
    assert failed.returncode == 2
    assert "--utilization is for a workload; 'files' is a directory" in failed.stderr
