"""A PostgreSQL server on the recorded file system: a database cluster of its own, set up, started and stopped.

The server runs as its own user inside the memory limit; only `postgres` need be on the path, its other programs are
looked for beside it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import harness
from harness import RecordError
from workload import Session, Workload


class PostgresWorkload(Workload):
    """A workload of a PostgreSQL server.

    Attributes:
        settings: lines of `postgresql.conf`, beside where the server listens.
        directories: what the server needs below the mount point, beside its data.
    """

    settings: ClassVar[Mapping[str, str]]
    directories: ClassVar[Sequence[str]] = ()

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

    def set_up(self, session: Session) -> None:
        """Make a cluster with the settings, start its server, and make the database `bench` in it."""
        data = session.mount / "data"
        own = [data, *(session.mount / name for name in self.directories)]
        for directory in (*own, session.scratch):
            directory.mkdir(exist_ok=True)
            shutil.chown(directory, self.account(), "nogroup")
        for directory in own:
            directory.chmod(0o700)
        options = ["-U", "bench", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        harness.run(self.command("initdb", "-D", str(data), *options))
        settings = {**self.settings, "unix_socket_directories": f"'{session.scratch}'"}
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{name} = {value}\n" for name, value in settings.items())
        self.start(session)
        harness.run(self.command("createdb", "-h", str(session.scratch), "-U", "bench", "bench"))

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

    def finish(self, session: Session) -> None:
        if self.server_running:
            self.server_running = False
            harness.run(
                self.command(
                    "pg_ctl", "-D", str(session.mount / "data"), "-m", "immediate", "-w", "stop"
                )
            )
