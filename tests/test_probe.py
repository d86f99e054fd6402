"""`agewell probe`: modelled drives, files and loop devices measured by reading them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agewell.advice.advising import _uncertain
from conftest import COMMAND_SECONDS, Agewell, heed_interrupts

NEEDED_BYTES = 72 << 20
"""A little more than the least that is measured."""


def test_a_modelled_drive_becomes_a_device_file(agewell: Agewell, tmp_path: Path) -> None:
    done = agewell("probe", "seagate-st34501n", "--modelled", "-o", "My Disk.toml")
    assert "a disk with an arm" in done.stdout
    assert "warning" not in done.stderr
    written = tomllib.loads((tmp_path / "My Disk.toml").read_text())
    assert (written["name"], written["kind"]) == ("my-disk", "mechanical")
    assert abs(60_000 / written["rotation_period_ms"] / 10_033 - 1) < 0.001
    assert abs(written["uncertainty"]["random_read_pct"]) < 7
    assert all(
        source.startswith(("measured: ", "what the system says", "the size that the system"))
        for source in written["sources"].values()
    )
    shown = json.loads(agewell("devices", "My Disk.toml", "--json").stdout)
    assert shown["uncertainty"] == written["uncertainty"]


def test_the_same_seed_gives_the_same_file(agewell: Agewell, tmp_path: Path) -> None:
    for name in ("one", "two"):
        agewell("probe", "samsung-970-pro", "--modelled", "--seed", "4", "-o", f"{name}/disk.toml")
    assert (tmp_path / "one/disk.toml").read_bytes() == (tmp_path / "two/disk.toml").read_bytes()


def test_a_gain_stands_beside_the_error_of_the_model() -> None:
    error = {"random_read_pct": -3.2, "sequential_read_pct": 1.0}
    assert "-3.2 %" in _uncertain(20.0, error)
    assert "not certain" not in _uncertain(20.0, error)
    assert "not certain" in _uncertain(3.0, error)


BAD = {
    "absent": (["absent"], "absent: cannot be opened for reading: No such file"),
    "folder": (["."], ".: is neither a file nor a block device"),
    "small": (["small"], "small: 4096 bytes are too few to measure a disk by"),
    "hollow": (["hollow"], "hollow: has holes"),
    "model": (["hp-97650", "--modelled"], "did you mean 'hp-97560'?"),
    "time": (["hp-97560", "--modelled", "--for", "5"], "no unit that fits"),
    "area": (["written", "--write-area", "small"], "small: is not a file of 64 MiB"),
    "output": (["hp-97560", "--modelled", "-o", "."], ".: is a directory"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_usage_is_one_line(agewell: Agewell, tmp_path: Path, name: str) -> None:
    (tmp_path / "small").write_bytes(bytes(4096))
    with (tmp_path / "hollow").open("wb") as file:
        file.truncate(NEEDED_BYTES)
    if name == "area":
        (tmp_path / "written").write_bytes(os.urandom(NEEDED_BYTES))
    options, reason = BAD[name]
    output = [] if "-o" in options else ["-o", "disk.toml"]
    done = agewell("probe", *options, *output, check=False)
    if "no O_DIRECT" in done.stderr:
        pytest.skip("the folder of this test has no direct reads")
    assert done.returncode == 2, done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert reason in done.stderr
    assert not (tmp_path / "disk.toml").exists()


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[Path]:
    """A loop device of its own on a file full of data."""
    losetup = shutil.which("losetup")
    if losetup is None or os.geteuid() != 0:
        pytest.skip("a loop device needs root and losetup")
    image = tmp_path / "image"
    image.write_bytes(os.urandom(NEEDED_BYTES))
    made = subprocess.run(
        [losetup, "--find", "--show", "--direct-io=on", str(image)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    device = Path(made.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run([losetup, "--detach", str(device)], check=True)


def _written(device: Path) -> list[str]:
    """The kernel's counters of writes, discards and flushes of a disk."""
    fields = Path(f"/sys/block/{device.name}/stat").read_text().split()
    return fields[4:8] + fields[11:15]


def _reads(device: Path) -> int:
    """Reads so far, those of earlier uses of the device among them."""
    return int(Path(f"/sys/block/{device.name}/stat").read_text().split()[0])


def test_a_device_is_only_read(agewell: Agewell, tmp_path: Path, loop_device: Path) -> None:
    before = (_written(loop_device), (tmp_path / "image").read_bytes())
    done = agewell("probe", loop_device, "-o", "disk.toml", "--for", "10s", "--json")
    assert (_written(loop_device), (tmp_path / "image").read_bytes()) == before
    found = json.loads(done.stdout)
    assert found["requests_of_others"] == 0
    assert found["capacity_bytes"] == NEEDED_BYTES
    assert tomllib.loads((tmp_path / "disk.toml").read_text())["capacity_sectors"] == (
        NEEDED_BYTES // 512
    )


def test_an_interrupt_leaves_no_file(tmp_path: Path, loop_device: Path) -> None:
    output, before = tmp_path / "disk.toml", _reads(loop_device)
    with subprocess.Popen(
        [sys.executable, "-m", "agewell", "probe", loop_device, "-o", output],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as process:
        while _reads(loop_device) < before + 200:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=COMMAND_SECONDS)
    assert process.returncode == 130
    assert complaint.splitlines()[-1] == "agewell: error: interrupted"
    assert not output.exists()
