"""Aging: replaying a workload onto a simulated file system or a directory of a real one.

    from agewell.filesystems import aging

    aged = aging.age("ffs", "smith-1996.parquet", daily=True)
    aged.document["report"]["layout_score"]
    aged.series.to_pandas().plot("day", "layout_score")

What the record holds is described in `docs/reference/aging.md`.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from agewell import _agewell, files
from agewell.errors import InputError
from agewell.files import parquet_tables, path_text
from agewell.values import documents
from agewell.values.findings import Findings, numbers
from agewell.values.plot import Curve, Plot

if TYPE_CHECKING:
    import pyarrow as pa

SIMULATED = ("ffs", "ffs+realloc", "lfs", "early-unix")
"""Names of simulated targets; anything else is a directory."""

GENERATED = ("smith-1996",)
"""Workloads that need no input, so that their names and a seed make them."""


@dataclass(frozen=True, slots=True, repr=False)
class Aged(Findings):
    """What a replay did.

    Attributes:
        document: `target`, `workload`, `options` and `report`, by the names of
            `docs/reference/aging.md`.
        series: Fullness and score over time, a row a sample.
    """

    document: dict[str, Any]
    series: pa.Table

    @property
    def metrics(self) -> dict[str, Any]:
        """The single numbers of the report."""
        return numbers(self.document["report"])

    def table(self) -> pa.Table:
        """The series."""
        return self.series

    def plots(self) -> list[Plot]:
        """Layout score and fullness over the days of the workload."""
        return [score_plot(self.series)]

    def _shown(self) -> dict[str, object]:
        names = ("operations", "layout_score", "utilization")
        return {name: self.metrics[name] for name in names if name in self.metrics}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay has come.

    Attributes:
        operations: Operations done, refused or skipped; not those that wait.
        operations_total: Operations of the workload with its copies, if known.
        no_space: Operations for which there was no room.
        days: Days of the workload that have passed.
        utilization: Used over total at the last sample.
        layout_score: Layout score at the last sample, if any block counts.
        resuming: Operations are only taken note of, because they were done before.
    """

    operations: int
    operations_total: int | None
    no_space: int
    days: float
    utilization: float
    layout_score: float | None
    resuming: bool


class Options(TypedDict, total=False):
    """What a replay is given by name, as it goes to the extension module.

    Attributes:
        copies: Copies of the workload side by side.
        streams: Concurrent streams to deal files out among; default: as the workload says.
        utilization: Used over total that is not exceeded; files are removed to hold it.
        hold: Which files are removed for that: `random` or `oldest`.
        sync_every: `1000` (operations), `64 MiB` (written) or `1 d` (of the workload); beside the
            syncs of the workload.
        until: Ends, the first that is reached counts: `score=0.8`, `utilization=0.9`, `days=30`,
            `writes=20 GB`, `operations=100000`.
        daily: Sample fullness and score at the end of each day of the workload.
        seed: Seed of what is drawn.
        allocate: How space is asked for below a directory: `write`, `fallocate` or
            `append-interleaved`.
        contents: What is written there: `random` or `zeros`.
        chunk: Size of a write call there, for instance `128 KiB`.
        threads: Writers at once there.
        allow_occupied: Take a directory that is not empty; what is in it is left alone.
        allow_system_disk: Take a directory on the disk that the running system stands on.
        resume: Go on from the state that an interrupted replay left.
    """

    copies: int | None
    streams: int | None
    utilization: float | None
    hold: str | None
    sync_every: str | None
    until: Sequence[str]
    daily: bool
    seed: int | None
    allocate: str | None
    contents: str | None
    chunk: str | None
    threads: int | None
    allow_occupied: bool
    allow_system_disk: bool
    resume: bool


