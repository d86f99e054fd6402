"""What every JSON document of agewell begins with: which kind it is, in which version.

Whatever a command prints with `--json` or leaves in a folder is one object, and says so in its
keys `document` and `schema_version`. What else a kind holds is declared in the modules beside this
one, which `kinds` lists; most commands load none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STAMP = ("document", "schema_version")
"""The keys that every document has."""

VERSIONS: Mapping[str, int] = {
    "advice": 1,
    "age": 1,
    "bench": 1,
    "compare": 1,
    "compare-layouts": 1,
    "device": 1,
    "device-import": 1,
    "devices": 1,
    "diff": 1,
    "fs-layout": 1,
    "fs-scrub": 1,
    "fs-status": 1,
    "fsck": 1,
    "probe": 1,
    "record": 1,
    "record-recover": 1,
    "reorganise": 1,
    "reorganise-round": 1,
    "report": 1,
    "reproduce": 1,
    "reproduce-papers": 1,
    "results": 1,
    "results-views": 1,
    "run": 1,
    "run-error": 1,
    "run-origin": 1,
    "run-timing": 1,
    "score": 2,
    "segment-size": 1,
    "snapshot": 1,
    "store-check": 1,
    "store-info": 1,
    "store-salvage": 1,
    "sweep": 1,
    "sweep-runs": 1,
    "trace-convert": 1,
    "trace-formats": 1,
    "trace-head": 1,
    "trace-info": 1,
    "validate": 1,
    "validate-drives": 1,
    "workload": 1,
    "workload-info": 1,
}
"""Every kind of document, and the version of what it holds. A field that is added leaves it; one
that is gone, or means something else, raises it."""

_OLDER: Mapping[str, frozenset[str]] = {
    "compare": frozenset({"cells", "robustness", "verdict"}),
    "advice": frozenset({"recommended", "steps", "against"}),
    "segment-size": frozenset({"best_segment_bytes", "sizes"}),
    "score": frozenset({"series", "targets"}),
    "age": frozenset({"target", "workload", "report"}),
    "reproduce": frozenset({"figures", "papers", "rows"}),
    "bench": frozenset({"target", "summary"}),
    "store-check": frozenset({"store", "metrics", "findings"}),
    "store-info": frozenset({"store", "metrics"}),
    "validate": frozenset({"base", "closed", "trace_clock"}),
    "run": frozenset({"config", "metrics", "agewell_version"}),
}
"""By which keys documents are known that do not say what they are, as up to version 0.1.0."""


def document(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A document of a kind, which says so.

    Args:
        kind: One of `VERSIONS`.
        fields: What it holds besides.

    Returns:
        The fields behind `document` and `schema_version`.
    """
    return {"document": kind, "schema_version": VERSIONS[kind], **fields}


def fields_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a document holds besides its kind and version, to stand within another one."""
    return {name: value for name, value in found.items() if name not in STAMP}


def kind_of(found: Mapping[str, Any]) -> str | None:
    """Which kind a document is; None if it is none of ours.

    What earlier versions left does not say, and is known by its keys.
    """
    said = found.get("document")
    if isinstance(said, str):
        return said if said in VERSIONS else None
    return next((kind for kind, keys in _OLDER.items() if keys <= found.keys()), None)
