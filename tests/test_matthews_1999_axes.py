"""Chapter 4 of Matthews 1999: both ends of an axis differ in the axis alone, and the table is made
of what the runs measured.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from agewell.experiments.layouts import named
from agewell.files import catalogue
from agewell.studies.context import Context
from agewell.studies.matthews_1999 import axes
from agewell.studies.matthews_1999 import chapter_4_workloads as workloads
from agewell.studies.matthews_1999.chapter_4_workloads import AXES, BLOCK_BYTES, Axis, Script
from agewell.studies.study import Verdict

SMALL_FILES = 512


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of the study's data."""
    monkeypatch.setattr(workloads, "FILES", SMALL_FILES)
    monkeypatch.setattr(workloads, "BLOCKS", SMALL_FILES * workloads.FILE_BLOCKS)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A context of the study, its cache as small as the data of the tests."""
    folder = tmp_path / "matthews-1999"
    shutil.copytree(catalogue.experiments() / "matthews-1999" / "chapter-4", folder / "chapter-4")
    experiment = folder / "chapter-4" / "experiment.toml"
    text = experiment.read_text()
    assert '"32 MiB"' in text
    experiment.write_text(text.replace('"32 MiB"', '"4 MiB"'))
    out = tmp_path / "out"
    out.mkdir()
    return Context(folder, out, tmp_path, [], lambda _fraction, _words: None, jobs=2)


def transfers(script: Script) -> pa.Table:
    """The reads and writes of a script: operation, file, offset, length."""
    table = script.table()
    return table.filter(pc.is_in(table["operation"], pa.array([3, 4], pa.uint8())))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_both_ends_do_the_same_work(axis: Axis) -> None:
    first, second = axis.ends()
    assert first.label != second.label
    if axis.name != "lifetime":
        # What lives longer needs the room of what is not there else.
        assert first.first == second.first
    assert first.last - first.first == second.last - second.first > 0
    assert first.script.user_blocks == first.last
    for end in (first, second):
        table = transfers(end.script)
        moved = sum(table["length"].to_pylist()) // BLOCK_BYTES
        assert moved == end.script.user_blocks
        times = end.script.table()["time_ns"].to_pylist()
        assert times == sorted(times)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["write_order", "read_order", "read_as_written"])
def test_orders_differ_and_blocks_do_not(name: str) -> None:
    (axis,) = [axis for axis in AXES if axis.name == name]
    first, second = (transfers(end.script).to_pylist() for end in axis.ends())

    def rows(table: list[dict[str, int]]) -> list[tuple[int, ...]]:
        return [tuple(row[key] for key in ("operation", "file", "offset")) for row in table]

    assert rows(first) != rows(second)
    assert Counter(rows(first)) == Counter(rows(second))


@pytest.mark.usefixtures("small")
def test_locality_is_what_it_says() -> None:
    script = Script("locality")
    uses = Counter(script.accesses(50_000, local=True)).most_common()
    tenth = workloads.BLOCKS // 10
    assert sum(count for _, count in uses[:tenth]) == pytest.approx(45_000, rel=0.02)
    region = Script("region").accesses(50_000, local=True, scattered=False)
    assert sum(block < tenth for block in region) == pytest.approx(45_000, rel=0.02)
    assert sorted(script.permutation(1000)) == list(range(1000))


def test_a_script_is_the_same_everywhere(tmp_path: Path) -> None:
    # The first numbers of PCG64 seeded by the name, as NumPy's documentation promises them.
    assert [Script("a name").below(1000) for _ in range(3)] == [Script("a name").below(1000)] * 3
    first, second = (Script("a name") for _ in range(2))
    assert first.permutation(100) == second.permutation(100)
    assert first.permutation(100) != Script("another").permutation(100)


@pytest.mark.usefixtures("small")
def test_principal_rows_at_a_small_size(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [named("lfs"), named("sequential")]
    monkeypatch.setattr(axes, "LAYOUTS", chosen)
    names = {"write_order", "read_as_written", "commit", "rate"}
    monkeypatch.setattr(axes, "AXES", [axis for axis in AXES if axis.name in names])
    values: dict[str, float] = {}
    monkeypatch.setattr(
        axes, "result", lambda _context, _figure, found, _plots: values.update(found)
    )
    axes.chapter_4(context)
    assert set(values) >= {f"{name}/{layout.name}" for name in names for layout in chosen}
    assert values["write_order/lfs"] < 1.25 < values["write_order/sequential"]
    assert values["read_as_written/sequential"] < 0.8
    assert values["read_as_written/lfs"] > 1.25
    assert values["commit/lfs"] > 2
    assert values["rate/lfs"] > 1.1 > values["rate/sequential"]
    for path in (context.out / "traces").iterdir():
        assert pq.read_metadata(path).metadata[b"agewell.kind"] == b"file"


def test_every_axis_and_layout_has_a_row_with_a_claim_or_a_word(context: Context) -> None:
    rows = context.expected("chapter-4")["row"]
    assert [row["key"] for row in rows] == [
        f"{axis.name}/{layout.name}" for axis in AXES for layout in axes.LAYOUTS
    ]
    for row in rows:
        tests = {"at_most", "at_least", "below"} & set(row)
        # A claim has a test that can fail; where nothing is claimed there is none.
        assert len(tests) == ("paper" in row), row["key"]
        assert Verdict.DIFFERS.value not in row or tests
