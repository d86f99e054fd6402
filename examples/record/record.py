#!/usr/bin/env python3
"""Record a block trace of a real workload on an ext4 file system of its own.

    sudo python3 examples/record/record.py {pgbench,build,mail,decision-support} --out DIR

Writes `NAME.parquet` (by `agewell record`), `NAME.json` (facts of the machine, phases, what was recorded beside the
kernel's own counters) and, for `build` and `decision-support`, `NAME-files.strace` (file operations), which `agewell
trace convert` turns into Parquet; see README.md. Cleans up after itself, also on Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import harness
from build import Build
from decision_support import DecisionSupport
from harness import RecordError, say
from mail import Mail
from pgbench import Pgbench
from workload import Session, Workload

WORKLOADS: dict[str, type[Workload]] = {
    "pgbench": Pgbench,
    "build": Build,
    "mail": Mail,
    "decision-support": DecisionSupport,
}

# What the file system writes by itself some seconds after the last call (ext4 commits every 5 s) belongs to the trace.
SETTLE_SECONDS = 6


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("--out", type=Path, required=True, help="directory for the recording")
    parser.add_argument(
        "--work", type=Path, default=Path("/var/tmp"), help="where the loop file goes (needs 2 GB)"
    )
    parser.add_argument(
        "--time-scale", type=float, default=1.0, help="factor on every phase's length (default 1)"
    )
    parser.add_argument("--buffer", help="the kernel's buffer for each processor, such as '64 MiB'")
    return parser.parse_args()


def machine_facts() -> dict[str, str]:
    """Kernel and machine."""
    kernel = platform.uname()
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "kernel": f"{kernel.system} {kernel.release} {kernel.machine}",
        "machine": f"{os.cpu_count()} CPUs, {pages >> 20} MiB memory",
    }


def realtime_minus_monotonic_ns() -> int:
    """Block traces carry the monotonic clock, strace the real-time one; this joins them."""
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    realtime = time.clock_gettime_ns(time.CLOCK_REALTIME)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return realtime - (before + after) // 2


def record(workload: Workload, arguments: argparse.Namespace, work: Path) -> None:
    """Prepare, trace, and write the results into `--out`."""
    out: Path = arguments.out
    with contextlib.ExitStack() as undo:
        target = undo.enter_context(harness.loop_file_system(work, workload.size_bytes))
        group = undo.enter_context(harness.memory_limit(workload.memory_limit_bytes))
        facts = {
            "workload": workload.description,
            **machine_facts(),
            **target.facts,
            "memory_limit_bytes": str(workload.memory_limit_bytes),
            "programs": ", ".join(
                f"{name} {version}" for name, version in workload.versions().items()
            ),
            "realtime_minus_monotonic_ns": str(realtime_minus_monotonic_ns()),
        }
        scratch = work / "scratch"
        scratch.mkdir(mode=0o755)
        session = Session(target.mount, scratch, out, group, facts, arguments.time_scale)
        undo.callback(workload.finish, session)
        say(f"{workload.name}: preparing on {target.device}")
        workload.prepare(session)
        harness.empty_caches(group)
        time.sleep(SETTLE_SECONDS)
        trace = out / f"{workload.name}.parquet"
        with harness.recording(target, trace, facts, arguments.buffer) as recorded:
            workload.run(session)
            session.phase("settle")
            os.sync()
            time.sleep(SETTLE_SECONDS)
            session.phase("end")
        workload.inspect(session)
        document = {
            "facts": facts,
            "device_sectors": target.sectors,
            "phases": [{"name": name, "monotonic_ns": start} for name, start in session.phases],
            "recording": recorded,
        }
        partial = out / f"{workload.name}.json.partial"
        partial.write_text(json.dumps(document, indent=2) + "\n")
        partial.rename(out / f"{workload.name}.json")
        say(f"{workload.name}: {recorded['requests']} requests; kernel: {recorded['kernel']}")


def stop(_signal: int, _frame: FrameType | None) -> None:
    """Begin to clean up, once: a second Ctrl-C or SIGTERM must not interrupt the cleaning."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Record; 0 done, 1 failed, 2 cannot start, 130 interrupted."""
    arguments = parse_arguments()
    workload = WORKLOADS[arguments.workload]()
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        harness.check_machine(workload.tools)
        arguments.out.mkdir(parents=True, exist_ok=True)
    except (RecordError, OSError) as error:
        print(f"record.py: {error}", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="agewell-record-", dir=arguments.work) as work:
            Path(work).chmod(0o755)  # the database server is another user and must reach the mount
            record(workload, arguments, Path(work))
    except (RecordError, OSError) as error:
        print(f"record.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("record.py: interrupted; everything cleaned up", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
