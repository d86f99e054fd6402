"""What a run computed, as one digest: its metrics and the contents of its tables, and nothing else.

Neither configuration, version and times, nor how a table is stored are part of it, so that a change
to these leaves it as it is and any change to a figure does not.

    python tests/result_values.py FOLDER > before.txt     a line for every run below FOLDER, sorted
    diff before.txt after.txt
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DIGEST_CHARACTERS = 16
RESULT_FILE = "result.json"


def digest(document: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> str:
    """The digest of a run.

    Args:
        document: Its `result.json`.
        tables: Its tables by name.
    """
    hasher = hashlib.sha256()
    for part in ("metrics", "baseline_metrics"):
        hasher.update(json.dumps(document.get(part), sort_keys=True).encode())
    for name in sorted(tables):
        hasher.update(name.encode())
        for column in sorted(tables[name].column_names):
            # Numbers as text read back exactly; the two signs of zero differ, NaNs do not.
            values = repr(tables[name][column].to_pylist())
            hasher.update(f"{column} {values}\n".encode())
    return hasher.hexdigest()[:DIGEST_CHARACTERS]


def digest_of_folder(run: Path) -> str:
    """The digest of a run that was left in a folder."""
    document = json.loads((run / RESULT_FILE).read_text())
    return digest(document, {path.stem: pq.read_table(path) for path in run.glob("*.parquet")})


def lines_of(folder: Path) -> Iterable[str]:
    """A line for every run below a folder: the digest, and where it belongs.

    A run is found under a key that depends on its configuration; where it belongs is the folder
    that all runs of its kind are in.
    """
    for result in folder.rglob(RESULT_FILE):
        place = result.parent.parent.relative_to(folder)
        yield f"{digest_of_folder(result.parent)} {place}"


if __name__ == "__main__":
    print(*sorted(lines_of(Path(sys.argv[1]))), sep="\n")
