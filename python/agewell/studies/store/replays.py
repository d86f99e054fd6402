"""Traces that a store carries out, some at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agewell import _agewell
from agewell.errors import RunError
from agewell.files import catalogue
from agewell.studies.context import Context, Label


def replays(
    context: Context, trace: Path, cases: Mapping[Label, Mapping[str, Any]]
) -> dict[Label, dict[str, Any]]:
    """Have a store, or updates in place, carry out a trace in many forms, `jobs` at once.

    Args:
        context: Of the study.
        trace: The trace (`Load.save`).
        cases: Options of `_agewell.store_replay` by label.

    Returns:
        What each has come to, in the order of `cases`.

    Raises:
        InputError: A case is bad.
        RunError: A store failed, or holds something else than was written.
    """
    stopped = threading.Event()

    def heed(_share: float) -> None:
        if stopped.is_set():
            raise RunError("stopped")

    def one(options: Mapping[str, Any]) -> dict[str, Any]:
        done = _agewell.store_replay(trace, json.dumps(options), catalogue.directory(), heed)
        found: dict[str, Any] = json.loads(done)
        return found

    found = {}
    with ThreadPoolExecutor(context.jobs) as crew:
        waiting = {label: crew.submit(one, options) for label, options in cases.items()}
        try:
            for place, (label, future) in enumerate(waiting.items()):
                context.progress(place / len(waiting), f"{place} of {len(waiting)} replays")
                found[label] = future.result()
        finally:
            stopped.set()
            crew.shutdown(cancel_futures=True)
    return found
