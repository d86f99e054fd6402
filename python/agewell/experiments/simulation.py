"""One simulation made, and its record left in a folder.

The work is done by the extension module, without the interpreter's lock; this module finds the
files and keeps the record of where a run came from. A worker process loads no more than this.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import _agewell, files
from agewell.errors import InputError
from agewell.experiments.configuration import Configuration, Experiment, load, with_settings
from agewell.files import catalogue
from agewell.values import documents
from agewell.version import build

if TYPE_CHECKING:
    # A worker process has none, and loads none.
    from agewell.experiments.policies import Policies

ProgressCallback = Callable[[int], None]
"""Called now and then with the number of requests read so far."""

RESULT_FILE = "result.json"
SERIES_FILE = "series.parquet"
THROUGHPUT_FILE = "throughput.parquet"
"""Of a layout of blocks: what had been done when so much had been transferred for users."""
HISTOGRAMS_FILE = "histograms.parquet"
TIMING_FILE = "timing.json"
"""How long the run took; beside the result, never in it, so that the result is the same bytes every
time."""
ORIGIN_FILE = "origin.json"
"""The folder that relative paths of the configuration start from, relative to the run's own
folder."""


def resolve(
    experiment: Configuration | Path | str,
    *,
    settings: Mapping[str, Any] | None = None,
    base: Path | str | None = None,
) -> Experiment:
    """The configuration of an experiment with its settings applied; arguments as in `run`."""
    if isinstance(experiment, Mapping):
        loaded = Experiment(dict(experiment), Path.cwd())
    else:
        loaded = load(Path(experiment))
    start = loaded.base if base is None else Path(base)
    return Experiment(with_settings(loaded.configuration, settings or {}), start)


def run_experiment(
    experiment: Experiment,
    out: Path | None,
    catalogue_directory: Path | str | None = None,
    progress: ProgressCallback | None = None,
    policies: Policies | None = None,
) -> dict[str, Any]:
    """Run a resolved experiment and leave its record in `out`; the result document is returned.

    Raises:
        InputError: The experiment, a device file or a trace is bad.
        RunError: The run failed.
    """
    if out is not None:
        files.make_folder(out)
        files.require_writable([out / RESULT_FILE])
    devices = catalogue.directory(catalogue_directory)
    started_seconds = time.perf_counter()
    text = _agewell.run_experiment(
        _request(experiment),
        str(experiment.base),
        str(devices),
        build(),
        None if out is None else str(out),
        progress,
        policies.as_asked() if policies else None,
    )
    elapsed_seconds = time.perf_counter() - started_seconds
    document: dict[str, Any] = json.loads(text)
    if out is not None:
        timing = documents.document("run-timing", {"run_seconds": round(elapsed_seconds, 6)})
        files.write_json(out / TIMING_FILE, timing)
        base = os.path.relpath(experiment.base.resolve(), out.resolve())
        files.write_json(out / ORIGIN_FILE, documents.document("run-origin", {"base": base}))
    return document


def _request(experiment: Experiment) -> str:
    """The configuration as the extension module takes it.

    Raises:
        InputError: It holds a name that is not UTF-8.
    """
    text = json.dumps(experiment.configuration, allow_nan=False, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            "the experiment names a file whose name is not UTF-8; rename it, or run from its "
            "folder, so that the name is left out"
        ) from error
    return text
