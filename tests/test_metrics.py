"""Metrics for people: every one is described, ordered, and written with the right unit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agewell as api
from agewell.values.metrics import METRICS, change_pct, describe, in_order, show, show_change
from conftest import REPOSITORY


def test_every_metric_of_a_result_is_described(experiment: Path) -> None:
    settings = {"remap.kind": "random", "remap.interval": "10 s", "remap.quantum": "block"}
    result = api.run(experiment, settings=settings)
    page = (REPOSITORY / "docs" / "reference" / "metrics.md").read_text()
    documented = set(re.findall(r"`([a-z0-9_]+)`", page))
    described = {metric.name for metric in METRICS}
    names = set(result.metrics) | set(result.baseline or {})
    assert names - described == set()
    assert names - documented == set()


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("requests", 1234567, "1 234 567"),
        ("requests", 0, "0"),
        ("mean_service_ms", 14.09612, "14.096"),
        ("mean_service_ms", None, "-"),
        ("zero_seek_fraction", 0.316, "31.6"),
        ("disk_seconds", 15322.204, "15 322.20"),
        ("move_bytes", 2_500_000, "2.50"),
        ("something_new", 1.5, "1.500"),
        ("something_new", True, "true"),
        ("something_new", "text", "text"),
    ],
)
def test_values_are_written_for_people(name: str, value: object, text: str) -> None:
    assert show(name, value) == text


def test_changes_are_shown_where_they_say_something() -> None:
    assert show_change("mean_service_ms", 20.0, 15.0) == "-25.0 %"
    assert show_change("mean_service_ms", 0.0, 15.0) == ""
    assert show_change("mean_service_ms", None, 15.0) == ""
    assert show_change("requests", 10, 20) == ""


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9))
def test_a_change_leads_from_the_one_value_to_the_other(before: float, after: float) -> None:
    change = change_pct("mean_service_ms", before, after)
    assert change is not None
    assert before * (1 + change / 100) == pytest.approx(after, rel=1e-6, abs=before * 1e-9)


def test_the_order_is_that_of_the_list_and_keeps_strangers_last() -> None:
    names = {"stranger": 1, "mean_service_ms": 1, "requests": 1}
    assert in_order(names) == ["requests", "mean_service_ms", "stranger"]


def test_units_stand_last_in_the_names() -> None:
    suffixes = {"ms": "_ms", "s": "_seconds", "MB/s": "_mb_per_s", "cylinders": "_cylinders"}
    for metric in METRICS:
        if metric.unit in suffixes:
            assert metric.name.endswith(suffixes[metric.unit])
    assert describe("mean_seek_ms").unit == "ms"
