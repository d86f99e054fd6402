"""The runs below any folder: where they lie, and what the files of each say.

A run is a folder that holds a result (`result.json`) or the error that it ended with
(`error.json`), however it came there: `agewell run --out`, a sweep, a comparison, advice, a study.
What a run was asked is its resolved configuration; the seed apart, runs of one configuration are
replicates of one another, and share its identity.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from agewell.errors import InputError
from agewell.experiments.configuration import canonical_json
from agewell.experiments.simulation import RESULT_FILE, TIMING_FILE
from agewell.values.findings import numbers

ERROR_FILE = "error.json"
"""What a run leaves that could not be made; a result beside it is of a later try."""

DONE = "done"
FAILED = "failed"
DAMAGED = "damaged"
"""What can be said of a run: its record cannot be read."""

_FILES = frozenset((RESULT_FILE, ERROR_FILE, TIMING_FILE))

_SEEDS = 1 << 64

_PART_BYTES = 1 << 16
"""Longer than nearly every record, so that one call reads it."""

_IDENTITY_CHARACTERS = 16
"""64 bits, as in the keys of runs."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run lies, and what distinguishes its files from those that stood there before.

    Attributes:
        path: Its folder, relative to the one that was searched; `.` is that one itself.
        stamp: Of each of its files that counts: name, modification time, size and number on the
            disk.
        record: The name of the file that says how it ended.
        made_ns: When that was written, in nanoseconds since 1970.
        is_timed: Whether it says how long it took.
    """

    path: str
    stamp: str
    record: str
    made_ns: int
    is_timed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """What the files of a run say; what they do not say is None.

    Attributes:
        status: `DONE`, `FAILED` or `DAMAGED`.
        error: Why it is not done.
        error_kind: What kind of error that was.
        kind: Of the experiment.
        version: Of agewell that made it.
        build: Likewise.
        seed: Of its random numbers.
        configuration: The resolved one, as canonical JSON.
        configuration_id: What it shares with its replicates.
        inputs: Names and hashes of its inputs, as canonical JSON.
        warnings: As canonical JSON.
        run_seconds: How long it took to make.
        metrics: Numbers by name, of each lane.
    """

    status: str
    error: str | None = None
    error_kind: str | None = None
    kind: str | None = None
    version: str | None = None
    build: str | None = None
    seed: int | None = None
    configuration: str | None = None
    configuration_id: str | None = None
    inputs: str | None = None
    warnings: str | None = None
    run_seconds: float | None = None
    metrics: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


def places(folder: Path) -> list[Place]:
    """Every run below a folder, in the order of their paths.

    Links to folders are not followed, nor is what has a name that begins with a point.

    Raises:
        InputError: The folder, or one below it, cannot be read.
    """
    found = []
    try:
        searched = f"{folder}/"
        for directory, entries in _folders(searched):
            record = entries.get(RESULT_FILE) or entries.get(ERROR_FILE)
            if record is None:
                continue
            timing = entries.get(TIMING_FILE)
            stamp = _stamp(record) + ("" if timing is None else f" {_stamp(timing)}")
            found.append(
                Place(
                    path=directory[len(searched) :] or ".",
                    stamp=stamp,
                    record=record.name,
                    made_ns=record.stat().st_mtime_ns,
                    is_timed=timing is not None,
                )
            )
    except OSError as error:
        where = error.filename or folder
        raise InputError(f"{where}: cannot be read: {error.strerror}") from error
    return sorted(found, key=lambda place: place.path)


def _folders(folder: str) -> Iterator[tuple[str, dict[str, os.DirEntry[str]]]]:
    """A folder and all below it, each with its files."""
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        entries = {}
        with os.scandir(current) as listing:
            for entry in listing:
                if entry.name[0] == ".":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.name in _FILES and entry.is_file():
                    entries[entry.name] = entry
        yield current, entries


def _stamp(entry: os.DirEntry[str]) -> str:
    status = entry.stat()
    return f"{entry.name}:{status.st_mtime_ns}:{status.st_size}:{status.st_ino}"


def read(folder: Path, place: Place) -> FoundRun:
    """What the files of a run say; of one whose record is damaged, what is wrong with it."""
    path = f"{folder}/{place.path}/"
    record = path + place.record
    try:
        content = _content(record)
        found = (
            _of_error(json.loads(content))
            if place.record == ERROR_FILE
            else _of_result(_result(content))
        )
    except OSError as error:
        return FoundRun(status=DAMAGED, error=f"{record}: cannot be read: {error.strerror}")
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        return FoundRun(status=DAMAGED, error=f"{record}: not a record of agewell run: {error}")
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        return FoundRun(
            status=DAMAGED, error=f"{record}: not a record of agewell run: it lacks {error}"
        )
    if not place.is_timed:
        return found
    return replace(found, run_seconds=_run_seconds(path + TIMING_FILE))


def _content(path: str) -> bytes:
    """The bytes of a file that a run has left, with as few calls as that takes."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        content = b""
        while part := os.read(handle, _PART_BYTES):
            content += part
            if len(part) < _PART_BYTES:
                break
    finally:
        os.close(handle)
    return content


