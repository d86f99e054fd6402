"""What varies in a sweep: a grid, rows of a table, a sample, or every combination of those.

{"remap.alpha": [0, 0.5], "run.seed": [1, 2]}         a grid: every combination
[{"remap.alpha": 0, "run.seed": 1}, ...]              rows, as they are
"points.csv"                                          rows of a CSV, Parquet or JSON file
agewell.Sample({"remap.alpha": agewell.Range(0, 1)}, 64)
({"layout.kind": ["lfs", "ffs"]}, "points.csv")       each of the first with each of the second
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agewell import files
from agewell.errors import InputError
from agewell.experiments.configuration import parse_value, read_json, with_settings
from agewell.files import parquet_tables
from agewell.runs.samples import Sample

Varied = Any
"""One of: lists by `table.key`, dicts, an Arrow table or a data frame, the file of a table, or a
`Sample`; a tuple of several is every combination of them."""

TABLE_SUFFIXES = (".csv", ".json", ".parquet")
"""Of files whose rows are points."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Settings that vary together.

    Attributes:
        names: The settings, as `table.key`.
        points: The values of each point, in the order of the names; None leaves what the experiment
            says.
        is_table: Whether the points are rows of a table or of a sample, in place of one setting's
            values of a grid.
        sample: What the points were drawn from, if they were.
    """

    names: tuple[str, ...]
    points: Sequence[tuple[Any, ...]]
    is_table: bool = False
    sample: Sample | None = None

    def column(self, name: str) -> list[Any]:
        """The values of one setting."""
        place = self.names.index(name)
        return [point[place] for point in self.points]


def axes_of(varied: Varied) -> list[Axis]:
    """The axes of a sweep, the first slowest.

    Args:
        varied: What varies, in any of the forms above.

    Raises:
        InputError: There is nothing, a name is no `table.key` or stands twice, or a table cannot be
            read.
    """
    found = [axis for part in _parts(varied) for axis in _axes(part)]
    if not found:
        raise InputError(
            "a sweep needs at least one axis: --over table.key=v1,v2, --points or --sample"
        )
    seen: set[str] = set()
    for axis in found:
        for name in axis.names:
            with_settings({}, {name: None})
            if name in seen:
                raise InputError(f"{name} varies in two ways; give all its values in one")
            seen.add(name)
        if not axis.points:
            raise InputError(f"the axis {', '.join(axis.names)} has no values")
    return found


def _parts(varied: Varied) -> Sequence[Varied]:
    return varied if isinstance(varied, tuple) else (varied,)


def _axes(part: Varied) -> list[Axis]:
    if isinstance(part, Sample):
        return [Axis(tuple(part.ranges), part.points(), is_table=True, sample=part)]
    if isinstance(part, Mapping):
        return [
            Axis((name,), [(_plain(value, name),) for value in values])
            for name, values in part.items()
        ]
    if isinstance(part, str | Path):
        return [_of_rows(_read(Path(part)), str(part))]
    if hasattr(part, "__arrow_c_stream__"):
        import pyarrow as pa

        return [_of_rows(pa.table(part).to_pylist(), "the table of points")]
    if isinstance(part, Sequence):
        return [_of_rows(part, "the list of points")]
    raise InputError(
        "what a sweep varies is lists by table.key, a list of dicts, a table, its file or an "
        f"agewell.Sample, not {type(part).__name__}"
    )


def _of_rows(rows: Sequence[Any], where: str) -> Axis:
    """The axis of rows, whose names are those of all of them in the order of their appearance."""
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            raise InputError(f"{where}, row {number}: expected values by table.key")
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise InputError(f"{where}: there are no points in it")
    for name in names:
        try:
            with_settings({}, {name: None})
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
    points = [
        tuple(_plain(row.get(name), f"{where}, row {number}: {name}") for name in names)
        for number, row in enumerate(rows, start=1)
    ]
    return Axis(names, points, is_table=True)


def _plain(value: Any, where: str) -> Any:
    """A value as a configuration holds it.

    Raises:
        InputError: It is none that an experiment can have.
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # a number of NumPy
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each, where) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, where) for each in value]
    raise InputError(f"{where}: {value!r} is no value that an experiment can have")


def _read(path: Path) -> list[Any]:
    """The rows of a file.

    Raises:
        InputError: It cannot be read, or is no such table.
    """
    match path.suffix.lower():
        case ".csv":
            return _read_csv(path)
        case ".json":
            rows = read_json(path, "a list of points")
        case ".parquet":
            rows = parquet_tables.read(path, what="a table of points").to_pylist()
        case _:
            raise InputError(
                f"{path}: points are read from files named {', '.join(TABLE_SUFFIXES)}"
            )
    if not isinstance(rows, list):
        raise InputError(f"{path}: expected a list of points, each an object")
    return rows


def _read_csv(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file; values are read as those of --over, an empty cell is none."""
    try:
        text = files.read_bounded(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start}: not UTF-8 text, so not CSV") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        names = [name.strip() for name in next(lines, [])]
        if len(set(names)) < len(names):
            raise InputError(f"{path}: two columns have one name")
        for cells in lines:
            if cells and len(cells) != len(names):
                raise InputError(
                    f"{path}:{lines.line_num}: {len(cells)} values for {len(names)} columns"
                )
            if cells:
                values = [parse_value(cell.strip()) if cell.strip() else None for cell in cells]
                rows.append(dict(zip(names, values, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}:{lines.line_num}: not CSV: {error}") from error
    return rows
