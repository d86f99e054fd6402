"""The manual pages of `man/`, one a command, made from the commands themselves.

`make command-reference` writes them; a test holds them against the program, and groff against its
own rules. They are installed with the package, where `man` looks beside the folder of programs.
"""

from __future__ import annotations

import re
from typing import Any

from agewell import cli
from agewell.version import __version__
from command_reference import commands
from conftest import REPOSITORY

FOLDER = REPOSITORY / "man" / "data" / "share" / "man" / "man1"

_EXIT_STATUS = (
    ("0", "Done."),
    ("1", "The run failed, something is damaged, or a verdict or limit does not hold."),
    ("2", "Bad usage or bad input; one line on standard error says what, where, and what to do."),
    ("130", "Interrupted."),
)


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    below: dict[str, list[tuple[str, Any, Any]]] = {}
    for path, command, context in commands():
        below.setdefault(" ".join(path.split()[:2]), []).append((path, command, context))
    return {f"{top.replace(' ', '-')}.1": _page(top, found) for top, found in below.items()}


def _page(top: str, found: list[tuple[str, Any, Any]]) -> str:
    name = top.replace(" ", "-")
    _, command, context = found[0]
    lines = [
        f'.TH {_text(name.upper())} 1 "" "agewell {__version__}" "agewell"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(_summary(top))}",
        ".SH SYNOPSIS",
    ]
    for path, one, its_context in found:
        if path == top or not hasattr(one, "list_commands"):
            lines += [f".B {_text(path)}", _text(" ".join(one.collect_usage_pieces(its_context)))]
            lines.append(".br")
    lines += [".SH DESCRIPTION", *_described(command.help)]
    if top == "agewell":
        for title, group in cli.GROUPS.items():
            lines.append(f".SS {_text(title)}")
            for one_name, summary in group.items():
                lines += [".TP", f".BR agewell\\-{_text(one_name)} (1)", _text(summary)]
    lines += _parameters(command, context)
    for path, one, its_context in found[1:]:
        lines += [f".SH {_text(path.removeprefix('agewell ').upper())}", *_described(one.help)]
        lines += _parameters(one, its_context, heading=".SS")
    lines.append(".SH EXIT STATUS")
    for status, meaning in _EXIT_STATUS:
        lines += [".TP", f".B {status}", _text(meaning)]
    others = ["agewell"] if top != "agewell" else []
    lines += [".SH SEE ALSO", *(f".BR {_text(other)} (1)" for other in others)]
    lines.append("The documentation of the project has guides, concepts and the reference.")
    return "\n".join(lines) + "\n"


def _summary(top: str) -> str:
    if top == "agewell":
        return "make file systems age well"
    return cli.COMMANDS[top.removeprefix("agewell ")].rstrip(".")


def _described(text: str | None) -> list[str]:
    """Paragraphs; those that are examples as they are typed."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", (text or "").strip()):
        if typed := _examples(paragraph):
            lines += [".PP", "Example:"]
            for example in typed:
                lines += [".PP", ".RS", f".B {_text(example)}", ".RE"]
        else:
            lines += [".PP", _text(" ".join(paragraph.split()))]
    return lines[1:] if lines[:1] == [".PP"] else lines


def examples(command: Any) -> list[str]:
    """The command lines that a help text shows."""
    paragraphs = re.split(r"\n\s*\n", command.help or "")
    return [example for paragraph in paragraphs for example in _examples(paragraph)]


def _examples(paragraph: str) -> list[str]:
    if not re.match(r"\s*Examples?: ", paragraph):
        return []
    typed = " ".join(paragraph.split()).split(": ", maxsplit=1)[1]
    return re.split("; (?=agewell )", typed)


def _parameters(command: Any, context: Any, heading: str = ".SH") -> list[str]:
    lines: list[str] = []
    for title, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        chosen = [one for one in command.params if one.param_type_name == kind]
        rows = [row for one in chosen if (row := one.get_help_record(context)) is not None]
        if rows:
            lines.append(f"{heading} {title}")
        for name, meaning in rows:
            lines += [".TP", f".B {_text(name)}", _text(" ".join(meaning.split()))]
    return lines


def _text(text: str) -> str:
    """Text for groff: hyphens that can be typed, and nothing at its start taken for a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha")
    escaped = escaped.replace("'", "\\(aq").replace("`", "\\(ga").replace("~", "\\(ti")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.1"):
        old.unlink()
    for file_name, page in pages().items():
        (FOLDER / file_name).write_text(page, encoding="utf-8")
