"""Samples of what settings may be: points drawn from ranges, the same for the same seed.

    agewell.Sample({"workload.utilization": agewell.Range(0.5, 0.9)}, 64, method="sobol", seed=1)

A sample with more points begins with those of the smaller one, so that a sweep can be continued
with more of them. Numbers are rounded to a hundred-thousandth of their range or finer: so they read
well, and are the same where another system's logarithm differs in its last bit.
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
"""Decimal places below the leading digit of a range; chosen by us: a hundred-thousandth of
it or less."""

_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_UNIT = r"(?!by\b)[A-Za-zµ][A-Za-z/]*"
_RANGE = re.compile(
    rf"(?P<log>log\s+)?(?P<low>{_NUMBER})\s*(?P<low_unit>{_UNIT})?\s*\.\.\s*"
    rf"(?P<high>{_NUMBER})\s*(?P<high_unit>{_UNIT})?"
    rf"(?:\s+by\s+(?P<step>{_NUMBER})\s*(?P<step_unit>{_UNIT})?)?"
)
_ALLOWED = "a range is LOW..HIGH, 'log LOW..HIGH' or 'LOW..HIGH by STEP', choices are V1,V2,..."

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
        step: What lies between two neighbouring values, from `low` on; by default 1 between whole
            numbers.

    Raises:
        InputError: The ends are no numbers, too large or not in order; or `low` is not above 0 in
            a logarithmic range; or the step is longer than the range.

    Examples:
        >>> import agewell
        >>> agewell.Range(64, 1024, log=True, unit="KiB", step=8).at(0.5)
        '256 KiB'
    """

    low: float
    high: float
    log: bool = False
    unit: str = ""
    step: float | None = None

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
        if self.step is not None and (
            type(self.step) not in (int, float) or not 0 < self.step <= self.high - self.low
        ):
            raise InputError(f"the range {self}: its step is above 0 and no longer than the range")

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        step = "" if self.step is None else f" by {self.step}"
        return f"{'log ' if self.log else ''}{self.low}..{self.high}{unit}{step}"

    def at(self, place: float) -> int | float | str:
        """The value at a place of the range, 0 at its low end and below 1."""
        value = self._number(place)
        return f"{value} {self.unit}" if self.unit else value

    def _number(self, place: float) -> int | float:
        is_whole = all(isinstance(each, int) for each in (self.low, self.high, self.step or 1))
        step = self.step or (1 if is_whole else 0)
        # Each value of a stepped range has a piece of it as long as any other.
        exact = self._exact(place, self.high + step)
        if step:
            steps = min(math.floor((exact - self.low) / step), self._steps(step))
            value = self.low + max(steps, 0) * step
            if is_whole:
                return int(value)
        else:
            value = exact
        scale = min(value, self.high - self.low) if self.log else self.high - self.low
        rounded = round(value, _DIGITS - math.floor(math.log10(scale)))
        return min(max(float(rounded), float(self.low)), float(self.high))

    def _steps(self, step: float) -> int:
        """Steps that fit; the last one of 0.1..0.3 by 0.1 too, which floats miss by a bit."""
        return math.floor((self.high - self.low) / step * (1 + 1e-12))

    def _exact(self, place: float, high: float) -> float:
        if self.log:
            return math.exp(math.log(self.low) + place * (math.log(high) - math.log(self.low)))
        return self.low + place * (high - self.low)


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

    Examples:
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
    written = (found["low_unit"], found["high_unit"], found["step_unit"])
    units = {unit for unit in written if unit}
    if len(units) > 1:
        raise InputError(f"--sample {assignment}: one unit is for all, as in 64..8192 KiB")
    low, high = _number(found["low"]), _number(found["high"])
    step = None if found["step"] is None else _number(found["step"])
    try:
        return name.strip(), Range(low, high, bool(found["log"]), "".join(units), step)
    except InputError as error:
        raise InputError(f"--sample {name.strip()}: {error}") from error


def _number(text: str) -> int | float:
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
        InputError: SciPy is not installed, or has no sequence of that many ranges.
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
