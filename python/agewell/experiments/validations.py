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
from typing import TYPE_CHECKING, Any

from agewell import _agewell
from agewell.errors import InputError
from agewell.experiments.traces import Trace, path_of
from agewell.files import catalogue
from agewell.values import documents
from agewell.values.findings import Findings
from agewell.values.plot import Curve, Plot

if TYPE_CHECKING:
    import pyarrow as pa

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


@dataclass(frozen=True, slots=True, repr=False)
class Validation(Findings):
    """A device model held against measured times.

    Attributes:
        document: Every error, as in the JSON output: `device`, `trace`, `metrics`, and for each
            clock the errors of the whole trace and its second half.
    """

    document: dict[str, Any]

    @property
    def metrics(self) -> dict[str, Any]:
        """The demerit (ms) and what stands beside it."""
        metrics: dict[str, Any] = self.document["metrics"]
        return metrics

    def table(self) -> pa.Table:
        """A row for each clock, part of the trace and kind of requests, with its errors."""
        import pyarrow as pa

        rows = [
            {"base": base, "part": part, "requests_of": kind, **errors}
            for base, key in (("closed", "closed"), ("trace", "trace_clock"))
            for part in ("whole", "held_out")
            for kind, errors in self.document[key][part].items()
            if errors is not None
        ]
        texts = ("base", "part", "requests_of")
        names = dict.fromkeys(
            name for row in rows for name, value in row.items() if isinstance(value, int | float)
        )
        columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in texts}
        for name in names:
            columns[name] = pa.array([float(row[name]) for row in rows], pa.float64())
        return pa.table(columns)

    def plots(self) -> list[Plot]:
        """Demerits by kind of requests, a bar a clock."""
        rows = [row for row in self.table().to_pylist() if row["part"] == "whole"]
        kinds = list(dict.fromkeys(row["requests_of"] for row in rows))
        curves = [
            Curve(
                base,
                [kinds.index(row["requests_of"]) for row in rows if row["base"] == base],
                [row["demerit_ms"] for row in rows if row["base"] == base],
                style="bars",
            )
            for base in dict.fromkeys(row["base"] for row in rows)
        ]
        return [
            Plot(
                name="demerit",
                title=f"{self.document['device']['title']} against its measured times",
                x_label="requests",
                y_label="demerit (ms)",
                curves=curves,
                categories=kinds,
            )
        ]

    def _shown(self) -> dict[str, object]:
        shown = {"requests": self.document["trace"]["requests"]}
        return {**shown, "demerit_ms": self.metrics["demerit_ms"]}


def validate(
    device: str | Path,
    trace: Trace | Path | str,
    *,
    fit: bool = False,
    trace_device: int | None = None,
    catalogue_directory: Path | str | None = None,
) -> Validation:
    """Replay a measured trace through a device model and report the errors.

    Args:
        device: One of the catalogue, a device file, or a DiskSim `.diskspecs` file.
        trace: Requests with their measured start and finish times.
        fit: Fit three overheads on the first half of the trace, and judge by the second.
        trace_device: Only this device of the trace; by default all, each on a drive of its own.
        catalogue_directory: Folder of device files to use instead of the catalogue.

    Returns:
        The errors, with the demerit of Ruemmler & Wilkes 1994, ms.

    Raises:
        InputError: The device or the trace cannot be used.

    Examples:
        >>> import agewell
        >>> agewell.validate("hp-97560", "missing.trace")
        Traceback (most recent call last):
        ...
        _agewell.InputError: missing.trace: cannot be read: No such file or directory
    """
    directory = catalogue.directory(catalogue_directory)
    device, trace = str(device), path_of(trace)
    options = json.dumps({"fit": fit, "trace_device": trace_device})
    if not device.endswith(".diskspecs"):
        text = _agewell.validate_device(device, str(directory), str(trace), options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "device.toml"
            file.write_text(_agewell.device_import(device, None), encoding="utf-8")
            text = _agewell.validate_device(str(file), str(directory), str(trace), options)
    return Validation(documents.document("validate", json.loads(text)))
