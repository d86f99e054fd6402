"""What a recorded workload is, and the session it runs in."""

from __future__ import annotations

import abc
import dataclasses
import time
from pathlib import Path

import harness


@dataclasses.dataclass
class Session:
    """Where a workload runs and what it leaves behind.

    Attributes:
        mount: the file system under the trace; everything the workload stores belongs here.
        scratch: a directory outside it, removed afterwards, for sockets, logs and downloads.
        out: where results go.
        group: `cgroup.procs` of the memory limit.
        facts: what the recorded files say about themselves.
        time_scale: factor on every phase's length; 1 records for about twenty minutes.
        phases: name and start of every phase so far, in nanoseconds of CLOCK_MONOTONIC.
    """

    mount: Path
    scratch: Path
    out: Path
    group: Path
    facts: dict[str, str]
    time_scale: float
    phases: list[tuple[str, int]] = dataclasses.field(default_factory=list)

    def phase(self, name: str) -> None:
        """Mark the start of a phase."""
        harness.say(f"phase: {name}")
        self.phases.append((name, time.clock_gettime_ns(time.CLOCK_MONOTONIC)))

    def idle(self, seconds: float) -> None:
        """A phase in which nothing is asked of the file system."""
        self.phase("idle")
        time.sleep(seconds * self.time_scale)

    def drop_caches(self) -> None:
        """Write out everything and empty the workload's caches, as a phase of its own."""
        self.phase("drop caches")
        harness.empty_caches(self.group)


class Workload(abc.ABC):
    """One recordable workload."""

    name: str
    description: str
    size_bytes: int
    memory_limit_bytes: int
    tools: tuple[str, ...] = ()

    @abc.abstractmethod
    def versions(self) -> dict[str, str]:
        """Versions of the programs that matter, by name."""

    @abc.abstractmethod
    def prepare(self, session: Session) -> None:
        """Fill the file system; not traced."""

    @abc.abstractmethod
    def run(self, session: Session) -> None:
        """Do the work; traced."""

    def inspect(self, session: Session) -> None:
        """Note the state of the file system after the trace has ended."""

    def finish(self, session: Session) -> None:
        """Stop whatever `prepare` or `run` left running; called in every case."""
