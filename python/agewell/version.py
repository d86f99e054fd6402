"""What software this is: its version, and the build within that version."""

from __future__ import annotations

import functools
from pathlib import Path

from agewell import _agewell

__version__ = _agewell.version()
"""The version of agewell, as in the workspace's Cargo.toml."""

COMPUTING_MODULES = (
    "__init__",
    "errors",
    "experiments/__init__",
    "experiments/configuration",
    "experiments/simulation",
    "files/__init__",
    "files/catalogue",
    "runs/__init__",
    "runs/workers",
    "values/__init__",
    "values/documents/__init__",
    "version",
)
"""The modules of this package between an experiment and the record of its run; a test holds the
list against what a worker process loads. What presents results, and what asks for runs, is not
among them: a question is part of the key of its run as it is."""

_HASH_CHARACTERS = 16
"""64 bits, so that no two builds share one by chance."""


@functools.cache
def build() -> str:
    """What distinguishes this build from others of the same version, in every result and its key.

    A hash of the sources that results are computed from: those of the extension module, taken when
    it was built, and those of the Python modules above, as they are now. The same sources have the
    same hash on every machine.
    """
    hashed = bytearray(_agewell.build().encode())
    folder = Path(__file__).parent
    for name in COMPUTING_MODULES:
        source = (folder / f"{name}.py").read_bytes()
        hashed += f"{name} {len(source)}\n".encode()
        hashed += source
    return _agewell.sha256(bytes(hashed))[:_HASH_CHARACTERS]
