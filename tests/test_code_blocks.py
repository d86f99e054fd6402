"""Every block of code in the documentation is run, or parsed where it cannot be, and says why."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pytest

import agewell
import reorganise_torture_images
import test_devices
from conftest import REPOSITORY
from test_guides import typed
from test_workload import LIST

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MADE = re.compile(
    r"docs/(experiments/[^/]+/|experiments/gallery|notebooks/|reference/command-line)"
)
"""Pages that a program makes; other tests hold them against it, and notebooks are run."""

PAGES = [
    path.relative_to(REPOSITORY).as_posix()
    for path in (
        *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")),
        *sorted((REPOSITORY / "docs").rglob("*.md")),
    )
]


# --- what is done with a block --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """It is run below, after the blocks before it."""


@dataclass(frozen=True, slots=True)
class Saved:
    """It is a file, which the blocks behind it use."""

    name: str


@dataclass(frozen=True, slots=True)
class By:
    """A test of its own runs it."""

    test: str


@dataclass(frozen=True, slots=True)
class Checked:
    """It is not run, for a reason; what it is made of is parsed."""

    why: str


@dataclass(frozen=True, slots=True)
class Shown:
    """It is no code: a drawing, or what a program prints."""


Treatment = Run | Saved | By | Checked | Shown

FIRST_RUN = By("test_guides.py::test_every_command_of_the_first_run_works_in_order")
REGRESSION = By("test_guides.py::test_the_layout_regression_is_caught")
MOUNTED = By("test_guides.py::test_the_file_system_of_the_guide_is_mounted_used_and_checked")
SEGMENT = By("test_guides.py::test_the_segment_size_of_the_guide_is_what_is_printed")
GARBAGE = By("test_guides.py::test_garbage_is_collected_on_a_trace_of_the_readers")
RESULTS = By("test_guides.py::test_results_are_asked_and_compared")
CLUSTER = By("test_guides.py::test_a_cluster_makes_the_same_table")
POLICY = By("test_guides.py::test_policies_of_the_guide_decide")

TREATMENTS: Mapping[str, tuple[Treatment, ...]] = {
    "README.md": (
        Shown(),
        Checked("these targets build everything, and run all tests"),
        By("test_documentation.py::test_the_session_of_the_readme_prints_what_it_shows"),
    ),
    "CONTRIBUTING.md": (
        Checked("these targets run all tests"),
        By("test_documentation.py::test_the_example_of_a_placement_is_the_one_that_is_compiled"),
    ),
    "docs/index.md": (Run(),),
    "docs/concepts/layout-score.md": (Run(),),
    "docs/concepts/shuffling.md": (Saved("remap.toml"), Shown()),
    "docs/experiments/index.md": (Run(),),
    "docs/guides/age-before-a-benchmark.md": (
        By("test_guides.py::test_a_file_system_is_measured_new_and_aged"),
    ),
    "docs/guides/ask-results.md": (RESULTS,) * 7,
    "docs/guides/cluster.md": (CLUSTER,) * 5,
    "docs/guides/collect-garbage.md": (GARBAGE,) * 6,
    "docs/guides/commands-by-example.md": (Run(),),
    "docs/guides/first-run.md": (
        Checked("it builds everything"),
        *((FIRST_RUN,) * 4),
        By("test_guides.py::test_the_python_of_the_first_run_works"),
    ),
    "docs/guides/layout-regression.md": (
        REGRESSION,
        Shown(),
        Checked("the same commands as above, ten times"),
    ),
    "docs/guides/mount.md": (MOUNTED, MOUNTED),
    "docs/guides/policy.md": (*((POLICY,) * 7), Shown()),
    "docs/guides/segment-size.md": (SEGMENT, SEGMENT, SEGMENT),
    "docs/guides/slow-file-server.md": (Run(),) * 9,
    "docs/guides/validate-a-drive.md": (Run(),) * 4,
    "docs/guides/your-own-disk.md": (Run(),),
    "docs/guides/your-own-trace.md": (
        *((Run(),) * 4),
        Checked("blktrace asks the kernel for what many systems do not let it have"),
        Run(),
        Saved("mine.toml"),
        Run(),
    ),
    "docs/internals/format.md": (Shown(), Shown()),
    "docs/reference/aging-workloads.md": (Run(),),
    "docs/reference/comparing.md": (Run(),),
    "docs/reference/configuration.md": (Saved("aging.toml"),),
    "docs/reference/devices.md": (Checked("it is a part of a file: the rest is left out"),),
    "docs/reference/file-system.md": (Run(),),
    "docs/reference/images.md": (Run(),),
    "docs/reference/reorganising.md": (
        Run(),
        Shown(),
        Run(),
        Shown(),
        Checked("a unit of systemd, which would stay on the machine"),
    ),
    "docs/reference/snapshots.md": (Run(),) * 5,
    "docs/reference/store.md": (Run(), Shown()),
    "docs/reference/trace-formats.md": (Run(),),
}
"""What is done with each block of each page, in their order."""


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of every block of a page."""
    return BLOCK.findall((REPOSITORY / page).read_text())


