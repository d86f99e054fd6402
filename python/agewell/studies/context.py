"""What a study may use: files, runs and a place to write to.

Runs are kept under the study's folder and made once (`keyed_runs`): one at a time in this process,
or many at once in worker processes. What an earlier command has left is taken if it is of the same
question, build and inputs, so that a reproduction goes on where it was interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agewell.errors import InputError, RunError
from agewell.experiments.configuration import (
    Experiment,
    load,
    read_toml,
    with_settings,
)
from agewell.runs.keyed_runs import KeyedRun, RunFolder
from agewell.runs.workers import Outcome

Label = tuple[str | float, ...]
"""What distinguishes a run from the others of its figure: `("clean", 95)`."""


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
        cache: What is kept between the figures of one command: results by key, and what is known of
            inputs.
        hashes: Of inputs, by file, kept like that.
    """

    experiments: Path
    out: Path
    examples: Path
    data: Sequence[Path]
    progress: Callable[[float, str], None]
    jobs: int = 1
    cache: dict[str, Any] = field(default_factory=dict)
    hashes: dict[Path, str] = field(default_factory=dict)

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

    def tables(self, figure: str) -> dict[str, Any]:
        """The tables of that file. Figures of the same tables share their runs.

        Raises:
            InputError: The file is missing or is not TOML.
        """
        return read_toml(self.experiment(figure))

    def expected(self, figure: str) -> dict[str, Any]:
        """The paper's numbers and tolerances of a figure, from its `expected.toml`.

        Raises:
            InputError: The file is missing or is not TOML.
        """
        return read_toml(self.experiments / figure / "expected.toml")

    def run_experiment(
        self, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run one experiment, or take its result where it is there.

        Args:
            experiment: A TOML file or the same as a dict; relative paths in a dict are taken from
                `experiments`.
            overrides: Settings by `table.key`, typed:
                `{"remap.kind": "shuffle", "remap.alpha": 0.8}`.

        Returns:
            The result document: `config`, `inputs`, `metrics`, and so on. The key `directory` is
            added: the folder that holds `result.json` and `series.parquet`.
        """
        run = self._asked(experiment, overrides or {})
        if run.key not in self.cache:
            self._keep(run, self._runs().made_here(run))
        result: dict[str, Any] = self.cache[run.key]
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
        asked = {label: self._asked(experiment, changes) for label, changes in cases.items()}
        new = {label: run for label, run in asked.items() if run.key not in self.cache}

        def failed(index: int, outcome: Outcome) -> None:
            kind = InputError if outcome.is_input_error else RunError
            raise kind(f"{', '.join(map(str, list(new)[index]))}: {outcome.error}")

        def progress(done: int, total: int) -> None:
            self.progress(done / total, f"{done} of {total} runs")

        if new:
            self._runs().make(list(new.values()), progress, failed)
        for run in new.values():
            self._keep(run, run.document(self.out))
        return {label: self.cache[run.key] for label, run in asked.items()}

    def _runs(self) -> RunFolder:
        return RunFolder(self.out, jobs=self.jobs, hashes=self.hashes)

    def _asked(
        self, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any]
    ) -> KeyedRun:
        if isinstance(experiment, Path):
            loaded = load(experiment)
        else:
            loaded = Experiment(dict(experiment), self.experiments)
        # The same tables in two folders may name different files.
        within = os.path.relpath(loaded.base.resolve(), self.experiments.resolve())
        configuration = with_settings(loaded.configuration, overrides)
        return KeyedRun.of(Experiment(configuration, loaded.base), within)

    def _keep(self, run: KeyedRun, document: dict[str, Any]) -> None:
        self.cache[run.key] = {**document, "directory": run.folder(self.out)}


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
