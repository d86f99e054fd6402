"""`agewell run` of a file system that ages, and `agewell bench` of a simulated one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from agewell.filesystems import simulated_benchmark
from conftest import Agewell

EXPERIMENT = """
[workload]
kind = "smith-1996"

[layout]
kind = "ffs"

[device]
model = "seagate-st32430n"

[measure]
sequential = ["16 KiB", "104 KiB"]
sequential_size = "1 MiB"
hot = "2 d"

[run]
seed = 3
days = 3
"""


@pytest.fixture
def aging_experiment(tmp_path: Path) -> Path:
    path = tmp_path / "aging.toml"
    path.write_text(EXPERIMENT)
    return path


def test_a_run_leaves_its_record_and_can_be_run_again_from_it(
    agewell: Agewell, aging_experiment: Path, tmp_path: Path
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    done = agewell("run", aging_experiment, "--out", first, "--json")
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["no_space"] == 0
    assert metrics["files"] > 0
    assert metrics["hot_read_mb_per_s"] > 0
    series = pyarrow.parquet.read_table(first / "series.parquet")
    assert series["day"].to_pylist() == [0, 1, 2]
    agewell("run", first / "result.json", "--out", again)
    assert (again / "result.json").read_bytes() == (first / "result.json").read_bytes()
    assert (again / "series.parquet").read_bytes() == (first / "series.parquet").read_bytes()


def test_a_run_prints_a_table(agewell: Agewell, aging_experiment: Path) -> None:
    done = agewell("run", aging_experiment)
    assert "layout score" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_kind_of_file_system_can_be_swept(
    agewell: Agewell, aging_experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sweep"
    agewell("sweep", aging_experiment, "--over", "layout.kind=ffs,ffs+realloc", "--out", out)
    (table,) = out.glob("*.parquet")
    rows = pyarrow.parquet.read_table(table).to_pylist()
    plain, realloc = (row["metrics.layout_score"] for row in rows)
    assert realloc > plain


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("layout.kind=ffs+reallok", "did you mean 'ffs+realloc'?"),
        ("measure.hots=1 d", "did you mean 'hot'?"),
        ("workload.parameters={days = 1}", "days: must be from 2 to 36500"),
        ("device.model=seagate", "seagate"),
        ("host.machine=pentium-12", "did you mean 'pentium-120'?"),
    ],
)
def test_what_does_not_do_is_one_line(
    agewell: Agewell, aging_experiment: Path, setting: str, complaint: str
) -> None:
    done = agewell("run", aging_experiment, "--set", setting, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def _bench(agewell: Agewell, *arguments: str) -> dict[str, Any]:
    done = agewell(
        "bench", *arguments, "--sizes", "16 KiB", "--bytes", "1 MiB", "-r", "2", "--json"
    )
    record: dict[str, Any] = json.loads(done.stdout)
    return record


@pytest.mark.parametrize("kind", ["ffs", "ffs+realloc", "lfs", "early-unix"])
def test_a_simulated_file_system_is_measured(agewell: Agewell, kind: str) -> None:
    record = _bench(agewell, kind, "--raw", "--fsync", "both")
    phases = [(row["phase"], row["sync_each"]) for row in record["summary"]]
    for synced in (False, True):
        assert [("create", synced), ("read", synced), ("overwrite", synced)] == [
            pair for pair in phases if pair[1] == synced and "device" not in pair[0]
        ]
    assert {"device, read", "device, write"} <= {phase for phase, _ in phases}
    assert all(0.001 < row["mb_per_s"] < 100 for row in record["summary"])
    again = _bench(agewell, kind, "--raw", "--fsync", "both")
    assert again == record


def test_the_python_api_ages_first() -> None:
    record = simulated_benchmark.simulated(
        "ffs",
        workload="smith-1996",
        sizes=[],
        hot="30d",
        repetitions=1,
        layout={"size": "600 MiB"},
    )
    assert record["metrics"]["hot_files"] > 0
    assert [row["phase"] for row in record["summary"]] == [
        "hot files, read",
        "hot files, overwrite",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ffs", "--read-device", "/dev/null"), "--read-device is of a mounted file system"),
        (("ffs", "--set", "maxcontig=3"), "only [layout] can be set here"),
        (("ffs", "--device", "nothing-like-it"), "nothing-like-it"),
        (("ffs", "--workload", "absent.parquet"), "absent.parquet"),
        (("ext5",), "ext5"),
    ],
)
def test_bad_benchmarks_are_one_line(
    agewell: Agewell, arguments: tuple[str, ...], complaint: str
) -> None:
    done = agewell("bench", *arguments, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_options_of_simulated_file_systems_are_refused_elsewhere(
    agewell: Agewell, tmp_path: Path
) -> None:
    done = agewell("bench", tmp_path, "--machine", "pentium-120", check=False)
    assert done.returncode == 2
    assert "--machine is of a simulated file system" in done.stderr


def test_a_report_shows_one_run_and_several(
    agewell: Agewell, aging_experiment: Path, tmp_path: Path
) -> None:
    for kind in ("ffs", "ffs+realloc"):
        agewell("run", aging_experiment, "--set", f"layout.kind={kind}", "--out", tmp_path / kind)
    one, both = tmp_path / "one.html", tmp_path / "both.html"
    agewell("report", tmp_path / "ffs", "--out", one)
    agewell("report", tmp_path / "ffs", tmp_path / "ffs+realloc", "--out", both)
    for page, pictures in ((one, 3), (both, 2 + 2 * 3)):
        text = page.read_text()
        assert "layout score" in text
        assert len(list((page.parent).glob("*"))) > 0
        assert text.count("<figure") >= pictures
