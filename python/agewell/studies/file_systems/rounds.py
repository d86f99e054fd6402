"""Loads on file systems in turn, each round recorded, and its requests on modelled drives."""

from __future__ import annotations

import contextlib
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agewell import _agewell
from agewell.errors import RunError
from agewell.files import catalogue
from agewell.filesystems import mounted
from agewell.studies.file_systems import loads
from agewell.studies.file_systems.loads import Load
from agewell.studies.file_systems.mounts import Device, Kind, device

IMAGE_BYTES = 512 << 20
"""Of every file system; chosen by us: enough for each of them to have its usual shape, small enough
for seven beside one another in memory."""
ROUNDS = 3

DISK = "seagate-st2000dm006"
WRITE_CACHE_BYTES: Mapping[str, int] = {
    DISK: 32 << 20,
    "seagate-st8000as0002": 32 << 20,
    # Its model has a buffer of its own.
    "flash-sata-tlc": 0,
}
"""The drives on which requests are replayed, and their caches of writes: half of the disks' 64 and
a quarter of 128 MB; how they divide them is not public."""


@dataclass(slots=True)
class Found:
    """What a load came to on one file system.

    Attributes:
        seconds: Of the rounds, as they took here.
        disk: What each part took on each drive, by part and drive; of all rounds together.
        requests: The replay on the disk of the study, of all rounds.
        refused: Writes that were refused for want of room.
        why: Why there is nothing; empty if there is.
        status: What ours said of itself at the end of the last round.
    """

    seconds: list[float] = field(default_factory=list)
    disk: dict[tuple[str, str], float] = field(default_factory=dict)
    requests: dict[str, dict[str, float]] = field(default_factory=dict)
    refused: int = 0
    why: str = ""
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def median_s(self) -> float:
        """Of the rounds."""
        return statistics.median(self.seconds)


def replay(trace: Path, sectors: int, drive: str) -> dict[str, Any]:
    """What the requests of a recording take on a drive, in the middle of which the device lies."""
    found = json.loads(_agewell.device_load(drive, catalogue.directory()))
    capacity = found["capacity_sectors"]
    options = {
        "first_sector": (capacity - sectors) // 2 // 8 * 8,
        "sectors": sectors,
        "write_cache_bytes": WRITE_CACHE_BYTES[drive],
    }
    replayed: dict[str, Any] = json.loads(
        _agewell.replay_recording(trace, drive, catalogue.directory(), json.dumps(options))
    )
    return replayed


class Case:
    """One file system under one load."""

    def __init__(self, kind: Kind, made: Device, folder: Path, drives: Sequence[str]) -> None:
        self.kind = kind
        self.device = made
        self.folder = folder
        self.drives = drives
        self.found = Found()
        self.load: Load | None = None

    def prepare(self, make_load: Callable[[Path, int], Load]) -> None:
        """Make the file system, fill and use it."""
        self.device.make(self.kind)
        self.device.mount(self.kind)
        try:
            self.load = make_load(self.device.point, self.device.room_bytes())
            self.load.prepare()
        except OSError as error:
            self.found.why = f"it cannot be filled so far: {error.strerror}"
        finally:
            self.device.unmount()

    def part(self, name: str, work: Callable[[], object]) -> float:
        """Mount, have `work` done and unmount, recorded; how long work and unmounting took here.

        What was still to be written is on the device at the end, and nothing is done behind the
        back of the recording.
        """
        trace = self.folder / f"{self.kind.name}-{name}.parquet"
        with self.device.recorded(trace):
            self.device.mount(self.kind)
            begin = time.monotonic()
            try:
                work()
                if self.kind.is_ours and name.startswith("round"):
                    self.found.status = mounted.status(self.device.point)
            finally:
                self.device.unmount()
            seconds = time.monotonic() - begin
        part = name.partition("-")[0]
        for drive in self.drives:
            done = replay(trace, self.device.sectors, drive)
            at = (part, drive)
            self.found.disk[at] = self.found.disk.get(at, 0.0) + done["seconds"]
            if drive == DISK and part == "round":
                for operation in ("reads", "writes", "flushes"):
                    sums = self.found.requests.setdefault(operation, {})
                    for measure, value in done[operation].items():
                        sums[measure] = sums.get(measure, 0) + value
        trace.unlink()
        return seconds

    def round(self, number: int) -> None:
        """A round of the load."""
        load = self.load
        if load is None or self.found.why:
            return
        try:
            seconds = self.part(f"round-{number}", lambda: load.work(number))
        except OSError as error:
            self.found.why = f"round {number}: {error.strerror}"
            return
        self.found.seconds.append(seconds)
        self.found.refused = load.refused
        if load.refused:
            self.found.why = f"it refuses writes for want of room: {load.refused} of its load"

    def read(self) -> None:
        """The aged tree, in both orders."""
        if self.load is None or (self.found.why and not self.found.refused):
            return
        point = self.device.point
        for name, order in (
            ("names", loads.in_order_of_names),
            ("written", loads.in_order_written),
        ):
            self.device.mount(self.kind)
            try:
                paths = order(point)
            finally:
                self.device.unmount()
            self.part(name, partial(loads.read, paths))


def compare(
    kinds: Sequence[Kind],
    make_load: Callable[[Path, int], Load],
    folder: Path,
    *,
    drives: Sequence[str] = tuple(WRITE_CACHE_BYTES),
    rounds: int = ROUNDS,
    image_bytes: int = IMAGE_BYTES,
    progress: Callable[[str], None] = lambda _text: None,
) -> dict[str, Found]:
    """Every file system under the same load, in turn.

    Args:
        kinds: The file systems.
        make_load: The load for a mount and the room on it.
        folder: Where recordings are kept until they are replayed.
        drives: On which requests are replayed.
        rounds: How many; the order of the file systems is turned round from each to the next.
        image_bytes: Size of each device.
        progress: Called with what is being done.

    Returns:
        What each came to, by name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        cases = []
        for kind in kinds:
            if why := kind.missing():
                case = Case(kind, Device("", folder, 0), folder, drives)
                case.found.why = why
            else:
                progress(f"{kind.name}: filled and used")
                case = Case(kind, stack.enter_context(device(image_bytes)), folder, drives)
                try:
                    case.prepare(make_load)
                except RunError as error:
                    case.found.why = str(error)
            cases.append(case)
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for case in cases if number % 2 == 0 else reversed(cases):
                case.round(number)
        for case in cases:
            progress(f"{case.kind.name}: read")
            case.read()
    return {case.kind.name: case.found for case in cases}
