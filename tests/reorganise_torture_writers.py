"""Programs that write while files are moved, and what their files may hold then.

Each writer is a process of its own with files of its own. It notes each operation in a journal
outside of the file system, before it and after it. From the journal follows what a file holds;
after a failure of power, what it may hold: for every byte what it was when the file was last made
durable, or what any operation since has made of it.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import fcntl
import hashlib
import mmap
import os
import pickle
import random
import signal
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from reorganise_torture_tree import (
    BLOCK_BYTES,
    FICLONE,
    KEEP_SIZE,
    PUNCH_HOLE,
    WRITTEN,
    ZERO_RANGE,
    Record,
    digest,
    fallocate,
    opened,
)

SIZE_MAX = 250_000
"""Files of writers are cut when they are longer, bytes: all versions are kept in memory."""

DOWN = {errno.EIO, errno.EROFS, errno.ESHUTDOWN, errno.ENODEV}
"""What is said by a file system that was shut down."""

Operation = tuple[str, int, bytes]
"""What is done, from where, and with what."""


@dataclass
class Noted:
    """A line of a journal: an operation begins, is done, has failed; or a file was made durable."""

    event: str
    name: bytes
    operation: Operation = ("", 0, b"")


class Journal:
    """Lines of one writer, outside of what is reorganised."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, event: str, name: bytes, operation: Operation = ("", 0, b"")) -> None:
        line = pickle.dumps(Noted(event, name, operation))
        os.write(self.descriptor, struct.pack("I", len(line)) + line)


def read_journal(path: Path) -> Iterator[tuple[int, Noted]]:
    """The lines of a journal, each with where it ends."""
    data = path.read_bytes()
    at = 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("I", data, at)
        if at + 4 + length > len(data):
            break
        line = pickle.loads(data[at + 4 : at + 4 + length])  # noqa: S301 (ours)
        at += 4 + length
        yield at, line


def applied(now: bytes | None, operation: Operation) -> bytes | None:
    """What a file holds after an operation."""
    what, at, data = operation
    if what == "unlink":
        return None
    if what == "replace":
        return data
    held = bytearray(now or b"")
    if what == "append":
        at, what = len(held), "write"
    if what == "write":
        held.extend(bytes(max(0, at - len(held))))
        held[at : at + len(data)] = data
    elif what == "truncate":
        held.extend(bytes(max(0, at - len(held))))
        del held[at:]
    elif what == "zero":
        end = min(len(held), at + len(data))
        held[at:end] = bytes(max(0, end - at))
    return bytes(held)


@dataclass
class May:
    """What a file may hold: the last is what it does hold if nothing failed."""

    versions: list[bytes | None]
    certain: bool = True
    whole: bool = False
    """Whether it is one of the versions, not a mixture."""

    def note(self, line: Noted) -> None:
        if line.event == "begin":
            self.versions.append(applied(self.versions[-1], line.operation))
            self.certain = False
            self.whole = line.operation[0] in {"replace", "unlink"}
        elif line.event == "end":
            self.certain = True
        elif line.event == "durable":
            del self.versions[:-1]
        elif line.event == "found":
            # It failed; the writer has looked at what came of it.
            self.versions.append(line.operation[2])
            self.certain = True

    def wrong(self, found: bytes | None, *, crashed: bool) -> str:
        """Why it cannot hold that; nothing if it can."""
        if found == self.versions[-1] or (not self.certain and found in self.versions[-2:]):
            return ""
        if self.certain and not crashed:
            return _difference(found, self.versions[-1])
        return mixture_wrong(
            found, self.versions if crashed else self.versions[-2:], whole=self.whole
        )


def _difference(found: bytes | None, wanted: bytes | None) -> str:
    if found is None or wanted is None:
        return f"is {'absent' if found is None else 'there'}"
    wrong = [at for at in range(min(len(found), len(wanted))) if found[at] != wanted[at]]
    sizes = f"{len(found)} bytes, not {len(wanted)}" if len(found) != len(wanted) else ""
    return f"{sizes} {len(wrong)} bytes from {wrong[:1]} on differ".strip()


def mixture_wrong(found: bytes | None, versions: list[bytes | None], *, whole: bool) -> str:
    """Why `found` is no mixture of `versions`; nothing if it is one."""
    if found in versions:
        return ""
    if found is None:
        return "is absent"
    held = [version for version in versions if version is not None]
    if whole or not held:
        return f"is none of {len(versions)} versions"
    shortest, longest = min(map(len, held)), max(map(len, held))
    if not shortest <= len(found) <= longest:
        return f"has {len(found)} bytes, not {shortest} to {longest}"
    for at in range(0, len(found), 512):
        part = found[at : at + 512]
        options = [version[at : at + 512] for version in held]
        if part in options:
            continue
        for offset, byte in enumerate(part):
            known = [option[offset] for option in options if offset < len(option)]
            if byte not in known and not (byte == 0 and len(known) < len(options)):
                return f"byte {at + offset} is of none of {len(held)} versions"
    return ""


