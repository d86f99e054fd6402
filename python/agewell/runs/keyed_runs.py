"""Runs in a folder, each under a hash of what was asked, so that none is made twice.

    FOLDER/runs/<key>/    one run, as `agewell run --out` leaves it; of one that failed `error.json`

The key covers the configuration, the version and the build of agewell, so that no answer of other
code is taken for this one's; a run is there when its folder holds a result and every input still
has the bytes that the result was made from. Sweeps, comparisons, advice and studies all keep their
runs so, and therefore go on where they were interrupted.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agewell import files
from agewell.errors import RunError
from agewell.experiments.configuration import (
    Experiment,
    canonical_json,
    input_file,
    read_json,
    recorded_inputs,
    sha256_of_file,
)
from agewell.experiments.simulation import RESULT_FILE, run_experiment
from agewell.files import catalogue
from agewell.runs.workers import Job, Outcome, RunJobs, run_jobs
from agewell.values import documents
from agewell.values.metrics import mechanisms
from agewell.version import __version__, build

_KEY_CHARACTERS = 16

ERROR_FILE = "error.json"
"""Why a run has failed, in the folder of a run without a result. It does not count as one: the run
is tried again when it is asked for again."""


SEEN_SECONDS = 60.0
"""What may pass until a result that another machine has written is seen here; chosen by us: twice
what network file systems keep names for."""

Progress = Callable[[int, int], None]
"""Called with the number of runs done and of all runs."""


@dataclass(frozen=True, slots=True)
class KeyedRun:
    """One run that is asked for, and the name that its folder has."""

    experiment: Experiment
    key: str

    @classmethod
    def of(cls, experiment: Experiment, within: str = "") -> KeyedRun:
        """The run of an experiment.

        Args:
            experiment: What is asked.
            within: Which folder its relative paths start from, where one folder of runs holds those
                of several.
        """
        asked = {"version": __version__, "build": build(), "config": experiment.configuration}
        if within:
            asked["within"] = within
        key = hashlib.sha256(canonical_json(asked).encode()).hexdigest()[:_KEY_CHARACTERS]
        return cls(experiment, key)

    def folder(self, root: Path) -> Path:
        """Where its record lies."""
        return root / "runs" / self.key

    def document(self, root: Path) -> dict[str, Any]:
        """Its result.

        Raises:
            InputError: There is none, or it is damaged.
        """
        document: dict[str, Any] = read_json(self.folder(root) / RESULT_FILE, "a result")
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a run that was asked for.

    Attributes:
        run: The run.
        document: Its result; None if it could not be done.
        cannot: Why not, or empty.
    """

    run: KeyedRun
    document: Mapping[str, Any] | None
    cannot: str = ""

    @property
    def metrics(self) -> Mapping[str, Any] | None:
        """Of its run."""
        if self.document is None:
            return None
        metrics: Mapping[str, Any] = self.document["metrics"]
        return metrics

    @property
    def disk_seconds(self) -> float:
        """Total disk time; infinite if it could not be done."""
        return float("inf") if self.metrics is None else float(self.metrics["disk_seconds"])

    @property
    def room_made_by(self) -> str | None:
        """Which mechanisms of collection ran, and for what share; None without a log."""
        return None if self.metrics is None else mechanisms(self.metrics)


