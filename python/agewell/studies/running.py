"""Runs that a study asks for: made once a command, kept under the study's folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell.configuration import Experiment, canonical_json, load, with_settings
from agewell.simulation import run_experiment

if TYPE_CHECKING:
    from agewell.studies import Context

_KEY_CHARACTERS = 12
"""48 bits of the hash: a study makes hundreds of runs, so two of the same name do not occur."""


def run_for_study(
    context: Context, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Run an experiment, or give the result that this command already has.

    Arguments and result are those of `Context.run_experiment`.
    """
    if isinstance(experiment, Path):
        loaded = load(experiment)
    else:
        loaded = Experiment(dict(experiment), context.experiments)
    configuration = with_settings(loaded.configuration, overrides)
    question = canonical_json({"config": configuration, "base": str(loaded.base.resolve())})
    key = hashlib.sha256(question.encode()).hexdigest()[:_KEY_CHARACTERS]
    cached: dict[str, Any] | None = context.cache.get(key)
    if cached is not None:
        return cached
    directory = context.out / "runs" / key
    document = run_experiment(Experiment(configuration, loaded.base), directory)
    result = {**document, "directory": directory}
    context.cache[key] = result
    return result
