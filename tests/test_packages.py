"""What is published: crates, the container, how to cite, and that the version stands once."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from typing import Any

import pytest

from conftest import REPOSITORY

pytestmark = pytest.mark.tidy

NOT_PUBLISHED = {"agewell-py", "agewell-mount", "agewell-testkit"}
"""The extension module and the program are in the wheel; the other serves tests."""

KEYWORDS_MAX = 5
KEYWORD_CHARACTERS_MAX = 20
CATEGORIES_MAX = 5
"""What crates.io takes."""


@pytest.fixture(scope="module")
def crates() -> dict[str, dict[str, Any]]:
    """Every crate of the workspace by its name, as cargo sees it."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return {package["name"]: package for package in json.loads(done.stdout)["packages"]}


@pytest.fixture(scope="module")
def version() -> str:
    """The version, from the one place where it is set."""
    manifest = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())
    return str(manifest["workspace"]["package"]["version"])


def test_crates_say_what_a_registry_asks(crates: dict[str, dict[str, Any]]) -> None:
    for name, package in crates.items():
        if name in NOT_PUBLISHED:
            assert package["publish"] == [], name
            continue
        assert package["publish"] is None, name
        assert package["description"], name
        assert package["license"] == "MIT OR Apache-2.0", name
        assert 0 < len(package["keywords"]) <= KEYWORDS_MAX, name
        assert all(len(word) <= KEYWORD_CHARACTERS_MAX for word in package["keywords"]), name
        assert 0 < len(package["categories"]) <= CATEGORIES_MAX, name
        assert package["readme"] == "README.md", name


def test_every_crate_has_a_page_and_the_example_that_it_names(
    crates: dict[str, dict[str, Any]],
) -> None:
    for name in set(crates) - NOT_PUBLISHED:
        folder = REPOSITORY / "crates" / name.removeprefix("agewell-")
        page = (folder / "README.md").read_text()
        assert page.startswith(f"# {name}\n"), name
        named = re.search(r"cargo run --example (\w+)", page)
        assert named is not None, name
        targets = {
            target["name"] for target in crates[name]["targets"] if target["kind"] == ["example"]
        }
        assert named.group(1) in targets, name


def test_no_two_examples_have_one_name(crates: dict[str, dict[str, Any]]) -> None:
    # They are built into one folder.
    names = [
        target["name"]
        for package in crates.values()
        for target in package["targets"]
        if target["kind"] == ["example"]
    ]
    assert sorted(names) == sorted(set(names))


def test_crates_can_be_packaged() -> None:
    command = ["cargo", "package", "--workspace", "--list", "--allow-dirty", "--offline", "--quiet"]
    excluded = [word for name in sorted(NOT_PUBLISHED) for word in ("--exclude", name)]
    done = subprocess.run(
        [*command, *excluded], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "src/lib.rs" in done.stdout
    # Data of tests and the like stay here.
    assert not re.search(r"\.(zst|parquet|img|snap)$", done.stdout, re.MULTILINE)


def test_the_version_is_that_of_the_workspace_everywhere(
    version: str, crates: dict[str, dict[str, Any]]
) -> None:
    assert {package["version"] for package in crates.values()} == {version}
    manifest = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())
    dependencies = manifest["workspace"]["dependencies"]
    for name, entry in dependencies.items():
        if name.startswith("agewell-"):
            wanted = None if name in NOT_PUBLISHED else version
            assert entry.get("version") == wanted, name
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [version]
    readme = (REPOSITORY / "README.md").read_text()
    assert re.findall(r"version += \{(.*)\}", readme) == [version]
    assert f"\n## {version}" in (REPOSITORY / "CHANGELOG.md").read_text()
    python = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert "version" in python["project"]["dynamic"]


def test_the_container_is_built_of_what_is_there() -> None:
    text = (REPOSITORY / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for source in line.split():
            assert (REPOSITORY / source).exists(), source
    manifest = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())
    least = manifest["workspace"]["package"]["rust-version"]
    built_with = re.search(r"FROM rust:(\d+)\.(\d+)", text)
    assert built_with is not None
    assert tuple(map(int, built_with.groups())) >= tuple(map(int, least.split(".")))
    ignored = (REPOSITORY / ".dockerignore").read_text()
    assert ".git\n" in ignored
    assert "**/target\n" in ignored
