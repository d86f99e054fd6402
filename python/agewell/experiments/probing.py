"""A disk measured by reading it, and its device file: `agewell.probe`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import _agewell, files
from agewell.errors import InputError
from agewell.files import catalogue
from agewell.values import documents
from agewell.values.findings import Findings, numbers
from agewell.values.plot import Curve, Plot

if TYPE_CHECKING:
    import pyarrow as pa

READS = ("random", "sequential")
"""What the disk and the model are compared by at the end."""


@dataclass(frozen=True, slots=True, repr=False)
class Probed(Findings):
    """What a probe found of a disk.

    Attributes:
        document: The record, as in the JSON output, with the `device_file` as text.
    """

    document: dict[str, Any]

    @property
    def device_file(self) -> str:
        """The device file, TOML, each number with its source."""
        text: str = self.document["device_file"]
        return text

    @property
    def metrics(self) -> dict[str, Any]:
        """Capacity (bytes), turns a minute, and times of reads on the disk and the model (ms)."""
        metrics = numbers(self.document)
        for reads in READS:
            for name, value in self.document[reads].items():
                metrics[f"{reads}_{name}"] = value
        return metrics

    def table(self) -> pa.Table:
        """A row a kind of reads: milliseconds on the disk and on the model, and the error (%)."""
        import pyarrow as pa

        rows = [{"kind": reads, **self.document[reads]} for reads in READS]
        return pa.Table.from_pylist(rows)

    def plots(self) -> list[Plot]:
        """Mean times of reads, on the disk and on the model."""
        return [
            Plot(
                name="probe",
                title="Fresh reads at the end of the probe",
                x_label="reads",
                y_label="mean time (ms)",
                curves=[
                    Curve(label, [0, 1], [self.document[reads][key] for reads in READS], "bars")
                    for label, key in (("disk", "disk_ms"), ("model", "model_ms"))
                ],
                categories=READS,
            )
        ]

    def write(self, path: Path | str) -> None:
        """Write the device file.

        Raises:
            RunError: It cannot be written.
        """
        files.write_text(Path(path), self.device_file)

    def _shown(self) -> dict[str, object]:
        errors = {f"{reads}_error_pct": self.document[reads]["error_pct"] for reads in READS}
        return {"kind": self.document["class"], **errors}


def probe(
    target: Path | str,
    *,
    time: str = "5min",
    out: Path | str | None = None,
    write_area: Path | str | None = None,
    modelled: bool = False,
    despite_others: bool = False,
    seed: int = 1,
    catalogue_directory: Path | str | None = None,
    progress: Callable[[float, str], object] | None = None,
) -> Probed:
    """Measure a disk by reading it, for a device file like those of the catalogue.

    Args:
        target: A block device, or a large file on it that was written in full.
        time: What it may take, about: `5min`.
        out: Write the device file here.
        write_area: Measure writes as well, in this file on the same disk. It is overwritten.
        modelled: `target` is a device of the catalogue or a device file: measure its model, on a
            virtual clock.
        despite_others: Measure although others use the disk.
        seed: Of the places that are read.
        catalogue_directory: Folder of device files to use instead of the catalogue.
        progress: Called with the share of the time that is used and what is being done.

    Returns:
        What was found.

    Raises:
        InputError: The target cannot be measured, or others use it.
        RunError: A read failed, or the file cannot be written.

    Examples:
        >>> import agewell
        >>> drive = agewell.probe("hp-97560", modelled=True, time="30 s")
        >>> drive.document["class"]
        'armed'
    """
    output = None if out is None else Path(out)
    if output is not None and output.is_dir():
        raise InputError(f"{output}: is a directory; name an output file")
    files.require_writable([output])
    directory = catalogue.directory(catalogue_directory) if modelled else None
    text = _agewell.probe_disk(
        target,
        time,
        seed,
        _name("probed" if output is None else output.stem),
        write_area,
        directory,
        despite_others,
        progress,
    )
    found = Probed(documents.document("probe", json.loads(text)))
    if output is not None:
        found.write(output)
    return found


def _name(stem: str) -> str:
    """The device's name: that of its file in lower case, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "probed"
