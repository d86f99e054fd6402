"""Keeping a real file system in shape: what is read together is laid together, and no more."""

from __future__ import annotations

import itertools
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import documents
from agewell.cli.watching import round_text
from agewell.errors import InputError, RunError
from agewell.filesystems import watching
from conftest import COMMAND_SECONDS, heed_interrupts
from reorganise_torture_images import CHECKS, PLAIN_OPTIONS, missing, mounted
from reorganise_torture_tree import differences, opened, record

# They wait for rounds and keep disks busy: one at a time, beside what keeps processors busy.
pytestmark = pytest.mark.xdist_group("watching")

DISK = "seagate-st2000dm006"
KINDS = ("ext4", "xfs", "btrfs")
FILES = 1500
PROGRAM = 120
BUDGET = 40_000_000


def _why_not(kind: str) -> str | None:
    if why := missing(kind):
        return why
    return None


@pytest.fixture(params=["ext4"])
def scattered(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A mounted file system with many small files, written in no order."""
    kind = request.param
    if why := _why_not(kind):
        pytest.skip(why)
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(
        [f"mkfs.{kind}", "-q", *PLAIN_OPTIONS[kind], image], check=True, capture_output=True
    )
    with mounted(image, mount):
        order = list(range(FILES))
        random.Random(1).shuffle(order)  # noqa: S311
        for number in order:
            path = mount / f"d{number % 40:02}" / f"f{number:04}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(os.urandom(4096 * (1 + number % 8)))
        os.sync()
        yield mount, image
    subprocess.run([*CHECKS[kind], image], check=True, capture_output=True)


def _program(mount: Path) -> list[Path]:
    """Files that are read together, from all over."""
    return random.Random(2).sample(sorted(mount.rglob("f*")), PROGRAM)  # noqa: S311


def _read(path: Path) -> None:
    with path.open("rb") as file:
        # From the disk, not from memory.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.read()


class _Load(threading.Thread):
    """Starts the program again and again, and reads another file once in between."""

    def __init__(self, mount: Path) -> None:
        super().__init__()
        self.program = _program(mount)
        self.others = [path for path in sorted(mount.rglob("f*")) if path not in self.program]
        self.ends = threading.Event()

    def run(self) -> None:
        others = iter(self.others)
        while not self.ends.wait(0.2):
            for path in self.program:
                _read(path)
            if other := next(others, None):
                _read(other)


@pytest.fixture
def load(scattered: tuple[Path, Path]) -> Iterator[_Load]:
    thread = _Load(scattered[0])
    thread.start()
    yield thread
    thread.ends.set()
    thread.join()


def _places(paths: list[Path]) -> dict[Path, list[tuple[int, int]]]:
    """Where files lie: first block and blocks of each piece."""
    places = {}
    for path in paths:
        printed = subprocess.run(
            ["filefrag", "-b4096", "-e", "-v", path], capture_output=True, text=True, check=True
        ).stdout
        pieces = []
        for line in printed.splitlines():
            fields = line.split(":")
            if fields[0].strip().isdigit():
                first, last = fields[2].split("..")
                pieces.append((int(first), int(last) - int(first) + 1))
        places[path] = pieces
    return places


def _breaks(places: dict[Path, list[tuple[int, int]]], order: list[Path]) -> int:
    pieces = [piece for path in order for piece in places[path]]
    return sum(one[0] + one[1] != other[0] for one, other in itertools.pairwise(pieces))


def _watch(mount: Path, state: Path, ends: Any, **options: Any) -> list[dict[str, Any]]:
    """Watch until `ends` says so of the rounds so far."""
    rounds: list[dict[str, Any]] = []
    until = time.monotonic() + COMMAND_SECONDS

    def report(event: dict[str, Any]) -> bool:
        if event["kind"] == "round":
            rounds.append(event)
        return not ends(rounds) and time.monotonic() < until

    given: dict[str, Any] = {"budget": f"{BUDGET} B/h", "every": "4 s", "device": DISK, **options}
    watching.watch(mount, report=report, state=state, **given)
    return rounds


def _moved(rounds: list[dict[str, Any]]) -> bool:
    return any(event["outcome"] == "moved" for event in rounds)


@pytest.mark.parametrize("scattered", KINDS, indirect=True)
def test_what_is_read_again_and_again_is_laid_together(
    scattered: tuple[Path, Path], load: _Load, tmp_path: Path
) -> None:
    mount, _ = scattered
    before, files = record(mount), sorted(mount.rglob("f*"))
    places = _places(files)

    def ends(rounds: list[dict[str, Any]]) -> bool:
        # Until reads after a move were seen.
        first = next((n for n, event in enumerate(rounds) if event["outcome"] == "moved"), None)
        return first is not None and len(rounds) > first + 2

    rounds = _watch(mount, tmp_path / "state", ends)
    assert _moved(rounds), [round_text(event) for event in rounds]
    after = _places(files)
    moved = {path for path in files if places[path] != after[path]}
    assert len(moved & set(load.program)) >= 0.9 * PROGRAM
    # Those that were read once or not at all stay.
    assert moved <= set(load.program)
    assert _breaks(after, load.program) < 0.25 * _breaks(places, load.program)
    assert sum(event["bytes"] for event in rounds if event["outcome"] == "moved") <= BUDGET
    assert rounds[-1]["saved_seconds"] > 0
    first = next(event for event in rounds if event["reads"])
    assert (
        rounds[-1]["read_seconds"] / rounds[-1]["reads"]
        < 0.5 * first["read_seconds"] / first["reads"]
    )
    changed = differences(before, record(mount))
    assert [line for line in changed if not line.startswith("atime of")] == []


def test_a_restart_goes_on_where_it_was(
    scattered: tuple[Path, Path], load: _Load, tmp_path: Path
) -> None:
    mount, _ = scattered
    state = tmp_path / "folder" / "state"
    first = _watch(mount, state, lambda rounds: len(rounds) >= 2, dry_run=True)
    assert first[-1]["files_known"] >= PROGRAM
    load.ends.set()
    load.join()
    # Nothing is read any more: what is known is from before.
    second = _watch(mount, state, lambda rounds: len(rounds) >= 1)
    assert second[0]["outcome"] == "idle"
    assert second[0]["files_known"] >= first[-1]["files_known"]
    assert second[0]["all_read_seconds"] >= first[-1]["all_read_seconds"]
    assert sorted(path.name for path in state.parent.iterdir()) == ["state", "state.lock"]


def test_with_dry_run_nothing_moves(
    scattered: tuple[Path, Path], load: _Load, tmp_path: Path
) -> None:
    mount, _ = scattered
    places = _places(load.program)

    def ends(rounds: list[dict[str, Any]]) -> bool:
        return any(event["outcome"] == "would-move" for event in rounds)

    rounds = _watch(mount, tmp_path / "state", ends, dry_run=True)
    assert ends(rounds)
    assert rounds[-1]["files"] >= 0.9 * PROGRAM
    assert _places(load.program) == places


def test_a_budget_that_is_too_small_moves_nothing(
    scattered: tuple[Path, Path], load: _Load, tmp_path: Path
) -> None:
    mount, _ = scattered
    places = _places(load.program)

    def ends(rounds: list[dict[str, Any]]) -> bool:
        return any(event["outcome"] == "beyond-budget" for event in rounds)

    rounds = _watch(mount, tmp_path / "state", ends, budget="4 KB/h")
    assert ends(rounds)
    assert _places(load.program) == places


def test_nothing_moves_while_others_keep_the_disk_busy(
    scattered: tuple[Path, Path], tmp_path: Path
) -> None:
    mount, _ = scattered
    large = mount / "large"
    large.write_bytes(bytes(64 << 20))
    places = _places(_program(mount))
    ends = threading.Event()

    def read() -> None:
        # Requests so long that a reader that waits for a processor has others' under way meanwhile.
        with (
            mmap.mmap(-1, 4 << 20) as memory,
            opened(large, os.O_RDONLY | os.O_DIRECT) as file,
        ):
            while not ends.is_set():
                for start in range(0, 64 << 20, len(memory)):
                    os.preadv(file, [memory], start)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        rounds = _watch(mount, tmp_path / "state", len)
    finally:
        ends.set()
        for reader in readers:
            reader.join()
    assert rounds[0]["outcome"] == "busy"
    assert rounds[0]["busy_pct"] > 50
    assert _places(_program(mount)) == places


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(
    scattered: tuple[Path, Path], tmp_path: Path, number: signal.Signals
) -> None:
    mount, _ = scattered
    state = tmp_path / "state"
    command = [sys.executable, "-m", "agewell", "reorganise", str(mount), "--watch"]
    options = ["--budget", "1 GB/h", "--every", "1 s", "--json", "--state", str(state)]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    ) as process:
        assert process.stdout is not None
        assert documents.check(process.stdout.readline()) == "reorganise-round"
        process.send_signal(number)
        assert process.wait(timeout=COMMAND_SECONDS) == 0
    assert state.exists()
    assert sorted(path.name for path in tmp_path.glob("state*")) == ["state", "state.lock"]
    # It can be unmounted: nothing of it is held (the fixture does).


def test_one_that_was_killed_leaves_nothing_in_the_way(
    scattered: tuple[Path, Path], tmp_path: Path
) -> None:
    mount, _ = scattered
    state = tmp_path / "state"
    command = [sys.executable, "-m", "agewell", "reorganise", str(mount), "--watch"]
    options = ["--every", "1 s", "--json", "--state", str(state)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    again = _watch(mount, state, lambda rounds: len(rounds) >= 1)
    assert again[0]["outcome"] == "idle"
    assert sorted(path.name for path in tmp_path.glob("state*")) == ["state", "state.lock"]


def test_a_file_system_that_is_unmounted_ends_it_in_one_line(
    scattered: tuple[Path, Path], tmp_path: Path
) -> None:
    mount, image = scattered

    def report(event: dict[str, Any]) -> bool:
        if event["kind"] == "record" and os.path.ismount(mount):
            subprocess.run(["umount", mount], check=True)
        return True

    with pytest.raises(RunError, match="was unmounted") as raised:
        watching.watch(mount, report=report, state=tmp_path / "state", every="20 s")
    assert "\n" not in str(raised.value)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)


ROUND: dict[str, Any] = {
    "kind": "round",
    "now_ns": 1_800_000_000_000_000_000,
    "reads": 1200,
    "read_seconds": 14.25,
    "named_pct": 97.6,
    "lost_events": 0,
    "considered": {
        "groups": 4,
        "well": 3,
        "bounded": 0,
        "declined": 1,
        "beyond_budget": 0,
        "best_saved_seconds": 0.21,
        "best_cost_seconds": 1.4,
    },
    "files": 120,
    "bytes": 2_000_000,
    "likely_seconds": 9.5,
    "cost_seconds": 1.5,
    "busy_pct": 83.0,
    "left_bytes": 1_000_000,
    "saved_seconds": 2.5,
    "moving_seconds": 1.5,
    "moved_bytes": 0,
}


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("idle", "hardly anything"),
        ("learning", "too few reads"),
        ("nothing-pays", "nothing pays: of 4 groups of files 3 lie well, and the best of 1 is"),
        ("beyond-budget", "beyond the hour's budget"),
        ("busy", "busy (83 % of the time)"),
        ("no-room", "no room"),
        ("would-move", "would move 120 files"),
        ("moved", "moved 120 files"),
    ],
)
def test_every_round_is_told_in_one_line(outcome: str, words: str) -> None:
    text = round_text({**ROUND, "outcome": outcome})
    assert words in text
    assert "\n" not in text
    assert "saved 2.5 s" not in text
    assert "saved 2.5 s" in round_text({**ROUND, "outcome": outcome, "moved_bytes": 5_000_000})


def test_what_cannot_be_watched_is_refused_in_one_line(
    scattered: tuple[Path, Path], tmp_path: Path
) -> None:
    mount, _ = scattered

    def refusal(path: Path, **options: Any) -> str:
        with pytest.raises(InputError) as raised:
            watching.watch(path, report=lambda _: True, **options)
        text = str(raised.value)
        assert "\n" not in text
        return text

    state = tmp_path / "state"
    assert "cannot be opened" in refusal(tmp_path / "absent", state=state)
    assert "2 GB/h" in refusal(mount, state=state, budget="2 GB")
    state.write_bytes(b"something else")
    assert "--state" in refusal(mount, state=state)
    assert state.read_bytes() == b"something else"
    other = tmp_path / "other"
    watching.watch(mount, report=lambda event: event["kind"] == "look", state=other)
    below = mount / "d00"
    assert "another file system" in refusal(below, state=other)
