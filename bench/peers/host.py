"""The machine that a run was made on: what makes a figure what it is, and no name of it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def description() -> dict[str, Any]:
    """Processor, memory, kernel and compiler."""
    processor = _first(Path("/proc/cpuinfo"), r"model name\s*: (.*)") or platform.machine()
    memory_kib = _first(Path("/proc/meminfo"), r"MemTotal:\s*(\d+)")
    return {
        "processor": processor,
        "processors": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory_kib) / (1 << 20), 1) if memory_kib else None,
        "kernel": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 1),
        "rustc": said("rustc", "--version"),
        "python": platform.python_version(),
    }


def said(*command: str) -> str:
    """The first line that a program prints, or an empty one."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout or done.stderr).strip().split("\n")[0]


def _first(path: Path, pattern: str) -> str | None:
    try:
        found = re.search(pattern, path.read_text())
    except OSError:
        return None
    return found.group(1).strip() if found else None
