"""The schema of experiments: what is shipped keeps to it, and so does what the program takes."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agewell.experiments.configuration import schema
from conftest import REPOSITORY
from test_values import EXPERIMENTS

EXPERIMENT_TABLES = {
    "workload",
    "remap",
    "queue",
    "device",
    "run",
    "host",
    "layout",
    "measure",
}
VALIDATOR = jsonschema.Draft202012Validator(schema())


def shipped() -> list[Path]:
    """Every experiment of the repository, as far as it is one by itself."""
    found = [
        *REPOSITORY.glob("experiments/*/*/experiment.toml"),
        *REPOSITORY.glob("examples/**/*.toml"),
    ]
    return sorted(path for path in found if "workload" in tomllib.loads(path.read_text()))


def tables(path: Path) -> dict[str, Any]:
    """The tables of an experiment; a study's own stand beside them."""
    document = tomllib.loads(path.read_text())
    return {name: table for name, table in document.items() if name in EXPERIMENT_TABLES}


def complaints(experiment: dict[str, Any]) -> list[str]:
    return [error.message[:200] for error in VALIDATOR.iter_errors(experiment)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_keep_to_it(name: str) -> None:
    assert complaints(EXPERIMENTS[name]) == []


def test_every_shipped_experiment_keeps_to_it() -> None:
    assert len(shipped()) > 50
    broken = {}
    for path in shipped():
        experiment = tables(path)
        # A study says in code what it varies: the layout of chapter 4, among others.
        if "layout" in experiment:
            experiment["layout"].setdefault("kind", "lfs")
        if found := complaints(experiment):
            broken[str(path.relative_to(REPOSITORY))] = found
    assert broken == {}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_resolved_keeps_to_it(name: str) -> None:
    import json

    from agewell import _agewell

    assert complaints(json.loads(_agewell.resolve_experiment(json.dumps(EXPERIMENTS[name])))) == []


DEVICES = {path.stem: tomllib.loads(path.read_text()) for path in REPOSITORY.glob("devices/*.toml")}


@pytest.mark.parametrize("name", [each for each in DEVICES if DEVICES[each]["kind"] != "simple"])
def test_a_drive_said_in_place_keeps_to_it(name: str) -> None:
    """A simple disk said in place has keys of its own."""
    experiment = {**EXPERIMENTS["requests-plain"], "device": DEVICES[name]}
    assert complaints(experiment) == []


def test_a_stranger_breaks_it() -> None:
    experiment = copy.deepcopy(EXPERIMENTS["collect-adaptive"])
    experiment["layout"]["segment_sice"] = "1 MiB"
    assert complaints(experiment) != []
    experiment = copy.deepcopy(EXPERIMENTS["collect-adaptive"])
    experiment["layout"]["victim"] = "greedi"
    assert complaints(experiment) != []
