"""Traces that are made here: what the extension module takes for canonical."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
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
