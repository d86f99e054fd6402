"""Several threads on one mount: no call is seen half done, and what is left is whole."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agewell.filesystems import mounted
from test_mounted import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

TURNS = 2000
"""Calls of each thread; chosen by us: together a second or two."""

KEEPS, EXCHANGES = 1, 2
"""`RENAME_NOREPLACE`, `RENAME_EXCHANGE`."""

_libc = ctypes.CDLL(None, use_errno=True)


def rename(source: Path, target: Path, flags: int) -> int:
    """`renameat2`; the number of its error, or 0."""
    done = _libc.renameat2(-100, bytes(source), -100, bytes(target), flags)
    return ctypes.get_errno() if done else 0


def together(*works: Callable[[random.Random], None]) -> None:
    """Runs all at once; raises what one of them raised."""
    raised: list[BaseException] = []
    begin = threading.Barrier(len(works))

    def run(number: int) -> None:
        begin.wait()
        try:
            works[number](random.Random(number))  # noqa: S311 (no secret)
        except BaseException as error:  # raised again by the thread that waits
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


@pytest.fixture(params=[1, 3], ids=["one answers", "three answer"])
def point(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A mount of which this number of threads answer; nothing is wrong with it at the end."""
    image, point = tmp_path / "disk.img", tmp_path / "point"
    point.mkdir()
    mounted.call(["make", image, "--size", "128 MiB", "--sparse"])
    mounted.call(["mount", "-o", f"threads={request.param}", image, point])
    yield point
    mounted.unmount(point)
    checked = json.loads(mounted.call(["check", image, "--data"]))
    assert checked["clean"], checked["findings"]


def test_each_record_that_many_append_is_there_once(point: Path) -> None:
    path = point / "log"
    path.touch()
    records = [[f"{who} {turn:>60}\n".encode() for turn in range(TURNS)] for who in range(4)]

    def append(who: int) -> Callable[[random.Random], None]:
        def work(draw: random.Random) -> None:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
            for number, record in enumerate(records[who]):
                assert os.write(descriptor, record) == len(record)
                if number % 50 == 0:
                    os.fsync(descriptor)
            os.close(descriptor)

        return work

    together(*(append(who) for who in range(4)))
    lines = path.read_bytes().splitlines(keepends=True)
    for who, written in enumerate(records):
        assert [line for line in lines if line.startswith(f"{who} ".encode())] == written


def test_names_that_change_places_keep_every_file(point: Path) -> None:
    folders = [point / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    places = [folder / str(number) for folder in folders for number in range(6)]
    for number, place in enumerate(places[::2]):
        place.write_text(f"file {number}")

    def work(draw: random.Random) -> None:
        for _ in range(TURNS):
            source, target = draw.sample(places, 2)
            failed = rename(source, target, draw.choice([KEEPS, EXCHANGES]))
            assert failed in {0, errno.ENOENT, errno.EEXIST}

    together(work, work, work, work)
    found = sorted(place.read_text() for place in places if place.exists())
    assert found == sorted(f"file {number}" for number in range(6))


def test_directories_that_are_moved_do_not_come_to_lie_in_themselves(point: Path) -> None:
    names = "abcdefgh"
    for name in names:
        (point / name).mkdir()

    def paths() -> list[Path]:
        return [Path(folder) for folder, _, _ in os.walk(point)][1:]

    def work(draw: random.Random) -> None:
        known = paths()
        for turn in range(TURNS):
            if turn % 10 == 0:
                known = paths() or known
            source = draw.choice(known)
            target = draw.choice([point, *known]) / source.name
            failed = rename(source, target, KEEPS)
            assert failed in {0, errno.ENOENT, errno.EEXIST, errno.EINVAL}

    together(work, work, work)
    assert sorted(path.name for path in paths()) == sorted(names)
    links = [path.stat().st_nlink for path in [point, *paths()]]
    assert sum(links) == 2 * len(links) + len(names)


def test_what_is_removed_while_it_is_written_is_read_to_its_end(point: Path) -> None:
    def write(draw: random.Random) -> None:
        for _ in range(TURNS // 2):
            content = draw.randbytes(draw.choice([100, 3000, 9000, 70_000]))
            path = point / str(draw.randrange(8))
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                continue
            for at in range(0, len(content), 5000):
                assert os.pwrite(descriptor, content[at : at + 5000], at) > 0
            assert os.pread(descriptor, len(content) + 1, 0) == content
            os.close(descriptor)

    def remove(draw: random.Random) -> None:
        for _ in range(TURNS * 2):
            with suppress(FileNotFoundError):
                (point / str(draw.randrange(8))).unlink()

    together(write, write, write, remove, remove)


def test_links_are_as_many_as_names(point: Path) -> None:
    file = point / "file"
    file.write_bytes(b"f" * 5000)
    places = [point / f"link {number}" for number in range(5)]

    def work(draw: random.Random) -> None:
        for _ in range(TURNS):
            place = draw.choice(places)
            with suppress(FileExistsError, FileNotFoundError):
                if draw.random() < 0.5:
                    os.link(file, place)
                else:
                    place.unlink()

    together(work, work, work)
    names = list(point.iterdir())
    assert file.stat().st_nlink == len(names)
    assert {name.stat().st_ino for name in names} == {file.stat().st_ino}


def test_a_directory_is_made_and_removed_by_one_at_a_time(point: Path) -> None:
    made, removed = [0] * 4, [0] * 4

    def work(who: int) -> Callable[[random.Random], None]:
        def turn(draw: random.Random) -> None:
            for _ in range(TURNS):
                place = point / str(draw.randrange(3))
                with suppress(FileExistsError, FileNotFoundError, OSError):
                    if draw.random() < 0.5:
                        place.mkdir()
                        made[who] += 1
                    else:
                        place.rmdir()
                        removed[who] += 1

        return turn

    together(*(work(who) for who in range(4)))
    left = list(point.iterdir())
    assert sum(made) - sum(removed) == len(left)
    assert point.stat().st_nlink == 2 + len(left)


def test_a_file_is_cut_and_written_by_whole_calls(point: Path) -> None:
    """Who reads a block sees what one call wrote, never parts of two."""
    path = point / "file"
    path.write_bytes(bytes(64 << 10))
    ends = threading.Event()

    def write(draw: random.Random) -> None:
        descriptor = os.open(path, os.O_WRONLY)
        for _ in range(TURNS):
            block = bytes([draw.randrange(1, 256)]) * 4096
            os.pwrite(descriptor, block, draw.randrange(16) * 4096)
        os.close(descriptor)
        ends.set()

    def cut(draw: random.Random) -> None:
        while not ends.is_set():
            os.truncate(path, draw.randrange(17) * 4096)

    def read(draw: random.Random) -> None:
        # Past the kernel's pages, which change while they are read, as on ext4.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 4096) as block:
            while not ends.is_set():
                length = os.preadv(descriptor, [block], draw.randrange(16) * 4096)
                assert len(set(block[:length])) <= 1
        os.close(descriptor)

    together(write, write, cut, read)
