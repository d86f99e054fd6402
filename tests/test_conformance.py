"""The suites of others on the file system in memory that stands behind the protocol."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance import (
    NO_LIMIT_OF_LINKS,
    REPOSITORY,
    Outcome,
    program,
    run_fsx,
    run_pjdfstest,
)
from conftest import COMMAND_SECONDS


def missing() -> str:
    """What is needed here and not there, or nothing."""
    if os.geteuid() != 0:
        return "only root mounts"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    if shutil.which("cargo") is None:
        return "cargo is not there"
    return next((why for name in ("pjdfstest", "fsx") if (why := program(name)[1])), "")


@contextmanager
def memory_mounted() -> Iterator[Path]:
    """A file system in memory, mounted where everybody may search."""
    build = ["cargo", "build", "--quiet", "--locked", "--release", "--workspace"]
    subprocess.run([*build, "--example", "memory"], cwd=REPOSITORY, check=True)
    folder = Path(tempfile.mkdtemp(prefix="aw-"))
    folder.chmod(0o755)
    point = folder / "m"
    point.mkdir()
    before = point.stat().st_dev
    served = subprocess.Popen([REPOSITORY / "target/release/examples/memory", point])
    try:
        while served.poll() is None and point.stat().st_dev == before:
            time.sleep(0.01)
        yield point
    finally:
        subprocess.run(["umount", point], check=True)
        assert served.wait(timeout=COMMAND_SECONDS) == 0
        shutil.rmtree(folder)


def test_the_file_system_in_memory_passes_all_of_both() -> None:
    if why := missing():
        pytest.skip(why)
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm", prefix="agewell-other-") as other,
        memory_mounted() as point,
    ):
        Path(other).chmod(0o755)
        tests = point / "p"
        tests.mkdir()
        outcome = run_pjdfstest(tests, other=Path(other), remount=True)
        assert outcome.failed == set(), outcome.output
        assert set(outcome.skipped) == NO_LIMIT_OF_LINKS
        assert len(outcome.passed) == 397
        assert run_fsx(point, operations=20_000, seed=1) == ""


def test_a_directory_whose_path_is_too_long_for_sockets_is_refused() -> None:
    with pytest.raises(RuntimeError, match="sockets"):
        run_pjdfstest(Path("/" + "long/" * 9))


def test_what_failed_and_what_was_skipped_is_said() -> None:
    """The form of the suite's output, as it is counted."""
    outcome = Outcome()
    outcome.add(
        "open::ok                                ok\n"
        "rmdir::bad                          FAILED\n\tcalled `Result::unwrap()`\n"
        "chmod::erofs                       skipped\n\tRemounts are not allowed\n"
        "\nSummary: 1 failed, 1 skipped, 1 passed, 0 expected failures, 3 total\n"
    )
    assert (outcome.passed, outcome.failed) == ({"open::ok"}, {"rmdir::bad"})
    assert outcome.skipped == {"chmod::erofs": "Remounts are not allowed"}
    outcome.add("chmod::erofs                            ok\n")
    assert "chmod::erofs" in outcome.passed
    assert outcome.skipped == {}
