"""What file systems are asked for: every load follows from its name and numbers alone.

A load fills a file system to a share of the room that `df` says it has when it is new, goes on for
a while so that it is used, and then works in rounds, each of which is recorded and timed.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from agewell.errors import RunError

BLOCK_BYTES = 4096
PIECE_BYTES = 1 << 20
BALLAST_BYTES = 8 << 20
"""Of the files that fill the rest of a disk; chosen by us."""


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """A file by its descriptor."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Make a file, or the names in a directory, durable."""
    with opened(path, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


def draws(seed: int) -> random.Random:
    """Numbers that are the same every time."""
    return random.Random(seed)  # noqa: S311 (no secret)


class Load(ABC):
    """A load on one file system.

    Attributes:
        point: Where it is mounted.
        room_bytes: What `df` said when it was new.
        percent: To which share of that it is filled.
        scale: Work of a round, 1 for that of the study.
        refused: Writes for which there was no room so far.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, point: Path, room_bytes: int, percent: float, scale: float = 1) -> None:
        self.point = point
        self.room_bytes = room_bytes
        self.percent = percent
        self.scale = scale
        self.refused = 0
        self.content = draws(2).randbytes(2 * PIECE_BYTES)

    @classmethod
    def missing(cls) -> str:
        """Why it cannot be had here; empty if it can."""
        return ""

    @abstractmethod
    def prepare(self) -> None:
        """Fill the file system, and use it until it is no longer new."""

    @abstractmethod
    def work(self, number: int) -> None:
        """One round."""

    def scaled(self, count: int) -> int:
        """A count of the study at this scale."""
        return max(1, round(count * self.scale))

    def available_bytes(self) -> int:
        """Bytes that `df` says are to be had."""
        found = os.statvfs(self.point)
        return found.f_bavail * found.f_frsize

    def left_bytes(self) -> int:
        """Bytes until it is as full as it is to be; below 0 beyond that."""
        return self.available_bytes() - int(self.room_bytes * (1 - self.percent / 100))

    def write(self, path: Path, length: int, start: int = 0) -> None:
        """Make or replace a file of this length, bytes."""
        with opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            while length > 0:
                at = start % PIECE_BYTES
                length -= os.write(
                    file, memoryview(self.content)[at : at + min(length, PIECE_BYTES)]
                )

    def fill_rest(self) -> None:
        """Files that nobody touches again, until it is as full as it is to be."""
        folder = self.point / "ballast"
        folder.mkdir()
        for number in range(1 << 20):
            # What `df` says is not exact before all is on the device.
            if number % 8 == 0:
                sync_all(folder)
            left = self.left_bytes()
            if left < BLOCK_BYTES * 16:
                return
            self.write(folder / f"{number:05d}", min(left, BALLAST_BYTES) // 2, number)


def sync_all(path: Path) -> None:
    """Make everything durable on the file system of `path`."""
    subprocess.run(["sync", "-f", path], check=False, capture_output=True)
    # A file system whose mount does not hear of that hears of this.
    sync(path)


class RandomUpdates(Load):
    """Files that fill the disk, of which blocks are written over at random."""

    name = "random"
    title = "random updates"
    FILES = 8
    SYNC_EVERY = 32
    UPDATES = 8_192
    """Of a round."""
    BEFORE = 1.0
    """Updates before the first round, for each block."""

    def __init__(self, point: Path, room_bytes: int, percent: float, scale: float = 1) -> None:
        super().__init__(point, room_bytes, percent, scale)
        self.files = [point / f"file-{number}" for number in range(self.FILES)]
        self.blocks = int(room_bytes * percent / 100) // self.FILES // BLOCK_BYTES
        self.draw = draws(1)

    def prepare(self) -> None:
        """Write the files, and over as many blocks as they have."""
        for path in self.files:
            self.write(path, self.blocks * BLOCK_BYTES)
            sync(path)
        self._update(int(self.blocks * self.FILES * self.BEFORE * min(self.scale, 1)))

    def work(self, number: int) -> None:  # noqa: ARG002 (rounds are alike)
        """Updates, a sync behind each 32 of them."""
        self._update(self.scaled(self.UPDATES))

    def _update(self, count: int) -> None:
        for _ in range(count // self.SYNC_EVERY):
            chosen = self.draw.randrange(self.FILES)
            with opened(self.files[chosen], os.O_WRONLY) as file:
                for _ in range(self.SYNC_EVERY):
                    block, at = self.draw.randrange(self.blocks), self.draw.randrange(PIECE_BYTES)
                    page = memoryview(self.content)[at : at + BLOCK_BYTES]
                    self.note(chosen, block)
                    try:
                        os.pwrite(file, page, block * BLOCK_BYTES)
                    except OSError:
                        self.refused += 1
                try:
                    os.fsync(file)
                except OSError:
                    self.refused += self.SYNC_EVERY

    def note(self, file: int, block: int) -> None:
        """Called at each update."""


class Mail(Load):
    """A mail server's directories, as `examples/record/mail_server.py`, without its pauses."""

    name = "mail"
    title = "mail"
    MAILBOXES = 160
    ZIPF_EXPONENT = 0.9
    MEDIAN_BYTES = 3000
    SIGMA = 1.2
    LEAST_BYTES, MOST_BYTES = 300, 200_000
    OPERATIONS: ClassVar[dict[str, int]] = {"deliver": 40, "poll": 25, "read": 25, "delete": 10}
    RECORD_BYTES = 64
    COUNT = 2_000
    """Operations of a round."""
    BEFORE = 20_000
    """Operations before the first round, without syncs."""

    def __init__(self, point: Path, room_bytes: int, percent: float, scale: float = 1) -> None:
        super().__init__(point, room_bytes, percent, scale)
        self.draw = draws(3)
        self.spool = point / "spool"
        self.weights = [1 / (rank + 1) ** self.ZIPF_EXPONENT for rank in range(self.MAILBOXES)]
        self.new: list[list[str]] = [[] for _ in range(self.MAILBOXES)]
        self.seen: list[list[str]] = [[] for _ in range(self.MAILBOXES)]
        self.delivered = 0
        self.held = 0
        """Messages that are there when it is as full as it is to be; 0 until it is."""

    def prepare(self) -> None:
        """Deliver until it is as full as it is to be, then serve without syncs."""
        self.spool.mkdir()
        for number in range(self.MAILBOXES):
            for part in ("tmp", "new", "cur"):
                (self._box(number) / part).mkdir(parents=True)
            (self._box(number) / "index").touch()
        sync_all(self.point)
        while self.left_bytes() > BLOCK_BYTES * 16:
            # By the mean size of a message, so as to come close and not beyond.
            for _ in range(max(1, min(400, self.left_bytes() // 20_000))):
                self._deliver(self._drawn(), is_durable=False)
            for _ in range(100):
                self._poll(self._drawn())
            sync_all(self.point)
        self.held = self._messages()
        for _ in range(self.scaled(self.BEFORE)):
            self._operation(is_durable=False)
        sync_all(self.point)

    def work(self, number: int) -> None:  # noqa: ARG002 (rounds are alike)
        """Deliver, poll, read and remove."""
        for _ in range(self.scaled(self.COUNT)):
            self._operation(is_durable=True)

    def _operation(self, *, is_durable: bool) -> None:
        (what,) = self.draw.choices([*self.OPERATIONS], [*self.OPERATIONS.values()])
        number = self._drawn()
        try:
            match what:
                case "deliver":
                    # As many are removed as come, the oldest of a mailbox first.
                    if self._messages() >= self.held:
                        self._remove(number, 0)
                    self._deliver(number, is_durable=is_durable)
                case "poll":
                    self._poll(number)
                case "read":
                    self._read(number)
                case _:
                    self._remove(number, self.draw.random())
        except OSError:
            self.refused += 1

    def _messages(self) -> int:
        return sum(map(len, self.new)) + sum(map(len, self.seen))

    def _drawn(self) -> int:
        return self.draw.choices(range(self.MAILBOXES), self.weights)[0]

    def _box(self, number: int) -> Path:
        # Popularity is not in the order of creation.
        scattered = number * 67 % self.MAILBOXES
        return self.spool / f"{scattered % 16:02d}" / f"user{scattered:03d}"

    def _deliver(self, number: int, *, is_durable: bool) -> None:
        box = self._box(number)
        self.delivered += 1
        name = f"{self.delivered:012d}"
        drawn = int(self.MEDIAN_BYTES * self.draw.lognormvariate(0, self.SIGMA))
        length = min(self.MOST_BYTES, max(self.LEAST_BYTES, drawn))
        at = self.draw.randrange(PIECE_BYTES)
        with opened(box / "tmp" / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
            os.write(file, memoryview(self.content)[at : at + length])
            if is_durable:
                os.fsync(file)
        (box / "tmp" / name).rename(box / "new" / name)
        self.new[number].append(name)
        if is_durable:
            sync(box / "new")
        with opened(box / "index", os.O_WRONLY | os.O_APPEND) as file:
            os.write(file, name.encode().ljust(self.RECORD_BYTES))
            if is_durable:
                os.fdatasync(file)

    def _poll(self, number: int) -> None:
        box = self._box(number)
        with opened(box / "index", os.O_RDONLY) as file:
            length = os.lseek(file, 0, os.SEEK_END)
            os.pread(file, 64 * self.RECORD_BYTES, max(0, length - 64 * self.RECORD_BYTES))
        waiting = self.new[number]
        for name in waiting[-5:]:
            (box / "new" / name).read_bytes()
            (box / "new" / name).rename(box / "cur" / f"{name}:2,S")
            self.seen[number].append(f"{name}:2,S")
        del waiting[-5:]

    def _read(self, number: int) -> None:
        seen = self.seen[number]
        if seen:
            # Recent ones more often.
            name = seen[int(len(seen) * self.draw.random() ** 0.4)]
            (self._box(number) / "cur" / name).read_bytes()

    def _remove(self, number: int, place: float) -> None:
        for part, names in (("cur", self.seen[number]), ("new", self.new[number])):
            if names:
                (self._box(number) / part / names.pop(int(len(names) * place))).unlink()
                return


class Database(Load):
    """What pgbench has a PostgreSQL server ask for, without the server: a log, pages, checkpoints.

    Each transaction changes three pages of a table and one of two small ones, adds to a log that is
    synced, whole pages for the first change after a checkpoint, and a checkpoint writes and syncs
    what was changed.
    """

    name = "database"
    title = "database commits, as of pgbench"
    PAGE_BYTES = 8192
    SMALL_PAGES = 32
    LOG_BYTES = 16 << 20
    LOGS = 3
    CHANGED = 3
    COUNT = 1_500
    """Transactions of a round."""
    CHECKPOINT_EVERY = 500
    BEFORE = 6_000

    def __init__(self, point: Path, room_bytes: int, percent: float, scale: float = 1) -> None:
        super().__init__(point, room_bytes, percent, scale)
        self.draw = draws(4)
        logs = self.LOGS * self.LOG_BYTES + self.SMALL_PAGES * self.PAGE_BYTES
        self.pages = (int(room_bytes * percent / 100) - logs) // self.PAGE_BYTES
        self.table, self.small = point / "table", point / "small"
        self.logs = [point / f"log-{number}" for number in range(self.LOGS)]
        self.changed: set[tuple[Path, int]] = set()
        self.logged = 0
        self.transactions = 0

    def prepare(self) -> None:
        """Write table and logs, and commit for a while."""
        self.write(self.small, self.SMALL_PAGES * self.PAGE_BYTES)
        for path in self.logs:
            self.write(path, self.LOG_BYTES)
            sync(path)
        self.write(self.table, self.pages * self.PAGE_BYTES)
        sync_all(self.point)
        for _ in range(self.scaled(self.BEFORE)):
            self._transaction(is_durable=self.transactions % 32 == 0)

    def work(self, number: int) -> None:  # noqa: ARG002 (rounds are alike)
        """Commits, and a checkpoint."""
        for _ in range(self.scaled(self.COUNT)):
            self._transaction(is_durable=True)
        self._checkpoint()

    def _transaction(self, *, is_durable: bool) -> None:
        self.transactions += 1
        pages = [(self.table, self.draw.randrange(self.pages)) for _ in range(self.CHANGED)]
        pages.append((self.small, self.draw.randrange(self.SMALL_PAGES)))
        length = 256
        for page in pages:
            if page not in self.changed:
                self.changed.add(page)
                length += self.PAGE_BYTES
        # The log is written in whole pages, the last one again with what comes next.
        start = self.logged // self.PAGE_BYTES * self.PAGE_BYTES
        self.logged += length
        end = -(-self.logged // self.PAGE_BYTES) * self.PAGE_BYTES
        for at in range(start, end, self.PAGE_BYTES):
            path = self.logs[at // self.LOG_BYTES % self.LOGS]
            with opened(path, os.O_WRONLY) as file:
                self._put(file, at % self.LOG_BYTES)
                if is_durable and at + self.PAGE_BYTES >= end:
                    self._synced(file)
        if self.transactions % self.CHECKPOINT_EVERY == 0:
            self._checkpoint()

    def _checkpoint(self) -> None:
        for path in (self.table, self.small):
            with opened(path, os.O_WRONLY) as file:
                for page in sorted(page for of, page in self.changed if of == path):
                    self._put(file, page * self.PAGE_BYTES)
                self._synced(file)
        self.changed.clear()

    def _put(self, file: int, offset: int) -> None:
        at = self.draw.randrange(PIECE_BYTES)
        try:
            os.pwrite(file, memoryview(self.content)[at : at + self.PAGE_BYTES], offset)
        except OSError:
            self.refused += 1

    def _synced(self, file: int) -> None:
        try:
            os.fdatasync(file)
        except OSError:
            self.refused += 1


def in_order_of_names(point: Path) -> list[Path]:
    """Every file below, directory by directory, in the order of names."""
    found = []
    for folder, folders, names in os.walk(point):
        folders.sort()
        found += [Path(folder, name) for name in sorted(names)]
    return found


def in_order_written(point: Path) -> list[Path]:
    """Every file below, by when it was written last."""
    return sorted(in_order_of_names(point), key=lambda path: path.lstat().st_mtime_ns)


def read(paths: list[Path]) -> int:
    """Read files whole, one after another; their bytes."""
    read_bytes = 0
    for path in paths:
        with opened(path, os.O_RDONLY | os.O_NOFOLLOW) as file:
            while piece := os.read(file, PIECE_BYTES // 8):
                read_bytes += len(piece)
    if read_bytes == 0:
        raise RunError("nothing was read: the load has left no file")
    return read_bytes
