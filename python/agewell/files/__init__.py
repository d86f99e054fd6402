"""Files that are written whole or not at all, and small ones that are read within bounds.

As in the extension module, what is being written to `NAME` stands in `.NAME.partial` beside it,
or in `.NAME.1.partial` and so on where writers of the same name are at work, and each holds a lock
on its own. One without a lock is what a killed process has left, and is taken over.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agewell.errors import InputError, RunError

TEXT_BYTES_MAX = 64 << 20
"""Bytes of the longest file that is read as a whole, chosen by us; as on the Rust side."""


def read_bounded(path: Path, bytes_max: int = TEXT_BYTES_MAX) -> bytes:
    """The bytes of a file or pipe that someone wrote by hand or a program in one piece.

    Args:
        path: The file.
        bytes_max: More is refused, so that what never ends does not fill the memory.

    Raises:
        InputError: It is a device, or longer.
        OSError: It cannot be read.
    """
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise InputError(f"{path}: a device, not a file; name a file")
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise InputError(f"{path}: longer than {bytes_max:,} bytes, which no such file is")
    return content


_PARTIAL_FILES_MAX = 1000
"""Partial files of one name that are tried; chosen by us: more writers of one file at once are a
mistake."""

_NO_LOCKS_HERE = (errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a partial file beside `path`, then rename it.

    Args:
        path: The final name; its folder is made if needed.
        write: Called with the path of the partial file.

    Raises:
        RunError: The folder or the file cannot be written.
    """
    try:
        handle, partial = _partial_file(path)
        try:
            write(partial)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def held(path: Path) -> Iterator[Path]:
    """A partial file beside `path` that no one else has, for as long as a block lasts.

    Args:
        path: The name it is of; its folder is made if needed.

    Yields:
        The partial file, empty; it is removed at the end. What a killed process has left is taken
        over.

    Raises:
        RunError: It cannot be made.
    """
    try:
        handle, partial = _partial_file(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)
        os.close(handle)


def require_writable(paths: Iterable[str | os.PathLike[str] | None]) -> None:
    """Find out now whether files can be written that are to be written after long work.

    Args:
        paths: Their final names; their folders are made if needed. None is passed over.

    Raises:
        RunError: One of them cannot be written.
    """
    for path in paths:
        if path is not None and os.fspath(path) != "-":
            _try_writing(Path(path))


def _try_writing(path: Path) -> None:
    try:
        handle, partial = _partial_file(path)
        partial.unlink()
        os.close(handle)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from error


def _partial_file(path: Path) -> tuple[int, Path]:
    """The first partial file of `path` that no one writes to, empty and locked; its handle first.

    The folder is made if needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    failure: OSError = BlockingIOError(errno.EBUSY, os.strerror(errno.EBUSY))
    for number in range(_PARTIAL_FILES_MAX):
        infix = f".{number}" if number else ""
        candidate = path.with_name(f".{path.name}{infix}.partial")
        try:
            handle = _take(candidate)
        except OSError as error:
            # Something else may stand there that is not ours to take.
            if not os.path.lexists(candidate):
                raise
            failure = error
            continue
        if handle is not None:
            return handle, candidate
    raise failure


def _take(path: Path) -> int | None:
    """Open, lock and empty a file, made if it is not there; None if a writer is at work on it."""
    while True:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        taken = False
        try:
            if not _lock(handle):
                return None
            # Whoever held the lock before may have renamed or removed what was opened.
            if _is_named(handle, path):
                os.ftruncate(handle, 0)
                taken = True
                return handle
        finally:
            if not taken:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file for as long as it is open; whether no one else had it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # A file system without locks: then two writers at once are the users' care.
        if error.errno not in _NO_LOCKS_HERE:
            raise
    return True


def _is_named(handle: int, path: Path) -> bool:
    """Whether the open file is the one at `path`.

    Raises:
        FileExistsError: It has a second name, under which it would be changed, too.
    """
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    if named.st_nlink != 1:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    return os.path.samestat(os.fstat(handle), named)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RunError(
            f"{path}: cannot be written: it would hold the name of a file that is not UTF-8"
        ) from error
    write_whole(path, lambda partial: partial.write_bytes(content))


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document in one step, keys in the order given."""
    write_text(path, json_text(document))


def json_text(document: Any) -> str:
    r"""A JSON document as it is written: keys in the order given, numbers read back exactly.

    The bytes of a file's name that are not UTF-8, which Python keeps as lone surrogates, become
    escapes (`\udcff`), so that the text is UTF-8 and gives the same name when it is read.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def path_text(path: Path | str | os.PathLike[str]) -> str:
    r"""The name of a file in a JSON request to the extension module.

    A byte that is no part of UTF-8 text becomes a zero character, which no name holds, and two
    hexadecimal digits.
    """
    text = os.fspath(path)
    return "".join(
        f"\0{ord(letter) - 0xDC00:02x}" if "\udc80" <= letter <= "\udcff" else letter
        for letter in text
    )


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
