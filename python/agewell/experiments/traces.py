"""Traces in Python: `agewell.read_trace`, columns in and out as Arrow and NumPy without copies.

    trace = agewell.read_trace("mail.parquet")
    trace["sector"]                        # a NumPy view
    agewell.run("experiment.toml", trace=trace)

    made = agewell.Trace.of({"enqueue_ns": times, "sector": places, "sectors": 8, "operation": 0})
    agewell.run("experiment.toml", trace=made)

The columns are the canonical ones of `docs/reference/trace-formats.md`. A trace that was read lies
in its file until its columns are asked for; one that was made of columns is written to a temporary
file, a part at a time, when a simulation first needs it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import _agewell
from agewell.errors import InputError
from agewell.files import catalogue, parquet_tables, path_text
from agewell.files.made_traces import canonical_metadata
from agewell.values import documents
from agewell.values.findings import Findings, numbers
from agewell.values.plot import Curve, Plot

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

BLOCK_COLUMNS = {
    "enqueue_ns": "uint64",
    "start_ns": "uint64",
    "finish_ns": "uint64",
    "device": "uint32",
    "sector": "uint64",
    "sectors": "uint32",
    "operation": "uint8",
    "flags": "uint16",
    "client": "uint32",
}
"""The columns of a trace of block requests and their types."""
REQUIRED = ("enqueue_ns", "sector", "sectors", "operation")
"""Without the others a request is of device 0 and client 0, has no flags and no measured times."""
MISSING_ALLOWED = ("start_ns", "finish_ns")

_PART_ROWS = 1 << 16
"""Rows that are read, checked and written at a time; chosen by us: about 3 MB."""
_READ_BYTES = 1 << 20
"""Bytes of a file that are read at a time, in place of a column of a row group; chosen by us."""
_PLOT_BINS = 200


class Trace(Findings):
    """A trace of block requests or of file operations.

    Examples:
        >>> import agewell
        >>> asked = {"enqueue_ns": [0, 5_000_000], "sector": [8, 4096], "operation": [0, 1]}
        >>> trace = agewell.Trace.of({**asked, "sectors": 8})
        >>> len(trace), trace["sector"].tolist()
        (2, [8, 4096])
    """

    __slots__ = ("__weakref__", "_document", "_is_temporary", "_kind", "_path", "_table")

    def __init__(self, path: Path | None, table: pa.Table | None) -> None:
        self._path = path
        self._table = table
        self._is_temporary = False
        self._document: dict[str, Any] | None = None
        self._kind = "block" if path is None else kind_of(path)

    @classmethod
    def of(cls, columns: Any) -> Trace:
        """A trace of block requests out of columns, which are taken as they are where types fit.

        Args:
            columns: An Arrow table, anything that hands one out (a frame of pandas or polars), or
                arrays by name. `enqueue_ns` (nanoseconds, in order), `sector` (512 bytes each),
                `sectors` and `operation` (0 read, 1 write, 2 discard, 3 flush) are needed. A single
                number stands for every row. Other types are converted if no value changes.

        Raises:
            InputError: A column is missing, unknown, of another length or holds what does not fit.

        Examples:
            >>> import numpy as np
            >>> import agewell
            >>> sectors = np.arange(0, 8000, 8, dtype=np.uint64)
            >>> trace = agewell.Trace.of(
            ...     {
            ...         "enqueue_ns": np.arange(1000, dtype=np.uint64) * 10_000_000,
            ...         "sector": sectors,
            ...         "sectors": 8,
            ...         "operation": 0,
            ...     }
            ... )
            >>> np.shares_memory(trace["sector"], sectors)
            True
        """
        return cls(None, _canonical(_arrow(columns)))

    @classmethod
    def converted(cls, convert: Callable[[Path], object]) -> Trace:
        """The trace that `convert` writes to the file it is called with; the file is temporary."""
        trace = cls(None, None)
        output = trace._temporary()
        convert(output)
        trace._path = output
        trace._kind = kind_of(output)
        return trace

    @property
    def kind(self) -> str:
        """`block` for block requests, `file` for file operations."""
        return self._kind

    @property
    def path(self) -> Path:
        """A file of the trace that a simulation can read; one that lives with it if need be."""
        if self._path is None:
            path = self._temporary()
            _write(self.table(), path)
            self._path = path
        return self._path

    def _temporary(self) -> Path:
        """A file that goes away with this trace."""
        folder = tempfile.mkdtemp(prefix="agewell-trace-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._is_temporary = True
        return Path(folder) / "trace.parquet"

    @property
    def document(self) -> dict[str, Any]:
        """What the trace says of itself and holds, as `agewell trace info --json` gives it."""
        if self._document is None:
            if self.kind == "block":
                facts = json.loads(_agewell.trace_info(str(self.path)))
                self._document = documents.document("trace-info", facts)
            else:
                facts = {"format": "parquet", "summary": {"operations": len(self)}}
                self._document = documents.document("trace-info", facts)
        return self._document

    @property
    def metrics(self) -> dict[str, Any]:
        """Requests, bytes, span (s) and shares of the trace."""
        return numbers(self.document["summary"])

    def table(self) -> pa.Table:
        """All columns as an Arrow table, each in one piece; the same one every time."""
        if self._table is None:
            assert self._path is not None
            block = self.kind == "block"
            self._table = _read(self._path) if block else parquet_tables.read(self._path)
        return self._table

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """A column as a NumPy array that cannot be written.

        It is a view of the column, masked where times are missing. Texts are copied.

        Raises:
            InputError: There is no such column.
        """
        table = self.table()
        if column not in table.column_names:
            raise InputError(
                f"the trace has no column '{column}'; it has {', '.join(table.column_names)}"
            )
        return _view(table[column])

    def __len__(self) -> int:
        """Rows."""
        if self._table is None and self._path is not None:
            import pyarrow.parquet as pq

            with self._path.open("rb") as file:
                return int(pq.read_metadata(file).num_rows)
        return int(self.table().num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hands the columns to whatever takes Arrow tables: polars, pandas, DuckDB."""
        return self.table().__arrow_c_stream__(requested_schema)

    def write(self, path: Path | str) -> None:
        """Write the trace in the format that the name says: `.parquet`, `.csv`, `.srt`...

        Raises:
            InputError: No format goes by such a name.
            RunError: The file cannot be written.
        """
        _agewell.trace_convert([str(self.path)], str(path), None, None, "[]", False)

    def plots(self) -> list[Plot]:
        """Requests a second over the time of the trace."""
        import numpy as np

        name = "enqueue_ns" if self.kind == "block" else "time_ns"
        times_ns = self[name]
        if len(times_ns) == 0:
            return []
        first, last = int(times_ns[0]), int(times_ns[-1])
        counts, edges_ns = np.histogram(times_ns, _PLOT_BINS, range=(first, max(last, first + 1)))
        seconds = (edges_ns - first) / 1e9
        rates = counts / np.diff(seconds)
        return [
            Plot(
                name="rate",
                title="Requests over time",
                x_label="time of the trace (s)",
                y_label="requests a second",
                curves=[Curve("", seconds[:-1].tolist(), rates.tolist(), style="steps")],
            )
        ]

    def _shown(self) -> dict[str, object]:
        name = None if self._path is None or self._is_temporary else self._path.name
        return {"rows": len(self), "kind": self.kind, **({"path": name} if name else {})}


