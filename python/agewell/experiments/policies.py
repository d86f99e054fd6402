"""Policies of a simulation that are functions: what they are called, and what they raise.

A function stands for the policy of a log or a layout. A result names it by where it is defined and
by a hash of its source, so that no result passes for that of another function.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from agewell import _agewell
from agewell.errors import AgewellError, InputError, RunError

KINDS = ("victim", "placement", "allocator")
"""What may be decided by a function."""

_HASH_CHARACTERS = 16
"""64 bits, so that no two sources share one by chance."""

PolicyFunction = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Policies:
    """Functions that decide in place of what an experiment names.

    Attributes:
        victim: Which segment of a log is collected, out of `Segments`.
        placement: Which open log of a log blocks go to, out of `Blocks`.
        allocator: Which free place a write-anywhere layout writes next, out of `Places`.
    """

    victim: PolicyFunction | None = None
    placement: PolicyFunction | None = None
    allocator: PolicyFunction | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, kind) is not None for kind in KINDS)

    def as_asked(self) -> dict[str, tuple[PolicyFunction, str, str] | None]:
        """For the extension module: each function, what results call it and what messages do.

        Raises:
            InputError: One cannot be called.
        """
        return {kind: _asked(kind, getattr(self, kind)) for kind in KINDS}


def _asked(kind: str, function: PolicyFunction | None) -> tuple[PolicyFunction, str, str] | None:
    if function is None:
        return None
    if not callable(function):
        raise InputError(
            f"{kind}: a {type(function).__name__} cannot be called; give a function of one argument"
        )
    label = f"{kind} policy {_place(function)}"
    return _reporting(function, label), name_of(function), label


def name_of(function: PolicyFunction) -> str:
    """What results call a function: `module:name`, and a hash of its source.

    Parameters that `functools.partial` has filled in are part of the hash; what the function calls
    is not.
    """
    defined = _defined(function)
    source = _source(defined)
    inner: Any = function
    while isinstance(inner, functools.partial):
        source += f"\n{inner.args!r} {sorted(inner.keywords.items())!r}"
        inner = inner.func
    sha256 = _agewell.sha256(source.encode())[:_HASH_CHARACTERS]
    return f"{defined.__module__}:{defined.__qualname__} sha256:{sha256}"


def _defined(function: PolicyFunction) -> Any:
    """What has a name and a source: the function itself, or the class of an object."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    return inner if hasattr(inner, "__qualname__") else type(inner)


def _source(defined: Any) -> str:
    try:
        return inspect.getsource(defined)
    except (OSError, TypeError):
        # Typed in, or made by a program: the code itself, without where it stood.
        return repr(_instructions(getattr(defined, "__code__", None)))


def _instructions(code: CodeType | None) -> tuple[object, ...]:
    if code is None:
        return ()
    constants = tuple(
        _instructions(each) if isinstance(each, CodeType) else each for each in code.co_consts
    )
    return code.co_code.hex(), code.co_names, code.co_varnames, constants


def _place(function: PolicyFunction) -> str:
    """The name of a function and where it is defined, for messages."""
    defined = _defined(function)
    name = f"'{defined.__module__}:{defined.__qualname__}'"
    try:
        file = inspect.getsourcefile(defined)
        _, line = inspect.getsourcelines(defined)
    except (OSError, TypeError):
        code = getattr(defined, "__code__", None)
        file, line = (code.co_filename, code.co_firstlineno) if code else (None, 0)
    return name if file is None else f"{name} ({file}:{line})"


def _reporting(function: PolicyFunction, label: str) -> PolicyFunction:
    """The function, with what it raises as one line."""

    def ask(view: Any) -> Any:
        try:
            return function(view)
        except AgewellError:
            raise
        except Exception as error:
            raise RunError(_report(error, function, label)) from error

    return ask


def _report(error: Exception, function: PolicyFunction, label: str) -> str:
    """One line: what was raised, and where in the file of the function."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__
    ]
    code = getattr(_defined(function), "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    where = "".join(f" at {frame.filename}:{frame.lineno}" for frame in (own or frames)[-1:])
    said = " ".join(str(error).split())
    return f"{label}: {type(error).__name__}{f': {said}' if said else ''}{where}"


def load(place: str, kind: str) -> PolicyFunction:
    """The function that `FILE.py:NAME` names.

    Args:
        place: Where it is.
        kind: What it decides, for messages.

    Raises:
        InputError: There is none, or its file cannot be run.
    """
    file, colon, name = place.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise InputError(f"--{kind} {place}: expected FILE.py:NAME, for example policy.py:greedy")
    path = Path(file)
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"--{kind} {place}: {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--{kind} {place}: {path} is not UTF-8 text") from error
    module = _module(path, source, f"--{kind} {place}")
    function = getattr(module, name, None)
    if not callable(function):
        known = sorted(
            each
            for each, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        )
        raise InputError(
            f"--{kind} {place}: {path} has no function '{name}'; "
            f"it has {', '.join(known) or 'none'}"
        )
    loaded: PolicyFunction = function
    return loaded


def _module(path: Path, source: str, what: str) -> Any:
    """The module that a file makes, known by the name of the file alone."""
    import linecache
    import sys
    from types import ModuleType

    name = str(path)
    module = ModuleType(path.stem)
    module.__file__ = name
    # Beside it may lie what it imports; and what reads sources finds this one.
    sys.path.insert(0, str(path.resolve().parent))
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    sys.modules.setdefault(module.__name__, module)
    try:
        exec(compile(source, name, "exec"), vars(module))  # noqa: S102 - it is what was asked for
    except SyntaxError as error:
        raise InputError(f"{what}: {name}:{error.lineno}: not Python: {error.msg}") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(str(error).split())
        raise InputError(
            f"{what}: {type(error).__name__}: {said} at {last.filename}:{last.lineno}"
        ) from error
    return module
