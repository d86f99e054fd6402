"""JSON Schemas out of the declarations of documents."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import KeysView
from functools import cache
from typing import Any, is_typeddict

import msgspec

from agewell.errors import InputError
from agewell.values.documents import STAMP, VERSIONS
from agewell.values.documents.kinds import COMMANDS, KINDS
from agewell.values.units import unit_of_name

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = "#/$defs/{name}"
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*\n?(?: {5,}.*\n?)*)", re.MULTILINE)


def of_kind(kind: str) -> dict[str, Any]:
    """The schema of the documents of a kind.

    Args:
        kind: One of `agewell.values.documents.kinds.KINDS`.
    """
    return {"$schema": DIALECT, **_of_kinds([kind])}


def of_command(words: str) -> dict[str, Any]:
    """The schema of what a command prints with `--json`: of one kind, or of any of several.

    Args:
        words: The command, such as `trace info`, or a file that is left in a folder, such as
            `sweep.json`.

    Raises:
        InputError: There is no such command, or it prints no JSON.
    """
    kinds = [kind for kind, known in KINDS.items() if words in known.commands]
    kinds = kinds or [kind for kind, known in KINDS.items() if words == known.file]
    if not kinds:
        near = _nearest(words)
        raise InputError(
            f"{words}: neither a command with --json nor a file that one leaves; "
            f"{f'did you mean {near}?' if near else 'agewell --help lists the commands'}"
        )
    return {"$schema": DIALECT, **_of_kinds(kinds)}


def _nearest(words: str) -> str:
    import difflib

    files = [known.file for known in KINDS.values() if known.file]
    return next(iter(difflib.get_close_matches(words, [*COMMANDS, *files], 1)), "")


def _of_kinds(kinds: list[str]) -> dict[str, Any]:
    shapes = [KINDS[kind].shape for kind in kinds]
    wholes, parts = msgspec.json.schema_components(shapes, ref_template=_REFERENCES)
    for part in parts.values():
        _described(part)
    for kind, whole in zip(kinds, wholes, strict=True):
        _stamped(parts[whole["$ref"].rsplit("/", 1)[1]], kind)
    top = wholes[0] if len(wholes) == 1 else {"anyOf": list(wholes)}
    return {**top, "$defs": dict(parts)}


def _described(part: dict[str, Any]) -> None:
    """Put what the text of a class says of its fields where the fields are, and nothing beside."""
    text, _, attributes = inspect.cleandoc(part["description"]).partition("Attributes:")
    said = _inherited(part["properties"].keys()) | _said(attributes)
    part["description"] = " ".join(text.split())
    fields = {name.removesuffix("_"): field for name, field in part["properties"].items()}
    for name, field in fields.items():
        field["description"] = said[name]
        if unit := unit_of_name(name):
            field["x-unit"] = unit
    part["properties"] = fields
    part["required"] = [name.removesuffix("_") for name in part.get("required", ())]
    part["additionalProperties"] = False


def _said(attributes: str) -> dict[str, str]:
    return {
        name.removesuffix("_"): " ".join(words.split())
        for name, words in _ATTRIBUTE.findall(attributes)
    }


def _inherited(names: KeysView[str]) -> dict[str, str]:
    """What declarations with some of these fields say of them, that with the most of them last.

    A typed dictionary does not know which others it is made from, but has all their fields.
    """
    said: dict[str, str] = {}
    for known in sorted(_declarations(), key=lambda known: len(known.__annotations__)):
        if known.__annotations__.keys() <= names:
            text = inspect.getdoc(known) or ""
            said |= _said(text.partition("Attributes:")[2])
    return said


@cache
def _declarations() -> list[type]:
    modules = {known.shape.__module__ for known in KINDS.values()}
    found = [each for name in sorted(modules) for each in vars(sys.modules[name]).values()]
    return [each for each in found if is_typeddict(each)]


def _stamped(part: dict[str, Any], kind: str) -> None:
    """Add the two fields that every document has."""
    stamp = {
        "document": {"const": kind, "description": "Which kind of document it is."},
        "schema_version": {"const": VERSIONS[kind], "description": "Of what this kind holds."},
    }
    part["properties"] = {**stamp, **part["properties"]}
    part["required"] = [*STAMP, *part["required"]]
