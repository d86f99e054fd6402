"""PostgreSQL under pgbench: the TPC-B load at changing rates.

The database (scale 50, about 750 MB) is many times the memory that the server gets (control group limit), so that
reads reach the device; `fsync` is on. Rates are those a disk of the 1990s could follow on average, with peaks it could
not, and pauses.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import harness
from harness import RecordError
from workload import Session, Workload

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


class Pgbench(Workload):
    """See the module."""

    name = "pgbench"
    description = f"PostgreSQL pgbench, TPC-B-like, scale {SCALE}, {CLIENTS} clients, rate by phase"
    size_bytes = 1228 << 20
    memory_limit_bytes = 128 << 20
    tools: tuple[str, ...] = ("postgres", "setpriv")

    def __init__(self) -> None:
        self.server_running = False

    def versions(self) -> dict[str, str]:
        return {
            "PostgreSQL": harness.run([str(self.program("postgres")), "--version"])
            .split(None, 2)[2]
            .strip()
        }

    @staticmethod
    def program(name: str) -> Path:
        """A program of the server's installation, of which only `postgres` need be on the path."""
        postgres = shutil.which("postgres")
        if postgres is None:
            raise RecordError("the program postgres is not installed, and this recording needs it")
        found = Path(postgres).resolve().parent / name
        if not found.exists():
            raise RecordError(f"{found} is missing; install the package that holds {name}")
        return found

    @staticmethod
    def account() -> str:
        """The server refuses to run as root."""
        passwd = Path("/etc/passwd").read_text()
        return "postgres" if "\npostgres:" in passwd else "nobody"

    def command(self, name: str, *arguments: str) -> list[str]:
        """A program of the installation, run as the server's user."""
        drop = ["setpriv", "--reuid", self.account(), "--regid", "nogroup", "--clear-groups"]
        return [*drop, str(self.program(name)), *arguments]

    def client(self, session: Session, *arguments: str) -> list[str]:
        """pgbench against our server."""
        return self.command(
            "pgbench", "-h", str(session.scratch), "-U", "bench", *arguments, "bench"
        )

    def prepare(self, session: Session) -> None:
        data = session.mount / "data"
        for directory in (data, session.scratch):
            directory.mkdir(exist_ok=True)
            shutil.chown(directory, self.account(), "nogroup")
        data.chmod(0o700)
        harness.run(
            self.command(
                "initdb",
                "-D",
                str(data),
                "-U",
                "bench",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
            )
        )
        settings = {**SETTINGS, "unix_socket_directories": f"'{session.scratch}'"}
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{name} = {value}\n" for name, value in settings.items())
        self.start(session)
        harness.run(self.command("createdb", "-h", str(session.scratch), "-U", "bench", "bench"))
        harness.run(self.client(session, "-i", "-q", "-s", str(SCALE)))
        self.stop(session)
        self.start(session)

    def start(self, session: Session) -> None:
        """Start the server inside the memory limit and wait until it answers."""
        arguments = [
            "-D",
            str(session.mount / "data"),
            "-l",
            str(session.scratch / "server.log"),
            "-w",
            "start",
        ]
        with open(os.devnull, "wb") as nothing:
            # pg_ctl leaves the server in a session of its own, so that it outlives this child.
            harness.run_child(self.command("pg_ctl", *arguments), session.group, stdout=nothing)
        self.server_running = True

    def stop(self, session: Session) -> None:
        """Stop the server and wait until it has."""
        harness.run(
            self.command("pg_ctl", "-D", str(session.mount / "data"), "-m", "fast", "-w", "stop")
        )
        self.server_running = False

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

    def finish(self, session: Session) -> None:
        if self.server_running:
            self.server_running = False
            harness.run(
                self.command(
                    "pg_ctl", "-D", str(session.mount / "data"), "-m", "immediate", "-w", "stop"
                )
            )
