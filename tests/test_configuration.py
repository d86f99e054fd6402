"""Experiments as files and settings: what is read, and what is refused with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agewell.errors import InputError
from agewell.experiments.configuration import (
    canonical_json,
    load,
    parse_axis,
    parse_settings,
    parse_value,
    read_toml,
    with_settings,
)

PLAIN_TEXT = (
    st.text(st.characters(categories=("L", "N"), include_characters=" _-/."), min_size=1)
    .map(str.strip)
    .filter(bool)
)
SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False)
)
QUOTED = st.text(
    st.characters(
        codec="ascii", exclude_characters="\\\"'\x7f", categories=("L", "N", "P", "S", "Zs")
    )
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0.8", 0.8),
        ("true", True),
        ("shuffle", "shuffle"),
        ("1 d", "1 d"),
        ('"1 d"', "1 d"),
        ("8 KiB", "8 KiB"),
        ("device=0", "device=0"),
        ('["a", "b"]', ["a", "b"]),
        ("2020-01-01", "2020-01-01"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("1\nother = 2", "1\nother = 2"),
        ("", ""),
    ],
)
def test_a_value_is_toml_or_else_text(text: str, value: Any) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


@given(SCALARS)
def test_a_number_or_truth_value_survives_being_written(value: Any) -> None:
    assert parse_value(json.dumps(value)) == value


@given(
    st.lists(
        st.one_of(SCALARS, st.lists(QUOTED, max_size=3), QUOTED.filter(bool)),
        min_size=1,
        unique_by=canonical_json,
    )
)
def test_an_axis_gives_back_the_values_it_was_made_of(values: list[Any]) -> None:
    text = ",".join(json.dumps(value) for value in values)
    assert parse_axis(f"remap.kind={text}") == ("remap.kind", values)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("remap.kind", "--over remap.kind: expected table.key=value"),
        ("=1,2", "--over =1,2: expected table.key=value"),
        ("remap.alpha=1,,2", "a value is missing between the commas"),
        ("remap.alpha=1,1", "the value 1 stands there twice"),
    ],
)
def test_a_bad_axis_says_what_is_wrong(assignment: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_axis(assignment)


def test_the_last_setting_of_a_name_wins() -> None:
    assert parse_settings(["run.seed=1", "run.seed=2"]) == {"run.seed": 2}


def test_settings_leave_the_original_alone() -> None:
    original = {"run": {"seed": 1}}
    assert with_settings(original, {"run.seed": 2, "remap.kind": "none"}) == {
        "run": {"seed": 2},
        "remap": {"kind": "none"},
    }
    assert original == {"run": {"seed": 1}}


@pytest.mark.parametrize("name", ["seed", "run.", ".seed", "run.a b", "run..seed", ""])
def test_a_setting_must_name_a_table_and_a_key(name: str) -> None:
    with pytest.raises(InputError, match=r"expected table\.key"):
        with_settings({"run": {"seed": 1}}, {name: 2})


def test_a_setting_cannot_go_through_a_value() -> None:
    with pytest.raises(InputError, match=r"run\.seed is a value, not a table"):
        with_settings({"run": {"seed": 1}}, {"run.seed.low": 2})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[run]\nseed = \n", r"bad\.toml:2:8: not TOML: Invalid value"),
        (b"[run]\nseed 1\n", r"bad\.toml:2:6: not TOML"),
        (b'[run]\nname = "a', r"bad\.toml: end of file: not TOML|bad\.toml:2:\d+: not TOML"),
        (b"\xff\xfe", r"bad\.toml: byte 0: not UTF-8 text"),
        (b"[run]\nstart = 2020-01-01\n", r"\[run\] holds a date"),
    ],
)
def test_a_bad_file_gives_the_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as raised:
        load(path)
    assert "\n" not in str(raised.value)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.toml: cannot be read: No such file"):
        read_toml(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"result\.json:1:2: not a result of agewell run"),
        ("[]", "no table 'config'"),
        ('{"config": {}}', "its 'inputs' are damaged"),
        ('{"config": {}, "inputs": [{"name": "a"}]}', "its 'inputs' are damaged"),
        (
            '{"config": {}, "inputs": [{"name": "gone", "sha256": "00"}]}',
            "input gone was not found",
        ),
    ],
)
def test_a_damaged_record_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load(path)


def test_a_record_whose_input_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("other bytes")
    record = {"config": {}, "inputs": [{"name": "trace.csv", "sha256": "00" * 32}]}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"trace\.csv has changed since that run"):
        load(path)
