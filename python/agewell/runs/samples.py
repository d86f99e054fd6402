"""Samples of what settings may be: points drawn from ranges, the same for the same seed.

    agewell.Sample({"workload.utilization": agewell.Range(0.5, 0.9)}, 64, method="sobol", seed=1)

A sample with more points begins with those of the smaller one, so that a sweep can be continued
with more of them. Numbers are rounded to a millionth of their range: so they read well, and are the
same where another system's logarithm differs in its last bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agewell.errors import InputError
from agewell.experiments.configuration import parse_axis

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

POINTS_MAX = 1 << 20
"""Points of one sample; chosen by us: more runs than anyone waits for."""

_END_MAX = 1 << 63
"""What a number of a configuration is at most."""

_DIGITS = 5
"""Decimal places below the leading digit of a range; chosen by us: a millionth of it or less."""

_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_UNIT = r"[A-Za-zµ][A-Za-z/]*"
_RANGE = re.compile(
    rf"(?P<log>log\s+)?(?P<low>{_NUMBER})\s*(?P<low_unit>{_UNIT})?\s*\.\.\s*"
    rf"(?P<high>{_NUMBER})\s*(?P<high_unit>{_UNIT})?"
)
_ALLOWED = "a range is LOW..HIGH or 'log LOW..HIGH', choices are V1,V2,..."

METHODS = ("random", "sobol")
"""How points are drawn: independently, or as a scrambled Sobol sequence, which fills the space more
evenly."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a sampled setting may have, both ends among them.

    Attributes:
        low: The least; a whole number at both ends gives whole numbers.
        high: The greatest.
        log: Whether each doubling is as likely as any other, in place of each number.
        unit: What is written after the number, such as `KiB`.

    Raises:
        InputError: The ends are no numbers, too large or not in order; or `low` is not above 0 in
            a logarithmic range.

    Example:
        >>> import agewell
        >>> agewell.Range(64, 1024, log=True, unit="KiB").at(0.5)
        '256 KiB'
    """

    low: float
    high: float
    log: bool = False
    unit: str = ""

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if any(type(end) not in (int, float) for end in ends):
            raise InputError(f"the range {self}: its ends must be numbers")
        if not self.low < self.high:
            raise InputError(f"the range {self}: the lower end comes first")
        if not all(-_END_MAX <= end <= _END_MAX for end in ends):
            raise InputError(f"the range {self}: its ends are at most 2^63")
        if self.log and self.low <= 0:
            raise InputError(f"the range {self}: a logarithmic range begins above 0")

    def __str__(self) -> str:
        ends = f"{self.low}..{self.high}"
        return f"{'log ' if self.log else ''}{ends}{f' {self.unit}' if self.unit else ''}"

    def at(self, place: float) -> int | float | str:
        """The value at a place of the range, 0 at its low end and below 1."""
        value = self._number(place)
        return f"{value} {self.unit}" if self.unit else value

    def _number(self, place: float) -> int | float:
        # Each whole number has a piece of the range as long as any other.
        is_whole = isinstance(self.low, int) and isinstance(self.high, int)
        low, high = self.low, self.high + 1 if is_whole else self.high
        if self.log:
            exact = math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
        else:
            exact = low + place * (high - low)
        if is_whole:
            return min(max(math.floor(exact), int(self.low)), int(self.high))
        scale = min(exact, high - low) if self.log else high - low
        value = round(exact, _DIGITS - math.floor(math.log10(scale)))
        return min(max(float(value), float(self.low)), float(self.high))


@dataclass(frozen=True, slots=True)
class Sample:
    """Points drawn from ranges of settings; a part of what `agewell.sweep` varies.

    Attributes:
        ranges: By `table.key` a `Range`, or a list of values to choose from.
        count: How many points; of a Sobol sample best a power of two, for which it is balanced.
        method: `random`, or `sobol`, which needs the extra `agewell[samples]`.
        seed: The same seed gives the same points; a whole number, at least 0.

    Raises:
        InputError: There are no ranges or no points, one of them is bad, or the method is unknown.

    Example:
        >>> import agewell
        >>> ranges = {"run.seed": agewell.Range(1, 100), "layout.victim": ["greedy", "cost-age"]}
        >>> agewell.Sample(ranges, 3, seed=1).points()
        [(52, 'cost-age'), (15, 'cost-age'), (32, 'greedy')]
    """

    ranges: Mapping[str, Range | Sequence[Any]]
    count: int
    method: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.ranges:
            raise InputError("a sample needs at least one range: --sample table.key=LOW..HIGH")
        for name, values in self.ranges.items():
            if isinstance(values, str) or not isinstance(values, Range | Sequence):
                raise InputError(f"the sample of {name}: give a Range, or a list to choose from")
            if not isinstance(values, Range) and len(values) == 0:
                raise InputError(f"the sample of {name} has no values to choose from")
        if not 1 <= self.count <= POINTS_MAX:
            raise InputError(f"a sample of {self.count} points: from 1 to {POINTS_MAX:,} are drawn")
        if self.method not in METHODS:
            raise InputError(f"sampling '{self.method}': it is {' or '.join(METHODS)}")
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} of a sample: it is at least 0")

    def points(self) -> list[tuple[Any, ...]]:
        """The values of each point, in the order of the ranges.

        Raises:
            InputError: The method needs a package that is not installed.
        """
        drawn = _random(self) if self.method == "random" else _sobol(self)
        every = list(self.ranges.values())
        return [
            tuple(_value(values, place) for values, place in zip(every, places, strict=True))
            for places in drawn.tolist()
        ]

    def document(self) -> dict[str, Any]:
        """How it was drawn, as JSON values."""
        ranges = {
            name: str(values) if isinstance(values, Range) else list(values)
            for name, values in self.ranges.items()
        }
        return {"method": self.method, "seed": self.seed, "count": self.count, "ranges": ranges}


def parse_range(assignment: str) -> tuple[str, Range | list[Any]]:
    """The name and the range of one `table.key=LOW..HIGH`, or its choices `V1,V2,...`.

    Raises:
        InputError: It is neither, or the range is bad.
    """
    name, _, text = assignment.partition("=")
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        if "," not in text:
            raise InputError(f"--sample {assignment}: {_ALLOWED}")
        return parse_axis(assignment, "--sample")
    units = {unit for unit in (found["low_unit"], found["high_unit"]) if unit}
    if len(units) > 1:
        raise InputError(f"--sample {assignment}: both ends need one unit, such as 64..8192 KiB")
    low, high = (_end(found[end]) for end in ("low", "high"))
    try:
        return name.strip(), Range(low, high, log=bool(found["log"]), unit="".join(units))
    except InputError as error:
        raise InputError(f"--sample {name.strip()}: {error}") from error


def _end(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _value(values: Range | Sequence[Any], place: float) -> Any:
    if isinstance(values, Range):
        return values.at(place)
    return values[min(int(place * len(values)), len(values) - 1)]


def _random(sample: Sample) -> npt.NDArray[np.float64]:
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(sample.seed))
    return generator.random((sample.count, len(sample.ranges)))


def _sobol(sample: Sample) -> npt.NDArray[np.float64]:
    """A scrambled Sobol sequence from its beginning.

    Raises:
        InputError: SciPy is not installed, or has no sequence of so many ranges.
    """
    try:
        from scipy.stats import qmc
    except ImportError as error:
        raise InputError(
            "Sobol samples need SciPy, which is not installed: pip install 'agewell[samples]'"
        ) from error
    if len(sample.ranges) > qmc.Sobol.MAXDIM:
        raise InputError(f"a Sobol sample has at most {qmc.Sobol.MAXDIM} ranges")
    sequence = qmc.Sobol(len(sample.ranges), scramble=True, rng=sample.seed)
    # Up to a power of two, which it draws without a warning about balance; the rest is not used.
    whole: npt.NDArray[np.float64] = sequence.random_base2(math.ceil(math.log2(sample.count)))
    return whole[: sample.count]
