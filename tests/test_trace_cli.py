"""`agewell trace` as a user meets it: what it prints, what it writes, how it refuses."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agewell.cli import main

Agewell = Callable[..., "subprocess.CompletedProcess[str]"]
Snapshot = Callable[[str, str], None]
BAD_INPUT = 2


@pytest.fixture
def agewell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Agewell:
    """Run `agewell ARGUMENTS` in this process: the matrix of formats is too large for one each."""

    def run(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setitem(os.environ, "COLUMNS", "100")
        capfd.readouterr()
        with pytest.raises(SystemExit) as raised:
            main([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        status = raised.value.code
        assert isinstance(status, int)
        assert not check or status == 0, printed.err
        return subprocess.CompletedProcess(arguments, status, printed.out, printed.err)

    return run


MSR = """\
128166372003061629,hm,1,Read,383496192,32768,413
128166372016382155,hm,1,Write,310983680,4096,0
128166372016382100,hm,0,Read,0,512,1000
"""

TRACEPOINT = """\
# tracer: nop
 x-1 [000] ..... 1.5: block_rq_issue: 8,0 W 4096 () 100 + 8 [x]
 x-1 [000] ..... 1.6: block_rq_complete: 8,0 W () 100 + 8 [0]
"""


def _srt(version: int) -> bytes:
    if version == 4:
        header = b"$$TR_IOREC-1.3 (test)\ndisks = { 0 -> { sectorsize = 256 } };\n\x0c"
        words = [56, 0x40001, 1, 5, 100, 2100, 1024, 1810, 0x08000008, 4, 2, 0x1B, 0, 1]
    else:
        header = b"$$TR_IOREC-1.7 : test\n\x0c"
        words = [88, 0x70001, 1053281044, 5, 3, 7487, 4096, 0, 0x1F016000, 0, 0, 1]
        words += [0, 0, 5, 0, 0, 4096, 0, 0, 0, 0]
    return header + struct.pack(f">{len(words)}I", *words) * 3


def _blktrace(order: str) -> bytes:
    def record(time_ns: int, action: int) -> bytes:
        return struct.pack(
            f"{order}IIQQIIIIIHH", 0x65617407, 1, time_ns, 100, 4096, action, 7, 8 << 20, 0, 0, 0
        )

    write = 1 << 17
    return record(10, write | 1) + record(20, write | 7) + record(30, write | 8)


VALID: dict[str, tuple[str, bytes]] = {
    "srt-4": ("srt", _srt(4)),
    "srt-7": ("srt", _srt(7)),
    "blktrace-le": ("blktrace", _blktrace("<")),
    "blktrace-be": ("blktrace", _blktrace(">")),
    "blkparse": (
        "blkparse",
        b"  8,0 0 1 0.000001000 5 Q W 100 + 8 [x]\n  8,0 0 2 0.000002000 5 D W 100 + 8 [x]\n",
    ),
    "tracepoint": (
        "tracepoint",
        TRACEPOINT.encode(),
    ),
    "msr": ("msr", MSR.encode()),
    "spc": ("spc", b"0,20941264,8192,W,0.551706\n1,3436288,15872,r,1.011732\n"),
    "alibaba": (
        "alibaba",
        b"419,W,8792731648,16384,1577808144360767\n725,R,59110326272,4096,1577808144360813\n",
    ),
    "tencent": ("tencent", b"1538323200,12910952,128,0,1063\n1538323201,6338688,8,1,1627\n"),
    "vscsi-1": (
        "vscsi",
        struct.pack("<IIIHHQQ", 1, 512, 1, 0x2A, 0x100, 77, 1000) * 3,
    ),
    "vscsi-2": (
        "vscsi",
        struct.pack("<HHIIIQQQ", 0x28, 0x200, 1, 4096, 1, 77, 1000, 5) * 3,
    ),
    "mqsim": ("mqsim", b"938513000 4 264719034 16 0\n1075001000 3 340107914 16 1\n"),
    "disksim-ascii": ("disksim-ascii", b"5265.313 0 6357144 8 0\n5265.703 0 6307768 8 1\n"),
    "disksim-validate": (
        "disksim-validate",
        b"R Miss 564347 2 14095.370 13876.270\nW Hit 564349 2 1414.270 18746.770\n",
    ),
    "fio-2": ("fio-iolog", b"fio version 2 iolog\na add\na read 0 4096\na wait 10 0\na sync 0 0\n"),
    "fio-3": ("fio-iolog", b"fio version 3 iolog\n1 a add\n5 a read 0 4096\n"),
    "oracle-general": ("oracle-general", struct.pack("<IQIq", 5, 7, 4096, -1) * 4),
    "oracle-general-opns": (
        "oracle-general-opns",
        struct.pack("<IQIBHq", 5, 7, 4096, 1, 3, -1) * 4,
    ),
}


def _mangled(data: bytes, format_name: str) -> bytes:
    """The last record cut in two: half a line, or half a record."""
    if format_name.startswith(("srt", "blktrace", "vscsi", "oracle")):
        return data[:-9]
    lines = data.rstrip().split(b"\n")
    return b"\n".join([*lines[:-1], b"@@" + lines[-1][: len(lines[-1]) // 2], b""])


@pytest.fixture
def parquet(agewell: Agewell, tmp_path: Path) -> Path:
    """The MSR sample as Parquet."""
    (tmp_path / "hm.csv").write_text(MSR)
    agewell("trace", "convert", "hm.csv", "hm.parquet", "--quiet")
    return tmp_path / "hm.parquet"


@pytest.mark.parametrize("name", VALID)
def test_every_format_is_detected_and_converted(
    agewell: Agewell, tmp_path: Path, name: str
) -> None:
    """Detection finds the format by content alone, and the Parquet has as many rows."""
    format_name, data = VALID[name]
    (tmp_path / "input").write_bytes(data)
    document = json.loads(agewell("trace", "info", "input", "--json").stdout)
    assert document["format"] == format_name
    done = json.loads(agewell("trace", "convert", "input", "out.parquet", "--json").stdout)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.num_rows == done["requests_out"] == document["summary"]["requests"]


@pytest.mark.parametrize("name", [*VALID, "parquet"])
def test_a_mangled_input_is_one_line_and_writes_nothing(
    agewell: Agewell, tmp_path: Path, name: str
) -> None:
    """Exit status 2, one line that names the file and the record, nothing left in the folder."""
    if name == "parquet":
        (tmp_path / "hm.csv").write_text(MSR)
        agewell("trace", "convert", "hm.csv", "whole.parquet", "--quiet")
        data = (tmp_path / "whole.parquet").read_bytes()[:-9]
        (tmp_path / "hm.csv").unlink()
        (tmp_path / "whole.parquet").unlink()
        format_name = "parquet"
    else:
        format_name, whole = VALID[name]
        data = _mangled(whole, format_name)
    (tmp_path / "mangled").write_bytes(data)
    for options in ([], ["--format", format_name]):
        for to in ("parquet", "disksim-ascii", "fio-iolog-v2"):
            done = agewell(
                "trace", "convert", "mangled", "output", "--to", to, *options, "-q", check=False
            )
            assert done.returncode == BAD_INPUT, done.stderr
            assert done.stdout == ""
            assert len(done.stderr.splitlines()) == 1, done.stderr
            assert "mangled" in done.stderr
            assert "record" in done.stderr
            assert [path.name for path in tmp_path.iterdir()] == ["mangled"]


def test_skip_bad_counts_what_it_leaves_out(agewell: Agewell, tmp_path: Path) -> None:
    """The count is in the JSON and on standard error, with the first bad record."""
    (tmp_path / "hm.csv").write_text(MSR + "oops\n")
    done = agewell("trace", "info", "hm.csv", "--skip-bad", "--json")
    document = json.loads(done.stdout)
    assert document["metadata"]["skipped_records"] == 1
    assert document["summary"]["requests"] == MSR.count("\n")
    assert "1 bad records were left out" in done.stderr
    assert "record 4, line 4" in done.stderr


def test_info_prints_what_a_trace_holds(
    agewell: Agewell, tmp_path: Path, snapshot: Snapshot
) -> None:
    """The table for people, as accepted."""
    (tmp_path / "hm.csv").write_text(MSR)
    snapshot("trace-info.txt", agewell("trace", "info", "hm.csv").stdout)


def test_head_prints_requests(agewell: Agewell, tmp_path: Path, snapshot: Snapshot) -> None:
    """The table for people, as accepted; and JSON with nulls for unknown times."""
    (tmp_path / "hm.csv").write_text(MSR)
    snapshot("trace-head.txt", agewell("trace", "head", "hm.csv").stdout)
    shown = agewell("trace", "head", "hm.csv", "-n", "3", "--json").stdout
    records = json.loads(shown)["requests"]
    assert [record["finish_ns"] for record in records] == [41_300, 1_332_147_100, None]
    assert [record["operation"] for record in records] == ["read", "read", "write"]


def test_formats_lists_every_format(agewell: Agewell, snapshot: Snapshot) -> None:
    """The table for people, as accepted, and every format of the samples in it."""
    text = agewell("trace", "formats").stdout
    snapshot("trace-formats.txt", text)
    listed = json.loads(agewell("trace", "formats", "--json").stdout)
    known = {entry["name"] for entry in listed["formats"]}
    assert {format_name for format_name, _ in VALID.values()} <= known


def test_filter_composes_and_says_what_it_did(agewell: Agewell, tmp_path: Path) -> None:
    """Filters apply in order; the output says which."""
    (tmp_path / "hm.csv").write_text(MSR)
    arguments = ["--filter", "op=read", "--filter", "split=8 KiB", "--json"]
    done = json.loads(agewell("trace", "filter", "hm.csv", "out.parquet", *arguments).stdout)
    assert (done["requests_in"], done["requests_out"], done["split_requests"]) == (3, 5, 1)
    info = json.loads(agewell("trace", "info", "out.parquet", "--json").stdout)
    assert info["metadata"]["header"]["filters"] == "op=read; split=8 KiB"
    assert info["metadata"]["format"] == "msr"


def test_traces_flow_through_pipes(tmp_path: Path, agewell: Agewell, parquet: Path) -> None:
    """Standard input and output are both `-`; what comes out reads back."""
    ascii_trace = agewell("trace", "convert", parquet, "-", "--to", "disksim-ascii", "-q").stdout
    assert ascii_trace.splitlines()[0] == "0.000000 0 749016 64 1"
    (tmp_path / "hm.trace").write_text(ascii_trace)
    info = json.loads(agewell("trace", "info", "hm.trace", "--json").stdout)
    assert info["format"] == "disksim-ascii"


def test_merge_takes_several_traces(agewell: Agewell, tmp_path: Path) -> None:
    """Two copies of one trace, by their wall clocks."""
    (tmp_path / "a.csv").write_text(MSR)
    (tmp_path / "b.csv").write_text(MSR.replace("hm,", "web,"))
    done = json.loads(agewell("trace", "merge", "a.csv", "b.csv", "ab.parquet", "--json").stdout)
    assert done["requests_out"] == 2 * MSR.count("\n")
    info = json.loads(agewell("trace", "info", "ab.parquet", "--json").stdout)
    names = [device["name"] for device in info["metadata"]["devices"]]
    assert names == ["hm_1", "web_1", "hm_0", "web_0"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "absent.csv"], "absent.csv: cannot open"),
        (["info", "."], "is a directory"),
        (["info", "hm.csv", "--format", "msrr"], "did you mean 'msr'"),
        (["convert", "hm.csv", "out.xyz"], "does not tell the output format"),
        (["convert", "hm.csv", "-"], "say --to"),
        (["convert", "hm.csv", "hm.csv", "--to", "parquet"], "both input and output"),
        (["filter", "hm.csv", "out.parquet"], "no --filter"),
        (["filter", "hm.csv", "out.parquet", "-F", "oops=1"], "did you mean 'op'"),
        (["filter", "hm.csv", "out.parquet", "-F", "op=flush"], "none of the 3 requests"),
        (["merge", "hm.csv", "out.parquet"], "at least two traces"),
        (["convert", "hm.csv", "absent/out.parquet"], "absent/out.parquet: cannot create"),
    ],
)
def test_mistakes_are_one_line(
    agewell: Agewell, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """Exit status 2, one line, nothing written."""
    (tmp_path / "hm.csv").write_text(MSR)
    done = agewell("trace", *arguments, check=False)
    assert done.returncode == BAD_INPUT, done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["hm.csv"]
    assert (tmp_path / "hm.csv").read_text() == MSR


def test_two_conversions_are_alike_byte_for_byte(agewell: Agewell, tmp_path: Path) -> None:
    """The same input gives the same Parquet bytes."""
    rows = (
        f"{128166372003061629 + row * 10},hm,{row % 3},Write,{row * 512},512,{row}\n"
        for row in range(200_000)
    )
    (tmp_path / "hm.csv").write_text("".join(rows))
    outputs = ["one.parquet", "two.parquet"]
    for output in outputs:
        agewell("trace", "convert", "hm.csv", output, "-q")
    one, two = ((tmp_path / output).read_bytes() for output in outputs)
    assert one == two
