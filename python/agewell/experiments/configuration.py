"""Experiments as files and as dicts.

Reading TOML, changing single settings, and running a result again from its own record.

What the tables and keys mean is checked in the Rust core, which names the nearest known key for an
unknown one. Here a configuration is only a nested dict of JSON values.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agewell import files
from agewell.errors import InputError
from agewell.files import catalogue

Configuration = dict[str, Any]
"""One table a box of the flow, as in the TOML file."""

_POSITION = re.compile(
    r"^(?P<what>.*?)\s*\(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$"
)
_BARE_KEY = re.compile(r"^[A-Za-z0-9_-]+$")

_DEPTH_MAX = 64
"""Tables and lists within one another that are read; chosen by us, far more than anything here
needs: what is deeper is no experiment, and Python's own limits would end in a traceback."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A configuration and the folder that its relative paths start from.

    Attributes:
        configuration: The tables of the experiment.
        base: Folder that relative paths in it start from.
    """

    configuration: Configuration
    base: Path


def schema() -> dict[str, Any]:
    """What an experiment may say, as a JSON Schema."""
    from agewell import _agewell

    document: dict[str, Any] = json.loads(_agewell.configuration_reference())["schema"]
    return document


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        InputError: The file cannot be read or is not TOML; the message gives file, line and column.
    """
    import tomllib  # many commands read none

    try:
        text = files.read_bounded(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start}: not UTF-8 text, so not TOML") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(_syntax_error(path, str(error))) from error
    except RecursionError as error:
        raise _too_deep(path) from error
    require_shallow(tables, path)
    return tables


def load(path: Path) -> Experiment:
    """The experiment of a TOML file, of the `result.json` of an earlier run, or an example by name.

    Raises:
        InputError: The file is missing, is neither, or its inputs cannot be found.
    """
    if path.is_dir():
        path = path / "result.json"
    elif not path.exists():
        path = catalogue.example(str(path)) or path
    if path.suffix == ".json":
        return _load_record(path)
    return Experiment(_as_json(read_toml(path), path), path.parent)


def with_settings(configuration: Mapping[str, Any], settings: Mapping[str, Any]) -> Configuration:
    """A copy of a configuration with single values replaced or added.

    Args:
        configuration: The tables; left as they are.
        settings: Values by `table.key`, typed.

    Raises:
        InputError: A name is not `table.key`, or goes through something that is not a table.
    """
    changed: Configuration = copy.deepcopy(dict(configuration))
    for name, value in settings.items():
        parts = name.split(".")
        if len(parts) < 2 or not all(_BARE_KEY.match(part) for part in parts):  # noqa: PLR2004
            raise InputError(f"setting '{name}': expected table.key, for example remap.kind")
        table = changed
        for depth, part in enumerate(parts[:-1], start=1):
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):
                place = ".".join(parts[:depth])
                raise InputError(f"setting '{name}': {place} is a value, not a table")
            table = inner
        table[parts[-1]] = value
    return changed


