"""The search for the best segment size: it widens at its edge and ends at the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from agewell.advice.segment_search import SizesTried, best_of, search
from agewell.experiments.configuration import Experiment
from agewell.runs.keyed_runs import Answer, KeyedRun

BLOCK_POWER = 12
RUN = KeyedRun(Experiment({}, Path()), "")


def answer(seconds: float) -> Answer:
    if math.isinf(seconds):
        return Answer(run=RUN, document=None, cannot="no room")
    return Answer(run=RUN, document={"metrics": {"disk_seconds": seconds}})


def _searched(
    best: int, own_bytes: int = 1 << 18, log_power: int = 50, unable_from: float = math.inf
) -> SizesTried[Answer]:
    """What is tried where costs rise by the square of the distance from `best` in doublings."""
    document = {
        "config": {"layout": {"block_size": "4096 B", "segment_size": f"{own_bytes} B"}},
        "metrics": {"capacity_blocks": 1 << (log_power - BLOCK_POWER)},
        # What is transferred in the time of an access: 2,000 bytes, so that 4 MiB are wanted.
        "disk_estimate": {"access_ms": 1.0, "bandwidth_mb_per_s": 2.0},
    }
    asked: list[int] = []

    def answers_of(sizes: Sequence[int]) -> list[Answer]:
        asked.extend(sizes)
        return [
            answer(math.inf if size >= unable_from else 1.0 + math.log2(size / best) ** 2)
            for size in sizes
        ]

    found = search(document, answers_of)
    assert sorted(asked) == list(found.answers), "each size is tried once"
    return found


@given(best=st.integers(BLOCK_POWER, 43), own=st.integers(1, 1 << 12))
@example(best=23, own=2049)
@example(best=22, own=1025)
def test_the_best_is_found_wherever_it_is(best: int, own: int) -> None:
    found = _searched(1 << best, own_bytes=own << BLOCK_POWER)
    assert found.best_bytes == 1 << best
    # Every power of two from a block to the best and the one above it, and the log's own size.
    powers = {1 << power for power in range(BLOCK_POWER, best + 2)}
    assert powers | {own << BLOCK_POWER} <= set(found.answers)
    assert found.left_out == ""


def test_the_search_ends_where_no_further_size_is() -> None:
    found = _searched(1 << 30, log_power=25)
    assert found.best_bytes == max(found.answers) == 1 << 20
    assert found.left_out == (
        "sizes above 1 MiB were not tried: the log of 34 MB would have fewer than 32 segments"
    )
    found = _searched(1)
    assert found.best_bytes == min(found.answers) == 1 << BLOCK_POWER
    found = _searched(1 << 30, unable_from=1 << 19)
    assert found.best_bytes == 1 << 18
    assert found.left_out == "sizes from 512 KiB up cannot be done: no room"


def test_a_log_of_fewer_segments_keeps_its_own_size() -> None:
    found = _searched(1 << 16, own_bytes=1 << 22, log_power=25)
    assert max(found.answers) == 1 << 22
    assert found.best_bytes == 1 << 16


def test_nothing_is_best_where_nothing_can_be_done() -> None:
    found = _searched(1 << 17, unable_from=0)
    assert found.best_bytes is None
    assert found.able == {}


def test_of_equals_the_smaller_is_taken() -> None:
    costs = {1 << 16: 2.0, 1 << 18: 1.0, 1 << 17: 1.0}
    assert best_of({size: answer(cost) for size, cost in costs.items()}) == 1 << 17
