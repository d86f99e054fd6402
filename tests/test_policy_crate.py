"""The template of a crate with policies of one's own: built, and run on a trace."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY

# It is built once: in one process of the tests.
pytestmark = pytest.mark.xdist_group("policy crate")

TEMPLATE = REPOSITORY / "examples" / "policy-crate"
TRACE = REPOSITORY / "examples" / "traces" / "mail.parquet"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def cargo(*arguments: str) -> str:
    """What cargo prints, without a network."""
    done = subprocess.run(
        ["cargo", *arguments, "--offline"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def features(manifest: Path, edges: str) -> dict[tuple[str, str], list[str]]:
    """The features of every package from a registry, by name and version."""
    found = {}
    for line in cargo(
        *("tree", "--manifest-path", str(manifest), "--edges", edges),
        *("--prefix", "none", "--format", "{p}|{f}"),
    ).splitlines():
        package, _, enabled = line.removesuffix(" (*)").partition("|")
        if not package.strip():
            continue
        name, version, *rest = package.split()
        if not rest or rest == ["(proc-macro)"]:
            found[name, version.removeprefix("v")] = [each for each in enabled.split(",") if each]
    return found


def as_the_workspace_builds(manifest: Path) -> str:
    """Dependencies that switch on in common crates what the workspace does.

    So the template takes the workspace's builds of them, and is made in seconds and not in minutes.
    """
    workspace = REPOSITORY / "Cargo.toml"
    here = features(workspace, "normal,build,dev")
    metadata = json.loads(
        cargo("metadata", "--format-version", "1", "--manifest-path", str(workspace))
    )
    macros = {
        (package["name"], package["version"])
        for package in metadata["packages"]
        if package["source"] and "proc-macro" in package["targets"][0]["kind"]
    }
    wanted = {
        package: here[package]
        for package, enabled in features(manifest, "normal,no-proc-macro").items()
        if package in here and set(here[package]) != set(enabled)
    }
    wanted |= {package: here[package] for package in macros & set(here)}
    return "".join(
        f'shared-{place} = {{ package = "{name}", version = "={version}", '
        f"default-features = false, features = {json.dumps(enabled)} }}\n"
        for place, ((name, version), enabled) in enumerate(sorted(wanted.items()))
    )


def quickly_built(manifest: Path) -> list[str]:
    """Options by which agewell's own crates, built again for the template, are not optimised."""
    listed = cargo("tree", "--manifest-path", str(manifest), "--prefix", "none").split()
    return [
        option
        for name in sorted({word for word in listed if word.startswith("agewell-")})
        for option in ("--config", f"profile.release.package.{name}.opt-level=0")
    ]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template as a reader copies it, with the paths set, built."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here")
    copy = tmp_path_factory.mktemp("template") / "my-policies"
    shutil.copytree(TEMPLATE, copy, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    shutil.copy(REPOSITORY / "Cargo.lock", copy / "Cargo.lock")
    manifest = copy / "Cargo.toml"
    text = manifest.read_text()
    text = text.replace('path = "../../crates/', f'path = "{REPOSITORY}/crates/')
    manifest.write_text(text)
    shared = as_the_workspace_builds(manifest)
    manifest.write_text(text.replace("[dependencies]\n", f"[dependencies]\n{shared}"))
    cargo(
        *("build", "--release", "--quiet", "--manifest-path", str(manifest)),
        *("--target-dir", str(TARGET), *quickly_built(manifest)),
    )
    return TARGET / "release" / "my-policies"


def test_its_policies_run_beside_the_built_in_ones(program: Path) -> None:
    done = subprocess.run([program, TRACE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    guide = (REPOSITORY / "docs" / "guides" / "policy.md").read_text()
    assert f"```console\n{done.stdout}```\n" in guide
    rows = dict(re.findall(r"^(\S.*?) {2,}(\d+\.\d+) ", done.stdout, re.MULTILINE))
    assert set(rows) == {"greedy", "cost-age", "age threshold, mine", "recent apart, mine"}
    amplification = {name: float(value) for name, value in rows.items()}
    # Each is better than the built-in one that it replaces, which is why they are shown.
    assert amplification["recent apart, mine"] < amplification["age threshold, mine"]
    assert amplification["age threshold, mine"] < amplification["greedy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a trace, for example ../traces/mail.parquet"),
        (("absent.parquet",), "absent.parquet: cannot open: No such file or directory"),
    ],
)
def test_its_errors_are_one_line(
    program: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = subprocess.run(
        [program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("my-policies: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def packages(lock: Path) -> set[tuple[str, str]]:
    """Name and version of what a lock file names from a registry."""
    listed: list[dict[str, Any]] = tomllib.loads(lock.read_text())["package"]
    return {(each["name"], each["version"]) for each in listed if "source" in each}


def test_it_is_locked_to_what_agewell_is_built_with() -> None:
    assert packages(TEMPLATE / "Cargo.lock") <= packages(REPOSITORY / "Cargo.lock")


def test_it_is_formatted_as_agewell_is() -> None:
    if shutil.which("rustfmt") is None:
        pytest.skip("no rustfmt here")
    settings = ["--check", "--edition", "2024", "--config-path", str(REPOSITORY / "rustfmt.toml")]
    sources = sorted((TEMPLATE / "src").glob("*.rs"))
    done = subprocess.run(["rustfmt", *settings, *sources], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
