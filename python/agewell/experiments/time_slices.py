"""One run against another, slice by slice of what users transferred.

The totals of two runs say who wins; how steadily is in `throughput.parquet`, whose running totals
are cut here into slices of equal user bytes. Both runs serve the same requests, so that a slice is
the same work in both.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agewell.errors import InputError
from agewell.experiments.simulation import THROUGHPUT_FILE
from agewell.files import parquet_tables

SLICES = 10
"""Chosen by us: enough for a spread, and long enough that collection shows in each."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """How much disk time one run saves against another, in per cent, slice by slice.

    Attributes:
        saved_pct: A value a slice, in the order of time; negative where it takes more. A slice in
            which the other needs no disk is left out if this one needs none either.
    """

    saved_pct: Sequence[float]

    @property
    def least(self) -> float:
        """Of the worst slice."""
        return min(self.saved_pct)

    @property
    def median(self) -> float:
        """Of the slice in the middle."""
        return statistics.median(self.saved_pct)

    @property
    def most(self) -> float:
        """Of the best slice."""
        return max(self.saved_pct)

    @property
    def losing(self) -> list[int]:
        """Slices, counted from 1, in which it takes more disk time than the other."""
        return [place for place, saved in enumerate(self.saved_pct, start=1) if saved < 0]

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "slices": len(self.saved_pct),
            "least_pct": self.least,
            "median_pct": self.median,
            "most_pct": self.most,
            "losing_slices": self.losing,
            "saved_pct": list(self.saved_pct),
        }


def spread(ours: Path, theirs: Path, slices: int = SLICES) -> Spread | None:
    """What the run in the folder `ours` saves against that in `theirs`.

    Returns:
        None if nothing was transferred or neither needed the disk.

    Raises:
        InputError: A folder holds no running totals, or they are of different requests.
    """
    bytes_ours, mine = course(ours)
    bytes_theirs, other = course(theirs)
    if bytes_ours[-1] != bytes_theirs[-1]:
        raise InputError(f"{ours} and {theirs}: are runs of different requests")
    edges = np.linspace(0.0, bytes_ours[-1], slices + 1)
    mine_ns = np.diff(np.interp(edges, bytes_ours, mine))
    other_ns = np.diff(np.interp(edges, bytes_theirs, other))
    saved = [
        100.0 * (1.0 - float(own / their))
        for own, their in zip(mine_ns, other_ns, strict=True)
        if their > 0
    ]
    return Spread(saved) if saved else None


def course(folder: Path) -> tuple[FloatArray, FloatArray]:
    """User bytes and disk time (ns) so far, from nothing on, of the run in `folder`.

    Raises:
        InputError: It holds no running totals.
    """
    table = parquet_tables.read(
        folder / THROUGHPUT_FILE,
        columns=["user_bytes", "disk_ns"],
        what="the running totals of a run",
    )
    columns = [
        np.append(0.0, table[name].to_numpy().astype(np.float64))
        for name in ("user_bytes", "disk_ns")
    ]
    return columns[0], columns[1]
