"""The search for the best segment size: it widens at its edges and ends at the best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agewell.advice.segment_search import best_of, search

BLOCK = 4096


def _searched(
    first: Sequence[int], best: int, largest: int = 1 << 40, unable_from: float = math.inf
) -> dict[int, float]:
    """What is tried where costs rise by the square of the distance from `best` in doublings."""
    asked: list[int] = []

    def costs_of(sizes: Sequence[int]) -> list[float]:
        asked.extend(sizes)
        return [
            math.inf if size >= unable_from else 1.0 + math.log2(size / best) ** 2 for size in sizes
        ]

    costs = search(first, costs_of, smallest=BLOCK, largest=largest)
    assert sorted(asked) == list(costs), "each size is tried once"
    return costs


@given(
    best=st.integers(12, 39),
    first=st.lists(st.integers(12, 30), min_size=1, max_size=6),
)
def test_the_best_is_found_wherever_the_search_begins(best: int, first: list[int]) -> None:
    costs = _searched([1 << power for power in first], 1 << best)
    assert best_of(costs) == 1 << best
    # No edge, but where there is no further size.
    assert max(costs) > 1 << best or best == 40
    assert min(costs) < 1 << best or best == 12


def test_the_search_ends_where_no_further_size_is() -> None:
    costs = _searched([1 << 16], 1 << 30, largest=(1 << 20) + 5)
    assert best_of(costs) == max(costs) == 1 << 20
    costs = _searched([1 << 16], 1)
    assert best_of(costs) == min(costs) == BLOCK
    costs = _searched([1 << 16], 1 << 30, unable_from=1 << 19)
    assert best_of(costs) == 1 << 18


def test_nothing_is_best_where_nothing_can_be_done() -> None:
    assert best_of(_searched([1 << 16, 1 << 18], 1 << 17, unable_from=0)) is None


def test_of_equals_the_smaller_is_taken() -> None:
    assert best_of({1 << 16: 2.0, 1 << 17: 1.0, 1 << 18: 1.0}) == 1 << 17
