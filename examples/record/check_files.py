#!/usr/bin/env python3
"""Hold recorded file operations against the files that were there in the end.

    python3 examples/record/check_files.py build-files.parquet build-files.listing

Replays the names and lengths of a file-operation trace and compares them with `build-files.listing`, which `record.py`
wrote from the file system itself (path and length of every regular file). Needs pyarrow. Exit 0 if they agree, 1 if not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow.parquet as pq

CREATE, WRITE, TRUNCATE, DELETE, MAKE_DIRECTORY, RENAME = 0, 4, 5, 6, 8, 10
COLUMNS = ("operation", "file", "directory", "offset", "length", "path", "new_path")


def replayed(trace: Path) -> tuple[dict[str, int], set[str]]:
    """Length of every regular file that the trace made and left, and those it only appended to at an unknown place."""
    columns = pq.read_table(trace, columns=list(COLUMNS)).to_pydict()
    directories = set(columns["directory"])
    at: dict[str, int] = {}
    length: dict[int, int] = {}
    uncertain: set[int] = set()
    for operation, file, _, offset, count, path, new_path in zip(
        *(columns[name] for name in COLUMNS), strict=True
    ):
        if operation == CREATE:
            at[path] = file
            length[file] = 0
        elif operation == WRITE and offset is not None:
            length[file] = max(length.get(file, 0), offset + count)
        elif operation == WRITE:
            uncertain.add(file)
        elif operation == TRUNCATE:
            length[file] = count
        elif operation == DELETE and at.get(path) == file:
            del at[path]
        elif operation == MAKE_DIRECTORY:
            directories.add(file)
        elif operation == RENAME and at.get(path) == file:
            del at[path]
            at[new_path] = file
    files = {path: length[file] for path, file in at.items() if file not in directories}
    return files, {path for path in files if at[path] in uncertain}


def main() -> int:
    """Compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("listing", type=Path)
    parser.add_argument(
        "--before",
        nargs="*",
        default=["sources.tar"],
        help="files that were there before the trace (default: what record.py build prepares)",
    )
    arguments = parser.parse_args()
    seen, uncertain = replayed(arguments.trace)
    lines = arguments.listing.read_text().splitlines()
    there = {path: int(size) for path, _, size in (line.rpartition(" ") for line in lines)}
    absent = sorted(seen.keys() - there.keys())
    unseen = sorted(there.keys() - seen.keys() - set(arguments.before))
    different = sorted(path for path in seen.keys() & there.keys() if seen[path] != there[path])
    print(f"{len(there)} files on the file system, {len(seen)} left by the trace")
    print(f"not on the file system: {len(absent)} {absent[:5]}")
    print(f"not made in the trace: {len(unseen)} {unseen[:5]}")
    print(
        f"of another length: {len(different)} {different[:5]}; appended blindly: {len(uncertain)}"
    )
    return int(bool(absent or unseen or different))


if __name__ == "__main__":
    sys.exit(main())
