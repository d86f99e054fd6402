"""`agewell record`: the block requests of a live system, as a trace."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Self

import typer

from agewell import _agewell
from agewell.cli.options import JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.cli.trace import print_info
from agewell.errors import ProgramFailedError
from agewell.values.documents import document

app = typer.Typer()

SIZE = "2 GB"
"""What a recording becomes at most unless said otherwise; chosen by us: 150 million requests."""

GRACE_SECONDS = 5.0
"""How long a command may take to end after Ctrl-C, which reaches it too; chosen by us."""


@app.command("record")
def record(
    target: Annotated[
        Path | None,
        typer.Argument(metavar="DEVICE|PATH", help="A block device, or a path on one."),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND ...]",
            help="Record while this runs; its exit status becomes that of agewell.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The trace, Parquet.")
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="Stop after this time, such as 10min or 1h or 7d."
        ),
    ] = None,
    size: Annotated[
        str, typer.Option("--size", metavar="SIZE", help="Stop when the trace is as large as this.")
    ] = SIZE,
    buffer: Annotated[
        str | None,
        typer.Option(
            "--buffer",
            metavar="SIZE",
            help=(
                "The kernel's buffer for each processor. Default: 16 MiB, which holds a second of "
                "80,000 requests, but all together at most a sixteenth of the memory."
            ),
        ),
    ] = None,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous", help="Keep no names and numbers of processes, and no name of the host."
        ),
    ] = False,
    files: Annotated[
        bool,
        typer.Option(
            "--files",
            help=(
                "Name the file of each request: those below PATH, or of the file system on DEVICE, "
                "looked up before and after the recording."
            ),
        ),
    ] = False,
    notes: Annotated[
        list[str] | None,
        typer.Option("--note", metavar="NAME=TEXT", help="Keep this in the trace; repeatable."),
    ] = None,
    recover: Annotated[
        bool,
        typer.Option("--recover", help="Make a trace of what a killed recording left of FILE."),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Record the block requests of a disk: what was asked of it, when, and how long it took.

    The disk is recorded with all its partitions, until Ctrl-C, the end of COMMAND, --for or --size.
    Needs root, and Linux 4.15 or later with tracefs; nothing is installed, and no one else's
    tracing is touched. Contents and names of files are not recorded.

    Example: agewell record /srv -o srv.parquet --for 1h
    """
    if output is None:
        raise _agewell.InputError("agewell record: name the trace with -o FILE")
    if recover:
        if target is not None:
            raise _agewell.InputError("agewell record: --recover takes -o FILE and nothing else")
        _recover(output, as_json=as_json, quiet=quiet)
        return
    if files and anonymous:
        raise _agewell.InputError(
            "agewell record: --files names files, which --anonymous forbids; leave one of them out"
        )
    options: dict[str, Any] = {
        "time": duration,
        "size": size,
        "buffer": buffer,
        "anonymous": anonymous,
        "files": files,
        "notes": json.dumps(_notes(notes or [])),
    }
    status = _record(target, command or [], output, options, as_json=as_json, quiet=quiet)
    if status:
        # Of a signal that ended the recording, or of the program that was recorded.
        if not command:
            raise typer.Exit(status)
        raise ProgramFailedError(status)


def _record(
    target: Path | None,
    command: Sequence[str],
    output: Path,
    options: dict[str, Any],
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Record and say what was recorded; the exit status."""
    if target is None:
        raise _agewell.InputError(
            "agewell record: name what is to be recorded, a block device or a path on one"
        )
    if command and shutil.which(command[0]) is None:
        raise _agewell.InputError(f"{command[0]}: there is no such program; check its name")
    with _Session(command) as session:
        try:
            done = _recorded(target, output, options, session, quiet=quiet)
        except KeyboardInterrupt:
            if Path(f"{output}.recording.footer").exists():
                note(f"agewell: {output}.recording keeps what is finished; see --recover")
            raise
        status = session.status()
    info = json.loads(_agewell.trace_info(output)) if done["requests"] else None
    if as_json:
        fields = {"recording": done, "trace": info, "command_status": status}
        print_json(document("record", fields))
    elif not quiet:
        _print_done(done, output)
        if info is not None:
            print_info(info)
    _warn(done)
    return status


def _recorded(
    target: Path, output: Path, options: dict[str, Any], session: _Session, *, quiet: bool
) -> dict[str, Any]:
    """Record, showing how it goes."""
    with progress("recording", quiet=quiet) as report:

        def look(text: str) -> bool:
            going = json.loads(text)
            if going["phase"] != "recording":
                report(None, f"{PHASES[going['phase']]}, {going['files']:,} files")
                session.require()
                return True
            if not session.began and going["records_itself"]:
                note(
                    f"agewell: warning: {output} is on the disk that is recorded, and its own "
                    "writes will be in it; better name a file on another disk"
                )
            report(None, _going_text(going))
            return session.goes_on()

        done: dict[str, Any] = json.loads(_agewell.record(target, output, look, **options))
    return done


def _notes(assignments: Sequence[str]) -> dict[str, str]:
    notes = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise _agewell.InputError(f"--note {assignment}: write NAME=TEXT")
        notes[name.strip()] = text.strip()
    return notes


def _recover(output: Path, *, as_json: bool, quiet: bool) -> None:
    done = json.loads(_agewell.record_recover(output))
    if as_json:
        print_json(document("record-recover", done))
    elif not quiet:
        note(f"{output}: {done['rows']:,} requests, {done['bytes']:,} bytes")


class _Session:
    """The command that is recorded, and the signals that end a recording.

    The first Ctrl-C, SIGTERM or SIGHUP ends the recording in good order; another one gives it up.
    A command gets Ctrl-C from the terminal itself, and the others from here; it is recorded to its
    end.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._signal: int | None = None
        self._end_by_seconds: float | None = None
        self._before: dict[int, Any] = {}
        self.began = False

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # What is ignored, as SIGHUP below `nohup`, stays so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_failure: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self._signal is not None:
            raise KeyboardInterrupt
        self._signal = number
        self._end_by_seconds = time.monotonic() + GRACE_SECONDS
        if number != signal.SIGINT and self._process is not None:
            self._process.send_signal(number)

    def goes_on(self) -> bool:
        """Start the command when recording has begun; then whether it or the user goes on."""
        if not self.began:
            self.began = True
            if self._command:
                try:
                    self._process = subprocess.Popen(self._command)
                except OSError as error:
                    raise _agewell.InputError(
                        f"{self._command[0]}: cannot be started: {error.strerror}"
                    ) from error
            return True
        if self._process is None:
            return self._signal is None
        if self._end_by_seconds is not None and time.monotonic() > self._end_by_seconds:
            self._process.kill()
        return self._process.poll() is None

    def require(self) -> None:
        """Give up what precedes the recording if the user no longer wants it.

        Raises:
            KeyboardInterrupt: A signal came.
        """
        if not self.began and self._signal is not None:
            raise KeyboardInterrupt

    def status(self) -> int:
        """The exit status: the command's, or of the signal that asked for an end but Ctrl-C."""
        if self._process is None:
            return 128 + self._signal if self._signal not in (None, signal.SIGINT) else 0
        status = self._process.wait()
        return 128 - status if status < 0 else status


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g} ms"


