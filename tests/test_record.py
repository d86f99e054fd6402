"""`agewell record` on loop devices of its own; skipped without root, tracefs or loop devices."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from agewell import _agewell
from agewell.errors import InputError
from conftest import COMMAND_SECONDS, heed_interrupts

Agewell = Callable[..., "subprocess.CompletedProcess[str]"]
MEBIBYTE = 1 << 20
DEVICE_BYTES = 64 * MEBIBYTE
BLOCK_BYTES = 4096
SECTOR_BYTES = 512

# What asks a device for blocks at random places: reads, and writes of one in four.
ASKER = """
import mmap, os, random, sys
device, count, writes, seed = sys.argv[1:5]
count, writes = int(count), writes == "writes"
draw = random.Random(int(seed))
file = os.open(device, os.O_RDWR | os.O_DIRECT)
blocks = os.lseek(file, 0, os.SEEK_END) // 4096
page = mmap.mmap(-1, 4096)
for number in range(count):
    place = draw.randrange(blocks) * 4096
    if writes and number % 4 == 0:
        os.pwrite(file, page, place)
    else:
        os.preadv(file, [page], place)
"""


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def device() -> Iterator[str]:
    """A loop device over a file in memory or on disk."""
    if os.geteuid() != 0:
        pytest.skip("recording needs root")
    memory = Path("/dev/shm")  # noqa: S108 (a file in memory makes the device quick)
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        image = Path(folder) / "image"
        with image.open("wb") as file:
            file.truncate(DEVICE_BYTES)
        try:
            loop = _run("losetup", "--find", "--show", str(image))
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no loop devices here: {error}")
        try:
            _skip_without_tracing(loop, Path(folder))
            yield loop
        finally:
            _run("losetup", "--detach", loop)


@pytest.fixture
def tracing(device: str, tmp_path: Path) -> Iterator[Path]:
    """Where the kernel keeps the tracing instances."""
    folder = tmp_path / "tracing"
    folder.mkdir()
    _run("mount", "-t", "tracefs", "none", str(folder))
    try:
        yield folder / "instances"
    finally:
        _run("umount", str(folder))


def _skip_without_tracing(loop: str, folder: Path) -> None:
    try:
        _agewell.record(loop, folder / "probe.parquet", lambda _text: False)
    except InputError as error:
        pytest.skip(f"no tracing here: {error}")
    (folder / "probe.parquet").unlink()


def _draws(seed: int) -> random.Random:
    """The numbers that the program that asks draws."""
    return random.Random(seed)  # noqa: S311 (the same places every time)


def _asker(device: str, count: int, kind: str = "writes", seed: int = 1) -> list[str]:
    return [sys.executable, "-c", ASKER, device, str(count), kind, str(seed)]


def _recorded(output: str) -> dict[str, Any]:
    recording: dict[str, Any] = json.loads(output)["recording"]
    return recording


def _instances(tracing: Path, process: int) -> list[Path]:
    """The tracing instances of a recorder."""
    return list(tracing.glob(f"agewell-record-{process}-*"))


def _is_tracing(tracing: Path, process: int) -> bool:
    # The kernel makes an instance with tracing on, and no event in it yet.
    return any(
        (instance / "set_event").read_text() and (instance / "tracing_on").read_text() == "1\n"
        for instance in _instances(tracing, process)
    )


def test_every_request_is_recorded(agewell: Agewell, device: str, tmp_path: Path) -> None:
    """As many requests and sectors as were asked for and as the kernel counted, at their places."""
    count = 20_000
    done = agewell("record", device, "-o", "x.parquet", "--json", "--", *_asker(device, count))
    recording = _recorded(done.stdout)
    assert recording["lost_events"] == recording["overrun"] == 0
    assert recording["recorded"] == recording["kernel"]
    assert recording["kernel"]["reads"] == count * 3 // 4
    assert recording["kernel"]["writes"] == count // 4
    assert recording["cut_requests"] == recording["late_events"] == 0
    table = pq.read_table(tmp_path / "x.parquet").to_pydict()
    draw = _draws(1)
    blocks = DEVICE_BYTES // BLOCK_BYTES
    places = [draw.randrange(blocks) * (BLOCK_BYTES // SECTOR_BYTES) for _ in range(count)]
    assert table["sector"] == places
    assert table["operation"] == [int(number % 4 == 0) for number in range(count)]
    times = zip(table["enqueue_ns"], table["start_ns"], table["finish_ns"], strict=True)
    assert all(enqueue <= start < finish for enqueue, start, finish in times)
    assert not (tmp_path / "x.parquet.recording").exists()


def test_a_small_buffer_loses_what_the_kernel_says(
    agewell: Agewell, device: str, tmp_path: Path
) -> None:
    """Events read and lost are together those of every request; where is in the trace and shown."""
    count = 60_000
    script = _asker(device, count // 3, "reads")
    # The recorder sleeps while the buffer overruns: it is stopped and goes on.
    stopping = (
        "import os, signal, subprocess, sys, time; parent = os.getppid(); "
        "os.kill(parent, signal.SIGSTOP); status = subprocess.call(sys.argv[1:]); "
        "os.kill(parent, signal.SIGCONT); time.sleep(0.2); "
        "status = status or subprocess.call(sys.argv[1:]); sys.exit(status)"
    )
    done = agewell(
        *("record", device, "-o", "x.parquet", "--json", "--buffer", "64 KiB", "--"),
        *(sys.executable, "-c", stopping, *script),
    )
    recording = _recorded(done.stdout)
    kernel = recording["kernel"]
    assert kernel["reads"] == count // 3 * 2
    assert recording["lost_events"] == recording["overrun"] > 0
    # Each request was queued, issued and completed.
    assert recording["events"] + recording["lost_events"] == 3 * kernel["reads"]
    assert f"{recording['lost_events']:,} events" in done.stderr
    metadata = pq.read_metadata(tmp_path / "x.parquet").metadata
    described = json.loads(metadata[b"agewell.metadata"])
    assert described["header"]["lost_events"] == str(recording["lost_events"])
    assert described["header"]["lost_events_when"] == recording["lost_when"] != ""
    assert (
        described["warnings"]["events were lost by the kernel while it traced"]
        == (recording["lost_events"])
    )


def _start(
    device: str, tmp_path: Path, *options: str, group_seconds: float | None = None
) -> subprocess.Popen[str]:
    """A recorder that says how many requests it has after each look, one a line."""
    code = (
        "import json, sys\n"
        "from agewell import _agewell\n"
        "def look(text):\n"
        "    print(json.loads(text)['requests'], flush=True)\n"
        "    return True\n"
        f"_agewell.record({device!r}, 'x.parquet', look, group_seconds={group_seconds})\n"
    )
    command = [sys.executable, "-c", code]
    if options:
        command = [sys.executable, "-m", "agewell", "record", device, "-o", "x.parquet", *options]
    return subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_recording_keeps_all_but_its_last_row_group(
    agewell: Agewell, device: str, tracing: Path, tmp_path: Path, seed: int
) -> None:
    """SIGKILL at a random moment: what is recovered is what was asked, in order, from the start."""
    group_seconds = 0.2
    recorder = _start(device, tmp_path, group_seconds=group_seconds)
    assert recorder.stdout is not None
    recorder.stdout.readline()
    asker = subprocess.Popen(_asker(device, 10_000_000, "writes", seed))
    try:
        time.sleep(1.0 + _draws(seed).random())
        recorder.kill()
        lines = recorder.communicate()[0].split()
    finally:
        asker.kill()
        asker.wait()
    assert not (tmp_path / "x.parquet").exists()
    again = agewell("record", device, "-o", "x.parquet", "--for", "1s", check=False)
    assert again.returncode == 2
    assert "--recover" in again.stderr
    rows = json.loads(agewell("record", "--recover", "-o", "x.parquet", "--json").stdout)["rows"]
    table = pq.read_table(tmp_path / "x.parquet", columns=["sector"])
    assert table.num_rows == rows > 0
    # All that had been paired a group and some rounds before the kill; rounds are 0.1 s.
    assert rows >= int(lines[-1 - round((2 * group_seconds + 0.5) / 0.1)])
    draw = _draws(seed)
    blocks = DEVICE_BYTES // BLOCK_BYTES
    places = [draw.randrange(blocks) * (BLOCK_BYTES // SECTOR_BYTES) for _ in range(rows)]
    assert table["sector"].to_pylist() == places
    agewell("trace", "info", "x.parquet")
    # The tracing instance of the killed one is removed by the next.
    agewell("record", device, "-o", "y.parquet", "--for", "0.1s", "-q")
    assert _instances(tracing, recorder.pid) == []


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_signal_ends_a_recording_in_good_order(
    device: str, tracing: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """Ctrl-C is how recordings end; the trace is whole after it."""
    recorder = _start(device, tmp_path, "--quiet")
    while not _is_tracing(tracing, recorder.pid):
        assert recorder.poll() is None
        time.sleep(0.01)
    subprocess.run(_asker(device, 500), check=True)
    recorder.send_signal(number)
    _, said = recorder.communicate(timeout=COMMAND_SECONDS)
    assert recorder.returncode == status, said
    assert _instances(tracing, recorder.pid) == []
    assert pq.read_metadata(tmp_path / "x.parquet").num_rows == 500


def test_a_full_disk_keeps_what_was_recorded(agewell: Agewell, device: str, tmp_path: Path) -> None:
    """The error says how to have it."""
    small = tmp_path / "small"
    small.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", "size=200k", "none", str(small))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no mounts here: {error}")
    asker = subprocess.Popen(_asker(device, 10_000_000))
    try:
        with pytest.raises(_agewell.AgewellError, match="--recover"):
            _agewell.record(device, small / "x.parquet", lambda _text: True, group_seconds=0.1)
        rows = json.loads(
            agewell("record", "--recover", "-o", small / "x.parquet", "--json").stdout
        )
        assert pq.read_metadata(small / "x.parquet").num_rows == rows["rows"] > 0
    finally:
        asker.kill()
        asker.wait()
        _run("umount", str(small))


def test_a_partition_is_recorded_with_its_disk(device: str, tmp_path: Path) -> None:
    """A piece names the partition, a request the disk: they are one, at its place there."""
    first, sectors = 2048, 65_536
    try:
        # A master boot record with one entry: kind, and first sector and length behind it.
        entry = struct.pack("<4xB3xII", 0x83, first, sectors)
        Path(device).write_bytes(entry.rjust(446 + 16, b"\0") + bytes(48) + b"\x55\xaa")
        _run("partx", "--add", device)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no partitions here: {error}")
    partition = f"{device}p1"
    asker: list[subprocess.Popen[bytes]] = []

    def look(_text: str) -> bool:
        if not asker:
            asker.append(subprocess.Popen(_asker(partition, 1000)))
        return asker[0].poll() is None

    try:
        if not Path(partition).is_block_device():
            pytest.skip("no device files of partitions here")
        recording = json.loads(_agewell.record(partition, tmp_path / "x.parquet", look))
    finally:
        subprocess.run(["partx", "--delete", device], check=False, capture_output=True)
    table = pq.read_table(tmp_path / "x.parquet").to_pydict()
    draw = _draws(1)
    places = [draw.randrange(sectors // 8) * 8 + first for _ in range(1000)]
    assert table["sector"] == places
    assert recording["device"] == Path(device).name
    waits = [
        start - enqueue
        for enqueue, start in zip(table["enqueue_ns"], table["start_ns"], strict=True)
    ]
    assert min(waits) > 0, "the time at which the partition's piece was queued"
    described = json.loads(pq.read_metadata(tmp_path / "x.parquet").metadata[b"agewell.metadata"])
    assert described["devices"][0]["partitions"][0]["first_byte"] == first * SECTOR_BYTES


def test_the_status_of_the_command_is_passed_on(agewell: Agewell, device: str) -> None:
    """Also that of a signal which ended it, and nothing is called interrupted that was not."""
    for script, status in (("exit 7", 7), ("kill -KILL $$", 137), ("exit 130", 130)):
        done = agewell("record", device, "-o", "x.parquet", "--", "sh", "-c", script, check=False)
        assert done.returncode == status
        assert "interrupted" not in done.stderr
        assert "terminated" not in done.stderr


def test_it_ends_by_time_and_by_size(agewell: Agewell, device: str) -> None:
    """`--for` and `--size`."""
    done = agewell("record", device, "-o", "x.parquet", "--json", "--for", "300 ms")
    assert _recorded(done.stdout)["ended_by"] == "time"
    asker = subprocess.Popen(_asker(device, 10_000_000))
    try:
        done = agewell("record", device, "-o", "x.parquet", "--json", "--size", "100 kB")
    finally:
        asker.kill()
        asker.wait()
    recording = _recorded(done.stdout)
    assert recording["ended_by"] == "size"
    assert recording["trace_bytes"] > 50_000


def test_an_anonymous_recording_names_no_one(agewell: Agewell, device: str, tmp_path: Path) -> None:
    """Without it processes have their names; with it not even their numbers."""
    ask = _asker(device, 50)
    described = {}
    for options in ((), ("--anonymous",)):
        agewell("record", device, "-o", "x.parquet", "-q", *options, "--note", "a=b", "--", *ask)
        metadata = pq.read_metadata(tmp_path / "x.parquet").metadata[b"agewell.metadata"]
        described[options] = (
            json.loads(metadata),
            set(pq.read_table(tmp_path / "x.parquet")["client"].to_pylist()),
        )
    named, anonymous = described[()], described[("--anonymous",)]
    assert any("python" in name for name in named[0]["clients"].values())
    assert {str(client) for client in named[1]} <= set(named[0]["clients"])
    assert "clients" not in anonymous[0]
    assert "host" not in anonymous[0]["header"]
    assert anonymous[1] == {1}
    assert anonymous[0]["header"]["a"] == "b"


@pytest.fixture
def mounted(device: str) -> Iterator[Path]:
    """An ext4 file system with forty files of four sizes, none of them in a cache."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        try:
            _run("mkfs.ext4", "-q", "-b", "4096", "-E", "lazy_itable_init=0", device)
            _run("mount", device, str(top))
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no ext4 here: {error}")
        try:
            for number in range(40):
                (top / f"d{number % 3}").mkdir(exist_ok=True)
                content = _draws(number).randbytes(1000 * (1 + number % 4 * 99))
                (top / f"d{number % 3}" / f"f{number}").write_bytes(content)
            _run("umount", str(top))
            _run("mount", device, str(top))
            yield top
        finally:
            _run("umount", str(top))


