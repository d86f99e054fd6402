"""Layout metrics of snapshots, images and mounted file systems.

    from agewell.filesystems import scoring

    scored = scoring.score("/srv", hot="30 d", device="seagate-st2000dm006")
    scored.metrics["layout_score"], scored.metrics["name_adjacency"]

What each metric means, with its rules and denominators, stands in
`docs/concepts/layout-score.md`.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import _agewell
from agewell.files import catalogue
from agewell.values import documents
from agewell.values.findings import Findings

if TYPE_CHECKING:
    import pyarrow as pa

Progress = Callable[[int, int | None], object]
"""Called with the files seen so far and, where the file system says so, how many there are."""


_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))

EXACT_BLOCKS = 16
"""Sizes up to this number of blocks are reported one by one (`by_blocks`)."""


@dataclass(frozen=True, slots=True)
class ScoreMetric:
    """One headline metric: where it stands in a report, and how people see it.

    Attributes:
        name: The fixed name.
        label: The name in words.
        keys: Where it stands in the report.
        kind: How it is written: `share` (0.987), `percent`, `bytes` or `number`.
    """

    name: str
    label: str
    keys: tuple[str, ...]
    kind: str = "share"


METRICS = (
    ScoreMetric("utilization", "full", ("contents", "utilization"), "percent"),
    ScoreMetric("layout_score", "layout score", ("layout", "layout_score")),
    ScoreMetric("mean_file_score", "mean of file scores", ("layout", "mean_file_score")),
    ScoreMetric("hot_layout_score", "of hot files", ("layout", "hot", "layout_score")),
    ScoreMetric("split_share", "files split", ("fragmentation", "split_share"), "percent"),
    ScoreMetric(
        "fragments_per_file",
        "fragments a file",
        ("fragmentation", "fragments_per_file"),
        "number",
    ),
    ScoreMetric(
        "mean_gap_bytes",
        "mean gap at a break",
        ("fragmentation", "mean_gap_bytes"),
        "bytes",
    ),
    ScoreMetric(
        "name_adjacency", "neighbours by name", ("neighbours", "by_name", "adjacency"), "percent"
    ),
    ScoreMetric(
        "creation_adjacency",
        "neighbours by creation",
        ("neighbours", "by_creation", "adjacency"),
        "percent",
    ),
    ScoreMetric(
        "readdir_adjacency",
        "neighbours as listed",
        ("neighbours", "by_readdir", "adjacency"),
        "percent",
    ),
    ScoreMetric("free_space_score", "free-space score", ("free_space", "free_space_score")),
    ScoreMetric(
        "mean_free_extent_bytes",
        "mean free extent",
        ("free_space", "mean_extent_bytes"),
        "bytes",
    ),
)
"""The headline metrics, in the order of the tables."""

DEVICE_METRICS = ("walk_seconds", "defragmenting_gain_pct", "rewriting_gain_pct")
"""What a score has besides where a device was given."""

METRIC_NAMES = (*(metric.name for metric in METRICS), *DEVICE_METRICS)
"""Every name in `Score.metrics`."""


@dataclass(frozen=True, slots=True, repr=False)
class Score(Findings):
    """The metrics of one snapshot, image or mounted tree.

    Attributes:
        path: What was measured.
        parameters: What the file system says of itself.
        report: Every metric, with denominators.
        reorganising: Expected times of reading, if a device was given.
    """

    path: str
    parameters: dict[str, str]
    report: dict[str, Any]
    reorganising: dict[str, Any] | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Score:
        """The score that `document` wrote."""
        apart = ("path", "metrics", "parameters", "reorganising")
        report = {name: value for name, value in document.items() if name not in apart}
        return cls(document["path"], document["parameters"], report, document["reorganising"])

    @property
    def metrics(self) -> dict[str, float | None]:
        """The headline metrics by their fixed names; None where nothing counts."""
        values: dict[str, float | None] = {}
        for metric in METRICS:
            value: Any = self.report
            for key in metric.keys:
                value = None if value is None else value[key]
            values[metric.name] = value
        if self.reorganising is not None:
            walk = self.reorganising["walk"]
            values["walk_seconds"] = walk["as_they_lie_seconds"]
            values["defragmenting_gain_pct"] = walk["defragmenting_gain_pct"]
            values["rewriting_gain_pct"] = walk["rewriting_gain_pct"]
        return values

    @property
    def taken_ns(self) -> int | None:
        """When the snapshot was taken, nanoseconds since 1970, if that is known."""
        taken: int | None = self.report["contents"]["taken_ns"]
        return taken

    def table(self) -> pa.Table:
        """A row a headline metric: its name and value, None where nothing counts."""
        import pyarrow as pa

        values = [None if value is None else float(value) for value in self.metrics.values()]
        names = pa.array(list(self.metrics), pa.string())
        return pa.table({"metric": names, "value": pa.array(values, pa.float64())})

    def _shown(self) -> dict[str, object]:
        return {"path": self.path, "layout_score": self.metrics["layout_score"]}

    @property
    def document(self) -> dict[str, Any]:
        """Everything, as it stands in the JSON output."""
        return {
            "path": self.path,
            "metrics": self.metrics,
            "parameters": self.parameters,
            **self.report,
            "reorganising": self.reorganising,
        }


def score(
    path: str | PathLike[str],
    *,
    strict_holes: bool = False,
    count_tails: bool = False,
    hot: str | None = None,
    sync: bool = False,
    device: str | None = None,
    access_time: str | None = None,
    bandwidth: str | None = None,
    map_cells: int | None = None,
    catalogue_directory: Path | None = None,
    progress: Progress | None = None,
) -> Score:
    """Measure a snapshot file, an image, or a directory of a mounted file system.

    Nothing is written to what is measured.

    Args:
        path: What to measure.
        strict_holes: Count a block behind a hole as badly placed wherever it lies.
        count_tails: Count fragments at the end of a file as a block of the layout score.
        hot: Measure also the files modified within so long before the snapshot (`30 d`).
        sync: Have delayed data of a mounted file system written first, so that its place is known.
        device: Estimate the time to read all files on this device of the catalogue, or on that of a
            device file.
        access_time: In place of `device`, what every transfer pays (`15 ms`); needs `bandwidth`.
        bandwidth: In place of `device`, how fast data move (`5 MB/s`).
        map_cells: Cells of the map of the device.
        catalogue_directory: The catalogue, if not that which comes with agewell.
        progress: Called while a tree or an image is read.

    Raises:
        InputError: There is nothing at `path` that agewell reads, or an option is wrong.
        RunError: It cannot be read.

    Examples:
        >>> import pathlib, tempfile, agewell
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     snapshot = pathlib.Path(folder) / "aged.parquet"
        ...     aged = agewell.age(
        ...         "ffs", "smith-1996", until=["operations=2000"], snapshot=snapshot
        ...     )
        ...     scored = agewell.score(snapshot)
        >>> scored.metrics["layout_score"] < 1
        True
    """
    options = {
        "strict_holes": strict_holes,
        "count_tails": count_tails,
        "hot": hot,
        "sync": sync,
        "device": device,
        "access_time": access_time,
        "bandwidth": bandwidth,
        "map_cells": map_cells,
    }
    directory = catalogue.directory(catalogue_directory)
    found = json.loads(
        _agewell.score_path(path, directory, time.time_ns(), json.dumps(options), progress)
    )
    return Score(fspath(path), found["parameters"], found["report"], found["reorganising"])


def is_series(scores: Sequence[Score]) -> bool:
    """Whether these are several snapshots of one file system, each of another time."""
    times = {scored.taken_ns for scored in scores}
    known = None not in times and len(times) == len(scores)
    return known and len(scores) > 1 and len({_identity(scored) for scored in scores}) == 1


def in_time(scores: Sequence[Score]) -> list[Score]:
    """Scores in the order of their time if they are a series, else in the order given."""
    if not is_series(scores):
        return list(scores)
    return sorted(scores, key=lambda scored: scored.taken_ns or 0)


def document(scores: Sequence[Score]) -> dict[str, Any]:
    """The JSON output for several scores: a series stands in the order of time."""
    targets = [scored.document for scored in in_time(scores)]
    return documents.document("score", {"series": is_series(scores), "targets": targets})


def _identity(scored: Score) -> tuple[Any, ...]:
    contents = scored.report["contents"]
    names = ("kind", "block_bytes", "total_bytes", "group_bytes")
    own = (scored.parameters.get("uuid"), scored.parameters.get("subtree"))
    return (*(contents[name] for name in names), *own)


def known_metrics(scores: Sequence[Score]) -> list[ScoreMetric]:
    """The headline metrics that at least one of the scores has."""
    return [
        metric
        for metric in METRICS
        if any(scored.metrics[metric.name] is not None for scored in scores)
    ]


def size_bins(layout: dict[str, Any]) -> list[dict[str, Any]]:
    """Layout by size: every size as far as they are reported one by one, powers of two beyond."""
    exact: list[dict[str, Any]] = layout["by_blocks"]
    return [*exact, *(each for each in layout["by_size"] if each["blocks_min"] > EXACT_BLOCKS)]


def metric_text(metric: ScoreMetric, value: float | None) -> str:
    """The value of a headline metric for people."""
    write = {
        "share": share_text,
        "percent": percent_text,
        "bytes": size_text,
        "number": number_text,
    }
    return write[metric.kind](value)


_SCORE_WORDS = ((0.95, "well"), (0.8, "fairly well"), (0.0, "badly"))
"""What a layout score is called; chosen by us. New ones begin at 0.92 to 0.95; ten months of use
brought the one that reallocates to 0.90 and the other to 0.77 (Smith & Seltzer 1996)."""


def verdict(scored: Score) -> list[str]:
    """How the files lie and whether that matters, in sentences."""
    layout, broken = scored.report["layout"], scored.report["fragmentation"]
    sentences = []
    if layout["layout_score"] is None:
        sentences.append("No file has two blocks or more: there is nothing that could lie badly.")
    else:
        words = next(name for least, name in _SCORE_WORDS if layout["layout_score"] >= least)
        sentences.append(
            f"Files lie {words}: {percent_text(layout['layout_score'])} of their blocks lie right "
            f"behind the block before, {percent_text(broken['split_share'])} of the files that "
            "could be split are."
        )
    if scored.reorganising is None:
        sentence = "Whether reorganising would pay depends on the disk: name it by --device"
        if Path(scored.path).is_dir():
            measured = f"agewell probe {shlex.quote(scored.path)} -o my-disk.toml"
            sentences.append(f"{sentence}, or measure it: {measured}")
        else:
            sentences.append(f"{sentence}.")
        return sentences
    sentences += [
        _reorganising_sentence("Making each file one piece", "defragmenting", scored.reorganising),
        _reorganising_sentence("Rewriting all in order", "rewriting", scored.reorganising),
    ]
    return sentences


REORGANISABLE = ("ext4", "xfs", "btrfs")
"""File systems whose files `agewell reorganise` moves while they are mounted."""

LISTED_ADJACENCY = 0.95
"""Share of files that lie behind their neighbour from which on an order is taken for the one that
was wanted; chosen by us: `agewell reorganise` leaves 95 % and more."""


def remedy(scored: Score, device: str | None) -> str | None:
    """What to do about the verdict, its command last; None if nothing says whether it pays.

    Args:
        scored: The score, with an estimate for a device.
        device: What the device is called on the command line; None for two numbers.
    """
    estimate = scored.reorganising
    if estimate is None:
        return None
    verdicts = (estimate["defragmenting_verdict"], estimate["rewriting_verdict"])
    if "likely-to-pay" not in verdicts:
        return "Leave the files as they lie."
    if not Path(scored.path).is_dir():
        return "To do it, mount the file system and run agewell reorganise on it."
    kind = scored.report["contents"]["kind"]
    if kind not in REORGANISABLE:
        return f"To do it, copy the files to a new file system: nothing moves them on {kind}."
    on = "" if device is None else f" --device {shlex.quote(device)}"
    command = f"agewell reorganise {shlex.quote(scored.path)}{on} --dry-run"
    listed = scored.report["neighbours"]["by_readdir"]
    if listed["pairs"] and listed["adjacency"] >= LISTED_ADJACENCY:
        return (
            "Files lie one behind another as directories are listed, which is how tar reads them: "
            f"leave them. For a walk by names instead: {command}"
        )
    return f"To see what it would do: {command}"


def _reorganising_sentence(what: str, how: str, estimate: dict[str, Any]) -> str:
    # A verdict is about the walk, in which the files' order counts as well.
    words = {
        "likely-to-pay": "is likely to pay",
        "little": "pays little",
        "not-worth-it": "is not worth it",
    }[estimate[f"{how}_verdict"]]
    gain_pct = estimate["walk"][f"{how}_gain_pct"]
    change = "saves" if gain_pct >= 0 else "costs"
    return (
        f"{what} {words} on {estimate['title']}: a walk over all files {change} about "
        f"{abs(gain_pct):.1f} % of its time (an estimate)."
    )


def share_text(value: float | None) -> str:
    """A share of one, four digits: small changes of a layout score matter."""
    return "-" if value is None else f"{value:.4f}"


def percent_text(value: float | None) -> str:
    """A share of one in per cent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def number_text(value: float | None) -> str:
    """A plain number."""
    return "-" if value is None else f"{value:.3f}"


def size_text(value: float | None) -> str:
    """A size in the unit that keeps it readable: `56 KiB`, `1.3 GiB`."""
    if value is None:
        return "-"
    for unit, unit_bytes in _UNITS:
        if value >= unit_bytes:
            scaled = value / unit_bytes
            return f"{scaled:.0f} {unit}" if scaled == round(scaled) else f"{scaled:,.1f} {unit}"
    return f"{value:.0f} B"


def time_text(time_ns: int) -> str:
    """A time since 1970 for people, in UTC."""
    return datetime.fromtimestamp(time_ns / 1e9, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
