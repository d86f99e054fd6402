"""The jobs of a sweep on a Dask cluster: one of this process, or one that is there.

    agewell -> scheduler -> worker of Dask -> child (`workers.work`) -> the sweep's folder

Each task is one child process of the worker that has it: Dask can neither stop a native call nor
outlive a crash in one, and a child can be killed. So a crash of a run is its failed row, and the
worker goes on. A worker that dies takes its children along, for their standard input ends, and Dask
gives its tasks to another; results are renamed into place, so that a run made twice is there once.

Results and inputs go through a folder that all machines share under one path, not through the
scheduler: the record of a run is files, and a recorded trace is longer than a scheduler should
hold. Before a worker makes anything it reads a token back from that folder and compares builds of
agewell; one that fails either ends the sweep with one line.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import files
from agewell.errors import InputError, RunError
from agewell.runs.workers import Finished, Job, Outcome, RunJobs, WorkerProcess, why_unfit
from agewell.version import __version__, build

if TYPE_CHECKING:
    from distributed import Client, Future

WORKERS_AWAITED_SECONDS = 60.0
"""How long a sweep waits while there is no worker at all; chosen by us: longer than one takes to be
started again."""

CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer; chosen by us."""

_LOOK_SECONDS = 1.0
"""Time between two looks at whether there are workers; chosen by us."""

_SENT_AT_ONCE = 200
"""Tasks of one message to the scheduler; chosen by us: below what Dask warns of."""

_MEETING_FILE = "workers"
"""Beside which the token lies."""

_WANTED_STATES = frozenset({"ready", "executing", "long-running", "resumed", "constrained"})
"""Those that a worker has a task in that someone waits for; of a task that was cancelled, or whose
client is gone, it says `cancelled` or nothing."""


@dataclass(frozen=True, slots=True)
class _Meeting:
    """What a worker must show before it makes a run."""

    token: str
    path: str
    build: str


def on_dask(folder: Path, scheduler: str | None = None, at_once: int | None = None) -> RunJobs:
    """What makes jobs on a Dask cluster.

    Args:
        folder: That the jobs leave their records in; every worker must see it under the same path.
        scheduler: Its address, such as `tcp://10.0.0.1:8786`; without one, a cluster of this
            process is made, which makes as many jobs at once as it is asked for.
        at_once: Jobs at once on an existing cluster; as many as its workers have threads by
            default.

    Raises:
        InputError: Dask is not installed.
    """
    try:
        import distributed  # noqa: F401 (found out now, before anything is begun)
    except ImportError as error:
        raise InputError(
            "Dask is not installed: pip install 'agewell[dask]', here and on every worker"
        ) from error

    def run_jobs(jobs: Sequence[Job], workers: int, finished: Finished) -> None:
        if not jobs:
            return
        with _quiet(), _connected(scheduler, workers) as client, _meeting(folder) as meeting:
            where = scheduler or "the cluster"
            _require_fit(client, meeting)
            window = len(jobs) if scheduler is None else at_once or len(jobs)
            _Round(client, where, meeting, jobs, finished).run(window)

    return run_jobs


class _Round:
    """The tasks of one call, and those of them that are under way."""

    def __init__(
        self,
        client: Client,
        where: str,
        meeting: _Meeting,
        jobs: Sequence[Job],
        finished: Finished,
    ) -> None:
        self._client = client
        self._where = where
        self._meeting = json.dumps(asdict(meeting))
        self._name = f"agewell-{meeting.token}"
        self._jobs = jobs
        self._finished = finished
        self._ended: queue.SimpleQueue[Future[str]] = queue.SimpleQueue()
        self._under_way: dict[str, tuple[int, Future[str]]] = {}
        self._sent = 0

    def run(self, window: int) -> None:
        """Make every job, at most `window` at a time; if it is interrupted, cancel what is left."""
        try:
            self._send(window)
            while self._under_way:
                index, future = self._under_way.pop(str(self._next().key))
                outcome = self._outcome(future)
                future.release()  # type: ignore[no-untyped-call]
                self._finished(index, outcome)
                self._send(1)
        finally:
            left = [future for _, future in self._under_way.values()]
            if left:
                # Workers then end the children of those that run; a scheduler that is gone has
                # nothing to cancel.
                with contextlib.suppress(Exception):
                    self._client.cancel(left, force=True)  # type: ignore[no-untyped-call]

    def _send(self, count: int) -> None:
        last = min(self._sent + count, len(self._jobs))
        while self._sent < last:
            some = range(self._sent, min(self._sent + _SENT_AT_ONCE, last))
            keys = [f"{self._name}-{index}" for index in some]
            texts = [json.dumps(asdict(self._jobs[index])) for index in some]
            futures = self._client.map(
                _task(), texts, keys, [self._meeting] * len(texts), key=keys, pure=False
            )
            for index, key, future in zip(some, keys, futures, strict=True):
                self._under_way[key] = (index, future)
                future.add_done_callback(self._ended.put)  # type: ignore[no-untyped-call]
            self._sent = some.stop

    def _next(self) -> Future[str]:
        """The next task that has ended.

        Raises:
            RunError: There is no worker for too long, or no scheduler any more.
        """
        alone_since: float | None = None
        while True:
            with contextlib.suppress(queue.Empty):
                return self._ended.get(timeout=_LOOK_SECONDS)
            if self._client.status != "running":
                raise RunError(f"{self._where}: {_GONE}")
            if self._client.scheduler_info()["workers"]:
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > WORKERS_AWAITED_SECONDS:
                raise RunError(
                    f"{self._where}: has had no worker for {WORKERS_AWAITED_SECONDS:.0f} s; start "
                    f"some with 'dask worker {self._where}', then give the same command again"
                )

    def _outcome(self, future: Future[str]) -> Outcome:
        """What became of a task that has ended.

        Raises:
            RunError: The scheduler is gone.
        """
        from distributed import KilledWorker

        try:
            answer = json.loads(future.result())
        except KilledWorker as error:
            # Its run is not to blame, for that is in a child; but Dask tries no further.
            return Outcome(
                f"{error.allowed_failures + 1} workers ended one after another while they had "
                "this run",
                is_worker_lost=True,
            )
        except Exception as error:
            raise RunError(f"{self._where}: {_GONE}") from error
        if "lacks" in answer:
            return Outcome(f"worker {_no_agewell(answer['lacks'])}", is_worker_unfit=True)
        return Outcome(**answer)


