"""The same long random sequence of system calls on two file systems, everything compared.

    python tests/against_ext4.py DIRECTORY OTHER --seeds 20 --operations 5000

What ext4 does is taken to be right. Compared are what each call returns, or its error; whose times
a call changes; and from time to time, and at the end, everything that there is: types, modes,
owners, links, sizes, contents, holes where both have them, attributes, access control lists,
listings, times that were set, and what is open without a name.

Not drawn is what the kernel does not tell a file system in user space, or does by itself: writing
to fifos, `chown` to nobody else, collapsing and inserting ranges. And what ext4 is no judge of:
sizes of directories, which zeros are holes, attributes of more than its inodes hold.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from same_calls import BLOCK, KEEP, PUNCH, SLOTS, WHO, ZERO, Call, Found, Process

AT_ONCE = 32
"""Calls that are drawn from the same names."""

COMPARED_EVERY = 512
"""Calls between two comparisons of everything."""

LOOKED_AT = 0.01
"""Share of calls of which it is looked whose times they change; it takes a tick of the clock."""

RENAME_WHITEOUT = 0x4

NAMES_MAX = 160
"""Names from which on more is removed than made."""

_NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "s", "t"]
_LONG = "l" * 255
_ATTRIBUTES = ["user.one", "user.two", "user." + "n" * 250, "trusted.t", "security.s", "user.x"]
LISTS = ["system.posix_acl_access", "system.posix_acl_default"]
Entry = tuple[int, int, int]
"""Of an access control list: whom it is of, the rights, and the number of the user or group."""

NOBODY = 0xFFFFFFFF
"""The number of what has none."""

_CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)
"""`cap_net_bind_service+ep` as `security.capability` holds it (`linux/capability.h`)."""


class DifferenceError(Exception):
    """Two file systems do not do the same.

    Attributes:
        call: What they do not do the same.
        calls: All calls up to there.
    """

    def __init__(self, number: int, call: Call, what: str) -> None:
        super().__init__(f"{number}: {shortened(call)}\n{what}")
        self.call = call
        self.calls: list[Call] = []


def access_list(draw: random.Random) -> list[Entry]:
    """The entries of an access control list that the kernel takes."""

    def named(tag: int, numbers: list[int]) -> list[Entry]:
        some = draw.sample(numbers, draw.randrange(3))
        return [(tag, draw.randrange(8), number) for number in some]

    users, groups = named(2, [0, 7, 1001, 1002]), named(8, [7, 1001, 2001])
    has_mask = bool(users or groups) or draw.random() < 0.2
    owner, group, mask, other = ((tag, draw.randrange(8), NOBODY) for tag in (1, 4, 0x10, 0x20))
    return [owner, *users, group, *groups, *([mask] if has_mask else []), other]


def packed(entries: list[Entry]) -> bytes:
    """The list as the value of an attribute (`linux/posix_acl_xattr.h`)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def wrong_lists(entries: list[Entry]) -> dict[str, bytes]:
    """What the kernel does not take, by what is wrong: `entries`, each with one mistake."""
    owner, *rest = entries
    masked = [entry for entry in rest if entry[0] != 0x10]
    masked.insert(-1, (0x10, 7, NOBODY))
    unmasked = [entry for entry in masked if entry[0] != 0x10]
    lists = {
        "without the owner": rest,
        "without the group": [entry for entry in entries if entry[0] != 4],
        "without others": entries[:-1],
        "without a mask": [owner, (2, 7, 1001), *unmasked],
        "two owners": [owner, *entries],
        "two masks": [owner, *masked[:-1], *masked[-2:]],
        "of nobody": [owner, (2, 7, NOBODY), *masked],
        "of no group": [owner, *masked[:-2], (8, 7, NOBODY), *masked[-2:]],
        "out of order": entries[::-1],
        "a right that there is not": [(1, 8, NOBODY), *rest],
        "a tag that there is not": [*entries[:-1], (0x40, 7, NOBODY)],
    }
    whole = packed(entries)
    cut = {"half an entry": whole[:-4], "half a version": whole[:3], "nothing": b""}
    version = {"another version": struct.pack("<I", 1) + whole[4:]}
    return {what: packed(wrong) for what, wrong in lists.items()} | cut | version


