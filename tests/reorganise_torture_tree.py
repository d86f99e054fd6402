"""A tree with everything that must outlast a reorganisation, and an exact record of a tree."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import random
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

WRITTEN = b"w-"
"""Names of files that begin so belong to the programs that write meanwhile."""

OTHERS = (WRITTEN, b"filler", b"lost+found", b"meanwhile", b".fsr")
"""Names that no record holds."""

BLOCK_BYTES = 4096

KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE, INSERT_RANGE = 1, 2, 8, 16, 32
"""Modes of fallocate(2)."""

FICLONE, FICLONERANGE = 0x40049409, 0x4020940D
FS_IOC_FIEMAP = 0xC020660B
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR = 0x801C581F, 0x401C5820

IMMUTABLE, APPEND_ONLY, NO_DUMP, COMPRESSED, NO_COPY, JOURNALLED = (
    0x10,
    0x20,
    0x40,
    4,
    0x800000,
    0x4000,
)

UNWRITTEN, SHARED = 0x800, 0x2000
LASTING = UNWRITTEN | SHARED | 0x8 | 0x200
"""Flags of extents that say what a file is, not where: unwritten, shared, encoded, inline."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def fallocate(descriptor: int, mode: int, offset: int, length: int) -> None:
    """fallocate(2), which `os` has not with a mode."""
    if _libc.fallocate(descriptor, mode, offset, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def sync_file_system(path: Path) -> None:
    """syncfs(2): all of the file system that `path` is on, and of no other."""
    with opened(path, os.O_RDONLY) as descriptor:
        if _libc.syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))


@contextlib.contextmanager
def opened(path: Path | bytes, flags: int) -> Iterator[int]:
    """A file, open."""
    descriptor = os.open(path, flags, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def set_flags(path: Path, flags: int, *, on: bool = True) -> None:
    """What `chattr` does."""
    with opened(path, os.O_RDONLY) as descriptor:
        word = bytearray(8)
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, word)
        (now,) = struct.unpack_from("I", word)
        now = now | flags if on else now & ~flags
        fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, struct.pack("Q", now))


def extents(descriptor: int) -> list[tuple[int, int, int, int]]:
    """Logical and physical place, length and flags of each extent, from FIEMAP."""
    found: list[tuple[int, int, int, int]] = []
    at, most = 0, 500
    while True:
        buffer = bytearray(32 + 56 * most)
        struct.pack_into("QQIIII", buffer, 0, at, (1 << 63) - 1 - at, 1, 0, most, 0)
        fcntl.ioctl(descriptor, FS_IOC_FIEMAP, buffer)
        (count,) = struct.unpack_from("I", buffer, 20)
        for number in range(count):
            logical, physical, length, _, _, flags = struct.unpack_from(
                "QQQQQI", buffer, 32 + 56 * number
            )
            found.append((logical, physical, length, flags))
            at = logical + length
            if flags & 1:
                return found
        if count < most:
            return found