def test_every_block_is_run_or_has_its_reason() -> None:
    counted = {page: len(blocks(page)) for page in PAGES if not MADE.match(page)}
    known = {page: len(treatments) for page, treatments in TREATMENTS.items()}
    assert {page: count for page, count in counted.items() if count} == known


def test_tests_that_run_blocks_are_there() -> None:
    for page, treatments in TREATMENTS.items():
        for one in treatments:
            if isinstance(one, By):
                file, _, name = one.test.partition("::")
                source = (REPOSITORY / "tests" / file).read_text()
                functions = {
                    each.name
                    for each in ast.parse(source).body
                    if isinstance(each, ast.FunctionDef)
                }
                assert name in functions
                assert Path(page).name in source, f"{file} does not read {page}"


def _targets() -> set[str]:
    """The targets of the Makefile."""
    makefile = (REPOSITORY / "Makefile").read_text()
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def _parse(language: str, text: str) -> None:
    """Take a block apart as what it is; command lines of agewell are parsed by another test."""
    if language == "toml":
        assert tomllib.loads(text)
    elif language == "ini":
        unit = configparser.ConfigParser(strict=True, interpolation=None)
        unit.read_string(text)
        assert {"Unit", "Service"} <= set(unit)
        assert "agewell reorganise" in unit["Service"]["ExecStart"]
    else:
        subprocess.run(["sh", "-n"], input=text, text=True, check=True, capture_output=True)
        wanted = set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
        assert wanted <= _targets()


def test_what_is_not_run_is_what_it_looks_like() -> None:
    checked = 0
    for page, treatments in TREATMENTS.items():
        for (language, text), one in zip(blocks(page), treatments, strict=True):
            if isinstance(one, Checked):
                assert one.why
                _parse(language, text)
                checked += 1
    assert checked >= 5
    with pytest.raises(subprocess.CalledProcessError):
        _parse("sh", "if true; then\n")
    with pytest.raises(AssertionError):
        _parse("", "make nothing-of-that-name\n")


# --- where blocks are run -------------------------------------------------------------------------


def _sh(script: str, folder: Path) -> None:
    done = typed(script, folder)
    assert done.returncode == 0, done.stderr


def _nothing(_folder: Path) -> None:
    """There is all that is needed."""


def _short_mail(folder: Path) -> None:
    """Ten seconds of a recorded mail server, also as blkparse writes it."""
    _sh("agewell trace filter mail short.parquet --filter 'time=0 s..10 s' --quiet", folder)
    lines = (
        f"  8,0 0 {2 * number + place} {number}.00000{place} 5 {event} W {8 * number} + 8 [x]\n"
        for number in range(20)
        for place, event in enumerate("DC", start=1)
    )
    (folder / "mine.blkparse").write_text("".join(lines))
    _sh(
        "gzip mine.blkparse; agewell trace convert short.parquet mine.blktrace.0 -t fio-iolog-v3",
        folder,
    )


def _snapshots(folder: Path) -> None:
    """A file system on three days, under every name that a reader may give it."""
    days = (("monday", "mon"), ("tuesday", "tue"), ("wednesday", "wed"))
    for day, (name, short) in enumerate(days, start=1):
        snapshot = folder / f"{name}.parquet"
        agewell.age("ffs", "smith-1996", until=[f"days={day}"], snapshot=snapshot)
        shutil.copy(snapshot, folder / f"{short}.parquet")
    shutil.copy(folder / "wed.parquet", folder / "srv.parquet")


