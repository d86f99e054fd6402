"""The adaptive file system, mounted: what users do with it, and what others' suites say."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mounted_soak
from agewell import cli
from agewell.errors import RunError
from agewell.filesystems import mounted
from conformance import NO_LIMIT_OF_LINKS, REPOSITORY, program, run_fsx, run_pjdfstest
from conftest import COMMAND_SECONDS

KIB = 1 << 10
MIB = 1 << 20


def why_not() -> str | None:
    """Why nothing can be mounted here, if so."""
    if os.geteuid() != 0:
        return "only root mounts"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    try:
        mounted.program()
    except RunError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def agewell(*words: str | Path) -> int:
    """The exit status of a command."""
    try:
        cli.main([str(word) for word in words])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def made(folder: Path, size: str) -> Path:
    """A new file system in an image."""
    path = folder / "disk.img"
    assert agewell("mkfs", path, "--size", size, "--sparse", "--quiet") == 0
    return path


@contextmanager
def mount_of(image: Path, folder: Path) -> Iterator[Path]:
    """Where it is mounted, in `folder`, until the end, whatever a test has done with it."""
    point = folder / "point"
    point.mkdir()
    assert agewell("mount", image, point) == 0
    yield point
    subprocess.run(["umount", "-l", point], capture_output=True, check=False)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return made(tmp_path, "128 MiB")


@pytest.fixture
def point(tmp_path: Path, image: Path) -> Iterator[Path]:
    with mount_of(image, tmp_path) as point:
        yield point


def kill(server: int, image: Path, point: Path) -> None:
    """Returns when what serves `point` is gone: it has the lock of `image` until then."""
    os.kill(server, signal.SIGKILL)
    subprocess.run(["umount", "-l", point], check=True)
    with image.open("rb") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)


def test_files_are_there_after_unmounting_and_mounting(image: Path, point: Path) -> None:
    contents = {f"file {number}": os.urandom(number * 997) for number in range(60)}
    (point / "folder").mkdir(mode=0o750)
    for name, content in contents.items():
        (point / "folder" / name).write_bytes(content)
    (point / "link").symlink_to("folder/file 7")
    os.link(point / "folder" / "file 8", point / "second")
    os.setxattr(point / "second", "user.note", b"n" * 9000)
    assert agewell("umount", point) == 0
    assert list(point.iterdir()) == []
    assert agewell("mount", image, point, "-o", "nosuid,means=thread") == 0
    assert {one.name: one.read_bytes() for one in (point / "folder").iterdir()} == contents
    assert (point / "link").read_bytes() == contents["file 7"]
    assert (point / "second").stat().st_nlink == 2
    assert os.getxattr(point / "second", "user.note") == b"n" * 9000
    assert (point / "folder").stat().st_mode & 0o777 == 0o750


def test_what_was_synced_is_there_after_the_server_was_killed(image: Path, point: Path) -> None:
    (point / "synced").write_bytes(b"s" * 100_000)
    descriptor = os.open(point / "synced", os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    (point / "not synced").write_bytes(b"n" * 100_000)
    kill(mounted.status(point)["process"], image, point)
    assert agewell("mount", image, point) == 0
    assert (point / "synced").read_bytes() == b"s" * 100_000
    left = point / "not synced"
    assert not left.exists() or left.read_bytes().strip(b"n") == b""


IO_SUBMISSION = {"x86_64": (206, 209, 208), "aarch64": (0, 2, 4)}
"""Numbers of `io_setup`, `io_submit` and `io_getevents`, for which no library is needed."""


class AsynchronousWrites:
    """Direct writes that are handed in and fetched: what databases do (`io_submit`)."""

    def __init__(self) -> None:
        self.setup, self.submit, self.fetch = IO_SUBMISSION[os.uname().machine]
        self.system = ctypes.CDLL(None, use_errno=True)
        self.context = ctypes.c_ulong()
        assert self.system.syscall(self.setup, 4, ctypes.byref(self.context)) == 0

    def write(self, descriptor: int, data: mmap.mmap, offset: int) -> None:
        """Writes all of `data`, and returns when it is said to be there."""
        address = ctypes.addressof(ctypes.c_char.from_buffer(data))
        # `struct iocb` and `struct io_event` of `linux/aio_abi.h`.
        request = (0, 0, 0, 1, 0, descriptor, address, len(data), offset, 0, 0, 0)
        block = ctypes.create_string_buffer(struct.pack("=QIIHhIQQqQII", *request))
        blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        assert self.system.syscall(self.submit, self.context, ctypes.c_long(1), blocks) == 1
        event = ctypes.create_string_buffer(32)
        one = ctypes.c_long(1)
        assert self.system.syscall(self.fetch, self.context, one, one, event, None) == 1
        assert struct.unpack("=QQqq", event.raw)[2] == len(data)


@pytest.mark.skipif(os.uname().machine not in IO_SUBMISSION, reason="other numbers of calls")
def test_asynchronous_writes_are_durable_where_a_file_is_open_for_that(
    image: Path, point: Path
) -> None:
    (point / "database").write_bytes(b"o" * 64 * KIB)
    os.sync()
    server = mounted.status(point)["process"]
    descriptor = os.open(point / "database", os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
    data = mmap.mmap(-1, 4 * KIB)
    data[:] = b"n" * len(data)
    AsynchronousWrites().write(descriptor, data, 8 * KIB)
    kill(server, image, point)
    os.close(descriptor)
    assert agewell("mount", image, point) == 0
    assert (point / "database").read_bytes()[8 * KIB :][: 4 * KIB] == b"n" * 4 * KIB


@pytest.mark.skipif(os.uname().machine not in IO_SUBMISSION, reason="other numbers of calls")
def test_what_is_read_while_others_write_past_the_page_cache_is_not_kept(point: Path) -> None:
    path = point / "database"
    path.write_bytes(bytes(64 * KIB))
    descriptor = os.open(path, os.O_RDWR | os.O_DIRECT)
    writes, data = AsynchronousWrites(), mmap.mmap(-1, 64 * KIB)
    ends = threading.Event()

    def read_on() -> None:
        while not ends.is_set():
            path.read_bytes()

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        for turn in range(1, 251):
            data[:] = bytes([turn]) * len(data)
            writes.write(descriptor, data, 0)
            assert path.read_bytes() == data[:]
    finally:
        ends.set()
        reader.join()
        os.close(descriptor)


def test_a_full_file_system_takes_overwrites_and_gives_room_back(point: Path) -> None:
    free_before = os.statvfs(point).f_bavail
    said = free_before * 4 * KIB
    got = 0
    with (point / "large").open("wb", buffering=0) as large:
        try:
            while True:
                got += large.write(b"l" * MIB)
        except OSError as error:
            assert error.errno == 28  # noqa: PT017
    assert said <= got <= said * 1.01
    with pytest.raises(OSError, match="No space"):
        (point / "more").write_bytes(b"m" * 40_000)
    descriptor = os.open(point / "large", os.O_WRONLY)
    for number in range(256):
        place = number * 7919 % (got // (4 * KIB)) * 4 * KIB
        assert os.pwrite(descriptor, b"o" * 4 * KIB, place) == 4 * KIB
    os.fsync(descriptor)
    os.close(descriptor)
    (point / "large").rename(point / "renamed")
    os.truncate(point / "renamed", got // 2)
    (point / "renamed").unlink()
    # At once: a program that removes files asks whether that was enough.
    assert os.statvfs(point).f_bavail >= free_before - 4
    (point / "old").write_bytes(b"o" * (got // 2))
    (point / "new").write_bytes(b"")
    (point / "new").rename(point / "old")
    assert os.statvfs(point).f_bavail >= free_before - 4


def test_what_finds_no_room_below_takes_no_memory_and_goes_on_when_there_is_some(
    tmp_path: Path,
) -> None:
    small, point = tmp_path / "small", tmp_path / "point"
    small.mkdir()
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", small], check=True)
    try:
        image = small / "disk.img"
        assert agewell("mkfs", image, "--size", "256 MiB", "--sparse", "--quiet") == 0
        assert agewell("mount", image, point) == 0
        server = Path(f"/proc/{mounted.status(point)['process']}")
        descriptor = os.open(point / "file", os.O_RDWR | os.O_CREAT)
        written = refused = 0
        for number in range(600):
            try:
                written += os.pwrite(descriptor, b"w" * MIB, number % 100 * MIB)
            except OSError as error:
                assert error.errno == errno.EIO  # noqa: PT017
                refused += 1
        assert refused > 400
        with pytest.raises(OSError, match="Input/output"):
            os.fsync(descriptor)
        status = (server / "status").read_text(encoding="utf-8")
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert peak is not None
        assert int(peak[1]) * KIB < written + 100 * MIB
        subprocess.run(["mount", "-o", "remount,size=300m", small], check=True)
        assert os.pwrite(descriptor, b"m" * MIB, 100 * MIB) == MIB
        os.fsync(descriptor)
        os.close(descriptor)
        # What was refused in the middle of a call has left a part of it.
        assert set((point / "file").read_bytes()) <= set(b"wm\0")
        assert agewell("umount", point) == 0
        assert agewell("fsck", image, "--read-data", "--quiet") == 0
    finally:
        subprocess.run(["umount", "-l", point], capture_output=True, check=False)
        subprocess.run(["umount", "-l", small], check=True)


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    mounted_soak.soak(tmp_path, rounds=3, seed=11)


def test_mount_and_umount_find_it_by_the_names_of_their_helpers(
    tmp_path: Path, image: Path
) -> None:
    point = tmp_path / "point"
    point.mkdir()
    for name in ("mount.agewell", "umount.agewell"):
        (tmp_path / name).symlink_to(mounted.program())
    # As mount(8) calls its helpers: https://man7.org/linux/man-pages/man8/mount.8.html
    words = [str(image), str(point), "-s", "-n", "-o", "rw,noatime,plain", "-t", "agewell"]
    subprocess.run([tmp_path / "mount.agewell", *words], check=True)
    server = Path(f"/proc/{mounted.status(point)['process']}")
    assert (server / "exe").readlink() == mounted.program()
    (point / "file").write_bytes(b"f" * 9000)
    subprocess.run([tmp_path / "umount.agewell", point, "-n"], check=True)
    # Whoever is back may use the image at once.
    assert not server.exists() or " Z " in (server / "stat").read_text(encoding="utf-8")
    assert agewell("fsck", image, "--read-data", "--quiet") == 0


def test_status_says_how_it_does(point: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (point / "file").write_bytes(b"f" * MIB)
    assert agewell("fs", "status", point, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert 0 < document["full"] < 0.05
    assert document["write"]["requests"] >= 1
    assert agewell("fs", "status", point) == 0
    table = capsys.readouterr().out
    assert "room is made by" in table
    assert "put together" in table
    assert agewell("fs", "status", point.parent) == 2


def test_what_is_collected_is_placed_as_it_is_mounted(
    image: Path, point: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = 24_000
    (point / "file").write_bytes(b"f" * blocks * 4096)
    draw = np.random.default_rng(1)
    for placement, logs in (("none", 0), ("lifetime:4", 4), ("sepbit:3", 3)):
        assert agewell("umount", point) == 0
        assert agewell("mount", image, point, "-o", f"means=clean,placement={placement}") == 0
        with (point / "file").open("r+b", buffering=0) as opened:
            for block in draw.integers(0, blocks, 8_000).tolist():
                opened.seek(block * 4096)
                opened.write(b"n" * 4096)
        capsys.readouterr()
        assert agewell("fs", "status", point, "--json") == 0
        document = json.loads(capsys.readouterr().out)
        assert document["collected_logs"] == logs
        assert document["since_mounted"]["cleaned_blocks"] > 0
        assert agewell("fs", "status", point) == 0
        where = f"to {logs} logs by expected lifetime" if logs else "behind what is new"
        assert where in capsys.readouterr().out
    assert agewell("umount", point) == 0
    assert agewell("fsck", image, "--read-data", "--quiet") == 0


def test_what_is_read_is_observed_unless_it_is_not_wanted(
    image: Path, point: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def regrouping() -> dict[str, Any]:
        assert agewell("fs", "status", point, "--json") == 0
        return dict(json.loads(capsys.readouterr().out)["regrouping"])

    for number in range(100):
        (point / f"file {number}").write_bytes(b"f" * 16_384)
    assert agewell("umount", point) == 0
    assert agewell("mount", image, point) == 0
    for number in range(0, 100, 3):
        assert len((point / f"file {number}").read_bytes()) == 16_384
    # What was observed is taken in twice a second.
    until = time.monotonic() + COMMAND_SECONDS
    while (seen := regrouping())["reads"] < 34:
        assert time.monotonic() < until, seen
        time.sleep(0.1)
    assert seen["is_on"]
    assert seen["units"] >= 34
    assert seen["lost_reads"] == 0
    # A jump costs next to nothing on a file in memory, and files were read once.
    assert seen["groups"] == 0
    assert agewell("umount", point) == 0
    assert agewell("mount", image, point, "-o", "noregroup") == 0
    assert len((point / "file 1").read_bytes()) == 16_384
    assert regrouping() == {"is_on": False}


def test_what_is_read_together_is_put_together_as_on_a_disk(
    image: Path, point: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def regrouping() -> dict[str, Any]:
        assert agewell("fs", "status", point, "--json") == 0
        return dict(json.loads(capsys.readouterr().out)["regrouping"])

    assert agewell("umount", point) == 0
    drive = REPOSITORY / "devices/seagate-st2000dm006.toml"
    assert agewell("mount", image, point, "-o", f"timed_as={drive}") == 0
    names = [f"file {number * 79 % 400}" for number in range(400)]
    for byte, name in enumerate(names):
        (point / name).write_bytes(bytes([byte % 251]) * 20_000)
    program = [point / f"file {number * 7 % 150}" for number in range(150)]
    until = time.monotonic() + COMMAND_SECONDS
    while (seen := regrouping())["groups"] == 0:
        assert time.monotonic() < until, seen
        for path in program:
            with path.open("rb") as file:
                os.fsync(file.fileno())
                # What the kernel has in memory is not read from the device again.
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                byte = names.index(path.name) % 251
                assert file.read() == bytes([byte]) * 20_000
        # Nobody asks for anything for long enough.
        time.sleep(1.2)
    assert seen["blocks"] > 100
    assert seen["read_seconds"] > seen["moving_seconds"] > 0
    for path in program:
        assert len(path.read_bytes()) == 20_000
    assert agewell("umount", point) == 0
    assert agewell("fsck", image, "--read-data") == 0


def test_a_file_written_over_at_random_is_swept_as_on_a_disk(
    image: Path, point: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweeps() -> int:
        assert agewell("fs", "status", point, "--json") == 0
        return int(json.loads(capsys.readouterr().out)["sweeps"])

    drive = REPOSITORY / "devices/seagate-st2000dm006.toml"
    blocks, block_bytes = 8192, 4096
    content = bytearray(os.urandom(blocks * block_bytes))
    with (point / "file").open("wb", buffering=0) as file:
        file.write(content)
        os.fsync(file.fileno())
        for number in range(2 * blocks):
            at = number * 4_793 % blocks * block_bytes
            content[at : at + 8] = number.to_bytes(8, "little")
            os.pwrite(file.fileno(), content[at : at + block_bytes], at)
            if number % 32 == 31:
                os.fsync(file.fileno())
    for option, expected in (("readahead_mib=0", 0), ("readahead_mib=64", 1)):
        assert agewell("umount", point) == 0
        assert agewell("mount", image, point, "-o", f"timed_as={drive},{option}") == 0
        # Others read while it is swept; what is written to the file meanwhile is there.
        with (point / "file").open("rb+", buffering=0) as file:
            found = bytearray()
            while piece := file.read(128 * KIB):
                found += piece
                if len(found) == MIB:
                    content[-8:] = bytes([expected] * 8)
                    assert os.pwrite(file.fileno(), content[-8:], len(content) - 8) == 8
                    assert (point / "file").stat().st_size == len(content)
        assert found == content
        assert (sweeps() >= 1) == bool(expected)
    # One that is on is given up.
    assert agewell("umount", point) == 0
    assert agewell("mount", image, point, "-o", f"timed_as={drive}") == 0
    with (point / "file").open("rb", buffering=0) as file:
        assert len(file.read(2 * MIB)) > 0
    assert agewell("umount", point) == 0
    assert agewell("fsck", image, "--read-data") == 0


def test_fsck_finds_a_damaged_file_and_names_it(
    image: Path, point: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (point / "folder").mkdir()
    mark = bytes(range(256)) * 160
    (point / "folder" / "struck").write_bytes(mark)
    (point / "whole").write_bytes(mark[::-1])
    assert agewell("umount", point) == 0
    assert agewell("fsck", image, "--read-data") == 0
    place = image.read_bytes().index(mark[:4096])
    with image.open("r+b") as file:
        file.seek(place + 100)
        file.write(b"!")
    capfd.readouterr()
    assert agewell("fsck", image, "--read-data", "--json") == 1
    document = json.loads(capfd.readouterr().out)
    assert [one["path"] for one in document["findings"]] == ["/folder/struck"]
    assert agewell("mount", image, point) == 0
    with pytest.raises(OSError, match="Input/output"):
        (point / "folder" / "struck").read_bytes()
    assert (point / "whole").read_bytes() == mark[::-1]


def test_scrubbing_names_a_damaged_file_while_it_is_mounted(
    image: Path, point: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (point / "folder").mkdir()
    mark = os.urandom(80 * KIB)
    (point / "folder" / "struck").write_bytes(bytes(40 * KIB) + mark)
    (point / "whole").write_bytes(mark[::-1])
    os.sync()
    assert agewell("fs", "scrub", point) == 0
    with image.open("r+b") as file:
        place = file.read().index(mark[: 4 * KIB])
        file.seek(place + 7)
        file.write(bytes([mark[7] ^ 1]))
    capfd.readouterr()
    assert agewell("fs", "scrub", point, "--json", "--rate", "1 GB/s") == 1
    document = json.loads(capfd.readouterr().out)
    assert document["files"] == {str(point / "folder" / "struck"): [40 * KIB]}
    assert len(document["damaged_blocks"]) == 1


def test_its_files_have_a_score(point: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(20):
        (point / f"file {number}").write_bytes(os.urandom(number * 40_000))
    with (point / "file 19").open("r+b") as file:
        for place in range(0, 700_000, 60_000):
            os.pwrite(file.fileno(), b"again" * 900, place)
            os.fsync(file.fileno())
    assert agewell("score", point, "--json") == 0
    document = json.loads(capfd.readouterr().out)
    text = json.dumps(document)
    assert "fuseblk.agewell" in text
    found = re.search(r'"layout_score": (0\.\d+)', text)
    assert found is not None
    assert 0.8 < float(found[1]) < 1


FITRIM, SHUTDOWN = 0xC0185879, 0x8004587D
"""`linux/fs.h`; `EXT4_IOC_SHUTDOWN`."""


def test_only_root_trims_and_shuts_down(point: Path) -> None:
    def asked(number: int, words: bytes, user: int = 0) -> int:
        script = (
            f"import fcntl, os, sys\nos.setuid({user})\n"
            f"try: fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), {number}, {words!r})\n"
            "except OSError as error: sys.exit(error.errno)"
        )
        command = [sys.executable, "-c", script, "."]
        return subprocess.run(command, cwd=point, check=False).returncode

    whole = struct.pack("<QQQ", 0, 2**64 - 1, 0)
    assert asked(FITRIM, whole, user=1001) == errno.EPERM
    assert asked(SHUTDOWN, bytes(4), user=1001) == errno.EPERM
    assert asked(FITRIM, whole) == 0
    for wrong in ((1 << 40, 2**64 - 1, 0), (0, 0, 0), (0, 4095, 0), (0, 2**64 - 1, 1 << 40)):
        assert asked(FITRIM, struct.pack("<QQQ", *wrong)) == errno.EINVAL
    assert asked(SHUTDOWN, bytes(4)) == 0
    with pytest.raises(OSError, match="Input/output"):
        (point / "file").touch()


def test_what_came_free_before_it_was_mounted_is_trimmed_too(image: Path, point: Path) -> None:
    def trim(start: int, length: int, least: int = 0) -> int:
        asked = struct.pack("<QQQ", start, length, least)
        with (point / "kept").open("rb") as opened:
            return int(struct.unpack("<QQQ", fcntl.ioctl(opened, FITRIM, asked))[1])

    assert agewell("umount", point) == 0
    assert agewell("mount", image, point, "-o", "nodiscard") == 0
    (point / "kept").write_bytes(os.urandom(MIB))
    (point / "removed").write_bytes(os.urandom(60 * MIB))
    os.sync()
    (point / "removed").unlink()
    assert agewell("umount", point) == 0
    assert agewell("mount", image, point, "-o", "nodiscard") == 0
    before = image.stat().st_blocks
    whole = 128 * MIB
    assert trim(0, whole // 2, 100 * MIB) == 0
    lower, upper = trim(0, whole // 2), trim(whole // 2, 2**64 - 1)
    assert 0 < lower < whole // 2
    assert 0 < upper <= whole // 2
    assert lower + upper > 100 * MIB
    assert before - image.stat().st_blocks > 50 * MIB // 512
    assert trim(0, 2**64 - 1) > 100 * MIB, "again"
    assert agewell("umount", point) == 0
    assert agewell("fsck", image, "--read-data") == 0


def test_who_writes_to_a_file_of_others_takes_their_rights_from_it_at_once(point: Path) -> None:
    """Also from the mode that the kernel has in its memory, by which it starts programs."""
    path = point / "program"
    script = (
        "import os, sys\nos.setgroups([])\nos.setgid(1001)\nos.setuid(1001)\n"
        "file = os.open(sys.argv[1], os.O_RDWR)\n"
        "{change}"
    )
    changes = [
        "os.pwrite(file, b'other', 0)",
        "os.posix_fallocate(file, 0, 9000)",
        "os.copy_file_range(file, file, 100, 0, 200)",
    ]
    for change in changes:
        path.write_bytes(b"program" * 100)
        path.chmod(0o6777)
        command = [sys.executable, "-c", script.format(change=change), path.name]
        subprocess.run(command, cwd=point, check=True)
        # It asks for nothing of which the kernel would know that it has changed.
        mode = ["stat", "--format=%a", str(path)]
        assert subprocess.check_output(mode, text=True) == "777\n", change


def test_a_handle_of_a_removed_file_is_stale(point: Path) -> None:
    """Also at once, while the server has not removed the file yet."""
    libc = ctypes.CDLL(None, use_errno=True)

    def opened(handle: bytes) -> int:
        mount = os.open(point, os.O_RDONLY)
        file: int = libc.open_by_handle_at(mount, handle, os.O_RDONLY)
        error = ctypes.get_errno()
        os.close(mount)
        if file < 0:
            return -error
        os.close(file)
        return 0

    handles: list[bytes] = []
    for number in range(50):
        path = point / str(number)
        path.write_bytes(b"here")
        into = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder), 8 + 128)
        which = ctypes.c_int()
        at_cwd = -100
        name = os.fsencode(path)
        assert libc.name_to_handle_at(at_cwd, name, into, ctypes.byref(which), 0) == 0
        handles.append(into.raw)
        assert opened(into.raw) == 0
    for number, handle in enumerate(handles[:49]):
        (point / str(number)).unlink()
        assert opened(handle) == -errno.ESTALE, number
    with (point / "49").open("rb"):
        (point / "49").unlink()
        assert opened(handles[49]) == 0, "it is still open"
    assert opened(handles[49]) == -errno.ESTALE


def test_there_may_be_many_attributes(point: Path) -> None:
    (point / "file").touch()
    wanted = {f"user.{number:05}": os.urandom(number % 50) for number in range(3000)}
    wanted["user.long"] = os.urandom(1 << 16)
    for name, value in wanted.items():
        os.setxattr(point / "file", name, value)
    found = {name: os.getxattr(point / "file", name) for name in os.listxattr(point / "file")}
    assert found == wanted
    with pytest.raises(OSError, match="Argument list too long"):
        os.setxattr(point / "file", "user.long", bytes((1 << 16) + 1))
    # All names are handed over at once, in 64 KiB.
    refused = 0
    for number in range(300):
        try:
            os.setxattr(point / "file", "user." + "n" * 240 + f"{number}", b"")
        except OSError as error:
            refused += error.errno == errno.ENOSPC
    assert refused > 100


def test_it_is_mounted_again_as_soon_as_it_is_unmounted(image: Path, point: Path) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    with image.open("rb") as opened:
        for turn in range(5):
            (point / "file").write_text(str(turn))
            # By the call itself: the server has no time to end until somebody looks.
            assert system.umount2(os.fsencode(point), 0) == 0
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(opened, fcntl.LOCK_UN)
            assert agewell("mount", image, point) == 0
            assert (point / "file").read_text() == str(turn)


def test_what_is_write_protected_is_read_and_stays_as_it_was(
    image: Path, point: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (point / "synced").write_bytes(b"s" * 100_000)
    os.sync()
    kill(mounted.status(point)["process"], image, point)
    before = image.read_bytes()
    attach = ["losetup", "--read-only", "--find", "--show", str(image)]
    device = subprocess.run(attach, capture_output=True, check=True, text=True).stdout.strip()
    try:
        assert agewell("mount", device, point) == 2
        assert "write-protected: -o ro mounts it" in capsys.readouterr().err
        assert agewell("mount", device, point, "-o", "ro") == 0
        assert (point / "synced").read_bytes() == b"s" * 100_000
        with pytest.raises(subprocess.CalledProcessError):
            subprocess.run(["mount", "-o", "remount,rw", point], capture_output=True, check=True)
        with pytest.raises(OSError, match="Read-only"):
            (point / "new").touch()
        assert agewell("umount", point) == 0
        assert agewell("fsck", device, "--read-data") == 0
    finally:
        subprocess.run(["umount", "-l", point], capture_output=True, check=False)
        subprocess.run(["losetup", "--detach", device], check=False)
    assert image.read_bytes() == before


def test_options_about_times_of_reading_are_taken(image: Path, point: Path) -> None:
    assert agewell("umount", point) == 0
    options = "strictatime,nodiratime,lazytime,relatime,silent"
    assert agewell("mount", image, point, "-o", options) == 0


def test_system_attributes_are_the_access_control_lists_alone(point: Path) -> None:
    (point / "file").touch()
    for name in ("system.posix_acl_accesses", "system.posix_acl_", "system.other"):
        with pytest.raises(OSError, match="not supported") as caught:
            os.setxattr(point / "file", name, b"v")
        assert caught.value.errno == errno.EOPNOTSUPP
    assert os.listxattr(point / "file") == []


def test_it_grows(image: Path, point: Path) -> None:
    (point / "file").write_bytes(b"f" * MIB)
    before = os.statvfs(point).f_blocks
    assert agewell("umount", point) == 0
    assert agewell("fs", "grow", image, "--size", "256 MiB") == 0
    assert agewell("fsck", image, "--read-data", "--quiet") == 0
    assert agewell("mount", image, point) == 0
    assert os.statvfs(point).f_blocks > before * 1.9
    assert (point / "file").read_bytes() == b"f" * MIB


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mkfs", "DISK", "--size", "8GiB"], "is there already"),
        (["mkfs", "NEW"], "is not there; say by --size"),
        (["mkfs", "NEW", "--size", "many"], "--size many"),
        (["mkfs", "NEW", "--size", "8 MiB"], "NEW"),
        (["mount", "NEW", "POINT"], "No such file"),
        (["mount", "DISK", "NEW"], "No such file"),
        (["mount", "DISK", "POINT", "-o", "means=magic"], "means=magic"),
        (["mount", "DISK", "POINT", "-o", "placement=magic"], "placement=magic: placement is"),
        (["mount", "DISK", "POINT", "-o", "placement=lifetime:1"], "2 to 16: lifetime:4"),
        (["mount", "DISK", "POINT", "-o", "threads=0"], "threads=0: at least one answers"),
        (["mount", "DISK", "POINT", "-o", "placement=none:3"], "placement=none:3"),
        (["mount", "DISK", "POINT", "-o", "fast"], "fast"),
        (["mount", "EMPTY", "POINT"], "EMPTY"),
        (["umount", "POINT"], "not mounted"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: list[str],
    says: str,
    tmp_path: Path,
    image: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    names = {"DISK": image, "NEW": tmp_path / "new", "POINT": tmp_path, "EMPTY": tmp_path / "e"}
    (tmp_path / "e").write_bytes(bytes(16 * MIB))
    capfd.readouterr()
    status = agewell(*(names.get(word, word) for word in words))
    lines = capfd.readouterr().err.splitlines()
    assert status in {1, 2}
    assert len(lines) == 1, lines
    assert str(names.get(says, says)) in lines[0]
    assert not (tmp_path / "new").exists()


@pytest.fixture
def open_point() -> Iterator[Path]:
    """A mount of 512 MiB whose path is short, and which everybody may search."""
    folder = Path(tempfile.mkdtemp(prefix="aw-"))
    folder.chmod(0o755)
    point = folder / "m"
    point.mkdir()
    image = folder / "disk.img"
    assert agewell("mkfs", image, "--size", "512 MiB", "--sparse", "--quiet") == 0
    assert agewell("mount", image, point) == 0
    yield point
    subprocess.run(["umount", "-l", point], capture_output=True, check=False)
    shutil.rmtree(folder)


@pytest.mark.parametrize("suite", ["pjdfstest", "fsx"])
def test_the_suites_of_others_find_nothing_wrong(suite: str, open_point: Path) -> None:
    if why := program(suite)[1]:
        pytest.skip(why)
    tests = open_point / "p"
    tests.mkdir()
    if suite == "fsx":
        assert run_fsx(tests, operations=20_000, seed=1) == ""
    else:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="aw-") as other:
            Path(other).chmod(0o755)
            outcome = run_pjdfstest(tests, other=Path(other), remount=True)
        assert outcome.failed == set(), outcome.output
        assert set(outcome.skipped) == NO_LIMIT_OF_LINKS
        assert len(outcome.passed) == 397
    assert agewell("umount", open_point) == 0
    assert agewell("fsck", open_point.with_name("disk.img")) == 0
