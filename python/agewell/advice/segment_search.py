"""The one search for the best segment size: whoever asks, it tries and chooses alike.

It goes over powers of two. Where the best size is the smallest or the largest one tried, it goes on
beyond it, until the best has a worse neighbour on either side, or until there is no further size: a
segment has a block at least, and a log needs some segments. Then it fills in what was left out next
to the best. It relies on costs that fall and then rise: a long segment writes in long transfers, a
short one is more often empty when it is collected (Matthews 1999, §5.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

SEGMENTS_MIN = 32
"""A log of fewer segments is all reserve and says nothing on segment size; chosen by us."""

WIDENED_BY = 2
"""Doublings that the search goes on at once beyond an edge; chosen by us: two processes' work."""


def largest_bytes(log_bytes: float) -> int:
    """The largest segment that a log of that size is tried with."""
    return max(int(log_bytes / SEGMENTS_MIN), 1)


def best_of(costs: Mapping[int, float]) -> int | None:
    """The size of the least cost, the smaller of equals; None if no size could be done."""
    able = [size for size, cost in costs.items() if math.isfinite(cost)]
    return min(able, key=lambda size: (costs[size], size), default=None)


def search(
    first: Sequence[int],
    costs_of: Callable[[Sequence[int]], Sequence[float]],
    *,
    smallest: int,
    largest: int,
) -> dict[int, float]:
    """The costs of segment sizes, far enough that the least of them is no edge.

    Args:
        first: Sizes to begin with, in bytes.
        costs_of: What sizes cost; infinite for one that the log cannot do.
        smallest: Smallest size there is, in bytes: a block.
        largest: Largest size to try, in bytes.

    Returns:
        The cost of every size tried, ascending by size.
    """
    costs: dict[int, float] = {}
    asked = sorted(set(first))
    while asked:
        costs.update(zip(asked, costs_of(asked), strict=True))
        asked = _beyond(costs, smallest, largest) or _beside(costs, smallest, largest)
    return dict(sorted(costs.items()))


def _beyond(costs: Mapping[int, float], smallest: int, largest: int) -> list[int]:
    """The next sizes beyond the edge at which the best is, if it is at one."""
    best = best_of(costs)
    above = [max(costs) << step for step in range(1, WIDENED_BY + 1)]
    below = [min(costs) >> step for step in range(WIDENED_BY, 0, -1)]
    wider = [
        *(size for size in below if best == min(costs) and size >= smallest),
        *(size for size in above if best == max(costs) and size <= largest),
    ]
    return [size for size in wider if size % smallest == 0]


def _beside(costs: Mapping[int, float], smallest: int, largest: int) -> list[int]:
    """The half and the double of the best size, where nothing so near was tried."""
    best = best_of(costs)
    if best is None:
        return []
    asked = []
    if not any(best <= 2 * size < 2 * best for size in costs):
        asked.append(best >> 1)
    if not any(best < size <= 2 * best for size in costs):
        asked.append(best << 1)
    # A segment is whole blocks.
    return [size for size in asked if smallest <= size <= largest and size % smallest == 0]
