"""The documentation says what the program does: generated pages are fresh, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import statistics
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

import command_reference
import configuration_reference
import man_pages
from agewell.cli import app
from conftest import REPOSITORY, Agewell
from prose import sentences, words

pytestmark = pytest.mark.tidy

DOCUMENTS = REPOSITORY / "docs"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)\s]*)?\)")

README_LINES_MAX = 90

SENTENCE_WORDS_MAX = 35
SENTENCE_WORDS_MEDIAN_MAX = 20

PLAIN_PAGES = {
    page.name: page
    for page in (REPOSITORY / "README.md", *sorted((DOCUMENTS / "concepts").glob("*.md")))
}


def test_the_command_reference_is_fresh() -> None:
    page = command_reference.PAGE.read_text()
    assert page == command_reference.reference(), "make command-reference writes it again"


def test_the_configuration_reference_is_fresh() -> None:
    for path in configuration_reference.PAGES:
        page = path.read_text()
        fresh = configuration_reference.reference(page)
        assert page == fresh, f"{path.name}: make configuration-reference writes it again"


def test_links_lead_somewhere() -> None:
    pages = [*DOCUMENTS.rglob("*.md"), *REPOSITORY.glob("*.md")]
    broken = [
        f"{page.relative_to(REPOSITORY)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text())
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_page_has_its_place_in_the_navigation() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (REPOSITORY / "mkdocs.yml").read_text()))
    pages = {str(page.relative_to(DOCUMENTS)) for page in DOCUMENTS.rglob("*.md")}
    figures = {page for page in pages if re.match(r"experiments/[^/]+/(?!index\.md)", page)}
    assert pages - figures - named == set()
    assert {page for page in named if "*" not in page} - pages == set()


def test_every_dependency_has_its_reason() -> None:
    page = (DOCUMENTS / "internals" / "dependencies.md").read_text()
    explained = set(re.findall(r"`([a-z0-9_-]+)`", page))
    cargo = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())
    crates = {name for name in cargo["workspace"]["dependencies"] if not name.startswith("agewell")}
    packages = set()
    for path in (REPOSITORY / "requirements").glob("*.in"):
        packages |= set(re.findall(r"^([a-z0-9][a-z0-9-]*)", path.read_text(), re.MULTILINE))
    assert (crates | packages) - explained == set()


def test_requirements_and_project_agree() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    listed = [
        line
        for line in (REPOSITORY / "requirements" / "run.in").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert sorted(project["project"]["dependencies"]) == sorted(listed)


@pytest.mark.parametrize("name", ["build", "run", "develop", "docs"])
def test_pinned_requirements_carry_hashes_and_no_addresses(name: str) -> None:
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text()
    packages = re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)
    assert packages
    assert not re.search(r"https?:|--[a-gi-z]", text)
    blocks = re.split(r"^(?=[a-z0-9-]+==)", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in block for block in blocks)


def test_every_command_shows_an_example() -> None:
    sections = re.split(r"^## ", command_reference.PAGE.read_text(), flags=re.MULTILINE)[2:]
    without = [section.splitlines()[0] for section in sections if "Example" not in section]
    assert without == []


def test_experiments_and_devices_are_where_the_package_looks() -> None:
    data = REPOSITORY / "python" / "agewell" / "data"
    for name in ("devices", "experiments"):
        assert (data / name).resolve() == (REPOSITORY / name).resolve()
        assert Path(data / name).is_dir()


def test_the_example_of_a_placement_is_the_one_that_is_compiled() -> None:
    source = (REPOSITORY / "crates" / "log" / "examples" / "placement.rs").read_text()
    _, after = source.split("// --- the placement\n")
    placement, _ = after.split("// --- the end of the placement")
    page = (REPOSITORY / "CONTRIBUTING.md").read_text()
    assert f"```rust\n{placement.rstrip()}\n```" in page


def test_the_readme_is_one_page() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= README_LINES_MAX


def test_the_session_of_the_readme_prints_what_it_shows(agewell: Agewell) -> None:
    text = (REPOSITORY / "README.md").read_text()
    [session] = re.findall(r"^```console\n\$ agewell (.*?)^```$", text, re.MULTILINE | re.DOTALL)
    command, *shown = session.splitlines()
    printed = [line.rstrip() for line in agewell(*shlex.split(command)).stdout.splitlines()]
    assert shown
    assert printed[: len(shown)] == shown


def test_sentences_end_where_a_reader_sees_them_end() -> None:
    page = """\
# A heading that is no sentence.

J. N. Matthews et al. say [this and that](page.md), e.g. of `code with blanks`. It is 3.5 - 4
MB/s! What now?

1. An item, whatever it lacks
* Another:

| a table | of words |

```
Code. Is. Left. Out.
```

<!-- So. Is. This. -->

    and = this (formula)

The `.md` of E. Seo. The end

## Sources

* A. Author: A publication. 1999.
"""
    assert [(sentence, words(sentence)) for sentence in sentences(page)] == [
        ("J. N. Matthews et al. say this and that, e.g. of `code with blanks`.", 12),
        ("It is 3.5 - 4 MB/s!", 5),
        ("What now?", 2),
        ("An item, whatever it lacks", 5),
        ("Another:", 1),
        ("The `.md` of E. Seo.", 5),
        ("The end", 2),
    ]


@pytest.mark.parametrize("name", PLAIN_PAGES)
def test_sentences_are_short(name: str) -> None:
    found = sentences(PLAIN_PAGES[name].read_text())
    long = [sentence for sentence in found if words(sentence) > SENTENCE_WORDS_MAX]
    assert long == []
    assert statistics.median(map(words, found)) <= SENTENCE_WORDS_MEDIAN_MAX


COMMAND_END = re.compile(r'(?:&&|\||;|>)(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""Where a command ends on its line; not within quotes."""


def _typed_commands(page: Path) -> list[list[str]]:
    """Every command line of agewell in the code blocks of a page, as words."""
    found = []
    for block in re.findall(r"^```[^\n]*\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in COMMAND_END.split(line.strip().removeprefix("$ ").removeprefix("# ")):
                if not part.strip().startswith("agewell ") or re.search(r"\.\.\.| -- |\$", part):
                    continue
                words = shlex.split(part, comments=True)
                # What `agewell --version` and a help text print begins like a command.
                if not re.fullmatch(r"[a-z][a-z0-9-]*|--[a-z-]+", words[1]):
                    continue
                found.append(words[1:])
    return found


def _parse(command: Any, name: str, words: list[str], parent: Any = None) -> None:
    """As the program takes a command line apart, but nothing is done."""
    context = command.make_context(name, list(words), parent=parent)
    rest = [*context._protected_args, *context.args] if hasattr(command, "list_commands") else []
    if rest and (below := command.get_command(context, rest[0])) is not None:
        _parse(below, rest[0], rest[1:], context)


def test_every_command_line_in_the_documents_is_one() -> None:
    pages = [*DOCUMENTS.rglob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"]
    typed = [
        (str(page.relative_to(REPOSITORY)), command)
        for page in pages
        if page != command_reference.PAGE
        for command in _typed_commands(page)
    ]
    for path, command, _ in command_reference.commands():
        for example in man_pages.examples(command):
            first = re.split(r"&&|>", example)[0]
            typed.append((f"{path} --help", shlex.split(first)[1:]))
    assert len(typed) > 150
    wrong = []
    for place, command in typed:
        try:
            _parse(get_command(app), "agewell", command)
        except typer.Exit:
            pass
        except typer.TyperException as error:
            wrong.append(f"{place}: agewell {shlex.join(command)}: {error.format_message()}")
    assert wrong == []
