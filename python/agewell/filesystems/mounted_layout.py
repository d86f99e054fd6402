"""Where the files of a mounted file system of agewell lie, and how full its segments are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agewell.filesystems import mounted

_LAST, _UNKNOWN, _INLINE, _PROMISED, _SHARED = 0x1, 0x2, 0x200, 0x800, 0x2000
"""Flags of FIEMAP (`linux/fiemap.h`)."""


@dataclass(frozen=True, slots=True)
class LaidExtent:
    """A piece of a file that lies in one piece.

    Attributes:
        logical_bytes: Its first byte in the file.
        physical_bytes: Its first byte on the device; none if it lies in what describes the file,
            in memory only, or is promised only.
        length_bytes: Bytes.
        kind: `data`, `inline`, `promised` or `memory`.
        is_shared: Other files may have it too.
    """

    logical_bytes: int
    physical_bytes: int | None
    length_bytes: int
    kind: str
    is_shared: bool


@dataclass(frozen=True, slots=True)
class LaidFile:
    """A file.

    Attributes:
        path: Where it is.
        extents: Where it lies.
        blocks: Blocks of it that lie on the device.
        following: Of those but the first, how many lie right behind the one before them.
    """

    path: str
    extents: list[LaidExtent]
    blocks: int
    following: int

    def score(self) -> float | None:
        """The layout score (Smith and Seltzer 1996, section 4); none of a file of one block."""
        return self.following / (self.blocks - 1) if self.blocks > 1 else None


@dataclass(frozen=True, slots=True)
class Layout:
    """All that was looked at.

    Attributes:
        files: In the order in which they were found.
        live: Of each segment the share of its blocks that are live.
        segment_bytes: Of a segment.
        offset_bytes: Where on the device the first segment begins.
    """

    files: list[LaidFile]
    live: list[float]
    segment_bytes: int
    offset_bytes: int

    def score(self) -> float | None:
        """The layout score of all files together."""
        followers = sum(max(file.blocks - 1, 0) for file in self.files)
        return sum(file.following for file in self.files) / followers if followers else None

    def segment_of(self, extent: LaidExtent) -> int | None:
        """The segment in which an extent begins."""
        if extent.physical_bytes is None:
            return None
        return (extent.physical_bytes - self.offset_bytes) // self.segment_bytes

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        files = [
            {
                "path": file.path,
                "blocks": file.blocks,
                "layout_score": file.score(),
                "extents": [
                    {
                        "logical_bytes": extent.logical_bytes,
                        "physical_bytes": extent.physical_bytes,
                        "length_bytes": extent.length_bytes,
                        "kind": extent.kind,
                        "is_shared": extent.is_shared,
                        "segment": self.segment_of(extent),
                    }
                    for extent in file.extents
                ],
            }
            for file in self.files
        ]
        return {
            "layout_score": self.score(),
            "segment_bytes": self.segment_bytes,
            "segments_offset_bytes": self.offset_bytes,
            "segments_live": self.live,
            "files": files,
        }


def layout(path: Path) -> Layout:
    """Where the file `path` lies, or all files of the directory and those below.

    Raises:
        InputError: It is not on a mounted file system of agewell.
    """
    status = mounted.status(path)
    block_bytes = status["block_bytes"]
    live = mounted.live_blocks(path)
    return Layout(
        files=[_file(each, block_bytes) for each in _files(path)],
        live=[blocks / status["segment_blocks"] for blocks in live],
        segment_bytes=status["segment_blocks"] * block_bytes,
        offset_bytes=status["segments_offset_bytes"],
    )


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    device = path.stat().st_dev
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if (here / name).lstat().st_dev == device)
        for name in sorted(names):
            if (here / name).is_file() and not (here / name).is_symlink():
                yield here / name


def _file(path: Path, block_bytes: int) -> LaidFile:
    extents: list[LaidExtent] = []
    blocks = following = 0
    for extent in _extents(path):
        last = extents[-1] if extents else None
        extents.append(extent)
        if extent.physical_bytes is None:
            continue
        count = extent.length_bytes // block_bytes
        follows = (
            last is not None
            and last.physical_bytes is not None
            and last.physical_bytes + last.length_bytes == extent.physical_bytes
        )
        following += count - 1 + follows
        blocks += count
    return LaidFile(str(path), extents, blocks, following)


def _extents(path: Path) -> Iterator[LaidExtent]:
    start, is_last = 0, False
    while not is_last:
        words = mounted.extent_words(path, start)
        if not words:
            return
        for logical, physical, length, flags in words:
            kind = "data"
            if flags & _INLINE:
                kind = "inline"
            elif flags & _PROMISED:
                kind = "promised"
            elif flags & _UNKNOWN:
                kind = "memory"
            place = physical if kind == "data" else None
            yield LaidExtent(logical, place, length, kind, bool(flags & _SHARED))
            start, is_last = logical + length, bool(flags & _LAST)
