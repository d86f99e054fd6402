"""What `agewell reorganise --watch` shows: progress, and a line a round."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any, Self

from agewell.cli.terminal import print_text, progress
from agewell.filesystems import watching
from agewell.filesystems.scoring import size_text as size

TENTHS_FROM_SECONDS = 10.0
"""Times from here on are shown in tenths; chosen by us: three digits and more either way."""


class _Ending:
    """Ctrl-C, SIGTERM and SIGHUP end the work in good order; another one of them gives it up."""

    def __init__(self) -> None:
        self.came = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # What is ignored, as SIGHUP below `nohup`, stays so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *_failure: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True


def watch(path: Path, *, as_json: bool, quiet: bool, **options: Any) -> None:
    """Watch until the time is over or a signal comes; a line a round on standard output."""
    with progress("reorganise --watch", quiet=quiet) as report, _Ending() as ending:

        def tell(told: dict[str, Any]) -> bool:
            if told["kind"] == "round":
                print_text((json.dumps(told) if as_json else round_text(told)) + "\n")
            else:
                report(*_going(told))
            return not ending.came

        watching.watch(path, tell=tell, **options)


def _going(told: dict[str, Any]) -> tuple[float | None, str]:
    match told["kind"]:
        case "record":
            fraction = min(told["seconds"] / max(told["of_seconds"], 1e-9), 1.0)
            return fraction, f"{told['requests']:,} requests"
        case "move":
            return min(
                told["bytes"] / max(told["of_bytes"], 1), 1.0
            ), f"{size(told['bytes'])} moved"
        case "look":
            return None, f"{told['files']:,} files looked at"
        case _:
            return None, "others use the disk"


def round_text(told: dict[str, Any]) -> str:
    """A round in one line."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told["now_ns"] / 1e9))
    parts = [
        f"{told['reads']:,} reads took {_seconds(told['read_seconds'])} "
        f"({told['named_pct']:.0f} % of known files)",
        _outcome(told),
    ]
    if told["moved_bytes"]:
        parts.append(
            f"moves so far: {size(told['moved_bytes'])} in {_seconds(told['moving_seconds'])}, "
            f"saved {_seconds(told['saved_seconds'])} of reads as observed"
        )
    if told["lost_events"]:
        parts.append(f"{told['lost_events']:,} events lost")
    return f"{clock}  " + "; ".join(parts)


def _outcome(told: dict[str, Any]) -> str:
    looked = told["considered"]
    left = told["left_bytes"]
    of_hour = f" ({size(left)} of this hour's budget left)" if left is not None else ""
    move = (
        f"{told['files']:,} files, {size(told['bytes'])}{of_hour}, likely to save "
        f"{_seconds(told['likely_seconds'])} at a cost of {_seconds(told['cost_seconds'])}"
    )
    texts = {
        "idle": "hardly anything was read",
        "learning": "too few reads yet to know the disk's times",
        "nothing-pays": f"nothing pays: {_why(looked)}",
        "beyond-budget": f"what pays is beyond the hour's budget{of_hour}",
        "busy": f"put off: others keep the disk busy ({told['busy_pct']:.0f} % of the time)",
        "no-room": "no room where files could be put together",
        "would-move": f"would move {move}",
        "moved": f"moved {move}",
    }
    text: str = texts[told["outcome"]]
    return text


def _why(looked: dict[str, Any]) -> str:
    if not looked["groups"]:
        return "no files were read together often enough"
    if looked["declined"]:
        return (
            f"of {looked['groups']:,} groups of files {looked['well']:,} lie well, and the best of "
            f"{looked['declined']:,} is likely to save {_seconds(looked['best_saved_seconds'])} "
            f"and would cost {_seconds(looked['best_cost_seconds'])}"
        )
    bounded = f", {looked['bounded']:,} were moved often enough" if looked["bounded"] else ""
    return f"of {looked['groups']:,} groups of files {looked['well']:,} lie well{bounded}"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if abs(seconds) >= TENTHS_FROM_SECONDS else f"{seconds:.3g} s"
