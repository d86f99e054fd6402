"""A file system on its own loop device, recorded by `agewell record`.

Everything here is a context manager, so that an error or Ctrl-C undoes whatever had been done: recording ended,
file system unmounted, loop device detached, image deleted. Nothing is touched but the loop device and the files made here.

A recording fails rather than leave a trace with holes: not one event may be lost.

Needs root, Linux with tracefs and loop devices, e2fsprogs, and agewell in the Python that runs it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


class RecordError(Exception):
    """A recording that cannot start or did not succeed; the text is one complete line."""


def run(command: Sequence[str], **options: object) -> str:
    """Run `command` and return what it printed.

    Raises:
        RecordError: if it cannot be started or fails, with the last line of what it said.
    """
    try:
        done = subprocess.run(  # type: ignore[call-overload]
            command,
            check=False,
            capture_output=True,
            text=True,
            **options,
        )
    except OSError as error:
        raise RecordError(
            f"cannot start {command[0]}: {error.strerror}; is it installed?"
        ) from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()[-1]
        raise RecordError(f"{' '.join(command)} failed with exit status {done.returncode}: {said}")
    return str(done.stdout)


def say(text: str) -> None:
    """One line of progress on stderr."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def check_machine(tools: Sequence[str]) -> None:
    """Refuse to start where a recording cannot work.

    Raises:
        RecordError: without root, or one of `tools`.
    """
    if os.geteuid() != 0:
        raise RecordError("recording needs root (loop device, mount, tracefs): run it with sudo")
    for tool in ("losetup", "mkfs.ext4", "mount", "umount", *tools):
        if shutil.which(tool) is None:
            raise RecordError(f"the program {tool} is not installed, and this recording needs it")


def write_control(path: Path, text: str) -> None:
    """Write to a kernel control file, with its name in the error."""
    try:
        path.write_text(text)
    except OSError as error:
        raise RecordError(f"cannot write '{text}' to {path}: {error.strerror}") from error


def empty_caches(group: Path) -> None:
    """Write out dirty data and forget what the control group of `group` (its `cgroup.procs`) has cached.

    Pages, dentries and inodes are charged to the group that first used them, so that this empties the caches of the
    recorded file system and nobody else's. Memory in use stays, which the kernel reports as incomplete: no error here.
    """
    os.sync()
    force_empty = group.with_name("memory.force_empty")
    with contextlib.suppress(OSError):
        if force_empty.exists():
            force_empty.write_text("0")
        else:
            group.with_name("memory.reclaim").write_text("64G")


@dataclasses.dataclass(frozen=True)
class Target:
    """A mounted file system on a loop device.

    Attributes:
        mount: where it is mounted.
        device: the loop device's name, such as `loop3`.
        sectors: its size in 512-byte sectors.
        facts: geometry, queue and file-system parameters, for the record.
    """

    mount: Path
    device: str
    sectors: int
    facts: dict[str, str]


