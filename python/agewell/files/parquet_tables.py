"""Parquet tables with checksums, in files of any name: a flipped bit is an error, never other data.

The form is that of the tables that the extension module writes: a block of checksums between the
data and the footer, which other readers of Parquet look past. Tables without it are read unchecked.
Arrow takes a name for UTF-8 text, which on Linux it need not be; a file that is open already has
none. Loading Arrow takes longer than most runs, so that it is loaded here and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import _agewell, files
from agewell.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = b"agewell.checksums"
_VERSION = b"1"


def read(
    path: str | PathLike[str],
    columns: Sequence[str] | None = None,
    what: str = "a table of agewell",
) -> pa.Table:
    """A table, or some columns of it, checked where it has checksums.

    Args:
        path: The file.
        columns: Those to read, all if not given.
        what: What the file should be, for the line that says that it is not.

    Raises:
        InputError: It is not there, damaged, or no such table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        _agewell.check_parquet(path)
        with Path(path).open("rb") as file:
            # In this thread alone: one of Arrow's that still holds the file when Python ends aborts
            # the process after all its work (github.com/apache/arrow/issues/34314, 50482). The
            # function `read_table` has one even where it is asked to use none.
            parquet = pq.ParquetFile(file, pre_buffer=False)
            missing = set(columns or ()) - set(parquet.schema_arrow.names)
            if missing:
                raise pa.ArrowInvalid(f"it has no column {min(missing)}")
            return parquet.read(columns=columns, use_threads=False)
    except (InputError, OSError, pa.ArrowInvalid) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        reason = reason.removeprefix(f"{path}: ")
        raise InputError(f"{path}: not {what}: {reason}") from error


def write(path: Path, table: pa.Table, **options: Any) -> None:
    """Write a table with checksums in one step, with Arrow's `options`.

    Args:
        path: Where to.
        table: Held in memory as a file once more while it is written.
        options: Those of `pyarrow.parquet.write_table`.

    Raises:
        RunError: It cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: _VERSION})
    sink = pa.BufferOutputStream()
    pq.write_table(marked, sink, **options)
    content = _agewell.with_checksums(sink.getvalue().to_pybytes())
    files.write_whole(path, lambda partial: partial.write_bytes(content))
