"""Traces that are made here: what the extension module takes for canonical."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


def canonical_metadata(kind: Literal["block", "file"], made_by: str) -> dict[str, str]:
    """What the schema of a canonical trace of that kind says, its format being called `made_by`."""
    metadata = {
        "schema_version": 1,
        "format": made_by,
        "compression": None,
        "start_wall_ns": None,
        "start_wall_zone": None,
        "clock_start_ns": 0,
        "devices": [],
        "header": {},
        "warnings": {},
        "skipped_records": 0,
        "first_skipped": None,
    }
    return {
        "agewell.metadata": json.dumps(metadata),
        "agewell.kind": kind,
        "agewell.schema_version": "1",
    }


def described(operations: pa.Table, made_by: str) -> pa.Table:
    """The table as a canonical trace of file operations, its format being called `made_by`."""
    return operations.replace_schema_metadata(canonical_metadata("file", made_by))


def on_files(
    times_ns: npt.NDArray[np.uint64],
    operations: npt.NDArray[Any],
    files: npt.NDArray[Any],
    paths: Sequence[str],
    ranges: tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64], npt.NDArray[np.uint64]],
    made_by: str,
) -> pa.Table:
    """A canonical trace of one client's operations on files of the top directory.

    Args:
        times_ns: When each was asked for.
        operations: What each is, by its number in the format.
        files: Which file each is of.
        paths: The names of the files.
        ranges: Which operations have a range of bytes, where it begins, and how long it is.
        made_by: What its format is called.
    """
    import numpy as np
    import pyarrow as pa

    rows = len(operations)
    has_range, offsets, lengths = ranges
    names = pa.DictionaryArray.from_arrays(pa.array(files.astype(np.int32)), pa.array(paths))
    table = pa.table(
        {
            "time_ns": pa.array(times_ns),
            "finish_ns": pa.nulls(rows, pa.uint64()),
            "client": pa.array(np.zeros(rows, np.uint32)),
            "operation": pa.array(operations.astype(np.uint8)),
            "file": pa.array(files.astype(np.uint32)),
            "directory": pa.array(np.zeros(rows, np.uint32)),
            "offset": pa.array(offsets, mask=~has_range),
            "length": pa.array(lengths, mask=~has_range),
            "path": names.cast(pa.string()),
            "new_path": pa.nulls(rows, pa.string()),
        }
    )
    return described(table, made_by)
