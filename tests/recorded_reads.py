"""Recordings of block requests, written from where files lie: as text, a line a request."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agewell.filesystems import snapshots

SECTOR_BYTES = 512
READ_AHEAD_BYTES = 128 << 10


@dataclass(frozen=True)
class Extent:
    """Bytes of a file that lie side by side: where in the file, where on the device."""

    logical_bytes: int
    physical_bytes: int
    length_bytes: int


def places(mount: Path, folder: Path) -> dict[int, list[Extent]]:
    """The extents of regular files below `mount`, by inode; those without a place left out."""
    snapshot = folder / "places.snapshot"
    snapshots.take(mount, snapshot, sync=True)
    table = snapshots.read(snapshot).files
    rows = zip(*(table[name].to_pylist() for name in ("inode", "kind", "extents")), strict=True)
    found = {}
    for inode, kind, extents in rows:
        placed = [
            Extent(row["logical_bytes"], row["physical_bytes"], row["length_bytes"])
            for row in extents or ()
            if row["physical_bytes"] is not None
        ]
        if kind == "regular" and placed:
            found[inode] = placed
    return found


def write(
    recording: Path, extents: dict[int, list[Extent]], reads: Iterable[tuple[int, int, int]]
) -> None:
    """Write a recording of `reads`, each an inode, an offset and a length, bytes."""
    lines: list[str] = []
    for inode, offset, length in reads:
        for extent in extents[inode]:
            start = max(offset, extent.logical_bytes)
            end = min(offset + length, extent.logical_bytes + extent.length_bytes)
            if start < end:
                at = extent.physical_bytes + start - extent.logical_bytes
                sectors = -(-(end - start) // SECTOR_BYTES)
                lines.append(f"{len(lines) * 10.0} 0 {at // SECTOR_BYTES} {sectors} 1\n")
    recording.write_text("".join(lines))


def drawn(extents: dict[int, list[Extent]], draw: random.Random) -> list[tuple[int, int, int]]:
    """Reads of most files, those of long ones at several places that are jumped between."""
    reads = []
    inodes = sorted(extents)
    for inode in draw.sample(inodes, draw.randrange(1, len(inodes) + 1)):
        last = extents[inode][-1]
        end = last.logical_bytes + last.length_bytes
        jumps = draw.randrange(2, 9) if end > READ_AHEAD_BYTES else 0
        reads.append((inode, 0, min(end, 16 << 10)))
        for _ in range(jumps):
            offset = draw.randrange(end // 4096) * 4096
            reads.append((inode, offset, draw.choice((1, 4, 32, 32, 100)) * 4096))
    return reads
