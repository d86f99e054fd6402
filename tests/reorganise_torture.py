"""Reorganising under fire: killed, interrupted, out of room, shut down, and with others writing.

    python tests/reorganise_torture.py ext4 --runs 1000 --seed 1

Each run takes a copy of an image with scattered files, hard links, holes, preallocated space and
extended attributes, starts `agewell reorganise` on it beside a program that writes, and after a
time drawn at random stops it in a way drawn at random. Then it holds against what was there before:
every byte, size, time, attribute and number of links of the files that the program does not write;
of those that it does, what it wrote. The file system's own check must find nothing, and a second
reorganisation must go through and leave the same. `tests/test_reorganise.py` makes a few such runs.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

IMAGE_BYTES = {"ext4": 96 << 20, "xfs": 320 << 20}
"""Sizes of the images: the least that their mkfs take, or a little more."""

MAKE_OPTIONS: dict[str, list[str]] = {"ext4": ["-b", "4096"], "xfs": []}
"""What mkfs is given: a small ext4 has blocks of 1 KiB otherwise, which cannot be moved."""

FILL_SHARE = {"ext4": 0.75, "xfs": 0.25}
"""How full they are made: files of some tens of MiB."""

CHECKS = {
    "ext4": ["e2fsck", "-f", "-n"],
    "xfs": ["xfs_repair", "-n"],
}

SHUTDOWN = 0x8004587D
"""`FS_IOC_SHUTDOWN`, `_IOR('X', 125, __u32)`: ext4 and xfs."""

ENDINGS = ("none", "interrupt", "kill", "shutdown", "shutdown-unflushed", "full", "kill-full")
"""How a run is disturbed."""

WRITER_FILES = 12
"""Files that the other program writes."""


class BrokenError(AssertionError):
    """Something changed that must not."""


@dataclass
class Outcome:
    """What one run did."""

    ending: str
    delay_seconds: float
    moved: bool
    problems: list[str] = field(default_factory=list)


def run(*command: str) -> str:
    """Run a command to its end."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


@contextlib.contextmanager
def mounted(image: Path, mount: Path) -> Iterator[Path]:
    """The image, mounted."""
    run("mount", "-o", "loop", str(image), str(mount))
    try:
        yield mount
    finally:
        for attempt in range(50):
            done = subprocess.run(["umount", str(mount)], capture_output=True, check=False)
            if done.returncode == 0:
                break
            time.sleep(0.05 * (attempt + 1))


