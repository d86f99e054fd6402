"""`agewell compare`: the same question to every layout, what each cannot do, and the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import agewell as api
from agewell.advice.comparing import Cell, Comparison, Entry, geometric_mean
from agewell.errors import InputError
from agewell.experiments import choices
from agewell.experiments.choices import experiment_of
from agewell.experiments.configuration import Experiment
from agewell.experiments.layouts import LAYOUTS, NamedLayout, chosen, named
from agewell.report.charts.comparison import ratio_text
from agewell.runs.keyed_runs import KeyedRun
from conftest import REPOSITORY, Agewell

SMALL_LOAD = """\
[workload]
kind = "hot-cold"
utilization = 0.8
blocks = 3000
updates_per_block = 4

[host]
sync_every = 4

[layout]
kind = "lfs"
block_size = "4 KiB"

[device]
model = "nowhere.toml"
"""

ARGUMENTS = ("--workload", "load.toml", "--device", "simple:15ms:5MB/s", "--quiet")


@pytest.fixture
def small_load(tmp_path: Path) -> Path:
    """A small load, as a file whose layout and device do not count."""
    path = tmp_path / "load.toml"
    path.write_text(SMALL_LOAD)
    return path


# --- the runs -------------------------------------------------------------------------------------


def test_what_is_printed(
    agewell: Agewell, small_load: Path, snapshot: Callable[[str, str], None]
) -> None:
    layouts = ("--layouts", "lfs,lfs-matthews,sequential")
    done = agewell("compare", *ARGUMENTS, *layouts, "--utilization", "0.6,0.95")
    snapshot("compare.txt", done.stdout)


def test_json_holds_all_of_it_and_every_run_can_be_made_again(
    agewell: Agewell, small_load: Path, tmp_path: Path
) -> None:
    layouts = ("--layouts", "lfs,sequential")
    done = agewell("compare", *ARGUMENTS, *layouts, "--json", "--out", "out")
    document = json.loads(done.stdout)
    assert set(document) == {
        *("document", "schema_version", "agewell_version", "agewell_build", "layouts", "cells"),
        *("robustness", "verdict", "plots"),
    }
    (cell,) = document["cells"]
    # The file's own utilization is the only one.
    assert (cell["workload"], cell["utilization"]) == ("load", 0.8)
    least = min(row["disk_seconds"] for row in cell["layouts"])
    for row in cell["layouts"]:
        assert row["cannot"] is None
        assert row["ratio"] == row["disk_seconds"] / least
        again = api.run(tmp_path / "out" / row["run"])
        assert again.metrics["disk_seconds"] == row["disk_seconds"]
        # What the file says of the host and of the block counts; its layout and device do not.
        assert again.config["host"]["sync_every"] == 4
        assert again.config["layout"]["block_size"] == "4096 B"
        assert again.config["host"]["buffer_size"] == "262144 B"
    layouts_by_name = ["lfs", "sequential"]
    in_python = api.compare(
        layouts_by_name, [str(small_load)], ["simple:15ms:5MB/s"], tmp_path / "python"
    )
    stored = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert in_python.document == stored
    assert stored == {name: document[name] for name in document if name != "plots"}
    table = pq.read_table(tmp_path / "out" / "compare.parquet").to_pylist()
    assert [row["layout"] for row in table] == ["lfs", "sequential"]
    assert all((tmp_path / path).stat().st_size > 5000 for path in document["plots"])


def test_only_missing_runs_are_made_again_and_one_process_says_what_two_say(
    agewell: Agewell, small_load: Path, tmp_path: Path
) -> None:
    arguments = ("compare", *ARGUMENTS, "--layouts", "lfs,sequential")
    agewell(*arguments, "--out", "out", "--jobs", "1")
    names = ("compare.json", "compare.parquet", "compare.png", "compare.svg")
    before = {name: (tmp_path / "out" / name).read_bytes() for name in names}
    results = sorted((tmp_path / "out" / "runs").glob("*/result.json"))
    times = {path: path.stat().st_mtime_ns for path in results}
    gone = results[0]
    gone.unlink()
    agewell(*arguments, "--out", "out", "--jobs", "2")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in names} == before
    assert gone.stat().st_mtime_ns != times.pop(gone)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_a_trace_of_blocks_and_one_of_file_operations_are_distinguished() -> None:
    traces = REPOSITORY / "examples" / "traces"
    block = choices.workload(str(traces / "build.parquet"))
    assert block.tables["workload"]["kind"] == "trace"
    files = choices.workload(str(traces / "build-files.parquet"))
    assert files.tables["workload"]["kind"] == "file-trace"
    assert choices.workload("zipf").tables == {"workload": {"kind": "zipf"}}


def test_a_layout_that_does_not_fit_says_so_and_wins_nothing(
    agewell: Agewell, small_load: Path
) -> None:
    # Live data and a reserve of segments do not go into a disk that is so full; in place they do.
    layouts = ("--layouts", "lfs,sequential")
    done = agewell("compare", *ARGUMENTS, *layouts, "--utilization", "0.5,0.995", "--json")
    document = json.loads(done.stdout)
    roomy, full = document["cells"]
    assert [row["cannot"] for row in roomy["layouts"]] == [None, None]
    log, in_place = full["layouts"]
    assert "do not fit" in log["cannot"]
    assert log["ratio"] is None
    assert log["disk_seconds"] is None
    assert in_place["ratio"] == 1.0
    ranked = document["robustness"]
    assert [each["layout"] for each in ranked] == ["sequential", "lfs"]
    assert [each["done"] for each in ranked] == [2, 1]


# --- the arithmetic -------------------------------------------------------------------------------

STILL = NamedLayout("still", "", {})
SUPPLE = NamedLayout("supple", "", {}, is_adaptive=True)


def comparison(*rows: tuple[float | None, float | None]) -> Comparison:
    """A comparison of two layouts by their disk seconds, a row a cell."""

    def entry(layout: NamedLayout, seconds: float | None) -> Entry:
        run = KeyedRun(Experiment({}, Path()), "")
        if seconds is None:
            return Entry(layout=layout.name, run=run, document=None, cannot="does not fit")
        document = {"metrics": {"disk_seconds": seconds}}
        return Entry(layout=layout.name, run=run, document=document)

    cells = {
        Cell(f"load-{place}", "disk", 0.5): [entry(STILL, still), entry(SUPPLE, supple)]
        for place, (still, supple) in enumerate(rows)
    }
    return Comparison([STILL, SUPPLE], cells)


def test_robustness_is_the_worst_ratio_over_the_cells() -> None:
    supple, still = comparison((10.0, 12.0), (30.0, 10.0), (20.0, 20.1)).robustness()
    assert (supple.layout, supple.worst_ratio) == ("supple", 1.2)
    assert supple.worst_at == Cell("load-0", "disk", 0.5)
    assert (still.layout, still.worst_ratio) == ("still", 3.0)
    assert still.mean_ratio == pytest.approx(3.0 ** (1 / 3))
    # 20.1 is within 1 % of 20.
    assert (still.best_in, supple.best_in) == (2, 2)


def test_the_verdict_follows_the_numbers() -> None:
    (holds,) = comparison((10.0, 12.0), (30.0, 10.0)).verdict()
    assert holds == (
        "Matthews' thesis that adaptive layouts are the robust ones holds over all cells: "
        "supple is at worst 1.20 times the best (load-0 on disk, 50 % full); "
        "still is at worst 3.00 times the best (load-1 on disk, 50 % full), 150 % more."
    )
    (fails,) = comparison((10.0, 40.0), (30.0, 10.0)).verdict()
    assert "does not hold over all cells: still is at worst 3.00" in fails
    assert "33 % more" in fails
    (equal,) = comparison((10.0, 20.0), (20.1, 10.0)).verdict()
    assert "neither holds nor fails" in equal
    (alone,) = Comparison(
        [STILL], {cell: row[:1] for cell, row in comparison((1.0, 2.0)).cells.items()}
    ).verdict()
    assert "needs an adaptive layout" in alone


def test_what_a_layout_cannot_do_counts_against_it_but_in_no_ratio() -> None:
    compared = comparison((None, 10.0), (10.0, 30.0))
    supple, still = compared.robustness()
    assert (supple.layout, supple.done) == ("supple", 2)
    assert (still.worst_ratio, still.done, still.best_in) == (1.0, 1, 1)
    over_all, common = compared.verdict()
    assert "holds over all cells" in over_all
    assert "(load-1 on disk, 50 % full) and cannot do 1 of 2 cells" in over_all
    assert "does not hold in the cells that all could do" in common
    assert "(1 of 2)" in common


def test_who_can_do_more_cells_stands_first_and_nobodys_cells_do_not_count() -> None:
    compared = comparison((None, 10.0), (None, 20.0), (10.0, None), (None, None))
    supple, still = compared.robustness()
    assert (supple.layout, supple.done, supple.cells) == ("supple", 2, 3)
    assert (still.layout, still.done) == ("still", 1)


def test_means_and_ratios_as_written() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert [ratio_text(ratio) for ratio in (1.0, 9.994, 9.996, 99.96, math.inf)] == [
        *("1.00", "9.99", "10.0", "100", "inf")
    ]


# --- names and bad usage --------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_named_layout_runs(layout: NamedLayout) -> None:
    # Large enough for a log of whole zones, with room for what each keeps beside the data.
    is_zoned = layout.name == "lfs-zones"
    result = api.run(
        {
            "workload": {
                "kind": "hot-cold",
                "blocks": 150_000 if is_zoned else 3000,
                "updates_per_block": 1,
                "utilization": 0.4,
            },
            "layout": dict(layout.table),
            "device": {"model": "hgst-hsh721415ale6m0" if is_zoned else "hp-97560"},
            "run": {"lower_bound": False},
        }
    )
    assert result.metrics["disk_seconds"] > 0
    assert result.metrics["recovery_seconds"] >= 0


def test_a_report_of_layouts_side_by_side(
    agewell: Agewell, small_load: Path, tmp_path: Path
) -> None:
    agewell("compare", *ARGUMENTS, "--layouts", "lfs,sequential", "--out", "out")
    runs = sorted((tmp_path / "out" / "runs").iterdir())
    agewell("report", *runs, "-o", "report.html", "--quiet")
    page = (tmp_path / "report.html").read_text()
    assert "layout sequential" in page
    assert "a log of 256 KiB segments" in page


def test_layouts_are_chosen_by_name() -> None:
    assert chosen("all") == LAYOUTS
    assert [layout.name for layout in chosen("sequential, lfs")] == ["sequential", "lfs"]
    with pytest.raises(InputError, match="did you mean 'lfs-adaptive'"):
        named("lfs-adaptve")


def test_the_layouts_are_listed(agewell: Agewell) -> None:
    listed = json.loads(agewell("compare", "--list", "--json").stdout)
    assert [layout["name"] for layout in listed["layouts"]] == [layout.name for layout in LAYOUTS]
    assert "updated in place" in agewell("compare", "--list").stdout


BAD = {
    "no-workload": (["--workload", "zipff"], "zipff: no layout can do it: [workload]: kind"),
    "no-file": (["--workload", "absent.parquet"], "absent.parquet: no such file"),
    "twice": (["--workload", "zipf,zipf"], "'zipf' stands there twice"),
    "no-device": (["--device", "hp-97650"], "no device 'hp-97650' in the catalogue"),
    "one-number": (["--device", "simple:15ms"], "simple:15ms:5MB/s"),
    "no-layout": (["--layouts", "lsf"], "no layout is called 'lsf'; did you mean 'lfs'?"),
    "comma": (["--layouts", "lfs,"], "a name is missing between the commas"),
    "utilization": (["--utilization", "0.5,1.5"], "'1.5' is not a number between 0 and 1"),
    "layout-setting": (["--set", "layout.kind=lfs"], "layouts are compared as their names say"),
    "device-setting": (["--set", "device.model=x"], "say it with --utilization, --workload"),
    "host-setting": (["--set", "host.sync_evry=2"], "did you mean"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_usage_is_one_line(agewell: Agewell, small_load: Path, name: str) -> None:
    options, reason = BAD[name]
    done = agewell("compare", *ARGUMENTS, *options, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


@pytest.mark.parametrize("lacking", ["--workload", "--device"])
def test_what_is_needed_is_asked_for(agewell: Agewell, lacking: str) -> None:
    given = ["--device", "hp-97560"] if lacking == "--workload" else ["--workload", "zipf"]
    done = agewell("compare", *given, check=False)
    assert done.returncode == 2
    assert f"{lacking} is missing" in done.stderr


def test_a_segment_size_is_set_for_all_logs_that_name_none(small_load: Path) -> None:
    asked, disk = choices.workload(str(small_load)), choices.device("simple:15ms:5MB/s")
    sizes = {}
    for layout in LAYOUTS:
        settings = {"layout.segment_size": "1 MiB"}
        experiment = experiment_of(layout.table, asked, disk, 0.8, settings)
        sizes[layout.name] = experiment.configuration["layout"].get("segment_size")
    logs = {"lfs", "lfs-matthews", "lfs-adaptive", "lfs-reorganising"}
    assert {name for name, size in sizes.items() if size == "1 MiB"} == logs
    assert sizes["lfs-zones"] == "256 MiB"
