"""Log-structured runs: the same bytes however they are made, and bad ones refused in one line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import agewell as api
from agewell.experiments.run_result import Result
from agewell.report.charts import log as log_charts
from agewell.report.run_report import comparison, page_of
from agewell.values.metrics import METRICS
from conftest import REPOSITORY, Agewell

LOG_EXPERIMENT = """\
[workload]
kind = "random-update"
utilization = 0.85
blocks = 4000

[host]
sync_every = 4

[layout]
kind = "lfs"
segment_size = "64 KiB"
collect = "clean"

[device]
kind = "simple"
seek_time = "9.5 ms"
rotation_time = "11 ms"
bandwidth = "5 MB/s"

[run]
seed = 3
"""

RECORD = ("result.json", "series.parquet")
MECHANISMS = ("clean", "plug", "thread", "matthews-1999", "adaptive")


@pytest.fixture
def log_experiment(tmp_path: Path) -> Path:
    """The small log-structured experiment as a file."""
    path = tmp_path / "log.toml"
    path.write_text(LOG_EXPERIMENT)
    return path


def changed(**settings: Any) -> dict[str, Any]:
    """The experiment as a dict, with tables' entries replaced: `layout={"victim": "fifo"}`."""
    tables: dict[str, Any] = tomllib.loads(LOG_EXPERIMENT)
    for table, entries in settings.items():
        tables[table] = {**tables.get(table, {}), **entries}
    return tables


def read(folder: Path) -> dict[str, bytes]:
    assert not (folder / "histograms.parquet").exists()
    return {name: (folder / name).read_bytes() for name in RECORD}


# --- the same bytes -------------------------------------------------------------------------------


@pytest.mark.parametrize("collect", MECHANISMS)
def test_python_and_the_command_line_leave_the_same_bytes(
    agewell: Agewell, log_experiment: Path, tmp_path: Path, collect: str
) -> None:
    api.run(log_experiment, settings={"layout.collect": collect}, out=tmp_path / "python")
    agewell("run", log_experiment, "--set", f"layout.collect={collect}", "--out", "cli", "--quiet")
    assert read(tmp_path / "python") == read(tmp_path / "cli")


def test_several_processes_give_the_bytes_of_one(
    agewell: Agewell, log_experiment: Path, tmp_path: Path
) -> None:
    axes = ["--over", "layout.collect=clean,plug,thread,adaptive"]
    axes += ["--over", "workload.utilization=0.5,0.85,0.95"]
    for jobs in ("1", "2"):
        agewell("sweep", log_experiment, *axes, "--out", jobs, "--jobs", jobs, "--quiet")
    tables = [(tmp_path / jobs / "sweep.parquet").read_bytes() for jobs in ("1", "2")]
    assert tables[0] == tables[1]
    rows = pq.read_table(tmp_path / "1" / "sweep.parquet").to_pylist()
    assert len(rows) == 12
    for row in rows:
        assert row["metrics.overall_write_cost"] > 1
    # More live data on the disk is dearer to clean.
    cleaning = [row["metrics.cleaner_cost"] for row in rows if row["layout.collect"] == "clean"]
    assert cleaning == sorted(cleaning)


def test_a_sweep_shows_costs_on_the_terminal(
    agewell: Agewell, log_experiment: Path, tmp_path: Path
) -> None:
    done = agewell(
        *("sweep", log_experiment, "--over", "layout.victim=greedy,fifo"),
        *("--out", "sweep", "--quiet"),
    )
    assert "overall write cost" in done.stdout.splitlines()[0]
    assert "mean service time" not in done.stdout


def test_a_result_runs_again_from_its_own_record(
    agewell: Agewell, log_experiment: Path, tmp_path: Path
) -> None:
    agewell("run", log_experiment, "--out", "first", "--quiet", "--set", "run.seed=11")
    log_experiment.unlink()
    agewell("run", "first", "--out", "second", "--quiet")
    assert read(tmp_path / "first") == read(tmp_path / "second")


def test_another_seed_gives_another_result() -> None:
    first, second = (api.run(changed(run={"seed": seed})) for seed in (1, 2))
    assert first.metrics["cleaned_blocks"] != second.metrics["cleaned_blocks"]


# --- what is measured -----------------------------------------------------------------------------


