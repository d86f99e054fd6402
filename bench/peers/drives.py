"""Disk models beside DiskSim's own validation: the same traces of real drives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from peers.comparison import AbsentError, Row, agewell, row, run, seconds

FOLDER = "AGEWELL_DISKSIM"
"""Names the folder of a DiskSim 4.0 that was built: with `src/disksim` and `valid`."""


def compare(work: Path, rounds: int) -> Iterator[Row]:
    """Two rows a drive: the demerit, and seconds for the validation."""
    named = os.environ.get(FOLDER)
    if not named:
        raise AbsentError(f"{FOLDER} names no folder of a built DiskSim 4.0")
    program, valid = Path(named, "src", "disksim").resolve(), Path(named, "valid").resolve()
    if not program.exists():
        raise AbsentError(f"{program} is missing; build DiskSim first")
    for trace in sorted(valid.glob("*.trace")):
        specification = trace.with_suffix(".diskspecs")
        if not specification.exists() or not trace.with_suffix(".parv").exists():
            continue
        demerits, times = [], []
        for _ in range(rounds):
            found: list[float] = []
            our_seconds = seconds(lambda: found.append(ours(specification, trace)))  # noqa: B023
            their_seconds = seconds(lambda: found.append(theirs(program, trace, work)))  # noqa: B023
            demerits.append((found[0], found[1]))
            times.append((our_seconds, their_seconds))
        yield row(f"drives/{trace.stem}", "DiskSim 4.0", "ms demerit", "less", demerits)
        yield row(f"drives/{trace.stem}/time", "DiskSim 4.0", "s", "less", times)


def ours(specification: Path, trace: Path) -> float:
    """The demerit of our model, ms."""
    document = agewell("validate", specification, trace)
    return float(document["closed"]["whole"]["all"]["demerit_ms"])


def theirs(program: Path, trace: Path, work: Path) -> float:
    """The demerit that DiskSim prints of its own, ms. Runs in its folder, as `runvalid` does."""
    out = work / f"{trace.stem}.outv"
    words = (f"{trace.stem}.parv", out, "validate", trace.name, "0", "0")
    text = run(program, *words, where=trace.parent) + (
        out.read_text(errors="replace") if out.exists() else ""
    )
    found = re.search(r"\brms\s*=\s*([\d.]+)", text)
    if found is None:
        raise AbsentError(f"DiskSim printed no rms for {trace.name}")
    return float(found.group(1))
