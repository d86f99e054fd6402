"""A year of a mail server's files, as a workload for `agewell age`; no mail is needed.

    python examples/mail_history.py mail-history.parquet [--days N] [--seed N]

The server is that of `record/mail_server.py`: mailboxes by a Zipf law, a file a message, log-normal
sizes, and of each mailbox an index to which a delivery appends. Most messages are deleted, half of
these within two days. How many come a day, how many go and when are chosen by us. The same seed gives
the same bytes.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

from agewell.files import parquet_tables

sys.path.insert(0, str(Path(__file__).resolve().parent / "record"))
from mail_server import (
    INDEX_RECORD,
    MAILBOXES,
    SIZE_LIMIT_BYTES,
    SIZE_MEDIAN_BYTES,
    SIZE_SIGMA,
    ZIPF_EXPONENT,
)

CREATE, WRITE, DELETE, MAKE_DIRECTORY = 0, 1, 3, 4
"""Numbers of actions, as in docs/reference/aging-workloads.md."""

MESSAGES_A_DAY = 600
DELETED_SHARE = 0.6
LIFE_DAYS = 2.9
"""Mean of an exponential law: half of what is deleted is deleted within two days."""
DAY_NS = 86_400_000_000_000

COLUMNS = {
    "time_ns": pa.uint64(),
    "action": pa.uint8(),
    "file": pa.uint32(),
    "directory": pa.uint32(),
    "offset_bytes": pa.uint64(),
    "size_bytes": pa.uint64(),
    "stream": pa.uint16(),
}


def history(days: int, seed: int) -> list[tuple[int, ...]]:
    """The operations, in order of time; rows of `COLUMNS`."""
    draw = random.Random(seed)
    popularity = [1 / (rank + 1) ** ZIPF_EXPONENT for rank in range(MAILBOXES)]
    boxes = range(1, MAILBOXES + 1)
    rows: list[tuple[int, ...]] = []
    index_bytes = [0] * (MAILBOXES + 1)
    for box in boxes:
        rows.append((0, MAKE_DIRECTORY, box, 0, 0, 0, 0))
        rows.append((0, CREATE, box - 1, box, 0, 0, 0))
    deletions: list[tuple[int, int, int]] = []
    time_ns = 0.0
    message = MAILBOXES - 1
    for _ in range(days * MESSAGES_A_DAY):
        time_ns += draw.expovariate(MESSAGES_A_DAY / DAY_NS)
        now = int(time_ns)
        while deletions and deletions[0][0] <= now:
            when, file, box = heapq.heappop(deletions)
            rows.append((when, DELETE, file, box, 0, 0, 0))
        box = draw.choices(boxes, popularity)[0]
        message += 1
        drawn = draw.lognormvariate(math.log(SIZE_MEDIAN_BYTES), SIZE_SIGMA)
        size = min(SIZE_LIMIT_BYTES, max(300, int(drawn)))
        rows.append((now, CREATE, message, box, 0, 0, 0))
        rows.append((now, WRITE, message, box, 0, size, 0))
        rows.append((now, WRITE, box - 1, box, index_bytes[box], INDEX_RECORD.size, 0))
        index_bytes[box] += INDEX_RECORD.size
        if draw.random() < DELETED_SHARE:
            life_ns = draw.expovariate(1 / (LIFE_DAYS * DAY_NS))
            heapq.heappush(deletions, (now + int(life_ns), message, box))
    return rows


def facts(rows: list[tuple[int, ...]], days: int, seed: int) -> dict[str, object]:
    """What a workload file says of itself; a reader holds it against the operations."""
    names = {CREATE: "create", WRITE: "write", DELETE: "delete", MAKE_DIRECTORY: "make-directory"}
    actions = Counter(names[row[1]] for row in rows)
    sizes: dict[int, int] = {}
    live = peak_bytes = peak_files = written = 0
    for _, action, file, _, offset, size, _ in rows:
        if action == CREATE:
            sizes[file] = 0
        elif action == WRITE:
            live += max(0, offset + size - sizes[file])
            sizes[file] = max(sizes[file], offset + size)
            written += size
        elif action == DELETE:
            live -= sizes.pop(file)
        peak_bytes, peak_files = max(peak_bytes, live), max(peak_files, len(sizes))
    last_ns = rows[-1][0]
    return {
        "source": "mail-history",
        "seed": seed,
        "start_unix_s": None,
        "groups": None,
        "operations": len(rows),
        "actions": dict(sorted(actions.items())),
        "days": last_ns // DAY_NS + 1,
        "last_ns": last_ns,
        "written_bytes": written,
        "live_bytes": live,
        "peak_live_bytes": peak_bytes,
        "live_files": len(sizes),
        "peak_live_files": peak_files,
        "live_directories": MAILBOXES + 1,
        "file_numbers": 1 + max(row[2] for row in rows if row[1] == CREATE),
        "directories": MAILBOXES + 1,
        "streams": 1,
        "parameters": {
            "days": days,
            "messages_a_day": MESSAGES_A_DAY,
            "deleted_share": DELETED_SHARE,
            "life_days": LIFE_DAYS,
        },
        "notes": {},
    }


def main() -> None:
    """Write the workload that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rows = history(asked.days, asked.seed)
    schema = pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in COLUMNS.items()],
        {
            "agewell.kind": "workload",
            "agewell.schema_version": "1",
            "agewell.metadata": json.dumps(facts(rows, asked.days, asked.seed)),
        },
    )
    columns = zip(zip(*rows, strict=True), COLUMNS.values(), strict=True)
    arrays = [pa.array(column, kind) for column, kind in columns]
    parquet_tables.write(asked.out, pa.table(arrays, schema=schema), compression="zstd")


if __name__ == "__main__":
    main()
