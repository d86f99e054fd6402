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
from agewell.values.documents import document

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
    with progress("reorganise --watch", quiet=quiet) as show, _Ending() as ending:

        def report(event: dict[str, Any]) -> bool:
            if event["kind"] == "round":
                printed = document("reorganise-round", event)
                print_text((json.dumps(printed) if as_json else round_text(event)) + "\n")
            else:
                show(*_going(event))
            return not ending.came

        watching.watch(path, report=report, **options)


def _going(event: dict[str, Any]) -> tuple[float | None, str]:
    match event["kind"]:
        case "record":
            fraction = min(event["seconds"] / max(event["of_seconds"], 1e-9), 1.0)
            return fraction, f"{event['requests']:,} requests"
        case "move":
            return min(
                event["bytes"] / max(event["of_bytes"], 1), 1.0
            ), f"{size(event['bytes'])} moved"
        case "look":
            return None, f"{event['files']:,} files looked at"
        case _:
            return None, "others use the disk"


def round_text(event: dict[str, Any]) -> str:
    """A round in one line."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event["now_ns"] / 1e9))
    parts = [
        f"{event['reads']:,} reads took {_seconds(event['read_seconds'])} "
        f"({event['named_pct']:.0f} % of known files)",
        _outcome(event),
    ]
    if event["moved_bytes"]:
        parts.append(
            f"moves so far: {size(event['moved_bytes'])} in {_seconds(event['moving_seconds'])}, "
            f"saved {_seconds(event['saved_seconds'])} of reads as observed"
        )
    if event["lost_events"]:
        parts.append(f"{event['lost_events']:,} events lost")
    return f"{clock}  " + "; ".join(parts)


def _outcome(event: dict[str, Any]) -> str:
    looked = event["considered"]
    left = event["left_bytes"]
    of_hour = f" ({size(left)} of this hour's budget left)" if left is not None else ""
    move = (
        f"{event['files']:,} files, {size(event['bytes'])}{of_hour}, likely to save "
        f"{_seconds(event['likely_seconds'])} at a cost of {_seconds(event['cost_seconds'])}"
    )
    texts = {
        "idle": "hardly anything was read",
        "learning": "too few reads yet to know the disk's times",
        "nothing-pays": f"nothing pays: {_why(looked)}",
        "beyond-budget": f"what pays is beyond the hour's budget{of_hour}",
        "busy": f"postponed: others keep the disk busy ({event['busy_pct']:.0f} % of the time)",
        "no-room": "no room where files could be put together",
        "would-move": f"would move {move}",
        "moved": f"moved {move}",
    }
    text: str = texts[event["outcome"]]
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
