"""The template of a crate with policies of one's own: built, and run on a trace."""

from __future__ import annotations

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
MEMBERS = 'members = ["crates/*"]'
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def cargo(*arguments: str, **environment: str) -> str:
    """What cargo prints, without a network."""
    done = subprocess.run(
        ["cargo", *arguments, "--offline"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template as a reader copies it, with the paths set, built.

    It is a member of a workspace like agewell's, whose crates are agewell's own: cargo then takes
    what `make test` has built of them, and not a minute to build them again.
    """
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here")
    workspace = tmp_path_factory.mktemp("template")
    copy = workspace / "my-policies"
    shutil.copytree(TEMPLATE, copy, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    (workspace / "crates").symlink_to(REPOSITORY / "crates")
    shutil.copy(REPOSITORY / "Cargo.lock", workspace / "Cargo.lock")
    text = (REPOSITORY / "Cargo.toml").read_text()
    assert text.count(MEMBERS) == 1
    (workspace / "Cargo.toml").write_text(
        text.replace(MEMBERS, 'members = ["crates/*", "my-policies"]')
    )
    manifest = copy / "Cargo.toml"
    # Profiles are those of the workspace, which are the same, as a test says.
    own, _, _ = manifest.read_text().partition("[profile.")
    manifest.write_text(own.replace('path = "../../crates/', 'path = "../crates/'))
    wrapper = os.environ.get("RUSTC_WORKSPACE_WRAPPER", REPOSITORY / "scripts/rustc-of-workspace")
    cargo(
        *("build", "--release", "--quiet", "--manifest-path", str(workspace / "Cargo.toml")),
        *("--workspace", "--bin", "my-policies", "--target-dir", str(TARGET)),
        RUSTC_WORKSPACE_WRAPPER=str(wrapper),
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


def test_it_stands_alone_and_is_built_as_agewell_is() -> None:
    own = tomllib.loads((TEMPLATE / "Cargo.toml").read_text())
    agewell = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())
    assert own["workspace"] == {}
    assert set(own["profile"]) == {"release"}
    release, expected = own["profile"]["release"], agewell["profile"]["release"]
    packages = release.pop("package")
    assert release == {key: value for key, value in expected.items() if key != "package"}
    # Those that are left out are what tests use.
    assert packages == {name: expected["package"][name] for name in ("agewell-sim", "*")}
    if shutil.which("cargo") is not None:
        listed = cargo("tree", "--locked", "--manifest-path", str(TEMPLATE / "Cargo.toml"))
        assert listed.startswith("my-policies ")


def test_it_is_formatted_as_agewell_is() -> None:
    if shutil.which("rustfmt") is None:
        pytest.skip("no rustfmt here")
    settings = ["--check", "--edition", "2024", "--config-path", str(REPOSITORY / "rustfmt.toml")]
    sources = sorted((TEMPLATE / "src").glob("*.rs"))
    done = subprocess.run(["rustfmt", *settings, *sources], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
