"""Mounts that show files under other users' numbers (`mount_setattr(2)`), as containers do."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agewell.filesystems import mounted
from test_mounted import FITRIM, why_not

FIRST = 10_000
"""What the users and groups from 0 on are shown as."""

# Numbers of system calls, the same on every machine, and `linux/mount.h`.
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
CLONE, EMPTY_PATH, FROM_EMPTY_PATH, MAPPED = 1, 0x1000, 4, 0x0010_0000
AT_CWD = -100
CAPABILITY = bytes.fromhex("0100000200040000") + bytes(12)
"""`CAP_NET_BIND_SERVICE` (`linux/capability.h`, `vfs_cap_data`)."""

_libc = ctypes.CDLL(None, use_errno=True)


def _why_not() -> str | None:
    version = tuple(map(int, platform.release().split("-")[0].split(".")[:2]))
    if version < (6, 12):
        return f"Linux {platform.release()} maps no mounts in user space; 6.12 does"
    return why_not()


pytestmark = pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))


def _call(number: int, *words: object) -> int:
    done = int(_libc.syscall(number, *words))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def show_mapped(point: Path, at: Path) -> None:
    """Shows what is mounted at `point` at `at` as well, with the numbers of users from FIRST on."""
    with subprocess.Popen(["unshare", "--user", "cat"], stdin=subprocess.PIPE) as holder:
        ours = Path("/proc/self/ns/user").readlink()
        while Path(f"/proc/{holder.pid}/ns/user").readlink() == ours:
            assert holder.poll() is None, "there may be no name spaces of users"
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{holder.pid}/{kind}").write_text(f"0 {FIRST} 10000", encoding="utf-8")
        space = os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY)
        tree = _call(OPEN_TREE, AT_CWD, bytes(point), CLONE)
        try:
            wanted = struct.pack("QQQQ", MAPPED, 0, 0, space)
            _call(MOUNT_SETATTR, tree, b"", EMPTY_PATH, wanted, ctypes.c_size_t(len(wanted)))
            _call(MOVE_MOUNT, tree, b"", AT_CWD, bytes(at), FROM_EMPTY_PATH)
        finally:
            # As long as it is open, what is mounted is in use.
            os.close(tree)
            os.close(space)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A mount, and where it is shown mapped; everybody may write."""
    image, point, mapped = (tmp_path / name for name in ("disk.img", "point", "mapped"))
    point.mkdir()
    mapped.mkdir()
    mounted.call(["make", image, "--size", "64 MiB", "--sparse"])
    mounted.call(["mount", image, point])
    try:
        show_mapped(point, mapped)
        point.chmod(0o777)
        yield point, mapped
    finally:
        if os.path.ismount(mapped):
            subprocess.run(["umount", mapped], check=True)
        mounted.unmount(point)


def by(user: int, script: str, at: Path) -> subprocess.CompletedProcess[str]:
    """Runs lines of Python in `at` as this user, in the group of that number and in no other."""
    becomes = f"os.setgroups([]); os.setgid({user}); os.setuid({user})"
    # Names are relative: others than root may not come here from above.
    return subprocess.run(
        [sys.executable, "-c", f"import fcntl, os, struct\n{becomes}\n{script}"],
        cwd=at, capture_output=True, text=True, check=False,
    )  # fmt: skip


def owner(path: Path) -> tuple[int, int]:
    """User and group."""
    found = path.lstat()
    return found.st_uid, found.st_gid


def test_owners_are_shown_and_made_by_the_numbers_of_the_mount(places: tuple[Path, Path]) -> None:
    point, mapped = places
    (point / "file").touch()
    os.chown(point / "file", 5, 6)
    assert owner(mapped / "file") == (FIRST + 5, FIRST + 6)
    script = """
os.mkdir("directory")
os.symlink("x", "link")
os.mkfifo("fifo")
open("made", "w").close()
os.link("made", "other name")
os.chmod("made", 0o640)
os.utime("made", (1, 2))
os.rename("made", "renamed")
"""
    done = by(FIRST + 7, script, mapped)
    assert done.returncode == 0, done.stderr
    for name in ("directory", "link", "fifo", "renamed", "other name"):
        assert owner(point / name) == (7, 7)
        assert owner(mapped / name) == (FIRST + 7, FIRST + 7)
    assert (point / "renamed").stat().st_mode & 0o777 == 0o640
    os.chown(mapped / "renamed", FIRST + 1, FIRST + 2)
    assert owner(point / "renamed") == (1, 2)
    # Whom the mount has no number for may make nothing.
    assert by(7, 'open("stranger", "w")', mapped).returncode == 1
    assert by(7, 'open("stranger", "w")', point).returncode == 0


def test_who_is_not_root_loses_rights_of_files_and_commands(places: tuple[Path, Path]) -> None:
    point, mapped = places
    change = 'os.posix_fallocate(os.open("program", os.O_RDWR), 0, 10_000)'
    for at, user in ((point, 7), (mapped, FIRST + 7)):
        path = at / "program"
        for who, left in ((user, 0), (0, 0o6000)):
            path.write_bytes(b"x" * 100)
            os.chown(path, user, user)
            path.chmod(0o6777)
            done = by(who, change, at)
            assert done.returncode == 0, done.stderr
            assert path.stat().st_mode & 0o7777 == 0o777 | left
        path.chmod(0o777)
        os.setxattr(point / "program", "security.capability", CAPABILITY)
        assert by(user, change, at).returncode == 0
        assert os.listxattr(point / "program") == []
    os.setxattr(point / "program", "trusted.known", b"1")
    show = 'print(os.listxattr("program"))'
    assert by(0, show, point).stdout == "['trusted.known']\n"
    assert by(7, show, point).stdout == "[]\n"
    trim = f"""
fcntl.ioctl(os.open(".", os.O_RDONLY), {FITRIM}, struct.pack("QQQ", 0, 2**63, 0))
"""
    assert "PermissionError" in by(7, trim, point).stderr
    assert by(0, trim, point).returncode == 0
