"""System calls in a process of its own whose root is a directory, and what came of them.

What comes of a call is said so that it is the same on every file system that does the same: errors
by name, inodes by where they are met first, times only where somebody set them.
"""

# What is called here are the calls of the system.
# ruff: noqa: PTH101, PTH115, PTH116, PTH208
from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import pickle
import stat
import struct
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

BLOCK = 4096
SLOTS = 8
"""Files that are open at a time."""

WHO: list[tuple[int, int, list[int]]] = [(0, 0, []), (1001, 1001, [2001]), (1002, 1001, [])]
"""Who calls: user, group, and groups beside it."""

PUNCH, ZERO, KEEP = 0x2, 0x10, 0x1
"""`FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_ZERO_RANGE`, `FALLOC_FL_KEEP_SIZE` (`linux/falloc.h`)."""

_AT_EMPTY_PATH = 0x1000
_AT_FDCWD = -100

TICK_SECONDS = 0.012
"""The kernel's coarse clock goes on every 10 ms at least (`CONFIG_HZ` of 100)."""

Call = tuple[Any, ...]
"""Who calls, the mask of permissions, the name of the call, its arguments."""

Found = Any


def data(seed: int, length: int) -> bytes:
    """Bytes that differ from all others and from zeros."""
    piece = struct.pack("<I", seed | 0x01010101)
    return (piece * (length // 4 + 1))[:length]


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    long, text, number = ctypes.c_int64, ctypes.c_char_p, ctypes.c_int
    libc.fallocate.argtypes = [number, number, long, long]
    libc.renameat2.argtypes = [number, text, number, text, ctypes.c_uint]
    libc.linkat.argtypes = [number, text, number, text, number]
    return libc


class Caller:
    """Who carries calls out; the names of the methods are those of the calls."""

    def __init__(self) -> None:
        self.libc = _libc()
        self.slots: dict[int, int] = {}
        self.begun_ns = time.time_ns()
        self.before: dict[str, os.stat_result] = {}

    def carry_out(self, call: Call) -> Found:
        """What comes of it: a value, or the name of an error."""
        who, mask, name, *arguments = call
        user, group, groups = WHO[who]
        os.umask(mask)
        if user:
            os.setgroups(groups)
            os.setegid(group)
            os.seteuid(user)
        try:
            carry_out: Callable[..., Found] = getattr(self, name)
            return carry_out(*arguments)
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        finally:
            if user:
                os.seteuid(0)
                os.setegid(0)
                os.setgroups([])

    def stream(self, number: int) -> int:
        """What is open there, unless it is a pipe: what passes it is the kernel's.

        Of a file system in user space the kernel does not say that a fifo was written to.
        """
        descriptor = self.slot(number)
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise OSError(errno.EPIPE, "a pipe")
        return descriptor

    def slot(self, number: int) -> int:
        """What is open there."""
        if number not in self.slots:
            raise OSError(errno.EBADF, "nothing is open there")
        return self.slots[number]

    def place(self, at: int | None) -> int | None:
        """The directory that a path begins at."""
        return None if at is None else self.slot(at)

    def checked(self, result: int) -> int:
        """Raises OSError if a call of the C library failed."""
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    # --- what is shown ----------------------------------------------------------------------------

    def moment(self, when_ns: int) -> int | str:
        """A time that somebody set, or that it was set by what happened."""
        is_of_now = abs(when_ns - self.begun_ns) < 24 * 3600 * 10**9
        return "now" if is_of_now else when_ns

    def shown(self, status: os.stat_result) -> Found:
        """What `stat` must show; directories have sizes of their own."""
        is_directory = stat.S_ISDIR(status.st_mode)
        size = -1 if is_directory else status.st_size
        times = (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)
        owner = (status.st_uid, status.st_gid)
        device = status.st_rdev
        seen = [self.moment(when) for when in times]
        mode = status.st_mode
        return (oct(mode), status.st_nlink, *owner, size, device, *seen)

    def content(self, descriptor: int) -> Found:
        """The size, and a checksum of each block that is not all zeros."""
        size = os.fstat(descriptor).st_size
        found, at, position = [], 0, os.lseek(descriptor, 0, os.SEEK_CUR)
        while at < size:
            try:
                at = os.lseek(descriptor, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break
                raise
            end = os.lseek(descriptor, at, os.SEEK_HOLE)
            at -= at % BLOCK
            while at < end:
                piece = os.pread(descriptor, 64 * BLOCK, at)
                if not piece:
                    return ("shorter than it says", at, size)
                for start in range(0, len(piece), BLOCK):
                    block = piece[start : start + BLOCK]
                    if block.count(0) != len(block):
                        found.append(((at + start) // BLOCK, zlib.crc32(block)))
                at += len(piece)
        os.lseek(descriptor, position, os.SEEK_SET)
        return (size, tuple(dict(found).items()))

    def attributes_of(self, of: str | int, *, follow: bool) -> Found:
        """All extended attributes that are listed."""
        follows = {} if isinstance(of, int) else {"follow_symlinks": follow}
        names = os.listxattr(of, **follows)
        return sorted((name, os.getxattr(of, name, **follows)) for name in names)

    def tree(self) -> Found:
        """All that there is, by path."""
        found: dict[str, Found] = {}
        first: dict[int, str] = {}
        device = os.stat("/").st_dev
        waiting = ["/"]
        while waiting:
            path = waiting.pop()
            status = os.lstat(path)
            if status.st_dev != device:
                continue
            extra: Found = None
            if stat.S_ISDIR(status.st_mode):
                extra = sorted(os.listdir(path))
                waiting += [f"{path.rstrip('/')}/{name}" for name in extra]
            elif stat.S_ISLNK(status.st_mode):
                extra = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                extra = self.content(descriptor)
                os.close(descriptor)
            attributes = self.attributes_of(path, follow=False)
            # The same file under another name: the first in the order of paths.
            met = first.setdefault(status.st_ino, path)
            found[path] = (self.shown(status), extra, attributes, min(met, path))
        for number, descriptor in sorted(self.slots.items()):
            status = os.fstat(descriptor)
            extra = None
            if stat.S_ISREG(status.st_mode) and self.reads(descriptor):
                extra = self.content(descriptor)
            found[f"slot {number}"] = (self.shown(status), extra)
        return found

    def reads(self, descriptor: int) -> bool:
        """Whether it is open for reading."""
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        return mode & os.O_ACCMODE != os.O_WRONLY and not mode & os.O_PATH

    def names(self) -> Found:
        """Paths of all that there is, directories first."""
        folders, files = ["/"], []
        device = os.stat("/").st_dev
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    path = f"{folder.rstrip('/')}/{entry.name}"
                    if not entry.is_dir(follow_symlinks=False):
                        files.append(path)
                    elif entry.stat(follow_symlinks=False).st_dev == device:
                        folders.append(path)
        return folders, files

    # --- open files -------------------------------------------------------------------------------

    def open(self, slot: int, at: int | None, path: str, flags: int, mode: int) -> Found:
        descriptor = os.open(path, flags | os.O_NONBLOCK, mode, dir_fd=self.place(at))
        self.close(slot)
        self.slots[slot] = descriptor
        return "open"

    def close(self, slot: int) -> Found:
        if slot in self.slots:
            os.close(self.slots.pop(slot))

    def pwrite(self, slot: int, offset: int, seed: int, length: int) -> Found:
        return os.pwrite(self.slot(slot), data(seed, length), offset)

    def write(self, slot: int, seed: int, length: int) -> Found:
        descriptor = self.stream(slot)
        return os.write(descriptor, data(seed, length)), os.lseek(descriptor, 0, os.SEEK_CUR)

    def pread(self, slot: int, offset: int, length: int) -> Found:
        return zlib.crc32(os.pread(self.slot(slot), length, offset))

    def read(self, slot: int, length: int) -> Found:
        return zlib.crc32(os.read(self.stream(slot), length))

    def lseek(self, slot: int, offset: int, whence: int) -> Found:
        if stat.S_ISDIR(os.fstat(self.slot(slot)).st_mode):
            return "what an offset is in a directory is the file system's"
        if whence in {os.SEEK_DATA, os.SEEK_HOLE}:
            return self.seek(self.slot(slot), offset, whence)
        return os.lseek(self.slot(slot), offset, whence)

    def seek(self, descriptor: int, offset: int, whence: int) -> Found:
        """Whether what is skipped may be skipped: which zeros are holes is the file system's."""
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or offset >= status.st_size:
            return os.lseek(descriptor, offset, whence)
        end = status.st_size
        try:
            found = os.lseek(descriptor, offset, whence)
        except OSError as error:
            if error.errno != errno.ENXIO or whence == os.SEEK_HOLE:
                raise
            found = end
        os.lseek(descriptor, offset, os.SEEK_SET)
        if not offset <= found <= end:
            return ("beyond it", offset, found, end)
        # Of what is skipped, or else of what is said to be a hole, some.
        first, last = (offset, found) if whence == os.SEEK_DATA else (found, found + 1)
        if not self.reads(descriptor):
            return "nobody reads it"
        for at in {first, (first + last) // 2, max(first, last - 65536)}:
            if (some := os.pread(descriptor, min(65536, last - at), at)).count(0) != len(some):
                return ("no hole", at)
        return "holes are zeros"

    def ftruncate(self, slot: int, size: int) -> Found:
        return os.ftruncate(self.slot(slot), size)

    def fallocate(self, slot: int, mode: int, offset: int, length: int) -> Found:
        return self.checked(self.libc.fallocate(self.slot(slot), mode, offset, length))

    def copy_file_range(self, source: int, target: int, count: int, at: int, to: int) -> Found:
        return os.copy_file_range(self.slot(source), self.slot(target), count, at, to)

    def sendfile(self, source: int, target: int, at: int, count: int) -> Found:
        return os.sendfile(self.stream(target), self.stream(source), at, count)

    def fsync(self, slot: int) -> Found:
        return os.fsync(self.slot(slot))

    def fstat(self, slot: int) -> Found:
        return self.shown(os.fstat(self.slot(slot)))

    def fcontent(self, slot: int) -> Found:
        descriptor = self.slot(slot)
        can_read = stat.S_ISREG(os.fstat(descriptor).st_mode) and self.reads(descriptor)
        return self.content(descriptor) if can_read else "nothing to be read"

    def mapwrite(self, slot: int, offset: int, seed: int, length: int) -> Found:
        descriptor = self.slot(slot)
        status = os.fstat(descriptor)
        start = offset - offset % mmap.PAGESIZE
        length = min(length, status.st_size - offset)
        if offset < 0 or length <= 0 or not stat.S_ISREG(status.st_mode):
            return "nothing"
        with mmap.mmap(descriptor, offset - start + length, offset=start) as mapped:
            mapped[offset - start :] = data(seed, length)
            mapped.flush()
        return length

    def listing(self, slot: int) -> Found:
        # A stream of its own, from the beginning.
        return sorted(os.listdir(self.slot(slot)))

    # --- names ------------------------------------------------------------------------------------

    def stat(self, at: int | None, path: str, follow: bool) -> Found:
        return self.shown(os.stat(path, dir_fd=self.place(at), follow_symlinks=follow))

    def access(self, path: str, mode: int) -> Found:
        return os.access(path, mode, effective_ids=True)

    def listdir(self, path: str) -> Found:
        return sorted(os.listdir(path))

    def mkdir(self, at: int | None, path: str, mode: int) -> Found:
        return os.mkdir(path, mode, dir_fd=self.place(at))

    def mknod(self, at: int | None, path: str, mode: int, device: int) -> Found:
        return os.mknod(path, mode, device, dir_fd=self.place(at))

    def unlink(self, at: int | None, path: str) -> Found:
        return os.unlink(path, dir_fd=self.place(at))

    def rmdir(self, at: int | None, path: str) -> Found:
        return os.rmdir(path, dir_fd=self.place(at))

    def rename(self, at: int | None, source: str, target: str, flags: int) -> Found:
        place = _AT_FDCWD if at is None else self.slot(at)
        old, new = os.fsencode(source), os.fsencode(target)
        return self.checked(self.libc.renameat2(place, old, _AT_FDCWD, new, flags))

    def link(self, at: int | None, source: str, target: str, follow: bool) -> Found:
        place = _AT_FDCWD if at is None else self.slot(at)
        old, new = os.fsencode(source), os.fsencode(target)
        flags = 0x400 if follow else 0  # AT_SYMLINK_FOLLOW
        return self.checked(self.libc.linkat(place, old, _AT_FDCWD, new, flags))

    def flink(self, slot: int, target: str) -> Found:
        new = os.fsencode(target)
        result = self.libc.linkat(self.slot(slot), b"", _AT_FDCWD, new, _AT_EMPTY_PATH)
        return self.checked(result)

    def symlink(self, at: int | None, target: str, path: str) -> Found:
        return os.symlink(target, path, dir_fd=self.place(at))

    def readlink(self, path: str) -> Found:
        return os.readlink(path)

    # --- attributes -------------------------------------------------------------------------------

    def truncate(self, path: str, size: int) -> Found:
        return os.truncate(path, size)

    def chmod(self, path: str, mode: int) -> Found:
        return os.chmod(path, mode)

    def fchmod(self, slot: int, mode: int) -> Found:
        return os.fchmod(self.slot(slot), mode)

    def chown(self, path: str, user: int, group: int, follow: bool) -> Found:
        return os.chown(path, user, group, follow_symlinks=follow)

    def fchown(self, slot: int, user: int, group: int) -> Found:
        return os.fchown(self.slot(slot), user, group)

    def utime(self, path: str, times: tuple[int, int] | None, follow: bool) -> Found:
        if times is None:
            return os.utime(path, follow_symlinks=follow)
        return os.utime(path, ns=times, follow_symlinks=follow)

    def setxattr(self, path: str, name: str, value: bytes, flags: int, follow: bool) -> Found:
        return os.setxattr(path, name, value, flags, follow_symlinks=follow)

    def fsetxattr(self, slot: int, name: str, value: bytes, flags: int) -> Found:
        return os.setxattr(self.slot(slot), name, value, flags)

    def getxattr(self, path: str, name: str, follow: bool) -> Found:
        return os.getxattr(path, name, follow_symlinks=follow)

    def listxattr(self, path: str, follow: bool) -> Found:
        return self.attributes_of(path, follow=follow)

    def removexattr(self, path: str, name: str, follow: bool) -> Found:
        return os.removexattr(path, name, follow_symlinks=follow)

    # --- times ------------------------------------------------------------------------------------

    def _times(self) -> dict[str, os.stat_result]:
        folders, files = self.names()
        found = {path: os.lstat(path) for path in folders + files}
        for number, descriptor in self.slots.items():
            found[f"slot {number}"] = os.fstat(descriptor)
        return found

    def look(self) -> Found:
        """Remembers all times; the next call has a later one."""
        self.before = self._times()
        time.sleep(TICK_SECONDS)

    def changed(self) -> Found:
        """What has other times than when it was looked."""
        found = []
        for path, status in sorted(self._times().items()):
            before = self.before.get(path)
            if before is None or before.st_ino != status.st_ino:
                continue
            times = ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")
            found += [(path, of) for of in times if getattr(before, of) != getattr(status, of)]
        return found


class Process:
    """A process that carries calls out with the directory `root` as its root."""

    def __init__(self, root: Path) -> None:
        asked, self._ask = os.pipe()
        self._answered, answer = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            kept = {0, 1, 2, asked, answer}
            for descriptor in range(256):
                if descriptor not in kept:
                    with contextlib.suppress(OSError):
                        os.close(descriptor)
            _serve(root, asked, answer)
        os.close(asked)
        os.close(answer)
        self._to = os.fdopen(self._ask, "wb")
        self._from = os.fdopen(self._answered, "rb")

    def ask(self, calls: list[Call]) -> None:
        """Has calls carried out; `answers` are what came of them."""
        pickle.dump(calls, self._to)
        self._to.flush()

    def answers(self) -> list[Found]:
        """What came of the calls that were asked last."""
        found: list[Found] = pickle.load(self._from)  # noqa: S301 (our own child)
        return found

    def end(self) -> None:
        """Ends it."""
        self._to.close()
        os.waitpid(self._child, 0)
        self._from.close()


def _serve(root: Path, asked: int, answer: int) -> None:
    try:
        os.chroot(root)
        os.chdir("/")
        caller = Caller()
        with os.fdopen(asked, "rb") as calls, os.fdopen(answer, "wb") as answers:
            while True:
                try:
                    waiting = pickle.load(calls)  # noqa: S301 (our own parent)
                except EOFError:
                    break
                pickle.dump([caller.carry_out(call) for call in waiting], answers)
                answers.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
