"""What a mounted file system asks of its store, as a trace that the simulator reads.

Every block of the store is a file of one block in the trace, so that a block that is freed can be
deleted; one that is written again afterwards is another file. The blocks that were there before
are written first, in the order of their numbers; the part `updates` is what was seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell.filesystems import mounted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WRITE, READ, FREE, SYNC = 1, 2, 3, 4
"""What is asked of a store (`crates/fs/src/traced.rs`)."""

BLOCKS_MAX = 50_000_000
"""Blocks of a trace at most, chosen by us: it is made in memory, some 150 bytes a block."""

_PAUSE_SECONDS = 0.02
"""Between two looks when nothing waits; chosen by us."""

_TRACE_READ, _TRACE_WRITE, _TRACE_DELETE, _TRACE_SYNC, _TRACE_MARK = 3, 4, 6, 7, 8
"""Operations of canonical traces (`docs/reference/trace-formats.md`)."""

_MARK_NS = 1_000_000_000
"""When what was seen begins: everything before happens at once."""

_EXPERIMENT = """\
# What {point} asked of its store, on a log like that. The device is a simple one; the drives of
# the catalogue are named by `[device] file`.

[workload]
kind = "file-trace"
path = "{trace}"
part = "updates"
utilization = {utilization:.6f}    # {segments} segments, as the store has

[host]
flush_interval = "0 s"             # written when the file system asks for it
buffer_size = "{buffer_bytes} B"
client_cache = "0 B"
server_cache = "0 B"

[layout]
kind = "lfs"
segment_size = "{segment_bytes} B"
block_size = "{block_bytes} B"
{placement}
collect = "{collect}"
record_blocks = 1                  # the store's inline record
threads_ahead = 40                 # as the store announces them
atomic_syncs = true
batch_segments = 1                 # its collector cleans a victim at a time
reserve_segments = {reserve:<2}              # what the store keeps, and what it makes ahead

[device]
kind = "simple"
seek_time = "8 ms"
rotation_time = "8 ms"
bandwidth = "200 MB/s"

[run]
lower_bound = false
seed = 1
"""


_BEHIND_NEW_DATA = 'victim = "greedy"'
_BY_LIFETIME = """\
victim = "renewal"
placement = "collected-life-table" # what is collected, by how long it is expected to live
logs = {logs}"""


@dataclass(frozen=True, slots=True)
class Load:
    """What was asked of a store.

    Attributes:
        begun: How the store is divided, as it said when the trace began.
        held: Numbers of the blocks that there were then.
        requests: In their order: `time_ns`, `asked`, `first` and `count`.
        lost: Requests that came while too many waited to be fetched.
        write_amplification: Blocks written over new blocks in this time, as the store counted
            them; none if nothing was written.
        collect: By what room was made, as experiments name it.
        collected_logs: Logs that what is collected is divided among; 0: it goes behind new data.
    """

    begun: dict[str, Any]
    held: npt.NDArray[np.uint32]
    requests: npt.NDArray[np.void]
    lost: int
    write_amplification: float | None
    collect: str
    collected_logs: int

    def blocks(self) -> int:
        """Blocks that were asked for, one by one."""
        return int(self.requests["count"].sum())


def record(point: Path, seconds: float, report: Callable[[float, str], None]) -> Load:
    """What the file system at `point` asks of its store from now on, for so long.

    Args:
        point: Where it is mounted; only root may ask.
        seconds: For how long. It ends early when [`BLOCKS_MAX`] blocks were asked for, or when the
            user interrupts it.
        report: Called with the share that is done and what was seen.

    Raises:
        InputError: There is no mounted file system of agewell, or one may not ask.
    """
    import numpy as np

    before = mounted.status(point)
    begun = mounted.begin_trace(point)
    held = np.flatnonzero(np.unpackbits(mounted.traced_from(point), bitorder="little"))
    pieces: list[npt.NDArray[np.void]] = []
    blocks = fetched = lost = 0
    begin = time.monotonic()
    try:
        while (gone := time.monotonic() - begin) < seconds and blocks < BLOCKS_MAX:
            some, lost = mounted.traced(point, fetched)
            pieces.append(some)
            fetched += len(some)
            blocks += int(some["count"].sum())
            report(gone / seconds, f"of the time; {blocks:,} blocks asked for")
            if not len(some):
                time.sleep(min(_PAUSE_SECONDS, seconds))
    except KeyboardInterrupt:
        pass
    # What was done and not asked of the store yet is part of it.
    directory = os.open(point, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    after = mounted.status(point)
    while len(some := mounted.traced(point, fetched)[0]):
        pieces.append(some)
        fetched += len(some)
    mounted.end_trace(point)
    requests = np.concatenate(pieces or [mounted.no_requests()])
    collect = _collect(after)
    return Load(
        begun,
        held.astype(np.uint32),
        requests,
        lost,
        _amplification(before, after),
        collect,
        int(before["collected_logs"]),
    )


def _amplification(before: dict[str, Any], after: dict[str, Any]) -> float | None:
    names = ("new_blocks", "cleaned_blocks", "plugged_blocks", "regrouped_blocks")
    now, then = after["since_mounted"], before["since_mounted"]
    new, *moved = (now[name] - then[name] for name in names)
    return (new + sum(moved)) / new if new else None


def _collect(status: dict[str, Any]) -> str:
    if status["mechanism_is"] != "as it was mounted":
        return "adaptive"
    name: str = status["mechanism"].removeprefix("Always(").removesuffix(")").lower()
    return name


def save(load: Load, point: Path, path: Path) -> Path:
    """Writes the trace, and an experiment beside it that runs it.

    Args:
        load: What was asked.
        point: Where it was mounted, for the experiment's first line.
        path: The trace's file, a Parquet file.

    Returns:
        The experiment's file.

    Raises:
        RunError: It cannot be written.
    """
    import numpy as np

    from agewell.files import made_traces, parquet_tables, write_whole

    times, operations, blocks = _rows(load)
    files, names = _files(operations, blocks)
    rows = len(operations)
    has_range = np.isin(operations, (_TRACE_READ, _TRACE_WRITE))
    lengths = np.full(rows, load.begun["block_bytes"], np.uint64)
    ranges = (has_range, np.zeros(rows, np.uint64), lengths)
    trace = made_traces.on_files(times, operations, files, names, ranges, "agewell-fs")
    parquet_tables.write(path, trace, compression="zstd")
    experiment = path.with_suffix(".toml")
    text = _experiment(load, point, path.name, _peak(operations, files))
    write_whole(experiment, lambda partial: partial.write_text(text, encoding="utf-8"))
    return experiment


def _rows(
    load: Load,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Time, operation and block of each row: the fill, the mark, and what was seen."""
    import numpy as np

    fill_blocks = load.begun["transaction_blocks"]
    held = load.held.astype(np.int64)
    # A sync behind each transaction's blocks.
    ends = np.arange(fill_blocks, len(held) + fill_blocks, fill_blocks).clip(max=len(held))
    fill = np.insert(np.full(len(held), _TRACE_WRITE), ends, _TRACE_SYNC)
    fill_block = np.insert(held, ends, 0)
    asked, count = load.requests["asked"].astype(np.int64), load.requests["count"].astype(np.int64)
    rows = np.maximum(count, 1)
    within = np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows, rows)
    codes = np.array([0, _TRACE_WRITE, _TRACE_READ, _TRACE_DELETE, _TRACE_SYNC])
    seen = np.repeat(codes[asked], rows)
    seen_block = np.repeat(load.requests["first"].astype(np.int64), rows) + within
    since = load.requests["time_ns"] - np.uint64(load.begun["time_ns"])
    # The first may have been noted before the time was asked for.
    since = np.where(since > np.uint64(1 << 63), np.uint64(0), since)
    seen_ns = np.maximum.accumulate(np.repeat(since, rows)) + np.uint64(_MARK_NS)
    times = np.concatenate(
        [np.zeros(len(fill), np.uint64), np.array([_MARK_NS], np.uint64), seen_ns]
    )
    operations = np.concatenate([fill, [_TRACE_MARK], seen])
    return times, operations, np.concatenate([fill_block, [0], seen_block])


