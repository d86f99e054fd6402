"""What the guides ask a reader to type works as they say.

That no block of code is left out is held by `test_code_blocks.py`, which runs the others.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import COMMAND_SECONDS, REPOSITORY, Agewell

GUIDES = REPOSITORY / "docs" / "guides"
GUIDE = GUIDES / "first-run.md"


def blocks(language: str, guide: Path = GUIDE) -> list[str]:
    """The code blocks of a language in a guide, in order."""
    every = re.findall(r"^```(\w*)\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL)
    return [text for name, text in every if name == language]


def commands() -> list[list[str]]:
    """Every agewell command of the guide, as arguments."""
    lines = [line for block in blocks("") for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("agewell ")]


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """The guide's experiment, shortened: the text is the same but for the number of requests."""
    [text] = blocks("toml")
    assert "requests = 100000" in text
    path = tmp_path / "first.toml"
    path.write_text(text.replace("requests = 100000", "requests = 2000"))
    return path


@pytest.mark.usefixtures("first")
def test_every_command_of_the_first_run_works_in_order(agewell: Agewell, tmp_path: Path) -> None:
    assert len(commands()) >= 5
    for arguments in commands():
        agewell(*arguments)
    names = re.findall(r"^\| `([a-z]+\.(?:json|parquet))` \|", GUIDE.read_text(), re.MULTILINE)
    assert sorted(path.name for path in (tmp_path / "runs" / "again").iterdir()) == sorted(names)
    assert (tmp_path / "runs" / "first" / "report.html").is_file()
    assert (tmp_path / "runs" / "disciplines" / "sweep.parquet").is_file()


@pytest.mark.usefixtures("first")
def test_the_python_of_the_first_run_works(tmp_path: Path) -> None:
    [code] = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
NEEDS_EXT4 = pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="there is no mkfs.ext4")
NEEDS_FUSE = pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="there is no /dev/fuse")


def typed(script: str, folder: Path, *, mounted: str = "") -> subprocess.CompletedProcess[str]:
    """A script as a reader types it; what it mounts in the folder does not stay mounted."""
    beside = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    unmount = f"mountpoint -q {mounted} && umount {mounted} || true"
    trap = f"trap '{unmount}' EXIT\n" if mounted else ""
    return subprocess.run(
        ["sh", "-ec", trap + script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@NEEDS_ROOT
@NEEDS_EXT4
def test_the_layout_regression_is_caught(tmp_path: Path) -> None:
    script, again = blocks("sh", GUIDES / "layout-regression.md")
    assert script.count("days=60") == again.count("days=60") == 1
    [limit] = re.findall(r"--fail-under layout_score=0\.99", script)
    for held, status in ((limit, 0), (limit.replace("0.99", "1.01"), 1)):
        aged = script.replace("days=60", "days=3").replace(limit, held)
        done = typed(aged, tmp_path, mounted="aged")
        assert done.returncode == status, done.stderr
        assert ("is under 1.01" in done.stderr) == bool(status)


def test_results_are_asked_and_compared(tmp_path: Path) -> None:
    guide = GUIDES / "ask-results.md"
    made, asked, compared, scored, held = blocks("sh", guide)
    answer, difference = blocks("text", guide)
    assert "collect" in typed(made, tmp_path).stdout
    assert typed(asked, tmp_path).stdout == answer
    again = typed(compared, tmp_path)
    assert again.stdout.endswith("something has changed\n")
    assert difference in again.stdout
    queries = re.findall(r"^\| [^|]+ \| `(.+)` \|$", guide.read_text(), re.MULTILINE)
    assert len(queries) == 5
    for query in queries:
        done = typed(shlex.join(["agewell", "results", query, "runs"]), tmp_path)
        assert done.returncode == 0, done.stderr
    for script in (scored, held):
        done = typed(script, tmp_path)
        assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "difference.json").read_text())["beyond"] == 0
    assert typed(
        held.replace("ffs.json realloc.json", "realloc.json ffs.json"), tmp_path
    ).returncode


@NEEDS_ROOT
@NEEDS_EXT4
def test_a_file_system_is_measured_new_and_aged(tmp_path: Path) -> None:
    [script] = blocks("sh", GUIDES / "age-before-a-benchmark.md")
    assert script.count("days=60") == 1
    done = typed(script.replace("days=60", "days=3"), tmp_path, mounted="aged")
    assert done.returncode == 0, done.stderr
    assert "hot-read" in done.stdout
    assert (tmp_path / "new.parquet").is_file()
    assert (tmp_path / "aged.parquet").is_file()
    assert "smith-1996" in (tmp_path / "aged.recipe").read_text()


