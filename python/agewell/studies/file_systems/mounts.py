"""File systems on a loop device in memory: made, mounted, unmounted, and their requests recorded.

Every file system has a device of the same size to itself, set up as a disk is: a kernel that takes
it for one with an arm, `mq-deadline`, 128 KiB of read-ahead. What a file system asks of it goes
through the block layer, ours included, which is mounted on the device and not on the image.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agewell import _agewell
from agewell.errors import AgewellError, RunError
from agewell.filesystems import mounted

MEMORY = Path("/dev/shm")  # noqa: S108 (images in memory: what is measured is not this machine's disk)
BUFFER = "64 MiB"
"""The recorder's buffer for each processor; chosen by us: a second of requests of the quickest
load."""

_QUEUE: Mapping[str, str] = {"rotational": "1", "scheduler": "mq-deadline", "read_ahead_kb": "128"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A file system that takes part.

    Attributes:
        name: As in keys.
        make: The command that makes it on a device; ours has none.
        mount: The command that mounts it, without device and directory.
        options: Of our mount.
        needs: Programs.
    """

    name: str
    make: tuple[str, ...] = ()
    mount: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether it is agewell's."""
        return not self.make

    def missing(self) -> str:
        """Why it cannot be made and mounted here; empty if it can."""
        for program in self.needs:
            if shutil.which(program) is None:
                return f"there is no {program} here"
        return ""


def _kernel(name: str, *options: str) -> Kind:
    mount = ("mount", "-t", name, "-o", "noatime")
    return Kind(name, (f"mkfs.{name}", *options), mount, needs=(f"mkfs.{name}",))


OURS = Kind("ours")
"""With prices of the disk on which the requests are replayed: those of memory would be learnt
else."""

FIXED = tuple(Kind(means, options=(f"means={means}",)) for means in ("clean", "plug", "thread"))
"""Ours with one way of making room."""

KERNEL = (
    # Inodes for files as small as mail; nothing is left for when it is mounted.
    _kernel(
        "ext4", "-q", "-F", "-m", "0", "-i", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"
    ),
    _kernel("xfs", "-q", "-f"),
    _kernel("btrfs", "-q", "-f"),
)
FUSE = (
    Kind(
        "fuse2fs",
        KERNEL[0].make,
        ("fuse2fs", "-o", "rw,fakeroot"),
        needs=("mkfs.ext4", "fuse2fs"),
    ),
    Kind("redoxfs", ("redoxfs-mkfs",), ("redoxfs",), needs=("redoxfs-mkfs", "redoxfs")),
)


def missing() -> str:
    """Why nothing can be made, mounted and recorded here; empty if it can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "only root can mount and record file systems; run it as root"
    for program in ("losetup", "mount", "umount"):
        if shutil.which(program) is None:
            return f"there is no {program} here; install it"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse here"
    try:
        with device(1 << 20) as loop, tempfile.TemporaryDirectory() as folder:
            _agewell.record(loop.path, Path(folder, "probe.parquet"), lambda _text: False)
    except AgewellError as error:
        return f"nothing can be recorded here: {error}"
    return ""


def do(*command: str | Path) -> str:
    """Run a command; what it prints.

    Raises:
        RunError: It fails, with the last line of what it said.
    """
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or f"it ended with {done.returncode}").splitlines()[-1]
        raise RunError(f"{command[0]}: {said}")
    return done.stdout.strip()


@dataclass(slots=True)
class Device:
    """A loop device over a file in memory.

    Attributes:
        path: `/dev/loopN`.
        point: Where file systems on it are mounted.
        sectors: Its size, of 512 bytes.
        kind: The file system that is mounted, if one is.
    """

    path: str
    point: Path
    sectors: int
    kind: Kind | None = field(default=None)

    def make(self, kind: Kind) -> None:
        """Make a file system on it, in place of what is there."""
        if kind.is_ours:
            mounted.call(["make", "--force", self.path])
        else:
            do(*kind.make, self.path)

    def mount(self, kind: Kind) -> None:
        """Mount the file system on it."""
        if kind.is_ours:
            words = [word for option in kind.options for word in ("-o", option)]
            mounted.call(["mount", self.path, self.point, *words])
        else:
            do(*kind.mount, self.path, self.point)
        self.kind = kind

    def unmount(self) -> None:
        """Unmount it: everything is on the device then."""
        kind, self.kind = self.kind, None
        if kind is not None and kind.is_ours:
            mounted.unmount(self.point)
        elif kind is not None:
            do("umount", self.point)

    def room_bytes(self) -> int:
        """Bytes that `df` says are to be had."""
        found = os.statvfs(self.point)
        return found.f_bavail * found.f_frsize

    @contextlib.contextmanager
    def recorded(self, trace: Path) -> Iterator[dict[str, Any]]:
        """Record its requests meanwhile.

        Args:
            trace: Where they are kept.

        Yields:
            What was recorded, once it is over.

        Raises:
            RunError: It cannot be recorded, or the kernel lost an event.
        """
        begun, ended = threading.Event(), threading.Event()
        said: dict[str, Any] = {}
        failed: list[Exception] = []

        def look(_text: str) -> bool:
            begun.set()
            return not ended.is_set()

        def record() -> None:
            try:
                said.update(json.loads(_agewell.record(self.path, trace, look, buffer=BUFFER)))
            except Exception as error:
                failed.append(error)
                begun.set()

        recorder = threading.Thread(target=record)
        recorder.start()
        begun.wait()
        try:
            if not failed:
                yield said
        finally:
            ended.set()
            recorder.join()
        if failed:
            raise failed[0]
        if said["lost_events"]:
            raise RunError(f"{trace}: the kernel lost {said['lost_events']} events")


@contextlib.contextmanager
def device(size_bytes: int) -> Iterator[Device]:
    """A device of its own; it is gone afterwards, and what is mounted on it."""
    with tempfile.TemporaryDirectory(
        prefix="agewell-", dir=MEMORY if MEMORY.is_dir() else None
    ) as folder:
        image, point = Path(folder, "image"), Path(folder, "point")
        point.mkdir()
        with image.open("wb") as file:
            file.truncate(size_bytes)
        path = do("losetup", "--find", "--show", image)
        try:
            queue = Path("/sys/block", Path(path).name, "queue")
            for name, value in _QUEUE.items():
                with contextlib.suppress(OSError):
                    (queue / name).write_text(value)
            made = Device(path, point, size_bytes // 512)
            try:
                yield made
            finally:
                if made.kind is not None:
                    made.unmount()
        finally:
            do("losetup", "--detach", path)
