"""`agewell results` and `agewell.results`: runs as tables that SQL can be asked of."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import agewell as api
from agewell.cli import EXIT_INTERRUPTED
from agewell.cli.results import EXAMPLES
from agewell.runs import found_runs, run_tables
from agewell.values.student_t import quantile, within
from conftest import COMMAND_SECONDS, Agewell, heed_interrupts, small_experiment
from findings import check_findings

RUNS_OF_A_SWEEP = 4


@pytest.fixture(scope="module")
def one_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two disciplines, two seeds: run once for all tests of a process."""
    folder = tmp_path_factory.mktemp("sweep")
    experiment = str(small_experiment(folder))
    command = [sys.executable, "-m", "agewell", "sweep", experiment, "--out", "swept"]
    axes = ["--over", "queue.discipline=fcfs,sstf", "--over", "run.seed=1,2"]
    subprocess.run([*command, *axes, "--quiet"], cwd=folder, check=True)
    return folder / "swept"


@pytest.fixture
def swept(one_sweep: Path, tmp_path: Path) -> Path:
    """The sweep, of which the test may change what it wants."""
    return Path(shutil.copytree(one_sweep, tmp_path / "swept"))


def fail(folder: Path, error: str = "the trace ends in a record") -> None:
    """A run that could not be made, as sweeps leave it."""
    folder.mkdir(parents=True)
    config = {"queue": {"discipline": "scan"}, "run": {"seed": 9}}
    document = {"schema_version": 1, "version": "0.1.0", "build": "0123456789abcdef"}
    (folder / "error.json").write_text(
        json.dumps({**document, "config": config, "error": error, "kind": "input"})
    )


def change(folder: Path, **values: float) -> None:
    """Set metrics in a result."""
    path = folder / "result.json"
    document = json.loads(path.read_text())
    document["metrics"] |= values
    path.write_text(json.dumps(document))


def rows(agewell: Agewell, query: str, *arguments: str | Path) -> list[list[Any]]:
    done = agewell("results", query, *arguments, "--json")
    answer: list[list[Any]] = json.loads(done.stdout)["rows"]
    return answer


def many(source: Path, folder: Path, count: int = run_tables.KEPT_RUNS_MIN) -> Path:
    """As many runs as it takes for what they say to be kept."""
    for number in range(count):
        shutil.copytree(source, folder / "runs" / f"{number:03}")
        change(folder / "runs" / f"{number:03}", disk_seconds=float(number))
    return folder


# --- what is there --------------------------------------------------------------------------------


def test_runs_of_any_command_are_rows(swept: Path, experiment: Path, tmp_path: Path) -> None:
    api.run(experiment, out=tmp_path / "alone")
    fail(swept / "runs" / "failed")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_text('{"metrics": 1')
    found = api.results(tmp_path)
    by_status: dict[str, list[dict[str, Any]]] = {}
    for row in found.runs.to_pylist():
        by_status.setdefault(row["status"], []).append(row)
    assert len(by_status["done"]) == RUNS_OF_A_SWEEP + 1
    [failed] = by_status["failed"]
    assert (failed["error"], failed["error_kind"]) == ("the trace ends in a record", "input")
    assert (failed["seed"], failed["key"]) == (9, "failed")
    [damaged] = by_status["damaged"]
    assert "not a record of agewell run" in damaged["error"]
    swept_rows = pq.read_table(swept / "sweep.parquet").to_pylist()
    times = {row["key"]: row["run_seconds"] for row in by_status["done"]}
    assert all(times[row["run"]] > 0 for row in swept_rows)
    for row in found.runs.to_pylist():
        assert Path(row["run"]).is_dir()


