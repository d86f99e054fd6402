"""What reorganising an aged file system brings, measured: a cold `tar` recorded before and after, and replayed on a modelled disk.

Takes an image of an aged file system, and for each way to treat it (none, the tool of the file system, `agewell
reorganise` by name, by directory, and with no more bytes than that tool moves: blocks of files that lie elsewhere
afterwards) a copy of the image: mounts it, treats it,
mounts it again so that nothing is in memory, and has `agewell record` record `tar` to nowhere. Prints a table, and what of
it was promised with a verdict.

Needs root, loop devices, tracefs, tar, pyarrow, and the tools: e4defrag, xfs_fsr, btrfs.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "record"))
import harness
import pyarrow.compute as pc
import pyarrow.parquet as pq

TOOLS = {
    "ext4": ["e4defrag", "{mount}"],
    "xfs": ["xfs_fsr", "-v", "{mount}"],
    "btrfs": ["btrfs", "filesystem", "defragment", "-r", "{mount}"],
}
BUFFER = "64 MiB"
BLOCK_BYTES = 4096
READ = 0
"""What the column `operation` of a trace has for a read."""

TOOL_BYTES_MIN = 1 << 20
"""A tool that moves less has moved nothing: xfs_fsr on whole files."""

PROMISES = (
    ("layout score by names", "at least", 0.995),
    ("files next to their neighbour, by names", "at least", 0.95),
    ("tar, before : by names", "at least", 4.0),
    ("tar, tool : by names", "at least", 2.0),
    ("tar, before : budget", "at least", 1.3),
    ("tar, tool : budget", "at least", 1.3),
    ("bytes moved, budget : tool", "at most", 1.0),
    ("bytes moved : planned, by names", "within 10 % of", 1.0),
)


@contextlib.contextmanager
def mounted(image: Path, folder: Path, *options: str) -> Iterator[harness.Target]:
    """The image on a loop device, mounted with options."""
    device = harness.run(["losetup", "--find", "--show", str(image)]).strip()
    mount = folder / "mount"
    mount.mkdir(exist_ok=True)
    try:
        # Copies of one image have one identity, by which xfs would refuse the second.
        kind = harness.run(["blkid", "-o", "value", "-s", "TYPE", device]).strip()
        if kind == "xfs":
            options = (*options, "nouuid")
        harness.run(["mount", "-o", ",".join(options or ("rw",)), device, str(mount)])
        try:
            name = Path(device).name
            sectors = int(Path(f"/sys/block/{name}/size").read_text())
            yield harness.Target(mount, name, sectors, {})
        finally:
            harness.unmount(mount)
    finally:
        harness.run(["losetup", "--detach", device])


def written_bytes(target: harness.Target) -> int:
    """Bytes written to the device since it was set up."""
    return int(Path(f"/sys/block/{target.device}/stat").read_text().split()[6]) * 512


def agewell(*words: object) -> str:
    """What a command of agewell prints."""
    return harness.run([sys.executable, "-m", "agewell", *(str(word) for word in words), "--quiet"])


def cold_tar(image: Path, folder: Path, name: str, order: str) -> Path:
    """Record the requests of a cold `tar`; gives the trace."""
    trace = folder / f"{name}.{order}.parquet"
    # Times of reading are written now and then, so that the first tar would have writes in it.
    with mounted(image, folder, "noatime") as target:
        command = ["tar", f"--sort={order}", "-cf", "-", "-C", str(target.mount), "."]
        with harness.recording(target, trace, {"workload": "cold tar"}, BUFFER):
            # To /dev/null itself tar would read nothing.
            tar = subprocess.Popen(command, stdout=subprocess.PIPE)
            assert tar.stdout is not None
            while tar.stdout.read(1 << 20):
                pass
            if tar.wait() != 0:
                raise harness.RecordError(f"tar ended with {tar.returncode}")
            # What was read ahead and not asked for is still under way.
            time.sleep(1)
    return trace


def disk_seconds(trace: Path, folder: Path, device: str) -> float:
    """Time that the reads of `trace` take on the modelled device, one after another.

    What is written meanwhile is left out: times of access, which no one waits for. On btrfs each commit of them writes
    the nodes of trees to new places, so many as the machine's other work lets the tar run on for.
    """
    requests = pq.read_table(trace)
    pq.write_table(requests.filter(pc.equal(requests["operation"], READ)), trace)
    experiment = folder / f"{trace.stem}.toml"
    experiment.write_text(
        f'[workload]\nkind = "trace"\npath = "{trace}"\nreplay = "closed"\n[queue]\ndiscipline = "fcfs"\n'
        f'[device]\nmodel = "{device}"\n[run]\nseed = 1\n'
    )
    metrics = json.loads(agewell("run", experiment, "--json"))
    return find(metrics, "disk_seconds")


def find(metrics: object, name: str) -> float:
    """The first of the metrics of this name."""
    if isinstance(metrics, dict):
        if isinstance(metrics.get(name), (int, float)):
            return float(metrics[name])
        for value in metrics.values():
            with contextlib.suppress(KeyError):
                return find(value, name)
    raise KeyError(name)


@dataclasses.dataclass(frozen=True)
class Row:
    """A way to treat the file system, and what came of it.

    Attributes:
        written: bytes written to the device by it.
        moved: bytes moved, and as planned; of other tools what lies elsewhere afterwards.
        score: layout score.
        near: files next to their neighbour, by name and as listed.
        seconds: of a cold tar by name and as listed.
    """

    written: int
    moved: tuple[int, int]
    score: float
    near: tuple[float, float]
    seconds: tuple[float, float]


def blocks(mount: Path, folder: Path) -> dict[tuple[int, int], int]:
    """Where each block of each file lies."""
    snapshot = folder / "snapshot.parquet"
    agewell("snapshot", mount, "--sync", "-o", snapshot)
    table = pq.read_table(snapshot, columns=["inode", "extents"])
    found = {}
    for inode, extents in zip(
        table["inode"].to_pylist(), table["extents"].to_pylist(), strict=True
    ):
        # Rows without a number are free space and the like.
        for extent in (extents or ()) if inode is not None else ():
            logical, physical = extent["logical_bytes"], extent["physical_bytes"]
            for at in range(0, extent["length_bytes"], BLOCK_BYTES):
                found[inode, logical + at] = physical + at
    return found


def moved_bytes(mount: Path, folder: Path, command: list[str]) -> int:
    """Bytes of files that lie elsewhere once `command` has run."""
    before = blocks(mount, folder)
    null = subprocess.DEVNULL
    # e4defrag fails where it leaves a single file.
    subprocess.run(command, stdout=null, stderr=null, check=False)
    after = blocks(mount, folder)
    return BLOCK_BYTES * sum(after.get(block) != place for block, place in before.items())


def treat(
    target: harness.Target, kind: str, way: str, tool_bytes: int, folder: Path
) -> tuple[int, int]:
    """Treat a file system; gives the bytes moved, and planned if it is by agewell."""
    if way == "none":
        return (0, 0)
    if way == "tool":
        command = [part.format(mount=target.mount) for part in TOOLS[kind]]
        return (moved_bytes(target.mount, folder, command), 0)
    words = ["--by", "names" if way == "budget" else way, "--anyway", "--json"]
    if way == "budget":
        words += ["--budget", f"{tool_bytes} B"]
    told = json.loads(agewell("reorganise", target.mount, *words))
    return (told["done"]["moved_bytes"], told["work"]["moved_bytes"])


def measure(asked: argparse.Namespace, base: Path, way: str, tool_bytes: int) -> Row:
    """A copy of the image, treated, scored and read."""
    image = base / "image"
    harness.run(["cp", "--sparse=always", "--reflink=auto", str(asked.image), str(image)])
    with mounted(image, base) as target:
        before = written_bytes(target)
        moved = treat(target, asked.kind, way, tool_bytes, base)
        harness.run(["sync", "-f", str(target.mount)])
        written = written_bytes(target) - before
        report = json.loads(agewell("score", target.mount, "--sync", "--json"))["targets"][0]
    near = report["neighbours"]
    by_name, listed = (
        disk_seconds(cold_tar(image, base, way, order), base, asked.device)
        for order in ("name", "none")
    )
    return Row(
        written,
        moved,
        report["layout"]["layout_score"],
        (near["by_name"]["adjacency"], near["by_readdir"]["adjacency"]),
        (by_name, listed),
    )


def verdicts(rows: dict[str, Row]) -> list[tuple[str, float, str]]:
    """What was promised, what was found, and whether it holds."""
    none, tool, names, budget = (rows.get(way) for way in ("none", "tool", "names", "budget"))
    if tool and tool.moved[0] < TOOL_BYTES_MIN:
        print("the tool moved nothing: there is no budget to compare with", flush=True)
        budget = None
    found: list[float | None] = [
        names and names.score,
        names and names.near[0],
        names and none and none.seconds[0] / names.seconds[0],
        names and tool and tool.seconds[0] / names.seconds[0],
        budget and none and none.seconds[0] / budget.seconds[0],
        budget and tool and tool.seconds[0] / budget.seconds[0],
        budget and tool and budget.moved[0] / tool.moved[0],
        names and names.moved[0] / names.moved[1],
    ]
    told = []
    for (name, how, limit), value in zip(PROMISES, found, strict=True):
        if value is None:
            continue
        holds = {
            "at least": value >= limit,
            "at most": value <= limit,
            "within 10 % of": abs(value - limit) <= 0.1 * limit,
        }[how]
        told.append((f"{name}, {how} {limit}", value, "holds" if holds else "FALLS SHORT"))
    return told


def main() -> None:
    """Measure every way that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("image", type=Path)
    parser.add_argument("kind", choices=TOOLS)
    parser.add_argument("--device", default="seagate-st2000dm006")
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--ways", default="none,tool,names,directory,budget")
    asked = parser.parse_args()
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory(prefix="agewell-measure-", dir=asked.work) as folder:
        for way in asked.ways.split(","):
            tool_bytes = rows["tool"].moved[0] if "tool" in rows else TOOL_BYTES_MIN
            row = rows[way] = measure(asked, Path(folder), way, tool_bytes)
            mib = [part / 2**20 for part in (row.written, *row.moved)]
            print(
                f"{asked.kind:6} {way:10} written {mib[0]:8.1f} MiB  moved {mib[1]:8.1f} of "
                f"{mib[2]:8.1f} planned  score {row.score:.4f}  by name {row.near[0]:.4f}  "
                f"listed {row.near[1]:.4f}  tar by name {row.seconds[0]:.2f} s  as listed "
                f"{row.seconds[1]:.2f} s",
                flush=True,
            )
    for name, value, verdict in verdicts(rows):
        print(f"{asked.kind:6} {name:52} {value:8.3f}  {verdict}")


if __name__ == "__main__":
    main()
