"""Data placement in a log beside the simulator of SepBIT, on loads that are drawn alike."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from peers.comparison import AbsentError, Row, row

JAR = "AGEWELL_SEPBIT"
"""Names the jar that `mvn package` makes of SepBIT's `trace_replay`."""

BLOCKS = 262_144
UPDATES_PER_BLOCK = 10
BLOCK_BYTES = 4096
SEGMENT_BYTES = 2 << 20
GARBAGE = 0.15
CASES = {"none": ("NoSep", 1), "user-collected": ("SepGC", 2), "sepbit": ("SepBIT", 6)}
"""Placements: ours, and theirs with its number of open segments."""


def compare(work: Path, rounds: int) -> Iterator[Row]:
    """Two rows a placement: write amplification, and user blocks a second."""
    jar = os.environ.get(JAR)
    if not jar:
        raise AbsentError(f"{JAR} names no jar of SepBIT's simulator")
    if not Path(jar).exists():
        raise AbsentError(f"{jar} is missing; mvn package makes it")
    listed = _trace(work)
    for placement, (peer, classes) in CASES.items():
        amplification, rates = [], []
        for _ in range(rounds):
            our_wa, our_rate = ours(placement, classes)
            their_wa, their_rate = theirs(Path(jar), listed, work, peer, classes)
            amplification.append((our_wa, their_wa))
            rates.append((our_rate, their_rate))
        name = f"placement/{placement}"
        yield row(name, "SepBIT's simulator", "write amplification", "same", amplification)
        yield row(f"{name}/time", "SepBIT's simulator", "blocks/s", "more", rates)


def ours(placement: str, logs: int) -> tuple[float, float]:
    """Write amplification and user blocks a second of our log."""
    from time import perf_counter

    import agewell

    experiment: dict[str, Any] = {
        "workload": {
            "kind": "zipf",
            "alpha": 1.0,
            "blocks": BLOCKS,
            "updates_per_block": UPDATES_PER_BLOCK,
            "fill": "measured",
            "utilization": 1 - GARBAGE,
        },
        "host": {"sync_every": 0, "flush_interval": "0 s", "buffer_size": "block"},
        "layout": {
            "kind": "lfs",
            "segment_size": f"{SEGMENT_BYTES >> 20} MiB",
            "block_size": "4 KiB",
            "victim": "benefit-root-age",
            "collect": "clean",
            "trigger": "garbage",
            "garbage": GARBAGE,
            "placement": placement,
        },
        "device": {"kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s"},
        "run": {"lower_bound": False, "seed": 1},
    }
    if placement == "sepbit":
        experiment["layout"]["logs"] = logs
    began = perf_counter()
    metrics = agewell.run(experiment).metrics
    took_seconds = perf_counter() - began
    return float(metrics["write_amplification"]), metrics["user_blocks"] / took_seconds


def theirs(jar: Path, listed: Path, work: Path, scheme: str, classes: int) -> tuple[float, float]:
    """The same of theirs; its trace is read within its time."""
    from time import perf_counter

    state = work / "state"
    state.mkdir(exist_ok=True)
    options = {
        "--path": listed,
        "--propertyPath": work / "property.txt",
        "--selectionAlgorithm": "CostBenefit",
        "--setSeparateMethod": scheme,
        "--setNumOpenSegments": classes,
        "--setSegmentSize": SEGMENT_BYTES,
        "--setSystemGarbageProportionThreshold": GARBAGE,
        "--indexMapType": "PureInMem",
        "--outputPrefix": state,
    }
    words = [str(word) for option in options.items() for word in option]
    began = perf_counter()
    done = subprocess.run(
        ["java", "-cp", str(jar), "gcsimulator.Simulator", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    took_seconds = perf_counter() - began
    return write_amplification(done.stdout), BLOCKS * (1 + UPDATES_PER_BLOCK) / took_seconds


def write_amplification(printed: str) -> float:
    """The last that its simulator has printed."""
    found = re.findall(r"segment WA = ([\d.]+)", printed)
    if not found:
        raise AbsentError("SepBIT's simulator printed no write amplification")
    return float(found[-1])


def _trace(work: Path) -> Path:
    """Every block written once in order, then Zipf 1.0; and the files by which it is found."""
    random = np.random.default_rng(1)
    weights = np.cumsum(1 / np.arange(1, BLOCKS + 1))
    draws = random.random(BLOCKS * UPDATES_PER_BLOCK) * weights[-1]
    updates = random.permutation(BLOCKS)[np.searchsorted(weights, draws)]
    blocks = np.concatenate([np.arange(BLOCKS), updates])
    trace = work / "0.csv"
    with trace.open("w") as out:
        # A time of zero stands for none there.
        for time_us, block in enumerate(blocks, start=1):
            out.write(f"0,W,{block * BLOCK_BYTES},{BLOCK_BYTES},{time_us}\n")
    (work / "property.txt").write_text(f"0 {BLOCKS} {BLOCKS * BLOCK_BYTES}\n")
    listed = work / "traces.txt"
    listed.write_text(f"{trace}\n")
    return listed