def list_value(draw: random.Random) -> bytes:
    """A list; sometimes one without entries, which takes the list away, or a wrong one."""
    entries, kind = access_list(draw), draw.random()
    if kind < 0.2:
        return draw.choice(list(wrong_lists(entries).values()))
    return packed([] if kind < 0.25 else entries)


@dataclass
class Drawing:
    """Calls by chance, of what there is."""

    draw: random.Random
    folders: list[str] = field(default_factory=lambda: ["/"])
    files: list[str] = field(default_factory=list)

    def path(self) -> str:
        """A path: most often of something that is there."""
        draw = self.draw
        kind = draw.random()
        if kind < 0.5 and self.files:
            return draw.choice(self.files)
        if kind < 0.6:
            return draw.choice(self.folders)
        if kind < 0.95:
            return self.new()
        return self.odd()

    def new(self) -> str:
        """A path in a directory that is there."""
        folder = self.draw.choice(self.folders)
        return f"{folder.rstrip('/')}/{self.draw.choice(_NAMES)}"

    def odd(self) -> str:
        """A path that is unusual or wrong."""
        draw = self.draw
        some = draw.choice(self.files or ["/a"])
        folder = draw.choice(self.folders).rstrip("/")
        deep = "/".join(["/a"] * 30)
        return draw.choice(
            [
                *("", "/", ".", "..", folder + "/.", folder + "/..", some + "/", some + "/x"),
                *(f"{folder}/{_LONG}", f"{folder}/{_LONG}x", "/" + "x/" * 2100, folder + "/nope/x"),
                *("/other", "/other/a", "/other/a", folder + "/../" + draw.choice(_NAMES), deep),
            ]
        )

    def slot(self) -> int:
        return self.draw.randrange(SLOTS)

    def at(self) -> int | None:
        """Where a path begins."""
        return self.slot() if self.draw.random() < 0.05 else None

    def relative(self, at: int | None, path: str) -> str:
        """The path, of one name if it begins at what is open."""
        return path if at is None else path.rsplit("/", 1)[-1]

    def offset(self) -> int:
        draw = self.draw
        return draw.choice(
            [
                0,
                draw.randrange(3000),
                draw.randrange(64) * BLOCK,
                draw.randrange(300_000),
                draw.randrange(16) * BLOCK + draw.choice([-1, 1, 2048]),
                (1 << draw.randrange(20, 38)) + draw.randrange(10_000),
            ]
        )

    def length(self) -> int:
        draw = self.draw
        whole = draw.randrange(1, 40) * BLOCK
        return draw.choice([draw.randrange(100), draw.randrange(9000), whole, whole, 1, 90_000])

    def when(self) -> tuple[int, int] | None:
        """Times of access and change long ago, or none: now."""
        draw = self.draw
        if draw.random() < 0.2:
            return None
        some = [draw.randrange(-(10**17), 15 * 10**17) for _ in range(2)]
        return some[0], some[1]

    def mode(self) -> int:
        return self.draw.choice([0o777, 0o755, 0o644, 0o600, 0o2775, 0o6755, 0o1777, 0o070, 0])

    def call(self) -> Call:
        """Any call."""
        who = self.draw.choices(range(len(WHO)), [6, 3, 1])[0]
        mask = self.draw.choice([0, 0o022, 0o027])
        crowded = len(self.files) + len(self.folders) > NAMES_MAX
        kinds = [self.making, self.data, self.removing, self.attribute, self.looking]
        weights = [1, 4, 4, 3, 2] if crowded else [4, 6, 2, 3, 2]
        return (who, mask, *self.draw.choices(kinds, weights)[0]())

    def some(self) -> list[Call]:
        """Calls of the same names; of some it is looked whose times they change."""
        calls: list[Call] = []
        while len(calls) < AT_ONCE:
            call = self.call()
            # A rename that leaves a whiteout and fails changes times on ext4.
            leaves = call[2] == "rename" and call[-1] & RENAME_WHITEOUT
            looks = self.draw.random() < LOOKED_AT and not leaves
            calls += [(0, 0, "look"), call, (0, 0, "changed")] if looks else [call]
        return calls

    def making(self) -> Call:
        draw, at = self.draw, self.at()
        path = self.relative(at, self.new() if draw.random() < 0.8 else self.path())
        flags = draw.choice([os.O_RDWR, os.O_RDWR, os.O_WRONLY, os.O_RDONLY]) | os.O_CREAT
        for flag in (os.O_EXCL, os.O_TRUNC, os.O_APPEND):
            flags |= flag if draw.random() < 0.2 else 0
        device = draw.choice([0, 0, os.makedev(1, 3), os.makedev(1, 5)])
        types = [stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK, 0]
        target = draw.choice([self.path(), draw.choice(_NAMES), "t" * 4095, "loop", "x" * 100])
        folder = draw.choice(self.folders)
        unnamed = os.O_TMPFILE | draw.choice([os.O_RDWR, os.O_WRONLY, os.O_RDONLY])
        unnamed |= os.O_EXCL if draw.random() < 0.1 else 0
        return draw.choices(
            [
                ("open", self.slot(), at, path, flags, self.mode()),
                ("mkdir", at, path, self.mode() | 0o500),
                ("mknod", at, path, draw.choice(types) | self.mode(), device),
                ("symlink", at, target, path),
                ("link", at, self.relative(at, self.path()), self.new(), draw.random() < 0.3),
                ("flink", self.slot(), self.new()),
                ("open", self.slot(), None, folder, unnamed, self.mode()),
                ("rename", at, self.relative(at, self.path()), self.new(), self.rename_flags()),
            ],
            [8, 4, 2, 2, 2, 1, 1, 3],
        )[0]

    def rename_flags(self) -> int:
        return self.draw.choice([0, 0, 0, 1, 2, 4, 3, 5, 6])

    def data(self) -> Call:
        draw, slot = self.draw, self.slot()
        seed, offset, length = draw.randrange(1 << 30), self.offset(), self.length()
        modes = [0, KEEP, PUNCH | KEEP, PUNCH | KEEP, ZERO, ZERO | KEEP, PUNCH]
        sizes = [0, 0, draw.randrange(3000), self.offset(), BLOCK * draw.randrange(20), -1]
        access = draw.choice([os.O_RDWR, os.O_RDWR, os.O_RDONLY, os.O_WRONLY])
        access |= draw.choice([0, 0, 0, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW])
        source = draw.choice([0, draw.randrange(20) * BLOCK, self.offset()])
        target = draw.choice([0, draw.randrange(20) * BLOCK, self.offset()])
        return draw.choices(
            [
                ("open", slot, None, self.path(), access, 0),
                ("pwrite", slot, offset, seed, length),
                ("write", slot, seed, length),
                ("pread", slot, offset, length),
                ("read", slot, length),
                ("lseek", slot, offset, draw.choice([0, 1, 2, os.SEEK_DATA, os.SEEK_HOLE])),
                ("ftruncate", slot, draw.choice(sizes)),
                ("truncate", self.path(), draw.choice(sizes)),
                ("fallocate", slot, draw.choice(modes), draw.choice([offset, 0, source]), length),
                ("copy_file_range", slot, self.slot(), length * 2, source, target),
                ("sendfile", slot, self.slot(), source, length),
                ("mapwrite", slot, offset, seed, length),
                ("fsync", slot),
                ("close", slot),
            ],
            [6, 8, 4, 2, 1, 3, 2, 2, 6, 5, 1, 3, 1, 1],
        )[0]

    def removing(self) -> Call:
        draw, at = self.draw, self.at()
        folder = draw.choice(self.folders)
        return draw.choices(
            [
                ("unlink", at, self.relative(at, self.path())),
                ("rmdir", at, self.relative(at, folder if draw.random() < 0.8 else self.path())),
                ("rename", None, self.path(), self.path(), self.rename_flags()),
            ],
            [4, 2, 2],
        )[0]

    def attribute(self) -> Call:
        draw, path, slot = self.draw, self.path(), self.slot()
        follow = draw.random() < 0.7
        user, group = draw.choice([-1, 0, 1001, 1002]), draw.choice([0, 1001, 2001])
        name = draw.choice(_ATTRIBUTES)
        value = os.urandom(0) if draw.random() < 0.2 else bytes([draw.randrange(256)]) * 40
        if draw.random() < 0.3:
            name, value = draw.choice(LISTS), list_value(draw)
        elif draw.random() < 0.1:
            name, value = "security.capability", _CAPABILITY
        elif draw.random() < 0.05:
            name, value = draw.choice(
                [("user." + "n" * 251, b""), ("strange.x", b""), ("user", b""), ("user.", b"")]
            )
        must = draw.choice([0, 0, 1, 2])
        return draw.choices(
            [
                ("chmod", path, self.mode()),
                ("fchmod", slot, self.mode()),
                ("chown", path, user, group, follow),
                ("fchown", slot, user, group),
                ("utime", path, self.when(), follow),
                ("setxattr", path, name, value, must, follow),
                ("fsetxattr", slot, name, value, must),
                ("getxattr", path, name, follow),
                ("listxattr", path, follow),
                ("removexattr", path, name, follow),
            ],
            [3, 1, 3, 1, 4, 5, 1, 1, 1, 2],
        )[0]

    def looking(self) -> Call:
        draw, at = self.draw, self.at()
        path = self.path()
        return draw.choices(
            [
                ("stat", at, self.relative(at, path), draw.random() < 0.5),
                ("fstat", self.slot()),
                ("fcontent", self.slot()),
                ("access", path, draw.randrange(8)),
                ("listdir", draw.choice(self.folders)),
                ("listing", self.slot()),
                ("readlink", path),
            ],
        )[0]


