"""The one search for the best segment size: whoever asks, it tries and chooses alike.

The measure is total disk time, reads of users and all. The search goes over all powers of two from
a block up, as far as the disk asks for, and the size that the log has. Where the largest of them is
the best, it goes on until the best has a worse neighbour above, or until there is no further size:
a log needs some segments. There it relies on costs that fall and then rise: a long segment writes
in long transfers, a short one is more often empty when it is collected (Matthews 1999, §5.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agewell.runs.keyed_runs import Answer
from agewell.values.sizes import bytes_of, size_text

SEGMENTS_MIN = 32
"""A log of fewer segments is all reserve and says nothing on segment size; chosen by us."""

LARGEST_FACTOR = 64
"""The largest size tried at first is this many times access time x bandwidth; chosen by us: there
the time of an access is 1/64 of the transfer. The search goes on while it still gains."""

LARGEST_BYTES_MIN = 4 << 20
"""Sizes go up to this at least; chosen by us."""

WIDENED_BY = 2
"""Doublings that the search goes on at once beyond the edge; chosen by us: two processes' work."""

A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class SizesTried(Generic[A]):
    """What a search for the segment size of a log has tried.

    Attributes:
        answers: What became of each size, ascending, in bytes.
        block_bytes: Size of a block.
        own_bytes: The size that the log had.
        log_bytes: Size of the log.
        wanted_bytes: How far up the disk asks for sizes.
        largest_bytes: The largest that the log is tried with.
    """

    answers: Mapping[int, A]
    block_bytes: int
    own_bytes: int
    log_bytes: int
    wanted_bytes: float
    largest_bytes: int

    @property
    def able(self) -> dict[int, A]:
        """Those that the log could run on."""
        return {size: each for size, each in self.answers.items() if each.document is not None}

    @property
    def best_bytes(self) -> int | None:
        """The size of the least disk time, the smaller of equals; None if no size could be done."""
        return best_of(self.answers)

    @property
    def too_large(self) -> list[int]:
        """Sizes too large for the room that the log has beside its live data."""
        return [size for size in self.answers if size > max(self.able, default=0)]

    @property
    def left_out(self) -> str:
        """Why larger sizes than those were not tried, or empty."""
        if self.too_large:
            size = self.too_large[0]
            return f"sizes from {size_text(size)} up cannot be done: {self.answers[size].cannot}"
        tried = max(self.answers)
        is_edge = self.largest_bytes < self.wanted_bytes or self.best_bytes == tried
        if 2 * tried > self.largest_bytes and is_edge:
            return (
                f"sizes above {size_text(tried)} were not tried: the log of "
                f"{self.log_bytes / 1e6:,.0f} MB would have fewer than {SEGMENTS_MIN} segments"
            )
        return ""


def search(
    document: Mapping[str, Any], answers_of: Callable[[Sequence[int]], Sequence[A]]
) -> SizesTried[A]:
    """Try the segment sizes of a log, far enough that the best is no edge.

    Args:
        document: The result of the log as it is.
        answers_of: Runs it with other segment sizes, in bytes.
    """
    layout, disk = document["config"]["layout"], document["disk_estimate"]
    block_bytes, own_bytes = bytes_of(layout["block_size"]), bytes_of(layout["segment_size"])
    log_bytes = document["metrics"]["capacity_blocks"] * block_bytes
    largest_bytes = max(int(log_bytes / SEGMENTS_MIN), own_bytes)
    product_bytes = disk["access_ms"] * disk["bandwidth_mb_per_s"] * 1e3
    wanted_bytes = max(LARGEST_FACTOR * product_bytes, LARGEST_BYTES_MIN)
    count = math.floor(math.log2(largest_bytes / block_bytes)) + 1
    powers = [block_bytes << place for place in range(count)]
    reached = sum(size <= wanted_bytes for size in powers)
    asked = sorted({own_bytes, *powers[:reached]})
    answers: dict[int, A] = {}
    while asked:
        answers.update(zip(asked, answers_of(asked), strict=True))
        best = best_of(answers)
        if best is None or best < max(powers[:reached], default=0):
            break
        asked = [size for size in powers[reached : reached + WIDENED_BY] if size not in answers]
        reached += WIDENED_BY
    return SizesTried(
        answers=dict(sorted(answers.items())),
        block_bytes=block_bytes,
        own_bytes=own_bytes,
        log_bytes=log_bytes,
        wanted_bytes=wanted_bytes,
        largest_bytes=largest_bytes,
    )


def best_of(answers: Mapping[int, Answer]) -> int | None:
    """The size of the least disk time, the smaller of equals; None if no size could be done."""
    able = [size for size, each in answers.items() if math.isfinite(each.disk_seconds)]
    return min(able, key=lambda size: (answers[size].disk_seconds, size), default=None)
