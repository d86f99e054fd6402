"""The cold start of a program, before and after its files were laid in the order that a recording of it reads them.

Copies Python packages onto an ext4 or xfs on a loop device, file after file in a drawn order, so that they lie scattered. The
program imports every module of them: some thousand files. Its start with nothing in memory is recorded by `agewell record
--files`, `agewell reorganise --by` the recording lays the files, and the same start is recorded again. Both are replayed on a
modelled disk, beside one sequential read of as many bytes. Of each it tells the requests of contents of files, and all of
them, as recorded a second time: to name files `agewell record` looks at each before the start, so that their inodes are in
memory then. Directories and inodes lie where the file system puts them, and stay.
Of the contents it also tells what no order of whole files can better: the same requests with no way from file to file, and
within each file as they are.

With `--tree` and `--command` it is the start of another program: all files of the tree are copied so, and `{tree}` of the
command is where they lie.

Needs root, loop devices, tracefs, mkfs.ext4 or mkfs.xfs.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import json
import os
import random
import shlex
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measure import agewell, disk_seconds, mounted
from speed import make

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "record"))
import harness

PACKAGES = (
    "fontTools,matplotlib,mpl_toolkits,numpy,mypy,mypyc,pygments,pip,hypothesis,rich,jinja2,PIL,"
    "pyarrow,jsonschema,setuptools,pkg_resources,_pytest,xdist,typer,attr,dateutil,referencing,"
    "markdown_it,pyparsing,contourpy,librt,pathspec,pluggy,tzdata"
)
"""Packages that are looked for beside those of this Python, and whose modules are imported."""

IMAGE_BYTES = 2 << 30

READ = 0
"""The code of reads in a trace."""

REQUEST_SECTORS = 256
"""The kernel's read-ahead, 128 KiB."""

REQUEST_NS = 1_000_000
"""From request to request: a replay that waits for each asks for the next as long after the one before as was recorded."""

PROMISED = 1.3
"""Disk time of the start after, over that of one sequential read."""

PROGRAM = """
import contextlib, importlib, io, json, os, pathlib, sys, warnings
warnings.simplefilter("ignore")
sys.dont_write_bytecode = len(sys.argv) == 3
sys.path.insert(0, sys.argv[1])
done = []
for name in json.loads(pathlib.Path(sys.argv[2]).read_text()):
    with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
        importlib.import_module(name)
        done.append(name)
if len(sys.argv) == 4:
    pathlib.Path(sys.argv[3]).write_text(json.dumps(done))
# Modules may have started threads that do not end.
os._exit(0)
"""


