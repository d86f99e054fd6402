"""`agewell sweep`: one table, the same whatever the number of processes, and resumable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import agewell as api
from agewell.errors import InputError, RunError
from agewell.experiments.configuration import Experiment
from agewell.experiments.simulation import resolve
from agewell.runs.axes import axes_of
from agewell.runs.sweeping import plan
from agewell.runs.workers import Job, Outcome, run_jobs
from conftest import COMMAND_SECONDS, SMALL_DEVICE, SMALL_EXPERIMENT, Agewell, heed_interrupts

AXES = ("--over", "run.seed=1,2", "--over", "queue.discipline=fcfs,sstf")


def results(folder: Path) -> list[Path]:
    return sorted((folder / "runs").glob("*/result.json"))


def test_the_bytes_do_not_depend_on_the_number_of_processes(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("sweep", experiment, *AXES, "--out", "one", "--jobs", "1", "--quiet")
    agewell("sweep", experiment, *AXES, "--out", "three", "--jobs", "3", "--quiet")
    one, three = tmp_path / "one", tmp_path / "three"
    assert (one / "sweep.parquet").read_bytes() == (three / "sweep.parquet").read_bytes()
    assert [path.relative_to(one) for path in results(one)] == [
        path.relative_to(three) for path in results(three)
    ]
    for ours, theirs in zip(results(one), results(three), strict=True):
        assert ours.read_bytes() == theirs.read_bytes()


def test_a_row_a_run_in_the_order_of_the_axes(experiment: Path, tmp_path: Path) -> None:
    made = api.sweep(
        experiment,
        {"run.seed": [1, 2], "queue.discipline": ["fcfs", "sstf"]},
        tmp_path / "sweep",
        jobs=2,
    )
    table = made.table()
    asked = list(zip(*(table[name].to_pylist() for name in table.column_names[:2]), strict=True))
    assert asked == [(1, "fcfs"), (1, "sstf"), (2, "fcfs"), (2, "sstf")]
    assert table == pq.read_table(tmp_path / "sweep" / "sweep.parquet")
    for row in table.to_pylist():
        alone = api.run(
            experiment,
            settings={"run.seed": row["run.seed"], "queue.discipline": row["queue.discipline"]},
        )
        assert {name: row[f"metrics.{name}"] for name in alone.metrics} == alone.metrics


def test_only_missing_runs_are_made_again(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("sweep", experiment, *AXES, "--out", "sweep", "--quiet")
    folder = tmp_path / "sweep"
    table = (folder / "sweep.parquet").read_bytes()
    kept = {path: path.stat().st_mtime_ns for path in results(folder)}
    gone = results(folder)[0]
    gone.unlink()
    (folder / "sweep.parquet").unlink()
    agewell("sweep", experiment, *AXES, "--out", "sweep", "--quiet")
    assert (folder / "sweep.parquet").read_bytes() == table
    assert gone.stat().st_mtime_ns != kept.pop(gone)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_more_values_keep_the_runs_that_are_there(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("sweep", experiment, "--over", "run.seed=1,2", "--out", "sweep", "--quiet")
    kept = {path: path.stat().st_mtime_ns for path in results(tmp_path / "sweep")}
    agewell("sweep", experiment, "--over", "run.seed=1,2,3", "--out", "sweep", "--quiet")
    assert len(results(tmp_path / "sweep")) == 3
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert pq.read_table(tmp_path / "sweep" / "sweep.parquet").num_rows == 3


def test_a_changed_input_is_not_answered_from_old_runs(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("sweep", experiment, "--over", "run.seed=1,2", "--out", "sweep", "--quiet")
    before = pq.read_table(tmp_path / "sweep" / "sweep.parquet")["metrics.mean_service_ms"]
    (tmp_path / "small.toml").write_text(SMALL_DEVICE.replace("10.0", "20.0"))
    agewell("sweep", experiment, "--over", "run.seed=1,2", "--out", "sweep", "--quiet")
    after = pq.read_table(tmp_path / "sweep" / "sweep.parquet")["metrics.mean_service_ms"]
    assert all(
        new > old + 9 for old, new in zip(before.to_pylist(), after.to_pylist(), strict=True)
    )


def test_a_folder_with_something_else_in_it_is_refused(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    done = agewell("sweep", experiment, *AXES, "--out", ".", check=False)
    assert done.returncode == 2
    assert "is not empty and holds no sweep" in done.stderr
    assert not (tmp_path / "runs").exists()


OTHER_SWEEPS = {
    "axes": (["--over", "queue.discipline=fcfs,sstf"], "holds a sweep over run.seed, not queue."),
    "one-more-axis": (
        ["--over", "run.seed=1,2,3", "--over", "queue.discipline=fcfs"],
        "holds a sweep over run.seed, not run.seed, queue.discipline",
    ),
    "fewer-values": (["--over", "run.seed=1,2"], "1 of 3 runs are not among these"),
    "settings": (
        ["--over", "run.seed=1,2,3", "--set", "queue.discipline=sstf"],
        "3 of 3 runs are not among these",
    ),
}


@pytest.mark.parametrize("name", OTHER_SWEEPS)
def test_the_folder_of_another_sweep_is_refused_and_left_as_it_is(
    agewell: Agewell, experiment: Path, tmp_path: Path, name: str
) -> None:
    agewell("sweep", experiment, "--over", "run.seed=1,2,3", "--out", "sweep", "--quiet")
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    words, complaint = OTHER_SWEEPS[name]
    done = agewell("sweep", experiment, *words, "--out", "sweep", "--quiet", check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
    after = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    assert after == before


def test_a_sweep_that_gains_values_keeps_its_table_until_the_new_one_is_there(
    experiment: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sweep"
    api.sweep(experiment, {"run.seed": [1, 2]}, folder)
    table = (folder / "sweep.parquet").read_bytes()

    def interrupted(done: int, total: int) -> None:
        assert total == 3
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.sweep(experiment, {"run.seed": [1, 2, 3]}, folder, progress=interrupted)
    assert (folder / "sweep.parquet").read_bytes() == table


def test_a_run_that_fails_is_a_row_with_its_error(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    words = ("sweep", experiment, "--over", "queue.discipline=fcfs,cscan,sstf")
    done = agewell(*words, "--out", "sweep", "--quiet", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("agewell: error: 1 of 3 runs failed, first cscan: ")
    assert done.stderr.count("\n") == 1
    header, _, failed, _ = done.stdout.splitlines()
    assert header.split()[-1] == "error"
    assert "cscan" in failed
    assert failed.endswith("'cscan' is not known; did you mean 'c-scan'?")
    table = pq.read_table(tmp_path / "sweep" / "sweep.parquet")
    rows = table.to_pylist()
    assert [row["status"] for row in rows] == ["ok", "failed", "ok"]
    assert [row["error"] is None for row in rows] == [True, False, True]
    numbers = [name for name in table.column_names if name.startswith("metrics.")]
    assert numbers
    assert all(rows[1][name] is None for name in numbers)
    # The same bytes when it is asked again, and by another number of processes.
    bytes_before = (tmp_path / "sweep" / "sweep.parquet").read_bytes()
    again = agewell(*words, "--out", "sweep", "--jobs", "1", "--json", "--quiet", check=False)
    assert again.returncode == 1
    assert [row["status"] for row in json.loads(again.stdout)["runs"]] == ["ok", "failed", "ok"]
    assert (tmp_path / "sweep" / "sweep.parquet").read_bytes() == bytes_before
    left = tmp_path / "sweep" / "runs" / rows[1]["run"]
    assert [path.name for path in left.iterdir()] == ["error.json"]
    failure = json.loads((left / "error.json").read_text())
    assert failure["error"] == rows[1]["error"]
    assert failure["kind"] == "input"
    assert failure["config"]["queue"]["discipline"] == "cscan"


def test_bad_input_in_every_run_is_bad_input(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    words = ("sweep", experiment, "--over", "queue.dicipline=fcfs,sstf", "--out", "sweep")
    done = agewell(*words, "--quiet", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("agewell: error: run fcfs: ")
    assert "did you mean" in done.stderr
    assert not (tmp_path / "sweep" / "sweep.parquet").exists()


def test_json_holds_every_row(agewell: Agewell, experiment: Path) -> None:
    done = agewell("sweep", experiment, *AXES, "--out", "sweep", "--quiet", "--json")
    document = json.loads(done.stdout)
    assert document["axes"] == ["run.seed", "queue.discipline"]
    assert len(document["runs"]) == 4
    assert done.stderr == ""


def test_an_interrupted_sweep_goes_on_where_it_was(experiment: Path, tmp_path: Path) -> None:
    experiment.write_text(SMALL_EXPERIMENT.replace("requests = 2000", "requests = 300000"))
    command = [sys.executable, "-m", "agewell", "sweep", str(experiment), "--quiet", "--jobs", "2"]
    command += ["--over", f"run.seed={','.join(map(str, range(1, 13)))}", "--out", "sweep"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    folder = tmp_path / "sweep"
    deadline = time.monotonic() + COMMAND_SECONDS
    while not results(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=COMMAND_SECONDS)
    assert complaint == "agewell: error: interrupted\n"
    assert process.returncode == 130
    kept = {path: path.stat().st_mtime_ns for path in results(folder)}
    assert 0 < len(kept) < 12
    assert not (folder / "sweep.parquet").exists()
    subprocess.run(command, cwd=tmp_path, check=True)
    assert len(results(folder)) == 12
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert pq.read_table(folder / "sweep.parquet").num_rows == 12


def children_of(process: int) -> set[int]:
    found: set[int] = set()
    for thread in Path(f"/proc/{process}/task").iterdir():
        found |= {int(child) for child in (thread / "children").read_text().split()}
    return found


def is_alive(process: int) -> bool:
    """Whether it runs; one that has ended and that nobody has asked about does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def wait_until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + COMMAND_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


