"""`agewell run`: the record it leaves, and that the same question gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import agewell as api
from conftest import Agewell

RECORD = ("result.json", "series.parquet", "histograms.parquet")


def read(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RECORD}


def test_two_runs_leave_the_same_bytes(agewell: Agewell, experiment: Path, tmp_path: Path) -> None:
    agewell("run", experiment, "--out", "first", "--quiet")
    agewell("run", experiment, "--out", "second", "--quiet")
    assert read(tmp_path / "first") == read(tmp_path / "second")


def test_the_number_of_threads_does_not_show(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("run", experiment, "--out", "one", "--quiet", RAYON_NUM_THREADS="1")
    agewell("run", experiment, "--out", "four", "--quiet", RAYON_NUM_THREADS="4")
    assert read(tmp_path / "one") == read(tmp_path / "four")


def test_another_seed_gives_another_result(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("run", experiment, "--out", "first", "--quiet")
    agewell("run", experiment, "--out", "second", "--quiet", "--set", "run.seed=8")
    first, second = (
        json.loads(read(tmp_path / name)["result.json"]) for name in ("first", "second")
    )
    assert first["metrics"]["mean_response_ms"] != second["metrics"]["mean_response_ms"]


@pytest.mark.parametrize("record", ["first/result.json", "first"])
def test_a_result_runs_again_from_its_own_record(
    agewell: Agewell, experiment: Path, tmp_path: Path, record: str
) -> None:
    agewell("run", experiment, "--out", "first", "--quiet", "--set", "run.seed=11")
    experiment.unlink()
    agewell("run", record, "--out", "deeper/second", "--quiet")
    assert read(tmp_path / "first") == read(tmp_path / "deeper" / "second")


def test_a_record_that_was_moved_finds_its_inputs_from_the_current_folder(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("run", experiment, "--out", "first", "--quiet")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "first" / "result.json").rename(tmp_path / "elsewhere" / "result.json")
    agewell("run", "elsewhere/result.json", "--out", "second", "--quiet")
    moved = (tmp_path / "elsewhere" / "result.json").read_bytes()
    assert moved == (tmp_path / "second" / "result.json").read_bytes()


def test_the_record_says_where_it_came_from(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    agewell("run", experiment, "--out", "first", "--quiet")
    record = json.loads(read(tmp_path / "first")["result.json"])
    assert record["schema_version"] == 1
    assert record["agewell_version"] == api.__version__
    assert record["seed"] == 7
    assert record["config"]["run"]["seed"] == 7
    assert [entry["name"] for entry in record["inputs"]] == ["small.toml"]
    assert record["metrics"]["requests"] == 2000


def test_the_time_a_run_took_stays_out_of_the_result(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    done = agewell("run", experiment, "--out", "first")
    timing = json.loads((tmp_path / "first" / "timing.json").read_text())
    assert timing["run_seconds"] > 0
    assert "done in" in done.stderr
    assert b'seconds": ' not in read(tmp_path / "first")["result.json"].replace(
        b"disk_seconds", b""
    ).replace(b"move_disk_seconds", b"")


def test_json_is_one_document_and_the_same_as_the_record(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    done = agewell("run", experiment, "--json", "--quiet", "--out", "first")
    assert done.stderr == ""
    assert json.loads(done.stdout) == json.loads(read(tmp_path / "first")["result.json"])


def test_without_out_nothing_is_written(agewell: Agewell, experiment: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    agewell("run", experiment)
    assert sorted(tmp_path.iterdir()) == before


def test_the_table_lists_every_metric(agewell: Agewell, experiment: Path) -> None:
    done = agewell("run", experiment, "--quiet")
    document = json.loads(agewell("run", experiment, "--quiet", "--json").stdout)
    assert len(done.stdout.splitlines()) == 1 + len(document["metrics"])
    assert "mean service time" in done.stdout


def test_from_python(experiment: Path, tmp_path: Path) -> None:
    result = api.run(experiment, settings={"run.seed": 7}, out=tmp_path / "first")
    assert result.metrics["requests"] == 2000
    assert result.baseline is None
    assert result.config["queue"] == {"discipline": "fcfs"}
    assert sum(result.series["requests"].to_pylist()) == 2000
    assert result.series == pq.read_table(tmp_path / "first" / "series.parquet")
    again = api.run(result.config, base=tmp_path)
    assert again.document == result.document
    assert again.series == result.series
    assert again.directory is None


def test_progress_comes_from_python(experiment: Path) -> None:
    seen: list[int] = []
    api.run(experiment, progress=seen.append)
    assert seen
    assert seen[-1] == 2000


def test_an_exception_in_progress_stops_the_run(experiment: Path, tmp_path: Path) -> None:
    def stop(requests: int) -> None:
        raise ValueError(requests)

    with pytest.raises(ValueError, match="2000"):
        api.run(experiment, progress=stop, out=tmp_path / "first")
    assert not (tmp_path / "first" / "result.json").exists()


def test_the_table_on_the_terminal(
    agewell: Agewell, experiment: Path, snapshot: Callable[[str, str], None]
) -> None:
    snapshot("run.txt", agewell("run", experiment, "--quiet").stdout)


def test_the_table_with_a_baseline(
    agewell: Agewell, experiment: Path, snapshot: Callable[[str, str], None]
) -> None:
    settings = ["--set", "remap.kind=random", "--set", "remap.interval=10 s"]
    settings += ["--set", "remap.quantum=block"]
    snapshot("run-baseline.txt", agewell("run", experiment, "--quiet", *settings).stdout)
