"""Which segment size suits a log on a disk: the search over sizes, and what it says.

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

from agewell.advice.segment_search import SizesTried, search
from agewell.errors import InputError, RunError
from agewell.experiments.configuration import Configuration, Experiment, with_settings
from agewell.experiments.simulation import run_experiment
from agewell.files import parquet_tables
from agewell.runs.axes import axes_of
from agewell.runs.keyed_runs import Answer, Progress, RunFolder
from agewell.runs.sweeping import TABLE_FILE, Point, plan, tabulate
from agewell.values import documents
from agewell.values.plot import Curve, Plot
from agewell.values.sizes import size_text

SEGMENT_SIZE = "layout.segment_size"

DEFAULT_EXPERIMENT: Configuration = {
    "workload": {"kind": "auspex-like", "utilization": 0.85},
    "host": {"client_cache": "0 B"},
    "layout": {
        "kind": "lfs",
        "segment_size": "256 KiB",
        "collect": "clean",
        "victim": "cost-age",
    },
    "device": {"kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s"},
}
"""A file server's week on a disk that is 85 % full. The disk and the server's cache are those of
Matthews 1999, §5.2.2; cost-age is the choice of victims there. Caches of clients would take most of
the time of a run; what is read is the same on every segment size with them and without."""

RULE_FACTOR = 4
"""Best segment size over access time x bandwidth (Matthews 1999, §5.3)."""

SPRITE_BYTES = 1 << 20
"""The segment of Sprite LFS (Matthews 1999, §5.3 and figure 5-2)."""

SHOWN_METRICS = (
    "disk_seconds",
    "overall_write_cost",
    "new_data_cost",
    "cleaner_cost",
    "transfer_inefficiency",
)
"""Columns of the table, in order; the Parquet table has every metric."""

CLOSE_PCT = 2.0
"""Disk times this near to the best count as the same; chosen by us."""

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
class Advice:
    """What a search over segment sizes says.

    Attributes:
        disk: The disk.
        tried: The sizes, and what became of each; the log could run on one of them at least.
        config: The experiment as it was run on its own size, every default filled in.
    """

    disk: DiskNumbers
    tried: SizesTried[Answer]
    config: Configuration

    @property
    def costs(self) -> dict[int, Answer]:
        """The runs of the sizes that the log could run on, ascending."""
        return self.tried.able

    @property
    def failed_bytes(self) -> list[int]:
        """Sizes on which the log could make no progress."""
        unable = self.tried.answers.keys() - self.tried.able.keys()
        return sorted(unable - set(self.tried.too_large))

    @property
    def best_bytes(self) -> int:
        """The size of the least disk time; the smaller of equals."""
        best = self.tried.best_bytes
        assert best is not None, "the log could run on one size at least"
        return best

    @property
    def rule_bytes(self) -> float:
        """What the rule of thumb says."""
        return RULE_FACTOR * self.disk.product_bytes

    def above_best_pct(self, size_bytes: int) -> float:
        """Disk time above the best, in per cent of the best."""
        best = self.costs[self.best_bytes].disk_seconds
        return 100.0 * (self.costs[size_bytes].disk_seconds - best) / best

    def close(self) -> tuple[int, int]:
        """Smallest and largest size around the best whose disk time is within 2 % of it."""
        sizes = list(self.costs)
        first = last = sizes.index(self.best_bytes)
        while first > 0 and self.above_best_pct(sizes[first - 1]) <= CLOSE_PCT:
            first -= 1
        while last + 1 < len(sizes) and self.above_best_pct(sizes[last + 1]) <= CLOSE_PCT:
            last += 1
        return sizes[first], sizes[last]

    def nearest(self, size_bytes: float) -> int:
        """The size nearest by ratio."""
        return min(self.costs, key=lambda size: max(size, size_bytes) / min(size, size_bytes))

    def sentences(self) -> list[str]:
        """The advice in a few sentences."""
        low, high = self.close()
        best, rule = self.best_bytes, self.nearest(max(self.rule_bytes, 1.0))
        span = (
            "no other size comes within 2 % of it"
            if low == high
            else f"from {size_text(low)} to {size_text(high)} it is the same within 2 %"
        )
        first = (
            f"Use segments of {size_text(best)}: {self.costs[best].disk_seconds:,.2f} s of disk "
            f"time, overall write cost {self._write_cost(best):.3f}; {span}."
        )
        second = (
            f"The rule of thumb, {RULE_FACTOR} x access time x bandwidth (Matthews 1999, section "
            f"5.3), says {self.rule_bytes / 1e3:,.0f} KB; the size nearest to it, "
            f"{size_text(rule)}, {self._price(rule)}."
        )
        sentences = [first, second, self._others()]
        if best == self.tried.block_bytes:
            sentences.append(
                "A segment of one block never needs collection; what that number of segments costs "
                "in summaries and tables is not counted here."
            )
        return [sentence for sentence in sentences if sentence]

    def _write_cost(self, size_bytes: int) -> float:
        metrics = self.costs[size_bytes].metrics
        assert metrics is not None, "it is one of those that could run"
        return float(metrics["overall_write_cost"])

    def _others(self) -> str:
        """What Sprite's size and the experiment's own cost."""
        own = self.tried.own_bytes
        parts = []
        if SPRITE_BYTES in self.costs:
            parts.append(
                f"Sprite's choice of {size_text(SPRITE_BYTES)} {self._price(SPRITE_BYTES)}"
            )
        if own in self.costs and own != SPRITE_BYTES:
            parts.append(
                f"the experiment's layout.segment_size of {size_text(own)} {self._price(own)}"
            )
        sentence = "; ".join(parts)
        return f"{sentence[:1].upper()}{sentence[1:]}." if parts else ""

    def _price(self, size_bytes: int) -> str:
        if size_bytes == self.best_bytes:
            return "is that best size"
        return f"takes {self.above_best_pct(size_bytes):.1f} % more disk time than the best"

    def document(self) -> dict[str, Any]:
        """The advice as JSON values; sizes in bytes, costs as in results."""
        low, high = self.close()
        rule = self.nearest(max(self.rule_bytes, 1.0))

        def above(size_bytes: int) -> float | None:
            return self.above_best_pct(size_bytes) if size_bytes in self.costs else None

        fields = {
            "device": {
                "access_ms": self.disk.access_ms,
                "bandwidth_mb_per_s": self.disk.bandwidth_mb_per_s,
                "source": self.disk.source,
            },
            "sizes": [
                {
                    "segment_bytes": size,
                    **{name: (each.metrics or {})[name] for name in SHOWN_METRICS},
                    "above_best_pct": above(size),
                }
                for size, each in self.costs.items()
            ],
            "failed_segment_bytes": self.failed_bytes,
            "left_out": self.tried.left_out,
            "best_segment_bytes": self.best_bytes,
            "within_2_pct_segment_bytes": [low, high],
            "rule_segment_bytes": self.rule_bytes,
            "rule_nearest_segment_bytes": rule,
            "rule_above_best_pct": above(rule),
            "sprite_above_best_pct": above(SPRITE_BYTES),
            "own_segment_bytes": self.tried.own_bytes,
            "own_above_best_pct": above(self.tried.own_bytes),
            "advice": self.sentences(),
            "config": self.config,
        }
        return documents.document("segment-size", fields)


def advise(
    experiment: Experiment,
    *,
    disk_source: str = "",
    out: Path | None = None,
    catalogue_directory: Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
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
        runs = _Runs(experiment, RunFolder(folder, catalogue_directory, jobs), progress)
        tried = search(own, runs.answers)
        if not tried.able:
            raise RunError(next(iter(tried.answers.values())).cannot)
        runs.write_table(list(tried.able))
    return Advice(_numbers(own, disk_source or "the experiment's own device"), tried, own["config"])


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
    metrics = [each.metrics or {} for each in advice.costs.values()]
    parts = (
        ("overall write cost", "overall_write_cost"),
        ("new data", "new_data_cost"),
        ("collection", "cleaner_cost"),
    )
    curves = [Curve(label, places, [each[name] for each in metrics]) for label, name in parts]
    rule = _place(advice)
    if rule is not None:
        top = max(each["overall_write_cost"] for each in metrics)
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
        categories=[size_text(size).replace(" ", "\n") for size in advice.costs],
    )


def _place(advice: Advice) -> float | None:
    """Where the rule of thumb lies among the sizes, by ratio; None if outside of them."""
    for place, (low, high) in enumerate(itertools.pairwise(advice.costs)):
        if low <= advice.rule_bytes <= high:
            return place + math.log(advice.rule_bytes / low) / math.log(high / low)
    return None


class _Runs:
    """The runs of one experiment on segment sizes, each made once."""

    def __init__(
        self, experiment: Experiment, folder: RunFolder, progress: Progress | None
    ) -> None:
        self._experiment = experiment
        self._folder = folder
        self._progress = progress
        self._points: dict[int, Point] = {}

    def answers(self, sizes: Sequence[int]) -> list[Answer]:
        """What became of these sizes.

        Raises:
            InputError: The experiment writes nothing.
        """
        points = plan(self._experiment, axes_of({SEGMENT_SIZE: [f"{size} B" for size in sizes]}))
        before = len(self._points)
        self._points.update(zip(sizes, points, strict=True))

        def progress(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(before + done, before + total)

        answers = self._folder.answers([point.run for point in points], progress)
        if any(each.metrics and each.metrics["overall_write_cost"] is None for each in answers):
            raise InputError(
                "[workload]: nothing is written, so that no segment size costs anything"
            )
        return answers

    def write_table(self, sizes: Sequence[int]) -> None:
        """Leave a table of a row a size in the folder."""
        points = [self._points[size] for size in sizes]
        table = tabulate(self._folder.root, points, [SEGMENT_SIZE], [None] * len(points))
        parquet_tables.write(self._folder.root / TABLE_FILE, table)


def _numbers(document: Mapping[str, Any], source: str) -> DiskNumbers:
    estimate = document["disk_estimate"]
    return DiskNumbers(float(estimate["access_ms"]), float(estimate["bandwidth_mb_per_s"]), source)
