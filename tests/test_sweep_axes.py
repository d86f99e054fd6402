"""What varies in a sweep: lists of points, samples, and every combination of those with a grid."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agewell as api
from agewell.cli import main
from agewell.errors import InputError
from agewell.report import recognition
from agewell.runs.axes import axes_of
from agewell.runs.samples import parse_range
from conftest import Agewell

POINTS: list[dict[str, Any]] = [
    {"run.seed": 1, "queue.discipline": "sstf"},
    {"run.seed": 2, "queue.discipline": None},
    {"run.seed": 1, "queue.discipline": "sstf"},
]
CSV = "run.seed,queue.discipline\n1,sstf\n\n2, \n1,sstf\n"


def written(folder: Path, form: str) -> Path:
    """The points as a file."""
    path = folder / f"points.{form}"
    match form:
        case "csv":
            path.write_text("\ufeff" + CSV)  # as spreadsheets write it
        case "json":
            path.write_text(json.dumps(POINTS))
        case _:
            pq.write_table(pa.Table.from_pylist(POINTS), path)
    return path


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_of_points_says_what_a_list_does(tmp_path: Path, form: str) -> None:
    [listed] = axes_of(POINTS)
    assert axes_of(written(tmp_path, form)) == [listed]
    assert listed.names == ("run.seed", "queue.discipline")
    assert list(listed.points) == [(1, "sstf"), (2, None), (1, "sstf")]


def test_tables_in_memory_are_points_too() -> None:
    table = pa.Table.from_pylist(POINTS)
    assert axes_of(table) == axes_of(pd.DataFrame(POINTS)) == axes_of(POINTS)


def test_an_empty_cell_leaves_what_the_experiment_says(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    points = written(tmp_path, "csv")
    done = agewell("sweep", experiment, "--points", points, "--out", "swept", "--quiet")
    shown = [line.split()[:2] for line in done.stdout.splitlines()]
    assert shown == [["run.seed", "queue.discipline"], ["1", "sstf"], ["2", "-"], ["1", "sstf"]]
    rows = pq.read_table(tmp_path / "swept" / "sweep.parquet").to_pylist()
    assert [row["queue.discipline"] for row in rows] == ["sstf", None, "sstf"]
    alone = api.run(experiment, settings={"run.seed": 2})
    assert rows[1]["metrics.mean_response_ms"] == alone.metrics["mean_response_ms"]
    # One point that stands there twice is one run.
    assert len(list((tmp_path / "swept").glob("runs/*"))) == 2
    assert rows[0] == rows[2]


def test_every_combination_of_a_grid_and_points_and_a_sample(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    points, folder = written(tmp_path, "json"), tmp_path / "swept"

    def drawn(count: int, seed: int = 3) -> api.Sample:
        ranges = {"workload.rate_per_s": api.Range(10.0, 80.0, log=True)}
        return api.Sample(ranges, count, seed=seed)

    def swept(count: int, seed: int = 3) -> api.Sweep:
        return api.sweep(
            experiment,
            ({"workload.read_fraction": [0.1, 0.9]}, points, drawn(count, seed)),
            folder,
            settings={"workload.requests": 100},
        )

    table = swept(2).table()
    asked = [
        (fraction, point["run.seed"], point["queue.discipline"], rate)
        for fraction in (0.1, 0.9)
        for point in POINTS
        for (rate,) in drawn(2).points()
    ]
    names = table.column_names[:4]
    assert [tuple(row[name] for name in names) for row in table.to_pylist()] == asked
    described = json.loads((folder / "sweep.json").read_text())
    assert described["together"] == [["run.seed", "queue.discipline"], ["workload.rate_per_s"]]
    [sample] = described["samples"]
    assert (sample["seed"], sample["count"]) == (3, 2)
    # The command says the same, and finds all runs there.
    made = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/result.json")}
    whole = (folder / "sweep.parquet").read_bytes()
    words = ["sweep", experiment, "--over", "workload.read_fraction=0.1,0.9", "--points", points]
    words += ["--sample", "workload.rate_per_s=log 10.0..80.0", "--samples", "2", "--seed", "3"]
    agewell(*words, "--set", "workload.requests=100", "--out", folder, "--quiet")
    assert (folder / "sweep.parquet").read_bytes() == whole
    # More points keep the first; a folder with another sample is refused.
    assert len(swept(3).table()) == 18
    assert {path: path.stat().st_mtime_ns for path in made} == made
    with pytest.raises(InputError, match="holds another sweep"):
        swept(3, seed=4)
    titles = [plot.title for plot in recognition.parts_of([folder])[0].sections[0].plots]
    assert "Mean response time over workload.rate_per_s" in titles


@given(
    st.integers(-1000, 1000),
    st.integers(1, 1000),
    st.sampled_from([1, 2.5, 1e-9, 1e9]),
    st.sampled_from([None, 1, 0.5, 7]),
    st.booleans(),
    st.floats(0, 1, exclude_max=True),
)
def test_a_place_of_a_range_is_in_it(
    low: int, length: int, scale: float, step: float | None, log: bool, place: float
) -> None:
    ends = (low * scale, (low + length) * scale)
    step = None if step is None else step * scale
    if (log and low <= 0) or (step is not None and step > ends[1] - ends[0]):
        with pytest.raises(InputError):
            api.Range(*ends, log=log, step=step)
        return
    of = api.Range(*ends, log=log, step=step)
    value = of.at(place)
    assert not isinstance(value, str)
    assert of.low <= value <= of.high
    assert isinstance(value, int) == all(isinstance(each, int) for each in (*ends, step or 1))
    if step is not None:
        steps = (value - of.low) / step
        # As exact as it is rounded.
        assert abs(steps - round(steps)) <= (of.high - of.low) / step * 1e-5


def test_every_value_of_a_stepped_range_is_drawn_as_often() -> None:
    for of, values in (
        (api.Range(1, 4), [1, 2, 3, 4]),
        (api.Range(16, 64, step=16), [16, 32, 48, 64]),
        (api.Range(0.1, 0.4, step=0.1), [0.1, 0.2, 0.3, 0.4]),
    ):
        assert [of.at((place + 0.5) / 400) for place in range(400)] == [
            value for value in values for _ in range(100)
        ]


def test_doublings_are_drawn_as_often_from_a_logarithmic_range() -> None:
    of = api.Range(1.0, 16.0, log=True)
    values = [of.at((place + 0.5) / 400) for place in range(400)]
    counts = [sum(2**each <= value < 2 ** (each + 1) for value in values) for each in range(4)]
    assert counts == [100] * 4


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_the_same_seed_draws_the_same_points_and_more_begin_with_them(method: str) -> None:
    ranges: dict[str, Any] = {
        "a.whole": api.Range(1, 100),
        "a.share": api.Range(0.0, 1.0),
        "a.choice": ["x", "y", "z"],
    }
    first = api.Sample(ranges, 5, method, seed=1).points()
    assert api.Sample(ranges, 64, method, seed=1).points()[:5] == first
    assert api.Sample(ranges, 5, method, seed=2).points() != first
    # What they are must not change with a version of a library.
    recorded = {
        "random": [(52, 0.95046, "x"), (95, 0.31183, "y"), (83, 0.4092, "y")],
        "sobol": [(29, 0.16264, "y"), (95, 0.60489, "x"), (72, 0.37318, "z")],
    }
    assert first[:3] == recorded[method]


def test_a_sobol_sample_fills_each_axis_evenly() -> None:
    ranges = {name: api.Range(0.0, 1.0) for name in ("a.a", "a.b", "a.c")}
    points = api.Sample(ranges, 64, "sobol", seed=5).points()
    for column in zip(*points, strict=True):
        assert sorted(int(64 * value) for value in column) == list(range(64))


RANGES: dict[str, Any] = {
    "1..64": api.Range(1, 64),
    "0.5..0.9": api.Range(0.5, 0.9),
    "log 1e-3..1": api.Range(1e-3, 1, log=True),
    "-4..4 by 2": api.Range(-4, 4, step=2),
    "64 .. 1024 KiB": api.Range(64, 1024, unit="KiB"),
    "log 64KiB..1024KiB by 64 KiB": api.Range(64, 1024, log=True, unit="KiB", step=64),
    "5..20 MB/s": api.Range(5, 20, unit="MB/s"),
    "greedy,cost-age": ["greedy", "cost-age"],
    "64 KiB,1 MiB": ["64 KiB", "1 MiB"],
}


@pytest.mark.parametrize("text", RANGES)
def test_ranges_as_they_are_typed(text: str) -> None:
    assert parse_range(f"table.key={text}") == ("table.key", RANGES[text])
    if isinstance(RANGES[text], api.Range):
        assert parse_range(f"table.key={RANGES[text]}") == ("table.key", RANGES[text])


BAD_RANGES = {
    "9..1": "the lower end comes first",
    "1..1": "the lower end comes first",
    "log 0..1": "a logarithmic range begins above 0",
    "1..1e300": "its ends are at most 2^63",
    "1..9 by 10": "its step is above 0 and no longer than the range",
    "64 KiB..8 MiB": "one unit is for all, as in 64..8192 KiB",
    "0.5-0.9": "a range is LOW..HIGH",
    "1..": "a range is LOW..HIGH",
    "a,,b": "a value is missing between the commas",
    "a,a": "the value a stands there twice",
}


@pytest.mark.parametrize("text", BAD_RANGES)
def test_a_bad_range_is_one_line(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_range(f"table.key={text}")
    assert str(refused.value).startswith("--sample table.key")
    assert BAD_RANGES[text] in str(refused.value)


BAD_WORDS: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "at least one axis: --over table.key=v1,v2, --points or --sample"),
    "no-number": (["--sample", "run.seed=1..9"], "--sample needs --samples N"),
    "no-sample": (["--over", "run.seed=1", "--samples", "4"], "which is not given"),
    "twice-drawn": (
        ["--sample", "run.seed=1..9", "--sample", "run.seed=1..3", "--samples", "2"],
        "run.seed is drawn already",
    ),
    "two-ways": (
        ["--over", "run.seed=1", "--sample", "run.seed=1..3", "--samples", "2"],
        "run.seed varies in two ways",
    ),
    "no-key": (["--sample", "seed=1..3", "--samples", "2"], "expected table.key"),
    "no-file": (["--points", "none.csv"], "none.csv: cannot be read: No such file"),
    "unknown-form": (["--points", "points.txt"], "files named .csv, .json, .parquet"),
    "ragged": (["--points", "ragged.csv"], "ragged.csv:3: 1 values for 2 columns"),
    "no-names": (["--points", "names.csv"], "names.csv: setting 'seed': expected table.key"),
    "empty": (["--points", "empty.csv"], "empty.csv: there are no points in it"),
    "no-list": (["--points", "table.json"], "table.json: expected a list of points"),
    "no-rows": (["--points", "rows.json"], "rows.json, row 2: expected values by table.key"),
    "no-scheduler": (
        ["--over", "run.seed=1", "--executor", "local", "--scheduler", "tcp://127.0.0.1:9"],
        "a scheduler is of Dask",
    ),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_bad_axes_are_one_line_and_leave_nothing(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.txt").write_text(CSV)
    (tmp_path / "ragged.csv").write_text("run.seed,run.x\n1,2\n1\n")
    (tmp_path / "names.csv").write_text("seed\n1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "table.json").write_text("{}")
    (tmp_path / "rows.json").write_text('[{"run.seed": 1}, 2]')
    words, complaint = BAD_WORDS[name]
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(experiment), *words, "--out", "swept"])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert complaint in said
    assert said.count("\n") == 1
    assert not (tmp_path / "swept").exists()


@pytest.mark.parametrize(
    ("package", "method", "executor", "extra"),
    [("scipy.stats", "sobol", None, "samples"), ("distributed", "random", "dask", "dask")],
)
def test_what_is_not_installed_is_named(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    method: str,
    executor: str | None,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    drawn = api.Sample({"run.seed": api.Range(1, 9)}, 2, method)
    with pytest.raises(InputError, match=rf"pip install 'agewell\[{extra}\]'"):
        api.sweep(experiment, drawn, tmp_path / "swept", executor=executor)
    assert not (tmp_path / "swept").exists()


def test_values_that_no_experiment_has_are_named() -> None:
    with pytest.raises(InputError, match=r"the list of points, row 1: a\.b: nan is no value"):
        axes_of([{"a.b": float("nan")}])
    with pytest.raises(InputError, match=r"not int"):
        axes_of(3)
