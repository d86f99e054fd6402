"""A mail server of many small files, driven by `mail_server.py` (maildir delivery, reading, flags, expiry).

312 MiB, so that the trace fits even the 335 MB HP C2200A.
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import harness
from workload import Session, Workload

SERVER = Path(__file__).with_name("mail_server.py")
# (name, operations per second, seconds); rate 0 is a pause with emptied caches. Chosen by us.
PHASES = (
    ("morning", 6, 240),
    ("pause", 0, 45),
    ("busy", 10, 300),
    ("quiet", 2, 120),
    ("pause", 0, 60),
    ("busy", 10, 180),
    ("expiry", 6, 120),
    ("quiet", 2, 90),
)


class Mail(Workload):
    """See the module."""

    name = "mail"
    description = "mail server of many small files: maildir delivery, polling, reading, flags, expiry, append-only indexes"
    size_bytes = 312 << 20
    memory_limit_bytes = 48 << 20

    def versions(self) -> dict[str, str]:
        return {"Python": platform.python_version()}

    def prepare(self, session: Session) -> None:
        harness.run_child(self.command(session, "fill"), session.group)

    @staticmethod
    def command(session: Session, *arguments: str) -> list[str]:
        """The server's command line."""
        return [sys.executable, str(SERVER), str(session.mount / "spool"), *arguments]

    def run(self, session: Session) -> None:
        for number, (name, rate, seconds) in enumerate(PHASES):
            if rate == 0:
                session.drop_caches()
                session.idle(seconds)
                continue
            session.phase(f"{name}, {rate} operations/s")
            arguments = [
                "--rate",
                str(rate),
                "--seconds",
                str(seconds * session.time_scale),
                "--seed",
                str(number + 1),
            ]
            verb = "expire" if name == "expiry" else "serve"
            harness.run_child(self.command(session, verb, *arguments), session.group)
