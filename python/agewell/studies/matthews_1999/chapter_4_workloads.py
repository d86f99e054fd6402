"""The workloads of chapter 4 of Matthews 1999: two ends of each axis, and nothing else different.

The chapter names axes and says which layouts are sensitive to them; it has no workloads. Here every
end of an axis is a file-operation trace over the same base: 4,096 files of 64 KiB, 32 a directory,
written once in order, which is not measured, then what the axis asks for. All sizes are chosen by
us: small enough that some hundreds of runs end soon, and a thousand times the write buffer.

Random choices come from PCG64's raw stream, seeded by the name of the end, so that the same traces
are made everywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agewell.files import made_traces, parquet_tables

BLOCK_BYTES = 8192
FILES = 4096
FILE_BLOCKS = 8
BLOCKS = FILES * FILE_BLOCKS
FILES_A_DIRECTORY = 32

_READ, _WRITE, _DELETE, _SYNC = 3, 4, 6, 7
_HOT_SHARE = 10
"""One block in ten gets nine accesses in ten, as in Rosenblum & Ousterhout 1992."""


class Script:
    """Operations on files, in order, each block request one block or more of one file."""

    def __init__(self, name: str, file_blocks: int = FILE_BLOCKS) -> None:
        """An empty script; `name` seeds its random choices."""
        self._raw = np.random.PCG64(zlib.crc32(name.encode()))
        self.file_blocks = file_blocks
        self.user_blocks = 0
        self._now_ns = 0
        self._rows: list[tuple[int, int, int, int, int]] = []

    def fill(self, blocks: int = BLOCKS) -> None:
        """Write every file in order, whole."""
        for file in range(blocks // self.file_blocks):
            self.write(file * self.file_blocks, self.file_blocks)

    def write(self, block: int, blocks: int = 1) -> None:
        """Write blocks of the whole, counted over all files."""
        self._transfer(_WRITE, block, blocks)

    def read(self, block: int, blocks: int = 1) -> None:
        """Read blocks of the whole."""
        self._transfer(_READ, block, blocks)

    def delete(self, file: int) -> None:
        """Remove a file."""
        self._rows.append((self._now_ns, _DELETE, file, 0, 0))

    def sync(self) -> None:
        """Everything written must be durable."""
        self._rows.append((self._now_ns, _SYNC, 0, 0, 0))

    def pause(self, seconds: int) -> None:
        """Nothing is asked for so long."""
        self._now_ns += seconds * 1_000_000_000

    def below(self, limit: int) -> int:
        """A random number below `limit`."""
        # The bias of the remainder is below 2^-40 for the limits here.
        return int(self._raw.random_raw()) % limit

    def permutation(self, count: int) -> list[int]:
        """Random order of the numbers below `count` (Fisher and Yates)."""
        order = list(range(count))
        for place in range(count - 1, 0, -1):
            other = self.below(place + 1)
            order[place], order[other] = order[other], order[place]
        return order

    def accesses(self, count: int, *, local: bool, scattered: bool = True) -> list[int]:
        """Random blocks: all alike, or nine in ten to a tenth of them.

        That tenth is scattered over all files, or is the first tenth of the files.
        """
        if not local:
            return [self.below(BLOCKS) for _ in range(count)]
        order: Sequence[int] = self.permutation(BLOCKS) if scattered else range(BLOCKS)
        hot = BLOCKS // _HOT_SHARE
        return [
            order[self.below(hot)]
            if self.below(_HOT_SHARE) > 0
            else order[hot + self.below(BLOCKS - hot)]
            for _ in range(count)
        ]

    def table(self) -> pa.Table:
        """The script as a canonical file-operation trace."""
        columns = np.array(self._rows, dtype=np.uint64).T
        time_ns, operation, file, offset, length = columns
        directory = file // FILES_A_DIRECTORY
        none = np.isin(operation, (_DELETE, _SYNC))
        rows = len(self._rows)
        table = pa.table(
            {
                "time_ns": pa.array(time_ns, pa.uint64()),
                "finish_ns": pa.nulls(rows, pa.uint64()),
                "client": pa.array(np.zeros(rows, np.uint32)),
                "operation": pa.array(operation.astype(np.uint8)),
                "file": pa.array(file.astype(np.uint32)),
                "directory": pa.array(directory.astype(np.uint32)),
                "offset": pa.array(offset, pa.uint64(), mask=none),
                "length": pa.array(length, pa.uint64(), mask=none),
                "path": pa.array(
                    [
                        f"{place:04}/{number:05}"
                        for place, number in zip(directory, file, strict=True)
                    ]
                ),
                "new_path": pa.nulls(rows, pa.string()),
            }
        )
        return made_traces.described(table, "chapter-4")

    def save(self, path: Path) -> None:
        """Write the trace."""
        table = self.table()
        parquet_tables.write(path, table, compression="zstd")

    def _transfer(self, operation: int, block: int, blocks: int) -> None:
        file, first = divmod(block, self.file_blocks)
        assert first + blocks <= self.file_blocks, "a request stays within a file"
        row = (self._now_ns, operation, file, first * BLOCK_BYTES, blocks * BLOCK_BYTES)
        self._rows.append(row)
        self.user_blocks += blocks


@dataclass(frozen=True, slots=True)
class End:
    """One end of an axis.

    Attributes:
        label: What it is, a few words.
        script: The operations.
        first: User blocks transferred before what is measured.
        last: The same, at its end.
        settings: What it changes in the experiment.
    """

    label: str
    script: Script
    first: int
    last: int
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Axis:
    """A characteristic of workloads (Matthews 1999, §4.2).

    Attributes:
        name: As in keys.
        title: As in tables.
        section: Of the thesis.
        quantity: `disk_seconds` between the marks of an end, or the name of a metric of the run.
        ends: Makes both ends; the sensitivity is the second over the first.
    """

    name: str
    title: str
    section: str
    quantity: str
    ends: Callable[[], tuple[End, End]]


def _end(
    label: str,
    script: Script,
    measured: Callable[[Script], None],
    **settings: Any,
) -> End:
    """An end whose measured part is what `measured` appends."""
    first = script.user_blocks
    measured(script)
    settings_by_key = {name.replace("__", "."): value for name, value in settings.items()}
    return End(label, script, first, script.user_blocks, settings_by_key)


def _filled(name: str, file_blocks: int = FILE_BLOCKS) -> Script:
    script = Script(name, file_blocks)
    script.fill()
    return script


def _write_all(script: Script, blocks: Sequence[int]) -> None:
    for block in blocks:
        script.write(block)


def _read_all(script: Script, blocks: Sequence[int]) -> None:
    for block in blocks:
        script.read(block)


def _write_order() -> tuple[End, End]:
    full = {"workload__utilization": 0.5}
    return (
        _end("in order", _filled("in order"), lambda s: _write_all(s, range(BLOCKS)), **full),
        _end("random", _filled("random"), lambda s: _write_all(s, s.permutation(BLOCKS)), **full),
    )


def _write_locality(scattered: bool) -> tuple[End, End]:
    def update(local: bool) -> Callable[[Script], None]:
        return lambda s: _write_all(s, s.accesses(3 * BLOCKS, local=local, scattered=scattered))

    full = {"workload__utilization": 0.85}
    return (
        _end("nine in ten to a tenth", _filled("local writes"), update(True), **full),
        _end("to all alike", _filled("uniform writes"), update(False), **full),
    )


def _read_order() -> tuple[End, End]:
    return (
        _end("in order", _filled("read in order"), lambda s: _read_all(s, range(BLOCKS))),
        _end("random", _filled("read random"), lambda s: _read_all(s, s.permutation(BLOCKS))),
    )


def _read_as_written() -> tuple[End, End]:
    def end(label: str, as_written: bool) -> End:
        script = _filled("read as written")
        order = script.permutation(BLOCKS)
        _write_all(script, order)
        reads = order if as_written else range(BLOCKS)
        return _end(label, script, lambda s: _read_all(s, reads), workload__utilization=0.5)

    return end("as written", True), end("by file", False)


def _read_locality() -> tuple[End, End]:
    def read(local: bool) -> Callable[[Script], None]:
        return lambda s: _read_all(s, s.accesses(4 * BLOCKS, local=local))

    return (
        _end("nine in ten to a tenth", _filled("local reads"), read(True)),
        _end("to all alike", _filled("uniform reads"), read(False)),
    )


def _read_share() -> tuple[End, End]:
    units = 10

    def mix(reads: int) -> Callable[[Script], None]:
        def measured(script: Script) -> None:
            order = script.permutation(FILES)
            for place in range(2 * FILES):
                if place % units < reads:
                    script.read(order[place % FILES] * FILE_BLOCKS, FILE_BLOCKS)
                else:
                    _write_all(script, [script.below(BLOCKS) for _ in range(FILE_BLOCKS)])

        return measured

    return (
        _end("one part in ten read", _filled("few reads"), mix(1)),
        _end("nine parts in ten read", _filled("many reads"), mix(9)),
    )


def _interleaving() -> tuple[End, End]:
    def end(label: str, together: bool) -> End:
        def measured(script: Script) -> None:
            writes = [script.below(BLOCKS) for _ in range(BLOCKS)]
            reads = [script.below(BLOCKS) for _ in range(BLOCKS)]
            if together:
                for written, read in zip(writes, reads, strict=True):
                    script.write(written)
                    script.read(read)
            else:
                _write_all(script, writes)
                _read_all(script, reads)

        return _end(label, _filled("interleaving"), measured)

    return end("one after the other", False), end("block by block", True)


def _shared_locality() -> tuple[End, End]:
    def end(label: str, same_file: bool) -> End:
        def measured(script: Script) -> None:
            for _ in range(2 * FILES):
                file, other = script.below(FILES), script.below(FILES)
                script.read((file if same_file else other) * FILE_BLOCKS, FILE_BLOCKS)
                script.write(file * FILE_BLOCKS + script.below(FILE_BLOCKS))
                script.sync()

        return _end(label, _filled("shared locality"), measured)

    return end("of one file", True), end("of different files", False)


def _rate() -> tuple[End, End]:
    burst = 128

    def end(label: str, pause_s: int) -> End:
        def measured(script: Script) -> None:
            for place in range(3 * BLOCKS):
                script.write(script.below(BLOCKS))
                if pause_s and place % burst == burst - 1:
                    script.pause(pause_s)

        settings = {"workload__utilization": 0.85, "host__idle_cleaning": "clean"}
        return _end(label, _filled("rate"), measured, **settings)

    return end("bursts with pauses", 30), end("sustained", 0)


def _size() -> tuple[End, End]:
    def end(label: str, file_blocks: int) -> End:
        script = _filled("size", file_blocks)
        _write_all(script, script.permutation(BLOCKS))
        return _end(label, script, lambda s: _read_all(s, range(BLOCKS)))

    return end("files of 2 MiB", 256), end("files of 8 KiB", 1)


def _utilization() -> tuple[End, End]:
    def end(share: float) -> End:
        def measured(script: Script) -> None:
            _write_all(script, [script.below(BLOCKS) for _ in range(3 * BLOCKS)])

        label = f"{100 * share:.0f} %"
        return _end(label, _filled("utilization"), measured, workload__utilization=share)

    return end(0.5), end(0.9)


def _lifetime() -> tuple[End, End]:
    kept = FILES // 2
    made = 2 * FILES

    def end(label: str, alive: int) -> End:
        # Short or long, that many files are live at once: what lives shorter has idle company.
        script = Script("lifetime")
        script.fill((FILES - alive) * FILE_BLOCKS)

        def measured(script: Script) -> None:
            for number in range(made):
                script.write((FILES + number) * FILE_BLOCKS, FILE_BLOCKS)
                if number >= alive:
                    script.delete(FILES + number - alive)

        return _end(label, script, measured, workload__utilization=0.85)

    return end("one file long", 1), end(f"{kept} files long", kept)


def _commit() -> tuple[End, End]:
    def end(label: str, every: int) -> End:
        def measured(script: Script) -> None:
            for place, block in enumerate(script.accesses(BLOCKS, local=True), start=1):
                script.write(block)
                if place % every == 0:
                    script.sync()

        return _end(label, _filled("commit"), measured, workload__utilization=0.5)

    return end("every 256 writes", 256), end("every write", 1)


def _availability() -> tuple[End, End]:
    def end(label: str, share: float) -> End:
        def measured(script: Script) -> None:
            for place in range(BLOCKS // 2):
                script.write(script.below(BLOCKS))
                if place % 64 == 0:
                    script.sync()

        return _end(label, _filled("availability"), measured, workload__utilization=share)

    return end("a disk of 320 MiB", 0.8), end("a disk of 1 GiB", 0.25)


AXES: tuple[Axis, ...] = (
    Axis("write_order", "order of writes", "4.2.1.1", "disk_seconds", _write_order),
    Axis(
        "write_locality",
        "locality of writes, to scattered blocks",
        "4.2.1.2",
        "disk_seconds",
        lambda: _write_locality(scattered=True),
    ),
    Axis(
        "write_region",
        "locality of writes, to one region",
        "4.2.1.2",
        "disk_seconds",
        lambda: _write_locality(scattered=False),
    ),
    Axis("read_order", "order of reads", "4.2.2.1", "disk_seconds", _read_order),
    Axis(
        "read_as_written",
        "reads as written or by file",
        "4.2.2.1",
        "disk_seconds",
        _read_as_written,
    ),
    Axis("read_locality", "locality of reads", "4.2.2.2", "disk_seconds", _read_locality),
    Axis(
        "read_share",
        "share of reads, against the other family",
        "4.2.3.1",
        "ratio_to_others",
        _read_share,
    ),
    Axis(
        "interleaving", "interleaving of reads and writes", "4.2.3.2", "disk_seconds", _interleaving
    ),
    Axis(
        "shared_locality",
        "reads and writes of the same files",
        "4.2.3.2",
        "disk_seconds",
        _shared_locality,
    ),
    Axis("rate", "rate: response with idle time and without", "4.2.4", "mean_response_ms", _rate),
    Axis("size", "size of files", "4.2.5", "disk_seconds", _size),
    Axis("utilization", "utilization of the disk", "4.2.6", "disk_seconds", _utilization),
    Axis("lifetime", "lifetime of data", "4.2.7", "disk_seconds", _lifetime),
    Axis("commit", "frequency of commit", "4.2.8", "disk_seconds", _commit),
    Axis(
        "availability", "recovery by size of the disk", "4.2.9", "recovery_seconds", _availability
    ),
)
