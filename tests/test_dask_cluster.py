"""Sweeps on a Dask cluster: a real scheduler and workers of their own, on loopback.

What a run does is in a child of a worker, so that tests can kill either.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import agewell as api
from agewell.errors import RunError
from agewell.runs import dask_cluster
from agewell.version import build
from conftest import COMMAND_SECONDS, SMALL_EXPERIMENT, Agewell, heed_interrupts

pytest.importorskip("distributed")

# One cluster, in one process of the tests.
pytestmark = pytest.mark.xdist_group("cluster")

GRID = {"run.seed": [1, 2], "queue.discipline": ["fcfs", "sstf"]}
LONG = {"workload.requests": 4_000_000_000}


def wait_until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + COMMAND_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def children_of(process: int) -> set[int]:
    found: set[int] = set()
    for thread in Path(f"/proc/{process}/task").iterdir():
        found |= {int(child) for child in (thread / "children").read_text().split()}
    return found


class Cluster:
    """A scheduler and its workers, each a process without a nanny that would start it again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        self._processes = [self._started("scheduler", "--port=0", f"--scheduler-file={file}")]
        wait_until(lambda: file.is_file() and file.stat().st_size)
        self.address = str(json.loads(file.read_text())["address"])

    def _started(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    f"distributed.cli.dask_{arguments[0]}",
                    *arguments[1:],
                    "--host=127.0.0.1",
                    "--no-dashboard",
                ],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, **environment},
            )

    def add_workers(self, count: int) -> None:
        """Let workers join, and wait for them."""
        for _ in range(count):
            worker = self._started(
                "worker", self.address, "--no-nanny", "--nthreads=1", "--memory-limit=0"
            )
            self._processes.append(worker)
            self.workers.append(worker)
        wait_until(lambda: self.known() == len(self.workers))

    def known(self) -> int:
        """Workers that the scheduler knows."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            return len(client.scheduler_info()["workers"])

    def children(self) -> set[int]:
        """The runs that are under way."""
        return {child for worker in self.workers for child in children_of(worker.pid)}

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler with two workers."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.add_workers(2)
        yield made
    finally:
        made.end()


def test_the_same_bytes_as_by_processes_of_this_machine(
    cluster: Cluster, agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    words = ["sweep", experiment, "--over", "run.seed=1,2", "--over", "queue.discipline=fcfs,cscan"]
    ended = {}
    for name, where in {
        "local": ["--jobs=2"],
        "ours": ["--executor=dask", "--jobs=2"],
        "theirs": ["--scheduler", cluster.address],
    }.items():
        done = agewell(*words, *where, "--out", name, "--quiet", check=False)
        ended[name] = (done.returncode, done.stdout, done.stderr)
    assert ended["local"] == ended["ours"] == ended["theirs"]
    assert ended["local"][0] == 1  # one discipline is not known
    local = tmp_path / "local"
    files = [path.relative_to(local) for path in local.rglob("*") if path.is_file()]
    assert sum(path.name == "result.json" for path in files) == 2
    for name in ("ours", "theirs"):
        other = tmp_path / name
        assert {path.relative_to(other) for path in other.rglob("*") if path.is_file()} == set(
            files
        )
        for path in files:
            if path.name != "timing.json":
                assert (local / path).read_bytes() == (other / path).read_bytes(), path


def test_a_killed_child_is_a_failed_row(cluster: Cluster, experiment: Path, tmp_path: Path) -> None:
    victims: list[int] = []

    def kill_the_long_run() -> None:
        wait_until((tmp_path / "sweep" / "sweep.json").is_file)
        keys = json.loads((tmp_path / "sweep" / "sweep.json").read_text())["runs"]
        wait_until((tmp_path / "sweep" / "runs" / keys[0]).is_dir)
        for child in cluster.children():
            victims.append(child)
            os.kill(child, signal.SIGKILL)

    rows = [{"workload.requests": 4_000_000_000}, {"workload.requests": 2000}]
    killer = threading.Thread(target=kill_the_long_run)
    killer.start()
    swept = api.sweep(experiment, rows, tmp_path / "sweep", scheduler=cluster.address, jobs=1)
    killer.join()
    assert len(victims) == 1
    assert swept.rows["status"].to_pylist() == ["failed", "ok"]
    assert swept.failed[0]["error"] == "the worker process ended with status -9"
    assert cluster.known() == 2


def test_a_killed_worker_is_nothing(cluster: Cluster, experiment: Path, tmp_path: Path) -> None:
    settings = {"workload.requests": 600_000}
    grid = {"run.seed": [1, 2, 3]}

    halted: list[tuple[subprocess.Popen[bytes], int]] = []

    def halts_a_run() -> bool:
        for worker in cluster.workers:
            for child in children_of(worker.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGSTOP)
                    # One that had ended is no run under way.
                    if is_alive(child):
                        halted.append((worker, child))
                        return True
        return False

    def kill_a_busy_worker() -> None:
        wait_until(halts_a_run)
        [(worker, child)] = halted
        worker.kill()
        worker.wait()
        cluster.workers.remove(worker)
        os.kill(child, signal.SIGCONT)
        wait_until(lambda: not is_alive(child))

    killer = threading.Thread(target=kill_a_busy_worker)
    killer.start()
    theirs = api.sweep(
        experiment, grid, tmp_path / "theirs", settings=settings, scheduler=cluster.address
    )
    killer.join()
    assert len(cluster.workers) == 1
    cluster.add_workers(1)
    assert theirs.failed == []
    api.sweep(experiment, grid, tmp_path / "local", settings=settings)
    tables = [(tmp_path / name / "sweep.parquet").read_bytes() for name in ("theirs", "local")]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_runs_end_with_the_command_that_asks_for_them(
    cluster: Cluster, experiment: Path, tmp_path: Path, how: signal.Signals
) -> None:
    experiment.write_text(SMALL_EXPERIMENT.replace("requests = 2000", "requests = 4000000000"))
    command = [sys.executable, "-m", "agewell", "sweep", str(experiment), "--quiet"]
    command += ["--over", "run.seed=1,2,3,4", "--out", "sweep", "--scheduler", cluster.address]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    try:
        wait_until(lambda: len(list(tmp_path.glob("sweep/runs/*"))) == 2)
        children = cluster.children()
        assert len(children) == 2
        process.send_signal(how)
        _, complaint = process.communicate(timeout=COMMAND_SECONDS)
    finally:
        process.kill()
    wait_until(lambda: not any(map(is_alive, children)))
    assert cluster.known() == 2
    assert len(list(tmp_path.glob("sweep/runs/*"))) == 2  # those that waited were not begun
    if how is signal.SIGINT:
        assert (process.returncode, complaint) == (130, "agewell: error: interrupted\n")
        assert not list(tmp_path.glob("sweep/.*"))


@pytest.mark.parametrize("joins_later", [False, True])
def test_a_worker_of_another_build_is_refused(
    cluster: Cluster,
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    joins_later: bool,
) -> None:
    monkeypatch.setattr(dask_cluster, "build", lambda: "other")
    if joins_later:
        monkeypatch.setattr(dask_cluster, "_require_fit", lambda *_: None)
    with pytest.raises(RunError) as refused:
        api.sweep(experiment, GRID, tmp_path / "sweep", scheduler=cluster.address)
    said = str(refused.value)
    assert said.startswith("worker tcp://127.0.0.1:")
    assert f"build {build()}, and the runs are asked for by build other" in said
    assert "\n" not in said
    assert not list((tmp_path / "sweep").rglob("result.json"))


def test_a_folder_that_a_worker_does_not_see_is_refused(
    cluster: Cluster, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "_MEETING_FILE", "elsewhere/workers")
    monkeypatch.setattr(Path, "write_text", lambda *_, **_more: 0)
    with pytest.raises(
        RunError, match=f"does not see {tmp_path}/sweep/elsewhere as it is here; share"
    ):
        api.sweep(experiment, GRID, tmp_path / "sweep", scheduler=cluster.address)