def age(
    target: str | PathLike[str] | None,
    workload: str | PathLike[str] | None,
    *,
    layout: dict[str, Any] | None = None,
    recipe: str | PathLike[str] | None = None,
    state: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    series: str | PathLike[str] | None = None,
    snapshot: str | PathLike[str] | None = None,
    save_recipe: str | PathLike[str] | None = None,
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[Options],
) -> Aged:
    """Replay a workload onto a target.

    Args:
        target: `ffs`, `ffs+realloc`, `lfs`, or a directory of a mounted file system; that of the
            recipe if None.
        workload: A workload file, as `agewell workload` makes it, or the name of one that needs no
            input (`smith-1996`), which is then made with the seed; that of the recipe if None.
        layout: Parameters of a simulated target, as in `[layout]` of an experiment; without a
            target, in place of those of the recipe.
        recipe: A recipe to follow; its workload must be the one given.
        state: Where a replay notes how far it has come; default: beside the directory,
            `NAME.agewell`.
        log: Write the operations asked of the target to this workload file.
        series: Write fullness and score over time to this file, `.parquet` or `.csv`.
        snapshot: Write what the target holds in the end to this snapshot file.
        save_recipe: Write what makes the same again to this JSON file.
        progress: Called between batches.
        **options: Those of `Options`.

    Returns:
        The record and the series.

    Raises:
        InputError: The target, the workload or an option does not do.
        RunError: The target failed, or a file cannot be written.

    Examples:
        >>> import agewell
        >>> aged = agewell.age("ffs", "smith-1996", until=["operations=2000"])
        >>> aged.metrics["layout_score"] < 1
        True
    """
    # Before hours of work, not after them.
    files.require_writable([log, series, snapshot, save_recipe])
    request: dict[str, Any] = {
        **_target(target, layout),
        "recipe": _text(recipe),
        **options,
        "state": _text(state),
        "now_ns": time.time_ns(),
    }
    with tempfile.TemporaryDirectory() as folder:
        request["workload"] = path_text(
            _workload(workload, recipe, options.get("seed"), Path(folder))
        )
        kept = series is not None and Path(series).suffix != ".csv"
        series_path = Path(str(series)) if kept else Path(folder) / "series.parquet"
        request["outputs"] = {
            "log": _text(log),
            "series": path_text(series_path),
            "snapshot": _text(snapshot),
            "recipe": _text(save_recipe),
        }
        record = _agewell.age_replay(
            json.dumps(request),
            None if progress is None else lambda *state: progress(Progress(*state)),
        )
        table = parquet_tables.read(series_path)
    if series is not None and not kept:
        files.write_whole(Path(series), lambda path: _write_csv(table, path))
    return Aged(documents.document("age", json.loads(record)), table)


def _write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow.csv

    # Arrow takes a name for UTF-8 text, which it need not be.
    with path.open("wb") as file:
        pyarrow.csv.write_csv(table, file)


def read_recipe(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a recipe and check it.

    Raises:
        InputError: It is none.
    """
    recipe: dict[str, Any] = json.loads(_agewell.age_recipe(path))
    return recipe


def score_plot(series: pa.Table) -> Plot:
    """Layout score and fullness over the days of the workload.

    Args:
        series: A series as `age` writes it.
    """
    days = [time_ns / 86_400e9 for time_ns in series["time_ns"].to_pylist()]
    scores = [
        float("nan") if score is None else score for score in series["layout_score"].to_pylist()
    ]
    return Plot(
        name="layout-score",
        title="Layout score while the file system ages",
        x_label="time of the workload (days)",
        y_label="share",
        curves=[
            Curve("layout score", days, scores),
            Curve("used over total", days, series["utilization"].to_pylist(), emphasis=False),
        ],
        caption="Of the blocks that have a predecessor in their file, those that lie behind it.",
    )


def _workload(
    workload: str | PathLike[str] | None,
    recipe: str | PathLike[str] | None,
    seed: int | None,
    folder: Path,
) -> Path:
    """The file of the workload; one that needs no input is made in `folder`."""
    request: dict[str, Any]
    if workload is None:
        if recipe is None:
            raise InputError("agewell age: no workload; name one with --workload")
        made = read_recipe(recipe)["workload"]
        if made["source"] not in GENERATED:
            raise InputError(
                f"{recipe}: its workload ({made['source']}) cannot be made from the recipe alone; "
                "name its file with --workload"
            )
        request = {key: made[key] for key in ("source", "seed", "parameters")}
    elif str(workload) in GENERATED and not Path(workload).exists():
        request = {"source": str(workload), "seed": 1 if seed is None else seed}
    else:
        return Path(workload)
    from agewell.filesystems import workloads

    output = folder / "workload.parquet"
    workloads.make(request, output)
    return output


def _target(target: str | PathLike[str] | None, layout: dict[str, Any] | None) -> dict[str, Any]:
    if target is None:
        return {"layout": layout or None}
    if str(target) in SIMULATED:
        return {"layout": {"kind": str(target), **(layout or {})}}
    if layout:
        raise InputError(
            f"agewell age: a layout is given for {target}, which is not one of the simulated "
            f"targets ({', '.join(SIMULATED)}); leave one of the two out"
        )
    return {"directory": path_text(target)}


def _text(path: str | PathLike[str] | None) -> str | None:
    return None if path is None else path_text(path)
