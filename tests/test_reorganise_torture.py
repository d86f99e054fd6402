"""Reorganising under fire, a few runs of each file system, and what the harness itself sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from reorganise_torture import torture
from reorganise_torture_images import KINDS, make_forest, missing, mounted, workshop
from reorganise_torture_tree import differences, record
from reorganise_torture_writers import Journal, May, Noted, Writer, applied, mixture_wrong

RUNS = {"ext4": 2, "xfs": 2, "xfs-plain": 1, "btrfs": 2}
SEEDS = {"ext4": 7, "xfs": 7, "xfs-plain": 7, "btrfs": 10}
"""The first seed of each; the first ten draw a btrfs of mixed chunks, which is refused."""
REFUSED = ("xfs-plain",)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_whatever_happens(kind: str, tmp_path: Path) -> None:
    if why := missing(kind):
        pytest.skip(why)
    outcomes = torture(kind, runs=RUNS[kind], seed=SEEDS[kind], work=tmp_path)
    assert len(outcomes) == RUNS[kind]
    assert all(outcome.refused for outcome in outcomes) == (kind in REFUSED)


def test_a_changed_byte_hole_time_or_name_is_seen(tmp_path: Path) -> None:
    if why := missing("ext4"):
        pytest.skip(why)
    with workshop(tmp_path) as folder:
        forest = make_forest("ext4", 3, folder)
        with mounted(forest.image, folder / "mount") as root:
            assert differences(forest.before, record(root)) == []
            plain = sorted(
                name
                for name, entry in forest.before.items()
                if name.split(b"/")[-1].startswith(b"f0") and entry["links"] == 1
            )
            byte, hole, time, name = (root / path.decode() for path in plain[:4])
            with byte.open("r+b") as file:
                first = file.read(1)
                file.seek(0)
                file.write(bytes([first[0] ^ 1]))
            with hole.open("r+b") as file:
                file.truncate(hole.stat().st_size + 100_000)
            time.chmod(0o777)
            name.rename(name.with_name("other"))
            faults = "\n".join(differences(forest.before, record(root)))
    for path, fact in ((plain[0], "content"), (plain[1], "size"), (plain[2], "mode")):
        assert f"{fact} of {path!r}" in faults
    assert f"{plain[3]!r} is gone" in faults


def test_after_a_crash_a_file_is_a_mixture_of_what_it_was_since_it_was_durable() -> None:
    versions: list[bytes | None] = [b"aaaa", b"abba", b"abbacc"]
    assert mixture_wrong(b"abaa", versions, whole=False) == ""
    assert mixture_wrong(b"aaaa\0c", versions, whole=False) == ""
    assert "of none" in mixture_wrong(b"aaca", versions, whole=False)
    assert "bytes, not" in mixture_wrong(b"aaa", versions, whole=False)
    assert "absent" in mixture_wrong(None, versions, whole=False)
    assert "none of" in mixture_wrong(b"abaa", versions, whole=True)


def test_a_length_amid_a_line_of_a_journal_loses_no_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.note("begin", b"f", ("replace", 0, b"x" * 10_000))
    first = journal.path.stat().st_size
    journal.note("end", b"f")
    journal.note("begin", b"f", ("replace", 0, b"y" * 10_000))
    writer = Writer("replace", tmp_path, [b"f"], journal.path, 1, begun={b"f": b"old"})
    for place in (first - 5000, first, first + 3000):
        versions = writer.may_hold(place, journal.path.stat().st_size)[b"f"].versions
        assert versions == [b"old", b"x" * 10_000, b"y" * 10_000]


def test_a_journal_says_what_a_file_holds() -> None:
    may = May([b"12345"])
    for operation in (("write", 2, b"xx"), ("append", 0, b"yy"), ("zero", 0, b"00")):
        may.note(Noted("begin", b"f", operation))
        may.note(Noted("end", b"f"))
    assert may.versions[-1] == b"\0\0xx5yy"
    assert may.wrong(b"\0\0xx5yy", crashed=False) == ""
    assert may.wrong(b"12345", crashed=False) != ""
    assert may.wrong(b"12345", crashed=True) == ""
    may.note(Noted("durable", b"f"))
    assert may.wrong(b"12345", crashed=True) != ""
    assert applied(b"123", ("truncate", 5, b"")) == b"123\0\0"
    assert applied(b"123", ("unlink", 0, b"")) is None
