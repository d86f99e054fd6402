"""PostgreSQL under pgbench: the TPC-B load at changing rates.

The database (scale 50, about 750 MB) is many times the memory that the server gets (control group limit), so that
reads reach the device; `fsync` is on. Rates are those a disk of the 1990s could follow on average, with peaks it could
not, and pauses.
"""

from __future__ import annotations

import time

import harness
from postgres import PostgresWorkload
from workload import Session

SCALE = 50
CLIENTS = 8
# (name, transactions per second, seconds); rate 0 is a pause. Chosen by us.
PHASES = (
    ("quiet", 4, 120),
    ("busy", 10, 240),
    ("pause", 0, 60),
    ("peak", 18, 90),
    ("quiet", 4, 120),
    ("pause", 0, 45),
    ("busy", 10, 240),
    ("peak", 18, 60),
    ("pause", 0, 60),
    ("quiet", 4, 120),
)
SETTINGS = {
    "shared_buffers": "32MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_wal_size": "160MB",
    "min_wal_size": "64MB",
    "checkpoint_timeout": "3min",
    "checkpoint_completion_target": "0.9",
    "listen_addresses": "''",
    "max_connections": "20",
    "huge_pages": "off",
}


class Pgbench(PostgresWorkload):
    """See the module."""

    name = "pgbench"
    description = f"PostgreSQL pgbench, TPC-B-like, scale {SCALE}, {CLIENTS} clients, rate by phase"
    size_bytes = 1228 << 20
    memory_limit_bytes = 128 << 20
    tools = ("postgres", "setpriv")
    settings = SETTINGS

    def client(self, session: Session, *arguments: str) -> list[str]:
        """pgbench against our server."""
        return self.command(
            "pgbench", "-h", str(session.scratch), "-U", "bench", *arguments, "bench"
        )

    def prepare(self, session: Session) -> None:
        self.set_up(session)
        harness.run(self.client(session, "-i", "-q", "-s", str(SCALE)))
        # Recorded with a server that has just begun.
        self.stop(session)
        self.start(session)

    def run(self, session: Session) -> None:
        for number, (name, rate, seconds) in enumerate(PHASES):
            if rate == 0:
                session.drop_caches()
                session.idle(seconds)
                continue
            session.phase(f"{name}, {rate} transactions/s")
            length = max(1, round(seconds * session.time_scale))
            arguments = [
                "-n",
                "-c",
                str(CLIENTS),
                "-R",
                str(rate),
                "-T",
                str(length),
                f"--random-seed={number + 1}",
            ]
            harness.run(self.client(session, *arguments))
            time.sleep(1)
        session.phase("checkpoint and stop")
        self.stop(session)
