"""Sizes and shares as text, for people and back."""

from __future__ import annotations

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def size_text(size_bytes: int) -> str:
    """A size in the largest binary unit that divides it, in bytes otherwise: `256 KiB`."""
    for unit, unit_bytes in _UNITS:
        if size_bytes >= unit_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes} {unit}"
    return f"{size_bytes} B"


def bytes_of(text: str) -> int:
    """The size that a resolved configuration writes as `262144 B`."""
    return int(text.removesuffix(" B"))


def percent(share: float) -> str:
    """A share for people: `90 %`."""
    return f"{100 * share:.4g} %"
