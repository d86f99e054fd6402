"""A nearly full mount whose server is killed again and again: nothing acknowledged is lost.

    python tests/mounted_soak.py --rounds 1000 --work /dev/shm

Each round a writer overwrites, appends, makes, renames and removes files, syncs now and then, and
says what it has done and what was synced. The server is killed in the midst of it, the image is
checked and mounted, and every file must be as it was after some operation since the last sync.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from agewell.filesystems import mounted

BLOCK = 4096
FILES = 24
FILE_BLOCKS = 64
FULL = 0.93


State = dict[str, tuple[int, int]]
"""Of each file by name its version and blocks."""


def content(name: str, version: int, blocks: int) -> bytes:
    """What a version of a file holds: no two are alike in any block."""
    seed = hashlib.sha256(f"{name} {version}".encode()).digest()
    return b"".join((seed + number.to_bytes(8, "little")) * 103 for number in range(blocks))[
        : blocks * BLOCK - 100
    ]


def write(point: Path, seed: int) -> None:
    """Changes files until something fails; prints a line for each version and each sync."""
    choose = random.Random(seed)  # noqa: S311 (no secret)
    version = seed * 1_000_000
    said = sys.stdout
    while True:
        version += 1
        name = f"file {choose.randrange(FILES)}"
        blocks = choose.randrange(1, FILE_BLOCKS)
        said.write(json.dumps({"begin": [name, version, blocks]}) + "\n")
        said.flush()
        fresh = point / f"{name} new"
        with fresh.open("wb", buffering=0) as file:
            whole = content(name, version, blocks)
            if file.write(whole) != len(whole):
                raise OSError("a part was written")
            is_synced = choose.random() < 0.3
            if is_synced:
                os.fsync(file.fileno())
        fresh.rename(point / name)
        if is_synced:
            folder = os.open(point, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
            said.write(json.dumps({"synced": version}) + "\n")
            said.flush()


def check(point: Path, lines: list[str], before: State) -> State:
    """Every file as it was after an operation since the last sync; what each is.

    Raises RuntimeError naming the first that is not.
    """
    history = dict(before)
    states = [dict(history)]
    versions: list[int] = [0]
    synced = 0
    for line in lines:
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            break
        if "begin" in said:
            name, version, blocks = said["begin"]
            history[name] = (version, blocks)
            states.append(dict(history))
            versions.append(version)
        else:
            synced = versions.index(said["synced"])
    found = {}
    for path in point.iterdir():
        if path.name.endswith(" new") or path.name == "ballast":
            continue
        found[path.name] = path.read_bytes()
    for state in states[synced:]:
        if set(state) == set(found) and all(
            found[name] == content(name, *of) for name, of in state.items()
        ):
            return state
    raise RuntimeError(f"no state from {synced} to {len(states) - 1} is there")


def mount(image: Path, point: Path) -> None:
    """Mounts as soon as the killed server is gone for good."""
    until = time.monotonic() + 60
    while True:
        try:
            mounted.call(["mount", image, point])
        except Exception:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def soak(work: Path, rounds: int, seed: int) -> None:
    """`rounds` kills. Raises RuntimeError if anything that was acknowledged is lost."""
    image, point = work / "soak.img", work / "soak"
    point.mkdir()
    mounted.call(["make", image, "--size", "64 MiB", "--sparse"])
    choose = random.Random(seed)  # noqa: S311 (no secret)
    state: State = {}
    memory_kib = []
    for number in range(rounds):
        mount(image, point)
        server = mounted.status(point)["process"]
        if number == 0:
            space = os.statvfs(point)
            room = FILES * FILE_BLOCKS * 2
            kept = int(space.f_blocks * (1 - FULL)) + room
            with (point / "ballast").open("wb") as file:
                for _ in range(max(space.f_bavail - kept, 0)):
                    file.write(os.urandom(BLOCK))
        words = ["--write", str(point), "--seed", str(seed + number + 1)]
        command = [sys.executable, __file__, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
            time.sleep(0.15 + choose.random() * 0.3)
            status = Path(f"/proc/{server}/status").read_text(encoding="utf-8")
            memory_kib.append(int(status.split("VmRSS:")[1].split()[0]))
            os.kill(server, signal.SIGKILL)
            lines = writer.communicate()[0].decode().splitlines()
        subprocess.run(["umount", "-l", point], check=True)
        mount(image, point)
        try:
            state = check(point, lines, state)
        except RuntimeError as error:
            raise RuntimeError(f"round {number}, seed {seed}: {error}") from None
        for left in point.glob("* new"):
            left.unlink()
        mounted.unmount(point)
        document = json.loads(mounted.call(["check", image, "--data"]))
        if not document["clean"]:
            raise RuntimeError(f"round {number}, seed {seed}: {document['findings'][:3]}")
        if number % 50 == 49:
            print(f"{number + 1} kills, nothing lost; server {memory_kib[-1]} KiB", flush=True)
    shutil.rmtree(point)
    image.unlink()


def main() -> None:
    """Soaks, or writes for a soak."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if given.write:
        write(given.write, given.seed)
    else:
        soak(given.work, given.rounds, given.seed)
        print(f"{given.rounds} kills, nothing lost")


if __name__ == "__main__":
    main()
