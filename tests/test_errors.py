"""User errors: one line, the right exit status, nothing written, and never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import COMMAND_SECONDS, SMALL_EXPERIMENT, Agewell, heed_interrupts

BAD_USAGE = {
    "no-command": ["rum"],
    "no-option": ["run", "--otu", "x"],
    "no-argument": ["run"],
    "no-such-file": ["run", "absent.toml"],
    "set-without-value": ["run", "experiment.toml", "--set", "run.seed"],
    "set-without-table": ["run", "experiment.toml", "--set", "seed=1"],
    "unknown-key": ["run", "experiment.toml", "--set", "run.sed=1"],
    "unknown-table": ["run", "experiment.toml", "--set", "ruN.seed=1"],
    "wrong-kind": ["run", "experiment.toml", "--set", "run.seed=often"],
    "unknown-choice": ["run", "experiment.toml", "--set", "queue.discipline=cscan"],
    "unknown-device": [
        *("run", "experiment.toml", "--catalogue", "."),
        *("--set", "device.model=smal"),
    ],
    "no-axis": ["sweep", "experiment.toml", "--out", "sweep"],
    "bad-axis": ["sweep", "experiment.toml", "--over", "run.seed", "--out", "sweep"],
    "same-axis-twice": [
        *("sweep", "experiment.toml", "--out", "sweep"),
        *("--over", "run.seed=1", "--over", "run.seed=2"),
    ],
    "no-jobs": ["sweep", "experiment.toml", "--over", "run.seed=1", "--out", "s", "--jobs", "0"],
    "unknown-paper": ["reproduce", "nobody-1990"],
    "no-run": ["report", "absent"],
    "bad-data": ["reproduce", "--data", "absent"],
}


@pytest.mark.parametrize("name", BAD_USAGE)
def test_bad_usage_is_one_line_and_exit_2(
    agewell: Agewell,
    experiment: Path,
    tmp_path: Path,
    snapshot: Callable[[str, str], None],
    name: str,
) -> None:
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    done = agewell(*BAD_USAGE[name], check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    snapshot(f"error-{name}.txt", done.stderr.replace(str(tmp_path), "."))


def test_a_result_that_cannot_be_written_is_exit_1(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    done = agewell("run", experiment, "--out", "taken", "--quiet", check=False)
    assert done.returncode == 1
    assert done.stderr == "agewell: error: taken: the folder cannot be made: File exists\n"


def test_version_and_help_are_exit_0(agewell: Agewell) -> None:
    assert agewell("--version").stdout.startswith("agewell ")
    assert "Measure:" in agewell("--help").stdout


def test_no_arguments_show_the_help(agewell: Agewell) -> None:
    done = agewell(check=False)
    assert done.returncode == 2
    assert "Measure:" in done.stderr


def test_a_reader_that_goes_away_is_no_error(experiment: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "agewell", "run", str(experiment), "--json", "--quiet"],
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 0


NEVER_ENDS = {
    "experiment": ["run", "/dev/zero"],
    "device": ["devices", "show", "/dev/zero"],
    "diskspecs": ["devices", "import", "/dev/zero"],
    "recipe": ["age", "--recipe", "/dev/zero"],
    "result": ["report", "/dev/zero"],
}


@pytest.mark.parametrize("name", NEVER_ENDS)
def test_a_device_that_never_ends_is_refused(agewell: Agewell, name: str) -> None:
    """One line, and the memory stays as it was."""
    done = agewell(*NEVER_ENDS[name], check=False)
    assert done.returncode in {1, 2}
    assert done.stderr.count("\n") == 1, done.stderr


def test_an_interrupt_is_one_line_and_leaves_nothing(tmp_path: Path, experiment: Path) -> None:
    experiment.write_text(SMALL_EXPERIMENT.replace("requests = 2000", "requests = 4000000000"))
    process = subprocess.Popen(
        [sys.executable, "-m", "agewell", "run", str(experiment), "--out", "first", "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=heed_interrupts,
    )
    deadline = time.monotonic() + COMMAND_SECONDS
    # The folder is made just before the simulation begins.
    while not (tmp_path / "first").is_dir() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        _, complaint = process.communicate(timeout=COMMAND_SECONDS)
    finally:
        process.kill()
    assert complaint == "agewell: error: interrupted\n"
    assert process.returncode == 130
    assert list((tmp_path / "first").iterdir()) == []


NESTED = {
    "experiment": ("experiment.toml", "a = " + "[" * 5000 + "]" * 5000),
    "record": ("result.json", '{"config":' + "[" * 50_000 + "]" * 50_000 + "}"),
    "deep": ("experiment.toml", "a = " + "[" * 200 + "]" * 200),
}


@pytest.mark.parametrize("name", NESTED)
def test_what_is_nested_too_deep_is_one_line(agewell: Agewell, tmp_path: Path, name: str) -> None:
    file, text = NESTED[name]
    (tmp_path / file).write_text(text)
    done = agewell("run", file, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"agewell: error: {file}: more than 64 tables or lists within one another\n"
    )


def test_a_value_that_is_nested_too_deep_is_one_line(agewell: Agewell, experiment: Path) -> None:
    done = agewell("run", experiment, "--set", f"a.b={'[' * 3000}{']' * 3000}", check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["devices"], ["--help"]])
def test_a_closed_standard_output_is_one_line(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-m", "agewell", *words],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "agewell: error: standard output is closed; send it to a file or to /dev/null\n"
    )


def test_a_listing_may_lose_its_reader(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "agewell", "devices"],
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            check=False,
        )
    assert done.stderr == b""


UNWRITABLE = {
    "age-series": ["age", "ffs", "-w", "smith-1996", "--series", "taken/series.csv"],
    "age-snapshot": ["age", "ffs", "-w", "smith-1996", "--snapshot", "taken/taken.parquet"],
    "age-recipe": ["age", "ffs", "-w", "smith-1996", "--save-recipe", "folder"],
    "age-plots": ["age", "ffs", "-w", "smith-1996", "--plots", "taken/plots"],
    "bench": ["bench", ".", "--out", "taken/measurements.parquet"],
    "reproduce": ["reproduce", "--out", "taken"],
    "report": ["report", "no-run-at-all", "--out", "taken/report.html"],
    "score": ["score", ".", "--plot", "taken/score.png"],
    "snapshot": ["snapshot", ".", "-o", "taken/snapshot.parquet"],
    "run": ["run", "experiment.toml", "--set", "workload.requests=4000000000", "--out", "full"],
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_what_cannot_be_written_is_known_before_the_work(
    agewell: Agewell, experiment: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "full" / "result.json").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    done = agewell(*UNWRITABLE[name], "--quiet", check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
