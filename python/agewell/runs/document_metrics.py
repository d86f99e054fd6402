"""The numbers of JSON documents by what they are of, so that two of a kind can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agewell.values.findings import numbers

Entry = tuple[dict[str, Any], dict[str, float | None]]
"""What numbers are of, by name, and the numbers by metric."""


def entries(kind: str, document: Mapping[str, Any]) -> list[Entry]:
    """The numbers of a document.

    Args:
        kind: Which kind it is, one of `COMPARED`.
        document: The document.

    Raises:
        KeyError: It lacks what its kind has; other errors of lookups likewise.
    """
    return [
        (dict(of), {name: _real(value) for name, value in numbers(metrics).items()})
        for of, metrics in _READERS[kind](document)
    ]


def _real(value: Any) -> float | None:
    return None if value is None else float(value)


_Rows = Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]


def _score(document: Mapping[str, Any]) -> _Rows:
    """A single target is held against a single one, whatever they are called."""
    targets = document["targets"]
    for target in targets:
        yield ({"path": target["path"]} if len(targets) > 1 else {}), target["metrics"]


def _compare(document: Mapping[str, Any]) -> _Rows:
    for cell in document["cells"]:
        where = {name: cell[name] for name in ("workload", "device", "utilization")}
        for entry in cell["layouts"]:
            yield {**where, "layout": entry["layout"]}, entry


def _bench(document: Mapping[str, Any]) -> _Rows:
    for row in document["summary"]:
        of = {name: row[name] for name in ("phase", "file_bytes", "sync_each")}
        yield of, {name: row[name] for name in ("mb_per_s", "layout_score")}


def _validate(document: Mapping[str, Any]) -> _Rows:
    yield {}, _errors(document["metrics"])


def _validate_drives(document: Mapping[str, Any]) -> _Rows:
    for each in document["validations"]:
        if "refused" not in each:
            yield {"parameters": each["parameters"]}, _errors(each["metrics"])


def _errors(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Without the mean times, which are neither good nor bad."""
    return {name: value for name, value in metrics.items() if "mean_service" not in name}


def _segment_size(document: Mapping[str, Any]) -> _Rows:
    for size in document["sizes"]:
        metrics = {name: value for name, value in size.items() if name != "segment_bytes"}
        yield {"segment_bytes": size["segment_bytes"]}, metrics


def _age(document: Mapping[str, Any]) -> _Rows:
    yield {}, document["report"]


def _store(document: Mapping[str, Any]) -> _Rows:
    yield {}, document["metrics"]


_READERS: Mapping[str, Callable[[Mapping[str, Any]], _Rows]] = {
    "age": _age,
    "bench": _bench,
    "compare": _compare,
    "score": _score,
    "segment-size": _segment_size,
    "store-check": _store,
    "store-info": _store,
    "validate": _validate,
    "validate-drives": _validate_drives,
}

COMPARED = tuple(_READERS)
"""The kinds of documents that have numbers to compare."""
