"""Rules about the files of the repository, run by `make lint`."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY

pytestmark = pytest.mark.tidy

FILE_LINES_MAX = 800
RUST_LINE_CHARACTERS_MAX = 130
"""rustfmt holds code to 100; prose and tables in comments may be wider."""

RUST_CHARACTERS_BEYOND_ASCII = set("§äöüéµ")
"""Section signs and the names of authors; anything else is a slip."""

SMALL_FILE_BYTES_MAX = 1 << 20
"""Text files larger than this would be data, which belongs elsewhere."""

# Split so that this file does not contain what it forbids.
FORBIDDEN = {
    "unfinished work": re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b"),
    "unfinished code": re.compile(r"\b(to" + r"do|unim" + r"plemented)!\("),
    "a path of one machine": re.compile(r"(?<![\w.])/(work|home|root|Users)/[\w.]"),
    "the address of a package index": re.compile(
        r"pypi\.(org|python)|--(extra-)?index-" + r"url|files\.pythonhosted"
    ),
}

ALLOWED_DEPENDENCIES = {
    "agewell-core": set(),
    "agewell-check": set(),
    "agewell-config": {"agewell-core"},
    "agewell-trace": {"agewell-core"},
    "agewell-disk": {"agewell-config", "agewell-core"},
    "agewell-fuse": set(),
    "agewell-log": {"agewell-core"},
    "agewell-layout": {"agewell-core", "agewell-log", "agewell-regrouping"},
    "agewell-regrouping": {"agewell-log"},
    "agewell-probe": {"agewell-core", "agewell-disk"},
    "agewell-shuffle": {"agewell-config", "agewell-core"},
    "agewell-sim": {
        "agewell-config",
        "agewell-core",
        "agewell-trace",
        "agewell-disk",
        "agewell-layout",
        "agewell-log",
        "agewell-shuffle",
    },
    "agewell-snapshot": {"agewell-core", "agewell-disk", "agewell-trace"},
    "agewell-record": {"agewell-core", "agewell-snapshot", "agewell-trace"},
    "agewell-age": {
        "agewell-config",
        "agewell-core",
        "agewell-trace",
        "agewell-disk",
        "agewell-layout",
        "agewell-log",
        "agewell-sim",
        "agewell-snapshot",
    },
    "agewell-reorganise": {
        "agewell-core",
        "agewell-disk",
        "agewell-log",
        "agewell-record",
        "agewell-regrouping",
        "agewell-snapshot",
        "agewell-trace",
    },
    "agewell-store": {"agewell-core", "agewell-disk", "agewell-log", "agewell-trace"},
    "agewell-py": {
        "agewell-age",
        "agewell-check",
        "agewell-reorganise",
        "agewell-config",
        "agewell-core",
        "agewell-trace",
        "agewell-disk",
        "agewell-layout",
        "agewell-log",
        "agewell-probe",
        "agewell-record",
        "agewell-shuffle",
        "agewell-sim",
        "agewell-snapshot",
        "agewell-store",
    },
    "agewell-fs": {"agewell-store"},
    "agewell-mount": {
        "agewell-core",
        "agewell-disk",
        "agewell-fs",
        "agewell-fuse",
        "agewell-log",
        "agewell-regrouping",
        "agewell-store",
    },
    "agewell-testkit": {"agewell-core", "agewell-log"},
}
"""What each crate may use.

core <- {config <- {shuffle, disk}, trace, log <- regrouping <- layout} <- sim <- age <- py,
{disk, trace} <- snapshot <- {age, record}, {record, regrouping} <- reorganise <- py,
{disk, trace, log} <- store <- py, disk <- probe <- py, record <- py,
and check <- py: it shares no code with what it checks; store <- fs <- mount, regrouping <- mount,
and fuse <- mount.
"""

PLATFORM_FUNCTIONS = re.compile(
    r"\.(ln|ln_1p|log2|log10|exp|exp2|exp_m1|sin|cos|tan|sin_cos|asin|acos|atan|sinh|cosh|tanh"
    r"|cbrt)\(\)|\.(powf|atan2|hypot)\(|\bf(32|64)::(ln|log|exp|powf|sin|cos)"
)
"""Methods of floats that are whatever the system's library makes of them."""

