"""What a study may use: files, runs and a place to write to.

Runs are made once a command and kept under the study's folder: one at a time in this process, or
many at once in worker processes; either way a run that this command has made before is taken from
the cache of the context.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agewell.errors import InputError, RunError
from agewell.experiments.configuration import (
    Experiment,
    canonical_json,
    load,
    read_json,
    read_toml,
    with_settings,
)
from agewell.experiments.simulation import RESULT_FILE, run_experiment
from agewell.files import catalogue
from agewell.runs.workers import Job, Outcome, run_jobs
from agewell.version import build

Label = tuple[str | float, ...]
"""What tells a run apart from the others of its figure: `("clean", 95)`."""

_KEY_CHARACTERS = 12
"""48 bits of the hash: a study makes hundreds of runs, so two of the same name do not occur."""


@dataclass(frozen=True, slots=True)
class _Question:
    """One run that is asked for, and the name that its answer is kept under."""

    experiment: Experiment
    key: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a study may use: everything comes in through here, nothing is looked up behind it.

    Attributes:
        experiments: Folder of this paper: `experiments/<paper>`.
        out: Folder of this paper's output; it exists. Runs go to `runs/<key>` below it.
        examples: Folder of the recorded traces and demo experiments.
        data: Folders to search for inputs that are not part of the repository.
        progress: Called with the fraction done (0 to 1) and a few words.
        jobs: How many processes may run at once.
        cache: Results by key, kept between the figures of one command, so that two figures that
            share a run make it once.
    """

    experiments: Path
    out: Path
    examples: Path
    data: Sequence[Path]
    progress: Callable[[float, str], None]
    jobs: int = 1
    cache: dict[str, Any] = field(default_factory=dict)

    def input(self, file_name: str) -> Path:
        """Find an input by file name below the data folders.

        Args:
            file_name: Name without folders, `hplajw_1week.srt.zst`.

        Returns:
            Its path.

        Raises:
            InputError: It is in none of the folders; the message says what to do.
        """
        found = find_input(file_name, self.data)
        if found is None:
            raise InputError(missing_input(file_name, self.data))
        return found

    def experiment(self, figure: str) -> Path:
        """The experiment file of a figure, `experiments/<paper>/<figure>/experiment.toml`."""
        return self.experiments / figure / "experiment.toml"

    def expected(self, figure: str) -> dict[str, Any]:
        """The paper's numbers and tolerances of a figure, from its `expected.toml`.

        Raises:
            InputError: The file is missing or is not TOML.
        """
        return read_toml(self.experiments / figure / "expected.toml")

    def run_experiment(
        self, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run one experiment, or take its result from the cache of this command.

        Args:
            experiment: A TOML file or the same as a dict; relative paths in a dict are taken from
                `experiments`.
            overrides: Settings by `table.key`, typed:
                `{"remap.kind": "shuffle", "remap.alpha": 0.8}`.

        Returns:
            The result document: `config`, `inputs`, `metrics`, and so on. The key `directory` is
            added: the folder that holds `result.json` and `series.parquet`.
        """
        question = self._question(experiment, overrides or {})
        if question.key not in self.cache:
            directory = self._directory(question)
            document = run_experiment(question.experiment, directory)
            self.cache[question.key] = {**document, "directory": directory}
        result: dict[str, Any] = self.cache[question.key]
        return result

    def run_many(
        self, experiment: Path | Mapping[str, Any], cases: Mapping[Label, Mapping[str, Any]]
    ) -> dict[Label, dict[str, Any]]:
        """Run an experiment in many forms, `jobs` at once.

        Args:
            experiment: As in `run_experiment`. Figures share runs where they give the same dict,
                whichever file it was read from.
            cases: Overrides by label.

        Returns:
            The results by label, in the order of `cases`.

        Raises:
            InputError: A case is bad; the message says which.
            RunError: A run failed.
        """
        questions = {
            label: self._question(experiment, overrides) for label, overrides in cases.items()
        }
        missing = {
            question.key: (label, question)
            for label, question in reversed(questions.items())
            if question.key not in self.cache
        }
        work = list(missing.values())[::-1]
        done = 0

        def finished(index: int, outcome: Outcome) -> None:
            nonlocal done
            label, question = work[index]
            if outcome.error is not None:
                kind = InputError if outcome.is_input_error else RunError
                raise kind(f"{', '.join(map(str, label))}: {outcome.error}")
            directory = self._directory(question)
            document = read_json(directory / RESULT_FILE, "a result of agewell run")
            self.cache[question.key] = {**document, "directory": directory}
            done += 1
            self.progress(done / len(work), f"{done} of {len(work)} runs")

        run_jobs([self._job(question) for _, question in work], self.jobs, finished)
        return {label: self.cache[question.key] for label, question in questions.items()}

    def _question(
        self, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any]
    ) -> _Question:
        if isinstance(experiment, Path):
            loaded = load(experiment)
        else:
            loaded = Experiment(dict(experiment), self.experiments)
        configuration = with_settings(loaded.configuration, overrides)
        text = canonical_json(
            {"build": build(), "config": configuration, "base": str(loaded.base.resolve())}
        )
        key = hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]
        return _Question(Experiment(configuration, loaded.base), key)

    def _directory(self, question: _Question) -> Path:
        return self.out / "runs" / question.key

    def _job(self, question: _Question) -> Job:
        return Job(
            configuration=question.experiment.configuration,
            base=str(question.experiment.base.resolve()),
            out=str(self._directory(question).resolve()),
            catalogue=str(catalogue.directory().resolve()),
        )


def find_input(file_name: str, data: Sequence[Path]) -> Path | None:
    """The first file of that name in or below the folders, in sorted order, or None."""
    for folder in data:
        direct = folder / file_name
        if direct.is_file():
            return direct
        below = sorted(path for path in folder.rglob(file_name) if path.is_file())
        if below:
            return below[0]
    return None


def missing_input(file_name: str, data: Sequence[Path]) -> str:
    """The one-line message for an input that is in none of the folders."""
    where = ", ".join(str(folder) for folder in data) or "no data folder"
    return (
        f"the input {file_name} was not found (looked in: {where}); "
        "give its folder with --data DIR or in AGEWELL_DATA"
    )
