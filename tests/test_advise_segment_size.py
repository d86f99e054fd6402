"""`agewell advise segment-size`: the sweep, and what it says."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import agewell as api
from agewell.advice.segment_search import SizesTried
from agewell.advice.segment_size import (
    DEFAULT_EXPERIMENT,
    Advice,
    DiskNumbers,
    advise,
    numbers_of_model,
    plot_of,
    with_disk,
)
from agewell.errors import InputError
from agewell.experiments.configuration import Experiment
from agewell.experiments.simulation import resolve
from agewell.runs.keyed_runs import Answer, KeyedRun, RunFolder
from agewell.runs.workers import Outcome
from conftest import Agewell

SMALL_LOG = """\
[workload]
kind = "hot-cold"
utilization = 0.8
blocks = 6000
updates_per_block = 4

[layout]
kind = "lfs"
segment_size = "24 KiB"
collect = "clean"

[device]
kind = "simple"
access_time = "1 ms"
bandwidth = "5 MB/s"
"""


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    """A small load on a log, as a file."""
    path = tmp_path / "log.toml"
    path.write_text(SMALL_LOG)
    return path


# --- the sweep ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access_time", "bandwidth", "low_kib", "high_kib"),
    [
        # Matthews 1999, §5.3: for this load 64-128 KB would have been better than Sprite's 1 MB.
        ("17.5 ms", "1.3 MB/s", 64, 128),
        # Figure 5-2: roughly four times access time x bandwidth, 300 KB and 600 KB.
        ("15 ms", "5 MB/s", 256, 512),
        ("10 ms", "15 MB/s", 512, 1024),
    ],
)
def test_the_week_of_1999_asks_for_the_segments_of_figure_5_2(
    access_time: str, bandwidth: str, low_kib: int, high_kib: int
) -> None:
    week = Experiment(DEFAULT_EXPERIMENT, Path())
    advice = advise(with_disk(week, access_time, bandwidth))
    assert low_kib <= advice.best_bytes / 1024 <= high_kib
    # Small segments pay in transfers, large ones in collection, as the paper says.
    metrics = {size: each.metrics or {} for size, each in advice.costs.items()}
    best = metrics[advice.best_bytes]
    assert metrics[min(metrics)]["new_data_cost"] > 2 * best["new_data_cost"]
    assert metrics[max(metrics)]["cleaner_cost"] > 2 * best["cleaner_cost"]
    # Reads are the same on every size, so that it is the one of the least write cost, too.
    assert best["overall_write_cost"] == min(
        each["overall_write_cost"] for each in metrics.values()
    )


def test_every_row_is_the_run_that_it_says(small_log: Path, tmp_path: Path) -> None:
    experiment = resolve(small_log)
    advice = advise(experiment, out=tmp_path / "out")
    # Powers of two from a block up, and the experiment's own size.
    assert list(advice.costs) == sorted({24 << 10, *(8192 << power for power in range(8))})
    for size in list(advice.costs)[:3]:
        alone = api.run(small_log, settings={"layout.segment_size": f"{size} B"})
        assert advice.costs[size].metrics == alone.metrics
    table = pq.read_table(tmp_path / "out" / "sweep.parquet")
    assert table["metrics.disk_seconds"].to_pylist() == [
        each.disk_seconds for each in advice.costs.values()
    ]
    assert "fewer than 32 segments" in advice.tried.left_out


def test_one_process_says_what_two_say(small_log: Path) -> None:
    experiment = resolve(small_log)
    assert advise(experiment, jobs=1) == advise(experiment, jobs=2)


def test_sizes_too_large_for_the_room_beside_the_data_are_left_out(small_log: Path) -> None:
    settings = {"workload.utilization": 0.99}
    advice = advise(resolve(small_log, settings=settings))
    assert "do not fit" in advice.tried.left_out
    assert max(advice.costs) < 1 << 20


def test_a_size_without_progress_is_an_answer_too(
    small_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = RunFolder.make

    def stuck_at_16_kib(folder: RunFolder, runs: Sequence[KeyedRun], *rest: Any) -> list[Outcome]:
        return [
            Outcome("the log cannot make progress")
            if run.experiment.configuration["layout"]["segment_size"] == "16384 B"
            else outcome
            for run, outcome in zip(runs, made(folder, runs, *rest), strict=True)
        ]

    monkeypatch.setattr(RunFolder, "make", stuck_at_16_kib)
    advice = advise(resolve(small_log))
    assert advice.failed_bytes == [16384]
    assert 16384 not in advice.costs
    assert len(advice.costs) == 8


# --- the words ------------------------------------------------------------------------------------


def answer(cost: float) -> Answer:
    metrics = {
        "disk_seconds": 1000 * cost,
        "overall_write_cost": cost,
        "new_data_cost": cost / 2,
        "cleaner_cost": cost / 2,
    }
    run = KeyedRun(Experiment({}, Path()), "")
    return Answer(run=run, document={"metrics": metrics})


def advice_of(costs: dict[int, float]) -> Advice:
    """Advice on a disk of 15 ms and 5 MB/s, by what each size costs."""
    tried = SizesTried(
        answers={size: answer(cost) for size, cost in costs.items()},
        block_bytes=8192,
        own_bytes=1 << 16,
        log_bytes=1 << 30,
        wanted_bytes=1 << 20,
        largest_bytes=1 << 25,
    )
    return Advice(disk=DiskNumbers(15.0, 5.0, "a test"), tried=tried, config={})


ADVICE = advice_of({1 << 16: 3.0, 1 << 18: 2.02, 1 << 19: 2.0, 1 << 20: 2.5})


def test_the_advice_in_words() -> None:
    assert ADVICE.close() == (1 << 18, 1 << 19)
    assert ADVICE.rule_bytes == pytest.approx(300_000)
    assert ADVICE.sentences() == [
        "Use segments of 512 KiB: 2,000.00 s of disk time, overall write cost 2.000; from 256 KiB "
        "to 512 KiB it is the same within 2 %.",
        "The rule of thumb, 4 x access time x bandwidth (Matthews 1999, section 5.3), says 300 KB; "
        "the size nearest to it, 256 KiB, takes 1.0 % more disk time than the best.",
        "Sprite's choice of 1 MiB takes 25.0 % more disk time than the best; the experiment's "
        "layout.segment_size of 64 KiB takes 50.0 % more disk time than the best.",
    ]


def test_a_size_near_the_best_counts_only_beside_it() -> None:
    # 64 KiB costs as little, but 256 KiB between them does not.
    advice = advice_of({1 << 16: 2.0, 1 << 18: 3.0, 1 << 19: 1.99})
    assert advice.close() == (1 << 19, 1 << 19)
    assert "no other size comes within 2 % of it" in advice.sentences()[0]


def test_a_segment_of_one_block_comes_with_a_word_of_warning() -> None:
    advice = advice_of({1 << 13: 1.0, 1 << 14: 2.0})
    assert "never needs collection" in advice.sentences()[-1]


def test_the_rule_stands_between_its_neighbours_on_the_plot() -> None:
    rule = plot_of(ADVICE).curves[-1]
    assert rule.label == "rule of thumb"
    assert 1 < rule.x[0] == rule.x[1] < 2
    far = dataclasses.replace(ADVICE, disk=DiskNumbers(1000.0, 500.0, "a test"))
    assert "rule of thumb" not in {curve.label for curve in plot_of(far).curves}


def test_what_is_printed(
    agewell: Agewell, small_log: Path, snapshot: Callable[[str, str], None]
) -> None:
    done = agewell("advise", "segment-size", small_log, "--quiet")
    snapshot("advise-segment-size.txt", done.stdout)


def test_json_holds_all_of_it_and_the_folder_the_plot(
    agewell: Agewell, small_log: Path, tmp_path: Path
) -> None:
    arguments = ("advise", "segment-size", small_log, "--json", "--quiet", "--out", "out")
    done = agewell(*arguments, "--access-time", "2 ms", "--bandwidth", "10 MB/s")
    assert done.stderr.startswith("agewell: warning: sizes above 1 MiB were not tried")
    document = json.loads(done.stdout)
    assert document["device"] == {
        "access_ms": 2.0,
        "bandwidth_mb_per_s": 10.0,
        "source": "the command line",
    }
    assert document["rule_segment_bytes"] == 80_000
    costs = [size["disk_seconds"] for size in document["sizes"]]
    place = costs.index(min(costs))
    assert document["best_segment_bytes"] == document["sizes"][place]["segment_bytes"]
    assert document["sizes"][place]["above_best_pct"] == 0
    assert document["own_segment_bytes"] == 24 << 10
    assert len(document["advice"]) == 4
    least = {".png": 5000, ".svg": 5000, ".csv": 100}
    plots = [tmp_path / path for path in document["plots"]]
    assert {path.suffix for path in plots} == set(least)
    assert all(path.stat().st_size > least[path.suffix] for path in plots)
    assert (tmp_path / "out" / "sweep.parquet").is_file()


def test_a_drive_of_the_catalogue_in_two_numbers() -> None:
    # Long writes of 8 MiB pay the access time too.
    exact = numbers_of_model("matthews-baseline", Path(), None)
    assert (exact.access_ms, exact.bandwidth_mb_per_s) == pytest.approx((15.0, 5.0), rel=1e-2)
    drive = numbers_of_model("hp-97560", Path(), None)
    assert 3 < drive.access_ms < 30
    # 72 sectors a revolution of 15 ms pass the head at 2.46 MB/s at most.
    assert 1.5 < drive.bandwidth_mb_per_s < 2.46
    with pytest.raises(InputError, match="no device 'hp-97650'"):
        numbers_of_model("hp-97650", Path(), None)


BAD = {
    "no-bandwidth": (["--access-time", "1 ms"], "--bandwidth is missing"),
    "no-access-time": (["--bandwidth", "1 MB/s"], "--access-time is missing"),
    "no-unit": (["--bandwidth", "5", "--access-time", "1 ms"], "no unit that fits"),
    "two-disks": (["--device", "hp-97560", "--access-time", "1 ms"], "not both"),
    "unknown-device": (["--device", "hp-97650"], "no device 'hp-97650'"),
    "setting": (["--set", "layout.victm=greedy"], "did you mean 'victim'?"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_usage_is_one_line(
    agewell: Agewell, small_log: Path, tmp_path: Path, name: str
) -> None:
    options, reason = BAD[name]
    done = agewell("advise", "segment-size", small_log, "--out", "out", *options, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_experiment_without_a_log_is_refused(agewell: Agewell, experiment: Path) -> None:
    done = agewell("advise", "segment-size", experiment, check=False)
    assert done.returncode == 2
    assert "needs a table [layout]" in done.stderr
