"""The command line, `agewell`.

Exit status: 0 done, 1 the run failed, 2 bad usage or bad input, 130 interrupted, 143 terminated. An
error is one line on standard error: what is wrong, where, and what to do. Commands raise
`InputError` and `RunError`; `main` turns them into that line, so that no command prints errors or
exits by itself.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group_from_info
from typer.models import TyperInfo

from agewell.errors import AgewellError, InputError, ProgramFailedError
from agewell.version import __version__, build

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
_SIGNAL_STATUS = 128
"""What shells add to the number of the signal that ended a program."""
EXIT_INTERRUPTED = _SIGNAL_STATUS + signal.SIGINT

_NAME_CHARACTERS_MAX = 200
"""What is shown of a text that cannot be used; chosen by us: a line or two."""

GROUPS = {
    "Measure": {
        "score": "How well files lie, and whether reorganising pays.",
        "snapshot": "Record where every file of a file system lies.",
        "bench": "Measure a file system, real or simulated.",
        "record": "Record the block requests of a live system.",
        "probe": "Measure a disk by reading it: its device file.",
    },
    "Decide": {
        "advise": "What to choose for a workload and a disk.",
        "compare": "Every layout on the same workloads and disks.",
        "results": "Ask runs in SQL: what they measured.",
        "diff": "Hold runs against others, pair by pair.",
        "report": "Write an HTML report on runs, with every plot.",
    },
    "Act": {
        "reorganise": "Lay files of a mounted file system as they are read.",
        "mkfs": "Make an adaptive file system.",
        "mount": "Mount an adaptive file system.",
        "umount": "Unmount it, and wait until all is on the medium.",
        "fsck": "Check an adaptive file system, and repair it.",
        "fs": "Look into a mounted file system of agewell.",
        "store": "Look into, check and salvage a store of blocks.",
    },
    "Simulate": {
        "run": "Run one simulation and print its metrics.",
        "sweep": "Run an experiment for many values: one table.",
        "schema": "What an experiment may say, as a JSON Schema.",
        "devices": "List, show and import devices.",
    },
    "Age": {
        "age": "Age a file system, real or simulated.",
        "workload": "Make aging workloads from what a system shows.",
    },
    "Traces": {
        "trace": "Look into traces, and make traces from traces.",
    },
    "Reproduce": {
        "reproduce": "Compute published figures again, beside the paper's.",
        "validate": "Hold a device model against measured traces.",
    },
}
"""The commands by what they are for, in the order of `agewell --help`, and what it says of them; a
command is the application of the module of `cli` that is named after it, which need not be loaded
to be listed."""

COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
"""Every command, and what `agewell --help` says of it."""


class _Commands(TyperGroup):
    """The commands, each loaded when it is asked for: most command lines need one."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (of the base class)
        """Every command, loaded or not."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The command of that name, or None."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module = importlib.import_module(f"agewell.cli.{cmd_name}")
            loaded = get_group_from_info(
                TyperInfo(module.app),
                pretty_exceptions_short=False,
                suggest_commands=self.suggest_commands,
                rich_markup_mode=self.rich_markup_mode,
            )
            self.commands[cmd_name] = loaded.commands[cmd_name]
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Every command with a line on it, by what they are for."""
        widest = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), of) for name, of in commands.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """As the base class does; for a name that is unknown it looks among all of them."""
        if args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="agewell",
    cls=_Commands,
    help=(
        "agewell makes file systems age well: replay real workloads over modelled disks and "
        "layout policies, and see which policy wins, by how much, and why."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"agewell {__version__} (build {build()})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _complain(context: str, message: str) -> None:
    sys.stderr.write(f"{context}: error: {_one_line(message)}\n")
    sys.stderr.flush()


def _run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit status; user errors are already reported.

    Raises:
        ProgramFailedError: A program that it ran has failed, and has had its say.
    """
    try:
        status = app(args=list(arguments), prog_name="agewell", standalone_mode=False)
    except typer.TyperException as error:
        _complain_of_usage(error)
        return EXIT_BAD_INPUT
    except UnicodeEncodeError as error:
        # Every other name of a file goes through as it is.
        name = ascii(error.object[:_NAME_CHARACTERS_MAX])
        _complain("agewell", f"{name}: is not UTF-8 text, which is needed here")
        return EXIT_BAD_INPUT
    except AgewellError as error:
        _complain("agewell", str(error))
        return EXIT_BAD_INPUT if isinstance(error, InputError) else EXIT_FAILED
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except SystemExit:
        # Without its standalone mode typer leaves by itself in one case only: the reader of
        # standard output (`| head`) has gone, and there is no one left to notify.
        return EXIT_DONE
    return status if isinstance(status, int) else EXIT_DONE


def _complain_of_usage(error: typer.TyperException) -> None:
    message = error.format_message()
    if message.startswith("Usage:"):
        # A group without its command: the help is the message.
        sys.stderr.write(message + "\n")
        return
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "agewell"
    _complain(path, f"{message.rstrip('.')}; see '{path} --help'")


def _have_streams() -> bool:
    """Make sure of the standard streams; whether there is an output to write to.

    A program may be started with any of them closed (`>&-`). The first file that it opens then
    takes the place of the stream, and gets what was meant for that.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    closed = sys.stdout is None
    if closed:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if closed:
        _complain("agewell", "standard output is closed; send it to a file or to /dev/null")
        return False
    # Names of files are any bytes, and go out as they came in.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")
    return True


@contextmanager
def _heeding_termination() -> Iterator[list[int]]:
    """End in good order on SIGTERM and SIGHUP; the second one of a kind ends the process at once.

    Like an interrupt from the keyboard they unwind what is under way, so that no half-written file
    and no worker stays behind. A signal that is ignored, as SIGHUP below `nohup`, stays so.

    Yields:
        The signals that came.
    """
    came: list[int] = []

    def unwind(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        came.append(number)
        raise KeyboardInterrupt

    heeded: list[signal.Signals] = []
    # Only the main thread may say what becomes of a signal.
    if threading.current_thread() is threading.main_thread():
        heeded = [
            number
            for number in (signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) is signal.SIG_DFL
        ]
    for number in heeded:
        signal.signal(number, unwind)
    try:
        yield came
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `agewell` program.

    Args:
        arguments: Command line without the program's name; `sys.argv` by default.

    Raises:
        SystemExit: Always, with the exit status.
    """
    if not _have_streams():
        sys.exit(EXIT_FAILED)
    ended = None
    try:
        with _heeding_termination() as signals:
            try:
                status = _run(sys.argv[1:] if arguments is None else arguments)
            except ProgramFailedError as failed:
                # Also a status of 130 is then the program's, and no interrupt of ours.
                status = failed.status
            else:
                # An exception does not say which signal it was, and typer keeps none.
                if signals and status == EXIT_INTERRUPTED:
                    status = _SIGNAL_STATUS + signals[0]
                if status == EXIT_INTERRUPTED:
                    ended = "interrupted"
                elif status > _SIGNAL_STATUS:
                    ended = "terminated"
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has gone; there is no one to notify. Python would complain again
        # when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_DONE
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _complain("agewell", f"cannot access{where}: {error.strerror or error}")
        status = EXIT_FAILED
    if ended is not None:
        _complain("agewell", ended)
    sys.exit(status)