def populate(root: Path, kind: str, draw: random.Random) -> None:
    """Scattered files of every sort."""
    usage = os.statvfs(root)
    wanted = int(usage.f_blocks * usage.f_frsize * FILL_SHARE[kind])
    opened = []
    written = 0
    for number in range(400):
        folder = root / f"d{number % 20:02}"
        folder.mkdir(exist_ok=True)
        opened.append(os.open(folder / f"f{number:04}", os.O_RDWR | os.O_CREAT, 0o640))
    while written < wanted:
        for descriptor in draw.sample(opened, len(opened)):
            length = draw.choice(
                (100, 4096, 5000, 12288, 40000, 200000 if draw.random() < 0.1 else 3000)
            )
            os.write(descriptor, draw.randbytes(length))
            written += -(-length // 4096) * 4096
            if written >= wanted:
                break
        os.sync()
    for descriptor in opened:
        os.close(descriptor)
    vary(root, draw)


def vary(root: Path, draw: random.Random) -> None:
    """Remove a quarter, so that what is free is scattered too; make some of the rest special."""
    names = sorted(path for path in root.rglob("f*") if path.is_file())
    for path in draw.sample(names, len(names) // 4):
        path.unlink()
    names = [path for path in names if path.exists()]
    for path in names[::17]:
        os.link(path, path.with_name(f"link-{path.name}"))
    for path in names[::11]:
        os.setxattr(path, "user.note", draw.randbytes(30))
    for path in names[::13]:
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(size + draw.randrange(1, 200000))
            file.seek(0, os.SEEK_END)
            file.write(draw.randbytes(7000))
    for path in names[::19]:
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size + 60000)
    for path in names[::7]:
        os.utime(path, ns=(draw.randrange(1 << 60), draw.randrange(1 << 60)))
    writer = root / "writer"
    writer.mkdir()
    for number in range(WRITER_FILES):
        (writer / f"w{number}").write_bytes(draw.randbytes(draw.randrange(1, 300000)))
    os.sync()


def manifest(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything about every file but those of the writer."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith(("writer", "lost+found", "filler")):
            continue
        status = path.lstat()
        entry: list[object] = [
            status.st_ino,
            stat.S_IFMT(status.st_mode),
            stat.S_IMODE(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_nlink,
        ]
        if stat.S_ISREG(status.st_mode):
            data = path.read_bytes()
            attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
            entry += [
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
                hashlib.sha256(data).hexdigest(),
                sorted(attributes.items()),
                holes(path, len(data)),
            ]
        found[name] = tuple(entry)
    return found


def holes(path: Path, size: int) -> tuple[tuple[int, int], ...]:
    """Where a file has no data, as `SEEK_HOLE` says."""
    gaps = []
    with path.open("rb") as file:
        at = 0
        while at < size:
            hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            if hole >= size:
                break
            try:
                at = os.lseek(file.fileno(), hole, os.SEEK_DATA)
            except OSError:
                at = size
            gaps.append((hole, at))
    return tuple(gaps)


def compare(before: dict[str, tuple[object, ...]], root: Path, when: str) -> None:
    """Raise if anything is not as it was."""
    after = manifest(root)
    if before.keys() != after.keys():
        raise BrokenError(f"{when}: other files: {sorted(before.keys() ^ after.keys())[:5]}")
    for name, entry in before.items():
        if entry != after[name]:
            different = [
                pair for pair in zip(entry, after[name], strict=False) if pair[0] != pair[1]
            ]
            raise BrokenError(f"{when}: {name} changed: {str(different)[:300]}")


class Writer(threading.Thread):
    """Writes files of its own while they are moved, and knows what they hold."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.draw = draw
        self.ends = threading.Event()
        self.holds = {path.name: bytearray(path.read_bytes()) for path in folder.iterdir()}
        self.synced = {name: bytes(data) for name, data in self.holds.items()}
        self.uncertain: set[str] = set()
        """Files of which a write failed: how much of it is there is not known."""

    def run(self) -> None:
        while not self.ends.is_set():
            name = self.draw.choice(sorted(self.holds))
            if name in self.uncertain:
                time.sleep(0.001)
                continue
            data = self.holds[name]
            try:
                with (self.folder / name).open("r+b") as file:
                    at = self.draw.randrange(len(data) + 1)
                    new = self.draw.randbytes(self.draw.randrange(1, 20000))
                    file.seek(at)
                    file.write(new)
                    file.flush()
                    data[at : at + len(new)] = new
                    if self.draw.random() < 0.2:
                        cut = self.draw.randrange(1, len(data) + 1)
                        file.truncate(cut)
                        del data[cut:]
                    if self.draw.random() < 0.3:
                        os.fsync(file.fileno())
                        self.synced[name] = bytes(data)
            except OSError:
                # Out of room, or shut down: what it holds is checked only where it is known.
                self.uncertain.add(name)
            time.sleep(self.draw.random() * 0.002)

    def check(self, folder: Path) -> None:
        """Raise if a file does not hold what was written to it."""
        for name, data in self.holds.items():
            if name not in self.uncertain and (folder / name).read_bytes() != bytes(data):
                raise BrokenError(f"what was written to {name} while it was moved is not there")


def shut_down(root: Path, flags: int) -> None:
    """Stop the file system as a failure of power would."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", flags))
    finally:
        os.close(descriptor)


def fill(root: Path) -> None:
    """Take all room that is left."""
    with contextlib.suppress(OSError), (root / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))


