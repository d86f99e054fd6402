"""An experiment as a TOML file that `agewell run` takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell import files

_BARE_KEY = re.compile(r"^[A-Za-z0-9_-]+$")


def write(configuration: Mapping[str, Any], path: Path, words: str) -> None:
    """Write an experiment.

    Args:
        configuration: Its tables; relative paths in them start from the folder of the file.
        path: The file.
        words: What it is, for the comment at its top.

    Raises:
        RunError: It cannot be written.
    """
    head = "".join(f"# {line}\n" for line in words.splitlines())
    files.write_text(path, f"{head}\n{to_toml(configuration)}\n")


def to_toml(configuration: Mapping[str, Any]) -> str:
    """The tables of an experiment as text, which ends in no line end; reading it gives them."""
    parts = []
    for name, table in configuration.items():
        lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
        parts.append("\n".join([f"[{_key(name)}]", *lines]))
    return "\n\n".join(parts)


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else _string(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return repr(value)


def _string(text: str) -> str:
    # TOML's basic strings are JSON's but for DEL, which JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
