"""Runs in a folder, each under a hash of what was asked, so that none is made twice.

    FOLDER/runs/<key>/    one run, as `agewell run --out` leaves it

The key covers the configuration, the version and the build of agewell, so that no answer of other
code is taken for this one's; a run is there when its folder holds a result and every input still
has the bytes that the result was made from. Sweeps, comparisons and advice all
keep their runs so, and therefore go on where they were interrupted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agewell.experiments.configuration import (
    Experiment,
    canonical_json,
    input_file,
    read_json,
    recorded_inputs,
    sha256_of_file,
)
from agewell.experiments.simulation import RESULT_FILE
from agewell.runs.workers import Job
from agewell.version import __version__, build

_KEY_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class KeyedRun:
    """One run that is asked for, and the name that its folder has."""

    experiment: Experiment
    key: str

    @classmethod
    def of(cls, experiment: Experiment) -> KeyedRun:
        """The run of an experiment."""
        asked = {"version": __version__, "build": build(), "config": experiment.configuration}
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

    def job(self, root: Path, devices: Path) -> Job:
        """The work of making it."""
        return Job(
            configuration=self.experiment.configuration,
            base=str(self.experiment.base.resolve()),
            out=str(self.folder(root).resolve()),
            catalogue=str(devices.resolve()),
        )


def missing(root: Path, runs: Sequence[KeyedRun], devices: Path) -> list[int]:
    """Indices of the runs that have no result yet, or one whose inputs have changed."""
    hashes: dict[Path, str] = {}
    return [index for index, run in enumerate(runs) if not _is_there(root, run, devices, hashes)]


def _is_there(root: Path, run: KeyedRun, devices: Path, hashes: dict[Path, str]) -> bool:
    path = run.folder(root) / RESULT_FILE
    if not path.is_file():
        return False
    document: Mapping[str, Any] = read_json(path, "a result of agewell run")
    for name, sha256 in recorded_inputs(document, path).items():
        source = input_file(name, run.experiment.base, devices)
        if source is None:
            return False
        if source not in hashes:
            hashes[source] = sha256_of_file(source)
        if hashes[source] != sha256:
            return False
    return True