_GONE = (
    "the scheduler is gone; the finished runs are kept, the same command makes the others when "
    "there is one"
)


def _task() -> Callable[[str, str, str], str]:
    """What is sent to workers: `make_job`, found there.

    It is sent by value, as functions within functions are. One that is sent by name ends a worker
    of Dask that does not know it, and that worker is perhaps needed by others.
    """

    def make(text: str, key: str, meeting_text: str) -> str:
        try:
            from agewell.runs.dask_cluster import make_job
        except ImportError as error:
            from json import dumps

            from distributed import get_worker

            return dumps({"lacks": f"{get_worker().address}: {error}"})
        return make_job(text, key, meeting_text)

    return make


def make_job(text: str, key: str, meeting_text: str) -> str:
    """Make a job in a child; what a worker of Dask does.

    Args:
        text: The job, as JSON.
        key: Of the task.
        meeting_text: What to show first, as JSON.

    Returns:
        The outcome, as JSON.
    """
    from distributed import get_worker
    from distributed.core import Status

    worker = get_worker()
    why = why_unfit_here(meeting_text)
    if why:
        outcome = Outcome(f"worker {worker.address}: {why}", is_worker_unfit=True)
        return json.dumps(asdict(outcome))

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        if task is None or task.state not in _WANTED_STATES:
            return False
        return worker.status in (Status.running, Status.paused)

    child = WorkerProcess()
    try:
        outcome = child.make(Job(**json.loads(text)), is_wanted)
    finally:
        child.end()
    if outcome.is_worker_unfit:
        outcome = replace(outcome, error=f"worker {worker.address}: {outcome.error}")
    return json.dumps(asdict(outcome))


def why_unfit_here(meeting_text: str) -> str:
    """Why this machine must make no run of a sweep; empty if it may."""
    meeting = _Meeting(**json.loads(meeting_text))
    other = why_unfit(meeting.build)
    if other is not None:
        return other.error or ""
    path = Path(meeting.path)
    try:
        shown = path.read_text(encoding="utf-8")
    except OSError as error:
        shown = error.strerror or str(error)
    if shown == meeting.token:
        return ""
    return (
        f"does not see {path.parent} as it is here; share the folder of the sweep, and those of "
        "its inputs, with every worker, under the same path"
    )


def _require_fit(client: Client, meeting: _Meeting) -> None:
    """Look at the workers that there are; those that come later are looked at with each task.

    Raises:
        RunError: One of them must not make these runs.
    """
    answers = client.run(why_unfit_here, json.dumps(asdict(meeting)), on_error="return")
    for address, answer in sorted(answers.items()):
        if isinstance(answer, OSError):
            continue  # it has just gone
        if isinstance(answer, Exception):
            raise RunError(f"worker {_no_agewell(f'{address}: {answer}')}") from answer
        if answer:
            raise RunError(f"worker {address}: {answer}")


def _no_agewell(why: str) -> str:
    return (
        f"{why}; it can make no run before agewell {__version__}, build {build()}, is installed "
        "there"
    )


@contextlib.contextmanager
def _meeting(folder: Path) -> Iterator[_Meeting]:
    """A token in the folder, for as long as workers are asked for it."""
    with files.held(folder.resolve() / _MEETING_FILE) as path:
        token = uuid.uuid4().hex
        try:
            path.write_text(token, encoding="utf-8")
        except OSError as error:
            raise RunError(f"{path}: cannot be written: {error.strerror or error}") from error
        yield _Meeting(token, str(path), build())


@contextlib.contextmanager
def _connected(scheduler: str | None, workers: int) -> Iterator[Client]:
    """A client of a scheduler that is there, or of a cluster that lasts as long as the client.

    Raises:
        RunError: The scheduler does not answer.
        InputError: Its address is none.
    """
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as open_ones:
        made: Any = scheduler
        if scheduler is not None:
            _require_address(scheduler)
        else:
            # Its worker is this process: what could crash is in the children anyhow, and neither
            # an importable main module nor seconds of starting are needed.
            made = open_ones.enter_context(
                LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=1,
                    threads_per_worker=workers,
                    processes=False,
                    memory_limit=0,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            )
        try:
            client = Client(  # type: ignore[no-untyped-call]
                made, timeout=CONNECT_SECONDS, set_as_default=False
            )
        except OSError as error:
            raise RunError(
                f"{scheduler}: no scheduler answers there; start one with 'dask scheduler'"
            ) from error
        yield open_ones.enter_context(client)


def _require_address(scheduler: str) -> None:
    """Look at an address before a client does, which would wait for its end.

    Raises:
        InputError: It is none.
    """
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, location = parse_address(scheduler)
        get_backend(scheme)
        parse_host_port(location)
    except ValueError as error:
        raise InputError(
            f"the scheduler '{scheduler}': {error}; it is an address such as tcp://10.0.0.1:8786"
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what Dask says of connections that end; what matters of it is an error."""
    import distributed  # noqa: F401 (which sets up its logging)

    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"distributed\b.*")
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