@dataclass
class Writer:
    """A process that writes files of its own."""

    sort: str
    root: Path
    names: list[bytes]
    journal_path: Path
    seed: int
    begun: dict[bytes, bytes | None] = field(default_factory=dict)
    process: int = 0

    def start(self, before: Record) -> None:
        """Begin; the parent goes on at once."""
        self.begun = {name: _read(self.root, name) for name in self.names}
        self.journal_path.touch()
        self.process = os.fork()
        if self.process == 0:
            code = 1
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                # A mapped page that there is no room for ends it, which is no fault of anyone.
                faulthandler.disable()
                _SORTS[self.sort](_At(self, random.Random(self.seed), before))  # noqa: S311
                code = 0
            except OSError as why:
                code = 0 if why.errno in DOWN else 1
                if code:
                    print(f"writer {self.sort}: {why}", flush=True)
            finally:
                os._exit(code)

    def place(self) -> int:
        """How long the journal is now."""
        return self.journal_path.stat().st_size

    def stop(self) -> str:
        """End it; what it found wrong, if anything."""
        if not self.process:
            return ""
        os.kill(self.process, signal.SIGTERM)
        _, status = os.waitpid(self.process, 0)
        self.process = 0
        # A mapped page that there is no room or no file system for ends a program with SIGBUS.
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGTERM, signal.SIGBUS}:
            return ""
        lines = read_journal(self.journal_path)
        said = [line.operation[2] for _, line in lines if line.event == "wrong"]
        if said:
            return f"while it was moved, {self.sort} found: {said[0]!r}"
        return "" if status == 0 else f"the writer {self.sort} ended with {status}"

    def may_hold(
        self, durable_place: int | None = None, last_place: int | None = None
    ) -> dict[bytes, May]:
        """What each file may hold, where only what was durable at `durable_place` is certain."""
        may = {name: May([content]) for name, content in self.begun.items()}
        for place, line in read_journal(self.journal_path):
            if line.name not in may:
                continue
            if durable_place is None or place <= durable_place:
                may[line.name].note(line)
            elif line.event in {"begin", "found"}:
                # Begun by then, for all that is known: a line may have been begun before it ended.
                may[line.name].note(line)
                may[line.name].certain = False
            if last_place is not None and place > last_place:
                break
        return may

    def wrong(
        self,
        root: Path,
        *,
        crashed: bool,
        durable_place: int | None = None,
        last_place: int | None = None,
    ) -> list[str]:
        """What its files hold and must not."""
        faults = []
        for name, may in self.may_hold(durable_place, last_place).items():
            why = may.wrong(_read(root, name), crashed=crashed)
            if why:
                faults.append(f"{self.sort} wrote {name!r}: {why}")
        return faults


def _read(root: Path, name: bytes) -> bytes | None:
    try:
        with opened(os.fsencode(root) + b"/" + name, os.O_RDONLY | os.O_NOATIME) as descriptor:
            return os.pread(descriptor, 1 << 30, 0)
    except FileNotFoundError:
        return None