def test_metrics_are_those_of_the_sweeps_table(swept: Path) -> None:
    found = api.results(swept)
    keys = found.runs["key"].to_pylist()
    for row in pq.read_table(swept / "sweep.parquet").to_pylist():
        for name, values in found.metrics.items():
            assert values[keys.index(row["run"])] == row[f"metrics.{name}"]
    assert set(found.measured.column_names) == set(run_tables.METRIC_COLUMNS)
    assert list(found.runs.column_names) == list(run_tables.RUN_COLUMNS)
    units = dict(
        zip(found.measured["metric"].to_pylist(), found.measured["unit"].to_pylist(), strict=True)
    )
    assert units["mean_response_ms"] == "ms"
    assert units["disk_seconds"] == "s"
    assert units["read_mb_per_s"] == "MB/s"
    assert units["zero_seek_fraction"] == units["requests"] == ""


def test_replicates_share_an_identity(swept: Path) -> None:
    found = api.results(swept).runs.to_pylist()
    for row in found:
        same = [one for one in found if one["configuration_id"] == row["configuration_id"]]
        assert sorted(one["seed"] for one in same) == [1, 2]
    one = {"run": {"seed": 1, "a": 2}, "b": {"c": {"d": 3}}}
    assert found_runs.identity(one) == found_runs.identity({**one, "run": {"seed": 2, "a": 2}})
    assert found_runs.identity(one) != found_runs.identity({**one, "run": {"seed": 1, "a": 3}})
    assert found_runs.identity(one, ["b.c.d"]) == found_runs.identity(
        {**one, "b": {"c": {"d": 4}}}, ["b.c.d"]
    )
    assert one["b"] == {"c": {"d": 3}}, "left as it was"


def test_results_are_findings(swept: Path) -> None:
    check_findings(api.results(swept))


def test_a_folder_that_is_given_twice_is_read_once(swept: Path, experiment: Path) -> None:
    assert len(api.results(swept, swept / "runs", swept.parent).runs) == RUNS_OF_A_SWEEP
    api.run(experiment, out=swept.parent / "alone")
    assert api.results(swept.parent / "alone").runs["key"].to_pylist() == ["alone"]


def test_no_runs_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(api.InputError, match="no runs are below"):
        api.results(tmp_path)
    with pytest.raises(api.InputError, match="not a folder"):
        api.results(tmp_path / "absent")


def test_damage_of_any_kind_is_a_row(swept: Path) -> None:
    runs = sorted((swept / "runs").iterdir())
    whole = json.loads((runs[0] / "result.json").read_text())
    for number, text in enumerate(
        [
            *("", "[]", "3", '"text"', "[" * 100_000, "\xff", "{}"),
            *(json.dumps({**whole, name: 3}) for name in ("metrics", "config")),
            json.dumps({**whole, "metrics": {"requests": 10**400}}),
        ]
    ):
        (runs[0] / "result.json").write_text(text, "latin-1")
        found = api.results(swept).runs.to_pylist()
        bad = [row for row in found if row["status"] == "damaged"]
        assert len(bad) == 1, number
        assert str(runs[0]) in bad[0]["error"]
    (runs[0] / "result.json").write_text(json.dumps({**whole, "seed": "x", "kind": 3}))
    assert api.results(swept).runs["status"].to_pylist() == ["done"] * RUNS_OF_A_SWEEP


OF_DAYS = "SELECT count(*) FROM range(1000000000) a, range(1000000) b WHERE a.range % 7 = b.range"
"""A query; how soon it ends is no matter of a test, but it is not after days."""


