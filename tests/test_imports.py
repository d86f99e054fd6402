"""Commands that compute little load little: importing takes longer than their work.

What is loaded is counted, not timed.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from agewell.cli import COMMANDS, terminal

HEAVY = ("PIL", "jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "rich")
"""Packages of which each takes tens of milliseconds to load."""

_SCRIPT = """\
import sys
from agewell.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    status = end.code
loaded = sorted({name.partition(".")[0] for name in sys.modules})
sys.stderr.write("\\n" + str(status) + " " + ",".join(loaded) + "\\n")
"""


def _loaded(*arguments: str, folder: Path) -> set[str]:
    """The packages that a command has loaded when it is done."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    status, packages = done.stderr.splitlines()[-1].split(" ", maxsplit=1)
    assert status == "0", done.stderr
    return set(packages.split(","))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        *((command, "--help") for command in COMMANDS),
        ("devices",),
        ("devices", "hp-97560"),
        ("devices", "hp-97560", "--json"),
        ("run", "experiment.toml"),
        ("run", "experiment.toml", "--out", "run"),
        ("score", "."),
        ("snapshot", ".", "-o", "snapshot.parquet"),
        ("trace", "formats"),
        ("reproduce", "--list"),
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded(arguments: tuple[str, ...], experiment: Path) -> None:
    heavy = _loaded(*arguments, folder=experiment.parent).intersection(HEAVY)
    assert not heavy, f"agewell {' '.join(arguments)} loads {', '.join(sorted(heavy))}"


def test_a_command_loads_no_other(tmp_path: Path) -> None:
    script = (
        "import sys; from agewell.cli import main\n"
        "try: main(['devices', 'hp-97560'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('agewell.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    names = done.stdout.splitlines()[-1]
    assert "agewell.cli.devices" in names
    for other in ("run", "score", "advise", "trace"):
        assert f"'agewell.cli.{other}'" not in names


def test_tables_in_a_pipe_are_those_of_a_terminal_without_blanks_at_their_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rich draws them where there is a terminal; in a pipe nothing loads it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    draw = random.Random(1)  # noqa: S311 (cells of a table, no secret)
    letters = "abc XYZ 019.-\u00e9\u65e5\u672c\u00df"
    for _ in range(200):
        columns = [
            draw.choice([">", ""]) + "".join(draw.choices(letters, k=draw.randrange(1, 9))).strip()
            for _ in range(draw.randrange(1, 6))
        ]
        rows = [
            ["".join(draw.choices(letters, k=draw.randrange(12))).strip() for _ in columns]
            for _ in range(draw.randrange(6))
        ]
        terminal.print_table(columns, rows)
        plain = capsys.readouterr().out
        table = Table(box=None, pad_edge=False)
        for column in columns:
            right = column[:1] == ">"
            table.add_column(column.removeprefix(">"), justify="right" if right else "left")
        for row in rows:
            table.add_row(*map(Text, row))
        Console(highlight=False, width=10_000, no_color=True).print(table)
        # The blanks with which a terminal fills its lines are of no use in a pipe.
        drawn = capsys.readouterr().out.split("\n")
        assert plain.split("\n") == [line.rstrip(" ") for line in drawn]
