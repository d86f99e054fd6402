"""Sizes and shares as text, for people and back."""

from __future__ import annotations

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))

_BYTES = {**dict(_UNITS), "GB": 10**9, "MB": 10**6, "KB": 10**3, "kB": 10**3, "B": 1}


def size_text(size_bytes: int) -> str:
    """A size in the largest binary unit that divides it, in bytes otherwise: `256 KiB`."""
    for unit, unit_bytes in _UNITS:
        if size_bytes >= unit_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes} {unit}"
    return f"{size_bytes} B"


def bytes_of(text: str) -> int:
    """The size that a configuration writes as `256 KiB`, `4 MB` or, resolved, `262144 B`."""
    number, _, unit = text.partition(" ")
    return round(float(number) * _BYTES[unit.strip() or "B"])


def percent(share: float) -> str:
    """A share for people: `90 %`."""
    return f"{100 * share:.4g} %"
