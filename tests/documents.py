"""JSON documents held against the schemas of their kinds."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from agewell.values.documents.schemas import of_kind


@cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(of_kind(kind))


def complaints(document: dict[str, Any]) -> list[str]:
    """What a document has that its kind has not declared, or lacks, or has otherwise."""
    found = _validator(document["document"]).iter_errors(document)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def check(text: str) -> str:
    """Hold what a command printed against its schema.

    Args:
        text: One document, or a document a line.

    Returns:
        The kind of the document.
    """
    try:
        every = [json.loads(text)]
    except json.JSONDecodeError:
        every = [json.loads(line) for line in text.splitlines()]
    for document in every:
        assert complaints(document) == []
    kind: str = every[0]["document"]
    return kind