@contextlib.contextmanager
def loop_file_system(
    work: Path, size_bytes: int, scheduler: str = "mq-deadline"
) -> Iterator[Target]:
    """An ext4 file system of `size_bytes` on a loop device over a new file below `work`.

    Direct I/O between the loop device and its file, so that what leaves the file system reaches a real device instead of
    being cached twice. No lazy initialisation, so that the kernel writes nothing of its own later.
    """
    image = work / "device.img"
    mount = work / "mnt"
    mount.mkdir()
    with contextlib.ExitStack() as undo:
        undo.callback(image.unlink, missing_ok=True)
        run(["fallocate", "-l", str(size_bytes), str(image)])
        loop = run(["losetup", "--find", "--show", "--direct-io=on", str(image)]).strip()
        undo.callback(run, ["losetup", "--detach", loop])
        device = Path(loop).name
        queue = Path(f"/sys/block/{device}/queue")
        write_control(queue / "scheduler", scheduler)
        # Linux's default for disks; a loop device derives its own, larger, from the device below it.
        write_control(queue / "read_ahead_kb", "128")
        options = ["-b", "4096", "-I", "256", "-m", "1"]
        extended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        run(["mkfs.ext4", "-q", "-F", *options, "-E", extended, loop])
        run(["mount", "-t", "ext4", loop, str(mount)])
        undo.callback(unmount, mount)
        facts = {
            "device": f"{device}, a loop device with direct I/O over a file",
            "device_bytes": str(size_bytes),
            "queue": ", ".join(
                f"{name} {(queue / name).read_text().strip()}"
                for name in (
                    "scheduler",
                    "nr_requests",
                    "read_ahead_kb",
                    "max_sectors_kb",
                    "write_cache",
                    "fua",
                )
            ),
            "file_system": f"ext4, mkfs.ext4 {' '.join(options)} -E {extended}",
            "mount_options": next(
                line.split()[3]
                for line in Path("/proc/mounts").read_text().splitlines()
                if line.split()[1] == str(mount)
            ),
        }
        yield Target(mount, device, size_bytes // 512, facts)


def unmount(mount: Path) -> None:
    """Unmount, waiting a little for processes that are just ending."""
    for attempt in range(20):
        try:
            run(["umount", str(mount)])
            return
        except RecordError:
            if attempt == 19:
                raise
            time.sleep(0.5)


@contextlib.contextmanager
def recording(
    target: Target, output: Path, facts: dict[str, str], buffer: str | None
) -> Iterator[dict[str, Any]]:
    """Record the block requests of `target` while the body runs.

    Args:
        target: the device to record.
        output: the trace.
        facts: kept in the trace.
        buffer: the kernel's buffer for each processor, such as `64 MiB`; agewell's default if None.

    Yields:
        What `agewell record` says of the recording, once the body has ended.

    Raises:
        RecordError: if it cannot be recorded, or the kernel lost an event.
    """
    command = [sys.executable, "-m", "agewell", "record", f"/dev/{target.device}"]
    command += ["-o", str(output), "--json", "--quiet", "--size", "1 TB"]
    command += ["--buffer", buffer] if buffer else []
    for name, text in facts.items():
        command += ["--note", f"{name}={text}"]
    # What is recorded is this program; the command says that recording has begun, and waits for the end of its input.
    command += ["--", "sh", "-c", "echo begun >&2; exec cat >/dev/null"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        assert process.stdin
        assert process.stderr
        said = process.stderr.readline()
        if said != "begun\n":
            raise RecordError(said.strip() or "agewell record ended without a word")
        done: dict[str, Any] = {}
        try:
            yield done
        finally:
            out, said = process.communicate()
    if process.returncode != 0:
        raise RecordError(said.strip())
    done.update(json.loads(out)["recording"])
    if done["lost_events"]:
        raise RecordError(said.strip())


@contextlib.contextmanager
def memory_limit(limit_bytes: int) -> Iterator[Path]:
    """A memory control group with a limit, so that a working set does not simply stay in the page cache.

    Yields:
        Its `cgroup.procs` file. Works with cgroup v1 and v2.
    """
    unified = Path("/sys/fs/cgroup/cgroup.controllers")
    version_2 = unified.exists() and "memory" in unified.read_text().split()
    root = Path("/sys/fs/cgroup") if version_2 else Path("/sys/fs/cgroup/memory")
    group = root / f"agewell-record-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise RecordError(
            f"cannot make a memory control group at {group}: {error.strerror}"
        ) from error
    try:
        write_control(
            group / ("memory.max" if version_2 else "memory.limit_in_bytes"), str(limit_bytes)
        )
        yield group / "cgroup.procs"
    finally:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.2)


@contextlib.contextmanager
def child(
    command: Sequence[str], group: Path | None = None, **options: object
) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a session of its own, and in the control group whose `cgroup.procs` is `group`.

    Whatever of that session is left when the body ends is stopped.
    """
    if group is not None:
        # The shell enters the group before it becomes the command, so that every page is charged from the first.
        command = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group), *command]
    process = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_child(command: Sequence[str], group: Path | None = None, **options: object) -> None:
    """Run a child to its end, as [`child`].

    Raises:
        RecordError: if it fails.
    """
    with child(command, group, **options) as process:
        status = process.wait()
    if status != 0:
        raise RecordError(f"{' '.join(map(str, command))} failed with exit status {status}")
