"""Workloads and devices as people name them on one line, made into tables of an experiment.

A workload is the name of a generator with its defaults, an experiment file, of which everything
but the layout and the device counts, or a trace: one of block requests, taken as one large file, or
one of file operations. A device is a name of the catalogue, a device file, or two numbers:
`simple:15 ms:5 MB/s`. Each layout gets the same of both (`experiment_of`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agewell.errors import InputError
from agewell.experiments.configuration import Configuration, Experiment, load, with_settings
from agewell.experiments.layouts import SHARED_HOST
from agewell.experiments.traces import Trace, kind_of
from agewell.files import catalogue

_EXPERIMENT_SUFFIXES = (".toml", ".json")
_SIMPLE_PARTS = 3

UTILIZATIONS = (0.5, 0.7, 0.9)
"""Tried where nothing else is said; chosen by us: half full, as usual, and nearly full."""

SEGMENT_SIZE = "layout.segment_size"
_SETTABLE_OF_LAYOUTS = ("layout.block_size", SEGMENT_SIZE)


@dataclass(frozen=True, slots=True)
class WorkloadChoice:
    """What is asked of every layout.

    Attributes:
        name: For tables: a generator's name, or a file's without its folder.
        tables: `[workload]`, and what the file says of `[host]`, `[run]` and the size of a block.
        base: Folder that relative paths in it start from.
        utilization: What its file says of it, if anything.
    """

    name: str
    tables: Configuration
    base: Path
    utilization: float | None = None

    def seen_from(self, base: Path) -> WorkloadChoice:
        """The same workload for an experiment whose paths start from `base`."""
        table = dict(self.tables["workload"])
        path = table.get("path")
        if isinstance(path, str):
            # `-` is standard input to a replay, which cannot be read for every layout again.
            table["path"] = os.path.relpath((self.base / path).resolve(), base.resolve())
        tables = {**self.tables, "workload": table}
        return WorkloadChoice(self.name, tables, base, self.utilization)


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A disk.

    Attributes:
        name: For tables.
        table: `[device]` as seen from the current folder.
        file: Its file, if it is neither of the catalogue nor two numbers.
    """

    name: str
    table: Configuration
    file: Path | None = None

    def seen_from(self, base: Path) -> Configuration:
        """`[device]` for an experiment whose paths start from `base`."""
        if self.file is None:
            return dict(self.table)
        return {"model": os.path.relpath(self.file.resolve(), base.resolve())}


_Choice = TypeVar("_Choice", WorkloadChoice, DeviceChoice)


def workloads(text: str) -> list[WorkloadChoice]:
    """The workloads of `WORKLOAD,...`.

    Raises:
        InputError: One is missing, stands twice, or is a file that cannot be read.
    """
    return _distinct([workload(part) for part in _parts(text, "--workload")], "--workload")


def devices(text: str, catalogue_directory: Path | None) -> list[DeviceChoice]:
    """The devices of `D[,D2...]`.

    Raises:
        InputError: One is missing, stands twice, or is unknown.
    """
    found = [device(part, catalogue_directory) for part in _parts(text, "--device")]
    return _distinct(found, "--device")


def workload(text: str | Trace | WorkloadChoice) -> WorkloadChoice:
    """The workload that a text names, the one that is given, or that of a trace.

    Raises:
        InputError: It looks like a file and is none, or the file cannot be read.
    """
    if isinstance(text, WorkloadChoice):
        return text
    if isinstance(text, Trace):
        text = str(text.path)
    path = catalogue.trace(Path(text))
    if not path.exists():
        path = catalogue.example(text) or path
    if path.is_dir() or path.suffix in _EXPERIMENT_SUFFIXES:
        return _of_experiment(path)
    if path.is_file():
        kind = "file-trace" if kind_of(path) == "file" else "trace"
        return WorkloadChoice(path.name, {"workload": {"kind": kind, "path": str(path)}}, Path())
    if path.suffix or os.sep in text:
        raise InputError(
            f"--workload {text}: no such file; give a generator's name, an experiment or a trace"
        )
    return WorkloadChoice(text, {"workload": {"kind": text}}, Path())


