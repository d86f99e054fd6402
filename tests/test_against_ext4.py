"""Random system calls on the adaptive file system and on ext4, everything compared."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from against_ext4 import (
    LISTS,
    NOBODY,
    DifferenceError,
    access_list,
    fewest,
    packed,
    replay,
    run,
    wrong_lists,
)
from agewell.filesystems import mounted
from same_calls import KEEP, PUNCH, ZERO, Call
from test_mounted import why_not

SIZE = 1 << 30
"""Of both images, which are sparse: neither may become full."""


def _why_not() -> str | None:
    if (why := why_not()) is not None:
        return why
    return None if shutil.which("mkfs.ext4") else "there is no mkfs.ext4"


pytestmark = [
    pytest.mark.skipif(_why_not() is not None, reason=str(_why_not())),
    pytest.mark.xdist_group("beside ext4"),
]


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
NO_LIST = packed([(tag, bits, NOBODY) for tag, bits in ((1, 6), (4, 2), (0x20, 4))])
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


@pytest.mark.parametrize("name", LISTS)
def test_wrong_lists_are_refused_as_by_ext4(both: Both, name: str) -> None:
    draw = random.Random(name)  # noqa: S311 (no secret)
    for number in range(4):
        entries = access_list(draw)
        wrong = wrong_lists(entries)
        before: list[Call] = [
            (0, 0, "mkdir", None, "/d", 0o755),
            (0, 0, "setxattr", "/d", name, packed(entries), 0, True),
        ]
        sets: list[Call] = [
            (0, 0, "setxattr", "/d", name, value, 0, True) for value in wrong.values()
        ]
        found = replay(both.points, 2000 + 10 * LISTS.index(name) + number, before + sets)
        assert found[: len(before)] == [None, None]
        refused = dict(zip(wrong, found[len(before) :], strict=True))
        # An attribute of no bytes takes the list away, as one without entries does.
        assert refused.pop("nothing") is None
        assert refused.pop("another version") == "ENOTSUP"
        assert set(refused.values()) == {"EINVAL"}, refused


def _made_under(folder: str, draw: random.Random) -> list[Call]:
    """A directory with a default list, and all that can be made in it, by whom it may be."""
    who, mask = draw.randrange(3), draw.choice([0, 0o022, 0o077, 0o777])
    mode = draw.choice([0o777, 0o666, 0o2775, 0o6751, 0o640, 0o070, 0])
    default, access = (packed(access_list(draw)) for _ in range(2))
    unnamed = os.O_TMPFILE | os.O_RDWR
    return [
        (0, 0, "mkdir", None, folder, 0o777),
        (0, 0, "chmod", folder, draw.choice([0o777, 0o2777])),
        (0, 0, "setxattr", folder, LISTS[1], default, 0, True),
        (who, mask, "open", 0, None, f"{folder}/file", os.O_RDWR | os.O_CREAT, mode),
        (who, mask, "mkdir", None, f"{folder}/folder", mode),
        (0, mask, "mkdir", None, f"{folder}/folder/below", mode),
        (who, mask, "mknod", None, f"{folder}/fifo", stat.S_IFIFO | mode, 0),
        (who, mask, "symlink", None, "to", f"{folder}/link"),
        (who, mask, "open", 1, None, folder, unnamed, mode),
        (0, mask, "flink", 1, f"{folder}/named"),
        (0, 0, "getxattr", f"{folder}/file", LISTS[0], True),
        (0, 0, "chmod", f"{folder}/file", draw.randrange(0o10000)),
        (0, 0, "getxattr", f"{folder}/file", LISTS[0], True),
        (0, 0, "chown", f"{folder}/named", 1001, draw.choice([0, 1001, 2001]), True),
        (0, 0, "chmod", f"{folder}/named", 0o2775),
        # Whoever is not of the group takes its right away with a list.
        (draw.choice([0, 1, 1]), 0, "setxattr", f"{folder}/named", LISTS[0], access, 0, True),
        (2, 0, "access", f"{folder}/named", draw.randrange(8)),
        (0, 0, "setxattr", f"{folder}/file", LISTS[1], default, 0, True),
        (0, 0, "setxattr", f"{folder}/link", LISTS[0], access, 0, False),
        (0, 0, "removexattr", f"{folder}/folder", draw.choice(LISTS), True),
    ]


def test_what_is_made_has_the_lists_and_modes_that_it_has_on_ext4(both: Both) -> None:
    draw = random.Random(1)  # noqa: S311 (no secret)
    calls = [call for number in range(48) for call in _made_under(f"/{number}", draw)]
    found = replay(both.points, 3000, calls)
    # They are held to something: there are lists, and not only errors.
    lists = [came for call, came in zip(calls, found, strict=True) if call[2] == "getxattr"]
    assert sum(isinstance(came, bytes) for came in lists) > len(lists) // 3


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
