"""The measure of all advice, total disk time, and what counts as equal by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from agewell.runs.keyed_runs import Answer

CLOSE_RATIO = 1.01
"""Disk times this near to one another count as equal; chosen by us."""

CLOSE_PCT = 100.0 * (1.0 - 1.0 / CLOSE_RATIO)
"""The same as what one saves over the other."""

_Answer = TypeVar("_Answer", bound=Answer)


def saved_pct(ours: float, theirs: float) -> float | None:
    """Disk time that `ours` saves against `theirs`; None where one of them cannot be done."""
    if theirs in {0.0, float("inf")} or ours == float("inf"):
        return None
    return 100.0 * (1.0 - ours / theirs)


def saves(one: Answer, other: Answer) -> bool:
    """Whether `one` needs less by more than counts as equal."""
    return one.disk_seconds * CLOSE_RATIO < other.disk_seconds


def best_of(answers: Sequence[_Answer]) -> _Answer:
    """The answer of the least disk time, the first of equals."""
    return min(answers, key=lambda each: each.disk_seconds)


def simplest_of(answers: Sequence[_Answer]) -> _Answer:
    """The first that is as good as the best: simple ones of a kind stand first."""
    most_s = CLOSE_RATIO * best_of(answers).disk_seconds
    return next(each for each in answers if each.disk_seconds <= most_s)


def refusal(answers: Sequence[Answer], what: str) -> str:
    """The line for `what` if nobody can do it: the first reason, and how many there are."""
    reasons = {each.cannot for each in answers}
    more = "" if len(reasons) == 1 else f" (first of {len(reasons)} reasons)"
    return f"{what}: {answers[0].cannot}{more}"
