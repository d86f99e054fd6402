"""What holds for the command line as a whole: groups, summaries, completion by the shell."""

from __future__ import annotations

import pkgutil

from agewell import cli
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
    assert "complete -o default" in agewell("--show-completion", "bash").stdout
    assert _completed(agewell, "agewell sc", 1) == ["score", "schema"]
    assert _completed(agewell, "agewell ", 1) == list(cli.COMMANDS)
    assert "--strict-holes" in _completed(agewell, "agewell score --st", 2)
    assert "info" in _completed(agewell, "agewell trace i", 2)
