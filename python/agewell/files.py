"""Writing files so that nothing half-written is ever left under its final name."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agewell.errors import RunError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it.

    Args:
        path: The final name; its folder is made if needed.
        write: Called with the path of the temporary file, which has the same suffix.

    Raises:
        RunError: The folder or the file cannot be written.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix
        )
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        temporary = None
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document in one step, keys in the order given."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def make_folder(path: Path) -> Path:
    """Make a folder and those above it.

    Raises:
        RunError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: the folder cannot be made: {error.strerror}") from error
    return path


def _umask() -> int:
    # There is no way to read the mask but to set it; this runs in the main thread before other
    # files are made.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
