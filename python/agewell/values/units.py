"""Units as names carry them: of the value as it is stored, at the end."""

from __future__ import annotations

_UNITS = {
    "_mb_per_s": "MB/s",
    "_bytes_per_s": "B/s",
    "_per_s": "1/s",
    "_unix_s": "s",
    "_ms": "ms",
    "_us": "us",
    "_ns": "ns",
    "_s": "s",
    "seconds": "s",
    "bytes": "B",
    "_kib": "KiB",
    "_pct": "%",
    "_ppm": "ppm",
    "_cylinders": "cylinders",
}


def unit_of_name(name: str) -> str:
    """The unit that a name ends in; empty for counts, ratios, fractions and texts.

    Example:
        >>> unit_of_name("mean_seek_ms")
        'ms'
    """
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
