"""Which real file system works about as a layout does, and the command that makes it.

Layouts are simulated without what a real file system keeps beside its data (trees, checksums,
directories), so a gain is that of the layout; measure the file system that carries it, on a disk
with nothing on it: `agewell age --onto` and `agewell bench`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agewell.values.sizes import bytes_of

_F2FS_SEGMENT_BYTES = 2 << 20
"""A segment of F2FS; a section is a whole number of them (mkfs.f2fs(8), `-s`)."""


_ZONE_BYTES = 256 << 20
"""Zones of the drives that must be written so (layout `lfs-zones`)."""


@dataclass(frozen=True, slots=True)
class Installable:
    """A real file system.

    Attributes:
        name: What it is called.
        likeness: In what it is like the layout, and in what not.
        command: What makes it on a disk DEVICE, whose contents are lost.
    """

    name: str
    likeness: str
    command: str

    def sentence(self) -> str:
        """All of it, the command last."""
        return (
            f"Nearest to install: {self.name}, which {self.likeness}. To make one: {self.command}"
        )

    def document(self) -> dict[str, str]:
        """As JSON values."""
        return {"name": self.name, "likeness": self.likeness, "command": self.command}


def installable(layout: Mapping[str, Any]) -> Installable:
    """The real file system that is nearest to a layout.

    Args:
        layout: Its table `[layout]`, with defaults or without.
    """
    kind = layout["kind"]
    if kind == "lfs":
        return _log(layout)
    if kind == "write-ahead":
        return _journal(layout)
    if kind == "write-anywhere":
        return Installable(
            "btrfs",
            "writes each version of a block to a free place, but keeps its map in trees that are "
            "written so too",
            "mkfs.btrfs DEVICE",
        )
    if kind == "sequential":
        return Installable(
            "one file on ext4 or XFS that is allocated at once",
            "is updated in place",
            "fallocate -l SIZE FILE",
        )
    if kind == "early-unix":
        return Installable(
            "ext2",
            "updates in place without a journal; no file system in use still takes blocks from a "
            "list as the layout does",
            "mkfs.ext2 DEVICE",
        )
    return Installable(
        "ext4 without its journal",
        "keeps files of a directory in a group and updates in place, as the Fast File System does; "
        "its delayed allocation does what reallocation does there",
        "mkfs.ext4 -O ^has_journal DEVICE",
    )


def _log(layout: Mapping[str, Any]) -> Installable:
    if layout.get("collect", "adaptive") == "clean" and not _is_zoned(layout):
        return Installable(
            "NILFS2",
            "is a log whose segments a daemon cleans behind",
            "mkfs.nilfs2 DEVICE",
        )
    sections = max(round(_segment_bytes(layout) / _F2FS_SEGMENT_BYTES), 1)
    size = f" -s {sections}" if sections > 1 else ""
    if _is_zoned(layout):
        return Installable(
            "F2FS on a zoned device",
            "cleans sections that are whole zones",
            "mkfs.f2fs -m DEVICE",
        )
    return Installable(
        "F2FS",
        "appends and cleans, and writes into holes when room is short; it goes by thresholds and "
        "not by what either costs on the disk",
        f"mkfs.f2fs{size} DEVICE",
    )


def _journal(layout: Mapping[str, Any]) -> Installable:
    if layout.get("journal") != "full":
        return Installable("ext4 or XFS", "keep a journal of their metadata", "mkfs.ext4 DEVICE")
    if layout.get("journal_place") == "own-disk":
        return Installable(
            "ext4 with a full journal on a disk of its own",
            "writes everything there first",
            "mke2fs -O journal_dev JOURNAL && mkfs.ext4 -J device=JOURNAL DEVICE && "
            "mount -o data=journal DEVICE DIRECTORY",
        )
    return Installable(
        "ext4 with a full journal",
        "writes everything to its journal first",
        "mkfs.ext4 DEVICE && mount -o data=journal DEVICE DIRECTORY",
    )


def _is_zoned(layout: Mapping[str, Any]) -> bool:
    return _segment_bytes(layout) >= _ZONE_BYTES


def _segment_bytes(layout: Mapping[str, Any]) -> int:
    return bytes_of(str(layout.get("segment_size", "256 KiB")))