def parse_settings(assignments: Iterable[str]) -> dict[str, Any]:
    """Settings from `table.key=value` texts, in order; the last one of a name wins.

    Raises:
        InputError: A text has no `=`, or no name or value.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, value = _split_assignment(assignment, "--set")
        settings[name] = parse_value(value)
    return settings


def parse_axis(assignment: str, option: str = "--over") -> tuple[str, list[Any]]:
    """The name and the values of one `table.key=v1,v2,...`.

    A comma inside quotes, brackets or braces belongs to the value.

    Args:
        assignment: The text.
        option: What it was given to, for the message.

    Raises:
        InputError: A text has no `=`, or a value is missing or stands twice.
    """
    name, text = _split_assignment(assignment, option)
    values = [parse_value(part.strip()) for part in _split_at_commas(text)]
    if any(value == "" for value in values):
        raise InputError(f"{option} {assignment}: a value is missing between the commas")
    seen: set[str] = set()
    for value in values:
        key = canonical_json(value)
        if key in seen:
            raise InputError(f"{option} {assignment}: the value {value} stands there twice")
        seen.add(key)
    return name, values


def parse_value(text: str) -> Any:
    """A value as TOML would read it.

    What is not TOML is taken as a string, so that quotes can be left out: `1` is a number, `true` a
    truth value, `["a"]` a list, `1 d` and `"1 d"` the same string.
    """
    import tomllib  # many commands read none

    if "\n" in text or "\r" in text:
        return text
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except RecursionError as error:
        raise _too_deep("a value on the command line") from error
    require_shallow(value, "a value on the command line")
    return value if _is_json(value) else text


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256_of_file(path: Path) -> str:
    """The sha256 of a file's bytes, in hex.

    Raises:
        InputError: The file cannot be read.
    """
    import hashlib  # it loads OpenSSL, which most commands do without

    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def read_json(path: Path, what: str) -> Any:
    """The value of a JSON file.

    Args:
        path: The file.
        what: What it should be, for the message: `a result of agewell run`.

    Raises:
        InputError: The file cannot be read or is not JSON.
    """
    try:
        value = json.loads(files.read_bounded(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start}: not UTF-8 text, so not {what}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}:{error.colno}: not {what}: {error.msg}") from error
    except RecursionError as error:
        raise _too_deep(path) from error
    require_shallow(value, path)
    return value


def require_shallow(value: Any, what: Path | str) -> None:
    """Refuse what is nested so deep that nothing here means it.

    Args:
        value: Tables and lists.
        what: Where it comes from, for the message.

    Raises:
        InputError: It is.
    """
    level = [value]
    for _ in range(_DEPTH_MAX + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise _too_deep(what)


def _too_deep(what: Path | str) -> InputError:
    return InputError(f"{what}: more than {_DEPTH_MAX} tables or lists within one another")


def _load_record(path: Path) -> Experiment:
    record = read_json(path, "a result of agewell run")
    if not isinstance(record, dict) or not isinstance(record.get("config"), dict):
        raise InputError(f"{path}: not a result of agewell run: it has no table 'config'")
    return Experiment(record["config"], _base_of_record(path, recorded_inputs(record, path)))


def recorded_inputs(record: Mapping[str, Any], path: Path) -> dict[str, str]:
    """The sha256 of every input of a result, by the name the experiment gives it.

    Args:
        record: The result document.
        path: Its file, for the message.

    Raises:
        InputError: The list of inputs is damaged.
    """
    try:
        return {str(entry["name"]): str(entry["sha256"]) for entry in record["inputs"]}
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not a result of agewell run: its 'inputs' are damaged"
        ) from error


def input_file(name: str, base: Path, devices: Path) -> Path | None:
    """The file that an experiment means by `name`: a path or a device of the catalogue."""
    beside = base / name
    if beside.is_file():
        return beside
    listed = devices / f"{name}.toml"
    return listed if listed.is_file() else None


def _base_of_record(path: Path, inputs: Mapping[str, str]) -> Path:
    """The folder from which every recorded input can be found with the bytes it had.

    The record itself names inputs as the experiment did, so that it is the same on every machine.
    Tried in turn: where the run says it took them from (`origin.json` beside the record), the
    current folder, the record's folder and those above.
    """
    folder = path.resolve().parent
    candidates = [Path.cwd(), folder, *folder.parents]
    origin = folder / "origin.json"
    if origin.is_file():
        stated = read_json(origin, "the origin of a run")
        if isinstance(stated, dict) and isinstance(stated.get("base"), str):
            candidates.insert(0, folder / stated["base"])
    devices = catalogue.directory()
    # The lack that came nearest: first a changed input, then a missing one.
    changed: str | None = None
    absent: str | None = None
    for base in candidates:
        found = {name: input_file(name, base, devices) for name in inputs}
        lacking = [name for name, file in found.items() if file is None]
        if lacking:
            absent = absent or lacking[0]
            continue
        differing = [
            str(file)
            for name, file in found.items()
            if file is not None and sha256_of_file(file) != inputs[name]
        ]
        if not differing:
            return base
        changed = changed or differing[0]
    if changed is not None:
        raise InputError(
            f"{path}: its input {changed} has changed since that run; "
            "restore it, or run the experiment file instead"
        )
    raise InputError(
        f"{path}: its input {absent} was not found; run from the folder that the path starts from"
    )


def _syntax_error(path: Path, message: str) -> str:
    found = _POSITION.match(message)
    if found is None:
        return f"{path}: not TOML: {message}"
    if found["line"] is None:
        return f"{path}: end of file: not TOML: {found['what']}"
    return f"{path}:{found['line']}:{found['column']}: not TOML: {found['what']}"


def _as_json(tables: dict[str, Any], path: Path) -> Configuration:
    for name, value in tables.items():
        if not _is_json(value):
            raise InputError(
                f"{path}: [{name}] holds a date, a time or a number that is not finite; "
                "write it as a string"
            )
    return tables


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_json(inner) for inner in value.values())
    if isinstance(value, list):
        return all(_is_json(inner) for inner in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int | bool)


def _split_assignment(assignment: str, option: str) -> tuple[str, str]:
    name, equals, value = assignment.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(
            f"{option} {assignment}: expected table.key=value, for example remap.kind=none"
        )
    return name.strip(), value.strip()


def _split_at_commas(text: str) -> list[str]:
    parts = [""]
    depth = 0
    quote: str | None = None
    for character in text:
        if quote is not None:
            quote = None if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append("")
            continue
        parts[-1] += character
    return parts