class RunFolder:
    """A folder of runs, and how those that it lacks are made."""

    def __init__(
        self,
        root: Path,
        catalogue_directory: Path | str | None = None,
        jobs: int | None = None,
        hashes: dict[Path, str] | None = None,
        elsewhere: RunJobs | None = None,
    ) -> None:
        """The folder is made if needed.

        Args:
            root: The folder.
            catalogue_directory: Folder of device files to use instead of the catalogue.
            jobs: Processes at once; one a processor by default.
            hashes: Of inputs, by file, where several folders share them; each is read once.
            elsewhere: What makes runs in place of processes on this machine.
        """
        self.root = files.make_folder(root)
        self._devices = catalogue.directory(catalogue_directory)
        self._own_devices = catalogue_directory is not None
        self._jobs = jobs or os.cpu_count() or 1
        self._hashes = {} if hashes is None else hashes
        self._elsewhere = elsewhere

    def answers(self, runs: Sequence[KeyedRun], progress: Progress | None = None) -> list[Answer]:
        """Every run's result, or why it cannot be done; arguments are those of `make`.

        Raises:
            RunError: A worker process was lost, so that nothing is known of its run.
        """
        outcomes = self.make(runs, progress)
        lost = [index for index, outcome in enumerate(outcomes) if outcome.is_worker_lost]
        if lost:
            raise RunError(
                f"{len(lost)} of {len(runs)} runs were lost, first {runs[lost[0]].key}: "
                f"{outcomes[lost[0]].error}; "
                "the finished runs are kept, the same command makes the others"
            )
        return [
            Answer(run=run, document=None, cannot=outcome.error)
            if outcome.error
            else Answer(run=run, document=run.document(self.root))
            for run, outcome in zip(runs, outcomes, strict=True)
        ]

    def make(
        self,
        runs: Sequence[KeyedRun],
        progress: Progress | None = None,
        failed: Callable[[int, Outcome], None] | None = None,
    ) -> list[Outcome]:
        """Make every run that is not there yet, in worker processes.

        Args:
            runs: Which; one that stands there twice is made once.
            progress: Called after each run.
            failed: Called as soon as a run has failed, with its index and how; if it raises, no
                further run is made and the exception goes on.

        Returns:
            How each run ended: without an error where it is there.

        Raises:
            RunError: A worker must not make these runs, or made one of other inputs.
        """
        outcomes = [Outcome()] * len(runs)
        places: dict[str, list[int]] = {}
        for index, run in enumerate(runs):
            if not self.has(run):
                places.setdefault(run.key, []).append(index)
        work = list(places.values())
        done = len(runs) - sum(map(len, work))
        if progress is not None:
            progress(done, len(runs))

        def finished(index: int, outcome: Outcome) -> None:
            nonlocal done
            if outcome.is_worker_unfit:
                raise RunError(f"{outcome.error}")
            if self._elsewhere is not None and outcome.error is None:
                self._require_here(runs[work[index][0]])
            for place in work[index]:
                outcomes[place] = outcome
            self._note(runs[work[index][0]], outcome)
            if outcome.error is not None and failed is not None:
                failed(work[index][0], outcome)
            done += len(work[index])
            if progress is not None:
                progress(done, len(runs))

        make_all = self._elsewhere or run_jobs
        make_all([self._job(runs[same[0]]) for same in work], self._jobs, finished)
        return outcomes

    def made_here(self, run: KeyedRun) -> dict[str, Any]:
        """The result of one run, made in this process if it is not there.

        Raises:
            InputError: The experiment is bad.
            RunError: The run failed.
        """
        if not self.has(run):
            run_experiment(run.experiment, run.folder(self.root), self._devices)
        return run.document(self.root)

    def has(self, run: KeyedRun) -> bool:
        """Whether the run has a result, and its inputs are as they were."""
        path = run.folder(self.root) / RESULT_FILE
        if not path.is_file():
            return False
        inputs = recorded_inputs(read_json(path, "a result of agewell run"), path)
        return all(
            self._sha256(name, run.experiment.base) == sha256 for name, sha256 in inputs.items()
        )

    def _require_here(self, run: KeyedRun) -> None:
        """Make sure of a run that another machine says it has left here.

        Raises:
            RunError: It does not come to be seen, or its inputs are not those seen here.
        """
        folder = run.folder(self.root)
        until_seconds = time.monotonic() + SEEN_SECONDS
        # A network file system keeps names for a while, those that are not there too; to list a
        # folder makes it ask again.
        while RESULT_FILE not in os.listdir(folder):  # noqa: PTH208 (names, many times)
            if time.monotonic() > until_seconds:
                raise RunError(
                    f"{folder / RESULT_FILE}: a worker says that it has written it, and it is not "
                    "seen here; the folder must be shared with every worker, under the same path"
                )
            time.sleep(SEEN_SECONDS / 1000)
        if not self.has(run):
            raise RunError(
                f"{folder}: a worker made this run from other inputs than lie here; share their "
                "folder with every worker, under the same path"
            )

    def _note(self, run: KeyedRun, outcome: Outcome) -> None:
        """Leave beside the place of its result why a run failed; take it away if it did not."""
        path = run.folder(self.root) / ERROR_FILE
        if outcome.error is None:
            path.unlink(missing_ok=True)
            return
        files.make_folder(path.parent)
        fields = {
            "version": __version__,
            "build": build(),
            "config": run.experiment.configuration,
            "error": outcome.error,
            "kind": outcome.kind,
        }
        files.write_json(path, documents.document("run-error", fields))

    def _sha256(self, name: str, base: Path) -> str | None:
        """Of the file that an experiment means by a name; None if it is not there."""
        source = input_file(name, base, self._devices)
        if source is not None and source not in self._hashes:
            self._hashes[source] = sha256_of_file(source)
        return None if source is None else self._hashes[source]

    def _job(self, run: KeyedRun) -> Job:
        return Job(
            configuration=run.experiment.configuration,
            base=str(run.experiment.base.resolve()),
            out=str(run.folder(self.root).resolve()),
            catalogue=str(self._devices.resolve()) if self._own_devices else "",
            build=build(),
        )
