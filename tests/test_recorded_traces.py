"""The recorded traces: what they hold, that they are whole, that their README is true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TRACES = Path(__file__).resolve().parents[1] / "examples" / "traces"
README = TRACES / "README.md"
BLOCK = ("pgbench", "mail", "build")
FILES = ("build-files", "decision-support-files")
TOTAL_BYTES_MAX = 8 << 20
REQUESTS_MIN = 50_000
# The addressable sizes of the disks that the README says the traces fit, in 512-byte sectors.
HP_97560_SECTORS = 2_684_016
HP_C2200A_SECTORS = 654_948
READ, WRITE, FLUSH = 0, 1, 3

BLOCK_SCHEMA = {
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
FILE_SCHEMA = {
    "time_ns": "uint64",
    "finish_ns": "uint64",
    "client": "uint32",
    "operation": "uint8",
    "file": "uint32",
    "directory": "uint32",
    "offset": "uint64",
    "length": "uint64",
    "path": "string",
    "new_path": "string",
}


def columns(name: str) -> dict[str, Any]:
    """The numeric columns of a trace as signed integers; missing values are an error."""
    table = pq.read_table(TRACES / f"{name}.parquet")
    return {
        field: table[field].to_numpy().astype(np.int64)
        for field in table.column_names
        if pa.types.is_integer(table.schema.field(field).type) and table[field].null_count == 0
    }


def metadata(name: str) -> dict[str, Any]:
    """What the file says about itself."""
    pairs = pq.read_metadata(TRACES / f"{name}.parquet").metadata
    described: dict[str, Any] = json.loads(pairs[b"agewell.metadata"])
    return described


def shown(name: str) -> list[str]:
    """The cells of the README's row about a file, without its name."""
    row = re.search(rf"^\| `{name}\.parquet` \|(.*)\|$", README.read_text(), re.MULTILINE)
    assert row is not None, f"{README} says nothing of {name}.parquet"
    return [cell.strip() for cell in row[1].split("|")]


def touched_mib(sector: Any, end: Any) -> float:
    """Size of the union of all requests, in whole 4 KiB blocks."""
    first, last = sector // 8, (end - 1) // 8
    depth = np.zeros(int(last.max()) + 2, dtype=np.int64)
    np.add.at(depth, first, 1)
    np.add.at(depth, last + 1, -1)
    return float((np.cumsum(depth) > 0).sum()) / 256


def test_together_they_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in TRACES.glob("*.parquet")}
    assert set(sizes) == {f"{name}.parquet" for name in (*BLOCK, *FILES)}
    assert sum(sizes.values()) <= TOTAL_BYTES_MAX, sizes


@pytest.mark.parametrize("name", BLOCK)
def test_block_columns_are_whole_and_in_order(name: str) -> None:
    schema = pq.read_schema(TRACES / f"{name}.parquet")
    assert {field.name: str(field.type) for field in schema} == BLOCK_SCHEMA
    column = columns(name)
    assert set(column) == set(BLOCK_SCHEMA), "a column has missing values"
    assert len(column["enqueue_ns"]) >= REQUESTS_MIN
    assert column["enqueue_ns"][0] == 0
    assert (np.diff(column["enqueue_ns"]) >= 0).all()
    assert (column["start_ns"] >= column["enqueue_ns"]).all()
    assert (column["finish_ns"] >= column["start_ns"]).all()
    moves = np.isin(column["operation"], (READ, WRITE))
    flushes = column["operation"] == FLUSH
    assert (moves | flushes).all()
    assert (column["sectors"][moves] > 0).all()
    assert (column["sectors"][flushes] == 0).all()
    # ext4 with 4 KiB blocks asks for nothing smaller, but for its superblock at byte 1024.
    aligned = (column["sector"][moves] % 8 == 0) & (column["sectors"][moves] % 8 == 0)
    assert aligned.mean() > 0.99
    # The kernel's clock has microseconds in the text: a finer digit would not be the recorded one.
    for time in ("enqueue_ns", "start_ns", "finish_ns"):
        assert (column[time] % 1000 == 0).all()


