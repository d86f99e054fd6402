"""What a user can install that works about as a layout does."""

from __future__ import annotations

import pytest

from agewell.advice.installable import installable
from agewell.experiments.layouts import LAYOUTS, named

NEAREST = {
    "lfs": "NILFS2",
    "lfs-adaptive": "F2FS",
    "lfs-zones": "F2FS on a zoned device",
    "ffs-realloc": "ext4 without its journal",
    "journal-metadata": "ext4 or XFS",
    "journal-own-disk": "ext4 with a full journal on a disk of its own",
    "write-anywhere-stripe": "btrfs",
}


def test_every_layout_has_a_nearest_file_system_and_the_command_that_makes_it() -> None:
    for layout in LAYOUTS:
        found = installable(layout.table)
        assert found.sentence().endswith(found.command), layout.name
        assert found.command.split()[0].startswith(("mk", "mke2fs", "fallocate")), layout.name


@pytest.mark.parametrize(("name", "expected"), NEAREST.items())
def test_the_nearest_one_does_what_the_layout_does(name: str, expected: str) -> None:
    assert installable(named(name).table).name == expected


def test_segments_of_the_advice_are_sections_of_f2fs() -> None:
    table = {"kind": "lfs", "collect": "adaptive", "segment_size": "16 MiB"}
    assert installable(table).command == "mkfs.f2fs -s 8 DEVICE"
    assert installable({**table, "segment_size": "524288 B"}).command == "mkfs.f2fs DEVICE"
