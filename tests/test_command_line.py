"""What holds for the command line as a whole: groups, summaries, completion by the shell."""

from __future__ import annotations

import pkgutil
import shutil
import subprocess
from collections import defaultdict

import pytest

import man_pages
from agewell import cli
from command_reference import commands
from conftest import Agewell

_SUMMARY_CHARACTERS_MAX = 55
"""With the names beside them a line of help then fits 80 columns with room to spare."""

_NO_COMMANDS = {"options", "terminal", "watching"}


def test_every_command_stands_in_one_group() -> None:
    grouped = [name for group in cli.GROUPS.values() for name in group]
    assert sorted(grouped) == sorted(set(grouped))
    modules = {module.name for module in pkgutil.iter_modules(cli.__path__)}
    assert modules - _NO_COMMANDS == set(grouped)


def test_summaries_are_short() -> None:
    for name, summary in cli.COMMANDS.items():
        assert len(summary) < _SUMMARY_CHARACTERS_MAX, name
        assert summary.endswith("."), name


def test_help_shows_the_groups_in_one_column(agewell: Agewell) -> None:
    lines = agewell("--help").stdout.splitlines()
    listed = [line for line in lines if line.startswith("  ") and line.split()[0] in cli.COMMANDS]
    assert [line.split()[0] for line in listed] == list(cli.COMMANDS)
    assert len({line.index(cli.COMMANDS[line.split()[0]]) for line in listed}) == 1
    assert [f"{title}:" for title in cli.GROUPS] == [
        line for line in lines if line.rstrip(":") in cli.GROUPS
    ]


def _completed(agewell: Agewell, words: str, at: int) -> list[str]:
    """What bash is offered for the word number `at` of `words`."""
    asked = {"_AGEWELL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    return agewell(**asked).stdout.split()


def test_the_shell_completes_commands_and_options(agewell: Agewell) -> None:
    # Which shell is asked for is said here: the one that the tests were started from may be any.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert "complete -o default" in agewell("--show-completion", "bash", **named).stdout
    assert _completed(agewell, "agewell sc", 1) == ["score", "schema"]
    assert _completed(agewell, "agewell ", 1) == list(cli.COMMANDS)
    assert "--strict-holes" in _completed(agewell, "agewell score --st", 2)
    assert "info" in _completed(agewell, "agewell trace i", 2)


def test_an_option_has_one_spelling_everywhere() -> None:
    """The same short letter, and a value in every command or in none."""
    spelling: dict[str, dict[tuple[tuple[str, ...], bool], list[str]]] = defaultdict(dict)
    for path, command, _ in commands():
        for option in command.params:
            if option.param_type_name == "option":
                name = max(option.opts, key=len)
                letters = tuple(sorted(one for one in option.opts if one != name))
                spelling[name].setdefault((letters, option.is_flag), []).append(path)
    several = {name: found for name, found in spelling.items() if len(found) > 1}
    assert not several, f"write it once in options.py, or call one of them otherwise: {several}"
    assert not {"--output", "--model", "--time"} & set(spelling), "--out, --device, --for"


def test_a_value_has_one_form_everywhere() -> None:
    """What a help text calls a value says what it is, whichever command takes it."""
    forms: dict[str, set[str]] = defaultdict(set)
    for _, command, _ in commands():
        for option in command.params:
            if option.param_type_name == "option" and not option.is_flag and option.metavar:
                forms[max(option.opts, key=len)].add(option.metavar)
    for name in ("--for", "--rate", "--seed", "--jobs", "--size"):
        assert len(forms[name]) == 1, (name, forms[name])
    assert forms["--device"] == {"DEVICE", "DEVICE,..."}
    assert forms["--set"] == {"TABLE.KEY=VALUE", "[TABLE.]KEY=VALUE"}


def test_the_manual_pages_are_those_of_the_commands() -> None:
    kept = {path.name: path.read_text() for path in man_pages.FOLDER.iterdir()}
    assert kept == man_pages.pages(), "make command-reference writes them"


def test_groff_has_nothing_to_say_of_the_manual_pages() -> None:
    if shutil.which("groff") is None:
        pytest.skip("needs groff")
    paths = sorted(man_pages.FOLDER.iterdir())
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", *paths], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "\nAGEWELL-SCORE(1)" in done.stdout
