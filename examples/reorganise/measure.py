"""What reorganising an aged file system brings, measured: a cold `tar` recorded before and after, and replayed on a modelled disk.

Takes an image of an aged file system, and for each way to treat it (none, the tool of the file system, `agewell
reorganise` by name, by directory, and with no more bytes than that tool moves) a copy of the image: mounts it, treats it,
mounts it again so that nothing is in memory, and records the block requests of `tar` to nowhere. Prints a table.

Needs root, loop devices, tracefs with block events, tar, and the tools: e4defrag, xfs_fsr.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "record"))
import harness

TOOLS = {
    "ext4": ["e4defrag", "{mount}"],
    "xfs": ["xfs_fsr", "-v", "{mount}"],
}
BUFFER_KIB = 192 << 10
READ_AHEAD_BYTES = 128 << 10


@contextlib.contextmanager
def mounted(image: Path, folder: Path) -> Iterator[harness.Target]:
    """The image on a loop device, mounted."""
    device = harness.run(["losetup", "--find", "--show", str(image)]).strip()
    mount = folder / "mount"
    mount.mkdir(exist_ok=True)
    try:
        # Copies of one image have one identity, by which xfs would refuse the second.
        kind = harness.run(["blkid", "-o", "value", "-s", "TYPE", device]).strip()
        options = ["-o", "nouuid"] if kind == "xfs" else []
        harness.run(["mount", *options, device, str(mount)])
        try:
            name = Path(device).name
            major, minor = Path(f"/sys/block/{name}/dev").read_text().strip().split(":")
            sectors = int(Path(f"/sys/block/{name}/size").read_text())
            yield harness.Target(mount, name, (int(major), int(minor)), sectors, {})
        finally:
            harness.unmount(mount)
    finally:
        harness.run(["losetup", "--detach", device])


def written_bytes(target: harness.Target) -> int:
    """Bytes written to the device since it was set up."""
    return target.statistics()["write_sectors"] * 512


def cold_tar(image: Path, folder: Path, name: str, order: str) -> Path:
    """Record the requests of a cold `tar`; gives the trace."""
    text = folder / f"{name}.{order}.txt"
    with mounted(image, folder) as target:
        command = ["tar", f"--sort={order}", "-cf", "-", "-C", str(target.mount), "."]
        with harness.block_tracer(target, text, BUFFER_KIB, {"workload": "cold tar"}):
            tar = subprocess.Popen(command, stdout=subprocess.PIPE)
            assert tar.stdout is not None
            while tar.stdout.read(1 << 20):
                pass
            if tar.wait() != 0:
                raise harness.RecordError(f"tar ended with {tar.returncode}")
            # What was read ahead and not asked for is still under way.
            time.sleep(1)
    trace = folder / f"{name}.{order}.parquet"
    harness.run(
        [sys.executable, "-m", "agewell", "trace", "convert", str(text), str(trace), "--quiet"]
    )
    text.unlink()
    return trace


def disk_seconds(trace: Path, folder: Path, device: str) -> float:
    """Time that the reads of `trace` take on the modelled device, one after another."""
    experiment = folder / f"{trace.stem}.toml"
    experiment.write_text(
        f'[workload]\nkind = "trace"\npath = "{trace}"\nreplay = "closed"\n[queue]\ndiscipline = "fcfs"\n'
        f'[device]\nmodel = "{device}"\n[run]\nseed = 1\n'
    )
    told = harness.run(
        [sys.executable, "-m", "agewell", "run", str(experiment), "--json", "--quiet"]
    )
    metrics = json.loads(told)
    (folder / f"{trace.stem}.json").write_text(told)
    lane = metrics.get("metrics", metrics)
    return find(lane, "disk_seconds", "busy_seconds", "mean_service_ms")


def find(metrics: object, *names: str) -> float:
    """The first of the metrics of one of these names."""
    if isinstance(metrics, dict):
        for name in names:
            if isinstance(metrics.get(name), (int, float)):
                return float(metrics[name])
        for value in metrics.values():
            with contextlib.suppress(KeyError):
                return find(value, *names)
    raise KeyError(names)


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
    base = Path(tempfile.mkdtemp(prefix="agewell-measure-", dir=asked.work))
    rows = []
    tool_bytes = 0
    try:
        for way in asked.ways.split(","):
            image = base / "image"
            subprocess.run(
                ["cp", "--sparse=always", "--reflink=auto", asked.image, image], check=True
            )
            told: dict[str, object] = {}
            with mounted(image, base) as target:
                before = written_bytes(target)
                if way == "tool":
                    command = [part.format(mount=target.mount) for part in TOOLS[asked.kind]]
                    subprocess.run(
                        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
                    )
                    harness.run(["sync", "-f", str(target.mount)])
                    tool_bytes = written_bytes(target) - before
                elif way != "none":
                    by = "names" if way == "budget" else way
                    command = [
                        sys.executable,
                        "-m",
                        "agewell",
                        "reorganise",
                        str(target.mount),
                        "--by",
                        by,
                    ]
                    command += ["--anyway", "--json", "--quiet"]
                    if way == "budget":
                        command += ["--budget", f"{max(tool_bytes, 1)} B"]
                    told = json.loads(harness.run(command))
                written = written_bytes(target) - before
                score = json.loads(
                    harness.run(
                        [
                            sys.executable,
                            "-m",
                            "agewell",
                            "score",
                            str(target.mount),
                            "--sync",
                            "--json",
                            "-q",
                        ]
                    )
                )
            row = {"way": way, "written": written, "score": score, "told": told}
            for order in ("name", "none"):
                trace = cold_tar(image, base, way, order)
                row[order] = disk_seconds(trace, base, asked.device)
            rows.append(row)
            report = find_score(score)
            done = told.get("done") or {}
            print(
                f"{asked.kind:6} {way:10} written {written / 2**20:8.1f} MiB  moved {done.get('moved_bytes', 0) / 2**20:8.1f} of "
                f"{(told.get('work') or {}).get('moved_bytes', 0) / 2**20:8.1f} planned  score {report[0]:.4f}  by name {report[1]:.4f}  "
                f"listed {report[2]:.4f}  tar by name {row['name']:.2f} s  as listed {row['none']:.2f} s",
                flush=True,
            )
    finally:
        shutil.rmtree(base)


def find_score(document: object) -> tuple[float, float, float]:
    """Layout score, neighbours by name and as listed."""
    assert isinstance(document, dict)
    report = document["targets"][0]
    near = report["neighbours"]
    layout = report["layout"]["layout_score"]
    return (layout, near["by_name"]["adjacency"], near["by_readdir"]["adjacency"])


if __name__ == "__main__":
    main()
