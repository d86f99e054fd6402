"""Worker processes, and the jobs that they make on this machine.

A worker is a Python process in `work`: it reads one job a line from standard input and answers
each with one line on standard output, both JSON. `WorkerProcess` is its parent's end. `run_jobs`
holds one thread a worker; on a cluster the parent is a worker of Dask (`dask_cluster`). Plain
processes rather than a pool from the standard library: a pool either hangs when a worker is killed
or cannot be stopped at once, and needs an importable main module, which a notebook is not.

An interrupt ends the workers at once. So does the death of the parent, whatever it dies of: a
thread of the worker waits at standard input, which ends with the last process that holds its other
end, and only the parent does. On Linux `PR_SET_PDEATHSIG` would notify as well, but of the thread
that started the worker, and not at all if the parent was gone before it was asked for. A run that
was under way leaves no result, for results are renamed into place.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agewell.errors import AgewellError, InputError
from agewell.experiments.configuration import Experiment
from agewell.version import __version__, build

WANTED_SECONDS = 0.1
"""Time between two looks at whether a job is still wanted; chosen by us: at once, to a person."""


@dataclass(frozen=True, slots=True)
class Job:
    """One simulation to make; paths are absolute.

    Attributes:
        configuration: What is asked.
        base: Folder that its relative paths start from.
        out: Folder that its record is left in.
        catalogue: Folder of device files; empty for the one that comes with agewell.
        build: Of agewell, which alone may make it; empty for any.
    """

    configuration: dict[str, Any]
    base: str
    out: str
    catalogue: str
    build: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `error` is None, or the one line that says what is wrong.

    Attributes:
        error: What is wrong, or None.
        is_input_error: Whether the experiment is to blame.
        is_worker_lost: Whether no answer came at all, so that nothing is known of the experiment.
        is_worker_unfit: Whether the worker must not make any of these jobs, whichever it is.
    """

    error: str | None = None
    is_input_error: bool = False
    is_worker_lost: bool = False
    is_worker_unfit: bool = False

    @property
    def kind(self) -> str:
        """Of a failure: `lost` where nothing is known, `input` or `run` by what is to blame."""
        if self.is_worker_lost:
            return "lost"
        return "input" if self.is_input_error else "run"


Finished = Callable[[int, Outcome], None]
"""Called with the index of a job and its outcome, in order of completion."""

RunJobs = Callable[[Sequence[Job], int, Finished], None]
"""Makes every job, at most that many at once, as `run_jobs` does."""


def run_jobs(jobs: Sequence[Job], workers: int, finished: Finished) -> None:
    """Make every job, at most `workers` at once.

    Args:
        jobs: What to do; started in order.
        workers: Processes at once, at least 1.
        finished: Called in this thread with the index of a job and its outcome, in order of
            completion. If it raises, the workers are ended and the exception goes on.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(jobs)):
        waiting.put(index)
    outcomes: queue.SimpleQueue[tuple[int, Outcome]] = queue.SimpleQueue()
    crew = [_Worker(jobs, waiting, outcomes) for _ in range(min(workers, len(jobs)))]
    try:
        for worker in crew:
            worker.thread.start()
        for _ in jobs:
            finished(*outcomes.get())
    finally:
        for worker in crew:
            worker.stop()


class WorkerProcess:
    """The parent's end of a worker, whose process is started when the first job comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[str] | None = None

    def make(self, job: Job, is_wanted: Callable[[], bool] | None = None) -> Outcome:
        """Have a job made. If the process dies meanwhile, the next job gets a new one.

        Args:
            job: What to do.
            is_wanted: Asked every `WANTED_SECONDS` whether the job still is; if not, the process is
                ended.
        """
        try:
            process = self._running()
        except OSError as error:
            return Outcome(
                f"a worker process cannot be started: {error.strerror}", is_worker_lost=True
            )
        try:
            return _ask(process, job, is_wanted)
        except (OSError, ValueError):
            self.end()
            return Outcome(
                f"the worker process ended with status {process.returncode}", is_worker_lost=True
            )

    def stop(self) -> None:
        """End the process at once, in the midst of a job of another thread too, and any later."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """End the process and wait for it."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            # A job that was being written has no reader any more.
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _running(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", "from agewell.runs.workers import work; work()"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    # Ctrl-C in a terminal reaches the whole process group; the parent decides what
                    # it means.
                    start_new_session=True,
                )
                if self._stopped:
                    self._process.kill()
            return self._process


class _Worker:
    """One process and the thread that feeds it."""

    def __init__(
        self,
        jobs: Sequence[Job],
        waiting: queue.SimpleQueue[int],
        outcomes: queue.SimpleQueue[tuple[int, Outcome]],
    ) -> None:
        self._jobs = jobs
        self._waiting = waiting
        self._outcomes = outcomes
        self._stopped = False
        self._process = WorkerProcess()
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def stop(self) -> None:
        """End the process at once and wait for the thread."""
        self._stopped = True
        self._process.stop()
        if self.thread.ident is not None:
            self.thread.join()

    def _serve(self) -> None:
        try:
            while not self._stopped:
                try:
                    index = self._waiting.get_nowait()
                except queue.Empty:
                    break
                self._outcomes.put((index, self._process.make(self._jobs[index])))
        finally:
            self._process.end()


def _ask(process: subprocess.Popen[str], job: Job, is_wanted: Callable[[], bool] | None) -> Outcome:
    assert process.stdin is not None, "a worker is started with both pipes"
    assert process.stdout is not None, "a worker is started with both pipes"
    process.stdin.write(json.dumps(asdict(job)) + "\n")
    process.stdin.flush()
    # One line answers one job, so that nothing of it waits in the reader's own memory.
    if is_wanted:
        with selectors.DefaultSelector() as answers:
            answers.register(process.stdout, selectors.EVENT_READ)
            while not answers.select(WANTED_SECONDS):
                if not is_wanted():
                    process.kill()
    line = process.stdout.readline()
    if not line:
        raise OSError("the worker closed its end")
    return Outcome(**json.loads(line))


def why_unfit(wanted_build: str) -> Outcome | None:
    """Why this process must not make runs that another build asks for; None if it may."""
    if wanted_build in ("", build()):
        return None
    return Outcome(
        f"has agewell {__version__}, build {build()}, and the runs are asked for by build "
        f"{wanted_build}; install the same agewell at both ends, then give the same command again",
        is_worker_unfit=True,
    )


def work() -> None:
    """Be a worker: answer jobs on standard input until it ends, and then end at once."""
    from agewell.experiments.simulation import run_experiment

    # There is nothing to clean up: what is half written has no name yet, or is taken over.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_DFL)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_take_jobs, args=(lines,), daemon=True).start()
    while True:
        job = Job(**json.loads(lines.get()))
        try:
            experiment = Experiment(job.configuration, Path(job.base))
            outcome = why_unfit(job.build) or Outcome()
            if outcome.error is None:
                run_experiment(experiment, Path(job.out), job.catalogue or None)
        except AgewellError as error:
            outcome = Outcome(str(error), isinstance(error, InputError))
        # The parent may be gone by now; the other thread sees to what that means.
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
            sys.stdout.flush()


def _take_jobs(lines: queue.SimpleQueue[str]) -> None:
    """Take what the parent asks for; with the parent end this process, in the midst of a job too.

    A simulation runs without the interpreter's lock, so that this thread comes to it at any time.
    """
    try:
        # A reader of its own: Python closes `sys.stdin` when it ends, and would wait for this one.
        with os.fdopen(os.dup(0), encoding="utf-8") as jobs:
            for line in jobs:
                lines.put(line)
    finally:
        os._exit(os.EX_OK)
