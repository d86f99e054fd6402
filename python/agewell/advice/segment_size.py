"""Which segment size suits a log on a disk: a sweep over sizes, and what it says.

A long segment writes new data in long transfers; a short one is more often empty, or nearly so,
when it is collected. Where the two balance depends on the disk and the load. Matthews 1999, §5.3,
found the best size for the Auspex load near four times access time x bandwidth; here the load is
run on every size, and the rule of thumb is held against what came out.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from agewell import files
from agewell.advice.comparing import made
from agewell.advice.segment_search import SEGMENTS_MIN, best_of, largest_bytes, search
from agewell.errors import InputError, RunError
from agewell.experiments.configuration import Configuration, Experiment, with_settings
from agewell.experiments.simulation import run_experiment
from agewell.files import catalogue, parquet_tables
from agewell.runs.sweeping import TABLE_FILE, Point, SweepProgress, plan, tabulate
from agewell.values.metrics import mechanisms, of_row
from agewell.values.plot import Curve, Plot
from agewell.values.sizes import size_text

SEGMENT_SIZE = "layout.segment_size"

DEFAULT_EXPERIMENT: Configuration = {
    "workload": {"kind": "auspex-like", "utilization": 0.85},
    "host": {"client_cache": "0 B", "server_cache": "0 B"},
    "layout": {
        "kind": "lfs",
        "segment_size": "256 KiB",
        "collect": "clean",
        "victim": "cost-age",
    },
    "device": {"kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s"},
}
"""A file server's week on a disk that is 85 % full. The disk is that of Matthews 1999, §5.2.2;
cost-age is the choice of victims there. Caches change what is read, hardly what is written, and are
left out to be quick."""

RULE_FACTOR = 4
"""Best segment size over access time x bandwidth (Matthews 1999, §5.3)."""

SPRITE_BYTES = 1 << 20
"""The segment of Sprite LFS (Matthews 1999, §5.3 and figure 5-2)."""

LARGEST_FACTOR = 64
"""The largest size tried at first is so many times access time x bandwidth; chosen by us: there the
time of an access is 1/64 of the transfer. The search goes on from there while it still gains."""

LARGEST_BYTES_MIN = 4 << 20
"""Sizes go up to this at least; chosen by us."""

CLOSE_PCT = 2.0
"""Costs this near to the best count as the same; chosen by us."""

_DRIVE_BYTES_MAX = 4 << 30
"""Most of a drive's model that is measured; chosen by us: the size of the default load's log."""


@dataclass(frozen=True, slots=True)
class DiskNumbers:
    """A disk in two numbers.

    Attributes:
        access_ms: Time before a transfer begins.
        bandwidth_mb_per_s: Rate of long transfers, in 10^6 bytes per second.
        source: Where they come from, for people.
    """

    access_ms: float
    bandwidth_mb_per_s: float
    source: str

    @property
    def product_bytes(self) -> float:
        """Access time x bandwidth: what could be transferred in the time of one access."""
        return self.access_ms * self.bandwidth_mb_per_s * 1e3


@dataclass(frozen=True, slots=True)
class SizeCost:
    """What one segment size costs."""

    segment_bytes: int
    overall_write_cost: float
    new_data_cost: float
    cleaner_cost: float
    transfer_inefficiency: float
    room_made_by: str | None = None
    """Which mechanisms of collection ran, and for what share; None if that is not known."""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> SizeCost:
        """From a row of the table of all runs."""
        metrics = of_row(row)
        return cls(
            segment_bytes=_bytes(row[SEGMENT_SIZE]),
            overall_write_cost=metrics["overall_write_cost"],
            new_data_cost=metrics["new_data_cost"],
            cleaner_cost=metrics["cleaner_cost"],
            transfer_inefficiency=metrics["transfer_inefficiency"],
            room_made_by=mechanisms(metrics),
        )


@dataclass(frozen=True, slots=True)
class Advice:
    """What a sweep over segment sizes says.

    Attributes:
        disk: The disk.
        own_bytes: The size that the experiment asks for.
        costs: A row a size that the log could run on, ascending.
        failed_bytes: Sizes on which the log could make no progress.
        left_out: Why larger sizes were not tried, or empty.
        config: The experiment as it was run on its own size, every default filled in.
    """

    disk: DiskNumbers
    own_bytes: int
    costs: Sequence[SizeCost]
    failed_bytes: Sequence[int]
    left_out: str
    config: Configuration

    @property
    def best(self) -> SizeCost:
        """The size of the lowest overall write cost; the smaller of equals."""
        return min(self.costs, key=lambda row: row.overall_write_cost)

    @property
    def rule_bytes(self) -> float:
        """What the rule of thumb says."""
        return RULE_FACTOR * self.disk.product_bytes

    def above_best_pct(self, row: SizeCost) -> float:
        """Cost above the best, in per cent of the best."""
        best = self.best.overall_write_cost
        return 100.0 * (row.overall_write_cost - best) / best

    def close(self) -> tuple[int, int]:
        """Smallest and largest size around the best whose cost is within 2 % of it."""
        place = self.costs.index(self.best)
        first = last = place
        while first > 0 and self.above_best_pct(self.costs[first - 1]) <= CLOSE_PCT:
            first -= 1
        while last + 1 < len(self.costs) and self.above_best_pct(self.costs[last + 1]) <= CLOSE_PCT:
            last += 1
        return self.costs[first].segment_bytes, self.costs[last].segment_bytes

    def nearest(self, size_bytes: float) -> SizeCost:
        """The row of the size nearest by ratio."""
        return min(
            self.costs,
            key=lambda row: max(row.segment_bytes, size_bytes) / min(row.segment_bytes, size_bytes),
        )

    def sentences(self) -> list[str]:
        """The advice in a few sentences."""
        low, high = self.close()
        best, rule = self.best, self.nearest(max(self.rule_bytes, 1.0))
        span = (
            "no other size comes within 2 % of it"
            if low == high
            else f"from {size_text(low)} to {size_text(high)} it is the same within 2 %"
        )
        first = (
            f"Use segments of {size_text(best.segment_bytes)}: overall write cost "
            f"{best.overall_write_cost:.3f}; {span}."
        )
        second = (
            f"The rule of thumb, {RULE_FACTOR} x access time x bandwidth (Matthews 1999, section "
            f"5.3), says {self.rule_bytes / 1e3:,.0f} KB; the size nearest to it, "
            f"{size_text(rule.segment_bytes)}, {self._price(rule)}."
        )
        sentences = [first, second, self._others()]
        if best.segment_bytes == _bytes(self.config["layout"]["block_size"]):
            sentences.append(
                "A segment of one block never needs collection; what so many segments cost in "
                "summaries and tables is not counted here."
            )
        return [sentence for sentence in sentences if sentence]

    def _others(self) -> str:
        """What Sprite's size and the experiment's own cost."""
        own = next((row for row in self.costs if row.segment_bytes == self.own_bytes), None)
        sprite = next((row for row in self.costs if row.segment_bytes == SPRITE_BYTES), None)
        parts = []
        if sprite is not None:
            parts.append(f"Sprite's choice of {size_text(SPRITE_BYTES)} {self._price(sprite)}")
        if own is not None and own is not sprite:
            parts.append(
                f"the experiment's layout.segment_size of {size_text(own.segment_bytes)} "
                f"{self._price(own)}"
            )
        sentence = "; ".join(parts)
        return f"{sentence[:1].upper()}{sentence[1:]}." if parts else ""

    def _price(self, row: SizeCost) -> str:
        above = self.above_best_pct(row)
        return (
            "is that best size" if row is self.best else f"costs {above:.1f} % more than the best"
        )

    def document(self) -> dict[str, Any]:
        """The advice as JSON values; sizes in bytes, costs as in results."""
        low, high = self.close()
        own = next((row for row in self.costs if row.segment_bytes == self.own_bytes), None)
        sprite = next((row for row in self.costs if row.segment_bytes == SPRITE_BYTES), None)
        rule = self.nearest(max(self.rule_bytes, 1.0))
        return {
            "device": {
                "access_ms": self.disk.access_ms,
                "bandwidth_mb_per_s": self.disk.bandwidth_mb_per_s,
                "source": self.disk.source,
            },
            "sizes": [
                {
                    "segment_bytes": row.segment_bytes,
                    "overall_write_cost": row.overall_write_cost,
                    "new_data_cost": row.new_data_cost,
                    "cleaner_cost": row.cleaner_cost,
                    "transfer_inefficiency": row.transfer_inefficiency,
                    "above_best_pct": self.above_best_pct(row),
                }
                for row in self.costs
            ],
            "failed_segment_bytes": list(self.failed_bytes),
            "left_out": self.left_out,
            "best_segment_bytes": self.best.segment_bytes,
            "within_2_pct_segment_bytes": [low, high],
            "rule_segment_bytes": self.rule_bytes,
            "rule_nearest_segment_bytes": rule.segment_bytes,
            "rule_above_best_pct": self.above_best_pct(rule),
            "sprite_above_best_pct": None if sprite is None else self.above_best_pct(sprite),
            "own_segment_bytes": self.own_bytes,
            "own_above_best_pct": None if own is None else self.above_best_pct(own),
            "advice": self.sentences(),
            "config": self.config,
        }


def advise(
    experiment: Experiment,
    *,
    disk_source: str = "",
    out: Path | None = None,
    catalogue_directory: Path | None = None,
    jobs: int | None = None,
    progress: SweepProgress | None = None,
) -> Advice:
    """Run an experiment on every segment size and say which one to use.

    Args:
        experiment: A log-structured experiment.
        disk_source: Where its disk's numbers come from; "the experiment" by default.
        out: Folder of the sweep, continued if it holds part of it; a temporary one by default.
        catalogue_directory: Folder of device files to use instead of the catalogue.
        jobs: Processes at once; one a processor by default.
        progress: Called with the number of runs done and of all runs.

    Raises:
        InputError: The experiment is bad, or not of a log.
        RunError: The log can make progress on no size.
    """
    layout = experiment.configuration.get("layout")
    if not isinstance(layout, Mapping) or layout.get("kind") != "lfs":
        raise InputError(
            'segment sizes are of a log: the experiment needs a table [layout] with kind = "lfs"'
        )
    # The lower bound would take two runs more for every size, and says nothing of sizes.
    configuration = with_settings(experiment.configuration, {"run.lower_bound": False})
    experiment = Experiment(configuration, experiment.base)
    # One run on the experiment's own size finds what is wrong with it before a sweep begins, and
    # says how large the log is.
    own = run_experiment(experiment, None, catalogue_directory)
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agewell-")))
        runs = _Runs(experiment, files.make_folder(folder), catalogue_directory, jobs, progress)
        return _searched(runs, own, disk_source)


def numbers_of_model(model: str, base: Path, catalogue_directory: Path | None) -> DiskNumbers:
    """Access time and bandwidth of a drive's model, as a log on its first 4 GiB sees them.

    Raises:
        InputError: The model is unknown or damaged.
    """
    # A log of one tenth of a gigabyte fits every drive that the capacity is asked of; its error
    # would be the model's own. The largest that fits, in halves, is the one that is measured.
    problem: InputError | None = None
    span_bytes = _DRIVE_BYTES_MAX
    while span_bytes >= _DRIVE_BYTES_MAX >> 7:
        configuration: Configuration = {
            "workload": {
                "kind": "sequential",
                "blocks": span_bytes // 2 // 8192,
                "updates_per_block": 1,
                # A little less than half: a log has room beside for its reserve.
                "utilization": 0.51,
            },
            "layout": {"kind": "lfs", "collect": "clean"},
            "device": {"model": model},
        }
        try:
            document = run_experiment(Experiment(configuration, base), None, catalogue_directory)
        except InputError as error:
            problem = problem or error
            span_bytes //= 2
            continue
        return _numbers(document, f"the drive model {model}, its first {size_text(span_bytes)}")
    assert problem is not None, "the loop runs at least once"
    raise problem


def with_disk(experiment: Experiment, access_time: str, bandwidth: str) -> Experiment:
    """The experiment on a disk of two numbers."""
    configuration = copy.deepcopy(experiment.configuration)
    configuration["device"] = {
        "kind": "simple",
        "access_time": access_time,
        "bandwidth": bandwidth,
    }
    return Experiment(configuration, experiment.base)


def plot_of(advice: Advice) -> Plot:
    """Overall write cost over segment size, its parts, and the rule of thumb."""
    places = list(range(len(advice.costs)))
    parts = (
        ("overall write cost", [row.overall_write_cost for row in advice.costs]),
        ("new data", [row.new_data_cost for row in advice.costs]),
        ("collection", [row.cleaner_cost for row in advice.costs]),
    )
    curves = [Curve(label, places, costs) for label, costs in parts]
    rule = _place(advice)
    if rule is not None:
        top = max(row.overall_write_cost for row in advice.costs)
        curves.append(
            Curve("rule of thumb", [rule, rule], [0.0, top], "steps", dashed=True, emphasis=False)
        )
    return Plot(
        name="segment-size",
        title="Write cost by segment size",
        x_label="segment size",
        y_label="write cost",
        curves=curves,
        caption="Disk time of all writing over the time to stream the new data.",
        categories=[size_text(row.segment_bytes).replace(" ", "\n") for row in advice.costs],
    )


def _place(advice: Advice) -> float | None:
    """Where the rule of thumb lies among the sizes, by ratio; None if outside of them."""
    for place, (low, high) in enumerate(itertools.pairwise(advice.costs)):
        if low.segment_bytes <= advice.rule_bytes <= high.segment_bytes:
            ratio = math.log(high.segment_bytes / low.segment_bytes)
            return place + math.log(advice.rule_bytes / low.segment_bytes) / ratio
    return None


class _Runs:
    """The runs of one experiment on segment sizes, each made once."""

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        catalogue_directory: Path | None,
        jobs: int | None,
        progress: SweepProgress | None,
    ) -> None:
        self.folder = folder
        self.done: dict[int, Point] = {}
        self.failed: dict[int, str] = {}
        self._experiment = experiment
        self._devices = catalogue_directory or catalogue.directory()
        self._jobs = jobs
        self._progress = progress

    def costs_of(self, sizes: Sequence[int]) -> list[float]:
        """The overall write costs on these sizes; infinite where the log cannot do it."""
        points = plan(self._experiment, {SEGMENT_SIZE: [f"{size} B" for size in sizes]})
        before = len(self.done) + len(self.failed)

        def progress(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(before + done, before + total)

        reasons = made(
            [point.run for point in points], self.folder, self._devices, self._jobs, progress
        )
        costs = []
        for size, point, reason in zip(sizes, points, reasons, strict=True):
            if reason:
                self.failed[size] = reason
                costs.append(math.inf)
                continue
            self.done[size] = point
            cost = point.run.document(self.folder)["metrics"]["overall_write_cost"]
            if cost is None:
                raise InputError(
                    "[workload]: nothing is written, so that no segment size costs anything"
                )
            costs.append(float(cost))
        return costs

    def table(self) -> pa.Table:
        """A row a size that could be done, ascending; the file of it is left in the folder."""
        points = [self.done[size] for size in sorted(self.done)]
        table = tabulate(self.folder, points, [SEGMENT_SIZE])
        parquet_tables.write(self.folder / TABLE_FILE, table)
        return table


def _searched(runs: _Runs, own: Mapping[str, Any], disk_source: str) -> Advice:
    layout = own["config"]["layout"]
    block_bytes, own_bytes = _bytes(layout["block_size"]), _bytes(layout["segment_size"])
    disk = _numbers(own, disk_source or "the experiment's own device")
    wanted = max(LARGEST_FACTOR * disk.product_bytes, LARGEST_BYTES_MIN)
    log_bytes = own["metrics"]["capacity_blocks"] * block_bytes
    largest = largest_bytes(log_bytes)
    sizes = {own_bytes}
    size_bytes = block_bytes
    while size_bytes <= min(wanted, largest):
        sizes.add(size_bytes)
        size_bytes *= 2
    costs = search(sorted(sizes), runs.costs_of, smallest=block_bytes, largest=largest)
    tried = max(costs)
    left_out = ""
    if runs.failed.keys() == costs.keys():
        raise RunError(next(iter(runs.failed.values())))
    # A size may be too large for the room that the log has beside its live data; smaller ones may
    # leave no room to collect.
    ends_at = max(runs.done)
    too_large = sorted(size for size in runs.failed if size > ends_at)
    if too_large:
        left_out = (
            f"sizes from {size_text(too_large[0])} up cannot be done: {runs.failed[too_large[0]]}"
        )
    elif 2 * tried > largest and (largest < wanted or best_of(costs) == tried):
        left_out = (
            f"sizes above {size_text(tried)} were not tried: the log of "
            f"{log_bytes / 1e6:,.0f} MB would have fewer than {SEGMENTS_MIN} segments"
        )
    table = runs.table()
    return Advice(
        disk=disk,
        own_bytes=own_bytes,
        costs=[SizeCost.of_row(row) for row in table.to_pylist()],
        failed_bytes=sorted(runs.failed.keys() - set(too_large)),
        left_out=left_out,
        config=own["config"],
    )


def _numbers(document: Mapping[str, Any], source: str) -> DiskNumbers:
    estimate = document["disk_estimate"]
    return DiskNumbers(float(estimate["access_ms"]), float(estimate["bandwidth_mb_per_s"]), source)


def _bytes(text: str) -> int:
    """The size that a resolved configuration writes as `262144 B`."""
    return int(text.removesuffix(" B"))
