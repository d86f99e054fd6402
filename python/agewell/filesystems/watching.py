"""Keeping a mounted file system in shape: what is read together is laid together, where it pays.

from agewell.filesystems import watching

watching.watch("/srv", budget="2 GB/h", time_limit="8 h", report=lambda event: True)
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from agewell import _agewell
from agewell.errors import InputError
from agewell.files import catalogue
from agewell.filesystems.reorganising import DEFAULT_DEVICE

EVERY = "10 min"
"""How long a round is at least; chosen by us: programs that are started once an hour are seen in
few rounds, and a slice of recorded requests stays small."""

Report = Callable[[dict[str, Any]], bool]
"""Called several times a second with what goes on, an object with its `kind` (`look`, `record`,
`wait`, `move`, `round`); it returns whether to go on."""


def state_file(path: str | PathLike[str]) -> Path:
    """Where the history of a tree is kept unless a file is named.

    In `$STATE_DIRECTORY`, as systemd sets it, else in the folder of agewell in `$XDG_STATE_HOME`,
    which is `~/.local/state` if it is not set.
    """
    name = os.path.realpath(path).strip("/").replace("%", "%25").replace("/", "%2F") or "root"
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        folder = Path(given)
    else:
        home = os.environ.get("XDG_STATE_HOME")
        folder = (Path(home) if home else Path.home() / ".local" / "state") / "agewell"
    return folder / f"watch-{name}.history"


def _bytes_per_hour(budget: str) -> str:
    size, slash, hour = budget.rpartition("/")
    if not slash or hour.strip() not in ("h", "hour"):
        raise InputError(f"budget {budget!r}: a size an hour is needed, such as '2 GB/h'")
    return size.strip()


def watch(
    path: str | PathLike[str],
    *,
    report: Report,
    budget: str | None = None,
    every: str = EVERY,
    time_limit: str | None = None,
    device: str | None = None,
    state: str | PathLike[str] | None = None,
    dry_run: bool = False,
    catalogue_directory: Path | str | None = None,
) -> None:
    """Keep the files below a directory of a mounted ext4, xfs or btrfs in shape.

    Records what is read of the disk, remembers which files are read together, and moves those that
    are likely to save more time than their move costs.

    Args:
        path: A directory of a mounted file system.
        report: Called with what goes on; what it raises ends the work between two moves.
        budget: No more than this is moved in any hour, such as `2 GB/h`.
        every: How long a round is at least.
        time_limit: It ends after so long, such as `8 h`.
        device: The disk whose times count, a name of the catalogue or a file; the times of the disk
            itself, as observed, if not given.
        state: Where the history is kept; by `state_file` if not given.
        dry_run: Move nothing.
        catalogue_directory: Folder of device files in place of the catalogue.

    Raises:
        InputError: `path` cannot be reorganised or recorded.
        RunError: The file system failed, or was unmounted.
    """
    options = {
        "budget": _bytes_per_hour(budget) if budget is not None else None,
        "every": every,
        "time": time_limit,
        "device": device,
        "usual": DEFAULT_DEVICE,
        "state": fspath(state if state is not None else state_file(path)),
        "dry_run": dry_run,
    }
    directory = catalogue.directory(catalogue_directory)

    def reported(text: str) -> bool:
        return report(json.loads(text))

    _agewell.watch_path(path, directory, json.dumps(options), reported)