def test_a_query_ends_when_it_is_interrupted(swept: Path) -> None:
    code = (
        "import sys\n"
        "from agewell import cli\n"
        "from agewell.runs import results\n"
        "asked = results._asked\n"
        "def announced(connection, query):\n"
        "    print('asking', flush=True)\n"
        "    return asked(connection, query)\n"
        "results._asked = announced\n"
        "cli.main(['results', *sys.argv[1:]])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, OF_DAYS, str(swept)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=COMMAND_SECONDS)
    assert process.returncode == EXIT_INTERRUPTED, error
    assert error == "agewell: error: interrupted\n"


def test_nobody_asks_any_more_when_there_is_an_answer(
    swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python that ends while a database is at work complains of what it has left, or aborts."""

    class Lingering(threading.Thread):
        def run(self) -> None:
            super().run()
            time.sleep(0.2)

    monkeypatch.setattr(threading, "Thread", Lingering)
    assert len(api.results(swept).sql("FROM metrics")) > 0
    assert [thread.name for thread in threading.enumerate() if thread.name == "query"] == []


def test_nobody_asks_any_more_when_the_start_was_interrupted(
    swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt comes when the thread runs, and before it is known by a number."""

    class Interrupted(threading.Thread):
        begun = math.inf

        @property
        def ident(self) -> int | None:
            return super().ident if time.monotonic() > self.begun + 0.2 else None

        def start(self) -> None:
            self.begun = time.monotonic()
            super().start()
            raise KeyboardInterrupt

    found = api.results(swept)
    monkeypatch.setattr(threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.sql(OF_DAYS)
    assert [thread.name for thread in threading.enumerate() if thread.name == "query"] == []


# --- what is kept ---------------------------------------------------------------------------------


def test_asking_loads_no_pandas(swept: Path, tmp_path: Path) -> None:
    """Arrow loads it for a column out of a list, which takes longer than to read 2,000 runs."""
    folder = many(next((swept / "runs").iterdir()), tmp_path / "many")
    code = (
        "import sys, agewell\n"
        "for _ in 'ab':\n"
        f"    print(len(agewell.results({str(folder)!r}).sql('FROM metrics')))\n"
        "sys.exit('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, again = done.stdout.split()
    assert first == again


def test_what_is_kept_is_never_the_truth(swept: Path, tmp_path: Path) -> None:
    """Changed, removed, new and failed runs are seen; the kept file has one set of bytes."""
    source = next((swept / "runs").iterdir())
    folder = many(source, tmp_path / "many")
    kept = folder / "results.parquet"

    def ask() -> dict[str, Any]:
        found = api.results(folder)
        at = [row for row in found.measured.to_pylist() if row["metric"] == "disk_seconds"]
        values = {Path(row["run"]).name: row["value"] for row in at}
        status = dict(
            zip(found.runs["key"].to_pylist(), found.runs["status"].to_pylist(), strict=True)
        )
        return {key: values.get(key, one) for key, one in status.items()}

    def check() -> None:
        before = ask()
        content = kept.read_bytes()
        assert ask() == before
        assert kept.read_bytes() == content
        kept.unlink()
        assert ask() == before
        assert kept.read_bytes() == content

    assert ask() == {f"{number:03}": float(number) for number in range(run_tables.KEPT_RUNS_MIN)}
    check()
    change(folder / "runs" / "007", disk_seconds=1234.0)
    shutil.copytree(source, folder / "runs" / "new")
    change(folder / "runs" / "new", disk_seconds=4321.0)
    fail(folder / "runs" / "000-failed")
    changed = ask()
    assert (changed["007"], changed["new"], changed["000-failed"]) == (1234.0, 4321.0, "failed")
    check()
    shutil.rmtree(folder / "runs" / "009")
    assert "009" not in ask()
    check()


def test_what_is_kept_is_used_while_it_holds(
    swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = many(next((swept / "runs").iterdir()), tmp_path / "many")
    first = api.results(folder)
    reads: list[str] = []

    def read(searched: Path, place: found_runs.Place) -> found_runs.FoundRun:
        reads.append(place.path)
        return found_runs.read(searched, place)

    monkeypatch.setattr(run_tables, "read", read)
    again = api.results(folder)
    assert (again.runs, again.measured, reads) == (first.runs, first.measured, [])
    change(folder / "runs" / "003", disk_seconds=9.0)
    api.results(folder)
    assert len(reads) == run_tables.KEPT_RUNS_MIN


@pytest.mark.parametrize("what", ["flipped", "shorter", "other", "folder"])
def test_a_kept_file_that_is_damaged_is_made_again(what: str, swept: Path, tmp_path: Path) -> None:
    folder = many(next((swept / "runs").iterdir()), tmp_path / "many")
    first = api.results(folder)
    kept = folder / "results.parquet"
    whole = kept.read_bytes()
    content = bytearray(whole)
    if what == "flipped":
        content[len(content) // 3] ^= 1
        kept.write_bytes(content)
    elif what == "shorter":
        kept.write_bytes(content[:-7])
    elif what == "other":
        pq.write_table(pa.table({"path": ["a"]}), kept)
    else:
        kept.unlink()
        kept.mkdir()
    assert api.results(folder).runs == first.runs
    if what != "folder":
        assert kept.read_bytes() == whole
        assert api.results(folder).measured == first.measured


def test_few_runs_leave_nothing_behind(swept: Path) -> None:
    before = sorted(path.name for path in swept.iterdir())
    api.results(swept)
    assert sorted(path.name for path in swept.iterdir()) == before


# --- the command ----------------------------------------------------------------------------------


def test_what_can_be_asked_is_listed_without_a_query(agewell: Agewell) -> None:
    text = agewell("results").stdout
    for columns in run_tables.VIEWS.values():
        assert [name for name in columns if name not in text] == []
    assert all(example in text for example in EXAMPLES)
    listed = json.loads(agewell("results", "--json").stdout)
    assert list(listed["views"]) == ["runs", "metrics", "series"]


def test_without_duckdb_one_line_says_so(swept: Path, agewell: Agewell, tmp_path: Path) -> None:
    (tmp_path / "without" / "duckdb").mkdir(parents=True)
    (tmp_path / "without" / "duckdb" / "__init__.py").write_text("raise ImportError('absent')")
    path = os.pathsep.join([str(tmp_path / "without"), *sys.path])
    done = agewell("results", "FROM runs", swept, check=False, PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr == (
        "agewell: error: queries need DuckDB, which is not installed: "
        "pip install 'agewell[duckdb]'\n"
    )


@pytest.fixture
def duckdb() -> None:
    pytest.importorskip("duckdb")


@pytest.mark.usefixtures("duckdb")
class TestQueries:
    def test_the_examples_are_answered(self, swept: Path, agewell: Agewell) -> None:
        fail(swept / "runs" / "failed")
        first, second, third = (rows(agewell, example, swept) for example in EXAMPLES)
        values = [value for _, value in first]
        assert values == sorted(values)
        assert len(values) == RUNS_OF_A_SWEEP
        table = pq.read_table(swept / "sweep.parquet").to_pylist()
        for discipline, response_ms in second:
            those = [
                row["metrics.mean_response_ms"]
                for row in table
                if row["queue.discipline"] == discipline
            ]
            assert response_ms == pytest.approx(sum(those) / 2, rel=1e-12)
        assert third == [["failed", "the trace ends in a record"]]

    def test_series_are_those_that_the_runs_left(self, swept: Path, agewell: Agewell) -> None:
        found = rows(agewell, "SELECT run, requests FROM series", swept)
        left = [
            [str(folder), requests]
            for folder in sorted((swept / "runs").iterdir())
            for requests in pq.read_table(folder / "series.parquet")["requests"].to_pylist()
        ]
        assert found == left

    def test_series_of_other_kinds_lie_side_by_side(self, swept: Path, agewell: Agewell) -> None:
        other = pa.table({"interval": [0.5], "written": [3]})
        pq.write_table(other, next((swept / "runs").iterdir()) / "throughput.parquet")
        [[count]] = rows(agewell, "SELECT count(*) FROM series WHERE written = 3", swept)
        assert count == 1

    @pytest.mark.parametrize(
        ("query", "says"),
        [
            ("SELEC", "Parser Error"),
            ("SELECT nothing FROM runs", 'Referenced column "nothing" not found'),
            ("SELECT * FROM absent", "absent does not exist"),
            ("COPY runs TO 'stolen.csv'", "disabled by configuration"),
            ("ATTACH 'stolen.db'", "disabled by configuration"),
            ("INSTALL httpfs", "disabled by configuration"),
            ("SELECT * FROM read_csv('experiment.toml')", "disabled by configuration"),
            ("SET enable_external_access = true", "locked"),
            ("SELECT * FROM query", "query does not exist"),
            ("SELECT 1 / 0; SELECT CAST('x' AS INT)", "Could not convert"),
            ("", "gives no rows"),
            ("swept", "a folder, where the query should be"),
        ],
    )
    def test_a_query_that_cannot_be_answered_is_one_line(
        self, query: str, says: str, swept: Path, agewell: Agewell, tmp_path: Path
    ) -> None:
        before = sorted(tmp_path.rglob("*"))
        done = agewell("results", query, swept, check=False)
        assert done.returncode == 2
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
        assert "LINE" not in done.stderr
        assert sorted(tmp_path.rglob("*")) == before

    def test_every_form_says_the_same(self, swept: Path, agewell: Agewell, tmp_path: Path) -> None:
        query = "SELECT run, seed, value, made FROM runs JOIN metrics USING (run) ORDER BY ALL"
        answer = rows(agewell, query, swept)
        text = agewell("results", query, swept, "--csv").stdout
        heading, *lines = csv.reader(io.StringIO(text))
        assert heading == ["run", "seed", "value", "made"]
        assert [[run, int(seed), float(value), made] for run, seed, value, made in lines] == answer
        for suffix in ("csv", "json", "parquet"):
            agewell("results", query, swept, "--out", f"rows.{suffix}")
        assert (tmp_path / "rows.csv").read_text() == text
        assert json.loads((tmp_path / "rows.json").read_text())["rows"] == answer
        table = pq.read_table(tmp_path / "rows.parquet")
        assert table["value"].to_pylist() == [row[2] for row in answer]
        shown = agewell("results", query, swept).stdout.splitlines()
        assert len(shown) == 1 + len(answer)

    def test_values_that_json_lacks_become_ones_that_it_has(
        self, swept: Path, agewell: Agewell
    ) -> None:
        query = (
            "SELECT 'nan'::DOUBLE AS a, 10::HUGEINT AS b, 1.5::DECIMAL(4, 1) AS c, [1, 2] AS d, "
            "{'x': DATE '2026-01-02'} AS e, '\\x01'::BLOB AS f, INTERVAL 1 DAY AS g, NULL AS h"
        )
        [values] = rows(agewell, query, swept)
        assert values[:6] == [None, 10, 1.5, [1, 2], {"x": "2026-01-02"}, "01"]
        assert values[7] is None
        agewell("results", query, swept)
        agewell("results", query, swept, "--csv")
        done = agewell("results", query, swept, "--out", "rows.parquet", check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)

    def test_forms_that_are_unknown_are_refused(self, agewell: Agewell, tmp_path: Path) -> None:
        done = agewell("results", "FROM runs", "--out", "rows.xlsx", check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        done = agewell("results", "FROM runs", "--csv", "--json", check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert list(tmp_path.iterdir()) == []

    def test_python_asks_the_same(self, swept: Path) -> None:
        answer = api.results(swept).sql("SELECT count(*) AS runs FROM runs")
        assert answer.to_pylist() == [{"runs": RUNS_OF_A_SWEEP}]
        with pytest.raises(api.InputError, match="cannot be answered"):
            api.results(swept).sql("SELEC")


# --- intervals ------------------------------------------------------------------------------------


def test_students_t_is_that_of_the_tables() -> None:
    """Table 26.10 of Abramowitz and Stegun."""
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 10: 2.228, 30: 2.042, 120: 1.980}
    for freedom, expected in table.items():
        assert quantile(freedom) == pytest.approx(expected, abs=5e-4)
        assert within(quantile(freedom, 0.99), freedom) == pytest.approx(0.99, abs=1e-12)
