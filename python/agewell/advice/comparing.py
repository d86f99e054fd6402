"""Every layout on the same workloads, disks and utilizations: `agewell.compare`.

A comparison is a grid of cells, one a workload, a device and a utilization. In each cell every
layout serves the same requests through the same host (`layouts.SHARED_HOST`) on the same disk. A
comparison is a folder:

    runs/<key>/       one run each, as `agewell run --out` leaves it, so that it can be run again
    compare.json      the tables and the verdict
    compare.parquet   a row a layout and cell, every metric

The measure of a layout in a cell is its total disk time over that of the best layout there. A
layout that cannot do a cell (it does not fit, the device takes no write like that) has a reason in
place of numbers; it is neither best nor robust by that. Robustness is the worst ratio over all
cells: Matthews 1999, §4.3, expects adaptive layouts to have the least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import files
from agewell.advice.measure import CLOSE_RATIO, refusal
from agewell.errors import InputError
from agewell.experiments import choices
from agewell.experiments.choices import (
    UTILIZATIONS,
    DeviceChoice,
    WorkloadChoice,
    check_settings,
    experiment_of,
)
from agewell.experiments.layouts import NamedLayout, named
from agewell.experiments.traces import Trace
from agewell.files import parquet_tables
from agewell.runs.keyed_runs import Answer, KeyedRun, Progress, RunFolder
from agewell.values import documents
from agewell.values.findings import Findings
from agewell.values.sizes import percent
from agewell.version import __version__, build

if TYPE_CHECKING:
    import pyarrow as pa

DOCUMENT_FILE = "compare.json"
TABLE_FILE = "compare.parquet"

SHOWN_METRICS = (
    "overall_write_cost",
    "mean_disk_read_block_ms",
    "disk_seconds",
    "p99_response_ms",
    "recovery_seconds",
)
"""Columns of the table, in order; the Parquet table has every metric."""

THESIS_LAYOUT = "lfs-matthews"
"""The adaptive log of chapter 5; ours adapts further."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What every layout is put to."""

    workload: str
    device: str
    utilization: float

    def __str__(self) -> str:
        """For tables and sentences: `mail on hp-97560, 90 % full`."""
        return f"{self.workload} on {self.device}, {percent(self.utilization)} full"

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "workload": self.workload,
            "device": self.device,
            "utilization": self.utilization,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Answer):
    """One layout in one cell."""

    layout: str


