"""The build that made a result: in every result, in its key, and never two in one table."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agewell as api
from agewell import _agewell
from agewell.version import COMPUTING_MODULES, build
from conftest import REPOSITORY, Agewell

PACKAGE = Path(api.__file__).resolve().parent


@pytest.fixture
def other_build(tmp_path: Path) -> Path:
    """A folder with the same package, but for one line in a module that computes."""
    folder = tmp_path / "other"
    copy = folder / "agewell"
    copy.mkdir(parents=True)
    for entry in PACKAGE.iterdir():
        if entry.name not in {"__pycache__", "experiments"}:
            (copy / entry.name).symlink_to(entry)
    shutil.copytree(PACKAGE / "experiments", copy / "experiments")
    with (copy / "experiments" / "simulation.py").open("a") as changed:
        changed.write("\n# Another build.\n")
    return folder


def by(build_folder: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agewell", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(build_folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_result_names_the_build_that_made_it(
    agewell: Agewell, experiment: Path, tmp_path: Path, other_build: Path
) -> None:
    agewell("run", experiment, "--out", "ours", "--quiet")
    assert by(other_build, tmp_path, "run", str(experiment), "--out", "theirs").returncode == 0
    ours, theirs = (
        json.loads((tmp_path / name / "result.json").read_text()) for name in ("ours", "theirs")
    )
    assert ours.pop("agewell_build") == build()
    assert theirs.pop("agewell_build") not in ("", build())
    assert ours == theirs
    assert agewell("--version").stdout == f"agewell {api.__version__} (build {build()})\n"


def test_a_sweep_of_another_build_is_refused_and_kept(
    agewell: Agewell, experiment: Path, tmp_path: Path, other_build: Path
) -> None:
    words = ("sweep", str(experiment), "--over", "run.seed=1,2", "--out", "sweep", "--quiet")
    agewell(*words)
    files = {path: path.read_bytes() for path in (tmp_path / "sweep").rglob("*") if path.is_file()}
    done = by(other_build, tmp_path, *words)
    assert done.returncode == 2
    assert f"holds a sweep made by agewell {api.__version__}, build {build()};" in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in files} == files


def test_a_comparison_does_not_take_runs_of_another_build(
    agewell: Agewell, experiment: Path, tmp_path: Path, other_build: Path
) -> None:
    experiment.write_text(
        '[workload]\nkind = "hot-cold"\nutilization = 0.6\nblocks = 2000\nupdates_per_block = 2\n'
        '[layout]\nkind = "lfs"\nblock_size = "4 KiB"\n[device]\nmodel = "small.toml"\n'
    )
    words = ["compare", "--workload", "experiment.toml", "--device", "simple:15ms:5MB/s"]
    words += ["--layouts", "lfs,sequential", "--out", "compare", "--quiet"]
    agewell(*words)
    ours = set((tmp_path / "compare" / "runs").iterdir())
    assert by(other_build, tmp_path, *words).returncode == 0
    theirs = set((tmp_path / "compare" / "runs").iterdir()) - ours
    assert len(theirs) == len(ours) == 2
    document = json.loads((tmp_path / "compare" / "compare.json").read_text())
    names = {json.loads((path / "result.json").read_text())["agewell_build"] for path in theirs}
    assert names == {document["agewell_build"]}


def test_the_modules_that_compute_are_those_that_a_worker_loads() -> None:
    script = (
        "import sys, pathlib, agewell.runs.workers, agewell.experiments.simulation\n"
        "names = [name for name in sys.modules if name.split('.')[0] == 'agewell']\n"
        "paths = [pathlib.Path(sys.modules[name].__file__) for name in names]\n"
        "print(*(path.relative_to(sys.argv[1]).with_suffix('').as_posix() for path in paths))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, PACKAGE], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) - {"_agewell.abi3"} == set(COMPUTING_MODULES)


def test_the_hash_covers_every_source_of_the_extension() -> None:
    """Worked out again, by the rule that crates/py/build.rs states."""
    crates: set[str] = set()
    waiting = ["py"]
    while waiting:
        name = waiting.pop()
        if name not in crates:
            crates.add(name)
            manifest = tomllib.loads((REPOSITORY / "crates" / name / "Cargo.toml").read_text())
            tables = [manifest, *manifest.get("target", {}).values()]
            listed = [each for table in tables for each in table.get("dependencies", {})]
            used = [each for each in listed if each.startswith("agewell-")]
            waiting += [each.removeprefix("agewell-") for each in used]
    assert {"core", "trace", "disk", "layout", "shuffle", "sim", "age", "py"} <= crates
    files = {REPOSITORY / "Cargo.toml", REPOSITORY / "Cargo.lock"}
    for name in crates:
        folder = REPOSITORY / "crates" / name
        files |= {path for path in (folder / "src").rglob("*") if path.is_file()}
        files.add(folder / "Cargo.toml")
    hasher = hashlib.sha256()
    for path in sorted(files):
        source = path.read_bytes()
        hasher.update(str(path.relative_to(REPOSITORY)).encode())
        hasher.update(len(source).to_bytes(8, "little") + source)
    assert _agewell.build() == hasher.hexdigest()[:16], (
        "the extension module is not built from the sources that are here: make extension"
    )
