"""What lies at a path that a command left, recognised by what is in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agewell.advice.advising import DOCUMENT_FILE as ADVICE_FILE
from agewell.advice.comparing import DOCUMENT_FILE as COMPARISON_FILE
from agewell.errors import InputError
from agewell.experiments.configuration import read_json
from agewell.experiments.run_result import Result
from agewell.files import parquet_tables
from agewell.report.part import Part
from agewell.report.parts import (
    advice,
    aging,
    benchmark,
    comparison,
    plain,
    reproduction,
    run,
    score,
    segment_size,
    store,
    sweep,
)
from agewell.report.parts.reproduction import ROWS_FILE
from agewell.runs.sweeping import DESCRIPTION_FILE as SWEEP_FILE
from agewell.values.documents import kind_of

RESULT_FILE = "result.json"
FILES = (RESULT_FILE, SWEEP_FILE, COMPARISON_FILE, ADVICE_FILE, ROWS_FILE)
"""What a folder is known by."""

_BY_KIND: Mapping[str, Callable[[Mapping[str, Any], Path], Part]] = {
    "advice": advice.part,
    "age": aging.part,
    "bench": benchmark.part,
    "compare": comparison.part,
    "reproduce": reproduction.part,
    "score": score.part,
    "segment-size": segment_size.part,
    "store-check": store.part,
    "store-info": store.part,
}
"""What makes a part of a document of each kind that has more than a table to show."""


def parts_of(paths: Sequence[Path]) -> list[Part]:
    """What lies at each path; runs that stand behind each other are one part, compared.

    Args:
        paths: Folders that commands left, their JSON output in files, and series of aging.

    Raises:
        InputError: There is nothing, or nothing that a command leaves.
    """
    found = [(path, _file(path)) for path in paths]
    parts: list[Part] = []
    for is_run, group in itertools.groupby(found, lambda each: _is_run(each[1])):
        if is_run:
            together = [path for path, _ in group]
            parts.append(run.part([Result.read(path) for path in together], together))
        else:
            parts += [_part(path, file) for path, file in group]
    return parts


def runs_of(paths: Sequence[Path]) -> dict[Path, Result]:
    """Those of the paths at which runs lie, and the runs.

    Raises:
        InputError: As `parts_of`.
    """
    return {path: Result.read(path) for path in paths if _is_run(_file(path))}


def _is_run(file: Path) -> bool:
    return file.name == RESULT_FILE


def _file(path: Path) -> Path:
    """The file that says what lies at a path."""
    if not path.exists():
        raise InputError(f"{path}: there is nothing; name what a command of agewell left")
    if not path.is_dir():
        return path
    for name in FILES:
        if (path / name).is_file():
            return path / name
    raise InputError(f"{path}: holds none of {', '.join(FILES)}; name a folder that agewell left")


def _part(path: Path, file: Path) -> Part:
    # The name alone: a page says nothing of the folders of the machine that it was made on.
    name = Path(path.resolve().name)
    if file.suffix == ".parquet":
        return aging.series_part(parquet_tables.read(file), name)
    if file.name == SWEEP_FILE:
        return sweep.part(file.parent)
    document = read_json(file, "what a command of agewell left")
    if not isinstance(document, dict):
        raise InputError(f"{file}: is not a JSON object; give what a command wrote with --json")
    make = _BY_KIND.get(kind_of(document) or "", plain.part)
    try:
        return make(document, name)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError(
            f"{file}: looks like what agewell leaves, but is damaged or of another "
            f"version ({type(error).__name__}: {error}); make it again"
        ) from None