def read_trace(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002 (the word of the command line)
    filters: Sequence[str] = (),
    skip_bad: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Trace:
    """Read a trace of any format that agewell knows.

    A canonical Parquet file is used where it lies; anything else is converted into a temporary one,
    which goes away with the trace.

    Args:
        path: The trace, compressed or not, or the name of one that comes with agewell (`mail`).
        format: Its format, as `agewell trace formats` lists them; by default what it looks like.
        filters: What to keep or change, in this order: `op=read`, `time=1h..2h`, `device=0`.
        skip_bad: Leave records out that cannot be read.
        progress: Called with the bytes and the requests read so far.

    Returns:
        The trace, for `agewell.run`, `compare`, `advise` and `validate`, and for NumPy and Arrow.

    Raises:
        InputError: It is not there, no known trace, or damaged.

    Examples:
        >>> import agewell
        >>> agewell.read_trace("mail")
        Trace(rows=60753, kind='block', path='mail.parquet')
        >>> agewell.read_trace("missing.srt")
        Traceback (most recent call last):
        ...
        _agewell.InputError: missing.srt: cannot be read: No such file or directory
    """
    source = catalogue.trace(Path(path))
    if not filters and format in {None, "parquet"} and _is_parquet(source):
        return Trace(source, None)
    return Trace.converted(
        lambda output: _agewell.trace_convert(
            [path_text(source)],
            str(output),
            format,
            None,
            json.dumps(list(filters)),
            skip_bad,
            progress,
        )
    )


def path_of(trace: Trace | Path | str) -> Path:
    """The file of a trace that is given as a value or by its name."""
    return trace.path if isinstance(trace, Trace) else catalogue.trace(Path(trace))


def kind_of(path: Path) -> str:
    """`file` for a trace of file operations, as its Parquet metadata or its name say, or `block`.

    Raises:
        InputError: It is a damaged Parquet file.
    """
    if not _is_parquet(path):
        return "file" if path.suffix == ".strace" else "block"
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            metadata = pq.read_metadata(file).metadata or {}
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: not a Parquet file: {str(error).splitlines()[0]}") from error
    return "file" if metadata.get(b"agewell.kind") == b"file" else "block"


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def _arrow(columns: Any) -> pa.Table:
    """The columns as an Arrow table, without copying."""
    import numpy as np
    import pyarrow as pa

    if not isinstance(columns, Mapping):
        if not hasattr(columns, "__arrow_c_stream__"):
            raise InputError(
                f"a trace is made of arrays by name or of an Arrow table, not of {type(columns)}"
            )
        return pa.table(columns)
    lengths = {len(values) for values in columns.values() if hasattr(values, "__len__")}
    if len(lengths) != 1:
        raise InputError(
            f"the columns of a trace have {sorted(lengths)} rows; they need one length"
        )
    rows = lengths.pop()
    arrays = {}
    for name, values in columns.items():
        try:
            if not hasattr(values, "__len__"):
                kind = BLOCK_COLUMNS.get(name, "uint64")
                arrays[name] = pa.array(np.broadcast_to(np.asarray(values, kind), rows))
            elif isinstance(values, np.ma.MaskedArray):
                arrays[name] = pa.array(values.data, mask=np.ma.getmaskarray(values))
            else:
                arrays[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"column {name}: {str(error).splitlines()[0]}") from error
    return pa.table(arrays)


def _canonical(table: pa.Table) -> pa.Table:
    """The columns in their order and types; those that fit already are the same memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    unknown = [name for name in table.column_names if name not in BLOCK_COLUMNS]
    if unknown:
        raise InputError(
            f"'{unknown[0]}' is not a column of a trace; those are {', '.join(BLOCK_COLUMNS)}"
        )
    lacking = [name for name in REQUIRED if name not in table.column_names]
    if lacking:
        raise InputError(f"the trace has no column '{lacking[0]}'; it needs {', '.join(REQUIRED)}")
    columns = {}
    for name, kind in BLOCK_COLUMNS.items():
        if name not in table.column_names:
            continue
        column = table[name]
        if column.null_count and name not in MISSING_ALLOWED:
            raise InputError(f"column {name}: {column.null_count:,} values are missing")
        try:
            columns[name] = column.cast(kind)
        except pa.ArrowException as error:
            raise InputError(f"column {name}: {str(error).splitlines()[0]}") from error
    last = None
    for part in _parts(columns["enqueue_ns"]):
        before = part if last is None else pa.concat_arrays([last, part])
        if pc.any(pc.greater(before[:-1], before[1:])).as_py():
            raise InputError("column enqueue_ns: times go back; sort the rows by it")
        last = part[-1:]
    return pa.table(columns)


def _parts(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in column.chunks:
        for start in range(0, len(chunk), _PART_ROWS):
            yield chunk.slice(start, _PART_ROWS)


def _view(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column as an array that cannot be written, without copying numbers."""
    import numpy as np
    import pyarrow as pa

    # More than one piece has to be put together; what is read here is in one.
    whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if not pa.types.is_integer(whole.type):
        return whole.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    if not whole.null_count:
        return whole.to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]
    kind = np.dtype(whole.type.to_pandas_dtype())
    data = np.frombuffer(whole.buffers()[1], kind)[whole.offset : whole.offset + len(whole)]
    missing: npt.NDArray[np.bool_] = whole.is_null().to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(data, missing)


