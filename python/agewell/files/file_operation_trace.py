"""Traces of file operations that are made here: what the extension module takes for canonical."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def described(operations: pa.Table, made_by: str) -> pa.Table:
    """The table as a canonical trace of file operations, its format being called `made_by`."""
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
    return operations.replace_schema_metadata(
        {
            "agewell.metadata": json.dumps(metadata),
            "agewell.kind": "file",
            "agewell.schema_version": "1",
        }
    )