@pytest.mark.parametrize("collect", MECHANISMS)
def test_costs_add_up(collect: str) -> None:
    result = api.run(changed(layout={"collect": collect}))
    metrics, series = result.metrics, result.series
    ideal_seconds = metrics["new_blocks"] * 8192 / 5e6
    spent_seconds = sum(metrics[name] for name in log_charts.PURPOSES)
    assert metrics["overall_write_cost"] == pytest.approx(spent_seconds / ideal_seconds)
    parts = metrics["new_data_cost"] + metrics["cleaner_cost"]
    assert metrics["overall_write_cost"] == pytest.approx(parts)
    assert metrics["user_blocks"] == 40_000 == metrics["new_blocks"] + metrics["absorbed_blocks"]
    # The rows are whole intervals; what is left at the end is less than one.
    counted = sum(series["new_blocks"].to_pylist())
    assert 0 <= metrics["new_blocks"] - counted < 4000 // 16 + 8
    assert sum(series["cleaned_blocks"].to_pylist()) <= metrics["cleaned_blocks"]
    assert result.histograms.num_rows == 0
    assert result.histograms.column_names == ["lane", "quantity", "day", "upper", "count"]


def test_every_metric_is_described_and_documented() -> None:
    result = api.run(changed(run={"lower_bound": True}))
    page = (REPOSITORY / "docs" / "reference" / "metrics.md").read_text()
    described = {metric.name for metric in METRICS}
    assert set(result.metrics) - described == set()
    assert [name for name in result.metrics if f"`{name}`" not in page] == []