def shape(found: list[tuple[int, int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    """Where a file has blocks, and of what sort, wherever they lie."""
    joined: list[tuple[int, int, int]] = []
    for logical, _, length, flags in found:
        lasting = flags & LASTING
        if joined and joined[-1][0] + joined[-1][1] == logical and joined[-1][2] == lasting:
            joined[-1] = (joined[-1][0], joined[-1][1] + length, lasting)
        else:
            joined.append((logical, length, lasting))
    return tuple(joined)


Entry = dict[str, object]
Record = dict[bytes, Entry]


def record(root: Path) -> Record:
    """Everything about everything below `root` but what others write."""
    base = os.fsencode(root)
    found: Record = {b".": _facts_of_any(os.lstat(base))}
    for folder, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith(OTHERS))
        for name in (*folders, *names):
            if name.startswith(OTHERS):
                continue
            path = os.path.join(folder, name)  # noqa: PTH118 (names are bytes of any sort)
            found[os.path.relpath(path, base)] = _facts(path)
    return found


def _facts_of_any(status: os.stat_result) -> Entry:
    return {
        "inode": status.st_ino,
        "mode": status.st_mode,
        "owner": (status.st_uid, status.st_gid),
        "device": status.st_rdev,
    }


def _facts(path: bytes) -> Entry:
    status = os.lstat(path)
    entry = _facts_of_any(status)
    if not stat.S_ISDIR(status.st_mode):
        # Directories hold files of others too.
        entry |= {
            "links": status.st_nlink,
            "mtime": status.st_mtime_ns,
            "ctime": status.st_ctime_ns,
        }
    if stat.S_ISLNK(status.st_mode):
        entry["target"] = os.readlink(path)  # noqa: PTH115 (names are bytes)
    names = sorted(os.listxattr(path, follow_symlinks=False))
    entry["xattrs"] = [(name, os.getxattr(path, name, follow_symlinks=False)) for name in names]
    if stat.S_ISREG(status.st_mode):
        entry["size"] = status.st_size
        if not path.endswith((b"/sleep", b"/swap")):
            # The one is run, the other swapped to.
            entry["atime"] = status.st_atime_ns
        with opened(path, os.O_RDONLY | os.O_NOATIME | os.O_NOFOLLOW) as descriptor:
            places = extents(descriptor)
            entry["shape"] = shape(places)
            entry["places"] = tuple((physical, length) for _, physical, length, _ in places)
            entry["content"] = digest(descriptor)
            word = bytearray(8)
            fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, word)
            entry["flags"] = bytes(word[:4])
            attributes = bytearray(28)
            fcntl.ioctl(descriptor, FS_IOC_FSGETXATTR, attributes)
            # Flags, hint of extent size, project; the count of extents changes.
            entry["project"] = bytes(attributes[:8] + attributes[12:16])
    return entry


def digest(descriptor: int) -> str:
    """What a file holds."""
    total, at = hashlib.blake2b(digest_size=16), 0
    while part := os.pread(descriptor, 1 << 20, at):
        total.update(part)
        at += len(part)
    return total.hexdigest()


def differences(before: Record, after: Record, *, but: frozenset[str] = frozenset()) -> list[str]:
    """What of `before` is not so in `after`; where files lie is not compared."""
    faults = [f"{name!r} is gone" for name in before.keys() - after.keys()]
    faults += [f"{name!r} is new" for name in after.keys() - before.keys()]
    for name in before.keys() & after.keys():
        for fact, value in before[name].items():
            if fact != "places" and fact not in but and value != after[name].get(fact):
                faults.append(
                    f"{fact} of {name!r}: {str(value)[:200]} -> {str(after[name].get(fact))[:200]}"
                )
    return sorted(faults)


def moved_files(before: Record, after: Record) -> int:
    """Files that lie elsewhere."""
    return sum(
        "places" in entry and entry["places"] != after.get(name, entry).get("places")
        for name, entry in before.items()
    )


def plant(root: Path, kind: str, draw: random.Random, fill_bytes: int) -> None:
    """Files of every sort below `root`, scattered over about `fill_bytes`."""
    names = _write_in_turns(root, draw, fill_bytes)
    for path in draw.sample(names, len(names) // draw.choice((3, 4, 6))):
        path.unlink()
        names.remove(path)
    sync_file_system(root)
    specials = [*_SPECIALS, *(_OF_KIND[kind])]
    draw.shuffle(specials)
    for special in specials:
        for _ in range(draw.randrange(1, 5)):
            try:
                special(root, names, draw)
            except OSError as why:
                # What this kernel or file system does not do, or no room.
                if why.errno not in {
                    errno.EOPNOTSUPP,
                    errno.ENOTTY,
                    errno.EINVAL,
                    errno.ENOSPC,
                    errno.EPERM,
                }:
                    raise
    plain = sorted(path for path in names if path.is_file())
    for path in draw.sample(plain, len(plain) // 5):
        os.utime(path, ns=(draw.randrange(1 << 60), draw.randrange(1 << 60)))
    sync_file_system(root)


def _write_in_turns(root: Path, draw: random.Random, fill_bytes: int) -> list[Path]:
    """Files that grow in turns, so that they lie among each other; a part is for the writers."""
    folders = [root]
    for number in range(draw.randrange(3, 25)):
        folder = draw.choice(folders[-4:]) / f"d{number:02}"
        folder.mkdir()
        folders.append(folder)
    count = draw.randrange(80, 300)
    paths = [draw.choice(folders) / f"f{number:04}" for number in range(count)]
    written = [draw.choice(folders) / f"{WRITTEN.decode()}{number:02}" for number in range(28)]
    descriptors = [os.open(path, os.O_RDWR | os.O_CREAT, 0o640) for path in paths + written]
    growth = {number: draw.choice((3000, 4096, 12288, 40000)) for number in range(len(descriptors))}
    growth[0] = 400_000
    sorts = [draw.choice(("random", "random", "text", "zero")) for _ in descriptors]
    total = 0
    while total < fill_bytes:
        for number in draw.sample(range(len(descriptors)), len(descriptors)):
            if number >= count and os.fstat(descriptors[number]).st_size > 120_000:
                continue
            length = draw.randrange(1, 2 * growth[number])
            with contextlib.suppress(OSError):
                os.write(descriptors[number], _data(draw, sorts[number], length))
            total += -(-length // BLOCK_BYTES) * BLOCK_BYTES
        sync_file_system(root)
    for descriptor in descriptors:
        os.close(descriptor)
    return paths


def _data(draw: random.Random, sort: str, length: int) -> bytes:
    """Some that cannot be compressed, some that can, and none at all."""
    if sort == "random":
        return draw.randbytes(length)
    line = bytes(64) if sort == "zero" else draw.randbytes(64)
    return (line * (length // 64 + 1))[:length]


def _new(root: Path, names: list[Path], draw: random.Random, prefix: str) -> Path:
    folder = draw.choice(names).parent if names else root
    return folder / f"{prefix}-{draw.randrange(1 << 30):08x}"


Special = Callable[[Path, list[Path], random.Random], None]


def _holes(root: Path, names: list[Path], draw: random.Random) -> None:
    with _new(root, names, draw, "holes").open("wb") as file:
        for _ in range(draw.randrange(1, 12)):
            file.seek(draw.randrange(1 << 20))
            file.write(draw.randbytes(draw.randrange(1, 30000)))
        file.truncate(draw.choice((file.seek(0, os.SEEK_CUR) + draw.randrange(1 << 19), 1 << 20)))


def _preallocated(root: Path, names: list[Path], draw: random.Random) -> None:
    with _new(root, names, draw, "allocated").open("wb") as file:
        file.write(draw.randbytes(draw.randrange(60000)))
        file.flush()
        size = file.seek(0, os.SEEK_CUR)
        if draw.random() < 0.5:
            fallocate(file.fileno(), KEEP_SIZE, draw.randrange(size + 1), draw.randrange(1, 300000))
        if draw.random() < 0.5:
            fallocate(file.fileno(), 0, size, draw.randrange(1, 300000))
        if draw.random() < 0.5:
            file.seek(size + draw.randrange(100000))
            file.write(draw.randbytes(20000))


def _cut_up(root: Path, names: list[Path], draw: random.Random) -> None:
    with draw.choice(names).open("r+b") as file:
        blocks = os.fstat(file.fileno()).st_size // BLOCK_BYTES
        if blocks > 4:
            mode = draw.choice((PUNCH_HOLE | KEEP_SIZE, COLLAPSE_RANGE, INSERT_RANGE, ZERO_RANGE))
            start = draw.randrange(1, blocks - 2)
            fallocate(file.fileno(), mode, start * BLOCK_BYTES, draw.randrange(1, 3) * BLOCK_BYTES)


def _links(root: Path, names: list[Path], draw: random.Random) -> None:
    os.link(draw.choice(names), _new(root, names, draw, "hard"))
    _new(root, names, draw, "soft").symlink_to(draw.choice((draw.choice(names), "nowhere", "/etc")))
    os.mkfifo(_new(root, names, draw, "pipe"))
    os.mknod(_new(root, names, draw, "null"), stat.S_IFCHR | 0o600, os.makedev(1, 3))
    _new(root, names, draw, "empty").touch()


def _attributes(root: Path, names: list[Path], draw: random.Random) -> None:
    path = draw.choice(names)
    os.setxattr(path, "user.note", draw.randbytes(draw.choice((3, 60, 900, 3000))))
    os.setxattr(draw.choice(names), "trusted.note", b"kept")
    os.setxattr(
        draw.choice(names), "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)
    )
    # user::rw-, user:12:r--, group::r--, mask::r--, other::---
    rows = ((1, 6, -1), (2, 4, 12), (4, 4, -1), (16, 4, -1), (32, 0, -1))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)
    os.setxattr(path, "system.posix_acl_access", acl)
    os.chown(path, 12, 34)
    path.chmod(draw.choice((0o4755, 0o2711, 0o1644, 0o0000, 0o6777)))


def _odd_names(root: Path, names: list[Path], draw: random.Random) -> None:
    folder = os.fsencode(draw.choice(names).parent)
    tag = f"{draw.randrange(1 << 30):x}".encode()
    for name in (
        b"-rf " + tag,
        b"line\nbreak" + tag,
        b"\xff\xfe" + tag,
        b"o" * (250 - len(tag)) + tag,
        "gr\u00f6\u00dfe \u2603 ".encode() + tag,
        b'"$(x)`\\\t' + tag,
    ):
        with opened(folder + b"/" + name, os.O_WRONLY | os.O_CREAT) as descriptor:
            os.write(descriptor, draw.randbytes(draw.randrange(1, 20000)))


def _flagged(root: Path, names: list[Path], draw: random.Random) -> None:
    for flag in (IMMUTABLE, APPEND_ONLY, NO_DUMP):
        path = _new(root, names, draw, f"flag{flag:x}")
        path.write_bytes(draw.randbytes(draw.randrange(1, 50000)))
        set_flags(path, flag)


def _small(root: Path, names: list[Path], draw: random.Random) -> None:
    for _ in range(10):
        _new(root, names, draw, "small").write_bytes(draw.randbytes(draw.randrange(1, 1500)))


def _swap(root: Path, names: list[Path], draw: random.Random) -> None:
    path = root / "swap"
    if path.exists():
        return
    header = bytearray(40960)
    # See union swap_header of Linux: version, last page, bad pages; the rest is a signature.
    struct.pack_into("III", header, 1024, 1, 9, 0)
    header[4086:4096] = b"SWAPSPACE2"
    path.touch(0o600)
    with contextlib.suppress(OSError):
        set_flags(path, NO_COPY)
    path.write_bytes(header)


def _program(root: Path, names: list[Path], draw: random.Random) -> None:
    path = root / "sleep"
    if not path.exists():
        path.write_bytes(Path("/bin/sleep").read_bytes())
        path.chmod(0o755)


def _project(root: Path, names: list[Path], draw: random.Random) -> None:
    with opened(draw.choice(names), os.O_RDONLY) as descriptor:
        attributes = bytearray(28)
        fcntl.ioctl(descriptor, FS_IOC_FSGETXATTR, attributes)
        struct.pack_into("I", attributes, 12, draw.randrange(1, 1000))
        fcntl.ioctl(descriptor, FS_IOC_FSSETXATTR, bytes(attributes))


def _extent_hint(root: Path, names: list[Path], draw: random.Random) -> None:
    path = _new(root, names, draw, "hint")
    path.touch()
    with opened(path, os.O_RDWR) as descriptor:
        # FS_XFLAG_EXTSIZE, and FS_XFLAG_NODEFRAG at times.
        flags = draw.choice((0x800, 0x800 | 0x2000))
        fcntl.ioctl(descriptor, FS_IOC_FSSETXATTR, struct.pack("IIIII8x", flags, 65536, 0, 0, 0))
        os.write(descriptor, draw.randbytes(draw.randrange(1, 200000)))


def _journalled(root: Path, names: list[Path], draw: random.Random) -> None:
    path = _new(root, names, draw, "journalled")
    path.touch()
    set_flags(path, JOURNALLED)
    path.write_bytes(draw.randbytes(draw.randrange(1, 100000)))


def _cloned(root: Path, names: list[Path], draw: random.Random) -> None:
    source = draw.choice(names)
    with opened(source, os.O_RDONLY) as given:
        with opened(_new(root, names, draw, "clone"), os.O_RDWR | os.O_CREAT) as copy:
            fcntl.ioctl(copy, FICLONE, given)
        blocks = os.fstat(given).st_size // BLOCK_BYTES
        if blocks > 2:
            with opened(_new(root, names, draw, "part"), os.O_RDWR | os.O_CREAT) as copy:
                os.write(copy, draw.randbytes(30000))
                start, count = draw.randrange(blocks), 1
                places = (
                    given,
                    start * BLOCK_BYTES,
                    count * BLOCK_BYTES,
                    draw.randrange(9) * BLOCK_BYTES,
                )
                fcntl.ioctl(copy, FICLONERANGE, struct.pack("qQQQ", *places))


def _compressed(root: Path, names: list[Path], draw: random.Random) -> None:
    path = _new(root, names, draw, "compressed")
    path.touch()
    set_flags(path, COMPRESSED)
    path.write_bytes(draw.randbytes(500) * draw.randrange(1, 600))


def _uncopied(root: Path, names: list[Path], draw: random.Random) -> None:
    path = _new(root, names, draw, "uncopied")
    path.touch()
    set_flags(path, NO_COPY)
    path.write_bytes(draw.randbytes(draw.randrange(1, 100000)))


def _subvolumes(root: Path, names: list[Path], draw: random.Random) -> None:
    first, second = (_new(root, [], draw, prefix) for prefix in ("subvolume", "snapshot"))
    subprocess.run(["btrfs", "-q", "subvolume", "create", first], check=True)
    for number in range(5):
        (first / f"f{number}").write_bytes(draw.randbytes(draw.randrange(1, 60000)))
    read_only = draw.choice(([], ["-r"]))
    subprocess.run(["btrfs", "-q", "subvolume", "snapshot", *read_only, first, second], check=True)


_SPECIALS: list[Special] = [
    _holes,
    _holes,
    _preallocated,
    _cut_up,
    _links,
    _attributes,
    _odd_names,
    _flagged,
    _small,
    _swap,
    _program,
    _project,
]
_OF_KIND: dict[str, list[Special]] = {
    "ext4": [_journalled],
    "xfs": [_cloned, _extent_hint],
    "xfs-plain": [_extent_hint],
    "btrfs": [_cloned, _compressed, _uncopied, _subvolumes],
}
