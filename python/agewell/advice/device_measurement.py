"""Access time and bandwidth of a real disk, measured by reading it; nothing is ever written.

The file or block device is opened read-only, with O_DIRECT where the system allows it, so that the
page cache answers nothing. Two numbers are taken, those of Matthews 1999, §5.2.2:

* bandwidth: long reads one behind the other, at places spread over the whole of it;
* access time: the mean time of one small read at a random place, less its transfer.

Reads stand in for writes, which a measurement that must not harm anything cannot make. On a disk
with an arm the two differ by the time that the head settles; on flash they can differ much more.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agewell.errors import InputError

BLOCK_BYTES = 4096
"""Size and alignment of a random read; O_DIRECT asks for whole logical blocks, and no disk in use
has larger ones."""

RANDOM_READS = 200
"""Chosen by us: the mean of 200 rotational delays is known to 4 %."""

PIECE_BYTES = 4 << 20
"""One long read; chosen by us: far above the half-power point of any disk with an arm."""

PLACES = 4
"""Where long reads begin, spread over the disk so that a zoned one is seen whole; chosen by us."""

PIECES_PER_PLACE = 4
"""So that 64 MiB are read one behind the other; chosen by us."""

SMALLEST_BYTES = 256 << 20
"""Less than that says little of a disk's arm, and fits into a drive's own cache; chosen by us."""

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class DeviceMeasurement:
    """What a measurement found.

    Attributes:
        path: What was read.
        size_bytes: How large it is.
        direct: Whether the page cache was passed by (O_DIRECT); if not, parts of it may have
            answered.
        access_ns: Mean time of a random read of 4 KiB, less its transfer; at least 1.
        bandwidth_bytes_per_s: Rate of long reads.
        random_reads: How many random reads the mean is over.
        sequential_bytes: How much was read in long reads.
    """

    path: str
    size_bytes: int
    direct: bool
    access_ns: int
    bandwidth_bytes_per_s: int
    random_reads: int
    sequential_bytes: int

    def sentence(self) -> str:
        """What was measured and how, for people."""
        how = "past the page cache" if self.direct else "through the page cache, which may help it"
        return (
            f"measured on {self.path}, read-only, {how}: {self.random_reads} random reads of "
            f"4 KiB give an access time of {self.access_ns / 1e6:.4g} ms, "
            f"{self.sequential_bytes >> 20} MiB of reads of {PIECE_BYTES >> 20} MiB give "
            f"{self.bandwidth_bytes_per_s / 1e6:.1f} MB/s; writes are taken to cost the same"
        )


def measure(
    path: Path,
    *,
    seed: int = 1,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> DeviceMeasurement:
    """Measure a block device or a large file by reading it.

    Args:
        path: The block device or file; opened read-only.
        seed: Of the places that are read.
        clock: Gives the time in nanoseconds; another one for tests.

    Raises:
        InputError: It cannot be read, is neither a file nor a block device, is too small, or has
            holes that no disk is asked for.
    """
    with _opened(path) as (descriptor, direct):
        size_bytes = _size(descriptor, path)
        # An anonymous mapping begins at a page, as O_DIRECT wants its buffers to.
        with mmap.mmap(-1, PIECE_BYTES) as buffer, memoryview(buffer) as view:
            reader = _Reader(descriptor, view, path, clock)
            bandwidth = _bandwidth(reader, size_bytes)
            access_ns = _access_ns(reader, size_bytes, bandwidth, seed)
    return DeviceMeasurement(
        path=str(path),
        size_bytes=size_bytes,
        direct=direct,
        access_ns=access_ns,
        bandwidth_bytes_per_s=bandwidth,
        random_reads=RANDOM_READS,
        sequential_bytes=PLACES * PIECES_PER_PLACE * PIECE_BYTES,
    )


class _Reader:
    """Timed reads into one page-aligned buffer."""

    def __init__(
        self, descriptor: int, view: memoryview, path: Path, clock: Callable[[], int]
    ) -> None:
        self._descriptor = descriptor
        self._view = view
        self._path = path
        self._clock = clock

    def read_ns(self, offset_bytes: int, length_bytes: int) -> int:
        """Time of one read, in nanoseconds."""
        with self._view[:length_bytes] as part:
            begun_ns = self._clock()
            try:
                got_bytes = os.preadv(self._descriptor, [part], offset_bytes)
            except OSError as error:
                raise InputError(
                    f"{self._path}: byte {offset_bytes}: cannot be read: {error.strerror}"
                ) from error
            taken_ns = self._clock() - begun_ns
        if got_bytes != length_bytes:
            raise InputError(
                f"{self._path}: byte {offset_bytes}: {got_bytes} bytes instead of {length_bytes}; "
                "it changed while it was measured"
            )
        return taken_ns


def _bandwidth(reader: _Reader, size_bytes: int) -> int:
    """Rate of long reads in bytes per second, at least 1."""
    run_bytes = PIECES_PER_PLACE * PIECE_BYTES
    taken_ns = 0
    for place in range(PLACES):
        # One block is left before each run: reading it, untimed, brings the arm there.
        room_bytes = size_bytes - run_bytes - BLOCK_BYTES
        first = room_bytes * place // (PLACES - 1) // BLOCK_BYTES * BLOCK_BYTES
        reader.read_ns(first, BLOCK_BYTES)
        for piece in range(PIECES_PER_PLACE):
            taken_ns += reader.read_ns(first + BLOCK_BYTES + piece * PIECE_BYTES, PIECE_BYTES)
    return max(PLACES * run_bytes * _NS_PER_S // max(taken_ns, 1), 1)


def _access_ns(reader: _Reader, size_bytes: int, bandwidth: int, seed: int) -> int:
    """Mean time of a random read less its transfer, in nanoseconds, at least 1."""
    places = random.Random(seed)  # noqa: S311 (places to read, no secret)
    blocks = size_bytes // BLOCK_BYTES
    taken_ns = sum(
        reader.read_ns(places.randrange(blocks) * BLOCK_BYTES, BLOCK_BYTES)
        for _ in range(RANDOM_READS)
    )
    transfer_ns = BLOCK_BYTES * _NS_PER_S // bandwidth
    return max(taken_ns // RANDOM_READS - transfer_ns, 1)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, bool]]:
    """The descriptor, and whether it reads past the page cache."""
    # Without O_NONBLOCK the opening of a pipe would wait for its writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor, direct = _open(path, flags)
    except OSError as error:
        raise InputError(f"{path}: cannot be opened for reading: {error.strerror}") from error
    try:
        if not direct:
            # What the page cache holds of it is dropped, as far as it is clean.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        yield descriptor, direct
    finally:
        os.close(descriptor)


def _open(path: Path, flags: int) -> tuple[int, bool]:
    if not (stat.S_ISREG(path.stat().st_mode) or stat.S_ISBLK(path.stat().st_mode)):
        raise InputError(f"{path}: is neither a file nor a block device")
    direct: int | None = getattr(os, "O_DIRECT", None)
    if direct is not None:
        try:
            return os.open(path, flags | direct), True
        except OSError as error:
            # A file system without direct reads says so when the file is opened.
            if error.errno != errno.EINVAL:
                raise
    return os.open(path, flags), False


def _size(descriptor: int, path: Path) -> int:
    """Size in whole blocks, in bytes, of something that can be measured."""
    size_bytes = os.lseek(descriptor, 0, os.SEEK_END) // BLOCK_BYTES * BLOCK_BYTES
    if size_bytes < SMALLEST_BYTES:
        raise InputError(
            f"{path}: {size_bytes} bytes are too few to measure a disk on; "
            f"give a block device or a file of {SMALLEST_BYTES >> 20} MiB or more"
        )
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_blocks * 512 < size_bytes:
        raise InputError(
            f"{path}: has holes, which no disk is asked for; give a file that was written in full"
        )
    return size_bytes