REPLACED_WORDS = re.compile(
    r"\b(DeadPlaces|dead_places|tell_what_dies|tell_the_dead|(begin|end)_together"
    r"|(begin|end)_behind|has_caught_up|Scene|Sureness|Ledger|Census|Twin|lay_down|written_before"
    r"|try_out|take_down|ane" + r"w)\b"
)
"""What docs/internals/glossary.md has other words for."""

REPLACED_PROSE = re.compile(
    r"\b(to" + r"ld|te" + r"ll(s|ing)?|an" + r"ew|me" + r"nd(s|ed)?|so ma" + r"ny"
    r"|le" + r"ts? go|pu" + r"t(s|ting)? off|take(s|n)? no" + r"tice|ta" + r"ke(s|n)? down)\b"
    r"|(?<!scatter-)\bgat" + r"her(s|ed|ing)?\b",
    re.IGNORECASE,
)
"""Likewise, in comments; split, since this file is held to it. (A head may settle: the term.)"""

PLAIN_FOLDERS = (
    *("trace", "age", "snapshot", "shuffle", "core", "config", "py", "testkit"),
    *("log", "layout", "disk", "sim", "probe", "check", "store", "fuse"),
    *("python", "tests", "scripts"),
)
"""The crates and folders whose comments are held to that."""

PLAIN_PAGES = ("docs", "experiments", "README.md")
"""The pages that are held to that."""

NOT_YET_PLAIN = (
    # Their declared keys: a comment there is a row of the reference.
    "crates/disk/src/parameters/mechanical.rs",
    "crates/sim/src/config/host.rs",
    "crates/sim/src/config/layout/file_system.rs",
    "crates/sim/src/config/layout/write_ahead.rs",
    # The columns of its table of discards.
    "docs/concepts/drives-of-today.md",
    # The replaced words themselves.
    "docs/internals/glossary.md",
    "experiments/matthews-1999/beyond-adaptive/NOTES.md",
)
"""How the paths begin of files that are left out."""

GENERATED = re.compile(r"<!-- (?:keys: [^>]*|\w+: begin) -->.*?<!-- (?:\w+: )?end -->", re.DOTALL)
"""A part of a page that a program writes."""

QUOTED = re.compile(r"does not te" + r"ll|`[^`]*`")
"""A message of the extension module, and names."""

VAGUE_NAMES = {"utils", "util", "common", "manager", "helpers", "helper", "misc"}


