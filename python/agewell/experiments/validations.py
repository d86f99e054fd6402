"""Many drives validated at once: which parameters go with which measured trace, and one row each.

A trace `NAME.trace` (compressed or not) goes with every parameter file of its name beside it or in
the folder given for them: `NAME.toml`, `NAME.diskspecs`, and `NAME_validate.diskspecs`, as DiskSim
names the files of its own validations. Parameters of DiskSim are imported first.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agewell import _agewell
from agewell.errors import InputError

_COMPRESSED = (".zst", ".gz", ".xz", ".bz2")
_PARAMETERS = ("{}.toml", "{}.diskspecs", "{}_validate.diskspecs")


@dataclass(frozen=True)
class Figures:
    """Errors of a model on a measured trace, ms."""

    demerit_ms: float
    demerit_read_ms: float
    demerit_write_ms: float
    paired_rms_ms: float


DISKSIM = {
    "hp_c2247a": Figures(0.090, 0.149, 0.124, 2.31),
    "hp_c2490a": Figures(0.254, 0.815, 1.491, 3.02),
    "hp_c3323a": Figures(0.306, 0.254, 0.774, 4.09),
    "cheetah4LP": Figures(0.318, 0.360, 0.329, 1.89),
    "barracuda": Figures(0.348, 0.497, 0.272, 2.45),
    "atlas_III": Figures(0.378, 0.472, 0.069, 3.06),
    "ibm18es": Figures(0.136, 0.166, 0.061, 2.37),
}
"""DiskSim 4.0 on its own validation traces, by name: the demerit is what its `valid/runvalid`
prints; the others are computed from the response times that it simulates. It cannot run
`st41601n`."""


@dataclass(frozen=True)
class Pair:
    """A trace and parameters of its drive."""

    parameters: Path
    trace: Path

    @property
    def name(self) -> str:
        """The trace's name, without its endings."""
        return trace_name(self.trace)


def trace_name(trace: Path) -> str:
    """The name that a trace shares with its drive's parameters."""
    name = trace.name
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name.removesuffix(".trace")


def pairs(parameters: Path, traces: Path) -> tuple[list[Pair], list[Path]]:
    """Every pair of a parameter file in one folder and a trace in the other, and traces left over.

    Raises:
        InputError: If a folder cannot be read, or no trace has parameters.
    """
    found, alone = [], []
    for trace in _traces(traces):
        names = (pattern.format(trace_name(trace)) for pattern in _PARAMETERS)
        files = [parameters / name for name in names if (parameters / name).is_file()]
        found += [Pair(file, trace) for file in files]
        if not files:
            alone.append(trace)
    if not found:
        raise InputError(
            f"{traces} holds no NAME.trace for which {parameters} holds NAME.toml or "
            "NAME.diskspecs: nothing to validate"
        )
    return found, alone


def _traces(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as why:
        raise InputError(f"{folder}: cannot be read: {why.strerror}") from why
    for entry in entries:
        if any(entry.name.endswith(f".trace{ending}") for ending in ("", *_COMPRESSED)):
            yield entry


def validate(
    device: str, trace: Path, directory: Path, *, fit: bool, trace_device: int | None
) -> dict[str, Any]:
    """The report of one validation; `device` may also be a DiskSim parameter file.

    Raises:
        InputError: If the device or the trace cannot be used.
    """
    options = json.dumps({"fit": fit, "trace_device": trace_device})
    if not device.endswith(".diskspecs"):
        text = _agewell.validate_device(device, str(directory), str(trace), options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "device.toml"
            file.write_text(_agewell.device_import(device, None), encoding="utf-8")
            text = _agewell.validate_device(str(file), str(directory), str(trace), options)
    report: dict[str, Any] = json.loads(text)
    return report
