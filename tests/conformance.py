"""Suites that nobody here wrote, on any mounted file system: pjdfstest and fsx.

    python tests/conformance.py DIRECTORY [--other DIRECTORY] [--remount] [--operations N]

Both come from their crates, with their versions, and are installed into `target/suites` when they
are not there. pjdfstest (Pawel Jakub Dawidek's tests of POSIX calls, in Rust) needs root, and a
directory whose parents everybody may search. fsx (File System eXerciser, of Apple and FreeBSD, in
Rust) makes random calls on one file and compares it with what it should be.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
INSTALLED = REPOSITORY / "target" / "suites"
VERSIONS = {"pjdfstest": "0.2.2", "fsx": "0.3.2"}

INSTALL_SECONDS = 1200
"""It takes 60 s on one processor that does nothing else."""

PJDFSTEST_SECONDS = 300
"""It takes 3 s, and most of that is waiting for the clock."""

FSX_RUN_OPERATIONS = 100_000
"""Longer ones are several runs. It leaves mapped what it maps to read, and a process may have
65,530 maps; before that, each time a file is cut short the kernel goes through all of them."""

FSX_SEEDS = 1000
"""Seeds of the runs of one are so far apart."""

FSX_SECONDS_A_THOUSAND = 30
"""A thousand operations take 0.2 to 1.5 s."""

PJDFSTEST_CONFIGURATION = """\
# What Linux has of what the suite takes for optional.
[features]
posix_fallocate = {{}}
rename_ctime = {{}}
utimensat = {{}}
utime_now = {{}}
stat_st_birthtime = {{}}
[settings]
naptime = 0.01
allow_remount = {remount}
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"], ["games", "games"]]
"""

FSX_CONFIGURATION = """\
# Of every kind of call some; reads and writes, also by mappings, as often as upstream has them.
flen = 1048576
# No call of zero bytes: fallocate refuses them everywhere, which fsx takes for a fault.
[opsize]
min = 1
max = 65536
align = 1
[weights]
close_open = 1
invalidate = 1
truncate = 1
fsync = 1
fdatasync = 1
read = 10
write = 10
mapread = 5
mapwrite = 5
punch_hole = 2
posix_fallocate = 1
copy_file_range = 2
sendfile = 1
posix_fadvise = 1
"""

PATH_MAX_BYTES = 40
"""Of the directory: the suite binds sockets below it, whose paths have 107 bytes at most."""

NEEDS_REMOUNT = "erofs"
"""What the tests have in their names that mount the file system read-only meanwhile. They run by
themselves: another test leaves a file open, and then the kernel refuses (of ext4 as well)."""

NO_LIMIT_OF_LINKS = {"link::link_count_max"}
"""Asks the C library for the limit, which knows that of a few file systems only."""

RESULT = re.compile(r"^(\S+)\s+(ok|FAILED|skipped)$", re.MULTILINE)


@dataclass
class Outcome:
    """The names of tests, by how they ended; of those that were skipped the reason."""

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)
    output: str = ""

    def add(self, text: str) -> None:
        """Takes what the suite printed; a test that is there already counts as it went now."""
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if (match := RESULT.match(line)) is None:
                continue
            name, result = match.groups()
            self.passed.discard(name)
            self.skipped.pop(name, None)
            if result == "ok":
                self.passed.add(name)
            elif result == "FAILED":
                self.failed.add(name)
            else:
                self.skipped[name] = lines[number + 1].strip()
        self.output += text


def program(name: str) -> tuple[Path, str]:
    """The program of a suite, and why there is none; installs it if it is not there."""
    path = INSTALLED / "bin" / name
    # `cargo install` writes down what it has installed: no older version is taken for this one.
    note = INSTALLED / ".crates.toml"
    wanted = f'"{name} {VERSIONS[name]} '
    if path.exists() and note.exists() and wanted in note.read_text():
        return path, ""
    if shutil.which("cargo") is None:
        return path, f"{name} is not installed, and neither is cargo"
    crate = f"{name}@{VERSIONS[name]}"
    print(f"conformance: installing {crate} into {INSTALLED}", file=sys.stderr)
    # Not optimised: they wait for the file system, and are built in a third of the time. What both
    # stand on is built once, and each crate in one part.
    built = {
        "CARGO_PROFILE_DEV_CODEGEN_UNITS": "1",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_TARGET_DIR": str(INSTALLED / "build"),
    }
    command = ["cargo", "install", "--quiet", "--locked", "--debug"]
    command += ["--root", str(INSTALLED), crate]
    try:
        subprocess.run(
            command,
            env={**os.environ, **built},
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no reason given"])[-1]
        return path, f"{crate} cannot be installed: {last}"
    except subprocess.TimeoutExpired:
        return path, f"{crate} is not installed after {INSTALL_SECONDS} s"
    return path, ""


def run_pjdfstest(directory: Path, *, other: Path | None = None, remount: bool = False) -> Outcome:
    """Runs pjdfstest in a directory.

    Args:
        directory: On the file system; must be empty, and its path of 40 bytes at most.
        other: A directory on another file system, for two tests.
        remount: May the file system be mounted read-only meanwhile? For 13 tests.
    """
    if len(os.fsencode(directory)) > PATH_MAX_BYTES:
        raise RuntimeError(f"{directory}: longer than {PATH_MAX_BYTES} bytes; sockets lie below it")
    path, why = program("pjdfstest")
    if why:
        raise RuntimeError(why)
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "pjdfstest.toml"
        for may_remount in (False, True) if remount else (False,):
            configuration.write_text(
                PJDFSTEST_CONFIGURATION.format(remount=str(may_remount).lower())
            )
            command = [str(path), "-c", str(configuration), "-p", str(directory)]
            if other is not None:
                command += ["-s", str(other)]
            if may_remount:
                command.append(NEEDS_REMOUNT)
            ran = subprocess.run(
                command,
                cwd=directory,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PJDFSTEST_SECONDS,
                check=False,
            )
            before = len(outcome.passed) + len(outcome.failed) + len(outcome.skipped)
            outcome.add(ran.stdout)
            if before == 0 and not outcome.passed:
                raise RuntimeError(f"pjdfstest ran no test: {ran.stdout.strip()}")
    return outcome


def run_fsx(directory: Path, *, operations: int, seed: int) -> str:
    """Runs fsx on files in a directory, and gives what was wrong: nothing, or its last lines."""
    path, why = program("fsx")
    if why:
        raise RuntimeError(why)
    for part, done in enumerate(range(0, operations, FSX_RUN_OPERATIONS)):
        part_seed = seed + FSX_SEEDS * part
        part_operations = min(FSX_RUN_OPERATIONS, operations - done)
        if fault := _run_fsx_once(path, directory, part_operations, part_seed):
            return fault
    return ""


def _run_fsx_once(path: Path, directory: Path, operations: int, seed: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "fsx.toml"
        configuration.write_text(FSX_CONFIGURATION)
        file = directory / f"fsx-{seed}"
        command = [str(path), "-q", "-N", str(operations), "-S", str(seed)]
        command += ["-P", folder, "-f", str(configuration), str(file)]
        ran = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60 + FSX_SECONDS_A_THOUSAND * operations / 1000,
            check=False,
        )
        file.unlink(missing_ok=True)
    if ran.returncode == 0:
        return ""
    last = "\n".join(ran.stdout.strip().splitlines()[-20:])
    return f"seed {seed} ended with {ran.returncode}: {last}"


def main() -> int:
    """Runs both and says how they went."""
    parser = argparse.ArgumentParser(description="pjdfstest and fsx on a mounted file system")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--other", type=Path, help="a directory on another file system")
    parser.add_argument("--remount", action="store_true", help="may be mounted read-only meanwhile")
    parser.add_argument("--operations", type=int, default=20_000, help="of fsx, each seed")
    parser.add_argument("--seeds", type=int, default=1, help="of fsx, from 1 on")
    options = parser.parse_args()
    try:
        return report(options)
    except RuntimeError as error:
        print(f"conformance: error: {error}", file=sys.stderr)
        return 2


def report(options: argparse.Namespace) -> int:
    """Runs both; 1 if anything went wrong."""
    wrong = 0
    if os.geteuid() == 0:
        folder = Path(tempfile.mkdtemp(dir=options.directory, prefix="p-"))
        folder.chmod(0o755)
        outcome = run_pjdfstest(folder, other=options.other, remount=options.remount)
        shutil.rmtree(folder, ignore_errors=True)
        counts = f"{len(outcome.passed)} passed, {len(outcome.failed)} failed"
        print(f"pjdfstest: {counts}, {len(outcome.skipped)} skipped")
        for name in sorted(outcome.failed):
            print(f"  failed: {name}")
        for name, why in sorted(outcome.skipped.items()):
            print(f"  skipped: {name}: {why}")
        wrong += len(outcome.failed)
    else:
        print("pjdfstest: skipped: it needs root")
    for seed in range(1, options.seeds + 1):
        fault = run_fsx(options.directory, operations=options.operations, seed=seed)
        print(f"fsx: {options.operations} operations, seed {seed}: {fault or 'nothing wrong'}")
        wrong += bool(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
