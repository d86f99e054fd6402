"""`agewell store`: stores looked into, checked and salvaged."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from conftest import REPOSITORY, Agewell

IMAGES = REPOSITORY / "crates" / "check" / "tests" / "images"
"""Stores that the tests of the reader have written, from the page of the format."""

BLOCK_BYTES = 512
MAP_START = 46
SEGMENTS_START = 50


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A store that was closed in order."""
    path = tmp_path / "disk.store"
    path.write_bytes(gzip.decompress((IMAGES / "closed-1.0.img.gz").read_bytes()))
    return path


def injure(image: Path, *addresses: int) -> None:
    """Change a byte of some blocks."""
    data = bytearray(image.read_bytes())
    for address in addresses:
        data[address * BLOCK_BYTES + 44] ^= 0x10
    image.write_bytes(data)


def test_info_has_the_names_of_metrics(agewell: Agewell, image: Path) -> None:
    document = json.loads(agewell("store", "info", image, "--json").stdout)
    assert document["store"]["closed_in_order"] is True
    assert document["store"]["uuid"] == "61207374-6f72-6520-6f66-207465737473"
    metrics = document["metrics"]
    assert (metrics["capacity_blocks"], metrics["segments"]) == (192, 12)
    assert metrics["live_blocks"] == 71
    assert metrics["utilization"] == 71 / 192
    shown = dict(line.split() for line in agewell("store", "info", image).stdout.splitlines()[1:])
    assert (shown["live_blocks"], shown["utilization"]) == ("71", "0.3698")
    assert shown["closed_in_order"] == "yes"
    (image.parent / "left").write_bytes(gzip.decompress((IMAGES / "left-1.0.img.gz").read_bytes()))
    left = json.loads(agewell("store", "info", "left", "--json").stdout)
    assert left["store"]["closed_in_order"] is False
    assert left["metrics"]["live_blocks"] == 71


def test_a_whole_store_is_clean(agewell: Agewell, image: Path) -> None:
    done = agewell("store", "check", image, "--read-data")
    assert done.stdout == (
        f"{image}: clean (structures and data): 71 blocks, group 18, closed in order\n"
    )
    assert agewell("store", "check", image, "--quiet").stdout == ""
    document = json.loads(agewell("store", "check", image, "--json").stdout)
    assert (document["clean"], document["findings"]) == (True, [])


def test_damage_is_a_line_each_and_status_1(agewell: Agewell, image: Path) -> None:
    live = json.loads(agewell("store", "salvage", image, "-o", "whole", "--json").stdout)
    assert live["whole"]
    rows = list(csv.DictReader((image.parent / "whole" / "blocks.csv").read_text().splitlines()))
    slot = next(int(row["slot"]) for row in rows if row["block"] == "15")
    # A note: it may have been torn when the power failed.
    injure(image, 2)
    noted = agewell("store", "check", image).stdout.splitlines()
    assert noted[0] == "note: root 0 at address 2: its checksum is wrong"
    assert "clean (structures, 1 note): 71 blocks" in noted[1]
    injure(image, 0, MAP_START + 3, SEGMENTS_START + slot)
    fast = agewell("store", "check", image, check=False)
    assert fast.returncode == 1
    lines = fast.stdout.splitlines()
    assert lines[0] == "superblock 0 at address 0: its checksum is wrong"
    assert lines[1].startswith("note: root 0")
    assert "map page 1 at address 49: " in lines[2]
    assert lines[3].startswith(f"{image}: damaged: ")
    assert len(lines) == 4
    done = agewell("store", "check", image, "--read-data", "--quiet", check=False)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert lines[3].startswith("block 15 at address ")
    assert "agewell: warning" in agewell("store", "info", image).stderr


def test_salvage_copies_what_is_intact_and_names_what_is_lost(
    agewell: Agewell, image: Path
) -> None:
    agewell("store", "salvage", image, "-o", "before")
    before = (image.parent / "before" / "blocks.bin").read_bytes()
    rows = list(csv.DictReader((image.parent / "before" / "blocks.csv").read_text().splitlines()))
    assert {row["status"] for row in rows} == {"intact"}
    slot = next(int(row["slot"]) for row in rows if row["block"] == "15")
    injure(image, 0, 2, 4, SEGMENTS_START + slot)
    done = agewell("store", "salvage", image, "-o", "saved.bin", check=False)
    assert done.returncode == 1
    assert "no root is valid" in done.stdout
    assert "lost: 15\n" in done.stdout
    assert "those found may be old" in done.stdout
    after = bytearray((image.parent / "saved.bin").read_bytes())
    after[15 * BLOCK_BYTES : 16 * BLOCK_BYTES] = before[15 * BLOCK_BYTES : 16 * BLOCK_BYTES]
    assert bytes(after) == before
    table = list(csv.DictReader((image.parent / "saved.csv").read_text().splitlines()))
    assert {row["block"] for row in table if row["status"] == "lost"} == {"15"}
    again = agewell("store", "salvage", image, "-o", "saved.bin", check=False)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "is there already" in again.stderr