def _files(
    operations: npt.NDArray[np.int64], blocks: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The number of the file of each row, and the paths of all."""
    import numpy as np

    is_block = np.isin(operations, (_TRACE_READ, _TRACE_WRITE, _TRACE_DELETE))
    rows = np.flatnonzero(is_block)
    order = rows[np.argsort(blocks[rows], kind="stable")]
    # Before each row of a block, how often it was freed: another file begins then.
    freed = np.cumsum(operations[order] == _TRACE_DELETE)
    before = freed - (operations[order] == _TRACE_DELETE)
    first = np.searchsorted(blocks[order], blocks[order], side="left")
    lives = before - (before[first] if len(order) else 0)
    keys, found = np.unique(blocks[order] * (1 << 24) + lives, return_inverse=True)
    files = np.zeros(len(operations), np.int64)
    files[order] = found + 2
    files[operations == _TRACE_MARK] = 1
    named = [f"block {key >> 24} {key & 0xFFFFFF}" for key in keys.tolist()]
    return files, ["all", "updates", *named]


def _peak(operations: npt.NDArray[np.int64], files: npt.NDArray[np.int64]) -> int:
    """The most blocks that there are at a time."""
    import numpy as np

    writes = np.flatnonzero(operations == _TRACE_WRITE)
    _, first = np.unique(files[writes], return_index=True)
    by = np.zeros(len(operations), np.int64)
    by[writes[first]] = 1
    by[operations == _TRACE_DELETE] = -1
    return int(np.cumsum(by).max(initial=1))


def _experiment(load: Load, point: Path, trace: str, peak: int) -> str:
    begun = load.begun
    segments, segment_blocks = begun["segments"], begun["segment_blocks"]
    logs = load.collected_logs
    return _EXPERIMENT.format(
        point=point,
        trace=trace,
        # The number of segments is rounded up; half a segment less is safe from rounding here.
        utilization=peak / ((segments - 0.5) * segment_blocks),
        segments=segments,
        buffer_bytes=begun["transaction_blocks"] * begun["block_bytes"],
        segment_bytes=segment_blocks * begun["block_bytes"],
        block_bytes=begun["block_bytes"],
        placement=_BY_LIFETIME.format(logs=logs) if logs else _BEHIND_NEW_DATA,
        collect=load.collect,
        # A store's engine keeps two, and its collector a quarter of what is kept from users.
        reserve=2 + begun["reserve_segments"] // 4,
    )