def test_requests_name_their_files(agewell: Agewell, mounted: Path, tmp_path: Path) -> None:
    """A cold read of every file, against the bytes that were read; a new file is named too."""
    script = (
        "import os, sys\n"
        "top = sys.argv[1]\n"
        "for folder, _, names in sorted(os.walk(top)):\n"
        "    for name in sorted(names):\n"
        "        open(os.path.join(folder, name), 'rb').read()\n"
        "with open(os.path.join(top, 'new'), 'wb') as file:\n"
        "    file.write(os.urandom(300_000))\n"
        "    os.fsync(file.fileno())\n"
    )
    sizes = {
        str(path.relative_to(mounted)): path.stat().st_size
        for path in mounted.rglob("f*")
        if path.is_file()
    }
    done = agewell(
        *("record", mounted, "-o", "x.parquet", "--json", "--files", "--"),
        *(sys.executable, "-c", script, mounted),
    )
    table = pq.read_table(tmp_path / "x.parquet")
    reads = table.filter(pc.equal(table["operation"], 0)).to_pydict()
    found: Counter[str] = Counter()
    for path, sectors in zip(reads["path"], reads["file_sectors"], strict=True):
        if path is not None:
            found[path] += sectors * SECTOR_BYTES
    assert {path: found[path] for path in sizes} == {
        path: -(-size // BLOCK_BYTES) * BLOCK_BYTES for path, size in sizes.items()
    }
    writes = table.filter(pc.equal(table["operation"], 1)).to_pydict()
    new = [
        (offset, sectors)
        for path, offset, sectors in zip(
            writes["path"], writes["file_offset"], writes["file_sectors"], strict=True
        )
        if path == "new"
    ]
    assert min(offset for offset, _ in new) == 0
    assert sum(sectors for _, sectors in new) * SECTOR_BYTES == -(-300_000 // 4096) * 4096
    files = json.loads(done.stdout)["trace"]["files"]
    assert len(files["busiest"]) == 10
    assert files["file_sectors"] == sum(filter(None, table["file_sectors"].to_pylist()))
    assert "busiest of" in agewell("trace", "info", "x.parquet").stdout


def test_a_recording_runs_over_a_modelled_disk(
    agewell: Agewell, device: str, tmp_path: Path
) -> None:
    """What was recorded is a workload like any other: for `run` and for `advise`."""
    agewell("record", device, "-o", "x.parquet", "-q", "--", *_asker(device, 2000))
    (tmp_path / "x.toml").write_text(
        '[workload]\nkind = "trace"\npath = "x.parquet"\nreplay = "open"\n'
        '[device]\nmodel = "hp-c2200a"\n'
    )
    result = json.loads(agewell("run", "x.toml", "--json").stdout)
    assert result["metrics"]["requests"] == 2000
    arguments = ("--workload", "x.parquet", "--device", "hp-97560", "--out", "out", "--json")
    advice = json.loads(agewell("advise", *arguments).stdout)
    assert "x.parquet" in json.dumps(advice)


def test_bad_input_is_one_line(agewell: Agewell, tmp_path: Path) -> None:
    """What cannot be recorded is refused before anything is made."""
    for arguments, expected in (
        (("/proc", "-o", "x.parquet"), "on no block device (proc)"),
        (("/nowhere", "-o", "x.parquet"), "No such file"),
        (("/",), "-o FILE"),
        (("-o", "x.parquet"), "name what is to be recorded"),
        (("/", "-o", "x.parquet", "--for", "soon"), "--for"),
        (("/", "-o", "x.parquet", "--size", "7"), "--size"),
        (("/", "-o", "x.parquet", "--note", "a"), "NAME=TEXT"),
        (("/", "-o", "x.parquet", "--files", "--anonymous"), "leave one of them out"),
        (("/", "-o", "x.parquet", "--", "no-such-program"), "there is no such program"),
        (("--recover", "-o", "x.parquet"), "no such recording"),
    ):
        done = agewell("record", *arguments, check=False)
        assert done.returncode == 2, done.stderr
        assert expected in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
