"""`agewell score` beside filefrag: pieces of the files of a tree, and how long it takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from peers.comparison import AbsentError, Row, agewell, in_turns, row, run
from peers.host import said

FILES = 20_000
BROKEN_FILES = 40
PIECES = 25
CHUNK_BYTES = 64 << 10


def compare(work: Path, rounds: int) -> Iterator[Row]:
    """Two rows: pieces of a file, and files a second."""
    if shutil.which("filefrag") is None:
        raise AbsentError("filefrag is not installed (e2fsprogs has it)")
    tree = work / "tree"
    make_tree(tree)
    peer = f"filefrag {version('filefrag')}"
    try:
        pieces = (ours(tree), theirs(tree))
    except subprocess.CalledProcessError as error:
        raise AbsentError(f"{work}: {error.stderr.strip().splitlines()[-1]}") from None
    yield row("fragments/pieces", peer, "pieces a file", "same", [pieces])
    times = in_turns(rounds, lambda: ours(tree), lambda: theirs(tree))
    files = FILES + BROKEN_FILES
    rates = [(files / our_seconds, files / their_seconds) for our_seconds, their_seconds in times]
    yield row("fragments/time", peer, "files/s", "more", rates, "whole commands, caches warm")


def version(program: str) -> str:
    """Of e2fsprogs, as its programs say."""
    found = re.search(r"\d+\.\d+[.\d]*", said(program, "-V"))
    return found.group() if found else ""


def make_tree(tree: Path) -> None:
    """Small files that are whole, and some that grew in turns with others."""
    for number in range(FILES):
        path = tree / f"d{number // 100:03}" / f"f{number:05}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(1 + number * 37 % 20_000))
    broken = [tree / f"broken{number:02}" for number in range(BROKEN_FILES)]
    for _ in range(PIECES):
        for path in broken:
            with path.open("ab") as out:
                out.write(os.urandom(CHUNK_BYTES))
                out.flush()
                os.fsync(out.fileno())
    os.sync()


def ours(tree: Path) -> float:
    """Pieces of a file on the mean."""
    target = agewell("score", tree, "--quiet")["targets"][0]
    return float(target["metrics"]["fragments_per_file"])


def theirs(tree: Path) -> float:
    """The same of filefrag, whose argument list is made by find."""
    printed = run("find", tree, "-type", "f", "-exec", "filefrag", "{}", "+")
    pieces = [int(found) for found in re.findall(r": (\d+) extents? found", printed)]
    return sum(pieces) / len(pieces)
