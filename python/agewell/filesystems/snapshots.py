"""Snapshots of file systems: which files there are, where their bytes lie, and what is free.

    from agewell.filesystems import snapshots

    taken = snapshots.take("/srv", "srv.parquet")
    snapshot = snapshots.read("srv.parquet")
    snapshot.files.to_pandas().groupby("kind").size_bytes.sum()

The columns of the tables are described in `docs/reference/snapshots.md`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import _agewell, files
from agewell.files import parquet_tables

if TYPE_CHECKING:
    import pyarrow as pa

METADATA_KEY = b"agewell.metadata"
"""Where a snapshot file keeps the facts of its file system."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot file as tables.

    Attributes:
        facts: What is known of the file system as a whole, by the names of
            `docs/reference/snapshots.md`.
        files: A row a file, directory or link, ascending by inode.
        free: A row a free extent, ascending by address: `physical_bytes`, `length_bytes`.
    """

    facts: dict[str, Any]
    files: pa.Table
    free: pa.Table


def take(
    path: str | PathLike[str],
    output: str | PathLike[str],
    *,
    names: bool = False,
    sync: bool = False,
    resume: bool = False,
    progress: Callable[[int, int | None], object] | None = None,
) -> dict[str, Any]:
    """Take a snapshot of a mounted tree or of an image. Nothing is written to what is read.

    Args:
        path: A directory on a mounted file system, or an image.
        output: Where the snapshot goes; it stands there only when it is complete.
        names: Keep the names of files.
        sync: Have delayed data written first, so that its place is known. This makes the file
            system write; without it such data is recorded as unknown.
        resume: Go on with what an interrupted snapshot of the same tree left in
            `output` + ".partial".
        progress: Called with the files seen so far and, where the file system says so, how many
            there are.

    Returns:
        What the snapshot holds: `facts`, `files` by kind, `extents`, `free_extents`,
        `free_extent_bytes`, `names`, `bytes`.

    Raises:
        InputError: There is nothing that agewell reads at `path`.
        RunError: It cannot be read, or `output` cannot be written.
    """
    # A folder in its place is a mistake of usage, which is reported first of all by what follows.
    if not Path(output).is_dir():
        files.require_writable([output])
    taken = _agewell.snapshot_take(path, output, time.time_ns(), names, sync, resume, progress)
    document: dict[str, Any] = json.loads(taken)
    return document


def read(path: str | PathLike[str]) -> Snapshot:
    """Read a snapshot file, after checking all of it.

    Args:
        path: A file that `take` or `agewell snapshot` wrote.

    Raises:
        InputError: It is no snapshot file, or damaged.
    """
    # Taking a snapshot needs no tables, and they are slow to load.
    import pyarrow as pa
    import pyarrow.compute as pc

    facts = json.loads(_agewell.snapshot_check(path))["facts"]
    table = parquet_tables.read(path)
    is_free = pc.equal(table["kind"], "free")
    extents = table.filter(is_free)["extents"].combine_chunks()
    pieces = extents.flatten()
    free = pa.table({name: pieces.field(name) for name in ("physical_bytes", "length_bytes")})
    return Snapshot(facts=facts, files=table.filter(pc.invert(is_free)), free=free)
