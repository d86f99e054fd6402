"""The layouts by name: what `agewell compare` and `agewell advise` choose among.

A name stands for a table `[layout]`; everything that the table does not say is the layout's own
default. Nothing of the host is said here: write buffer, caches and syncs are the workload's, the
same for every layout (`SHARED_HOST`), so that layouts alone differ. For the same reason file
systems that have metadata go without it, unless their name says so: logs and write-anywhere model
none, as the simulators of Matthews 1999, §6.2.2.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agewell.errors import InputError

SHARED_HOST: Mapping[str, Any] = {"buffer_size": "256 KiB"}
"""What the host is given unless the workload's file says otherwise. A write buffer of a segment, as
in Matthews 1999, §5.2.2, would depend on the layout; this is the segment of §5.4 in bytes."""

FULL: Mapping[str, Any] = {"minfree_pct": 0, "bytes_per_inode": 4096}
"""The Fast File System keeps nothing back, so that every layout is as full as the experiment asks;
an inode for each 4 KB as in Seltzer et al. 1995."""


@dataclass(frozen=True, slots=True)
class NamedLayout:
    """A layout by name.

    Attributes:
        name: On the command line and in tables.
        words: What it is, one line.
        table: Its `[layout]`.
        is_adaptive: Whether it changes how it works by what it sees, in the sense of Matthews 1999:
            the mechanism of collection, or where blocks lie by how they are read.
    """

    name: str
    words: str
    table: Mapping[str, Any]
    is_adaptive: bool = False


LAYOUTS: tuple[NamedLayout, ...] = (
    NamedLayout(
        "lfs",
        "a log, the emptiest segments cleaned",
        {"kind": "lfs", "victim": "greedy", "collect": "clean"},
    ),
    NamedLayout(
        "lfs-matthews",
        "a log that cleans or plugs by equations 7 and 8 of Matthews 1999",
        {"kind": "lfs", "victim": "greedy", "collect": "matthews-1999"},
        is_adaptive=True,
    ),
    NamedLayout(
        "lfs-adaptive",
        "a log that rehearses cleaning, plugging and threading, and does what cost least",
        {"kind": "lfs", "victim": "greedy", "collect": "adaptive"},
        is_adaptive=True,
    ),
    NamedLayout(
        "lfs-reorganising",
        "the same, and blocks read one after another are written together where that pays",
        {"kind": "lfs", "victim": "greedy", "collect": "adaptive", "reorganise": "blocks"},
        is_adaptive=True,
    ),
    NamedLayout(
        "lfs-zones",
        "a log of segments of 256 MiB, cleaned, for drives that are written zone by zone",
        {"kind": "lfs", "segment_size": "256 MiB", "victim": "greedy", "collect": "clean"},
    ),
    NamedLayout(
        "sequential",
        "files placed one behind the other, updated in place",
        {"kind": "sequential"},
    ),
    NamedLayout(
        "ffs",
        "the Fast File System of 4.4BSD, its metadata left out as the logs' are",
        {"kind": "ffs", "metadata": False, **FULL},
    ),
    NamedLayout(
        "ffs-realloc",
        "the same, blocks moved into free clusters before they are written",
        {"kind": "ffs+realloc", "metadata": False, **FULL},
    ),
    NamedLayout(
        "ffs-metadata",
        "the Fast File System with its metadata, as it is",
        {"kind": "ffs", "metadata": True, **FULL},
    ),
    NamedLayout(
        "journal-metadata",
        "a journal of metadata at the start of the disk, before ffs-metadata",
        {
            "kind": "write-ahead",
            "inner": "ffs",
            "journal": "metadata",
            "metadata": True,
            **FULL,
        },
    ),
    NamedLayout(
        "journal-full",
        "a journal of all data at the start of the disk, before ffs",
        {
            "kind": "write-ahead",
            "inner": "ffs",
            "journal": "full",
            "metadata": False,
            **FULL,
        },
    ),
    NamedLayout(
        "journal-own-disk",
        "the same on a second disk, whose time counts too",
        {
            "kind": "write-ahead",
            "inner": "ffs",
            "journal": "full",
            "journal_place": "own-disk",
            "metadata": False,
            **FULL,
        },
    ),
    NamedLayout(
        "early-unix",
        "the file system of early UNIX, a free list of blocks; its metadata left out",
        {"kind": "early-unix", "metadata": False},
    ),
    NamedLayout(
        "write-anywhere",
        "each version to the next free place in the direction of the head's sweep (Wang 1999)",
        {"kind": "write-anywhere", "search": "sweep"},
    ),
    NamedLayout(
        "write-anywhere-nearest",
        "each version to the free place nearest to the head (English & Stepanov 1992)",
        {"kind": "write-anywhere", "search": "nearest"},
    ),
    NamedLayout(
        "write-anywhere-stripe",
        "all free places of the stripe that has most of them (after Hitz 1995)",
        {"kind": "write-anywhere", "search": "stripe"},
    ),
)

_BY_NAME = {layout.name: layout for layout in LAYOUTS}


def named(name: str) -> NamedLayout:
    """The layout of a name.

    Raises:
        InputError: There is none; the message names the nearest.
    """
    found = _BY_NAME.get(name)
    if found is None:
        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(_BY_NAME)}"
        raise InputError(f"no layout is called '{name}'; {hint}")
    return found


def chosen(text: str) -> Sequence[NamedLayout]:
    """The layouts of `all` or of `NAME,NAME,...`, in the order given.

    Raises:
        InputError: A name is unknown, missing, or stands twice.
    """
    if text.strip() == "all":
        return LAYOUTS
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"--layouts {text}: a name is missing between the commas")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"--layouts {text}: '{name}' stands there twice")
    return [named(name) for name in names]
