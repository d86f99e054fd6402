"""What writes cost on a drive, measured on its model: the prices at which ours is mounted.

Ours learns what its device takes. Here its device is memory, and its requests are replayed on
drives afterwards; so it is given what the transfers of a log take on the disk of the study: of
groups that end in a flush, the time that one more transfer brings, elsewhere or in the same
segment.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agewell.studies.file_systems.loads import draws
from agewell.studies.file_systems.rounds import DISK, IMAGE_BYTES, replay

GROUPS = 400
"""Of each measurement; chosen by us: its mean moves by 2 % from seed to seed."""
SEGMENT_SECTORS = 2048
BLOCK_SECTORS = 8
FEW, MANY = 4, 32
"""Transfers of groups: the price of one more is the slope between them."""

GAPS_BLOCKS = (0, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48)
"""Between syncs that are tried; half a turn of the disk of the study has 150."""
MARGIN = 1.25
"""By which the gap is longer than the shortest that saves the turn; chosen by us: one that is too
short costs a turn, one that is too long the blocks that are passed."""

_WRITE, _FLUSH = 1, 3


def _seconds(places: list[list[tuple[int, int]]]) -> float:
    """What groups of writes, each followed by a flush, take on the disk of the study."""
    sectors, lengths, operations, times, now = [], [], [], [], 0
    for group in places:
        sectors += [place[0] for place in group] + [0]
        lengths += [place[1] for place in group] + [0]
        operations += [_WRITE] * len(group) + [_FLUSH]
        # The writes are made together, the flush when they are done, and the next group behind it.
        times += [(now, now + 1)] * len(group) + [(now + 2, now + 3)]
        now += 5
    made = np.array(times, np.uint64)
    rows = len(times)
    described = {"schema_version": 1, "format": "parquet"}
    table = pa.table(
        {
            "enqueue_ns": pa.array(made[:, 0]),
            "start_ns": pa.array(made[:, 0]),
            "finish_ns": pa.array(made[:, 1]),
            "device": pa.array(np.zeros(rows, np.uint32)),
            "sector": pa.array(np.array(sectors, np.uint64)),
            "sectors": pa.array(np.array(lengths, np.uint32)),
            "operation": pa.array(np.array(operations, np.uint8)),
            "flags": pa.array(np.zeros(rows, np.uint16)),
            "client": pa.array(np.zeros(rows, np.uint32)),
        }
    ).replace_schema_metadata(
        {
            "agewell.kind": "block",
            "agewell.schema_version": "1",
            "agewell.metadata": json.dumps(described),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "groups.parquet")
        pq.write_table(table, trace)
        found = replay(trace, IMAGE_BYTES // 512, DISK)
    return float(found["seconds"]) / len(places)


@functools.cache
def measured() -> tuple[int, int, int]:
    """Of a transfer elsewhere and of one to the same segment, microseconds; megabytes a second."""
    draw = draws(5)
    segments = IMAGE_BYTES // 512 // SEGMENT_SECTORS

    def elsewhere(count: int) -> list[tuple[int, int]]:
        chosen = draw.sample(range(segments), count)
        return [
            (segment * SEGMENT_SECTORS + draw.randrange(256) * BLOCK_SECTORS, BLOCK_SECTORS)
            for segment in chosen
        ]

    def within(count: int) -> list[tuple[int, int]]:
        first = draw.randrange(segments) * SEGMENT_SECTORS
        # No two touch: such would be one.
        chosen = draw.sample(range(0, 256, 2), count)
        return [(first + block * BLOCK_SECTORS, BLOCK_SECTORS) for block in chosen]

    def price_us(group: object) -> int:
        few, many = (
            _seconds([group(count) for _ in range(GROUPS)])  # type: ignore[operator]
            for count in (FEW, MANY)
        )
        return round((many - few) / (MANY - FEW) * 1e6)

    whole = [[(number * SEGMENT_SECTORS, SEGMENT_SECTORS * 8)] for number in range(0, 400, 8)]
    parts = [[(first, length // 4)] for [(first, length)] in whole]
    bytes_between = (whole[0][0][1] - parts[0][0][1]) * 512
    rate = bytes_between / (_seconds(whole) - _seconds(parts))
    return price_us(elsewhere), price_us(within), round(rate / 1e6)


def mount_options() -> tuple[str, ...]:
    """What a mount is given so that it does as on the disk of the study."""
    prices = ":".join(map(str, measured()))
    delay_us, turn_us = rotational_delay_us()
    return f"prices={prices}", f"rotdelay_us={delay_us}:{turn_us}"


@functools.cache
def rotational_delay_us() -> tuple[int, int]:
    """Time from the end of a sync to the next write that saves a turn, and what that saves."""

    def apart(gap_blocks: int) -> float:
        step = (1 + gap_blocks) * BLOCK_SECTORS
        return _seconds([[(number * step, BLOCK_SECTORS)] for number in range(GROUPS)])

    took = {gap: apart(gap) for gap in GAPS_BLOCKS}
    saves = [gap for gap in GAPS_BLOCKS if took[gap] < took[0] / 2]
    if not saves:
        return 0, 0
    _, _, megabytes = measured()
    delay_us = round(min(saves) * MARGIN * BLOCK_SECTORS * 512 / megabytes)
    return delay_us, round((took[0] - min(took.values())) * 1e6)
