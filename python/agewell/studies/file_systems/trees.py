"""Loads on trees of sources: git's checkouts and histories, and what a build writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import ClassVar

from agewell.errors import RunError
from agewell.studies.file_systems.loads import PIECE_BYTES, Load, draws, opened

FILES = 600
"""Of the tree; a third of this project's own. Chosen by us, as all that follows."""
FILES_MIN = 40
"""Of a tree that is made smaller."""
FOLDERS = 40
MEDIAN_BYTES = 4_000
SIGMA = 1.2
MOST_BYTES = 400_000
COMMITS = 12
CHANGED = 0.06
"""Files that a commit changes, of all; a sixth as many are removed, and as many added."""

_WHEN = "2026-01-01T00:00:00+0000"


def git(folder: Path, *words: str) -> None:
    """Run git, with nothing of the user's settings.

    Raises:
        RunError: It fails.
        OSError: It says that there is no room.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": _WHEN,
        "GIT_COMMITTER_DATE": _WHEN,
    }
    names = (
        "user.name=agewell",
        "user.email=agewell@localhost",
        "gc.auto=0",
        "advice.detachedHead=false",
    )
    settings = [word for name in names for word in ("-c", name)]
    done = subprocess.run(
        ["git", *settings, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No space left" in done.stderr:
        raise OSError(28, "No space left on device")
    if done.returncode != 0:
        raise RunError(f"git {words[0]}: {done.stderr.strip() or done.returncode}")


class SourceTree:
    """A tree of sources whose files change; the same for the same seed."""

    def __init__(self, seed: int, files: int) -> None:
        self.draw = draws(seed)
        self.made = 0
        self.names: list[str] = []
        for _ in range(files):
            self.add()

    def add(self) -> str:
        """A further file's name."""
        self.made += 1
        folder = self.draw.randrange(FOLDERS)
        name = f"part{folder % 8}/module{folder:02d}/source{self.made:05d}.c"
        self.names.append(name)
        return name

    def text(self) -> bytes:
        """Of a file: letters, as incompressible as sources are."""
        drawn = int(MEDIAN_BYTES * self.draw.lognormvariate(0, SIGMA))
        return self.draw.randbytes(min(MOST_BYTES, max(64, drawn)) // 2).hex().encode()


def make_history(folder: Path, files: int = FILES) -> Path:
    """A repository of `files` files, whose commits change, add and remove some; tags `commit-N`."""
    tree, work = SourceTree(6, files), folder / "origin"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    for commit in range(COMMITS):
        if commit == 0:
            chosen = list(tree.names)
        else:
            count = round(files * CHANGED)
            chosen = tree.draw.sample(tree.names, count)
            for name in chosen[: count // 6]:
                (work / name).unlink()
                tree.names.remove(name)
            chosen = chosen[count // 6 :] + [tree.add() for _ in range(count // 6)]
        for name in chosen:
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tree.text())
        git(work, "add", "-A")
        git(work, "commit", "-q", "-m", f"commit {commit}")
        git(work, "tag", f"commit-{commit}")
    return work


class _OfHistory(Load):
    """Copies of one history on the file system."""

    COPIES: ClassVar[int]

    @classmethod
    def missing(cls) -> str:
        """Why it cannot be had here; empty if it can."""
        return "" if shutil.which("git") else "there is no git here"

    def copies(self) -> list[Path]:
        """Where they are."""
        return [self.point / f"copy{number}" for number in range(self.COPIES)]

    def prepare(self) -> None:
        """Clone, go to the first commit, and fill the rest."""
        with tempfile.TemporaryDirectory() as folder:
            origin = make_history(Path(folder), max(FILES_MIN, self.scaled(FILES)))
            for copy in self.copies():
                git(self.point, "clone", "-q", "--no-hardlinks", str(origin), copy.name)
                git(copy, "checkout", "-q", "commit-0")
        self.fill_rest()


class Git(_OfHistory):
    """Checkouts of the commits of a history, there and back, `git status` behind each."""

    name = "git"
    title = "git checkout and status"
    COPIES = 1

    def work(self, number: int) -> None:  # noqa: ARG002 (rounds are alike)
        """Every commit, there and back."""
        (copy,) = self.copies()
        there = range(1, self.scaled(COMMITS - 1) + 1)
        for commit in (*there, *reversed(there[:-1]), 0):
            git(copy, "checkout", "-q", f"commit-{commit}")
            git(copy, "status", "--short")


class History(_OfHistory):
    """Ten copies of a history, which go from commit to commit side by side."""

    name = "history"
    title = "ten copies of a git history"
    COPIES = 10

    def work(self, number: int) -> None:
        """To the last commit in rounds of even number, back in others."""
        there = range(1, self.scaled(COMMITS - 1) + 1)
        commits = list(there if number % 2 == 0 else [*reversed(there[:-1]), 0])
        for commit in commits:
            for copy in self.copies():
                git(copy, "checkout", "-q", f"commit-{commit}")


class Build(Load):
    """What unpacking sources and compiling them writes, without a compiler.

    A tree is unpacked; of each source an assembly file is written to a temporary folder, read and
    removed, an object and a list of what it depends on are written; a library is made of all
    objects. Then a tenth of the sources change and what depends on them is made again. A round
    replaces the tree of the round before.
    """

    name = "build"
    title = "sources unpacked, and what compiling them writes"
    EDITED = 0.1

    def prepare(self) -> None:
        """Unpack and compile a first tree, and fill the rest."""
        (self.point / "tmp").mkdir()
        self._unpack("tree", self._tree(7))
        self._compile("tree", self.sources)
        self.fill_rest()

    def work(self, number: int) -> None:
        """Another tree in place of the last one."""
        shutil.rmtree(self.point / "tree")
        self._unpack("tree", self._tree(8 + number))
        self._compile("tree", self.sources)
        edited = self.sources[:: round(1 / self.EDITED)]
        for source in edited:
            with source.open("ab") as file:
                file.write(b"\n")
        self._compile("tree", edited)

    def _tree(self, seed: int) -> SourceTree:
        return SourceTree(seed, max(FILES_MIN, self.scaled(FILES)))

    def _unpack(self, name: str, tree: SourceTree) -> None:
        root = self.point / name
        self.sources: list[Path] = []
        for each in tree.names:
            path = root / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tree.text())
            self.sources.append(path)

    def _compile(self, name: str, sources: list[Path]) -> None:
        for number, source in enumerate(sources):
            length = len(source.read_bytes())
            assembly = self.point / "tmp" / f"cc{number:05d}.s"
            self.write(assembly, 3 * length, number)
            assembly.read_bytes()
            self.write(source.with_suffix(".o"), 2 * length, number)
            source.with_suffix(".d").write_text(f"{source.name}: " + "header.h " * 30)
            assembly.unlink()
        objects = sorted((self.point / name).rglob("*.o"))
        with opened(self.point / name / "library.a", os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            for each in objects:
                content = each.read_bytes()
                for at in range(0, len(content), PIECE_BYTES):
                    os.write(file, content[at : at + PIECE_BYTES])