class _Result(msgspec.Struct):
    """What a result says of a run; its other fields are passed over without being made values."""

    config: dict[str, Any]
    metrics: dict[str, Any]
    agewell_version: Any
    agewell_build: Any = None
    kind: Any = None
    seed: Any = None
    inputs: Any = ()
    warnings: Any = ()
    baseline_metrics: dict[str, Any] | None = None


class _PlainResult(_Result):
    """Nearly every result: its metrics are numbers, and become reals while they are read."""

    metrics: dict[str, float | None]
    baseline_metrics: dict[str, float | None] | None = None


_RESULTS = msgspec.json.Decoder(_PlainResult)
_CANONICAL = msgspec.json.Encoder(order="sorted")


def _result(content: bytes) -> _Result:
    """A result out of its text.

    Raises:
        ValueError: It is none.
        TypeError: It lacks something.
    """
    try:
        return _RESULTS.decode(content)
    except msgspec.MsgspecError:
        # Tables among metrics, names that are no UTF-8, numbers without end: what Python reads
        # counts, and says better what is wrong.
        return msgspec.convert(json.loads(content), _Result)


def _of_result(found: _Result) -> FoundRun:
    return FoundRun(
        kind=_text(found.kind),
        status=DONE,
        version=_text(found.agewell_version),
        build=_text(found.agewell_build),
        seed=_seed(found.seed),
        configuration=_canonical(found.config),
        configuration_id=identity(found.config),
        inputs=_canonical(found.inputs),
        warnings=_canonical(found.warnings),
        metrics={"run": _reals(found.metrics), "baseline": _reals(found.baseline_metrics or {})},
    )


def _canonical(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces."""
    try:
        return _CANONICAL.encode(value).decode()
    except (UnicodeEncodeError, msgspec.MsgspecError):
        return canonical_json(value)


def _of_error(document: Mapping[str, Any]) -> FoundRun:
    config = document["config"]
    return FoundRun(
        status=FAILED,
        error=str(document["error"]),
        error_kind=_text(document.get("kind")),
        version=_text(document.get("version")),
        build=_text(document.get("build")),
        seed=_seed(config.get("run", {}).get("seed")),
        configuration=_canonical(config),
        configuration_id=identity(config),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _seed(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _SEEDS else None


def _reals(values: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of a table; what is none is passed over."""
    if all(value.__class__ is float for value in values.values()):
        return dict(values)
    return {
        name: value if value.__class__ is float or value is None else float(value)
        for name, value in numbers(values).items()
    }


def identity(config: Mapping[str, Any], without: Iterable[str] = ()) -> str:
    """What the replicates of a configuration share: a hash of it without its seed.

    Args:
        config: The resolved configuration.
        without: Further settings that make no difference, as `table.key`; `table` is all of it.
    """
    text = _canonical(without_settings(config, ("run.seed", *without)))
    return hashlib.sha256(text.encode()).hexdigest()[:_IDENTITY_CHARACTERS]


def without_settings(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """A copy of a configuration without some settings; what is not there is passed over."""
    left: dict[str, Any] = copy.copy(dict(config))
    for name in names:
        *tables, key = name.split(".")
        table = left
        for each in tables:
            inner = table.get(each)
            if not isinstance(inner, dict):
                break
            table[each] = dict(inner)
            table = table[each]
        else:
            table.pop(key, None)
    return left


def _run_seconds(path: str) -> float | None:
    """How long the run took, if it says so."""
    try:
        return float(json.loads(_content(path))["run_seconds"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None