def _going_text(going: dict[str, Any]) -> str:
    return (
        f"{going['requests_per_second']:,.0f} requests/s, "
        f"{going['bytes_per_second'] / 1e6:,.1f} MB/s, p50 {_milliseconds(going['p50_ms'])}, "
        f"p99 {_milliseconds(going['p99_ms'])}, {going['lost_events']:,} events lost; "
        f"{going['requests']:,} requests, {going['trace_bytes'] / 1e6:,.1f} MB"
    )


PHASES = {
    "before": "looking where files lie",
    "behind": "looking where files lie now",
    "naming": "naming the files of requests",
}
ENDINGS = {"time": "the time was over", "size": "it reached its size", "stopped": "stopped"}


def _print_done(done: dict[str, Any], output: Path) -> None:
    rows = [
        ("recorded", f"{done['device']}, {done['seconds']:,.1f} s ({ENDINGS[done['ended_by']]})"),
        ("written", f"{output}, {done['requests']:,} requests, {done['trace_bytes']:,} bytes"),
        ("lost", f"{done['lost_events']:,} events of {done['events'] + done['lost_events']:,}"),
        (
            "cost",
            f"{_microseconds(done)} us of the processor to read and pair an event; buffers of "
            f"{done['buffer_bytes'] / 2**20:,.3g} MiB a processor",
        ),
    ]
    if done["named_sectors"] is not None:
        named, moved = done["named_sectors"]
        share = 100 * named / max(moved, 1)
        rows.append(("files", f"{share:.1f} % of the sectors are of known files"))
    print_table(("", ""), rows)
    print_table(("completed", ">recorded", ">kernel counted", ""), _compared(done))


def _microseconds(done: dict[str, Any]) -> str:
    return f"{done['reader_cpu_seconds'] / max(done['events'], 1) * 1e6:.2f}"


def _compared(done: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """What was recorded beside what the kernel has counted itself."""
    kernel = done["kernel"]
    for key, recorded in done["recorded"].items():
        if not recorded and not (kernel or {}).get(key):
            continue
        words = key.replace("_", " ")
        if kernel is None:
            yield words, f"{recorded:,}", "-", "the kernel keeps no counters (queue/iostats)"
            continue
        empty = done["empty_writes"] if key == "writes" else 0
        difference = recorded + empty - kernel[key]
        remark = "" if difference == 0 else f"{difference:+,}"
        if empty:
            remark = f"{empty:,} empty ones carried a flush" + (remark and f"; {remark}")
        yield words, f"{recorded:,}", f"{kernel[key]:,}", remark


def _larger_buffer(done: dict[str, Any]) -> str:
    """What would have held the busiest second, and is more than there was."""
    wanted = max(2 * done["buffer_bytes"], done["busiest_second_bytes"])
    return f"{-(-wanted // 2**20)} MiB"


def _warn(done: dict[str, Any]) -> None:
    if done["lost_events"]:
        when = f": {done['lost_when']}" if done["lost_when"] else ""
        note(
            f"agewell: warning: the kernel lost {done['lost_events']:,} events{when}; requests are "
            "missing there or half seen; record again with a larger --buffer, such as "
            f"'{_larger_buffer(done)}'"
        )
    if done["late_events"]:
        note(f"agewell: warning: {done['late_events']:,} events came late, out of their order")
    if not done["requests"]:
        note("agewell: warning: not one request was made of the disk; the trace is empty")
