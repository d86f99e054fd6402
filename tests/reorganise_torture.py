"""Reorganising under fire: killed, interrupted, out of room, without power, others writing.

    python tests/reorganise_torture.py ext4 --runs 1000 --seed 1

A run follows from its seed. It takes a copy of an image with files of every sort, some of which
other programs write, starts `agewell reorganise` on it beside them, and at a moment drawn at random
stops it: by a signal, by shutting the file system down, or by taking the image as it is at that
moment, as a failure of power leaves it. Then it holds against what was there before: every byte,
size, time, attribute, hole and number of links of the files that no one wrote; of those that were
written, what was written, and after a failure of power what was made durable. The file system's own
check must find nothing, a second reorganisation must go through and leave the same, and no file
without a name may be left. Ten runs in a row have the same tree. `make reorganise-torture` makes
RUNS runs of each file system, `tests/test_reorganise_torture.py` a few.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import recorded_reads
import reorganise_torture_tree as tree
from reorganise_torture_images import (
    KINDS,
    MOUNT_OPTIONS,
    Broken,
    Forest,
    books,
    check,
    copy_now,
    make_forest,
    mounted,
    nameless_on_btrfs,
    run,
    workshop,
)
from reorganise_torture_tree import Record, differences, record
from reorganise_torture_writers import SORTS, Writer

SHUTDOWN = 0x8004587D
"""`FS_IOC_SHUTDOWN`, `_IOR('X', 125, __u32)`: ext4 and xfs."""

SHUTDOWN_FLAGS = {"shutdown": 0, "shutdown-logged": 1, "shutdown-unlogged": 2}
"""Everything is written before; the log is; nothing is."""

ENDINGS = ("none", "interrupt", "terminate", "kill", "kill", "power", "power", *SHUTDOWN_FLAGS)
"""How a run is ended; on btrfs, which cannot be shut down, `power` stands for it."""

MEANWHILE = (
    "nothing",
    "nothing",
    "trim",
    "freeze",
    "again",
    "defragment",
    "sync",
    "snapshot",
    "balance",
    "rename",
)
"""What else is done to the file system meanwhile; some where that is not, nothing."""


def is_lost_without_us(kind: str, options: str, ending: str, meanwhile: str) -> bool:
    """Whether files are lost so without any reorganisation, as Linux 6.18 is: not drawn together.

    Shutting ext4 down gives up a transaction of which the freed blocks may be discarded already:
    by `fstrim`, where fsync'ed files that were replaced were all zeros after 8 of 40 such
    shutdowns, or by the mount option, where e4defrag left an extent node of zeros in 1 of 60. And
    e4defrag writes no data before it moves: with `data=writeback` contents had changed after 13
    of 15 failures of power. xfs_fsr exchanges all extents of two files; where the log ends amid
    that, recovery may refuse the inode of its own file without a name (flags 0x209, the owner of a
    tree changed), and with it the mount.
    """
    crashes = ending == "power" or ending in SHUTDOWN_FLAGS
    if kind == "xfs":
        return crashes and meanwhile == "defragment"
    if kind != "ext4":
        return False
    discards = meanwhile == "trim" or "discard" in options
    return (ending in ("shutdown-logged", "shutdown-unlogged") and discards) or (
        crashes and meanwhile == "defragment" and "data=writeback" in options
    )


OTHER_TOOLS = {
    ("trim", "ext4"): ["fstrim", "{mount}"],
    ("trim", "xfs"): ["fstrim", "{mount}"],
    ("trim", "btrfs"): ["fstrim", "{mount}"],
    ("defragment", "ext4"): ["e4defrag", "{mount}"],
    ("defragment", "xfs"): ["xfs_fsr", "{mount}"],
    ("snapshot", "btrfs"): [
        *("btrfs", "-q", "subvolume", "snapshot", "-r", "{mount}", "{mount}/meanwhile")
    ],
    ("balance", "btrfs"): ["btrfs", "balance", "start", "-d", "{mount}"],
}
"""What else is run meanwhile."""

RUNS_OF_TREE = 10

SECONDS_MAX = 240
"""A reorganisation of so little that takes longer hangs."""

BUDGETS = {"btrfs": (0.5, ("1 MB", "20 MB", "40 MB", "100 MB"))}
"""How many runs have a budget, and which, where it is not a tenth: with one btrfs makes chunks."""

LOST_BYTES_MAX = {"ext4": 1 << 20, "xfs": 4 << 20, "xfs-plain": 4 << 20, "btrfs": 48 << 20}
"""What metadata may take more than before; a donor that were left behind is found by its inode."""


@dataclass
class Outcome:
    """What one run did."""

    seed: int
    ending: str
    meanwhile: str
    writers: tuple[str, ...]
    full: bool
    amid: bool = False
    """Whether files were being moved at the moment of the disturbance."""
    moved: int = 0
    """Files of which something lies elsewhere after the disturbance."""
    refused: bool = False

    def words(self) -> str:
        full = ", no room" if self.full else ""
        writers = " ".join(self.writers) or "none"
        return f"{self.ending}, meanwhile {self.meanwhile}{full}, writers {writers}"


@dataclass
class Crash:
    """An image as it was at a moment, and how long the journals were before and after."""

    image: Path
    places: list[tuple[int, int]]


def reorganiser(root: Path, *options: str) -> subprocess.Popen[bytes]:
    """`agewell reorganise`, started."""
    command = [
        sys.executable,
        "-m",
        "agewell",
        "reorganise",
        str(root),
        "--anyway",
        "--quiet",
        *options,
    ]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def ended(process: subprocess.Popen[bytes]) -> bytes:
    """What a reorganisation says when it has ended."""
    try:
        _, said = process.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired as why:
        process.kill()
        process.communicate()
        raise Broken(f"it did not end within {SECONDS_MAX} s") from why
    if b"Traceback" in said or b"panicked" in said:
        raise Broken(f"it says {said[-900:].decode(errors='replace')}")
    if process.returncode != 0 and process.returncode > 0 and len(said.splitlines()) > 3:
        raise Broken(f"it ends with more than a line: {said.decode(errors='replace')}")
    return said


# --- one run -------------------------------------------------------------------------------------


class Run:
    """One run, from its seed."""

    def __init__(self, forest: Forest, folder: Path, seed: int, *, swap: bool = False) -> None:
        self.forest, self.folder, self.seed, self.swap = forest, folder, seed, swap
        self.kind = forest.kind
        self.draw = random.Random(f"run {seed}")  # noqa: S311
        self.image, self.mount = folder / "image", folder / "mount"
        (folder / "plan.json").unlink(missing_ok=True)
        self.crashes: list[Crash] = []
        self.writers: list[Writer] = []
        self.others: list[subprocess.Popen[bytes]] = []
        endings = [end for end in ENDINGS if self.kind != "btrfs" or end not in SHUTDOWN_FLAGS]
        sorts = [sort for sort in SORTS if sort != "clone" or self.kind in {"xfs", "btrfs"}]
        count = self.draw.choice((0, 1, 2, 3, 5))
        self.outcome = Outcome(
            seed,
            self.draw.choice(endings),
            self.draw.choice(MEANWHILE),
            tuple(self.draw.sample(sorts, count)),
            full=self.draw.random() < 0.15,
        )
        self.options = self.draw.choice(MOUNT_OPTIONS[self.kind])
        if is_lost_without_us(self.kind, self.options, self.outcome.ending, self.outcome.meanwhile):
            self.outcome.ending = "kill"
        self.but = self._not_compared()
        self.swapped = False
        if self.outcome.meanwhile == "rename":
            # What others name must be there, and everything is back in its place at the end.
            self.outcome.writers = ()
            if self.outcome.ending == "power" or self.outcome.ending in SHUTDOWN_FLAGS:
                self.outcome.ending = "kill"
        if "data=writeback" in self.options:
            # After a failure of power it shows what lay there before: not what is looked for.
            self.outcome.writers = tuple(set(self.outcome.writers) & {"read"})
        if "--mixed" in self.forest.made:
            # Full, it loses what was appended: without any reorganisation in 3 of 14 runs (92441).
            self.outcome.full = False
        if self.kind == "btrfs" and self.outcome.full:
            # Cut and punched on a full btrfs, files hold in memory what they do not after the next
            # mount: without any reorganisation in 8 of 8 runs of seed 60451 (Linux 6.18).
            writers = self.outcome.writers
            self.outcome.writers = tuple(sort for sort in writers if sort != "cut")

    def _not_compared(self) -> frozenset[str]:
        if self.outcome.meanwhile == "defragment":
            # Those tools read files in the plain way, and on xfs copies by reference come apart.
            return frozenset({"atime", "shape"} if self.kind == "xfs" else {"atime"})
        if self.kind == "btrfs" and (
            self.options == "autodefrag" or self.outcome.meanwhile == "balance"
        ):
            # A balance has extents shared by a tree of its own until that is dropped.
            return frozenset({"shape"})
        return frozenset()

    def make(self) -> Outcome:
        """Make it; raises `Broken` if anything is."""
        copy_now(self.forest.image, self.image)
        with mounted(self.image, self.mount, self.options):
            try:
                self._disturb()
            finally:
                problems = self._end_all()
            if problems:
                raise Broken("; ".join(problems))
            down = self.outcome.ending in SHUTDOWN_FLAGS
            if not down:
                self._compare("as it ended", crash=None)
        for number, crash in enumerate(self.crashes):
            last = number == len(self.crashes) - 1
            if crash.image != self.image:
                crash.image.replace(self.folder / "crashed")
                self.image.replace(self.folder / "aside")
                (self.folder / "crashed").replace(self.image)
                self._verify(crash, again=last)
                (self.folder / "aside").replace(self.image)
            else:
                self._verify(crash, again=True)
        if not down:
            self._verify(None, again=True)
        return self.outcome

    # --- the disturbance

    def _disturb(self) -> None:
        draw, outcome = self.draw, self.outcome
        arguments = self._arguments()
        if draw.random() < 0.15:
            # Planned before others write, carried out after.
            plan = str(self.folder / "plan.json")
            ended(reorganiser(self.mount, "--dry-run", "--plan", plan))
            if Path(plan).exists():
                arguments = ["--apply", plan]
        self._start_writers()
        with contextlib.ExitStack() as stack:
            self._start_guests(stack)
            process = reorganiser(self.mount, *arguments)
            try:
                self._wait_for_moves(process)
                outcome.amid = process.poll() is None
                self._meanwhile()
                if outcome.full:
                    self._fill()
                self._end(process)
                said = ended(process)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.communicate()
        quiet = (
            outcome.ending in {"none", "power"}
            and not outcome.full
            and outcome.meanwhile in {"nothing", "rename"}
        )
        if self._refused(said):
            outcome.refused = True
        elif process.returncode != 0 and quiet:
            raise Broken(f"it ends with {process.returncode}: {said.decode(errors='replace')}")

    def _start_writers(self) -> None:
        written = sorted(
            os.fsencode(path.relative_to(self.mount))
            for path in self.mount.rglob(f"{tree.WRITTEN.decode()}*")
        )
        for number, sort in enumerate(self.outcome.writers):
            journal = self.folder / f"journal{number}"
            journal.unlink(missing_ok=True)
            writer = Writer(
                sort,
                self.mount,
                written[number * 4 : number * 4 + 4],
                journal,
                self.draw.randrange(1 << 30),
            )
            writer.start(self.forest.before)
            self.writers.append(writer)

    def _start_guests(self, stack: contextlib.ExitStack) -> None:
        if self.draw.random() < 0.3:
            stack.enter_context(self._unlinked())
        if self.draw.random() < 0.3:
            stack.enter_context(self._program())
        healthy = self.outcome.ending not in SHUTDOWN_FLAGS
        if self.swap and healthy and self.draw.random() < 0.3:
            stack.enter_context(self._swapping())

    def _refused(self, said: bytes) -> bool:
        """Whether it says that such a file system cannot be reorganised, and rightly so."""
        if self.kind == "btrfs" and b"data and metadata together" in said:
            return "--mixed" in self.forest.made
        fast = "fast_commit" in self.forest.made and b"fast commits" in said
        plain = self.kind == "xfs-plain" and b"reflink" in said
        return fast or plain

    def _arguments(self) -> list[str]:
        draw = self.draw
        arguments = ["--by", draw.choice(("names", "directory", str(self._recording())))]
        if draw.random() < 0.3:
            arguments += ["--rate", draw.choice(("20 MB/s", "60 MB/s"))]
        if draw.random() < 0.2:
            arguments += ["--for", draw.choice(("1 s", "3 s"))]
        share, budgets = BUDGETS.get(self.kind, (0.1, ("1 MB", "10 MB")))
        if draw.random() < share:
            arguments += ["--budget", draw.choice(budgets)]
        return arguments

    def _recording(self) -> Path:
        """A drawn recording of reads of the files as they lie; long ones are read in parts."""
        recording = self.folder / "reads.trace"
        extents = recorded_reads.places(self.mount, self.folder)
        recorded_reads.write(recording, extents, recorded_reads.drawn(extents, self.draw))
        return recording

    def _wait_for_moves(self, process: subprocess.Popen[bytes]) -> None:
        """Until it holds a file without a name, mostly, and a while longer."""
        # An interpreter that is interrupted while it starts says where.
        if self.draw.random() < 0.9 or self.outcome.ending == "interrupt":
            until = time.monotonic() + 20
            while (
                process.poll() is None
                and time.monotonic() < until
                and not self._has_donor(process.pid)
            ):
                time.sleep(0.003)
        time.sleep(self.draw.random() ** 2 * self.draw.choice((0.02, 0.2, 0.8)))

    def _has_donor(self, process: int) -> bool:
        place = str(self.mount)
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208 (a race with its end)
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{process}/fd/{name}")  # noqa: PTH115
                    if target.startswith(place) and target.endswith("(deleted)"):
                        return True
        return False

    def _meanwhile(self) -> None:
        what, mount = self.outcome.meanwhile, str(self.mount)

        def start(*command: str) -> None:
            none = subprocess.DEVNULL
            self.others.append(subprocess.Popen(command, stdout=none, stderr=none))

        if what == "freeze":
            subprocess.run(["fsfreeze", "-f", mount], check=False, capture_output=True)
            time.sleep(self.draw.random() * 0.2)
            subprocess.run(["fsfreeze", "-u", mount], check=False, capture_output=True)
        elif what == "again":
            self.others.append(reorganiser(self.mount, *self._arguments()))
        elif what == "sync":
            with contextlib.suppress(OSError):
                tree.sync_file_system(self.mount)
        elif what == "rename":
            self._rename()
        elif (what, self.kind) in OTHER_TOOLS:
            start(*(part.format(mount=mount) for part in OTHER_TOOLS[what, self.kind]))
        else:
            self.outcome.meanwhile = "nothing"

    def _rename(self) -> None:
        """Directories go elsewhere and come back, with a link to another in their place between."""
        folders = sorted(path for path in self.mount.iterdir() if path.is_dir())
        folders = [path for path in folders if path.name.startswith("d")]
        aside = self.mount / "w-aside"
        for _ in range(self.draw.randrange(1, 40)):
            folder = self.draw.choice(folders)
            folder.rename(aside)
            folder.symlink_to(self.draw.choice((self.folder, aside, *folders)))
            time.sleep(self.draw.random() * 0.01)
            folder.unlink()
            aside.rename(folder)
            time.sleep(self.draw.random() * 0.01)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        ending = self.outcome.ending
        signals = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}
        if ending in signals:
            if process.poll() is None:
                process.send_signal(signals[ending])
        elif ending in SHUTDOWN_FLAGS:
            places = [writer.place() for writer in self.writers]
            with tree.opened(self.mount, os.O_RDONLY) as root:
                fcntl.ioctl(root, SHUTDOWN, struct.pack("I", SHUTDOWN_FLAGS[ending]))
            self.crashes.append(Crash(self.image, [(place, 1 << 62) for place in places]))
        elif ending == "power":
            for number in range(self.draw.choice((1, 1, 2))):
                first = [writer.place() for writer in self.writers]
                copy = self.folder / f"power{number}"
                copy_now(self.image, copy)
                last = [writer.place() for writer in self.writers]
                self.crashes.append(Crash(copy, list(zip(first, last, strict=True))))
                time.sleep(self.draw.random() ** 2 * 0.5)

    def _fill(self) -> None:
        with contextlib.suppress(OSError), (self.mount / "filler").open("wb", buffering=0) as file:
            until = time.monotonic() + 1.0 + self.draw.random()
            while time.monotonic() < until:
                try:
                    file.write(bytes(1 << 18))
                except OSError as why:
                    if why.errno != errno.ENOSPC:
                        raise
                    # What comes free in the meantime is taken as well.
                    time.sleep(0.005)

    @contextlib.contextmanager
    def _unlinked(self) -> Iterator[None]:
        """A file that is open and has no name any more."""
        path = self.mount / "w-unlinked"
        data = self.draw.randbytes(300_000)
        with path.open("w+b", buffering=0) as file:
            try:
                file.write(data)
            except OSError:
                data = b""
            path.unlink()
            yield
            if data and self.outcome.ending not in SHUTDOWN_FLAGS:
                wrote = os.fstat(file.fileno()).st_size
                if os.pread(file.fileno(), len(data), 0) != data[:wrote]:
                    raise Broken("an open file without a name holds something else")

    @contextlib.contextmanager
    def _program(self) -> Iterator[None]:
        """A program that lies on the file system, running."""
        path = self.mount / "sleep"
        if not path.exists():
            yield
            return
        with subprocess.Popen([str(path), "600"]) as process:
            try:
                yield
            finally:
                process.kill()

    @contextlib.contextmanager
    def _swapping(self) -> Iterator[None]:
        """Nine pages of the machine's swap lie on the file system; what they hold is its affair."""
        path = str(self.mount / "swap")
        self.swapped = True
        on = subprocess.run(["swapon", "-p", "0", path], capture_output=True, check=False)
        try:
            yield
        finally:
            if on.returncode == 0:
                run("swapoff", path)

    def _end_all(self) -> list[str]:
        """End everything that runs; what the writers found wrong."""
        problems = [writer.stop() for writer in self.writers]
        for other in self.others:
            try:
                other.wait(timeout=SECONDS_MAX)
            except subprocess.TimeoutExpired:
                other.kill()
                problems.append("what was done meanwhile did not end")
            if other.stderr:
                said = other.stderr.read()
                other.stderr.close()
                if b"Traceback" in said or b"panicked" in said:
                    problems.append(f"the other reorganisation says {said[-600:]!r}")
        if self.outcome.ending not in SHUTDOWN_FLAGS:
            self._tidy()
            problems += self._end_snapshot()
        return [problem for problem in problems if problem]

    def _end_snapshot(self) -> list[str]:
        """A snapshot that was taken meanwhile holds the same; then it goes."""
        path = self.mount / "meanwhile"
        if not path.exists():
            return []
        # Subvolumes are empty directories in a snapshot.
        before = {
            name: entry
            for name, entry in self.forest.before.items()
            if not name.startswith((b"subvolume", b"snapshot"))
        }
        after = {name: entry for name, entry in record(path).items() if name in before}
        faults = differences(before, after, but=frozenset({"shape", "links"}))
        run("btrfs", "subvolume", "delete", "-c", path)
        run("btrfs", "subvolume", "sync", self.mount)
        return [f"in the snapshot: {problem}" for problem in faults[:3]]

    # --- the verdict

    def _compare(self, when: str, crash: Crash | None) -> None:
        tree.sync_file_system(self.mount)
        faults, after = self._unlike()
        for _ in range(10):
            if not faults or any(not problem.startswith("shape") for problem in faults):
                break
            # xfs gives up what a file without a name shares some time after the log was replayed.
            time.sleep(0.3)
            faults, after = self._unlike()
        for number, writer in enumerate(self.writers):
            if crash is None:
                faults += writer.wrong(self.mount, crashed=False)
            else:
                first, last = crash.places[number]
                faults += writer.wrong(
                    self.mount,
                    crashed=True,
                    durable_place=first,
                    last_place=min(last, writer.place()),
                )
        if faults:
            raise Broken(
                f"{when}: {'; '.join(faults[:5])}"
                + f" and {len(faults) - 5} more" * (len(faults) > 5)
            )
        self.outcome.moved = max(self.outcome.moved, tree.moved_files(self.forest.before, after))

    def _unlike(self) -> tuple[list[str], Record]:
        after = record(self.mount)
        if self.swapped and b"swap" in after:
            after[b"swap"]["content"] = self.forest.before[b"swap"]["content"]
        return differences(self.forest.before, after, but=self.but), after

    def _verify(self, crash: Crash | None, *, again: bool) -> None:
        """The image, mounted afresh, checked, and reorganised once more."""
        crashed = "after the crash" if crash else "mounted again"
        with mounted(self.image, self.mount):
            self._end_crashed()
            self._compare(crashed, crash)
        check(self.kind, self.image)
        if not again:
            return
        with mounted(self.image, self.mount):
            process = reorganiser(self.mount)
            said = ended(process)
            if process.returncode != 0 and not self._refused(said):
                raise Broken(
                    f"the next one ends with {process.returncode}: {said.decode(errors='replace')}"
                )
            self._compare("after the next one", crash)
            inodes, other_bytes = books(self.mount)
            named = {
                os.lstat(os.path.join(folder, name)).st_ino  # noqa: PTH118
                for folder, folders, names in os.walk(os.fsencode(self.mount))
                for name in (b".", *folders, *names)
            }
        check(self.kind, self.image)
        if self.kind == "btrfs":
            left = nameless_on_btrfs(self.image, named)
            if left:
                raise Broken(f"inodes without a name are left: {left}")
        elif inodes != self.forest.inodes:
            raise Broken(f"{inodes - self.forest.inodes} inodes without a name are left")
        lost_bytes = other_bytes - self.forest.other_bytes
        # Where copies by reference may have come apart, what they shared is taken twice.
        if "shape" not in self.but and lost_bytes > LOST_BYTES_MAX[self.kind]:
            raise Broken(f"{lost_bytes:,} bytes belong to no file")

    def _tidy(self) -> None:
        """What others leave when they are stopped goes."""
        (self.mount / "filler").unlink(missing_ok=True)
        for copy in self.mount.glob("w-clone*"):
            copy.unlink()

    def _end_crashed(self) -> None:
        """What others had begun when the power failed goes."""
        self._tidy()
        if (self.mount / "meanwhile").exists():
            run("btrfs", "subvolume", "delete", "-c", self.mount / "meanwhile")
            run("btrfs", "subvolume", "sync", self.mount)


