"""The core of a search for advice: choices, the runs that try them, and what each came to.

Every run has a TOML file in the folder `experiments` of the search, which `agewell run` takes, and
is kept in `runs` beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agewell import _agewell, files
from agewell.experiments import experiment_file
from agewell.experiments.choices import DeviceChoice, WorkloadChoice, experiment_of
from agewell.experiments.configuration import Configuration, Experiment
from agewell.files import catalogue
from agewell.runs.keyed_runs import Answer, KeyedRun, RunFolder

EXPERIMENTS_FOLDER = "experiments"

Progress = Callable[[float, str], None]
"""Called with the fraction done and a few words."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A layout and what the host does for it.

    Attributes:
        layout: `[layout]`.
        host: What it changes in `[host]`.
    """

    layout: Mapping[str, Any]
    host: Mapping[str, Any] = field(default_factory=dict)

    def with_layout(self, changes: Mapping[str, Any]) -> Choice:
        """The same with other values in `[layout]`."""
        return Choice({**self.layout, **changes}, self.host)

    def with_host(self, changes: Mapping[str, Any]) -> Choice:
        """The same with other values in `[host]`."""
        return Choice(self.layout, {**self.host, **changes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(Answer):
    """One run of the search.

    Attributes:
        label: What it tries, for people.
        choice: The layout and host.
        file: Its experiment, without the folder.
    """

    label: str
    choice: Choice
    file: str

    @property
    def place(self) -> str:
        """Its experiment, from the folder of the advice."""
        return f"{EXPERIMENTS_FOLDER}/{self.file}"

    def is_same_as(self, other: Tried) -> bool:
        """Whether both asked for the same, defaults filled in."""
        if self.document is None or other.document is None:
            return self.run.key == other.run.key
        return bool(self.document["config"] == other.document["config"])

    def json_values(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "what": self.label,
            "file": self.place,
            "run": None if self.metrics is None else f"runs/{self.run.key}",
            "disk_seconds": None if self.metrics is None else self.disk_seconds,
            "room_made_by": self.room_made_by,
            "cannot": self.cannot or None,
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One question of the search.

    Attributes:
        question: `layout`, `segment size`, ...
        tried: The answers, in the order of asking.
        chosen: The one that was taken.
        note: Why nothing was tried, or empty.
        left_out: What was not tried and why, or empty.
    """

    question: str
    tried: Sequence[Tried]
    chosen: Tried
    note: str = ""
    left_out: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "question": self.question,
            "chosen": self.chosen.label if self.tried else None,
            "note": self.note or None,
            "left_out": self.left_out or None,
            "tried": [each.json_values() for each in self.tried],
        }


class Search:
    """Makes the runs of one advice; each is made once and has its file."""

    def __init__(
        self,
        workload: WorkloadChoice,
        device: DeviceChoice,
        out: Path,
        *,
        settings: Mapping[str, Any],
        catalogue_directory: Path | str | None,
        jobs: int | None,
        progress: Progress,
    ) -> None:
        """Nothing is run yet; `out` is made."""
        self.out = out
        self.base = files.make_folder(out / EXPERIMENTS_FOLDER)
        self.workload = workload.seen_from(self.base)
        self.device = device
        self.progress = progress
        self._devices = catalogue.directory(catalogue_directory)
        self._runs = RunFolder(out, catalogue_directory, jobs)
        self._settings = dict(settings)

    def device_description(self) -> Mapping[str, Any]:
        """What is known of the device, as `agewell devices` prints it."""
        if "model" not in self.device.table:
            return {"kind": self.device.table["kind"]}
        model = str(self.device.file or self.device.table["model"])
        description: dict[str, Any] = json.loads(_agewell.device_load(model, str(self._devices)))
        return description

    def experiment(self, choice: Choice, utilization: float) -> Configuration:
        """The tables of a choice at a utilization."""
        host = {f"host.{key}": value for key, value in choice.host.items()}
        experiment = experiment_of(
            choice.layout, self.workload, self.device, utilization, {**self._settings, **host}
        )
        return experiment.configuration

    def make(
        self, asked: Mapping[str, tuple[str, Configuration]], fraction: float, words: str
    ) -> dict[str, Answer]:
        """Run experiments, each written as a file first.

        Args:
            asked: Words and tables by the name of the file.
            fraction: How far the advice is.
            words: What is being asked.

        Returns:
            What became of each, by its file.
        """
        runs = []
        for name, (label, configuration) in asked.items():
            experiment_file.write(configuration, self.base / name, label)
            runs.append(KeyedRun.of(Experiment(configuration, self.base)))
        answers = self._runs.answers(
            runs, lambda done, total: self.progress(fraction, f"{words}, {done} of {total} runs")
        )
        return dict(zip(asked, answers, strict=True))

    def try_all(
        self, question: str, choices: Mapping[str, Choice], utilization: float, fraction: float
    ) -> list[Tried]:
        """Run every choice; the file is named after the question and the choice."""
        names = {label: f"{_file_name(question)}-{_file_name(label)}.toml" for label in choices}
        answers = self.make(
            {
                names[label]: (f"{question}: {label}", self.experiment(choice, utilization))
                for label, choice in choices.items()
            },
            fraction,
            question,
        )
        return [
            Tried(
                label=label,
                choice=choice,
                file=names[label],
                run=answers[names[label]].run,
                document=answers[names[label]].document,
                cannot=answers[names[label]].cannot,
            )
            for label, choice in choices.items()
        ]


def _file_name(words: str) -> str:
    return words.lower().replace(",", "").replace(" ", "-")
