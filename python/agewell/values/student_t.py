"""Intervals of a mean from few values: Student's t.

For whole degrees of freedom the distribution is a finite sum of powers of a cosine (Abramowitz and
Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4), so that it needs no library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95
"""Share of such intervals that hold the true mean; chosen by us, as is usual."""

_HALVINGS = 100
"""More than a float has bits."""


def within(t: float, freedom: int) -> float:
    """The probability that a variable of Student's t lies between -t and t.

    Args:
        t: At least 0.
        freedom: Degrees of freedom, at least 1.
    """
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2 == 1
    term = cosine if is_odd else 1.0
    total = 0.0 if freedom == 1 else term
    for power in range(3 if is_odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (power - 1) / power
        total += term
    return 2.0 / math.pi * (angle + sine * total) if is_odd else sine * total


def quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The t for which a share `confidence` lies between -t and t."""
    low, high = 0.0, 1.0
    while within(high, freedom) < confidence:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Where the mean of what the values are drawn from lies; None for fewer than two."""
    count = len(values)
    if count < 2:  # noqa: PLR2004 (one value has no spread)
        return None
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = quantile(count - 1) * math.sqrt(variance / count)
    return mean - half, mean + half
