"""Mounted file systems that take in all of a device that has become larger, while they are used."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agewell.filesystems import mounted
from test_mounted import MIB, agewell, kill, made, mount_of, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return made(tmp_path, "64 MiB")


@pytest.fixture
def point(tmp_path: Path, image: Path) -> Iterator[Path]:
    with mount_of(image, tmp_path) as point:
        yield point


def put(path: Path, content: bytes) -> None:
    """Writes a file, and returns when it is durable."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


class Writers:
    """Threads that write files over and over, each of which is durable before the next begins."""

    def __init__(self, point: Path, count: int) -> None:
        self.point = point
        self.written: dict[str, bytes] = {}
        self.errors: list[OSError] = []
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(n,)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def write(self, number: int) -> None:
        round_number = 0
        while not self.is_over.is_set():
            name = f"file {number} {round_number % 9}"
            content = os.urandom(1000 + 7919 * (round_number % 13))
            try:
                put(self.point / name, content)
            except OSError as error:
                self.errors.append(error)
                return
            self.written[name] = content
            round_number += 1

    def end(self) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def test_it_grows_while_files_are_written(image: Path, point: Path) -> None:
    full = os.urandom(40 * MIB)
    put(point / "full", full)
    writers = Writers(point, 3)
    blocks = os.statvfs(point).f_blocks
    try:
        for mebibytes in (100, 101, 300):
            # A segment more may be too little, with the map that would lie behind it.
            expected = {0, 2} if mebibytes == 101 else {0}
            assert agewell("fs", "grow", point, "--size", f"{mebibytes} MiB") in expected
            now = os.statvfs(point).f_blocks
            assert mebibytes == 101 or now * 4096 > mebibytes * MIB * 0.85
            assert now >= blocks
            blocks = now
    finally:
        writers.end()
    assert not writers.errors
    # More than there was room for before.
    more = os.urandom(150 * MIB)
    put(point / "more", more)
    kill(mounted.status(point)["process"], image, point)
    assert agewell("fsck", image, "--read-data", "--quiet") == 0
    assert agewell("mount", image, point) == 0
    assert os.statvfs(point).f_blocks == blocks
    assert {name: (point / name).read_bytes() for name in writers.written} == writers.written
    assert (point / "full").read_bytes() == full
    assert (point / "more").read_bytes() == more


def test_it_takes_in_a_device_that_somebody_else_has_made_larger(image: Path, point: Path) -> None:
    put(point / "file", b"f" * MIB)
    before = os.statvfs(point)
    descriptor = os.open(point / "open", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"open" * 5000)
    (point / "open").unlink()
    os.truncate(image, 256 * MIB)
    assert agewell("fs", "grow", point) == 0
    after = os.statvfs(point)
    assert after.f_blocks > before.f_blocks * 3.5
    gained = after.f_blocks - before.f_blocks
    assert gained * 0.97 < after.f_bavail - before.f_bavail <= gained
    # A file without a name is there until nobody has it open.
    assert os.pread(descriptor, 20_000, 0) == b"open" * 5000
    os.close(descriptor)
    assert agewell("umount", point) == 0
    assert agewell("fsck", image, "--read-data", "--quiet") == 0
    assert agewell("mount", image, point) == 0
    assert os.statvfs(point).f_blocks == after.f_blocks


def refusal(capfd: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """The one line with which a command is refused."""
    capfd.readouterr()
    assert agewell(*words) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_what_cannot_grow_is_as_it_was(
    image: Path, point: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(point / "file", b"f" * MIB)
    size = image.stat().st_size
    assert "make the device larger" in refusal(capfd, "fs", "grow", point)
    assert "make the device larger" in refusal(capfd, "fs", "grow", point, "--size", "65 MiB")
    assert "above its" in refusal(capfd, "fs", "grow", point, "--size", "10 MiB")
    assert "many" in refusal(capfd, "fs", "grow", point, "--size", "many")
    assert "in use" in refusal(capfd, "fs", "grow", image, "--size", "128 MiB")
    assert "no mounted file system" in refusal(capfd, "fs", "grow", tmp_path)
    assert image.stat().st_size == size
    assert agewell("umount", point) == 0
    assert agewell("mount", image, point, "-o", "ro") == 0
    assert "read-only" in refusal(capfd, "fs", "grow", point, "--size", "128 MiB")
    assert image.stat().st_size == size


def test_only_root_has_it_grow(image: Path, point: Path) -> None:
    os.truncate(image, 128 * MIB)
    blocks = mounted.status(point)["blocks"]
    # Nobody else may search the folders above it.
    program = f"""
import os, sys
os.chdir(sys.argv[1])
os.setgid(12345)
os.setuid(12345)
try:
    os.getxattr(".", "agewell.grow.{blocks}")
except PermissionError as error:
    print(error.errno)
"""
    words = [sys.executable, "-c", program, str(point)]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(errno.EPERM)
    assert mounted.status(point)["blocks"] == blocks
    asked = os.getxattr(point, f"agewell.grow.{blocks}")
    assert json.loads(asked)["blocks"] > blocks
    # Who asks twice gets the same answer.
    assert os.getxattr(point, f"agewell.grow.{blocks}") == asked
