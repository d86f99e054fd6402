"""One load on every file system, at every fullness: disk time, time, and reading what has aged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from agewell.studies.cases import key, result
from agewell.studies.context import Context
from agewell.studies.file_systems import mounts, prices
from agewell.studies.file_systems.loads import Database, Load, Mail, RandomUpdates
from agewell.studies.file_systems.mounts import FIXED, FUSE, KERNEL, OURS, Kind
from agewell.studies.file_systems.rounds import DISK, IMAGE_BYTES, ROUNDS, Found, compare
from agewell.studies.file_systems.trees import Build, Git, History
from agewell.studies.study import FigureResult

PERCENT = (50, 80, 90, 95, 98)
LOADS: Mapping[str, type[Load]] = {
    load.name: load for load in (RandomUpdates, Mail, Database, Git, History, Build)
}
WITH_FIXED = (RandomUpdates.name, Mail.name)
"""Loads for which each way of making room stands alone, too, from `FIXED_FROM` per cent on."""
FIXED_FROM = 90

_DRIVES = {DISK: "", "seagate-st8000as0002": "shingled", "flash-sata-tlc": "flash"}
"""What values on a drive are called, beside the disk of the study."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    Attributes:
        percent: Of the room.
        rounds: Of each load.
        scale: Of each round.
        image_bytes: Of each file system.
    """

    percent: Sequence[int] = PERCENT
    rounds: int = ROUNDS
    scale: float = 1
    image_bytes: int = IMAGE_BYTES


def figure(name: str, context: Context) -> FigureResult:
    """A load on every file system.

    Args:
        name: Of the load.
        context: Of the study.
    """
    values, missing = compared(name, context, Size())
    return result(context, name, values, [], missing)


def compared(
    name: str, context: Context, size: Size
) -> tuple[dict[str, float | None], dict[str, str]]:
    """A load on every file system.

    Args:
        name: Of the load.
        context: Of the study.
        size: How much is done.

    Returns:
        The values by key, and by file system and fullness why there are none.
    """
    values: dict[str, float | None] = {}
    missing: dict[str, str] = {}
    why = mounts.missing() or LOADS[name].missing()
    for place, percent in enumerate(size.percent):
        kinds = _kinds(name, percent)
        if why:
            missing.update({f"{kind.name}-{percent}": why for kind in kinds})
            continue
        found = compare(
            kinds,
            partial(LOADS[name], percent=percent, scale=size.scale),
            context.out / "recordings",
            drives=tuple(_DRIVES),
            rounds=size.rounds,
            image_bytes=size.image_bytes,
            progress=partial(_report, context, place / len(size.percent), percent),
        )
        for kind, one in found.items():
            if one.why:
                missing[f"{kind}-{percent}"] = one.why
            else:
                values.update(_values(f"{kind}-{percent}", one))
        values.update(_against(percent, found))
        _note_missing(percent, found, missing)
    for percent in size.percent:
        _over_80(percent, values, missing)
    return values, missing


def _report(context: Context, share: float, percent: int, text: str) -> None:
    context.progress(share, f"{percent} % full, {text}")


def _kinds(name: str, percent: int) -> list[Kind]:
    costs = prices.mount_options()
    fixed = FIXED if name in WITH_FIXED and percent >= FIXED_FROM else ()
    ours = [replace(kind, options=(*kind.options, *costs)) for kind in (OURS, *fixed)]
    return [*ours, *KERNEL, *FUSE]


def _values(case: str, found: Found) -> dict[str, float | None]:
    """What stands for itself."""
    values: dict[str, float | None] = {key(case, "time"): found.median_s}
    for (part, drive), seconds in found.disk.items():
        suffix = [_DRIVES[drive]] if _DRIVES[drive] else []
        values[key(case, part, *suffix)] = seconds
    for operation, sums in found.requests.items():
        values[key(case, operation)] = sums["requests"]
        values[key(case, operation, "s")] = sums["seconds"]
        values[key(case, operation, "mib")] = sums["sectors"] / 2048
    return values


def _against(percent: int, found: Mapping[str, Found]) -> dict[str, float | None]:
    """Ours by each other one."""
    values: dict[str, float | None] = {}
    ours = found[OURS.name]
    if ours.why:
        return values
    others = {kind.name: found[kind.name] for kind in (*KERNEL, *FUSE)}
    others = {name: one for name, one in others.items() if not one.why}
    for name, other in others.items():
        case = f"{name}-{percent}"
        values[key(case, "time-ratio")] = ours.median_s / other.median_s
        for (part, drive), seconds in ours.disk.items():
            suffix = [_DRIVES[drive]] if _DRIVES[drive] else []
            values[key(case, part, "ratio", *suffix)] = seconds / other.disk[part, drive]
    kernel = [others[kind.name] for kind in KERNEL if kind.name in others]
    for part in ("names", "written"):
        best = min((one.disk[part, DISK] for one in kernel), default=None)
        case = f"ours-{percent}"
        values[key(case, part, "over-best")] = best and ours.disk[part, DISK] / best
    fixed = [found[kind.name] for kind in FIXED if kind.name in found]
    fixed = [one for one in fixed if not one.why]
    if fixed:
        best = min(one.disk["round", DISK] for one in fixed)
        values[key(f"ours-{percent}", "over-fixed")] = ours.disk["round", DISK] / best
    return values


def _note_missing(percent: int, found: Mapping[str, Found], missing: dict[str, str]) -> None:
    """Without ours, nothing can be held against it."""
    if why := found[OURS.name].why:
        for name in found:
            missing.setdefault(f"{name}-{percent}", f"ours: {why}")


def _over_80(percent: int, values: dict[str, float | None], missing: dict[str, str]) -> None:
    base = values.get(key("ours-80", "round"))
    ours = values.get(key(f"ours-{percent}", "round"))
    if base and ours:
        values[key(f"ours-{percent}", "over-80")] = ours / base
    elif f"ours-{percent}" not in missing:
        values[key(f"ours-{percent}", "over-80")] = None