@pytest.mark.parametrize("name", BLOCK)
def test_requests_lie_on_the_device_that_was_recorded(name: str) -> None:
    column = columns(name)
    header = metadata(name)["header"]
    end = (column["sector"] + column["sectors"]).max()
    assert end * 512 <= int(header["device_bytes"])
    assert end <= HP_97560_SECTORS
    if name == "mail":
        assert end <= HP_C2200A_SECTORS
    assert (column["device"] == 0).all()
    for key in ("kernel", "device", "file_system", "programs", "workload", "queue"):
        assert header[key], key
    assert metadata(name)["format"] == "tracepoint"
    assert metadata(name)["warnings"] == {}


@pytest.mark.parametrize("name", BLOCK)
def test_the_readme_says_what_the_block_traces_hold(name: str) -> None:
    column = columns(name)
    operation, sectors = column["operation"], column["sectors"]
    read, write = operation == READ, operation == WRITE
    moves = read | write
    end = column["sector"] + sectors
    expected = [
        f"{len(operation)}",
        f"{read.sum()}",
        f"{write.sum()}",
        f"{(operation == FLUSH).sum()}",
        f"{100 * read.sum() / moves.sum():.1f}",
        f"{sectors[read].sum() / 2048:.1f}",
        f"{sectors[write].sum() / 2048:.1f}",
        f"{column['enqueue_ns'][-1] / 1e9:.1f}",
        f"{end.max() / 2048:.1f}",
        f"{touched_mib(column['sector'][moves], end[moves]):.1f}",
    ]
    assert shown(name) == expected


