"""`agewell workload` as a user meets it: what it prints, what it writes, how it refuses."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agewell.cli import main
from agewell.errors import InputError
from agewell.filesystems import workloads

Agewell = Callable[..., "subprocess.CompletedProcess[str]"]
BAD_INPUT = 2

LIST = """\
commit,unix_time,op,file_id,dir_id,depth,old_size,new_size
0,1000000000,A,0,0,0,0,5000
0,1000000000,A,1,1,1,0,200
1,1000086400,M,0,0,0,5000,7000
1,1000086400,D,1,1,1,200,0
"""
SMALL = [
    f"--set={setting}"
    for setting in (
        "days=30",
        "groups=4",
        "file_system_bytes=10485760",
        "file_operations=9000",
        "written_bytes=300000000",
        "files_at_end=200",
        "allocated_bytes_at_end=6291456",
        "recent_days=5",
        "recent_files=30",
        "recent_allocated_bytes=1048576",
        "utilization_path=[[0,10],[10,80]]",
        "directories=30",
        "active_directories=5",
        "bytes_max=1048576",
    )
]
"""A file system of ten megabytes: the same generator in a hundredth of the time."""


@pytest.fixture
def agewell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Agewell:
    """Run `agewell workload ARGUMENTS` in this process, in a folder of its own."""

    def run(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setitem(os.environ, "COLUMNS", "100")
        capfd.readouterr()
        with pytest.raises(SystemExit) as raised:
            main(["workload", *(str(argument) for argument in arguments)])
        printed = capfd.readouterr()
        status = raised.value.code
        assert isinstance(status, int)
        assert not check or status == 0, printed.err
        return subprocess.CompletedProcess(arguments, status, printed.out, printed.err)

    return run


def _git(repository: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", repository, *identity, *arguments], check=True)


def test_a_list_becomes_a_workload(agewell: Agewell, tmp_path: Path) -> None:
    """Facts on the terminal and in JSON are those of the rows of the file."""
    (tmp_path / "list.csv").write_text(LIST)
    printed = agewell("oplist", "list.csv", "-o", "w.parquet", "--sync-every", "1")
    assert "begins       2001-09-09 01:46 UTC" in printed.stdout
    assert "1 at the end, at most 2" in printed.stdout
    rows = pq.read_table(tmp_path / "w.parquet").to_pylist()
    actions = [workloads.ACTIONS[row["action"]] for row in rows]
    assert actions == [
        "create",
        "write",
        "make-directory",
        "create",
        "write",
        "sync",
        "delete",
        "remove-directory",
        "delete",
        "create",
        "write",
        "sync",
    ]
    assert sum(row["size_bytes"] for row in rows) == 5000 + 200 + 7000
    facts = json.loads(agewell("info", "w.parquet", "--json").stdout)
    assert facts["written_bytes"] == 5000 + 200 + 7000
    assert facts["live_bytes"] == 7000
    assert facts["days"] == 2
    assert facts["notes"] == {"commits": 2}


def test_a_repository_becomes_a_workload(agewell: Agewell, tmp_path: Path) -> None:
    """The files at the end are those of the last commit, once for each copy."""
    repository = tmp_path / "repository"
    repository.mkdir()
    _git(repository, "init", "--quiet")
    for index, text in enumerate(["a", "bc"]):
        (repository / "file").write_text(text * 1000)
        (repository / f"other-{index}").write_text("x")
        _git(repository, "add", "--all")
        _git(repository, "commit", "--quiet", "--message=m")
    done = json.loads(
        agewell("git", "repository", "-o", "w.parquet", "--copies", "3", "--json").stdout
    )
    facts = done["facts"]
    assert facts["live_files"] == 3 * 3
    assert facts["live_bytes"] == 3 * (2000 + 2)
    assert facts["streams"] == 3
    assert done["bytes"] == (tmp_path / "w.parquet").stat().st_size


def test_the_same_seed_gives_the_same_bytes(agewell: Agewell, tmp_path: Path) -> None:
    """Also through the command line; another seed gives others."""
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        agewell("smith-1996", "-o", f"{name}.parquet", "--seed", str(seed), *SMALL)
    one, again, two = (
        (tmp_path / f"{name}.parquet").read_bytes() for name in ("one", "again", "two")
    )
    assert one == again
    assert one != two
    workload = workloads.read(tmp_path / "one.parquet")
    assert workload.facts["live_files"] == 200
    assert workload.facts["groups"] == 4
    assert workload.operations.num_rows == workload.facts["operations"]


def test_a_profile_is_held(agewell: Agewell, tmp_path: Path) -> None:
    """A profile fills the asked share of the asked capacity."""
    folder = tmp_path / "profile"
    folder.mkdir()
    (folder / "age_distribution.txt").write_text("2\n1 1\n10 4\n")
    (folder / "size_distribution.txt").write_text("2\n1024 3\n16384 2\n")
    (folder / "dir_distribution.txt").write_text("2\n0 1 3\n1 4 0\n")
    arguments = ("--capacity", "4 MiB", "--utilization", "0.5", "--overwrites", "1")
    done = json.loads(agewell("profile", folder, "-o", "w.parquet", *arguments, "--json").stdout)
    facts = done["facts"]
    assert facts["directories"] == 4
    assert facts["parameters"]["capacity_bytes"] == 4 << 20
    assert facts["peak_live_bytes"] <= 2 << 20
    # 2 MiB to fill it, and more to replace what comes and goes; in lengths, not blocks.
    assert facts["written_bytes"] > 2.5 * (1 << 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("info", "absent.parquet"), "absent.parquet: cannot be opened"),
        (("info", "list.csv"), "list.csv: no readable Parquet footer"),
        (("oplist", "bad.csv", "-o", "w.parquet"), "bad.csv: line 2: field 'depth' is missing"),
        (("git", ".", "-o", "w.parquet"), "git rev-parse failed"),
        (("git", "absent", "-o", "w.parquet"), "absent"),
        (("oplist", "list.csv", "-o", "."), "is a directory; name an output file"),
        (("oplist", "list.csv", "-o", "w.parquet", "--rewrite", "x"), "neither replace nor"),
        (("oplist", "list.csv", "-o", "w.parquet", "--scale", "0"), "scale = 0"),
        (("smith-1996", "-o", "w.parquet", "--set", "x"), "must be KEY=VALUE"),
        (("smith-1996", "-o", "w.parquet", "--set", "x=1"), "unknown key 'x'"),
        (("smith-1996", "-o", "w.parquet", "--set", "groups=0"), "groups: must be from 1 to 65536"),
        (("snapshots", "list.csv", "-o", "w.parquet"), "give at least two"),
        (("profile", "absent", "-o", "w.parquet"), "cannot be read"),
        (
            ("profile", ".", "-o", "w.parquet", "--capacity", "2 cows"),
            "'2 cows'",
        ),
        (("trace", "list.csv", "-o", "w.parquet"), "list.csv"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    agewell: Agewell, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Exit status 2, one line, and nothing is written."""
    (tmp_path / "list.csv").write_text(LIST)
    (tmp_path / "bad.csv").write_text(LIST.splitlines()[0] + "\n0,1,A,0,0\n")
    before = sorted(tmp_path.iterdir())
    refused = agewell(*arguments, check=False)
    assert refused.returncode == BAD_INPUT, refused.stderr
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert refused.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_an_exception_from_progress_leaves_nothing(tmp_path: Path) -> None:
    """A caller who stops the work finds no file, not even a temporary one."""

    def stop(operations: int) -> None:
        raise KeyboardInterrupt(operations)

    with pytest.raises(KeyboardInterrupt):
        workloads.make({"source": "smith-1996"}, tmp_path / "w.parquet", progress=stop)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="missing field `list`"):
        workloads.make({"source": "oplist"}, tmp_path / "w.parquet")
