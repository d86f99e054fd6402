"""Images of file systems to torture: how they are made, mounted, checked and copied."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import reorganise_torture_tree as tree
from reorganise_torture_tree import Record, record

KINDS = ("ext4", "xfs", "xfs-plain", "btrfs")
"""`xfs-plain` is xfs without reflink."""

IMAGE_BYTES = {"ext4": 96 << 20, "xfs": 320 << 20, "xfs-plain": 320 << 20, "btrfs": 256 << 20}
"""Sizes of the images: the least that their mkfs take, or a little more."""

CHECKS = {
    "ext4": ["e2fsck", "-f", "-n"],
    "xfs": ["xfs_repair", "-n"],
    "xfs-plain": ["xfs_repair", "-n"],
    "btrfs": ["btrfs", "check", "--readonly"],
}

PROGRAMS = ("losetup", "mkfs.xfs", "chattr", "fstrim", "fsfreeze")
"""What is needed for each kind; images are kept on an xfs, which copies them at one moment."""

PLAIN_OPTIONS: dict[str, list[str]] = {
    "ext4": ["-b", "4096"],
    "xfs": [],
    "xfs-plain": [],
    "btrfs": [],
}
"""What mkfs is given: an ext4 so small has blocks of 1 KiB otherwise, which cannot be moved."""

MAKE_OPTIONS: dict[str, list[list[str]]] = {
    "ext4": [
        [],
        [],
        [],
        [],
        ["-O", "inline_data"],
        ["-O", "^metadata_csum"],
        ["-O", "^64bit"],
        ["-O", "ea_inode"],
        ["-I", "128"],
        ["-O", "^flex_bg"],
        ["-J", "size=4"],
        ["-O", "^orphan_file"],
        ["-O", "inline_data", "-I", "1024"],
        ["-O", "fast_commit"],
    ],
    "xfs": [
        [],
        [],
        ["-m", "rmapbt=1"],
        ["-b", "size=1024"],
        ["-d", "agcount=2"],
        ["-d", "agcount=3"],
        ["-m", "finobt=0"],
        ["-m", "bigtime=0"],
        ["-i", "size=2048"],
        ["-n", "size=16384"],
    ],
    "xfs-plain": [[], ["-m", "rmapbt=1"]],
    "btrfs": [
        [],
        [],
        ["--csum", "xxhash"],
        ["-n", "4096"],
        ["-n", "65536"],
        ["-m", "single"],
        ["--mixed"],
        ["-d", "dup", "-m", "dup"],
        ["-O", "^no-holes"],
        ["-R", "^free-space-tree"],
    ],
}
"""How file systems are made: more often as everyone does."""

MOUNT_OPTIONS: dict[str, list[str]] = {
    "ext4": [
        "",
        "",
        "",
        "data=journal",
        "data=writeback",
        "nodelalloc",
        "discard",
        "commit=1",
        "strictatime",
        "noauto_da_alloc",
        "stripe=16",
        "dioread_lock",
        "data=writeback,journal_async_commit",
    ],
    "xfs": [
        "",
        "",
        "",
        "discard",
        "allocsize=64k",
        "wsync",
        "inode32",
        "strictatime",
        "logbsize=256k",
    ],
    "xfs-plain": [""],
    "btrfs": [
        "",
        "",
        "",
        "compress=zstd",
        "compress-force=lzo",
        "nodatacow",
        "nodatasum",
        "autodefrag",
        "discard=async",
        "ssd",
        "commit=1",
        "flushoncommit",
        "notreelog",
        "strictatime",
    ],
}
"""How they are mounted while files are moved."""


class Broken(AssertionError):  # noqa: N818 (what is said of a run)
    """Something changed that must not."""


@dataclass
class Forest:
    """An image with a tree, and what is in it."""

    kind: str
    image: Path
    before: Record
    inodes: int
    other_bytes: int
    made: str


def missing(kind: str) -> str:
    """Why no image of that kind can be tortured here; nothing if it can."""
    if os.geteuid() != 0:
        return "only root can mount a file system"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    programs = (f"mkfs.{kind.removesuffix('-plain')}", CHECKS[kind][0], *PROGRAMS)
    absent = [program for program in programs if shutil.which(program) is None]
    return f"{', '.join(absent)} is not installed" if absent else ""


def run(*command: str | Path) -> str:
    """Run a command to its end."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, check=False, text=True, errors="replace"
    )
    if done.returncode != 0:
        words = " ".join(map(str, command))
        raise RuntimeError(f"{words}: {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


@contextlib.contextmanager
def mounted(image: Path, mount: Path, options: str = "") -> Iterator[Path]:
    """The image, mounted."""
    run("mount", "-o", f"loop,{options}" if options else "loop", image, mount)
    try:
        yield mount
    finally:
        for attempt in range(60):
            done = subprocess.run(["umount", mount], capture_output=True, check=False)
            # Whoever had it may have unmounted it before.
            if done.returncode == 0 or b"not mounted" in done.stderr:
                break
            time.sleep(0.05 * (attempt + 1))
        else:
            if mount.is_mount():
                run("umount", mount)


def check(kind: str, image: Path) -> None:
    """Raise if the file system's own check finds anything."""
    done = subprocess.run([*CHECKS[kind], str(image)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(
            f"the check of {kind} says {done.returncode}: {(done.stdout + done.stderr)[-900:]}"
        )


def make_forest(kind: str, seed: int, folder: Path) -> Forest:
    """An image with the tree of `seed`."""
    draw = random.Random(seed)  # noqa: S311
    image, mount = folder / f"tree-{kind}-{seed}", folder / "mount"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES[kind] + draw.randrange(0, 5) * (32 << 20))
    made = [*PLAIN_OPTIONS[kind], *draw.choice(MAKE_OPTIONS[kind])]
    if kind == "xfs-plain":
        made += ["-m", "reflink=0"]
    run(f"mkfs.{kind.removesuffix('-plain')}", "-q", *made, image)
    planted_as = draw.choice(MOUNT_OPTIONS[kind]) if draw.random() < 0.3 else ""
    with mounted(image, mount, planted_as):
        usage = os.statvfs(mount)
        free_bytes = usage.f_bavail * usage.f_frsize
        share = draw.choice((0.1, 0.3, 0.5, 0.7, 0.8))
        with contextlib.ExitStack() as nodes:
            more = kind == "btrfs" and "--mixed" not in made and draw.random() < 0.6
            # The only one would be of 8 MiB, and on a full btrfs no file could be made.
            if more or "single" in made:
                nodes.enter_context(once_more_metadata(mount))
                made.append("metadata")
            tree.plant(mount, kind, draw, min(int(free_bytes * share), 48 << 20))
            if share > 0.5:
                _ballast(mount, int(free_bytes * (1 - share)))
    check(kind, image)
    with mounted(image, mount):
        inodes, other_bytes = books(mount)
        before = record(mount)
    return Forest(
        kind, image, before, inodes, other_bytes, f"{' '.join(made)} planted {planted_as}"
    )


ATTRIBUTES = 2500
"""Of 15 KB each they take two chunks of metadata of the images' size."""


@contextlib.contextmanager
def once_more_metadata(root: Path) -> Iterator[None]:
    """Meanwhile a btrfs has metadata in several chunks; what is left has room in one."""
    path = root / "attributes"
    path.touch()
    with contextlib.suppress(OSError):
        for number in range(ATTRIBUTES):
            os.setxattr(path, f"user.{number}", bytes(15_000))
    tree.sync_file_system(root)
    yield
    path.unlink()
    tree.sync_file_system(root)


def _ballast(root: Path, leave_bytes: int) -> None:
    """Takes room but `leave_bytes`."""
    usage = os.statvfs(root)
    length = usage.f_bavail * usage.f_frsize - leave_bytes
    # In pieces: for what btrfs cannot give it makes chunks all the same, and metadata has none.
    with (
        contextlib.suppress(OSError),
        tree.opened(root / "ballast", os.O_WRONLY | os.O_CREAT) as file,
    ):
        for at in range(0, length, BALLAST_BYTES):
            tree.fallocate(file, 0, at, min(BALLAST_BYTES, length - at))


BALLAST_BYTES = 16 << 20
"""Of the ballast are asked for at a time."""


def books(root: Path) -> tuple[int, int]:
    """Inodes that no name leads to, and bytes that no file says are its own."""
    tree.sync_file_system(root)
    usage = os.statvfs(root)
    seen: dict[tuple[int, int], int] = {}
    for folder, folders, names in os.walk(os.fsencode(root)):
        for name in (b".", *folders, *names):
            status = os.lstat(os.path.join(folder, name))  # noqa: PTH118 (names are bytes)
            seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    used_bytes = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
    return usage.f_files - usage.f_ffree - len(seen), used_bytes - sum(seen.values())


def nameless_on_btrfs(image: Path, named: set[int]) -> list[int]:
    """Inodes of the main tree of an unmounted btrfs that no name leads to."""
    faults = run("btrfs", "inspect-internal", "dump-tree", "-t", "5", image)
    found = {int(number) for number in re.findall(r"key \((\d+) INODE_ITEM 0\)", faults)}
    return sorted(found - named)


def copy_now(image: Path, copy: Path) -> None:
    """A copy of what an image holds at one moment: the file system below shares its blocks."""
    copy.unlink(missing_ok=True)
    run("cp", "--reflink=always", image, copy)


@contextlib.contextmanager
def workshop(work: Path | None) -> Iterator[Path]:
    """A folder on an xfs of its own, which goes at the end."""
    folder = Path(tempfile.mkdtemp(prefix="agewell-torture-", dir=work))
    bench = folder / "bench"
    bench.mkdir()
    try:
        with (folder / "bench.image").open("wb") as file:
            file.truncate(8 << 30)
        run("mkfs.xfs", "-q", folder / "bench.image")
        with mounted(folder / "bench.image", bench):
            (bench / "mount").mkdir()
            yield bench
    finally:
        if not os.path.ismount(bench):
            shutil.rmtree(folder, ignore_errors=True)