def modules(root: Path) -> list[str]:
    """Names of all modules below `root`, but for what runs when it is imported."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        unwanted = {"__main__", "tests", "testing", "conftest", "test"}
        if all(part.isidentifier() for part in parts) and not unwanted & set(parts):
            found.append(".".join(parts))
    return found


def stage(packages: list[str], folder: Path) -> tuple[Path, Path]:
    """A copy of the packages with their compiled modules, and the list of those that can be imported."""
    site = Path(sysconfig.get_paths()["platlib"])
    root = folder / "staged"
    root.mkdir()
    for name in packages:
        if (site / name).is_dir():
            shutil.copytree(site / name, root / name)
    # What is in single files, and libraries that packages bring.
    for path in site.iterdir():
        if path.suffix in (".py", ".so") or path.name.endswith(".libs"):
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, root / path.name)
    asked, done = folder / "asked.json", folder / "modules.json"
    asked.write_text(json.dumps(modules(root)))
    harness.run([sys.executable, "-c", PROGRAM, str(root), str(asked), str(done)])
    return root, done


def scatter(source: Path, mount: Path, draw: random.Random) -> None:
    """Copy all files in a drawn order, each written out before the next hundred."""
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    draw.shuffle(paths)
    for number, path in enumerate(paths):
        target = mount / "site" / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
        if number % 100 == 99:
            harness.run(["sync", "-f", str(mount)])


def record_start(target: harness.Target, program: list[str], trace: Path, *names: str) -> None:
    """Record the program, and refuse if the kernel lost an event."""
    words = ["record", target.mount, *names, "--json", "-o", trace, "--buffer", "64 MiB"]
    at = str(target.mount / "site")
    command = [*words, "--quiet", "--", *(word.replace("{tree}", at) for word in program)]
    told = json.loads(harness.run([sys.executable, "-m", "agewell", *map(str, command)]))
    if told["recording"]["lost_events"]:
        raise harness.RecordError(f"{told['recording']['lost_events']} events were lost")


def reads_of(trace: Path) -> Path:
    """The reads of a recording; where it names files, those of their contents alone."""
    table = pq.read_table(trace)
    table = table.filter(pc.equal(table["operation"], READ))
    if "path" in table.schema.names:
        table = table.filter(pc.is_valid(table["path"]))
    found = trace.with_name(f"{trace.stem}-reads.parquet")
    pq.write_table(table, found)
    return found


def sequential(reads: Path, *, as_asked: bool) -> Path:
    """As many bytes from the lowest place on: in requests of the kernel's read-ahead, or as those recorded."""
    table = pq.read_table(reads)
    at, left = pc.min(table["sector"]).as_py(), pc.sum(table["sectors"]).as_py()
    if as_asked:
        lengths = table["sectors"].to_pylist()
    else:
        pieces = range(0, left, REQUEST_SECTORS)
        lengths = [min(left - piece, REQUEST_SECTORS) for piece in pieces]
    starts = [number * REQUEST_NS for number in range(len(lengths))]
    columns = {
        "enqueue_ns": starts,
        "start_ns": starts,
        "finish_ns": [start + REQUEST_NS for start in starts],
        "device": [0] * len(lengths),
        "sector": list(itertools.accumulate(lengths[:-1], initial=at)),
        "sectors": lengths,
        "operation": [READ] * len(lengths),
        "flags": [0] * len(lengths),
        "client": [0] * len(lengths),
    }
    schema = pa.schema([table.schema.field(name) for name in columns], table.schema.metadata)
    found = reads.with_name(f"{reads.stem}-sequential-{as_asked}.parquet")
    pq.write_table(pa.table(columns, schema=schema), found)
    return found


def without_ways_between_files(reads: Path) -> Path:
    """The same requests, each that is of another file than the one before right behind it."""
    table = pq.read_table(reads)
    columns = (table[name].to_pylist() for name in ("path", "sector", "sectors"))
    places: list[int] = []
    last, end, place = None, 0, pc.min(table["sector"]).as_py()
    for path, sector, sectors in zip(*columns, strict=True):
        place += sector - end if path == last else 0
        places.append(place)
        last, end, place = path, sector + sectors, place + sectors
    # A file may be gone back in further than others were read before it.
    lowest = min(0, *places)
    moved = pa.array([place - lowest for place in places], table.schema.field("sector").type)
    found = reads.with_name(f"{reads.stem}-together.parquet")
    table = table.set_column(table.schema.get_field_index("sector"), "sector", moved)
    pq.write_table(table, found)
    return found


def elsewhere(reads: Path, files: Path) -> tuple[int, int]:
    """How many of `reads` begin in nothing that `files` reads, and their sectors: reads of metadata."""
    table = pq.read_table(files, columns=["sector", "sectors"])
    runs = sorted(zip(table["sector"].to_pylist(), table["sectors"].to_pylist(), strict=True))
    starts = [start for start, _ in runs]
    count = sectors = 0
    table = pq.read_table(reads, columns=["sector", "sectors"])
    for at, length in zip(table["sector"].to_pylist(), table["sectors"].to_pylist(), strict=True):
        place = bisect.bisect_right(starts, at) - 1
        if place < 0 or at >= sum(runs[place]):
            count, sectors = count + 1, sectors + length
    return count, sectors


