"""Reorganising real file systems: what moves, what stays, and what is refused."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import documents
import recorded_reads
from agewell.errors import InputError
from agewell.filesystems import reorganising, scoring
from reorganise_torture_images import (
    CHECKS,
    IMAGE_BYTES,
    PLAIN_OPTIONS,
    copy_now,
    missing,
    mounted,
    once_more_metadata,
    workshop,
)
from reorganise_torture_tree import differences, record

KINDS = ("ext4", "xfs", "btrfs")


def _make(kind: str, image: Path, *options: str, size_bytes: int | None = None) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes or IMAGE_BYTES[kind])
    command = [f"mkfs.{kind}", "-q", *PLAIN_OPTIONS[kind], *options, str(image)]
    subprocess.run(command, check=True, capture_output=True)


@contextlib.contextmanager
def _fresh(kind: str, folder: Path, *options: str) -> Iterator[Path]:
    """A new file system in an image in a folder, mounted there; skips where it cannot be made."""
    if why := missing(kind):
        pytest.skip(why)
    image, mount = folder / "image", folder / "mount"
    mount.mkdir()
    _make(kind, image, *options)
    with mounted(image, mount):
        yield mount


@pytest.fixture(params=KINDS)
def scattered(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path, Path]]:
    """A mounted file system with files that were written in turns."""
    kind = request.param
    with _fresh(kind, tmp_path) as mount:
        _write_in_turns(mount)
        yield kind, mount, tmp_path / "image"


def _write_in_turns(root: Path) -> None:
    """Sixty files of 5 to 60 KB that grow in turns, in three directories."""
    paths = [root / f"d{number % 3}" / f"f{number:02}" for number in range(60)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
    for turn in range(10):
        for number, path in enumerate(paths):
            if turn * 6 <= number:
                with path.open("ab") as file:
                    file.write(bytes([number]) * (5000 + 97 * number))
        os.sync()


def test_scattered_files_lie_side_by_side_and_are_unchanged(
    scattered: tuple[str, Path, Path],
) -> None:
    kind, mount, image = scattered
    before = record(mount)
    assert scoring.score(mount).report["neighbours"]["by_name"]["adjacency"] < 0.5
    done = reorganising.reorganise(mount)
    assert done["carried_out"]
    assert done["done"]["files"] == done["work"]["files"]
    assert done["done"]["moved_bytes"] == pytest.approx(done["work"]["moved_bytes"], rel=0.1)
    after = scoring.score(mount).report
    assert after["neighbours"]["by_name"]["adjacency"] > 0.95
    assert after["layout"]["layout_score"] > 0.995
    assert differences(before, record(mount)) == []
    subprocess.run(["umount", mount], check=True)
    subprocess.run([*CHECKS[kind], image], check=True, capture_output=True)


def test_what_lies_well_is_not_moved_again(scattered: tuple[str, Path, Path]) -> None:
    _, mount, _ = scattered
    reorganising.reorganise(mount)
    again = reorganising.reorganise(mount, anyway=True)
    assert again["work"]["moved_bytes"] == 0
    assert again["done"]["moved_bytes"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_lie_better_is_not_moved_again(kind: str, tmp_path: Path) -> None:
    """In holes shorter than a stretch: the second run has little to do, and a later one nothing."""
    # Once in some forty the third had something to do on btrfs: what moves leave behind is free
    # when the kernel has committed and cleaned up, perhaps in the midst of a run. Not shown so far.
    runs_max = 6 if kind == "btrfs" else 3
    with _fresh(kind, tmp_path) as mount:
        pinned = mount / "pinned"
        pinned.mkdir()
        room = os.statvfs(mount)
        for number in range(room.f_bavail * room.f_frsize * 7 // 10 // (160 << 10)):
            with (mount / f"gone{number}").open("wb") as file:
                file.write(bytes(160 << 10))
        os.sync()
        for number, path in enumerate(sorted(mount.glob("gone*"))):
            if number % 2:
                path.rename(pinned / path.name)
            else:
                path.unlink()
        os.sync()
        _write_in_turns(mount)
        first = reorganising.reorganise(mount, anyway=True)
        later = [reorganising.reorganise(mount, anyway=True) for _ in range(2)]
        while later[-1]["work"]["moved_bytes"] > 0 and len(later) < runs_max - 1:
            later.append(reorganising.reorganise(mount, anyway=True))
    assert first["done"]["moved_bytes"] > 0
    assert all(run["done"]["moved_bytes"] <= first["done"]["moved_bytes"] / 10 for run in later)
    assert later[-1]["work"]["moved_bytes"] == 0
    assert later[-1]["done"]["moved_bytes"] == 0


def test_a_plan_is_carried_out_later_but_for_what_changed(
    scattered: tuple[str, Path, Path], tmp_path: Path
) -> None:
    _, mount, _ = scattered
    plan = tmp_path / "plan.json"
    planned = reorganising.reorganise(mount, dry_run=True, plan=plan)
    assert not planned["carried_out"]
    changed = mount / "d0" / "f00"
    changed.write_bytes(b"other")
    (mount / "d1" / "f01").unlink()
    before = record(mount)
    done = reorganising.reorganise(mount, plan=plan, apply=True)
    reasons = {row["reason"]: row["files"] for row in done["done"]["left"]}
    assert reasons == {"changed": 1, "vanished": 1}
    assert done["done"]["files"] == planned["work"]["files"] - 2
    assert differences(before, record(mount)) == []


def test_no_more_is_moved_than_the_budget(scattered: tuple[str, Path, Path]) -> None:
    _, mount, _ = scattered
    done = reorganising.reorganise(mount, budget="800 KB", anyway=True)
    assert 0 < done["done"]["moved_bytes"] <= 800_000


def test_a_budget_on_btrfs_makes_chunks_where_data_has_no_room(tmp_path: Path) -> None:
    with _fresh("btrfs", tmp_path) as mount:
        with once_more_metadata(mount):
            numbers = list(range(10_000))
            random.Random(1).shuffle(numbers)  # noqa: S311
            with contextlib.suppress(OSError):
                for number in numbers:
                    (mount / f"f{number:05}").write_bytes(number.to_bytes(2, "big") * 8000)
            os.sync()
        before = record(mount)
        done = reorganising.reorganise(mount, budget="40 MB", anyway=True)
        after = scoring.score(mount).report
        assert differences(before, record(mount)) == []
    work = done["work"]
    # A chunk that is nearly empty, if the kernel has not given it up yet, and files in its place.
    assert work["node_bytes"] < 8e6
    assert work["file_bytes"] > 25e6
    assert done["done"]["moved_bytes"] == pytest.approx(work["moved_bytes"], rel=0.1)
    assert done["done"]["moved_bytes"] <= 40e6
    assert after["neighbours"]["by_name"]["adjacency"] > 0.2
    subprocess.run([*CHECKS["btrfs"], tmp_path / "image"], check=True, capture_output=True)


@pytest.mark.parametrize("kind", KINDS)
def test_flash_does_not_pay_and_nothing_is_moved(kind: str, tmp_path: Path) -> None:
    with _fresh(kind, tmp_path) as mount:
        # Pieces that a disk seeks between, and flash reads as fast as any.
        for turn in range(16):
            for number in range(4):
                with (mount / f"f{number}").open("wb" if turn == 0 else "r+b") as file:
                    os.posix_fallocate(file.fileno(), turn << 17, 1 << 17)
                    file.seek(turn << 17)
                    file.write(bytes([number]) * (1 << 17))
        os.sync()
        before = record(mount)
        found = reorganising.reorganise(mount, device="samsung-970-pro", dry_run=True)
        assert found["work"]["moved_bytes"] > 0
        found = reorganising.reorganise(mount, device="samsung-970-pro")
        assert not found["saving"]["pays"]
        assert not found["carried_out"]
        assert differences(before, record(mount)) == []


def test_what_cannot_be_moved_is_left_and_counted(tmp_path: Path) -> None:
    with _fresh("ext4", tmp_path) as mount:
        _write_in_turns(mount)
        sealed = mount / "d0" / "f03"
        subprocess.run(["chattr", "+i", sealed], check=True)
        try:
            done = reorganising.reorganise(mount, anyway=True)
        finally:
            subprocess.run(["chattr", "-i", sealed], check=True)
        left = {row["reason"]: row["files"] for row in done["done"]["left"]}
        assert left == {"protected": 1}


def _refusal(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        reorganising.reorganise(path)
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_what_cannot_be_reorganised_is_refused_in_one_line(tmp_path: Path) -> None:
    if why := missing("ext4"):
        pytest.skip(why)
    assert "cannot be opened" in _refusal(tmp_path / "absent")
    assert "proc" in _refusal(Path("/proc"))
    mount = tmp_path / "mount"
    mount.mkdir()
    image = tmp_path / "image"
    _make("ext4", image, "-O", "^has_journal")
    with mounted(image, mount):
        assert "journal" in _refusal(mount)
    _make("ext4", image)
    with mounted(image, mount):
        below = mount / "below"
        below.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "nodev", below], check=True)
        try:
            assert "below" in _refusal(mount)
        finally:
            subprocess.run(["umount", below], check=True)
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        assert "read-only" in _refusal(mount)


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("ext4", ("-b", "1024"), "smaller than a page"),
        ("xfs", ("-m", "reflink=0"), "reflink"),
        ("btrfs", ("--mixed",), "metadata together"),
    ],
)
def test_what_cannot_be_moved_safely_is_refused(
    tmp_path: Path, kind: str, options: tuple[str, ...], reason: str
) -> None:
    with _fresh(kind, tmp_path, *options) as mount:
        assert reason in _refusal(mount)


def test_files_of_btrfs_that_are_not_copied_on_write_are_left(tmp_path: Path) -> None:
    with _fresh("btrfs", tmp_path) as mount:
        in_place = mount / "d0" / "f03"
        in_place.parent.mkdir()
        in_place.touch()
        subprocess.run(["chattr", "+C", in_place], check=True)
        _write_in_turns(mount)
        before = record(mount)
        done = reorganising.reorganise(mount, anyway=True)
        left = {row["reason"]: row["files"] for row in done["done"]["left"]}
        assert left == {"in-place": 1}
        assert differences(before, record(mount)) == []


def test_what_a_file_of_btrfs_had_is_free_when_it_is_removed(tmp_path: Path) -> None:
    """No extent is shared by files that were moved together."""
    if why := missing("btrfs"):
        pytest.skip(why)
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    _make("btrfs", image)

    def used_bytes() -> int:
        subprocess.run(["btrfs", "filesystem", "sync", mount], check=True, capture_output=True)
        command = ["btrfs", "filesystem", "usage", "-b", str(mount)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = next(line for line in printed.splitlines() if line.startswith("Data,"))
        return int(line.split("Used:")[1].split()[0])

    with mounted(image, mount):
        _write_in_turns(mount)
        before_bytes = used_bytes()
        reorganising.reorganise(mount, anyway=True)
        assert used_bytes() <= before_bytes
        files = sorted(path for path in mount.rglob("f*") if path.is_file())
        for path in files[::2]:
            path.unlink()
        left_bytes = sum(-(-path.stat().st_size // 4096) * 4096 for path in files[1::2])
        assert used_bytes() == left_bytes


def _recording(paths: list[Path], mount: Path, recording: Path) -> None:
    """Write a recording of reads of the first 64 KiB of files as they lie."""
    inodes = {path: path.stat().st_ino for path in set(paths)}
    extents = recorded_reads.places(mount, recording.parent)
    reads = [(inodes[path], 0, 64 << 10) for path in paths]
    recorded_reads.write(recording, extents, reads)


def test_a_recording_says_the_order(scattered: tuple[str, Path, Path], tmp_path: Path) -> None:
    _, mount, _ = scattered
    recording = tmp_path / "reads.trace"
    wanted = sorted((path for path in mount.rglob("f*")), reverse=True)[:20]
    _recording(wanted, mount, recording)
    done = reorganising.reorganise(mount, by=str(recording), anyway=True)
    assert done["done"]["files"] == 20
    assert done["order"]["order"] == "first-reads"
    assert done["order"]["access_graph_seconds"] is None


def test_of_a_recording_that_comes_back_to_files_the_order_that_reads_faster_is_taken(
    scattered: tuple[str, Path, Path], tmp_path: Path
) -> None:
    _, mount, _ = scattered
    recording = tmp_path / "reads.trace"
    # More than a drive keeps in its buffer.
    one, other = ([mount / f"{name}{number:03}" for number in range(90)] for name in "ab")
    for path in one + other:
        path.write_bytes(bytes(1 << 16))
    os.sync()
    side_by_side = [path for pair in zip(one, other, strict=True) for path in pair]
    command = [sys.executable, "-m", "agewell", "reorganise", str(mount)]
    command += ["--dry-run", "--by", str(recording)]
    # Once side by side and often alone; and as often so as alone.
    for starts, expected in ((1, "access-graph"), (30, "first-reads")):
        _recording(starts * side_by_side + 30 * (one + other), mount, recording)
        shown = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        assert documents.check(shown.stdout) == "reorganise"
        order = json.loads(shown.stdout)["order"]
        graph_is_faster = order["access_graph_seconds"] < order["first_reads_seconds"]
        assert graph_is_faster == (expected == "access-graph")
        assert order["order"] == expected
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Order of first reads" in shown.stdout


def _read_in_jumps(mount: Path) -> list[tuple[int, int, int]]:
    """Twelve files of 2 MiB in which a program jumps, and a small file after each."""
    reads = []
    for number in range(12):
        library, small = mount / f"lib{number:02}", mount / f"small{number:02}"
        library.write_bytes(bytes([number]) * (2 << 20))
        small.write_bytes(bytes([number]) * 5000)
        os.sync()
        inode = library.stat().st_ino
        # Its header, its tables at the end, then code; the rest is not read.
        reads += [(inode, 0, 16 << 10), (inode, 1920 << 10, 128 << 10)]
        reads += [(inode, 640 << 10, 128 << 10), (inode, 768 << 10, 128 << 10)]
        reads.append((small.stat().st_ino, 0, 5000))
    return reads


def test_files_are_laid_in_the_parts_that_a_recording_reads(
    scattered: tuple[str, Path, Path], tmp_path: Path
) -> None:
    kind, mount, image = scattered
    recording, plan = tmp_path / "reads.trace", tmp_path / "plan.json"
    reads = _read_in_jumps(mount)
    recorded_reads.write(recording, recorded_reads.places(mount, tmp_path), reads)
    before = record(mount)
    whole = reorganising.reorganise(mount, by=str(recording), dry_run=True, whole_files=True)
    assert whole["parted"] is None
    assert whole["order"]["in_parts"] is None
    done = reorganising.reorganise(mount, by=str(recording), anyway=True, plan=plan)
    if kind == "btrfs":
        # What stays would hold the place of what is moved.
        assert done["parted"] is None
        return
    parted = done["parted"]
    assert (parted["files"], parted["parts"]) == (12, 36)
    assert parted["layout_score_before"] == 1
    assert 0.98 < parted["layout_score_after"] < 1
    assert done["order"]["in_parts"]["seconds"] < whole["order"]["first_reads_seconds"] / 2
    assert done["done"]["files"] == 24
    assert done["done"]["moved_bytes"] == sum(-(-length // 4096) * 4096 for _, _, length in reads)
    # As it was read, one behind the other; the rest stays together where it was.
    extents = recorded_reads.places(mount, tmp_path)
    ends = None
    for inode, offset, length in reads:
        extent = next(
            e
            for e in extents[inode]
            if e.logical_bytes <= offset < e.logical_bytes + e.length_bytes
        )
        at = extent.physical_bytes + offset - extent.logical_bytes
        assert ends in (None, at)
        ends = at + -(-length // 4096) * 4096
    recorded_reads.write(recording, extents, reads)
    again = reorganising.reorganise(mount, by=str(recording), anyway=True)
    assert (again["parted"]["files"], again["done"]["moved_bytes"]) == (12, 0)
    # A plan of which parts lie elsewhere by now moves nothing.
    left = reorganising.reorganise(mount, plan=plan, apply=True)["done"]
    assert (left["files"], left["left"][0]["reason"], left["left"][0]["files"]) == (
        0,
        "changed",
        24,
    )
    reorganising.reorganise(mount, anyway=True)
    assert differences(before, record(mount)) == []
    subprocess.run(["umount", mount], check=True)
    subprocess.run([*CHECKS[kind], image], check=True, capture_output=True)


def test_the_command_says_what_it_did(scattered: tuple[str, Path, Path]) -> None:
    _, mount, _ = scattered
    command = [sys.executable, "-m", "agewell", "reorganise", str(mount)]
    shown = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=True)
    assert "Nothing was moved" in shown.stdout
    shown = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)["carried_out"]
    assert documents.check(shown.stdout) == "reorganise"


def test_an_ext4_with_fast_commits_is_refused(tmp_path: Path) -> None:
    with _fresh("ext4", tmp_path, "-O", "fast_commit") as mount:
        assert "fast commits" in _refusal(mount)


FILES_BEHIND = 20
"""Files that were moved behind one: whatever is done behind its own move is done."""


@pytest.mark.parametrize("opened", ["before", "behind"], ids="{}_its_move".format)
def test_what_others_make_durable_behind_a_move_outlives_a_failure_of_power(
    opened: str, tmp_path: Path
) -> None:
    if why := missing("ext4"):
        pytest.skip(why)
    with workshop(tmp_path) as bench:
        image, mount = bench / "image", bench / "mount"
        _make("ext4", image)
        # Nothing else commits.
        with mounted(image, mount, "commit=300"):
            paths = _in_two_pieces(mount)
            written = range(5, len(paths) - 2 * FILES_BEHIND, 2 * FILES_BEHIND + 5)
            with closed_after_writing(mount) as closed, contextlib.ExitStack() as held:

                def open_to_write(number: int) -> int:
                    return held.enter_context(paths[number].open("r+b", buffering=0)).fileno()

                files = {n: open_to_write(n) for n in written if opened == "before"}
                command = [sys.executable, "-m", "agewell", "reorganise", str(mount), "--anyway"]
                # Slower than that there would be pauses between moves.
                process = subprocess.Popen([*command, "--quiet", "--rate", "1 MB/s"])
                moved = (paths.index(mount / name) for name in closed)
                for number in written:
                    next(found for found in moved if found == number + FILES_BEHIND)
                    if opened == "behind":
                        files[number] = open_to_write(number)
                        next(found for found in moved if found == number + 2 * FILES_BEHIND)
                    os.pwrite(files[number], b"later", 100)
                    os.fdatasync(files[number])
                    copy_now(image, bench / f"power{number}")
                assert process.wait() == 0
        for copy in sorted(bench.glob("power*")):
            with mounted(copy, mount):
                path = paths[int(copy.name.removeprefix("power"))]
                assert path.read_bytes()[100:105] == b"later", copy.name


def _in_two_pieces(mount: Path) -> list[Path]:
    """Files of two blocks that lie apart: `fdatasync` commits no exchange of theirs."""
    paths = [mount / f"f{number:03}" for number in range(250)]
    for _turn in range(2):
        for path in paths:
            with path.open("ab") as file:
                file.write(bytes([1]) * 4096)
        subprocess.run(["sync", "-f", str(mount)], check=True)
    return paths


IN_CLOSE_WRITE = 8
"""`include/uapi/linux/inotify.h`."""


@contextlib.contextmanager
def closed_after_writing(folder: Path) -> Iterator[Iterator[str]]:
    """Names in a folder whenever one who could write closes it; nothing is opened for that."""
    libc = ctypes.CDLL(None)
    events = libc.inotify_init()
    libc.inotify_add_watch(events, os.fsencode(folder), IN_CLOSE_WRITE)

    def names() -> Iterator[str]:
        while True:
            data = os.read(events, 1 << 16)
            while data:
                length = struct.unpack_from("iIII", data)[3]
                yield os.fsdecode(data[16 : 16 + length].rstrip(b"\0"))
                data = data[16 + length :]

    try:
        yield names()
    finally:
        os.close(events)
