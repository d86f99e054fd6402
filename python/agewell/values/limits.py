"""Limits of metrics, which a run or a measurement may break: `layout_score=0.9`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agewell.errors import InputError


@dataclass(frozen=True, slots=True)
class Limit:
    """A value that a metric may not be under, or not over.

    Attributes:
        metric: Its fixed name.
        value: The limit itself, which is allowed; in the unit of the metric.
        is_least: Whether less breaks it, and not more.
    """

    metric: str
    value: float
    is_least: bool

    @classmethod
    def read(cls, text: str, known: Collection[str], *, is_least: bool, option: str) -> Limit:
        """The limit that a text says.

        Args:
            text: `METRIC=VALUE`.
            known: Names of metrics.
            is_least: Whether less breaks it, and not more.
            option: Where the text was given, for errors.

        Raises:
            InputError: It is no such text, or nothing has a metric of that name.
        """
        metric, equals, number = (part.strip() for part in text.partition("="))
        if not equals:
            raise InputError(f"{option} {text}: is not METRIC=VALUE, for example layout_score=0.9")
        if metric not in known:
            raise InputError(f"{option} {text}: no metric '{metric}'; one of {', '.join(known)}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise InputError(f"{option} {text}: '{number}' is not a number")
        return cls(metric, value, is_least)

    def broken_by(self, metrics: Mapping[str, float | None]) -> str | None:
        """How the metrics break it, in words; None if they keep it.

        Raises:
            InputError: The metric has no value.
        """
        value = metrics.get(self.metric)
        if value is None:
            raise InputError(f"{self.metric} is not known here, so no limit can be held against it")
        if value < self.value if self.is_least else value > self.value:
            where = "under" if self.is_least else "over"
            return f"{self.metric} {value:.6g} is {where} {self.value:g}"
        return None
