"""Aging workloads: histories of file operations that age a file system when they are replayed.

    from agewell.filesystems import workloads

    facts = workloads.make({"source": "smith-1996", "seed": 1}, "smith.parquet")
    table = workloads.read("smith.parquet").operations

The columns are described in `docs/reference/aging-workloads.md`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from agewell import _agewell
from agewell.files import parquet_tables

if TYPE_CHECKING:
    import pyarrow as pa

ACTIONS = (
    "create",
    "write",
    "truncate",
    "delete",
    "make-directory",
    "remove-directory",
    "rename",
    "sync",
    "sync-file",
    "read",
)
"""Names of the numbers in the column `action`."""


@dataclass(frozen=True)
class Workload:
    """A workload file as a table.

    Attributes:
        facts: What the workload says about itself, by the names of
            `docs/reference/aging-workloads.md`.
        operations: A row an operation: `time_ns`, `action`, `file`, `directory`, `offset_bytes`,
            `size_bytes`, `stream`.
    """

    facts: dict[str, Any]
    operations: pa.Table


def make(
    request: Mapping[str, Any],
    output: str | PathLike[str],
    *,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Any]:
    """Make a workload and write it. The same request gives the same bytes.

    Args:
        request: `source` and what it needs, as the reference lists it.
        output: Where the workload goes; it stands there only when it is complete.
        progress: Called now and then with the operations made so far.

    Returns:
        `facts` of the workload, and the length of the file in `bytes`.

    Raises:
        InputError: The request or an input is wrong.
        RunError: The work failed.
    """
    text = json.dumps(dict(request))
    done: dict[str, Any] = json.loads(_agewell.workload_make(text, output, progress))
    return done


def info(
    path: str | PathLike[str], *, progress: Callable[[int], object] | None = None
) -> dict[str, Any]:
    """Read a workload to its end, check every rule, and give its facts.

    Args:
        path: The workload.
        progress: Called now and then with the operations read so far.

    Returns:
        The facts.

    Raises:
        InputError: The file is no workload, is damaged, or breaks a rule.
    """
    facts: dict[str, Any] = json.loads(_agewell.workload_info(path, progress))
    return facts


def read(path: str | PathLike[str]) -> Workload:
    """Read a workload into memory, checked as by `info`.

    Args:
        path: The workload.

    Returns:
        Its facts and operations.

    Raises:
        InputError: The file is no workload, is damaged, or breaks a rule.
    """
    return Workload(facts=info(path), operations=parquet_tables.read(path))