def _sources_of_workloads(folder: Path) -> None:
    """A repository, a list of operations, a profile and a trace, each small."""
    _snapshots(folder)
    profile = folder / "profiles" / "agrawal"
    profile.mkdir(parents=True)
    (profile / "age_distribution.txt").write_text("2\n1 1\n10 4\n")
    (profile / "size_distribution.txt").write_text("2\n1024 3\n16384 2\n")
    (profile / "dir_distribution.txt").write_text("2\n0 1 3\n1 4 0\n")
    (folder / "history.csv.zst").write_text(LIST)
    shutil.copy(REPOSITORY / "examples/traces/build-files.parquet", folder / "build.parquet")
    _sh(REPOSITORY_OF_THREE, folder)


REPOSITORY_OF_THREE = """
mkdir -p src/project
cd src/project
git init -q
for change in 1 2 3; do
    seq $((1000 * change)) > file
    git add file
    git -c user.name=a -c user.email=a@example.org commit -qm $change
done
"""


def _drives(folder: Path) -> None:
    """A drive as another simulator describes it, requests with measured times, and folders."""
    described = test_devices.specification(folder, model=test_devices.GOOD_ZONE)
    described.rename(folder / "hp_c3323a.diskspecs")
    begin = np.arange(60, dtype=np.uint64) * np.uint64(20_000_000)
    columns = {
        "enqueue_ns": begin,
        "start_ns": begin + np.uint64(1000),
        "finish_ns": begin + np.uint64(10_000_000),
        "sector": begin % np.uint64(2000),
        "sectors": np.full(60, 8, np.uint64),
        "operation": np.arange(60, dtype=np.uint64) % np.uint64(2),
    }
    measured = folder / "measured.parquet"
    agewell.Trace.of(columns).write(measured)
    for name in ("drives", "traces"):
        (folder / name).mkdir()
    shutil.copy(folder / "hp_c3323a.diskspecs", folder / "drives")
    for name in ("small.model", "small.seek"):
        shutil.copy(folder / name, folder / "drives")
    shutil.copy(measured, folder / "measured.trace.zst")
    shutil.copy(measured, folder / "traces" / "hp_c3323a.trace.zst")


def _of_all_tasks(folder: Path) -> None:
    """What the commands by example are about."""
    _drives(folder)
    _short_mail(folder)
    _sh(REPOSITORY_OF_THREE, folder)
    shutil.copy(folder / "measured.parquet", folder / "hp_c3323a.trace.zst")
    msr = "12816637200306162{0},hm,1,Read,38349619{0},32768,113736\n"
    (folder / "trace.csv").write_text("".join(msr.format(digit) for digit in range(10)))
    _sh("gzip trace.csv", folder)
    (folder / "mine.py").write_text("def settled(segments):\n    return segments.age\n")


def _image(folder: Path) -> None:
    """An ext4 in a file, with a file in it."""
    (folder / "tree").mkdir()
    (folder / "tree" / "file").write_text("content" * 10_000)
    _sh("truncate -s 64M disk.img; mkfs.ext4 -q -d tree disk.img", folder)