COMMANDS_WITH_WORKERS = {
    "sweep": ["sweep", "experiment.toml", "--over", "run.seed=1,2", "--out", "out"],
    "compare": [
        *("compare", "--workload", "load.toml", "--device", "small.toml", "--out", "out"),
        *("--layouts", "lfs,sequential"),
    ],
    "advise": ["advise", "--workload", "load.toml", "--device", "small.toml", "--out", "out"],
    "reproduce": ["reproduce", "matthews-1999/figure-5-6", "--out", "out"],
}
LONG_LOAD = """\
[workload]
kind = "hot-cold"
utilization = 0.8
blocks = 3000
updates_per_block = 1000000
[layout]
kind = "lfs"
[device]
model = "small.toml"
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("sweep", signal.SIGTERM),
        ("sweep", signal.SIGHUP),
        ("sweep", signal.SIGKILL),
        ("compare", signal.SIGTERM),
        ("advise", signal.SIGKILL),
        ("reproduce", signal.SIGTERM),
        ("reproduce", signal.SIGKILL),
    ],
)
def test_workers_die_with_their_parent(
    experiment: Path, tmp_path: Path, name: str, how: signal.Signals
) -> None:
    experiment.write_text(SMALL_EXPERIMENT.replace("requests = 2000", "requests = 4000000000"))
    (tmp_path / "load.toml").write_text(LONG_LOAD)
    # Whoever runs the tests may ignore hang-ups (nohup), which a child would inherit.
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "agewell", *COMMANDS_WITH_WORKERS[name], "--quiet", "--jobs=2"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGHUP, inherited)
    try:
        # A folder of a run is there just before its simulation begins.
        wait_until(lambda: len(list(tmp_path.rglob("runs/*"))) >= 2)
        workers = children_of(process.pid)
        assert len(workers) == 2
        process.send_signal(how)
        _, complaint = process.communicate(timeout=COMMAND_SECONDS)
    finally:
        process.kill()
    wait_until(lambda: not any(map(is_alive, workers)))
    if how is signal.SIGKILL:
        return
    assert complaint == "agewell: error: terminated\n"
    assert process.returncode == 128 + how


def test_a_worker_that_is_killed_fails_its_own_run_only(experiment: Path, tmp_path: Path) -> None:
    large = resolve(experiment, settings={"workload.requests": 4_000_000_000})
    small = resolve(experiment)

    def job(name: str, asked: Experiment) -> Job:
        out = tmp_path / name
        return Job(asked.configuration, str(asked.base), str(out), str(tmp_path))

    def kill_the_worker_once_it_is_busy() -> None:
        while not (tmp_path / "large").is_dir():
            time.sleep(0.01)
        for thread in Path("/proc/self/task").iterdir():
            for child in (thread / "children").read_text().split():
                os.kill(int(child), signal.SIGKILL)

    killer = threading.Thread(target=kill_the_worker_once_it_is_busy)
    killer.start()
    outcomes: dict[int, Outcome] = {}
    run_jobs([job("large", large), job("small", small)], 1, outcomes.__setitem__)
    killer.join()
    assert outcomes == {
        0: Outcome("the worker process ended with status -9", is_worker_lost=True),
        1: Outcome(),
    }
    assert not (tmp_path / "large" / "result.json").exists()
    assert (tmp_path / "small" / "result.json").exists()


def test_a_plan_needs_axes_with_values() -> None:
    empty = Experiment({}, Path())
    with pytest.raises(InputError, match="at least one axis"):
        plan(empty, axes_of({}))
    with pytest.raises(InputError, match=r"the axis run\.seed has no values"):
        plan(empty, axes_of({"run.seed": []}))


def test_a_run_that_failed_is_tried_again(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(jobs: list[Job], workers: int, finished: Callable[[int, Outcome], None]) -> None:
        finished(0, Outcome("the disk is full"))
        run_jobs(jobs[1:], workers, lambda index, outcome: finished(index + 1, outcome))

    with monkeypatch.context() as broken:
        broken.setattr("agewell.runs.keyed_runs.run_jobs", half)
        swept = api.sweep(experiment, {"run.seed": [1, 2]}, tmp_path / "sweep")
    assert swept.failed == [
        {"run.seed": 1, "run": swept.rows["run"][0].as_py(), "error": "the disk is full"}
    ]
    assert repr(swept) == "Sweep(axes=['run.seed'], runs=2, failed=1)"
    assert swept.metrics["requests"][0] is None
    assert swept.plot("requests") is not None
    again = api.sweep(experiment, {"run.seed": [1, 2]}, tmp_path / "sweep")
    assert again.failed == []
    assert None not in again.metrics["requests"]
    assert not list((tmp_path / "sweep").rglob("error.json"))


def test_a_sweep_of_which_nothing_can_be_made_is_an_error(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(jobs: list[Job], _workers: int, finished: Callable[[int, Outcome], None]) -> None:
        for index in range(len(jobs)):
            finished(index, Outcome("the disk is full"))

    monkeypatch.setattr("agewell.runs.keyed_runs.run_jobs", none)
    with pytest.raises(RunError, match="run 1: the disk is full; no other run could be made"):
        api.sweep(experiment, {"run.seed": [1, 2]}, tmp_path / "sweep")
    assert not (tmp_path / "sweep" / "sweep.parquet").exists()


def test_the_table_on_the_terminal(
    agewell: Agewell, experiment: Path, snapshot: Callable[[str, str], None]
) -> None:
    done = agewell("sweep", experiment, *AXES, "--out", "sweep", "--quiet")
    snapshot("sweep.txt", done.stdout)
