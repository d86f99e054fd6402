"""Any other JSON document of a command: its numbers, and its lists as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agewell.report.page import Cell, PageTable, Section
from agewell.report.part import Part

_ROWS_MAX = 1000
"""A longer list is cut, and the table says so; chosen by us."""
_TEXT_CHARACTERS = 120


def part(document: Mapping[str, Any], path: Path) -> Part:
    """A table of single values, and one of each list of records."""
    single = [
        [Cell(name), Cell(words_of(value))]
        for name, value in _leaves(document, "")
        if not _is_records(value)
    ]
    tables = [PageTable(("what", "value"), single)] if single else []
    tables += [_records(name, value) for name, value in _leaves(document, "") if _is_records(value)]
    return Part(
        kind="document",
        title=path.stem,
        subtitle=str(path),
        verdict=[str(each) for each in document.get("advice") or []]
        if isinstance(document.get("advice"), list)
        else [],
        sections=[Section(identifier="values", title="Values", tables=tables)],
        facts=[
            (name, str(document[name]))
            for name in ("agewell_version", "agewell_build")
            if name in document
        ],
    )


def words_of(value: Any) -> str:
    """A value for people: numbers with thousands, five digits of fractions, `yes` and `no`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.5g}"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _TEXT_CHARACTERS else f"{text[:_TEXT_CHARACTERS]}..."


def _leaves(values: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _records(name: str, records: Sequence[Mapping[str, Any]]) -> PageTable:
    columns = list(dict.fromkeys(key for each in records for key in each))
    rows = [[Cell(words_of(each.get(key))) for key in columns] for each in records[:_ROWS_MAX]]
    numeric = frozenset(
        place
        for place, key in enumerate(columns)
        if all(isinstance(each.get(key), int | float | None) for each in records)
    )
    left = len(records) - len(rows)
    caption = f"{name}: the first {len(rows):,} of {len(records):,} rows" if left > 0 else name
    return PageTable(columns, rows, numeric, caption)
