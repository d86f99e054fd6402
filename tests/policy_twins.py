"""The policies that the simulator has, written again as functions: what tests hold it against.

Each decides the same to the last bit, ties included: how a tie falls is part of each twin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

EQUALS_MAX = 16
"""Equally empty segments of which greedy takes the one opened first."""


def greedy(segments: Any) -> int:
    """The least utilized of each zone; of some that are, the one opened first."""
    emptiest = []
    for number in range(int(segments.zone[0]), int(segments.zone[-1]) + 1):
        zone = np.flatnonzero(segments.zone == number)
        if not len(zone):
            continue
        equals = zone[segments.live[zone] == segments.live[zone].min()][:EQUALS_MAX]
        emptiest.append(int(equals[segments.opened[equals].argmin()]))
    return min(emptiest, key=lambda each: segments.utilization[each])


def cost_age(segments: Any) -> Any:
    """The benefit over the cost of Rosenblum & Ousterhout, as scores."""
    u = segments.utilization
    return np.maximum(segments.age, 1) * (1 - u) / (1 + u)


def cost_age_cache(segments: Any) -> Any:
    """The same, but what is cached need not be read."""
    u = segments.utilization
    read = np.where(segments.cached, 0.0, 1.0)
    return np.maximum(segments.age, 1) * (1 - u) / (read + u)


def benefit_root_age(segments: Any) -> Any:
    """As the SepBIT simulator scores it."""
    u = segments.utilization
    return (1 - u) / u * np.sqrt(np.maximum(segments.age, 1))


def fifo(segments: Any) -> Any:
    """The one sealed longest ago."""
    return segments.sealing.argmin()


def random_greedy(segments: Any, choices: int = 10) -> int:
    """The least utilized of ten; if that is full, of all."""
    drawn = segments.draw(choices)
    least = int(drawn[segments.utilization[drawn].argmin()])
    return least if segments.utilization[least] < 1 else greedy(segments)


def windowed_greedy(segments: Any, window: int = 100) -> int:
    """The least utilized of those sealed longest ago."""
    oldest = segments.sealing.argsort(kind="stable")[:window]
    return int(oldest[segments.utilization[oldest].argmin()])


class Renewal:
    """What learns from its victims how fast segments empty."""

    def __init__(self) -> None:
        self.deaths = self.exposure = self.dispersion = self.victims = 0.0

    def __call__(self, segments: Any) -> int:
        live, blocks = segments.live.astype(float), segments.blocks.astype(float)
        deaths = blocks - live
        exposure = deaths * (segments.age + 1) / np.log(blocks / live)
        prior_deaths, prior_exposure = self._prior()
        share = live / blocks
        gain = (1 - share) / share + np.log(share)
        worth = gain * (exposure + prior_exposure) / (deaths + prior_deaths)
        ranks = (segments.number, -segments.age, segments.live, segments.zone, -worth)
        chosen = int(np.lexsort(ranks)[0])
        self._learn(float(deaths[chosen]), float(exposure[chosen]))
        return chosen

    def _prior(self) -> tuple[float, float]:
        if self.victims < 32:
            return 0.0, 0.0
        excess = max(self.dispersion / self.victims - 1.5, 1e-3)
        deaths = self.deaths / self.victims / excess
        return deaths, deaths * self.exposure / self.deaths

    def _learn(self, deaths: float, exposure: float) -> None:
        self.deaths = self.deaths * 0.998 + deaths
        self.exposure = self.exposure * 0.998 + exposure
        self.victims = self.victims * 0.998 + 1
        expected = exposure * self.deaths / self.exposure
        excess = (deaths - expected) * (deaths - expected) / expected
        self.dispersion = self.dispersion * 0.998 + excess


VICTIMS: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "greedy": lambda: greedy,
    "cost-age": lambda: cost_age,
    "cost-age-cache": lambda: cost_age_cache,
    "benefit-root-age": lambda: benefit_root_age,
    "renewal": Renewal,
    "fifo": lambda: fifo,
    "random-greedy": lambda: random_greedy,
    "windowed-greedy": lambda: windowed_greedy,
}
"""A new twin of each victim policy, by its name in configurations."""


def user_collected(blocks: Any) -> int:
    """What users write apart from what is collected."""
    return int(blocks.is_collected)


class Dac:
    """A level up on each write, a level down on each move."""

    def __init__(self, logs: int = 6) -> None:
        self.hottest = logs - 1
        self.level = np.zeros(0, dtype=np.int64)

    def __call__(self, blocks: Any) -> Any:
        number = blocks.number
        if number.max() >= len(self.level):
            self.level = np.pad(self.level, (0, int(number.max()) + 1 - len(self.level)))
        if blocks.is_collected:
            level = np.maximum(self.level[number] - 1, 0)
        else:
            level = np.where(blocks.age < 0, 0, np.minimum(self.level[number] + 1, self.hottest))
        self.level[number] = level
        return level


class Fadac:
    """Writes less moves, in powers of ten."""

    def __init__(self) -> None:
        self.count = np.zeros(0, dtype=np.int64)

    def __call__(self, blocks: Any) -> Any:
        number = blocks.number
        if number.max() >= len(self.count):
            self.count = np.pad(self.count, (0, int(number.max()) + 1 - len(self.count)))
        if blocks.is_collected:
            count = np.maximum(self.count[number] - 1, 0)
        else:
            count = np.where(blocks.age < 0, 1, np.minimum(self.count[number] + 1, 65_535))
        self.count[number] = count
        return np.searchsorted([1, 10, 100, 1_000, 10_000], count)


class SepBit:
    """The last lifetime of what is new, the age of what is collected."""

    def __init__(self, logs: int = 6) -> None:
        self.last = logs - 1
        self.live = self.queue = self.lifetime_sum = self.lifetimes = 0
        self.threshold = math.inf

    def __call__(self, blocks: Any) -> Any:
        if not blocks.is_collected:
            return [self._new(age) for age in blocks.age.tolist()]
        if blocks.segment_log != 0:
            return [self._collected(age) for age in blocks.age.tolist()]
        self.lifetime_sum += blocks.clock - blocks.segment_opened
        self.lifetimes += 1
        if self.lifetimes == 16:
            self.threshold = self.lifetime_sum / 16
            self.lifetime_sum = self.lifetimes = 0
        return min(self.last, 2)

    def _new(self, age: int) -> int:
        is_short = 0 <= age < min(self.threshold, self.queue)
        self.queue += 1
        length = self.queue
        if length > min(self.threshold, self.live):
            self.queue -= 1
            if length - 1 > self.threshold:
                self.queue -= 1
        self.live += age < 0
        return min(int(not is_short), self.last)

    def _collected(self, age: int) -> int:
        log, limit = min(self.last, 3), self.threshold * 4
        while age >= limit and log < self.last:
            limit *= 4
            log += 1
        return log


def as_array(policy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A policy whose lists become arrays."""

    def asked(blocks: Any) -> Any:
        return np.asarray(policy(blocks))

    return asked


PLACEMENTS: dict[str, tuple[int, Callable[[], Callable[[Any], Any]]]] = {
    "user-collected": (2, lambda: user_collected),
    "dac": (6, Dac),
    "fadac": (6, Fadac),
    "sepbit": (6, lambda: as_array(SepBit())),
}
"""Open logs, and a new twin, of placements, by their names in configurations."""


def sweep(places: Any) -> tuple[int, int]:
    """The nearest in one direction until the edge, then in the other."""
    above, below = places.at_or_after(places.head), places.at_or_before(places.head - 1)
    if places.is_upwards:
        return (above, 1) if above is not None else (below, -1)
    return (below, -1) if below is not None else (above, 1)


def nearest(places: Any) -> tuple[int, int]:
    """The nearest on either side, out of the array of all."""
    free = np.flatnonzero(places.free)
    at = int(free.searchsorted(places.head))
    above = int(free[at]) if at < len(free) else None
    below = int(free[at - 1]) if at > 0 else None
    if above is None or (below is not None and places.head - below < above - places.head):
        assert below is not None, "a place is free"
        return below, -1
    return above, 1


ALLOCATORS = {"sweep": sweep, "nearest": nearest}
"""The twin of each search that looks at places one by one."""