@pytest.mark.parametrize(("name", "silence_s"), [("pgbench", 5), ("mail", 30), ("build", 10)])
def test_there_are_pauses_and_bursts(name: str, silence_s: int) -> None:
    # pgbench's pauses are not silent: the server writes its checkpoints in them.
    enqueue_ns = columns(name)["enqueue_ns"]
    assert np.diff(enqueue_ns).max() >= silence_s * 1_000_000_000
    per_second = np.bincount(enqueue_ns // 1_000_000_000)
    assert np.max(per_second) >= 5 * np.mean(per_second)


@pytest.mark.parametrize("name", FILES)
def test_file_operations_are_whole_and_in_order(name: str) -> None:
    table = pq.read_table(TRACES / f"{name}.parquet")
    assert {field.name: str(field.type) for field in table.schema} == FILE_SCHEMA
    time = table["time_ns"].to_numpy().astype(np.int64)
    assert time[0] == 0
    assert (np.diff(time) >= 0).all()
    finished = table["finish_ns"].is_valid().to_numpy()
    finish = table["finish_ns"].fill_null(0).to_numpy().astype(np.int64)
    assert finished.any()
    assert (finish[finished] >= time[finished]).all()
    moves = np.isin(table["operation"].to_numpy(), (3, 4))
    length = table["length"].fill_null(0).to_numpy().astype(np.int64)
    assert (length[moves] > 0).all()
    # An append to a file of unknown length has no offset; that must stay the exception.
    assert table["offset"].is_valid().to_numpy()[moves].mean() > 0.99
    assert not any(path.startswith("/") for path in table["path"].unique().to_pylist())
    renames = table["operation"].to_numpy() == 10
    assert (table["new_path"].is_valid().to_numpy() == renames).all()
    assert metadata(name)["format"] == "strace"
    assert set(metadata(name)["warnings"]) <= {
        "symbolic links were made, which have no operation of their own"
    }


@pytest.mark.parametrize(("name", "deleted_min"), [(FILES[0], 1000), (FILES[1], 150)])
def test_a_deleted_file_is_neither_opened_nor_renamed_again(name: str, deleted_min: int) -> None:
    table = pq.read_table(TRACES / f"{name}.parquet", columns=["operation", "file"])
    create, opened, delete, rename = 0, 1, 6, 10
    gone: set[int] = set()
    for operation, file in zip(
        table["operation"].to_pylist(), table["file"].to_pylist(), strict=True
    ):
        assert operation not in (create, opened, rename) or file not in gone, file
        if operation == delete:
            gone.add(file)
    assert len(gone) > deleted_min


@pytest.mark.parametrize("name", FILES)
def test_the_readme_says_what_the_file_operations_hold(name: str) -> None:
    table = pq.read_table(TRACES / f"{name}.parquet")
    operation = table["operation"].to_numpy()
    length = table["length"].fill_null(0).to_numpy().astype(np.int64)
    mib = {code: length[operation == code].sum() / 2**20 for code in (3, 4)}
    expected = [
        f"{table.num_rows}",
        f"{len(table['file'].unique())}",
        f"{table['time_ns'][-1].as_py() / 1e9:.1f}",
        f"{mib[3]:.1f}",
        f"{mib[4]:.1f}",
    ]
    assert shown(name) == expected


def test_both_traces_of_the_build_cover_the_same_time() -> None:
    blocks, files = metadata("build"), metadata("build-files")
    offset = int(files["header"]["realtime_minus_monotonic_ns"])
    assert offset == int(blocks["header"]["realtime_minus_monotonic_ns"])
    begin_ns = files["clock_start_ns"] - offset - blocks["clock_start_ns"]
    # The build begins with reading its archive, which empty caches turn into requests at once.
    assert abs(begin_ns) < 1_000_000_000
    last_ns = columns("build-files")["time_ns"][-1] + begin_ns
    assert last_ns <= columns("build")["enqueue_ns"][-1]


# What the database itself said of its relations before the recording: blocks of 8 KiB of the
# tables that some query reads as a whole, by the number that is the name of the file.
RELATION_BLOCKS = {"16398": 41, "16403": 692, "16408": 3655, "16413": 681}
ITEM, ITEM_BLOCKS = "16423", 19_359


def decision_support_parts() -> dict[str, pa.Table]:
    """The operations between one mark and the next."""
    table = pq.read_table(TRACES / "decision-support-files.parquet")
    path = table["path"].to_pylist()
    made = np.flatnonzero(table["operation"].to_numpy() == 8)
    marks = [int(row) for row in made if path[row].startswith("marks/")]
    names = [path[row].removeprefix("marks/") for row in marks]
    lengths = np.diff([*marks, table.num_rows])
    return {
        name: table.slice(row, int(length))
        for name, row, length in zip(names, marks, lengths, strict=True)
    }


def test_decision_support_has_a_part_for_each_question() -> None:
    parts = decision_support_parts()
    questions = [f"q{number:02}" for number in range(1, 18)]
    assert list(parts) == ["insert", *questions, "delete", "end"]
    reads = {name: int((part["operation"].to_numpy() == 3).sum()) for name, part in parts.items()}
    assert min(reads[name] for name in questions) > 1000
    first = parts["q01"]
    scanned = [
        offset
        for operation, path, offset in zip(
            first["operation"].to_pylist(),
            first["path"].to_pylist(),
            first["offset"].to_pylist(),
            strict=True,
        )
        if operation == 3 and path.endswith(f"/{ITEM}")
    ]
    # A scan of the largest table and of what the refresh added to it: each block once, in order.
    assert scanned == [8192 * block for block in range(len(scanned))]
    assert ITEM_BLOCKS < len(scanned) < ITEM_BLOCKS + 100


def test_decision_support_reads_its_tables_to_the_block_that_the_database_says() -> None:
    table = pq.read_table(TRACES / "decision-support-files.parquet")
    end: dict[str, int] = {}
    for operation, path, offset, length in zip(
        table["operation"].to_pylist(),
        table["path"].to_pylist(),
        table["offset"].to_pylist(),
        table["length"].to_pylist(),
        strict=True,
    ):
        if operation == 3 and path.startswith("tables/"):
            number = path.rsplit("/", 1)[1]
            end[number] = max(end.get(number, 0), (offset + length) // 8192)
    assert {number: end[number] for number in RELATION_BLOCKS} == RELATION_BLOCKS


def test_decision_support_deletes_every_temporary_file_that_it_makes() -> None:
    table = pq.read_table(TRACES / "decision-support-files.parquet")
    path = table["path"].to_pylist()
    operation = table["operation"].to_pylist()
    file = table["file"].to_pylist()
    rows = [row for row in range(table.num_rows) if "/pgsql_tmp/" in path[row]]
    made = {file[row] for row in rows if operation[row] == 0}
    assert len(made) > 100
    assert made == {file[row] for row in rows if operation[row] == 6}
    assert all(path[row].startswith("temporary/") for row in rows)