def tracked() -> list[Path]:
    """Every file of the repository that git knows and that is there, without links."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("not a git repository: there is no list of its files")
    paths = [REPOSITORY / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def texts(*suffixes: str) -> list[tuple[Path, str]]:
    """Tracked text files, by suffix if any is given, as path from the root and text."""
    found = []
    for path in tracked():
        if suffixes and path.suffix not in suffixes:
            continue
        try:
            found.append((path.relative_to(REPOSITORY), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            # Recorded traces and the like.
            continue
    return found


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_contains(what: str) -> None:
    places = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        if path.name != "Cargo.lock"
        for number, line in enumerate(text.splitlines(), start=1)
        if FORBIDDEN[what].search(line)
    ]
    assert places == []


def test_the_words_are_those_of_the_glossary() -> None:
    places = [
        f"{path}:{number}: {found.group()}"
        for path, text in texts(".rs", ".py")
        if path.name != "test_tidy.py"
        for number, line in enumerate(text.splitlines(), start=1)
        if (found := REPLACED_WORDS.search(line))
    ]
    assert places == []


def replaced_prose(path: Path, lines: list[str]) -> list[str]:
    """Where lines of a file have a replaced word, unless the file is left out."""
    if str(path).startswith(NOT_YET_PLAIN):
        return []
    return [
        f"{path}:{number}: {found.group()}"
        for number, line in enumerate(lines, start=1)
        if (found := REPLACED_PROSE.search(QUOTED.sub("", line)))
    ]


def test_comments_are_in_plain_words() -> None:
    places = []
    for path, text in texts(".rs", ".py", ".pyi"):
        folder = path.parts[1] if path.parts[0] == "crates" else path.parts[0]
        if folder not in PLAIN_FOLDERS:
            continue
        # In Rust comments only; in Python names and messages as well.
        in_rust = path.suffix == ".rs"
        lines = [line.partition("//")[2] if in_rust else line for line in text.splitlines()]
        places += replaced_prose(path, lines)
    assert places == []


def test_pages_are_in_plain_words() -> None:
    places = []
    for path, text in texts(".md"):
        of_a_study = path.parts[:2] == ("docs", "experiments") and path.parts[2] != "notes"
        if path.parts[0] in PLAIN_PAGES and not of_a_study:
            by_hand = GENERATED.sub(lambda part: "\n" * part.group().count("\n"), text)
            places += replaced_prose(path, by_hand.splitlines())
    assert places == []


def test_files_that_are_not_in_plain_words_yet_exist() -> None:
    paths = [str(path) for path, _ in texts(".rs", ".md")]
    assert [one for one in NOT_YET_PLAIN if not any(path.startswith(one) for path in paths)] == []


def test_source_files_are_of_a_readable_length() -> None:
    long = {
        str(path): len(text.splitlines())
        for path, text in texts(".rs", ".py")
        if len(text.splitlines()) > FILE_LINES_MAX
    }
    assert long == {}


def test_rust_lines_are_of_a_readable_length() -> None:
    wide = [
        f"{path}:{number}"
        for path, text in texts(".rs")
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > RUST_LINE_CHARACTERS_MAX
    ]
    assert wide == []


def test_source_is_plain_text() -> None:
    strange = [
        f"{path}:{number}: {character!r}"
        for path, text in texts(".rs", ".py")
        for number, line in enumerate(text.splitlines(), start=1)
        for character in line
        if not character.isascii() and character not in RUST_CHARACTERS_BEYOND_ASCII
    ]
    assert strange == []


def test_every_rust_module_says_what_it_is() -> None:
    silent = [
        str(path)
        for path, text in texts(".rs")
        if not text.startswith("//!") and not text.startswith("#![no_main]")
    ]
    assert silent == []


def test_names_say_something() -> None:
    vague = [
        str(path.relative_to(REPOSITORY))
        for path in tracked()
        if {part.split(".")[0] for part in path.relative_to(REPOSITORY).parts} & VAGUE_NAMES
    ]
    assert vague == []


def test_lines_end_in_no_space_and_files_in_one_line_end() -> None:
    ragged = [
        str(path)
        for path, text in texts(".rs", ".py", ".toml", ".md", ".html", ".yml")
        if not text.endswith("\n")
        or text.endswith("\n\n")
        or re.search(r"[ \t]$", text, re.MULTILINE)
    ]
    assert ragged == []


def test_text_files_are_small() -> None:
    large = [str(path) for path, text in texts() if len(text) > SMALL_FILE_BYTES_MAX]
    assert large == []


def test_crates_use_only_what_they_may() -> None:
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    crates = {package["name"]: package for package in metadata["packages"]}
    assert set(crates) == set(ALLOWED_DEPENDENCIES)
    for name, package in crates.items():
        used = {
            dependency["name"]
            for dependency in package["dependencies"]
            if dependency["kind"] != "dev" and dependency["name"] in crates
        }
        assert used - ALLOWED_DEPENDENCIES[name] == set(), name
        if name != "agewell-py":
            assert "pyo3" not in {each["name"] for each in package["dependencies"]}


ROOMS_MAX = 12
"""Modules and packages side by side in `agewell`; chosen by us: what fits into a head."""


def _python_modules() -> dict[str, Path]:
    """Every module of the Python package by its name, the extension module's stub among them."""
    folder = REPOSITORY / "python"
    paths = [
        path.relative_to(folder)
        for path in tracked()
        if path.is_relative_to(folder) and path.suffix in {".py", ".pyi"}
    ]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def _python_imports() -> dict[str, set[str]]:
    """What each module of the Python package imports of it, anywhere in its text."""
    modules = _python_modules()
    imports: dict[str, set[str]] = {}
    for name, path in modules.items():
        found: set[str] = set()
        for node in ast.walk(ast.parse((REPOSITORY / "python" / path).read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= inner & set(modules) if inner <= set(modules) else {node.module, *inner}
        imports[name] = found & set(modules) - {name}
    return imports


def _circles(imports: dict[str, set[str]]) -> set[str]:
    """Those that come back to themselves, or stand between two circles."""
    left = {name: set(used) for name, used in imports.items()}
    for graph in (left, {name: {one for one in left if name in left[one]} for name in left}):
        while ends := [name for name in graph if name in left and not graph[name] & set(left)]:
            for name in ends:
                del left[name]
    return set(left)


def test_python_modules_and_packages_import_in_no_circle() -> None:
    imports = _python_imports()
    assert len(imports) > ROOMS_MAX
    assert _circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == {"b", "c"}
    assert _circles(imports) == set()
    folders: dict[str, set[str]] = {}
    for name, used in imports.items():
        room = _room(name)
        folders.setdefault(room, set()).update({_room(each) for each in used} - {room})
    assert _circles(folders) == set()


def test_modules_that_move_files_use_one_another_in_no_circle() -> None:
    source = REPOSITORY / "crates" / "reorganise" / "src"
    uses: dict[str, set[str]] = {}
    for path in source.rglob("*.rs"):
        module = path.relative_to(source).parts[0].removesuffix(".rs")
        if module != "lib":
            named = set(re.findall(r"\bcrate::(\w+)", path.read_text()))
            uses.setdefault(module, set()).update(named - {module})
    assert {"plan", "volume", "skip"} <= set(uses)
    assert _circles(uses) == set()


def _room(module: str) -> str:
    """The package or module of `agewell` that a module is in."""
    return ".".join(module.split(".")[:2])


def test_the_python_package_has_few_rooms() -> None:
    rooms = {_room(name) for name in _python_modules()} - {"agewell", "agewell.__main__"}
    assert len(rooms) <= ROOMS_MAX, sorted(rooms)


def _features(*selection: str) -> dict[str, str]:
    """The features of every crate that a build of the selection has, by its name and version."""
    command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}"]
    done = subprocess.run(
        [*command, *selection], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    pairs = (line.removesuffix(" (*)").split("|") for line in done.stdout.splitlines() if line)
    return {crate.split(" (")[0]: features for crate, features in pairs}


def test_tests_and_extension_module_share_one_build() -> None:
    """A feature that only one of them asks for makes the other build every crate again."""
    extension = _features("-p", "agewell-py", "--edges", "normal,build")
    tests = _features("--workspace", "--edges", "normal,build,dev")
    differing = {
        crate: (features, tests[crate])
        for crate, features in extension.items()
        if tests[crate] != features
    }
    assert differing == {}


def test_links_in_the_tree_lead_somewhere() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "-s", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("not a git repository: there is no list of its files")
    links = [
        line.split("\t")[1] for line in listing.stdout.split("\0") if line.startswith("120000")
    ]
    assert links
    assert [name for name in links if not (REPOSITORY / name).exists()] == []


def test_tables_of_pages_are_whole() -> None:
    """A blank line within a table ends it: what follows has no head and shows as bars."""
    broken = []
    for path, text in texts(".md"):
        lines = ["", *text.splitlines(), ""]
        fenced = False
        for number in range(1, len(lines) - 1):
            line = lines[number]
            fenced ^= line.startswith("```")
            begins = line.startswith("|") and not lines[number - 1].startswith("|")
            if begins and not fenced and not re.match(r"^\|[\s:|-]+$", lines[number + 1]):
                broken.append(f"{path}:{number}: {line[:60]}")
    assert broken == []


def test_no_result_depends_on_the_platforms_functions() -> None:
    """Logarithms, powers and angles come from the crate `libm`: the same bits everywhere."""
    found = []
    for path in tracked():
        place = path.relative_to(REPOSITORY)
        if path.suffix != ".rs" or place.parts[2:3] != ("src",) or "tests" in path.stem:
            continue
        if "tests" in place.parts or place.stem == "rows":
            continue
        code = path.read_text().split("#[cfg(test)]\nmod tests", 1)[0]
        found += [
            f"{place}: {line.strip()}"
            for line in code.splitlines()
            if PLATFORM_FUNCTIONS.search(line) and not line.strip().startswith("//")
        ]
    assert found == []


def test_workflows_call_targets_that_the_makefile_has() -> None:
    """A workflow is not run here, so what it calls is held against the Makefile."""
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    called: set[str] = set()
    for workflow in (REPOSITORY / ".github" / "workflows").glob("*.yml"):
        text = workflow.read_text()
        [listed] = re.findall(r"^ +target: \[(.*)\]$", text, re.MULTILINE) or [""]
        named = re.findall(r"^ +- run: make (.+)$", text, re.MULTILINE)
        assert named, f"{workflow.name} calls no target of the Makefile"
        for name in named:
            called.update(listed.split(", ") if name == "${{ matrix.target }}" else name.split())
    assert called == {"lint", "test", "wheel", "sdist", "check-macos", "reproduce"}
    assert called <= targets