@contextmanager
def directories(points: list[Path], number: int) -> Iterator[list[Path]]:
    """A new directory of each."""
    roots = [point / f"run {number}" for point in points]
    try:
        for root in roots:
            root.mkdir()
            root.chmod(0o755)
            (root / "other").mkdir()
        yield roots
    finally:
        for root in roots:
            shutil.rmtree(root)


@contextmanager
def processes(roots: list[Path]) -> Iterator[list[Process]]:
    """A process in each directory, with another file system in it."""
    started: list[Process] = []
    try:
        for root in roots:
            options = "size=4m,mode=1777"
            tmpfs = ["mount", "-t", "tmpfs", "-o", options, "none", str(root / "other")]
            subprocess.run(tmpfs, check=True)
            started.append(Process(root))
        yield started
    finally:
        for process in started:
            process.end()
        for root in roots:
            subprocess.run(["umount", root / "other"], check=False)


def on_both(both: list[Process], calls: list[Call]) -> list[tuple[Found, Found]]:
    """What came of each call on either."""
    for process in both:
        process.ask(calls)
    ours, theirs = (process.answers() for process in both)
    return list(zip(ours, theirs, strict=True))


def compare(calls: list[Call], results: list[tuple[Found, Found]], first: int) -> None:
    """Raises DifferenceError at the first call that did not do the same on both."""
    for number, (call, (ours, theirs)) in enumerate(zip(calls, results, strict=True), first):
        if ours != theirs:
            raise DifferenceError(number, call, differences(ours, theirs))


