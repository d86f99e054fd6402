"""What is asked of the simulator and of the store alike: a file filled in order, then updates.

A trace of file operations of one file: its fill, a directory that is made as a mark, and then the
updates, with a sync wherever something must be durable. Both read the same Parquet file.

Random choices come from PCG64's raw stream, seeded by the name, and are integers throughout, so
that the same traces are made everywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agewell.files import made_traces, parquet_tables

BLOCK_BYTES = 4096
SEGMENT_BLOCKS = 64
"""256 KiB, as in the other comparisons of mechanisms."""
FORMATTED_SEGMENT_BLOCKS = 256
"""1 MiB, as stores and file systems are formatted."""
BLOCKS = 32_768
"""Blocks of the generated loads: 128 MiB. At 98 % ten segments are left for everything; chosen by
us: the store keeps eight from users."""
PASSES = 4
"""Updates for each block; chosen by us."""
WRITES_A_SYNC = 4
"""As in Matthews 1999, section 5.2.1.1."""

_WRITE, _SYNC, _MAKE_DIRECTORY = 4, 7, 8
_FILL_BLOCKS = SEGMENT_BLOCKS - 1
"""Blocks that are filled by a sync: a segment, less the block of the record before them."""
_MARK_NS = 1_000_000_000
_SECTORS_A_BLOCK = BLOCK_BYTES // 512
_BLOCK_WRITE, _BLOCK_FLUSH = 1, 3
"""Operations of block traces (`docs/reference/trace-formats.md`)."""

Integers = npt.NDArray[np.uint64]


def collected_by_lifetime(logs: int) -> dict[str, Any]:
    """Keys of a simulated log that divides what it collects among as many logs as a store does."""
    return {
        "layout.placement": "collected-life-table",
        "layout.logs": logs,
        "layout.victim": "renewal",
    }


@dataclass(frozen=True, slots=True)
class Load:
    """A workload.

    Attributes:
        name: As in keys and files.
        title: In words.
        blocks: Of the file.
        operation: Codes of what follows the fill: writes and syncs.
        first: The first block of each write.
        count: The blocks of each write.
    """

    name: str
    title: str
    blocks: int
    operation: Integers
    first: Integers
    count: Integers

    def save(self, path: Path) -> None:
        """Write the trace: the fill, the mark, and what follows."""
        starts = np.arange(0, self.blocks, _FILL_BLOCKS, dtype=np.uint64)
        lengths = np.minimum(np.uint64(_FILL_BLOCKS), np.uint64(self.blocks) - starts)
        fill = np.tile(np.array([_WRITE, _SYNC], np.uint64), len(starts))
        one = np.array([0], np.uint64)
        operation = np.concatenate([fill, one + np.uint64(_MAKE_DIRECTORY), self.operation])
        first = np.concatenate([np.repeat(starts, 2), one, self.first])
        count = np.concatenate([np.repeat(lengths, 2), one, self.count])
        time_ns = np.zeros(len(operation), np.uint64)
        time_ns[len(fill) :] = _MARK_NS
        files = operation == _MAKE_DIRECTORY
        block_bytes = np.uint64(BLOCK_BYTES)
        ranges = (operation == _WRITE, first * block_bytes, count * block_bytes)
        trace = made_traces.on_files(
            time_ns, operation, files, ["data", "updates"], ranges, "store-against-simulation"
        )
        parquet_tables.write(path, trace, compression="zstd")

    def singly(self) -> Load:
        """The same, a block at a time.

        A write of many blocks is a transaction of the store, which goes to the disk with what waits
        or after it. A simulated write buffer takes as much of it as there is room for.
        """
        blocks = np.maximum(self.count, np.uint64(1)).astype(np.int64)
        begins = np.cumsum(blocks) - blocks
        within = np.arange(blocks.sum()) - np.repeat(begins, blocks)
        operation = np.repeat(self.operation, blocks)
        return replace(
            self,
            operation=operation,
            first=np.repeat(self.first, blocks) + within.astype(np.uint64),
            count=(operation == _WRITE).astype(np.uint64),
        )

    def segments(self, percent: float) -> int:
        """Segments of a log that is `percent` full, as a simulation counts them."""
        return -(-self.blocks * 100 // round(percent * SEGMENT_BLOCKS))

    def utilization(self, segments: int) -> float:
        """The utilization at which a simulated log has that many segments."""
        # Its number is rounded up; half a segment less is safe from rounding here.
        return self.blocks / ((segments - 0.5) * SEGMENT_BLOCKS)


def _raw(name: str, count: int) -> Integers:
    raw: Integers = np.random.PCG64(zlib.crc32(name.encode())).random_raw(count)
    return raw


def _random(raw: Integers) -> Integers:
    return raw % np.uint64(BLOCKS)


def _hot_and_cold(raw: Integers) -> Integers:
    """Nine of ten go to one block in ten."""
    hot = np.uint64(BLOCKS // 10)
    is_hot, place = raw % np.uint64(10) > 0, raw // np.uint64(10)
    return np.where(is_hot, place % hot, hot + place % (np.uint64(BLOCKS) - hot))


def _zipf(raw: Integers) -> Integers:
    """Frequencies of Zipf, exponent 1; the ranks lie scattered."""
    weights = np.uint64(1 << 32) // np.arange(1, BLOCKS + 1, dtype=np.uint64)
    behind = np.cumsum(weights)
    rank: Integers = np.searchsorted(behind, raw % behind[-1], side="right").astype(np.uint64)
    return rank * np.uint64(7919) % np.uint64(BLOCKS)


GENERATED: Mapping[str, tuple[str, Callable[[Integers], Integers]]] = {
    "random": ("random update", _random),
    "hot": ("hot-and-cold, 90 % to 10 %", _hot_and_cold),
    "zipf": ("Zipf, exponent 1", _zipf),
}
"""Title and choice of blocks of the generated loads."""

RECORDED: Mapping[str, str] = {"mail": "recorded: mail", "pgbench": "recorded: pgbench"}
"""Titles of the recorded loads."""


def generated(name: str) -> Load:
    """A load of single blocks, a sync after every four."""
    title, chosen = GENERATED[name]
    blocks = chosen(_raw(name, BLOCKS * PASSES)).reshape(-1, WRITES_A_SYNC)
    none = np.zeros((len(blocks), 1), np.uint64)
    operation = np.full((len(blocks), WRITES_A_SYNC + 1), _WRITE, np.uint64)
    operation[:, -1] = _SYNC
    first = np.concatenate([blocks, none], axis=1)
    ones = np.ones_like(operation)
    return Load(name, title, BLOCKS, operation.ravel(), first.ravel(), ones.ravel())


def recorded(name: str, path: Path) -> Load:
    """The writes and flushes of a recorded block trace; a flush is a sync. Reads are left out.

    The recorded device is taken as one large file, all of which is there before: up to the furthest
    request.
    """
    table = parquet_tables.read(path, ["sector", "sectors", "operation"])
    operation, sector, sectors = (
        table[column].to_numpy().astype(np.uint64) for column in ("operation", "sector", "sectors")
    )
    block = sector // np.uint64(_SECTORS_A_BLOCK)
    end = -(-(sector + sectors).astype(np.int64) // _SECTORS_A_BLOCK)
    blocks = int(end.max())
    kept = (operation == _BLOCK_FLUSH) | (operation == _BLOCK_WRITE)
    is_flush = operation[kept] == _BLOCK_FLUSH
    count = (end.astype(np.uint64) - block)[kept]
    return Load(
        name,
        RECORDED[name],
        blocks,
        np.where(is_flush, np.uint64(_SYNC), np.uint64(_WRITE)),
        np.where(is_flush, np.uint64(0), block[kept]),
        np.where(is_flush, np.uint64(0), count),
    )