# --- many runs -----------------------------------------------------------------------------------


def torture(
    kind: str,
    runs: int,
    seed: int,
    work: Path | None = None,
    *,
    keep: Path | None = None,
    failed: list[str] | None = None,
    swap: bool = False,
) -> list[Outcome]:
    """Make `runs` runs from `seed` on; raises at the first that breaks anything.

    With `swap`, the machine swaps to a file of the image at times. With `failed`, what broke is
    noted there instead, the image is kept in `keep`, and the rest is made.
    """
    outcomes: list[Outcome] = []
    with workshop(work) as folder:
        forest: Forest | None = None
        for number in range(seed, seed + runs):
            if forest is None or number % RUNS_OF_TREE == 0:
                if forest:
                    forest.image.unlink()
                forest = make_forest(kind, number // RUNS_OF_TREE, folder)
            one = Run(forest, folder, number, swap=swap)
            try:
                outcomes.append(one.make())
            except (Broken, RuntimeError, OSError) as why:
                words = (
                    f"{kind}, seed {number} ({forest.made}; mounted {one.options or 'plainly'}; "
                    f"{one.outcome.words()}): {type(why).__name__}: {why}\n"
                    f"again: python tests/reorganise_torture.py {kind} --seed {number} --runs 1"
                )
                if keep is not None:
                    words += f"\nits image: {keep_image(folder, keep, kind, number)}"
                if failed is None:
                    raise Broken(words) from why
                failed.append(words)
                print(words, file=sys.stderr, flush=True)
            except KeyboardInterrupt:
                if failed is None:
                    raise
                break
            if failed is not None and number % 10 == 9:
                print(f"{kind}: {number + 1 - seed} of {runs}", file=sys.stderr, flush=True)
    return outcomes


def keep_image(folder: Path, keep: Path, kind: str, seed: int) -> Path:
    """Copy the image of a run that failed to where it outlasts it."""
    keep.mkdir(parents=True, exist_ok=True)
    kept = keep / f"{kind}-{seed}.image"
    run("cp", "--sparse=always", folder / "image", kept)
    return kept


def main() -> int:
    """Make runs and say how they were disturbed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--work", type=Path, help="where images are made, by default with temporary files"
    )
    parser.add_argument(
        "--keep", type=Path, default=Path("torture-failed"), help="for images of runs that fail"
    )
    parser.add_argument(
        "--swap", action="store_true", help="let the machine swap to a file of the image at times"
    )
    asked = parser.parse_args()
    # Also where a shell has started it in the background, with interrupts ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    failed: list[str] = []
    outcomes = torture(
        asked.kind,
        asked.runs,
        asked.seed,
        asked.work,
        keep=asked.keep,
        failed=failed,
        swap=asked.swap,
    )
    print(summary(asked.kind, outcomes, len(failed)))
    return 1 if failed else 0


def summary(kind: str, outcomes: list[Outcome], failed: int) -> str:
    """Runs by what was done to them."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts[f"ended by {outcome.ending}"] += 1
        counts[f"meanwhile {outcome.meanwhile}"] += 1
        counts["no room"] += outcome.full
        for writer in outcome.writers:
            counts[f"writer {writer}"] += 1
    amid = sum(outcome.amid for outcome in outcomes)
    moved = sum(outcome.moved for outcome in outcomes)
    lines = [
        f"{kind}: {len(outcomes)} runs in which nothing changed, {failed} that failed; in {amid} "
        f"files were being moved at that moment, {moved:,} files lay elsewhere afterwards"
    ]
    lines += [f"  {count:6}  {what}" for what, count in sorted(counts.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
