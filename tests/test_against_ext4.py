"""Random system calls on the adaptive file system and on ext4, everything compared."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from against_ext4 import DifferenceError, fewest, replay, run
from agewell.filesystems import mounted
from same_calls import KEEP, PUNCH, ZERO, Call
from test_mounted import why_not

SIZE = 1 << 30
"""Of both images, which are sparse: neither may become full."""


def _why_not() -> str | None:
    if (why := why_not()) is not None:
        return why
    return None if shutil.which("mkfs.ext4") else "there is no mkfs.ext4"


pytestmark = pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))


class Both:
    """Two mounts."""

    def __init__(self, folder: Path) -> None:
        self.points = [folder / "here", folder / "ext4"]
        self.images = [folder / "here.img", folder / "ext4.img"]
        for point in self.points:
            point.mkdir()
        mounted.call(["make", self.images[0], "--size", f"{SIZE >> 20} MiB", "--sparse"])
        with self.images[1].open("wb") as image:
            image.truncate(SIZE)
        # Attributes that an inode has no room for have inodes of their own.
        make = ["mkfs.ext4", "-q", "-O", "ea_inode", str(self.images[1])]
        subprocess.run(make, check=True, capture_output=True)

    def mount(self) -> None:
        mounted.call(["mount", self.images[0], self.points[0]])
        # Neither keeps times of reading.
        loop = ["mount", "-o", "loop,noatime", str(self.images[1]), str(self.points[1])]
        made = subprocess.run(loop, capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"ext4 cannot be mounted: {made.stderr.strip()}")

    def unmount(self) -> None:
        mounted.unmount(self.points[0])
        subprocess.run(["umount", self.points[1]], check=True)

    def remount(self) -> None:
        self.unmount()
        self.mount()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    both = Both(tmp_path_factory.mktemp("both"))
    try:
        both.mount()
        yield both
    finally:
        for point in both.points:
            subprocess.run(["umount", "-l", point], capture_output=True, check=False)


@pytest.mark.parametrize("seed", range(1, 9))
def test_random_calls_do_what_they_do_on_ext4(both: Both, seed: int) -> None:
    remount = both.remount if seed % 4 == 0 else None
    run(both.points, seed, seed, 3000, remount)
    if remount is not None:
        both.unmount()
        checked = json.loads(mounted.call(["check", both.images[0], "--data"]))
        both.mount()
        assert checked["clean"], checked["findings"]


# What was different once.
NO_LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, bits, 0xFFFFFFFF) for tag, bits in ((1, 6), (4, 2), (0x20, 4))
)
MADE = (0, 0, "open", 0, None, "/a", os.O_RDWR | os.O_CREAT, 0o644)
RIGHTS = (0, 0, "chmod", "/a", 0o6755)
FOUND: dict[str, list[Call]] = {
    "a list that is not there is removed": [
        (0, 0, "mkdir", None, "/d", 0o755),
        (0, 0, "removexattr", "/d", "system.posix_acl_default", True),
        (0, 0, "removexattr", "/d", "system.posix_acl_access", True),
    ],
    "a whiteout stays, and nothing is replaced": [
        MADE,
        (0, 0, "rename", None, "/a", "/b", 5),
        (0, 0, "rename", None, "/a", "/b", 5),
    ],
    "there are kinds of attributes": [
        MADE,
        *((0, 0, "setxattr", "/a", name, b"v", 0, True) for name in ("user", "user.", "x.y")),
        *((0, 0, "getxattr", "/a", name, True) for name in ("user", "user.", "system.y")),
        (0, 0, "removexattr", "/a", "strange.x", True),
    ],
    "attributes of root are shown to root": [
        MADE,
        (0, 0, "setxattr", "/a", "trusted.t", b"v", 0, True),
        (0, 0, "setxattr", "/a", "user.u", b"v", 0, True),
        (1, 0, "listxattr", "/a", True),
        (0, 0, "listxattr", "/a", True),
    ],
    "who copies as root leaves rights": [
        MADE,
        (0, 0, "open", 1, None, "/b", os.O_RDWR | os.O_CREAT, 0o644),
        (0, 0, "pwrite", 1, 0, 7, 9000),
        RIGHTS,
        (0, 0, "copy_file_range", 1, 0, 9000, 0, 0),
        (0, 0, "fstat", 0),
    ],
    "who allocates takes rights": [
        MADE,
        (0, 0, "pwrite", 0, 0, 7, 9000),
        *itertools.chain.from_iterable(
            [RIGHTS, (who, 0, "fallocate", 0, mode, 0, 4096), (0, 0, "fstat", 0)]
            for who in (0, 1)
            for mode in (0, KEEP, KEEP | PUNCH, ZERO)
        ),
    ],
    "who is not of the group takes its right to run": [
        MADE,
        *itertools.chain.from_iterable(
            [
                (0, 0, "chown", "/a", 1001, group, True),
                (0, 0, "chmod", "/a", 0o2746),
                (who, 0, *change),
                (0, 0, "fstat", 0),
            ]
            for group in (0, 1001, 2001)
            for who in (0, 1, 2)
            for change in (
                ("pwrite", 0, 0, 7, 100),
                ("ftruncate", 0, 5000),
                ("fallocate", 0, KEEP, 0, 4096),
                ("chown", "/a", -1, 1001, True),
            )
        ),
    ],
    "a right without the group's stays when root gives the file away": [
        (0, 0, "setxattr", "/", "system.posix_acl_default", NO_LIST, 0, True),
        (0, 0, "open", 0, None, "/a", os.O_RDWR | os.O_CREAT, 0o2775),
        (0, 0, "fchown", 0, 1001, 1001),
        (0, 0, "fchown", 0, 1001, 2001),
    ],
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_different_once_is_not(both: Both, what: str) -> None:
    replay(both.points, 1000 + list(FOUND).index(what), FOUND[what])


def test_what_differs_is_found_and_told_by_few_calls(both: Both, tmp_path: Path) -> None:
    """tmpfs is not ext4: it has no `FALLOC_FL_ZERO_RANGE`, for one."""
    other = tmp_path / "tmpfs"
    other.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", other], check=True)
    points, numbers = [other, both.points[1]], itertools.count(100)
    try:
        with pytest.raises(DifferenceError) as found:
            run(points, next(numbers), 1, 3000)
        least = fewest(points, numbers, found.value)
    finally:
        subprocess.run(["umount", "-l", other], check=True)
    assert least.call[2] == found.value.call[2]
    assert 2 <= len(least.calls) <= 12