class _At:
    """What a writer works with, in its own process."""

    def __init__(self, writer: Writer, draw: random.Random, before: Record) -> None:
        self.draw = draw
        self.before = before
        self.base = os.fsencode(writer.root) + b"/"
        self.names = writer.names
        self.journal = Journal(writer.journal_path)
        self.holds = dict(writer.begun)

    def rest(self) -> None:
        time.sleep(self.draw.random() ** 3 * 0.02)

    def wrong(self, words: str) -> None:
        self.journal.note("wrong", b"", ("", 0, words.encode()))
        os._exit(3)

    def do(
        self, name: bytes, operation: Operation, call: Callable[[], object], descriptor: int
    ) -> None:
        """One operation, noted; what it leaves is read back at times."""
        before = self.holds[name]
        after = applied(before, operation)
        self.journal.note("begin", name, operation)
        try:
            call()
        except OSError as why:
            if why.errno in DOWN:
                raise
            found = os.pread(descriptor, 1 << 30, 0)
            faults = mixture_wrong(found, [before, after], whole=False)
            # Where a file was not cut to the end it may hold zeros; what it holds is looked at.
            if faults and operation[0] == "write":
                self.wrong(f"{operation[0]} of {name!r} failed with {why.errno}, and it {faults}")
            self.journal.note("found", name, ("", 0, found))
            self.holds[name] = found
            return
        self.journal.note("end", name)
        self.holds[name] = after
        if self.draw.random() < 0.3:
            found = os.pread(descriptor, 1 << 30, 0)
            if found != after:
                self.wrong(f"after {operation[0]} {name!r}: {_difference(found, after)}")

    def sync(self, name: bytes, descriptor: int, chance: float = 0.25) -> None:
        if self.draw.random() < chance:
            self.make_durable(name, lambda: os.fsync(descriptor))

    def make_durable(self, name: bytes, call: Callable[[], object]) -> None:
        """What `name` holds is durable from now on, if the call does not fail."""
        try:
            call()
        except OSError as why:
            if why.errno in DOWN:
                raise
            return
        self.journal.note("durable", name)

    @contextlib.contextmanager
    def some(self, flags: int = 0) -> Iterator[tuple[bytes, int, int]]:
        """A file, its descriptor and its size."""
        name = self.draw.choice(self.names)
        with opened(self.base + name, os.O_RDWR | flags) as descriptor:
            yield name, descriptor, len(self.holds[name] or b"")


def _all(descriptor: int, data: bytes | mmap.mmap, at: int) -> None:
    """All of it or an error."""
    if os.pwrite(descriptor, data, at) != len(data):
        raise OSError(errno.ENOSPC, "a part was written")


def _overwrite(at: _At) -> None:
    while True:
        with at.some() as (name, descriptor, size):
            where = at.draw.randrange(size + 1)
            data = at.draw.randbytes(at.draw.randrange(1, min(20000, SIZE_MAX - where)))
            at.do(name, ("write", where, data), partial(_all, descriptor, data, where), descriptor)
            at.sync(name, descriptor)
        at.rest()


