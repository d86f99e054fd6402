"""Parquet tables in files of any name.

Arrow takes a name for UTF-8 text, which on Linux it need not be; a file that is open already has
none. Loading Arrow takes longer than most runs, so that it is loaded here and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import files

if TYPE_CHECKING:
    import pyarrow as pa


def read(path: str | PathLike[str], columns: Sequence[str] | None = None) -> pa.Table:
    """A table, or some columns of it.

    Raises:
        OSError: The file cannot be read.
        pyarrow.ArrowInvalid: It holds no such table.
    """
    import pyarrow.parquet as pq

    with Path(path).open("rb") as file:
        return pq.read_table(file, columns=columns)


def write(path: Path, table: pa.Table, **options: Any) -> None:
    """Write a table in one step, with Arrow's `options`.

    Raises:
        RunError: It cannot be written.
    """
    import pyarrow.parquet as pq

    def fill(partial: Path) -> None:
        with partial.open("wb") as file:
            pq.write_table(table, file, **options)

    files.write_whole(path, fill)