def tell(kind: str, device: str, folder: Path, recordings: dict[str, tuple[Path, Path]]) -> None:
    """Disk time before, after, and of one sequential read, of requests for files and of all."""
    files = reads_of(recordings["files"][1])
    for part, traces in recordings.items():
        reads = [reads_of(trace) for trace in traces]
        lines = [sequential(reads[1], as_asked=as_asked) for as_asked in (False, True)]
        seconds = [disk_seconds(trace, folder, device) for trace in (*reads, *lines)]
        floor = ""
        if part == "files":
            together = disk_seconds(without_ways_between_files(reads[1]), folder, device)
            floor = f"; with no way from file to file {together:.2f} s, {together / seconds[2]:.2f} times"
        else:
            count, sectors = elsewhere(reads[1], files)
            floor = f"; of them {count:,} reads of {sectors * 512 / 1e6:.1f} MB are of metadata"
        table = pq.read_table(reads[1], columns=["sectors"])
        ratio = seconds[1] / seconds[2]
        print(
            f"{kind}: {part:5} {table.num_rows:,} reads, "
            f"{pc.sum(table['sectors']).as_py() * 512 / 1e6:.1f} MB: before {seconds[0]:.2f} s, "
            f"after {seconds[1]:.2f} s, one sequential read {seconds[2]:.2f} s "
            f"(in the requests of the program {seconds[3]:.2f} s): "
            f"{ratio:.2f} times that, at most {PROMISED}: "
            f"{'holds' if ratio <= PROMISED else 'FALLS SHORT'}{floor}"
        )


def main() -> None:
    """Measure one start."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("ext4", "xfs"))
    parser.add_argument("--packages", default=PACKAGES)
    parser.add_argument("--tree", type=Path, default=None, help="in place of packages: copy this")
    parser.add_argument("--command", default=None, help="and run this, {tree} being where it lies")
    parser.add_argument("--options", default="", help="more options of agewell reorganise")
    parser.add_argument("--device", default="seagate-st2000dm006")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--keep", type=Path, default=None, help="keep the recordings here")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agewell-start-", dir=asked.work) as work:
        folder = Path(work)
        image = folder / "image"
        if asked.tree:
            staged, program = asked.tree, ["sh", "-c", f"exec {asked.command} > {os.devnull}"]
            name = asked.command
        else:
            staged, listed = stage(asked.packages.split(","), folder)
            program = [sys.executable, "-c", PROGRAM, "{tree}", str(listed)]
            name = f"{len(json.loads(listed.read_text())):,} modules"
        make(asked.kind, image, IMAGE_BYTES)
        with mounted(image, folder) as target:
            scatter(staged, target.mount, random.Random(asked.seed))
        traces = {
            part: (folder / f"before-{part}.parquet", folder / f"after-{part}.parquet")
            for part in ("files", "all")
        }
        options = ["--device", asked.device, *shlex.split(asked.options), "--anyway", "--json"]
        with mounted(image, folder) as target:
            record_start(target, program, traces["all"][0])
        with mounted(image, folder) as target:
            by = traces["files"][0]
            record_start(target, program, by, "--files")
            done = json.loads(agewell("reorganise", target.mount, "--by", by, *options))
        with mounted(image, folder) as target:
            record_start(target, program, traces["all"][1])
        with mounted(image, folder) as target:
            by = traces["files"][1]
            record_start(target, program, by, "--files")
            again = json.loads(
                agewell("reorganise", target.mount, "--by", by, "--dry-run", *options)
            )
        parted = done["parted"] or {"files": 0, "parts": 0}
        print(
            f"{asked.kind}: {name}; {done['done']['files']:,} files moved, "
            f"{done['done']['moved_bytes'] / 1e6:.1f} MB, {done['order']['order']}, "
            f"{parted['files']} of them in {parted['parts']} parts, layout score of these "
            f"{parted.get('layout_score_before') or 1:.4f} before and "
            f"{parted.get('layout_score_after') or 1:.4f} after, of all "
            f"{done['layout']['layout_score']:.4f} and {done['layout_after']['layout_score']:.4f}; "
            f"by the start after it {again['work']['files']:,} files, "
            f"{again['work']['moved_bytes'] / 1e6:.1f} MB, would move again to save "
            f"{again['saving']['gain_pct']:.0f} %, which "
            f"{'pays' if again['saving']['pays'] else 'does not pay'}"
        )
        if asked.keep:
            for trace in itertools.chain(*traces.values()):
                shutil.copy2(trace, asked.keep / f"{asked.kind}.{trace.name}")
        tell(asked.kind, asked.device, folder, traces)


if __name__ == "__main__":
    main()