def _append(at: _At) -> None:
    while True:
        with at.some() as (name, descriptor, found):
            size = found
            if size > SIZE_MAX:
                cut = partial(os.ftruncate, descriptor, size // 3)
                at.do(name, ("truncate", size // 3, b""), cut, descriptor)
                size = len(at.holds[name] or b"")
            data = at.draw.randbytes(at.draw.randrange(1, 9000))
            at.do(name, ("append", 0, data), partial(_all, descriptor, data, size), descriptor)
            at.sync(name, descriptor)
        at.rest()


def _cut(at: _At) -> None:
    while True:
        with at.some() as (name, descriptor, size):
            choice = at.draw.random()
            where = at.draw.randrange(size + 1)
            if choice < 0.4 or size > SIZE_MAX:
                to = at.draw.choice((where, where // 2, size + at.draw.randrange(30000)))
                at.do(
                    name, ("truncate", to, b""), partial(os.ftruncate, descriptor, to), descriptor
                )
            elif choice < 0.7:
                length = at.draw.randrange(1, 40000)
                mode = at.draw.choice((PUNCH_HOLE, ZERO_RANGE)) | KEEP_SIZE
                at.do(
                    name,
                    ("zero", where, bytes(length)),
                    partial(fallocate, descriptor, mode, where, length),
                    descriptor,
                )
            else:
                data = at.draw.randbytes(at.draw.randrange(1, 20000))
                at.do(
                    name, ("write", where, data), partial(_all, descriptor, data, where), descriptor
                )
            at.sync(name, descriptor)
        at.rest()


def _mapped(at: _At) -> None:
    while True:
        with at.some() as (name, descriptor, size):
            if size == 0:
                at.rest()
                continue
            with mmap.mmap(descriptor, size) as memory:
                for _ in range(at.draw.randrange(1, 6)):
                    where = at.draw.randrange(size)
                    data = at.draw.randbytes(min(size - where, at.draw.randrange(1, 6000)))

                    def put(m: mmap.mmap = memory, w: int = where, b: bytes = data) -> None:
                        m[w : w + len(b)] = b

                    at.do(name, ("write", where, data), put, descriptor)
                    at.rest()
                if at.draw.random() < 0.3:
                    at.make_durable(name, memory.flush)
        at.rest()


def _direct(at: _At) -> None:
    with mmap.mmap(-1, 16 * BLOCK_BYTES) as memory:
        while True:
            with (
                at.some(os.O_DIRECT) as (name, direct, size),
                opened(at.base + name, os.O_RDONLY) as reads,
            ):
                where = at.draw.randrange(size // BLOCK_BYTES + 1) * BLOCK_BYTES
                data = at.draw.randbytes(BLOCK_BYTES * at.draw.randrange(1, 9))
                if where + len(data) > SIZE_MAX:
                    at.do(
                        name,
                        ("truncate", where // 2, b""),
                        partial(os.ftruncate, direct, where // 2),
                        reads,
                    )
                    continue
                memory[: len(data)] = data

                def put(d: int = direct, w: int = where, n: int = len(data)) -> None:
                    with memoryview(memory) as view, view[:n] as part:
                        if os.pwritev(d, [part], w) != n:
                            raise OSError(errno.ENOSPC, "a part was written")

                at.do(name, ("write", where, data), put, reads)
                at.sync(name, direct)
            at.rest()


def _replace(at: _At) -> None:
    while True:
        name = at.draw.choice(at.names)
        path = at.base + name
        folder = os.path.dirname(path)  # noqa: PTH120 (names are bytes)
        if at.holds[name] is not None and at.draw.random() < 0.2:
            at.journal.note("begin", name, ("unlink", 0, b""))
            os.unlink(path)  # noqa: PTH108
            at.holds[name] = None
            at.journal.note("end", name)
        else:
            data = at.draw.randbytes(at.draw.randrange(1, 60000))
            new = folder + b"/" + WRITTEN + b"new" + at.draw.randbytes(4).hex().encode()
            try:
                with opened(new, os.O_WRONLY | os.O_CREAT) as descriptor:
                    _all(descriptor, data, 0)
                    os.fsync(descriptor)
            except OSError as why:
                if why.errno in DOWN:
                    raise
                with contextlib.suppress(OSError):
                    os.unlink(new)  # noqa: PTH108
                at.rest()
                continue
            at.journal.note("begin", name, ("replace", 0, data))
            try:
                os.rename(new, path)  # noqa: PTH104
            except OSError as why:
                if why.errno in DOWN:
                    raise
                at.journal.note("found", name, ("", 0, at.holds[name]))  # type: ignore[arg-type]
                with contextlib.suppress(OSError):
                    os.unlink(new)  # noqa: PTH108
                continue
            at.holds[name] = data
            at.journal.note("end", name)
        if at.draw.random() < 0.2:
            with contextlib.suppress(OSError), opened(folder, os.O_RDONLY) as descriptor:
                os.fsync(descriptor)
                at.journal.note("durable", name)
        at.rest()


def _read_others(at: _At) -> None:
    """Reads what is moved, through the cache and around it."""
    wanted = [name for name, entry in at.before.items() if "content" in entry]
    while True:
        name = at.draw.choice(wanted)
        flags = os.O_RDONLY | os.O_NOATIME | os.O_NOFOLLOW
        size = at.before[name]["size"]
        if at.draw.random() < 0.5 and isinstance(size, int) and size:
            try:
                direct = os.open(at.base + name, flags | os.O_DIRECT)
            except OSError as why:
                if why.errno == errno.EINVAL:
                    continue
                raise
            with mmap.mmap(-1, size + BLOCK_BYTES - size % BLOCK_BYTES) as memory:
                try:
                    count = os.preadv(direct, [memory], 0)
                finally:
                    os.close(direct)
                found = hashlib.blake2b(memory[: min(count, size)], digest_size=16).hexdigest()
                if count < size:
                    continue
        else:
            with opened(at.base + name, flags) as descriptor:
                found = digest(descriptor)
        if found != at.before[name]["content"]:
            at.wrong(f"{name!r} read as something else")
        at.rest()


def _clone(at: _At) -> None:
    """Copies files that are moved by reference, and removes the copies."""
    wanted = [name for name, entry in at.before.items() if "content" in entry]
    number = 0
    while True:
        name = at.draw.choice(wanted)
        number += 1
        copy = at.base + WRITTEN + b"clone%d" % number
        try:
            with (
                opened(at.base + name, os.O_RDONLY | os.O_NOATIME) as source,
                opened(copy, os.O_RDWR | os.O_CREAT) as target,
            ):
                fcntl.ioctl(target, FICLONE, source)
                if digest(target) != at.before[name]["content"]:
                    at.wrong(f"a copy of {name!r} by reference is something else")
        except OSError as why:
            if why.errno in DOWN:
                raise
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy)  # noqa: PTH108
        at.rest()


_SORTS: dict[str, Callable[[_At], None]] = {
    "overwrite": _overwrite,
    "append": _append,
    "cut": _cut,
    "mapped": _mapped,
    "direct": _direct,
    "replace": _replace,
    "read": _read_others,
    "clone": _clone,
}

SORTS = tuple(_SORTS)