def device(text: str | DeviceChoice, catalogue_directory: Path | str | None = None) -> DeviceChoice:
    """The device that a text names, or the one that is given.

    Raises:
        InputError: The catalogue has none of that name and there is no such file.
    """
    if isinstance(text, DeviceChoice):
        return text
    kind, *numbers = (part.strip() for part in text.split(":"))
    if kind == "simple":
        if len(numbers) != _SIMPLE_PARTS - 1 or not all(numbers):
            raise InputError(
                f"--device {text}: two numbers are simple:ACCESS_TIME:BANDWIDTH, for example "
                "simple:15ms:5MB/s"
            )
        access_time, bandwidth = numbers
        table = {"kind": "simple", "access_time": access_time, "bandwidth": bandwidth}
        return DeviceChoice(f"{access_time} {bandwidth}", table)
    path = Path(text)
    if path.suffix == ".toml" or os.sep in text:
        if not path.is_file():
            raise InputError(f"--device {text}: no such file")
        return DeviceChoice(path.stem, {"model": text}, path)
    folder = catalogue.directory(catalogue_directory)
    if not (folder / f"{text}.toml").is_file():
        raise InputError(
            f"no device '{text}' in the catalogue; 'agewell devices' lists it; a device file ends "
            "in .toml, two numbers are simple:15ms:5MB/s"
        )
    return DeviceChoice(text, {"model": text})


def experiment_of(
    layout: Mapping[str, Any],
    workload: WorkloadChoice,
    device: DeviceChoice,
    utilization: float,
    settings: Mapping[str, Any],
) -> Experiment:
    """The experiment of one layout in one cell."""
    tables: Configuration = {
        **workload.tables,
        "workload": {**workload.tables["workload"], "utilization": utilization},
        "host": {**SHARED_HOST, **workload.tables.get("host", {})},
        "layout": {**layout, **workload.tables.get("layout", {})},
        "device": device.seen_from(workload.base),
        # The lower bound would take two runs more for every log, and no layout reaches it.
        "run": {**workload.tables.get("run", {}), "lower_bound": False},
    }
    if layout["kind"] != "lfs" or "segment_size" in layout:
        settings = {name: value for name, value in settings.items() if name != SEGMENT_SIZE}
    return Experiment(with_settings(tables, settings), workload.base)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that would make layouts incomparable.

    Raises:
        InputError: One is of the layout, the device, or what has an option of its own.
    """
    for name in settings:
        if name.startswith("layout.") and name not in _SETTABLE_OF_LAYOUTS:
            raise InputError(
                f"--set {name}: layouts are compared as their names say; of [layout] only "
                "block_size is the same for all, and segment_size for all logs that name none"
            )
        if name in {"workload.utilization", "workload.kind"} or name.startswith("device."):
            raise InputError(f"--set {name}: say it with --utilization, --workload or --device")


def _of_experiment(path: Path) -> WorkloadChoice:
    experiment: Experiment = load(path)
    given = experiment.configuration
    table = given.get("workload")
    if not isinstance(table, dict):
        raise InputError(f"{path}: an experiment with a table [workload] is needed")
    tables: Configuration = {"workload": {**table}}
    utilization = tables["workload"].pop("utilization", None)
    for name in ("host", "run"):
        if isinstance(given.get(name), dict):
            tables[name] = dict(given[name])
    block_size = _block_size(given.get("layout"))
    if block_size is not None:
        tables["layout"] = {"block_size": block_size}
    return WorkloadChoice(path.stem, tables, experiment.base, utilization)


def _block_size(layout: Any) -> Any:
    return layout.get("block_size") if isinstance(layout, dict) else None


def _parts(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(f"{option} {text}: a name is missing between the commas")
    return parts


def _distinct(found: Sequence[_Choice], option: str) -> list[_Choice]:
    names = [choice.name for choice in found]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"{option}: '{name}' stands there twice")
    return list(found)