def test_without_a_superblock_there_is_damage_and_nothing_to_salvage(
    agewell: Agewell, image: Path
) -> None:
    data = bytearray(image.read_bytes())
    last = len(data) - BLOCK_BYTES
    for at in (0, BLOCK_BYTES, last):
        data[at + 30] ^= 1
    image.write_bytes(data)
    done = agewell("store", "check", image, check=False)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 4
    for command in (["info", image], ["salvage", image, "-o", "saved"]):
        done = agewell("store", *command, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "no superblock is whole" in done.stderr
    assert sorted(image.parent.glob("saved/*")) == []


BAD = {
    "absent": (["check", "absent"], "absent: cannot be read: No such file"),
    "folder": (["info", "."], ".: cannot be read: "),
    "empty": (["check", "empty"], "empty: is not a store"),
    "zeros": (["salvage", "zeros", "-o", "saved"], "zeros: is not a store"),
    "version": (["check", "version"], "version: has version 3.0 of the format"),
    "table": (["salvage", "disk.store", "-o", "saved.csv"], "is the name of the table"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_status_2(
    agewell: Agewell, image: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "zeros").write_bytes(bytes(1 << 20))
    arguments, reason = BAD[name]
    if name == "version":
        packed = (IMAGES / "version-3.0.img.gz").read_bytes()
        (tmp_path / "version").write_bytes(gzip.decompress(packed))
    done = agewell("store", *arguments, check=False)
    assert done.returncode == 2, done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert reason in done.stderr
    assert image.exists()


def test_a_store_is_made_and_is_whole(agewell: Agewell, tmp_path: Path) -> None:
    path = tmp_path / "new.store"
    made = json.loads(agewell("store", "format", path, "--size", "16 MiB", "--json").stdout)
    assert path.stat().st_size == 16 << 20
    assert path.stat().st_blocks * 512 >= 16 << 20, "its room is not all there"
    assert made["metrics"]["live_blocks"] == 0
    assert made["store"]["block_bytes"] == 4096
    assert agewell("store", "check", path, "--read-data", "--quiet").stdout == ""
    sparse = tmp_path / "sparse.store"
    shown = agewell("store", "format", sparse, "--size", "1GiB", "--sparse", "--block-bytes", "512")
    assert "block_bytes" in shown.stdout
    assert sparse.stat().st_blocks * 512 < 64 << 20
    again = json.loads(agewell("store", "format", sparse, "--force", "--json").stdout)
    assert again["store"]["uuid"] != made["store"]["uuid"]
    assert again["store"]["block_bytes"] == 4096


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent"], "is not there; say by --size"),
        (["absent", "--size", "10KiB"], "too small for a store"),
        (["absent", "--size", "much"], "--size"),
        (["there"], "something is there already; --force"),
        (["there", "--size", "1GiB"], "is there already, and a store takes its size from that"),
        (["absent", "--size", "16MiB", "--block-bytes", "1000"], "a power of two"),
        (["absent", "--size", "16MiB", "--segment-blocks", "3"], "segments have 8 to"),
        (["."], "neither a file nor a block device"),
    ],
)
def test_a_store_that_cannot_be_made_changes_nothing(
    agewell: Agewell, tmp_path: Path, arguments: list[str], says: str
) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"mine" * (1 << 20))
    done = agewell("store", "format", tmp_path / arguments[0], *arguments[1:], check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert there.read_bytes() == b"mine" * (1 << 20)
    assert sorted(tmp_path.iterdir()) == [there]


@pytest.fixture
def whole(image: Path) -> Path:
    """The same in a file of whole 4 KiB, as what is written to must be."""
    with image.open("r+b") as file:
        file.truncate(128 << 10)
    return image


def test_a_store_grows_with_its_file_and_keeps_what_it_has(
    agewell: Agewell, whole: Path, tmp_path: Path
) -> None:
    image = whole
    assert agewell("store", "salvage", image, "-o", tmp_path / "before").returncode == 0
    before = json.loads(agewell("store", "info", image, "--json").stdout)
    grown = json.loads(agewell("store", "grow", image, "--size", "256KiB", "--json").stdout)
    assert image.stat().st_size == 256 << 10
    assert grown["store"]["version"] == "1.2"
    assert grown["store"]["generation"] == before["store"]["generation"] + 1
    assert grown["store"]["closed_in_order"] is True
    assert grown["metrics"]["live_blocks"] == 71
    assert grown["metrics"]["capacity_blocks"] > 2 * before["metrics"]["capacity_blocks"]
    # Once more, after somebody else has made the file longer.
    with image.open("r+b") as file:
        file.truncate(1 << 20)
    again = json.loads(agewell("store", "grow", image, "--json").stdout)
    assert again["metrics"]["capacity_blocks"] > 3 * grown["metrics"]["capacity_blocks"]
    assert "clean (structures and data)" in agewell("store", "check", image, "--read-data").stdout
    assert agewell("store", "salvage", image, "-o", tmp_path / "after").returncode == 0
    blocks = [(tmp_path / when / "blocks.bin").read_bytes() for when in ("before", "after")]
    assert blocks[1].startswith(blocks[0])


NOT_GROWN = {
    "not a store": (["other", "--size", "1GiB"], "there is no store here"),
    "as long": (["disk.store", "--size", "100KiB"], "make the device larger"),
    "no size": (["disk.store"], "make the device larger"),
    "ragged": (["disk.store", "--size", "300001B"], "not a multiple of 4 KiB"),
}


@pytest.mark.parametrize(("arguments", "why"), NOT_GROWN.values(), ids=NOT_GROWN)
def test_a_store_that_cannot_grow_stays_as_long_as_it_is(
    agewell: Agewell, whole: Path, tmp_path: Path, arguments: list[str], why: str
) -> None:
    (tmp_path / "other").write_bytes(bytes(1 << 20))
    long = {path: path.stat().st_size for path in tmp_path.iterdir()}
    done = agewell("store", "grow", tmp_path / arguments[0], *arguments[1:], check=False)
    assert done.returncode in (1, 2)
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert long == {path: path.stat().st_size for path in tmp_path.iterdir()}
    assert agewell("store", "check", whole).returncode == 0
