"""A paper's numbers and the tests that ours must pass, from `expected.toml`.

A row of that file names one of our values by its key and says what was printed and which test
decides:

    [[row]]
    key = "c2200a/shuffled_cylinders"    # our value
    what = "mean seek distance, hplajw on the C2200A, shuffled daily"
    unit = "cylinders"
    paper = 53                           # what the paper prints; absent if it prints nothing
    factor = 3                           # ours / paper between 1/3 and 3
    below = "c2200a/unshuffled_cylinders"
    differs = "..."                      # why ours is known to differ; shown if the test fails

Tests: `factor`, `within_pct`, `same_sign`, `at_least`, `at_most`, `above` or `below` another of our
values, and `near` one: `near = { to = "another", within_pct = 3, least = 0.1 }`, per cent of it or
of `least`, whichever is more. Several must all hold. A row without a test is shown without a
verdict; one that fails a test and says why is `differs`, and does not fail the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agewell.errors import InputError
from agewell.studies.study import Row, Verdict

Values = Mapping[str, float | None]
"""Our values by key; None where there is none, as a mean over nothing."""

_TEXT_KEYS = {"key", "what", "unit", "paper", "differs", "note"}


def rows(expected: Mapping[str, Any], values: Values, missing: Mapping[str, str]) -> list[Row]:
    """Judge every row of an `expected.toml`.

    Args:
        expected: The file.
        values: Our values by key.
        missing: Workloads that could not be run, by the part of a key before the slash, and why.

    Raises:
        InputError: A row names a value that the figure does not compute, or a test that is not
            known.
    """
    return [_row(table, values, missing) for table in expected.get("row", [])]


def _row(table: Mapping[str, Any], values: Values, missing: Mapping[str, str]) -> Row:
    key = str(table["key"])
    tests = {name: table[name] for name in table if name not in _TEXT_KEYS}
    unknown = [name for name in tests if name not in _TESTS]
    if unknown:
        raise InputError(f"expected.toml, row {key}: no test is called '{unknown[0]}'")
    paper = table.get("paper")
    what, unit = str(table["what"]), str(table.get("unit", ""))
    workload = key.partition("/")[0]
    if workload in missing:
        tolerance = ", ".join(_TESTS[name][0](tests[name], {}) for name in tests)
        return Row(what, paper, None, unit, tolerance, Verdict.NOT_RUN, missing[workload])
    tolerance = ", ".join(_TESTS[name][0](tests[name], values) for name in tests)
    if key not in values:
        raise InputError(f"expected.toml: this figure computes no value '{key}'")
    ours = values[key]
    note = str(table.get("note", ""))
    if not tests:
        return Row(what, paper, ours, unit, "", Verdict.INFORMATION, note)
    holds = ours is not None and all(
        _TESTS[name][1](ours, paper, _operand(tests[name], values)) for name in tests
    )
    if holds:
        return Row(what, paper, ours, unit, tolerance, Verdict.HOLDS, note)
    if "differs" in table:
        why = str(table["differs"])
        return Row(what, paper, ours, unit, tolerance, Verdict.DIFFERS, why)
    return Row(what, paper, ours, unit, tolerance, Verdict.FAILS, note)


def _operand(given: object, values: Values) -> Any:
    if isinstance(given, Mapping):
        return {**given, "to": _operand(given["to"], values)}
    if isinstance(given, str):
        other = values.get(given)
        if other is None:
            raise InputError(f"expected.toml: this figure computes no value '{given}'")
        return other
    if isinstance(given, bool):
        return float(given)
    if isinstance(given, int | float):
        return float(given)
    raise InputError(f"expected.toml: '{given}' is neither a number nor the key of a value")


def _within_factor(ours: float, paper: float, factor: float) -> bool:
    return ours * paper > 0 and 1 / factor <= ours / paper <= factor


def _name(key: object) -> str:
    return str(key).partition("/")[2].replace("_", " ")


def _near(given: Mapping[str, Any], values: Values) -> str:
    value = values.get(given["to"])
    shown = "" if value is None else f"{value:.4g}, "
    least = f", or {given['least'] * given['within_pct'] / 100:g}" if "least" in given else ""
    return f"within {given['within_pct']:g} % of {shown}{_name(given['to'])}{least}"


def _is_near(ours: float, _: object, given: Mapping[str, float]) -> bool:
    of = max(abs(given["to"]), given.get("least", 0))
    return abs(ours - given["to"]) <= of * given["within_pct"] / 100


_TESTS: dict[str, tuple[Callable[[Any, Values], str], Callable[[float, Any, Any], bool]]] = {
    "factor": (
        lambda factor, _: f"within a factor of {factor:g}",
        _within_factor,
    ),
    "within_pct": (
        lambda share, _: f"within {share:g} %",
        lambda ours, paper, share: abs(ours - paper) <= abs(paper) * share / 100,
    ),
    "same_sign": (
        lambda _, _values: "same sign",
        lambda ours, paper, _: ours * paper > 0,
    ),
    "at_least": (
        lambda limit, _: f"at least {limit:g}",
        lambda ours, _, limit: ours >= limit,
    ),
    "at_most": (
        lambda limit, _: f"at most {limit:g}",
        lambda ours, _, limit: ours <= limit,
    ),
    "above": (
        lambda key, _: f"above {_name(key)}",
        lambda ours, _, other: ours > other,
    ),
    "below": (
        lambda key, _: f"below {_name(key)}",
        lambda ours, _, other: ours < other,
    ),
    "near": (_near, _is_near),
}
