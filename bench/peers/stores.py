"""The store beside redb, fjall and SQLite: durable transactions of 64 random blocks a second."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from peers.comparison import AbsentError, Row, row
from peers.host import REPOSITORY

OURS = "agewell-plug"
"""The one whose rate holds at every fill."""

PEERS = ("redb", "fjall", "sqlite")


def compare(work: Path, rounds: int) -> Iterator[Row]:
    """A row a store, 90 % full, on a file in this folder."""
    out = work / "stores.json"
    options = ["--stores", ",".join((OURS, *PEERS)), "--full", "90", "--clients", "1"]
    size = ["--gib", "0.06", "--rounds", str(max(rounds, 3)), "--seconds", "0.3"]
    command = [str(REPOSITORY / "bench" / "run-stores"), *options, *size, "--out", str(out)]
    environment = {**os.environ, "BENCH_STORES_DISK": str(work), "BENCH_STORES_MEMORY": ""}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise AbsentError(
            f"not built: {(done.stderr.strip() or 'it said nothing').splitlines()[-1]}"
        )
    document = json.loads(out.read_text())
    rows = {one["store"]: one for one in document["rows"]}
    for name in PEERS:
        # Stores take turns, so that their rounds are neighbours in time.
        pairs = list(
            zip(
                rows[OURS]["rounds_transactions_per_s"],
                rows[name]["rounds_transactions_per_s"],
                strict=True,
            )
        )
        version = document["versions"].get(name, "")
        yield row(f"stores/{name}", f"{name} {version}".strip(), "transactions/s", "more", pairs)