@dataclass(frozen=True, slots=True)
class Robustness:
    """One layout over all cells.

    Attributes:
        layout: Its name.
        worst_ratio: Its greatest ratio to the best layout over the cells that it could do; None
            if it could do none.
        worst_at: Where that is.
        mean_ratio: The geometric mean of its ratios.
        best_in: Cells in which it is within `CLOSE_RATIO` of the best.
        done: Cells that it could do.
        cells: Cells that any layout could do.
    """

    layout: str
    worst_ratio: float | None
    worst_at: Cell | None
    mean_ratio: float | None
    best_in: int
    done: int
    cells: int

    @property
    def rank(self) -> tuple[int, float]:
        """Least for the most robust: first come those that could do most cells."""
        worst = math.inf if self.worst_ratio is None else self.worst_ratio
        return self.cells - self.done, worst


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Findings):
    """What a comparison gave: a row of entries a cell, in the order of the layouts."""

    layouts: Sequence[NamedLayout]
    cells: Mapping[Cell, Sequence[Entry]]

    def ratio(self, cell: Cell, entry: Entry) -> float | None:
        """Disk time over the least in the cell; None where there is none."""
        least = min(each.disk_seconds for each in self.cells[cell])
        if entry.metrics is None or math.isinf(least):
            return None
        if least == 0:
            # A cell in which the best layout needs no disk has no finite ratios but one.
            return 1.0 if entry.disk_seconds == 0 else math.inf
        return entry.disk_seconds / least

    def robustness(self, common_only: bool = False) -> list[Robustness]:
        """Every layout over the cells, the most robust first.

        Args:
            common_only: Only the cells that every layout could do, of those that can do half of
                them or more.
        """
        cells = [cell for cell, row in self.cells.items() if self._counts(row, common_only)]
        found = [self._over(place, cells) for place in range(len(self.layouts))]
        return sorted(found, key=lambda each: each.rank)

    def verdict(self) -> list[str]:
        """Whether Matthews' thesis holds over these cells, in words with the numbers."""
        sentences = [self._sentence(self.robustness(), "over all cells")]
        # One that can do hardly anything here says little of the cells.
        if not all(self._counts(row, common_only=True) for row in self.cells.values()):
            common = self.robustness(common_only=True)
            if common[0].cells:
                share = f"{common[0].cells} of {len(self.cells)}"
                where = f"in the cells that all could do that can do half of them ({share})"
                sentences.append(self._sentence(common, where))
        return [sentence for sentence in sentences if sentence]

    @property
    def document(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        fields = {
            "agewell_version": __version__,
            "agewell_build": build(),
            "layouts": [
                {
                    "name": layout.name,
                    "words": layout.words,
                    "is_adaptive": layout.is_adaptive,
                    "table": dict(layout.table),
                }
                for layout in self.layouts
            ],
            "cells": [
                {**cell.document(), "layouts": [self._entry(cell, entry) for entry in row]}
                for cell, row in self.cells.items()
            ],
            "robustness": [_robustness_document(each) for each in self.robustness()],
            "verdict": self.verdict(),
        }
        return documents.document("compare", fields)

    @property
    def metrics(self) -> dict[str, float | None]:
        """Of each layout its worst ratio of disk time to the best; None if it can do no cell."""
        return {f"{each.layout}.worst_ratio": each.worst_ratio for each in self.robustness()}

    def table(self) -> pa.Table:
        """A row a layout and cell, every metric."""
        return _table(self)

    def _shown(self) -> dict[str, object]:
        return {"cells": len(self.cells), "most_robust": self.robustness()[0].layout}

    def _counts(self, row: Sequence[Entry], common_only: bool) -> bool:
        if not common_only:
            return any(entry.metrics is not None for entry in row)
        useful = self._useful()
        return all(entry.metrics is not None for entry in row if entry.layout in useful)

    def _useful(self) -> set[str]:
        """Layouts that can do half of the cells or more."""
        done = Counter(
            entry.layout
            for row in self.cells.values()
            for entry in row
            if entry.metrics is not None
        )
        return {layout for layout, count in done.items() if 2 * count >= len(self.cells)}

    def _over(self, place: int, cells: Sequence[Cell]) -> Robustness:
        ratios = {}
        for cell in cells:
            ratio = self.ratio(cell, self.cells[cell][place])
            if ratio is not None:
                ratios[cell] = ratio
        worst_at = max(ratios, key=lambda cell: ratios[cell], default=None)
        return Robustness(
            layout=self.layouts[place].name,
            worst_ratio=None if worst_at is None else ratios[worst_at],
            worst_at=worst_at,
            mean_ratio=geometric_mean(list(ratios.values())),
            best_in=sum(ratio <= CLOSE_RATIO for ratio in ratios.values()),
            done=len(ratios),
            cells=len(cells),
        )

    def _sentence(self, ranked: Sequence[Robustness], where: str) -> str:
        """The verdict over one set of cells; empty where nothing can be said."""
        adaptive_names = {layout.name for layout in self.layouts if layout.is_adaptive}
        adaptive = next((each for each in ranked if each.layout in adaptive_names), None)
        other = next((each for each in ranked if each.layout not in adaptive_names), None)
        if adaptive is None or other is None:
            lacking = "an adaptive" if adaptive is None else "a layout that is not adaptive"
            return (
                f"Whether adaptive layouts are the robust ones needs {lacking} layout to compare."
            )
        if adaptive.worst_ratio is None or other.worst_ratio is None:
            return ""
        first, second = (adaptive, other) if adaptive.rank <= other.rank else (other, adaptive)
        head = "holds" if adaptive.rank < other.rank else "does not hold"
        if first.done == second.done and _factor(first, second) <= CLOSE_RATIO:
            head = "neither holds nor fails"
        sentence = (
            f"Matthews' thesis that adaptive layouts are the robust ones {head} {where}: "
            f"{_worst(first)}; {_worst(second)}{_by_how_much(first, second)}."
        )
        own = next((each for each in ranked if each.layout == THESIS_LAYOUT), None)
        if own is not None and own is not adaptive and own.worst_ratio is not None:
            sentence += f" The rule of the thesis itself: {_worst(own)}."
        return sentence

    def _entry(self, cell: Cell, entry: Entry) -> dict[str, Any]:
        metrics = entry.metrics
        return {
            "layout": entry.layout,
            "run": None if metrics is None else f"runs/{entry.run.key}",
            "cannot": entry.cannot or None,
            **{name: None if metrics is None else metrics.get(name) for name in SHOWN_METRICS},
            "ratio": _finite(self.ratio(cell, entry)),
        }


def compare(
    layouts: Sequence[NamedLayout | str],
    workloads: Sequence[WorkloadChoice | Trace | str],
    devices: Sequence[DeviceChoice | str],
    out: Path | str,
    *,
    utilizations: Sequence[float] = (),
    settings: Mapping[str, Any] | None = None,
    catalogue_directory: Path | str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run every layout in every cell.

    Args:
        layouts: Which, or their names.
        workloads: Which, or generators, experiments and traces by name, as on the command line, or
            traces as values.
        devices: Which, or devices by name, files, and two numbers.
        out: Folder of the comparison; what it holds already is not made again.
        utilizations: Of the disk; by default that of the workload's file, or `UTILIZATIONS`.
        settings: Single values by `table.key`, the same in every run.
        catalogue_directory: Folder of device files to use instead of the catalogue.
        jobs: Processes at once; one a processor by default.
        progress: Called after each run.

    Returns:
        The comparison, the same for the same question and inputs.

    Raises:
        InputError: A workload, a device or a setting is bad: no layout can do any of its cells.
        RunError: A run was lost; the finished ones stay, and the same call goes on with the rest.

    Examples:
        >>> import tempfile, agewell
        >>> values = {"workload.blocks": 2000, "workload.updates_per_block": 2}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = agewell.compare(
        ...         ["lfs", "sequential"],
        ...         ["random-update"],
        ...         ["simple:15ms:5MB/s"],
        ...         folder,
        ...         utilizations=[0.8],
        ...         settings=values,
        ...         jobs=1,
        ...     )
        >>> sorted(found.metrics)
        ['lfs.worst_ratio', 'sequential.worst_ratio']
    """
    check_settings(settings or {})
    chosen = [named(each) if isinstance(each, str) else each for each in layouts]
    asked = _plan(
        chosen,
        [choices.workload(each) for each in workloads],
        [choices.device(each, catalogue_directory) for each in devices],
        utilizations,
        settings or {},
    )
    folder = RunFolder(Path(out), catalogue_directory, jobs)
    answers = iter(folder.answers([run for row in asked.values() for run in row], progress))
    cells = {
        cell: [
            Entry(layout=layout.name, run=each.run, document=each.document, cannot=each.cannot)
            for layout, each in zip(chosen, (next(answers) for _ in row), strict=True)
        ]
        for cell, row in asked.items()
    }
    _refuse_what_nobody_can_do(cells)
    comparison = Comparison(chosen, cells)
    files.write_json(folder.root / DOCUMENT_FILE, comparison.document)
    parquet_tables.write(folder.root / TABLE_FILE, comparison.table())
    return comparison


def geometric_mean(values: Sequence[float]) -> float | None:
    """The geometric mean; None of nothing, infinite if a value is."""
    if not values:
        return None
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _plan(
    layouts: Sequence[NamedLayout],
    workloads: Sequence[WorkloadChoice],
    devices: Sequence[DeviceChoice],
    utilizations: Sequence[float],
    settings: Mapping[str, Any],
) -> dict[Cell, list[KeyedRun]]:
    asked = {}
    for workload in workloads:
        own = UTILIZATIONS if workload.utilization is None else (workload.utilization,)
        for device in devices:
            for utilization in utilizations or own:
                cell = Cell(workload.name, device.name, utilization)
                asked[cell] = [
                    KeyedRun.of(
                        experiment_of(layout.table, workload, device, utilization, settings)
                    )
                    for layout in layouts
                ]
    return asked


def _refuse_what_nobody_can_do(cells: Mapping[Cell, Sequence[Entry]]) -> None:
    """Raise if all cells of a workload, or of a device, fail for one reason: it is bad input."""
    kinds: tuple[Callable[[Cell], str], ...] = (
        lambda cell: cell.workload,
        lambda cell: cell.device,
    )
    for kind in kinds:
        rows: dict[str, list[Entry]] = {}
        for cell, row in cells.items():
            rows.setdefault(kind(cell), []).extend(row)
        for name, entries in rows.items():
            if all(entry.metrics is None for entry in entries):
                raise InputError(refusal(entries, f"{name}: no layout can do it"))


def _table(comparison: Comparison) -> pa.Table:
    import pyarrow as pa

    rows = [
        (cell, entry, entry.metrics or {})
        for cell, row in comparison.cells.items()
        for entry in row
    ]
    names = dict.fromkeys(name for _, _, metrics in rows for name in metrics)
    columns: dict[str, Any] = {
        "workload": pa.array([cell.workload for cell, _, _ in rows], pa.string()),
        "device": pa.array([cell.device for cell, _, _ in rows], pa.string()),
        "utilization": pa.array([cell.utilization for cell, _, _ in rows], pa.float64()),
        "layout": pa.array([entry.layout for _, entry, _ in rows], pa.string()),
        "run": pa.array([entry.run.key for _, entry, _ in rows], pa.string()),
        "cannot": pa.array([entry.cannot or None for _, entry, _ in rows], pa.string()),
        "ratio": pa.array([comparison.ratio(cell, entry) for cell, entry, _ in rows], pa.float64()),
    }
    for name in names:
        values = [metrics.get(name) for _, _, metrics in rows]
        columns[f"metrics.{name}"] = pa.array(
            [None if value is None else float(value) for value in values], pa.float64()
        )
    return pa.table(columns)


def _robustness_document(each: Robustness) -> dict[str, Any]:
    return {
        "layout": each.layout,
        "worst_ratio": _finite(each.worst_ratio),
        "worst_at": None if each.worst_at is None else each.worst_at.document(),
        "geometric_mean_ratio": _finite(each.mean_ratio),
        "best_in": each.best_in,
        "done": each.done,
        "cells": each.cells,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _worst(each: Robustness) -> str:
    worst = f"{each.layout} is at worst {each.worst_ratio:.2f} times the best ({each.worst_at})"
    if each.done < each.cells:
        worst += f" and cannot do {each.cells - each.done} of {each.cells} cells"
    return worst


def _by_how_much(first: Robustness, second: Robustness) -> str:
    """How much smaller the worst ratio of the more robust is, where both did the same cells."""
    if first.done != second.done or first.worst_ratio is None or second.worst_ratio is None:
        return ""
    factor = _factor(first, second)
    return "" if math.isinf(factor) else f", {100 * (factor - 1):.0f} % more"


def _factor(first: Robustness, second: Robustness) -> float:
    """How many times the worst ratio of the one is that of the other; infinite if not known."""
    if first.worst_ratio is None or second.worst_ratio is None or math.isinf(second.worst_ratio):
        return math.inf
    return second.worst_ratio / first.worst_ratio