def shortened(call: Call) -> str:
    """The call, without its longest words."""
    return repr(
        tuple(f"{one[:40]}..." if isinstance(one, str) and len(one) > 60 else one for one in call)
    )


def differences(ours: Found, theirs: Found) -> str:
    """What differs, of a table of paths only that which does."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        paths = [path for path in {**ours, **theirs} if ours.get(path) != theirs.get(path)]
        lines = [f"{path}:\n  {ours.get(path)}\n  {theirs.get(path)}" for path in sorted(paths)[:5]]
        return "\n".join(lines)
    return f"  here   {ours!r}\n  there  {theirs!r}"


TREE: Call = (0, 0, "tree")


def replay(points: list[Path], number: int, calls: list[Call]) -> list[Found]:
    """Carries `calls` out; what came of each on both. DifferenceError if not all is the same."""
    found: list[Found] = []
    with directories(points, number) as roots, processes(roots) as both:
        for first in range(0, len(calls), AT_ONCE):
            some = calls[first : first + AT_ONCE]
            results = on_both(both, some)
            compare(some, results, first)
            found += [ours for ours, _ in results]
        compare([TREE], on_both(both, [TREE]), len(calls))
    return found


def run(
    points: list[Path],
    number: int,
    seed: int,
    count: int,
    remount: Callable[[], None] | None = None,
) -> None:
    """Draws `count` calls and carries them out; then all is compared again, after `remount`.

    Raises DifferenceError, with all calls, if not all is the same.
    """
    drawing = Drawing(random.Random(seed))  # noqa: S311 (no secret)
    done: list[Call] = []
    with directories(points, number) as roots:
        try:
            with processes(roots) as both:
                while len(done) < count:
                    calls = drawing.some()
                    done += calls
                    results = on_both(both, [*calls, (0, 0, "names")])
                    compare(calls, results[:-1], len(done) - len(calls))
                    drawing.folders, drawing.files = results[-1][1]
                    if len(done) % COMPARED_EVERY < AT_ONCE:
                        compare([TREE], on_both(both, [TREE]), len(done))
                compare([TREE], on_both(both, [TREE]), len(done))
            if remount is not None:
                remount()
                with processes(roots) as both:
                    compare([TREE], on_both(both, [TREE]), len(done))
        except DifferenceError as error:
            error.calls = done
            raise


def fewest(points: list[Path], numbers: Iterator[int], found: DifferenceError) -> DifferenceError:
    """The same difference after fewer calls: ever shorter runs of them are left out."""
    calls = found.calls
    length = len(calls) // 2
    while length > 0:
        at = 0
        while at < len(calls):
            fewer = calls[:at] + calls[at + length :]
            try:
                replay(points, next(numbers), fewer)
            except DifferenceError as error:
                if error.call[2] == found.call[2]:
                    found, calls = error, fewer
                    found.calls = fewer
                    continue
            at += length
        length //= 2
    return found


def main() -> int:
    """Runs seeds, and says of the first that differs which calls it takes."""
    parser = argparse.ArgumentParser(description="the same calls on two file systems")
    parser.add_argument("directory", type=Path)
    parser.add_argument("other", type=Path, help="on ext4, mounted with noatime")
    parser.add_argument("--first", type=int, default=1, help="seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--operations", type=int, default=3000)
    given = parser.parse_args()
    points, numbers = [given.directory, given.other], itertools.count(os.getpid() * 100_000)
    for seed in range(given.first, given.first + given.seeds):
        try:
            run(points, next(numbers), seed, given.operations)
        except DifferenceError as error:
            print(f"seed {seed}: {error}")
            least = fewest(points, numbers, error)
            print("fewest:", *map(shortened, least.calls), least, sep="\n  ")
            return 1
        print(f"seed {seed}: {given.operations} calls, no difference", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