@NEEDS_ROOT
@NEEDS_FUSE
def test_the_file_system_of_the_guide_is_mounted_used_and_checked(tmp_path: Path) -> None:
    made, fixed = blocks("sh", GUIDES / "mount.md")
    assert "/usr/include" in made
    there = tmp_path / "there"
    there.mkdir()
    (there / "file").write_text("content")
    done = typed(made.replace("/usr/include", "there") + fixed, tmp_path, mounted="mounted")
    assert done.returncode == 0, done.stderr
    assert "clean" in done.stdout
    assert not (tmp_path / "mounted").is_mount()


def test_the_segment_size_of_the_guide_is_what_is_printed(tmp_path: Path) -> None:
    guide = GUIDES / "segment-size.md"
    first, others = blocks("sh", guide)
    done = typed(first, tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    [shown] = blocks("console", guide)
    command, heading, *rest = shown.splitlines()
    assert command == f"$ {first.strip()}"
    assert any(line.startswith(heading) for line in printed)
    missing = [line for line in rest if not any(one.startswith(line) for one in printed)]
    assert missing == []
    assert re.findall(r"--set (\S+)", others) == ["workload.utilization=0.5"]


def run_as_written(language: str, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block of a guide in a folder."""
    script = code if language == "sh" else f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    done = typed(script, folder)
    assert done.returncode == 0, done.stderr
    return done


def test_garbage_is_collected_on_a_trace_of_the_readers(tmp_path: Path) -> None:
    guide = GUIDES / "collect-garbage.md"
    shutil.copy(REPOSITORY / "examples" / "traces" / "mail.parquet", tmp_path / "mine.parquet")
    [experiment] = blocks("toml", guide)
    (tmp_path / "garbage.toml").write_text(experiment)
    for code in blocks("sh", guide):
        run_as_written("sh", code, tmp_path)
    [code] = blocks("python", guide)
    printed = run_as_written("python", code, tmp_path).stdout.splitlines()
    rows = {tuple(line.split()[:2]): line.split()[2] for line in printed}
    assert len(rows) == 12
    assert (tmp_path / "write-amplification.svg").read_text().startswith("<?xml")
    assert (tmp_path / "runs" / "greedy" / "report.html").is_file()
    metrics = {
        run: json.loads((tmp_path / "runs" / run / "result.json").read_text())["metrics"]
        for run in ("greedy", "sepbit")
    }
    greedy = metrics["greedy"]
    # What the guide says of this trace.
    text = guide.read_text()
    for said in (
        f"| write amplification | {greedy['write_amplification']:.3f} |",
        f"| use of a collected segment | {greedy['victim_utilization'] * 100:.1f} % |",
        f"| overall write cost | {greedy['overall_write_cost']:.1f} |",
        f"at an amplification of {rows['greedy', '0.95']}",
        f"at {rows['cost-age', '0.95']}.",
        f"amplification of {metrics['sepbit']['write_amplification']:.3f} at 90 %",
    ):
        assert said in text
    assert rows["greedy", "0.90"] < rows["cost-age", "0.90"]
    assert greedy["user_blocks"] > greedy["capacity_blocks"]


def test_policies_of_the_guide_decide(tmp_path: Path) -> None:
    guide = GUIDES / "policy.md"
    *session, mine = blocks("python", guide)
    printed = run_as_written("python", "\n".join(session), tmp_path).stdout.splitlines()
    values = {name: float(value) for name, value in (line.rsplit(maxsplit=1) for line in printed)}
    assert values["by age"] < values["cost_benefit"] < values["greedy"]
    assert "lowest" in values
    (tmp_path / "mine.py").write_text(mine)
    [experiment] = blocks("toml", guide)
    (tmp_path / "log.toml").write_text(experiment)
    command, copied = blocks("sh", guide)
    run_as_written("sh", command, tmp_path)
    result = json.loads((tmp_path / "runs" / "settled" / "result.json").read_text())
    assert result["config"]["policies"]["victim"].startswith("mine:settled sha256:")
    # The crate is built by a test of its own.
    assert "examples/policy-crate" in copied


def test_a_cluster_makes_the_same_table(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    guide = GUIDES / "cluster.md"
    [experiment] = blocks("toml", guide)
    (tmp_path / "log.toml").write_text(experiment)
    here, tried, cluster, there = blocks("sh", guide)
    install, tried = tried.split("\n", maxsplit=1)
    assert install.startswith("pip install 'agewell[")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    script = f"{cluster}{here}{tried}{there}".replace("8786", port)
    beside = Path(sys.executable).parent
    # The scheduler and the workers go on, and hold what is written to; so does whoever typed this.
    with (tmp_path / "said").open("wb") as said:
        shell = subprocess.Popen(
            ["sh", "-ec", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"},
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            status = shell.wait(timeout=COMMAND_SECONDS)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    assert status == 0, (tmp_path / "said").read_text()
    assert (tmp_path / "runs" / "tried" / "sweep.parquet").is_file()
    assert len(list((tmp_path / "runs" / "there").glob("runs/*/result.json"))) == 16
