"""Block caches beside libCacheSim: one stream of references, the same misses, and how fast."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from peers.comparison import AbsentError, Row, row, run
from peers.host import REPOSITORY

REFERENCES = 5_000_000
OBJECTS = 1_000_000
CACHED = 100_000
PEERS = {"lru": "LRU", "fifo": "FIFO", "arc": "ARC", "sieve": "Sieve", "s3-fifo": "S3FIFO"}
"""Ours by name, and theirs. `S3FIFO` is a later variant there, and misses a little less.

The header of `crates/sim/src/cache/s3_fifo.rs` says in what.
"""


def compare(work: Path, rounds: int) -> Iterator[Row]:
    """A row a policy: references a second, both reading the stream from a file."""
    try:
        import libcachesim  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise AbsentError(f"no wheel of libcachesim here ({error})") from None
    from importlib.metadata import version

    keys = zipf_keys()
    ours, theirs = work / "keys.u32", work / "keys.oracleGeneral"
    keys.astype("<u4").tofile(ours)
    _oracle_general(keys).tofile(theirs)
    program = _program()
    for name, peer in PEERS.items():
        measured = []
        missed = (0.0, 0.0)
        for _ in range(rounds):
            done = json.loads(run(program, ours, name, CACHED))
            rate, miss = _theirs(libcachesim, peer, theirs)
            measured.append((REFERENCES / done["seconds"], rate))
            missed = (done["misses"] / REFERENCES, miss)
        note = f"misses {missed[0]:.4%} and {missed[1]:.4%}"
        yield row(
            f"caches/{name}",
            f"libCacheSim {version('libcachesim')}",
            "references/s",
            "more",
            measured,
            note,
        )


def zipf_keys() -> Any:
    """Zipf 1.0 over a million objects, numbered in no order."""
    random = np.random.default_rng(1)
    weights = np.cumsum(1 / np.arange(1, OBJECTS + 1))
    ranks = np.searchsorted(weights, random.random(REFERENCES) * weights[-1])
    return random.permutation(OBJECTS)[ranks]


def _oracle_general(keys: Any) -> Any:
    """As libCacheSim's `oracleGeneral`: time, object, size and next access."""
    fields = [("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")]
    records = np.zeros(len(keys), dtype=np.dtype(fields))
    records["time"] = np.arange(len(keys))
    records["object"] = keys
    records["size"] = 1
    records["next"] = -1
    return records


def _theirs(module: Any, policy: str, trace: Path) -> tuple[float, float]:
    from time import perf_counter

    kind: Callable[..., Any] = getattr(module, policy)
    cache = kind(cache_size=CACHED)
    reader = module.TraceReader(str(trace), module.TraceType.ORACLE_GENERAL_TRACE)
    began = perf_counter()
    misses, _ = cache.process_trace(reader)
    return REFERENCES / (perf_counter() - began), misses


def _program() -> Path:
    command = ["cargo", "build", "--locked", "--release", "--quiet", "--workspace"]
    subprocess.run([*command, "--example", "caches"], cwd=REPOSITORY, check=True)
    return REPOSITORY / "target" / "release" / "examples" / "caches"
