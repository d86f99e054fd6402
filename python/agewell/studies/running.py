"""Runs that a study asks for: made once a command, kept under the study's folder.

One at a time in this process, or many at once in worker processes; either way a run that this
command has made before is taken from the cache of the context.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import catalogue
from agewell.configuration import Experiment, canonical_json, load, read_json, with_settings
from agewell.errors import InputError, RunError
from agewell.simulation import RESULT_FILE, run_experiment
from agewell.version import build
from agewell.workers import Job, Outcome, run_jobs

if TYPE_CHECKING:
    from agewell.studies import Context

Label = tuple[str | float, ...]
"""What tells a run apart from the others of its figure: `("clean", 95)`."""

_KEY_CHARACTERS = 12
"""48 bits of the hash: a study makes hundreds of runs, so two of the same name do not occur."""


@dataclass(frozen=True, slots=True)
class _Question:
    """One run that is asked for, and the name that its answer is kept under."""

    experiment: Experiment
    key: str


def run_for_study(
    context: Context, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Run an experiment, or give the result that this command already has.

    Arguments and result are those of `Context.run_experiment`.
    """
    question = _question(context, experiment, overrides)
    if question.key not in context.cache:
        directory = _directory(context, question)
        document = run_experiment(question.experiment, directory)
        context.cache[question.key] = {**document, "directory": directory}
    result: dict[str, Any] = context.cache[question.key]
    return result


def run_many_for_study(
    context: Context,
    experiment: Path | Mapping[str, Any],
    cases: Mapping[Label, Mapping[str, Any]],
) -> dict[Label, dict[str, Any]]:
    """Run an experiment in many forms, `context.jobs` at once.

    Args:
        context: Of the study.
        experiment: As in `Context.run_experiment`. Figures share runs where they give the same
            dict, whichever file it was read from.
        cases: Overrides by label.

    Returns:
        The results by label, in the order of `cases`.

    Raises:
        InputError: A case is bad; the message says which.
        RunError: A run failed.
    """
    questions = {
        label: _question(context, experiment, overrides) for label, overrides in cases.items()
    }
    missing = {
        question.key: (label, question)
        for label, question in reversed(questions.items())
        if question.key not in context.cache
    }
    work = list(missing.values())[::-1]
    done = 0

    def finished(index: int, outcome: Outcome) -> None:
        nonlocal done
        label, question = work[index]
        if outcome.error is not None:
            kind = InputError if outcome.is_input_error else RunError
            raise kind(f"{', '.join(map(str, label))}: {outcome.error}")
        directory = _directory(context, question)
        document = read_json(directory / RESULT_FILE, "a result of agewell run")
        context.cache[question.key] = {**document, "directory": directory}
        done += 1
        context.progress(done / len(work), f"{done} of {len(work)} runs")

    run_jobs([_job(context, question) for _, question in work], context.jobs, finished)
    return {label: context.cache[question.key] for label, question in questions.items()}


def _question(
    context: Context, experiment: Path | Mapping[str, Any], overrides: Mapping[str, Any]
) -> _Question:
    if isinstance(experiment, Path):
        loaded = load(experiment)
    else:
        loaded = Experiment(dict(experiment), context.experiments)
    configuration = with_settings(loaded.configuration, overrides)
    text = canonical_json(
        {"build": build(), "config": configuration, "base": str(loaded.base.resolve())}
    )
    key = hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]
    return _Question(Experiment(configuration, loaded.base), key)


def _directory(context: Context, question: _Question) -> Path:
    return context.out / "runs" / question.key


def _job(context: Context, question: _Question) -> Job:
    return Job(
        configuration=question.experiment.configuration,
        base=str(question.experiment.base.resolve()),
        out=str(_directory(context, question).resolve()),
        catalogue=str(catalogue.directory().resolve()),
    )
