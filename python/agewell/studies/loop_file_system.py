"""A real file system for a while: an image, made and mounted on a loop device."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agewell.errors import RunError


def missing(kind: str) -> str:
    """Why a file system of this kind cannot be made and mounted here; empty if it can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "only root can mount a file system; run it as root"
    for program in (f"mkfs.{kind}", "mount", "umount"):
        if shutil.which(program) is None:
            return f"there is no {program} here; install it"
    return ""


@contextmanager
def mounted(kind: str, size_bytes: int) -> Iterator[Path]:
    """Make and mount a file system; it is gone afterwards.

    Args:
        kind: `ext4`, `xfs` or `btrfs`.
        size_bytes: Size of its image.

    Yields:
        Where it is mounted.

    Raises:
        RunError: It cannot be made or mounted.
    """
    with tempfile.TemporaryDirectory(prefix="agewell-") as folder:
        image, root = Path(folder, "image"), Path(folder, "root")
        root.mkdir()
        with image.open("wb") as file:
            file.truncate(size_bytes)
        _do(f"mkfs.{kind}", "-q", str(image))
        _do("mount", "-o", "loop", str(image), str(root))
        try:
            yield root
        finally:
            _do("umount", str(root))


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = done.stderr.strip() or f"it ended with {done.returncode}"
        raise RunError(f"{command[0]}: {why}")
