"""Laying the files of a mounted file system one behind another, where they are read.

from agewell.filesystems import reorganising

done = reorganising.reorganise("/srv", device="seagate-st2000dm006", dry_run=True)
done["saving"]["gain_pct"]
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from agewell import _agewell
from agewell.files import catalogue

DEFAULT_DEVICE = "seagate-st2000dm006"
"""What the saving is estimated for unless a device is named: a disk of 7,200 rpm as in desktops and
small servers, the drive of today of which most is known in the catalogue."""

Progress = Callable[[str, int, int | None, float], object]
"""Called with a phase (`look`, `move`), what is done (files; bytes), what there is to do if known,
and the seconds since the phase began."""


def reorganise(
    path: str | PathLike[str],
    *,
    by: str = "names",
    device: str = DEFAULT_DEVICE,
    budget: str | None = None,
    rate: str | None = None,
    time_limit: str | None = None,
    dry_run: bool = False,
    anyway: bool = False,
    whole_files: bool = False,
    plan: str | PathLike[str] | None = None,
    apply: bool = False,
    catalogue_directory: Path | str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Lay the files below a directory of a mounted ext4, xfs or btrfs one behind another.

    Contents, sizes, times and attributes of files stay as they are, also when it is interrupted or
    the machine stops.

    Args:
        path: A directory of a mounted file system.
        by: The order: `names` and `directory` (as it is listed) walk the tree; anything else is the
            path of a recording of block requests, whose files are laid in the order of their
            first reads, or along the access graph if the recording reads faster so. Long files
            are laid in the parts that it reads of them, where that is faster (not on btrfs).
        device: The disk for which the saving is estimated: a name of the catalogue, or a file.
        budget: No more than this is moved, such as `1 GB`; what saves most for its bytes first.
        rate: No more than this is moved in a second, such as `20 MB/s`.
        time_limit: It ends after so long, such as `1 h`.
        dry_run: Only plan.
        anyway: Move files also where it is not expected to pay.
        whole_files: With a recording, lay every file whole.
        plan: Where the plan is written to, or is read from with `apply`.
        apply: Carry out the plan in the file `plan`.
        catalogue_directory: Folder of device files in place of the catalogue.
        progress: Called now and then; what it raises ends the work between two moves.

    Returns:
        What was planned (`order` of the files of a recording, `work`, files that are `parted`,
        `saving`, `left_out`), how
        files lay (`layout`), whether it was carried out, and then what was `done` and
        `layout_after`.

    Raises:
        InputError: `path` cannot be reorganised; nothing is changed.
        RunError: The file system failed.
    """
    options = {
        "by": "plan" if apply else by,
        "device": device,
        "budget": budget,
        "rate": rate,
        "time": time_limit,
        "dry_run": dry_run,
        "anyway": anyway or apply,
        "whole_files": whole_files,
        "plan": fspath(plan) if plan is not None else None,
    }
    directory = catalogue.directory(catalogue_directory)
    text = _agewell.reorganise_path(path, directory, time.time_ns(), json.dumps(options), progress)
    document: dict[str, Any] = json.loads(text)
    return document