KINDS: dict[str, dict[str, Any]] = {
    "random-update": {"blocks": 4000},
    "hot-cold": {"blocks": 4000},
    "zipf": {"blocks": 4000},
    "sequential": {"blocks": 4000},
    "tpcb": {"transactions": 100},
    "microbenchmark": {"blocks": 4000},
    "multimedia": {"plays": 20},
    "software-development": {"cycles": 10},
    "transaction-processing": {"transactions": 1000},
    "decision-support": {"queries": 10},
    "scientific-simulation": {"experiments": 10},
    "long-term": {"runs": 200},
    "trace": {"path": str(REPOSITORY / "examples" / "traces" / "mail.parquet")},
    "file-trace": {
        "path": str(REPOSITORY / "examples" / "traces" / "decision-support-files.parquet"),
        "part": "q16",
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_and_default_is_documented(kind: str) -> None:
    tables = changed()
    tables["workload"] = {"kind": kind, "utilization": 0.6, **KINDS[kind]}
    config = api.run(tables).config
    page = (REPOSITORY / "docs" / "reference" / "configuration.md").read_text()
    documented = set(re.findall(r"`([a-z_]+)`", page))
    keys = {key for entries in config.values() for key in entries}
    assert keys - documented == set()


def test_the_lower_bound_is_below() -> None:
    metrics = api.run(changed(run={"lower_bound": True})).metrics
    assert metrics["lower_bound_write_amplification"] < metrics["write_amplification"]
    assert metrics["lower_bound_overall_write_cost"] < metrics["overall_write_cost"]


def test_idle_cleaning_hides_time() -> None:
    # A block every 100 ms leaves the disk idle most of the time.
    workload = {"interval": "100 ms"}
    busy = api.run(changed(workload=workload)).metrics
    idle = api.run(
        changed(workload=workload, host={"idle_cleaning": "clean", "idle_after": "10 ms"})
    ).metrics
    assert busy["hidden_seconds"] == 0
    assert busy["foreground_write_cost"] == busy["overall_write_cost"]
    assert idle["hidden_seconds"] > 0
    assert idle["foreground_write_cost"] < 0.8 * busy["foreground_write_cost"]
    # What is hidden is spent all the same.
    assert idle["overall_write_cost"] > idle["foreground_write_cost"]


@pytest.mark.parametrize("eviction", ["lru", "fifo", "arc", "sieve", "s3-fifo"])
def test_caches_give_hits(eviction: str) -> None:
    tables = changed()
    tables["workload"] = {
        "kind": "tpcb",
        "utilization": 0.7,
        "transactions": 2000,
        "accounts": 20000,
        "account_blocks": 2000,
        "cache_blocks": 50,
    }
    tables["host"] = {"client_cache": "0 B", "server_cache": "0 B", "eviction": eviction}
    without = api.run(tables).metrics
    tables["host"] |= {"client_cache": "1 MB", "server_cache": "8 MB"}
    cached = api.run(tables).metrics
    assert without["client_cache_hit_fraction"] == 0
    assert without["server_cache_hit_fraction"] == 0
    assert cached["client_cache_hit_fraction"] > 0
    assert cached["server_cache_hit_fraction"] > 0
    assert cached["disk_reads"] < without["disk_reads"]
    assert cached["read_blocks"] == without["read_blocks"]


def test_a_drive_of_the_catalogue_times_the_log() -> None:
    tables = changed()
    tables["device"] = {"model": "hp-97560"}
    result = api.run(tables)
    assert [entry["name"] for entry in result.document["inputs"]] == ["hp-97560"]
    assert 1 < result.document["disk_estimate"]["access_ms"] < 40
    assert result.metrics["overall_write_cost"] > 1


def test_what_a_small_run_prints(
    agewell: Agewell, log_experiment: Path, snapshot: Callable[[str, str], None]
) -> None:
    snapshot("run-log.txt", agewell("run", log_experiment, "--quiet").stdout)


# --- what is refused ------------------------------------------------------------------------------

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "full": ({"workload": {"utilization": 1.0}}, "[workload]: utilization"),
    "empty": ({"workload": {"utilization": 0}}, "[workload]: utilization"),
    "no-blocks": ({"workload": {"blocks": 0}}, "[workload]: blocks: must be at least 1"),
    "large-segment": ({"layout": {"segment_size": "1 GiB"}}, "a log needs two or more"),
    "ragged-segment": ({"layout": {"segment_size": "100 KiB"}}, "whole blocks"),
    "ragged-block": ({"layout": {"block_size": "1000 B"}}, "[layout]: block_size"),
    "victim": ({"layout": {"victim": "greedly"}}, "did you mean 'greedy'?"),
    "key": ({"layout": {"victm": "greedy"}}, "unknown key 'victm'; did you mean 'victim'?"),
    "key-of-kind": ({"workload": {"alpha": 1.0}}, "unknown key 'alpha'"),
    "remap": ({"remap": {"kind": "none"}}, "unknown key 'remap'"),
    "queue": ({"queue": {"discipline": "fcfs"}}, "unknown key 'queue'"),
    "oracle": ({"layout": {"placement": "oracle", "collect": "adaptive"}}, "placement: an oracle"),
    "two-disks": ({"device": {"access_time": "15 ms"}}, "[device]: access_time: say either"),
    "no-speed": ({"device": {"bandwidth": "0 B/s"}}, "[device]: bandwidth"),
    "two-sizes": ({"layout": {"collected_segment_size": "1 MiB"}}, "user-collected"),
    "nearly-full": ({"workload": {"utilization": 0.999}}, "4000 live blocks do not fit"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_configurations_are_one_line_and_leave_nothing(
    agewell: Agewell, tmp_path: Path, name: str
) -> None:
    settings, reason = BAD[name]
    refused(agewell, tmp_path, changed(**settings), reason)


def test_live_data_that_does_not_fit_a_drive_is_refused(agewell: Agewell, tmp_path: Path) -> None:
    tables = changed(workload={"blocks": 400_000})
    tables["device"] = {"model": "hp-97560"}
    refused(agewell, tmp_path, tables, "sectors, the device has 2684016")


@pytest.mark.parametrize("table", ["workload", "device"])
def test_a_missing_table_is_named(agewell: Agewell, tmp_path: Path, table: str) -> None:
    tables = changed()
    del tables[table]
    refused(agewell, tmp_path, tables, f"experiment: table [{table}] is missing")


def refused(agewell: Agewell, folder: Path, tables: dict[str, Any], reason: str) -> None:
    """Hold that an experiment is refused: one line, exit 2, and no file."""
    lines = []
    for table, entries in tables.items():
        lines += [f"[{table}]", *(f"{key} = {json.dumps(entries[key])}" for key in entries)]
    (folder / "bad.toml").write_text("\n".join(lines))
    done = agewell("run", "bad.toml", "--out", "out", "--quiet", check=False)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / "bad.toml"]
    with pytest.raises(api.InputError):
        api.run(tables)


@pytest.mark.parametrize("collect", MECHANISMS)
@pytest.mark.parametrize("placement", ["none", "sepbit"])
@pytest.mark.parametrize("segment_size", ["8 KiB", "32 KiB"])
def test_a_log_with_hardly_any_room_ends(collect: str, placement: str, segment_size: str) -> None:
    # Between the first utilization that is refused and one that has room lie those where a log may
    # find out only on the way that it cannot go on.
    blocks_per_segment = int(segment_size.split(maxsplit=1)[0]) // 8
    ended: list[int | str] = []
    for free_segments in range(1, 16):
        utilization = 400 / (400 + free_segments * blocks_per_segment)
        layout = {"collect": collect, "placement": placement, "segment_size": segment_size}
        workload = {"blocks": 400, "utilization": utilization}
        try:
            user_blocks = api.run(changed(workload=workload, layout=layout)).metrics["user_blocks"]
        except api.AgewellError as error:
            ended.append(str(error))
        else:
            ended.append(user_blocks)
    assert isinstance(ended[0], str)
    assert ended[-1] == 4000
    assert all(each == 4000 or "\n" not in str(each) for each in ended)


def test_a_log_at_99_9_per_cent_of_a_tiny_disk_ends_with_an_error(
    agewell: Agewell, log_experiment: Path
) -> None:
    done = agewell(
        *("run", log_experiment, "--quiet", "--set", "workload.blocks=400"),
        *("--set", "workload.utilization=0.999", "--set", "layout.segment_size=8 KiB"),
        check=False,
    )
    assert done.returncode == 2
    assert "400 live blocks do not fit into 401 blocks" in done.stderr
    assert "lower the utilization" in done.stderr


# --- reports --------------------------------------------------------------------------------------


def test_a_report_on_one_run(agewell: Agewell, log_experiment: Path, tmp_path: Path) -> None:
    agewell("run", log_experiment, "--out", "run", "--quiet", "--set", "layout.collect=adaptive")
    agewell("report", "run", "--out", "report.html", "--quiet")
    page = page_of([Result.read(tmp_path / "run")], ["run"])
    assert page.title == "random-update load on a simple disk"
    result = page.sections[0]
    assert [each.label for each in result.highlights] == [
        "overall write cost",
        "of it, new data",
        "of it, collection",
        "write amplification",
        "room was made by",
    ]
    assert [plot.name for plot in result.plots] == ["write-cost", "disk-time"]
    text = (tmp_path / "report.html").read_text()
    assert "random-update load" in text
    assert "segment_size = &#34;65536 B&#34;" in text
    assert (tmp_path / "plots" / "disk-time.png").stat().st_size > 5000


def test_the_stack_of_disk_time_is_all_of_it() -> None:
    result = api.run(changed())
    plot = log_charts.purposes_plot("disk-time", [result], [""])
    assert sum(curve.y[0] for curve in plot.curves) == pytest.approx(
        result.metrics["disk_seconds"] - result.metrics["read_seconds"]
    )


def test_the_curve_of_costs_is_in_the_colour_of_the_mechanism(tmp_path: Path) -> None:
    result = api.run(changed(layout={"collect": "adaptive"}))
    (plot,) = [each for each in log_charts.plots_of(result, "") if each.name == "write-cost"]
    used = list(dict.fromkeys(result.series["mechanism"].to_pylist()))
    assert len(plot.curves) == 1 + len(used)
    # Every interval is drawn once, and the last one again so that its step has an end.
    drawn = sum(1 for curve in plot.curves[1:] for y in curve.y if y == y)  # noqa: PLR0124
    assert drawn == result.series.num_rows + 1


def test_runs_are_compared_side_by_side(agewell: Agewell, log_experiment: Path) -> None:
    for collect in ("clean", "thread"):
        agewell(
            *("run", log_experiment, "--set", f"layout.collect={collect}"),
            *("--out", collect, "--quiet"),
        )
    done = agewell("report", "clean", "thread", "--out", "report.html", "--quiet")
    verdict, headings = done.stdout.splitlines()[:2]
    assert re.fullmatch(
        r"thread takes [\d.]+ s of disk time, clean [\d.]+: [+-][\d.]+ %\.", verdict
    )
    assert "change against the first" in headings
    document = json.loads(
        agewell("report", "clean", "thread", "--out", "r.html", "--quiet", "--json").stdout
    )
    assert [run["name"] for run in document["runs"]] == ["clean", "thread"]
    names = {Path(path).stem for path in document["plots"]}
    assert {"overview-write-cost", "overview-disk-time", "overview-costs"} <= names
    assert {"clean-write-cost", "thread-disk-time"} <= names


def test_a_log_and_a_trace_stand_in_one_report(experiment: Path) -> None:
    results = [api.run(changed()), api.run(experiment)]
    page = page_of(results, ["log", "requests"])
    assert [section.identifier for section in page.sections] == [
        "overview",
        "run-log",
        "run-requests",
    ]
    columns, rows = comparison(results, ["log", "requests"])
    assert all(len(row) == len(columns) for row in rows)