def _calls(folder: Path) -> None:
    """What strace says of a program that writes a file."""
    (folder / "build-files.strace").write_text(
        """\
5 1.000000 openat(AT_FDCWD</mnt/build>, "a", O_RDWR|O_CREAT, 0666) = 3</mnt/build/a> <0.000004>
5 1.000100 write(3</mnt/build/a>, "x", 100) = 100 <0.000004>
5 1.000200 close(3</mnt/build/a>) = 0 <0.000004>
"""
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where the blocks of a page are run.

    Attributes:
        prepare: What the reader has.
        instead: Of the text, what is replaced by what is smaller, or at hand.
        behind: Run in the end, to see that something came of it.
    """

    prepare: Callable[[Path], None] = _nothing
    instead: Mapping[str, str] = field(default_factory=dict)
    behind: str = "true"


SMALL = "--set workload.blocks=2000 --layouts lfs,sequential"
FORTY_DAYS = "--set days=40 --set 'utilization_path=[[0,10],[30,60]]'"
COLD = "for one in srv/*/*; do dd if=$one iflag=nocache count=0 status=none; done"

PLACES: Mapping[str, Place] = {
    "docs/index.md": Place(
        instead={
            "make wheel ": "true ",
            "pip install ": "true ",
            "run log-random-update": "run log-random-update --set workload.updates_per_block=1",
        }
    ),
    "docs/concepts/layout-score.md": Place(
        _snapshots, {"score /srv ": "score srv.parquet "}, "test -s srv.png"
    ),
    "docs/concepts/shuffling.md": Place(
        behind="""
printf '[workload]\\nkind = "poisson"\\nrequests = 500\\nrate_per_s = 20.0\\n' >> remap.toml
printf '[device]\\nmodel = "hp-c2200a"\\n' >> remap.toml
agewell run remap.toml | grep -q rearranged"""
    ),
    "docs/experiments/index.md": Place(
        # The trace of that figure cannot be shipped; this one needs none.
        lambda folder: (folder / "traces").mkdir(),
        {"1991/figure-07 --data traces": "1991/section-5-1 --data traces --out made"},
        "test -s made/ruemmler-wilkes-1991/report.html",
    ),
    "docs/guides/commands-by-example.md": Place(
        _of_all_tasks,
        {
            "--data DIRECTORY-WITH-HPLAJW": "--list",
            "FOLDER-OF-DRIVES FOLDER-OF-TRACES": "drives traces",
            "workload.utilization=0.95": "workload.blocks=5000",
            "mine.py:settled": "mine.py:settled --set workload.blocks=5000",
            # These are run in the reference, in the guide to a disk of one's own, and in others.
            "compare --workload": "compare --help --workload",
            "report runs/pgbench": "report --help runs/pgbench",
            "advise --workload mail": "advise --help --workload mail",
            "ffs+realloc": "ffs+realloc --until operations=5000",
            "advise segment-size": "advise segment-size --help",
            # It takes minutes; tests of its study run parts of it.
            "matthews-1999/figure-5-6": "matthews-1999 --list",
            "/srv": "srv",
            "--for 7d": "--for 1s",
            "~/src": "src",
            "/mnt/test": "srv --allow-occupied",
            "--until score=0.85": "--until operations=100",
            "smith-1996 -o": f"smith-1996 {FORTY_DAYS} -o",
        },
        "test -s out.parquet; test -s c3323a.toml; test -s daily.parquet",
    ),
    "docs/guides/slow-file-server.md": Place(
        instead={
            "probe /dev/sdb": "probe seagate-st2000dm006 --modelled --for 20s",
            "/srv": "srv",
            "echo 3 > /proc/sys/vm/drop_caches": COLD,
            "agewell run after.toml": "sed s/before/after/ before.toml > after.toml; "
            "agewell run after.toml",
            "--watch": "--watch --for '2 s' --every '1 s' --state watch.parquet",
        },
        behind="agewell trace info before.parquet; test -s watch.parquet",
    ),
    "docs/guides/validate-a-drive.md": Place(_drives),
    "docs/guides/your-own-disk.md": Place(
        _short_mail,
        {
            "probe /dev/sda": "probe seagate-st2000dm006 --modelled --for 20s",
            "advise --workload mail": "advise --workload short.parquet --out advice",
        },
    ),
    "docs/guides/your-own-trace.md": Place(
        _short_mail,
        {
            "/srv": "srv",
            "--for 1h": "--for 1s",
            "-o mine.parquet --for": "-o recorded.parquet --for",
            "my-program --check": "cp srv/d0/f000 srv/other",
            "agewell record --recover -o mine.parquet": "true",
            "time=18h..22h": "time=0s..30s",
        },
    ),
    "docs/reference/aging-workloads.md": Place(
        _sources_of_workloads,
        {"~/src/project": "src/project", "2 GiB": "16 MiB", "smith-1996 -o": "smith-1996 -o"},
    ),
    "docs/reference/comparing.md": Place(
        instead={
            "hot-cold,microbenchmark": f"hot-cold {SMALL} --utilization 0.5",
            "log-recorded": "log-recorded --layouts lfs,sequential --out recorded",
        }
    ),
    "docs/reference/configuration.md": Place(
        behind="agewell run aging.toml --out aged "
        "--set 'workload.parameters={days=40,utilization_path=[[0,10],[30,60]]}'"
    ),
    "docs/reference/file-system.md": Place(
        instead={
            "8GiB": "64MiB",
            "/mnt/a": "mounted",
            "agewell mount": "mkdir mounted; agewell mount",
        },
    ),
    "docs/reference/images.md": Place(_image, {"/dev/sdb1": "disk.img"}, "test -s sdb1.parquet"),
    "docs/reference/reorganising.md": Place(
        instead={
            "/srv": "srv",
            "--device my-disk.toml": "--device hp-97560",
            "--for '8 h'": "--every '1 s' --for '2 s' --state other.parquet",
            "--watch --budget '2 GB/h'\n": "--watch --budget '2 GB/h' --every '1 s' --for '2 s' "
            "--state watch.parquet\n",
        }
    ),
    "docs/reference/snapshots.md": Place(
        _snapshots, {"agewell snapshot /srv -o srv.parquet": "agewell score srv.parquet"}
    ),
    "docs/reference/store.md": Place(
        instead={"8GiB": "64MiB", "16GiB": "128MiB"}, behind="test -d saved"
    ),
    "docs/reference/trace-formats.md": Place(_calls, behind="test -s build-files.parquet"),
}
"""Pages whose blocks are run here."""

MOUNTED_HERE = (
    *("commands-by-example.md", "slow-file-server.md", "your-own-trace.md"),
    "reference/reorganising.md",
)
"""Pages that need a mounted ext4, at `srv`."""


@pytest.fixture
def srv(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 with files that were written in no order."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("only root can mount, where there are loop devices")
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("there is no mkfs.ext4")
    mount = tmp_path / "srv"
    mount.mkdir()
    memory = Path("/dev/shm")  # noqa: S108 (syncs wait for nobody else's disk there)
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        image = Path(folder) / "srv.img"
        _sh("truncate -s 256M srv.img; mkfs.ext4 -q -b 4096 srv.img", image.parent)
        with reorganise_torture_images.mounted(image, mount):
            _fill(mount)
            yield mount


def _fill(mount: Path) -> None:
    for number in range(400):
        place = number * 149 % 400
        path = mount / f"d{place % 7}" / f"f{place:03}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes([number % 256]) * 20_000)
    _sh("sync -f .", mount)


def _typed_lines(text: str) -> str:
    """What a session at a terminal types; a file that it shows is one that it makes."""
    script = ""
    shown = False
    for line in text.splitlines():
        if line.startswith(("$ ", "# ")):
            script += "END\n" * shown
            shown = line.startswith("$ cat ")
            script += f"cat > {line[6:]} << 'END'\n" if shown else f"{line[2:]}\n"
        elif shown:
            script += f"{line}\n"
    return script + "END\n" * shown


def _run(language: str, text: str, folder: Path) -> None:
    if language == "sql":
        session = duckdb.connect()
        session.execute(f"SET file_search_path = '{folder}'")
        assert session.execute(text).fetchall()
    elif language == "python":
        _sh(f"{shlex.quote(sys.executable)} -c {shlex.quote(text)}", folder)
    else:
        assert language in {"", "sh", "console"}
        _sh(_typed_lines(text) if language == "console" else text, folder)


def _run_page(page: str, folder: Path) -> None:
    place = PLACES[page]
    place.prepare(folder)
    whole = "".join(text for _, text in blocks(page))
    assert [old for old in place.instead if old not in whole] == []
    ran = 0
    for (language, text), one in zip(blocks(page), TREATMENTS[page], strict=True):
        for old, new in place.instead.items():
            text = text.replace(old, new)  # noqa: PLW2901
        if isinstance(one, Saved):
            (folder / one.name).write_text(text)
        elif isinstance(one, Run):
            _run(language, text, folder)
            ran += 1
    assert ran or any(isinstance(one, Saved) for one in TREATMENTS[page])
    _sh(place.behind, folder)


@pytest.mark.parametrize("page", [page for page in PLACES if not page.endswith(MOUNTED_HERE)])
def test_blocks_run(page: str, tmp_path: Path) -> None:
    if page.endswith("file-system.md") and (os.geteuid() or not Path("/dev/fuse").exists()):
        pytest.skip("only root can mount, where there is FUSE")
    if page.endswith("images.md") and shutil.which("mkfs.ext4") is None:
        pytest.skip("there is no mkfs.ext4")
    _run_page(page, tmp_path)


@pytest.mark.usefixtures("srv")
@pytest.mark.parametrize("page", [page for page in PLACES if page.endswith(MOUNTED_HERE)])
def test_blocks_run_on_a_mounted_file_system(page: str, tmp_path: Path) -> None:
    _run_page(page, tmp_path)


def test_every_page_with_blocks_to_run_has_a_place() -> None:
    wanted = {
        page
        for page, all_of in TREATMENTS.items()
        if any(isinstance(one, Run | Saved) for one in all_of)
    }
    assert set(PLACES) == wanted