def _read(path: Path) -> pa.Table:
    """A trace of block requests with each column in one piece, read a part at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        _agewell.check_parquet(path)
        with path.open("rb") as file:
            # As in `parquet_tables.read`: in this thread alone.
            parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=_READ_BYTES)
            rows = parquet.metadata.num_rows
            schema = parquet.schema_arrow
            lacking = set(BLOCK_COLUMNS) - set(schema.names)
            if lacking:
                raise pa.ArrowInvalid(f"it has no column {min(lacking)}")
            arrays = {name: np.empty(rows, kind) for name, kind in BLOCK_COLUMNS.items()}
            known = {name: np.zeros(rows // 8 + 1, np.uint8) for name in MISSING_ALLOWED}
            missing = dict.fromkeys(MISSING_ALLOWED, 0)
            start = 0
            for batch in parquet.iter_batches(
                _PART_ROWS, columns=[*BLOCK_COLUMNS], use_threads=False
            ):
                end = start + len(batch)
                for name, array in arrays.items():
                    column = batch.column(name)
                    if name in known:
                        missing[name] += column.null_count
                        _set_bits(known[name], start, column.is_valid().to_numpy(False))
                        column = column.fill_null(0)
                    array[start:end] = column.to_numpy(zero_copy_only=False)
                start = end
    except (InputError, OSError, KeyError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        reason = reason.removeprefix(f"{path}: ")
        raise InputError(f"{path}: not a trace of block requests: {reason}") from error
    columns = {}
    for name, array in arrays.items():
        columns[name] = pa.array(array)
        if missing.get(name):
            buffers = [pa.py_buffer(known[name]), columns[name].buffers()[1]]
            columns[name] = pa.Array.from_buffers(columns[name].type, rows, buffers)
    return pa.table(columns)


def _set_bits(bits: npt.NDArray[np.uint8], start: int, values: npt.NDArray[np.bool_]) -> None:
    """Put values into a bitmap of Arrow, which is zero there."""
    import numpy as np

    before = np.zeros(start % 8, np.bool_)
    packed = np.packbits(np.concatenate([before, values]), bitorder="little")
    bits[start // 8 : start // 8 + len(packed)] |= packed


def _write(table: pa.Table, path: Path) -> None:
    """Write a canonical trace, a part at a time; columns that are not given get their defaults."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            pa.field(name, kind, nullable=name in MISSING_ALLOWED)
            for name, kind in BLOCK_COLUMNS.items()
        ],
        metadata=canonical_metadata("block", "python"),
    )
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, table.num_rows, _PART_ROWS):
            part = table.slice(start, _PART_ROWS)
            columns = [
                part[field.name]
                if field.name in part.column_names
                else pa.nulls(len(part), field.type)
                if field.nullable
                else pa.repeat(pa.scalar(0, field.type), len(part))
                for field in schema
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
