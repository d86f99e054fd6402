"""What commands print with `--json` and leave in folders is what is declared, and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import documents
import json_reference
from agewell import cli
from agewell.report.recognition import _BY_KIND
from agewell.values.documents import _OLDER, VERSIONS, kind_of
from agewell.values.documents.kinds import COMMANDS, KINDS
from agewell.values.documents.schemas import of_command, of_kind
from command_reference import commands
from conftest import REPOSITORY, SMALL_DEVICE, SMALL_EXPERIMENT, Agewell

# What is printed is printed once: in one process of the tests.
pytestmark = pytest.mark.xdist_group("documents")

FILE_SYSTEM = """\
[workload]
kind = "none"
[layout]
kind = "ffs"
[device]
model = "seagate-st32430n"
[measure]
sequential = ["16 KiB"]
sequential_size = "256 KiB"
[run]
seed = 1
"""
LOG = REPOSITORY / "examples" / "log-random-update.toml"
MAIL = REPOSITORY / "examples" / "traces" / "mail.parquet"
SMALL_LOG = ("--set", "workload.updates_per_block=2", "--set", "workload.blocks=4000")
HP = ("--device", "hp-97560", "--quiet")

SMALL: list[tuple[str, tuple[object, ...]]] = [
    ("run", ("run", "experiment.toml", "--out", "one")),
    ("run", ("run", LOG, *SMALL_LOG)),
    ("run", ("run", "aged.toml")),
    ("sweep-runs", ("sweep", "experiment.toml", "--over", "run.seed=1,2", "--out", "swept")),
    ("results", ("results", "FROM runs", "swept")),
    ("results-views", ("results",)),
    ("diff", ("diff", "swept", "swept")),
    ("report", ("report", "one", "--out", "report.html")),
    ("compare", ("compare", "--workload", "small-log.toml", "--layouts", "lfs", "-u", "0.5", *HP)),
    ("compare-layouts", ("compare", "--list")),
    ("segment-size", ("advise", "segment-size", LOG, *SMALL_LOG, *HP)),
    ("age", ("age", "ffs", "--workload", "smith-1996", "--until", "days=1", "--snapshot", "s")),
    ("score", ("score", "s", "--hot", "30d", "--device", "hp-97560")),
    ("score", ("score", "s", "s")),
    ("bench", ("bench", "ffs", "--sizes", "16KiB", "--bytes", "256KiB", "-r", "1")),
    ("bench", ("bench", ".", "--sizes", "16KiB", "--bytes", "64KiB", "-r", "1")),
    ("store-info", ("store", "format", "a.store", "--size", "16MiB", "--sparse")),
    ("store-check", ("store", "check", "a.store")),
    ("store-salvage", ("store", "salvage", "a.store", "-o", "whole")),
    ("devices", ("devices",)),
    ("device", ("devices", "hp-97560")),
    ("device", ("devices", "flash-sata-tlc")),
    ("device", ("devices", "seagate-st8000as0002")),
    ("device", ("devices", "small.toml")),
    ("trace-info", ("trace", "info", "few.parquet")),
    ("trace-head", ("trace", "head", "few.parquet")),
    ("trace-convert", ("trace", "convert", "few.parquet", "few.trace")),
    ("trace-formats", ("trace", "formats")),
    ("reproduce-papers", ("reproduce", "--list")),
]
"""What each kind of document is printed by, small. What needs a repository, a mounted file system,
root or measured traces is held against its schema where those commands are tested."""

ELSEWHERE = {
    *("advice", "device-import", "fs-layout", "fs-scrub", "fs-status", "fsck", "probe", "record"),
    *("record-recover", "reorganise", "reorganise-round", "reproduce", "snapshot", "validate"),
    *("validate-drives", "workload", "workload-info"),
}


def printed(arguments: tuple[object, ...]) -> str:
    """What a command prints in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        cli.main([*map(str, arguments), "--json"])
    assert ended.value.code == 0, arguments
    return out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the small commands start from."""
    path = tmp_path_factory.mktemp("documents")
    (path / "small.toml").write_text(SMALL_DEVICE)
    (path / "experiment.toml").write_text(SMALL_EXPERIMENT)
    (path / "aged.toml").write_text(FILE_SYSTEM)
    text = LOG.read_text()
    (path / "small-log.toml").write_text(text)
    with contextlib.chdir(path):
        printed(("trace", "filter", MAIL, "few.parquet", "--filter", "time=0s..1s"))
    return path


@pytest.fixture(scope="module")
def every(folder: Path) -> list[tuple[str, str]]:
    """What each small command prints, and of which kind it should be."""
    with contextlib.chdir(folder):
        return [(kind, printed(arguments)) for kind, arguments in SMALL]


def test_small_commands_print_what_is_declared(every: list[tuple[str, str]], folder: Path) -> None:
    for kind, text in every:
        assert documents.check(text) == kind
    left = {each.name: each for each in folder.rglob("*.json")}
    files = {declared.file: kind for kind, declared in KINDS.items() if declared.file}
    for name in ("result.json", "timing.json", "origin.json", "sweep.json"):
        assert documents.check(left[name].read_text()) == files[name]
    kinds = {kind for kind, _ in every}
    assert kinds | ELSEWHERE | set(files.values()) == set(KINDS)


def test_what_is_undeclared_lacking_or_of_another_type_is_found(folder: Path) -> None:
    with contextlib.chdir(folder):
        whole = json.loads(printed(("devices", "small.toml")))
    assert documents.complaints(whole) == []
    for name in whole:
        if name != "document":
            lacking = {key: value for key, value in whole.items() if key != name}
            optional = name not in of_kind("device")["$defs"]["Device"]["required"]
            assert bool(documents.complaints(lacking)) != optional, name
    assert documents.complaints({**whole, "further": 1})
    assert documents.complaints({**whole, "capacity_bytes": "1"})
    assert documents.complaints({**whole, "schema_version": 99})


def test_every_kind_is_declared_and_every_command_known() -> None:
    assert set(KINDS) == set(VERSIONS)
    with_json = {
        path.removeprefix("agewell ")
        for path, command, _ in commands()
        if any("--json" in option.opts for option in command.params)
    }
    assert with_json == set(COMMANDS)
    assert set(_OLDER) | set(_BY_KIND) <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_say_what_every_field_is(kind: str) -> None:
    schema = of_kind(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in schema["$defs"].values():
        assert part["description"].endswith("."), part
        for name, field in part["properties"].items():
            assert len(field["description"]) > 3, name
            assert field["description"].endswith("."), name


def test_the_page_is_fresh() -> None:
    assert json_reference.PAGE.read_text() == json_reference.reference(), "make command-reference"


def test_schemas_are_printed(agewell: Agewell) -> None:
    def schema(*words: str) -> Any:
        return json.loads(agewell("schema", *words).stdout)

    assert schema("trace", "info") == schema("trace info") == of_kind("trace-info")
    assert schema("sweep") == of_kind("sweep-runs")
    assert schema("sweep.json") == of_kind("sweep")
    several = schema("devices")
    assert len(several["anyOf"]) == 3
    assert of_command("error.json") == of_kind("run-error")
    assert "hot-cold" in json.dumps(schema())
    done = agewell("schema", "trace", "inof", check=False)
    assert done.returncode == 2
    assert "did you mean trace info?" in done.stderr


def test_errors_are_no_documents(agewell: Agewell, experiment: Path) -> None:
    for arguments in (
        ("run", "absent.toml"),
        ("run", experiment, "--set", "queue.discipline=none"),
        ("score", "absent"),
        ("trace", "info", "absent"),
        ("diff", "absent", "absent"),
    ):
        done = agewell(*arguments, "--json", check=False)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1


def test_documents_of_earlier_versions_are_known(every: list[tuple[str, str]]) -> None:
    known = {kind for kind, _ in every} & set(_OLDER)
    assert len(known) >= 7
    for kind, text in every:
        now = json.loads(text)
        assert kind_of(now) == kind
        if kind in known:
            assert kind_of({name: now[name] for name in now if name != "document"}) == kind
            assert kind_of({**now, "document": "of another program"}) is None
    assert kind_of({"anything": 1}) is None