def check(kind: str, image: Path) -> None:
    """Raise if the file system's own check finds anything."""
    done = subprocess.run([*CHECKS[kind], str(image)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BrokenError(
            f"the check of {kind} says {done.returncode}: {(done.stdout + done.stderr)[-600:]}"
        )


def reorganiser(root: Path, by: str) -> subprocess.Popen[bytes]:
    """`agewell reorganise`, started."""
    command = [
        sys.executable,
        "-m",
        "agewell",
        "reorganise",
        str(root),
        "--anyway",
        "--quiet",
        "--by",
        by,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def one_run(kind: str, template: Path, folder: Path, seed: int) -> Outcome:
    """One run; raises `BrokenError` if anything is broken."""
    draw = random.Random(seed)  # noqa: S311 (no secrets)
    outcome = Outcome(draw.choice(ENDINGS), draw.random() * 1.5, moved=False)
    image, mount = folder / "image", folder / "mount"
    run("cp", "--sparse=always", str(template), str(image))
    mount.mkdir(exist_ok=True)
    with mounted(image, mount):
        before = manifest(mount)
        writer = Writer(mount / "writer", draw)
        writer.start()
        process = reorganiser(mount, draw.choice(("names", "directory")))
        time.sleep(0.3 + outcome.delay_seconds)
        if outcome.ending == "interrupt":
            process.send_signal(signal.SIGINT)
        elif outcome.ending == "kill":
            process.kill()
        elif outcome.ending.startswith("shutdown"):
            shut_down(mount, 2 if outcome.ending == "shutdown-unflushed" else 1)
        elif outcome.ending in ("full", "kill-full"):
            fill(mount)
            if outcome.ending == "kill-full":
                process.kill()
        _, said = process.communicate(timeout=120)
        writer.ends.set()
        writer.join()
        if b"Traceback" in said or b"panicked" in said:
            raise BrokenError(f"it says {said[-500:]!r}")
        if not outcome.ending.startswith("shutdown"):
            (mount / "filler").unlink(missing_ok=True)
            compare(before, mount, f"after {outcome.ending}")
            writer.check(mount / "writer")
    with mounted(image, mount):
        compare(before, mount, f"mounted again after {outcome.ending}")
        if not outcome.ending.startswith("shutdown"):
            writer.check(mount / "writer")
        used = os.statvfs(mount).f_bfree
        process = reorganiser(mount, "names")
        _, said = process.communicate(timeout=120)
        if process.returncode != 0:
            raise BrokenError(f"the next reorganisation ends with {process.returncode}: {said!r}")
        compare(before, mount, "after the next reorganisation")
        os.sync()
        outcome.moved = os.statvfs(mount).f_bfree != used
    check(kind, image)
    return outcome


def torture(kind: str, runs: int, seed: int, work: Path | None = None) -> list[Outcome]:
    """Make `runs` runs; raises at the first that breaks anything."""
    folder = Path(tempfile.mkdtemp(prefix="agewell-torture-", dir=work))
    outcomes = []
    try:
        template, mount = folder / "template", folder / "mount"
        mount.mkdir()
        with template.open("wb") as file:
            file.truncate(IMAGE_BYTES[kind])
        run(f"mkfs.{kind}", "-q", *MAKE_OPTIONS[kind], str(template))
        with mounted(template, mount):
            populate(mount, kind, random.Random(seed))  # noqa: S311 (no secrets)
        for number in range(runs):
            try:
                outcomes.append(one_run(kind, template, folder, seed * 1_000_003 + number))
            except BrokenError as why:
                raise BrokenError(f"{kind}, seed {seed}, run {number}: {why}") from why
            if sys.stderr.isatty() or number % 10 == 9:
                print(f"{kind}: {number + 1} of {runs}", file=sys.stderr, flush=True)
    finally:
        subprocess.run(["umount", "-q", str(folder / "mount")], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def main() -> None:
    """Make runs and say how they were disturbed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=IMAGE_BYTES)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path)
    asked = parser.parse_args()
    outcomes = torture(asked.kind, asked.runs, asked.seed, asked.work)
    for ending in ENDINGS:
        count = sum(outcome.ending == ending for outcome in outcomes)
        if count:
            print(f"{asked.kind}: {count} runs ended by {ending}: nothing changed")


if __name__ == "__main__":
    main()
