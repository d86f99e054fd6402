"""Two sets of runs, or two documents, held against one another, pair by pair: `agewell.diff`.

Runs are paired on their resolved configuration alone, so that two builds, two machines or two
states of an input can be compared; what differs in its seed only is a replicate. For each metric of
each configuration the ratio B over A is the geometric mean of the ratios of its pairs, with a
confidence interval by Student's t on their logarithms: the means of ratios of paired runs, which
share their random numbers and so most of their variation (Law, Simulation Modeling and Analysis,
5th ed., section 11.2, common random numbers; Fleming and Wallace, Communications of the ACM 29(3),
1986, for the geometric mean of ratios).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from agewell.errors import InputError
from agewell.experiments.configuration import canonical_json, read_json
from agewell.runs import run_tables
from agewell.runs.document_metrics import COMPARED, entries
from agewell.runs.found_runs import DONE, identity, without_settings
from agewell.values import documents, student_t
from agewell.values.documents import kind_of
from agewell.values.findings import Findings
from agewell.values.metrics import describe, in_order
from agewell.values.plot import Curve, Plot

TOLERANCE = 0.02
"""Change that is taken for none; chosen by us: what a modelled disk is good for."""

_SLACK = 1e-12
"""So that a change of exactly the tolerance is within it, whatever the rounding."""

_NAMED_MAX = 3
"""Settings that a message names."""

_SEARCHED_MAX = 100
"""Runs of a side that are looked through for the nearest; chosen by us: done at once."""

_LOG_MAX = 700.0
"""The logarithm of about the greatest float."""

Verdict = Literal["same", "within", "unsure", "beyond"]
Direction = Literal["better", "worse", "neither"]

VERDICTS: Mapping[Verdict, str] = {
    "same": "every pair has the same value",
    "within": "every pair, or the interval of the ratio, is within the tolerance",
    "unsure": "the pairs do not agree and the interval is partly beyond: more seeds would show",
    "beyond": "every pair, or the interval of the ratio, is beyond the tolerance on one side",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One run of A and the run of B that was asked the same with the same seed."""

    seed: int | None
    a: Mapping[str, float | None]
    b: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One metric of one configuration.

    Attributes:
        configuration_id: Of the configuration.
        settings: Those of its settings in which the compared configurations differ.
        metric: The name.
        pairs: How many there are, one a seed.
        a: Mean over the pairs.
        b: Likewise.
        ratio: B over A; None where it has no meaning, as for values of different signs.
        ratio_low: Lower end of its interval; None for a single pair.
        ratio_high: Upper end.
        verdict: What that says beside the tolerance.
        direction: Whether B is better.
    """

    configuration_id: str
    settings: Mapping[str, Any]
    metric: str
    pairs: int
    a: float | None
    b: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    verdict: Verdict
    direction: Direction

    @property
    def label(self) -> str:
        """The settings for people."""
        return ", ".join(f"{name}={_text(value)}" for name, value in self.settings.items())


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric over all configurations.

    Attributes:
        metric: The name.
        configurations: How many have it on both sides.
        ratio: Geometric mean of their ratios; None where one has none.
        ratio_min: The least.
        ratio_max: The greatest.
        beyond: How many are beyond the tolerance.
        unsure: How many may be.
        direction: Of those beyond; `neither` where they do not agree.
    """

    metric: str
    configurations: int
    ratio: float | None
    ratio_min: float | None
    ratio_max: float | None
    beyond: int
    unsure: int
    direction: Direction


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Findings):
    """Two sets of runs, pair by pair.

    Attributes:
        a: The folder of the first.
        b: The folder of the second.
        tolerance: Change that is taken for none, as a fraction.
        worse_only: Whether only changes for the worse count.
        comparisons: A configuration and metric each.
        pairs: Runs that have been paired.
        configurations: Different configurations among them.
        unpaired: Of each side, the runs without a partner and why.
        other_inputs: Pairs whose input files have other bytes under the same names.
        builds: Of each side, the builds that made the paired runs.
    """

    a: Path
    b: Path
    tolerance: float
    worse_only: bool
    comparisons: Sequence[Comparison]
    pairs: int
    configurations: int
    unpaired: Mapping[str, Sequence[Mapping[str, str]]]
    other_inputs: int
    builds: Mapping[str, Sequence[str]]

    @property
    def metrics(self) -> dict[str, float | None]:
        """The ratio B over A of each metric, over all configurations."""
        return {each.metric: each.ratio for each in self.summaries()}

    @property
    def beyond(self) -> list[Comparison]:
        """What counts: beyond the tolerance, and for the worse where only that counts."""
        return [each for each in self.comparisons if self.counts(each)]

    def counts(self, comparison: Comparison) -> bool:
        """Whether a comparison is a difference that counts."""
        if comparison.verdict != "beyond":
            return False
        return not self.worse_only or comparison.direction == "worse"

    def summaries(self) -> list[Summary]:
        """Each metric over all configurations, in the order of reports."""
        by_name: dict[str, list[Comparison]] = {}
        for each in self.comparisons:
            by_name.setdefault(each.metric, []).append(each)
        return [self._summary(name, by_name[name]) for name in in_order(by_name)]

    def _summary(self, metric: str, those: Sequence[Comparison]) -> Summary:
        ratios = [each.ratio for each in those if each.ratio is not None]
        is_whole = len(ratios) == len(those)
        counted = [each for each in those if self.counts(each)]
        directions = {each.direction for each in counted}
        return Summary(
            metric=metric,
            configurations=len(those),
            ratio=_geometric_mean(ratios) if is_whole else None,
            ratio_min=min(ratios, default=None),
            ratio_max=max(ratios, default=None),
            beyond=len(counted),
            unsure=sum(each.verdict == "unsure" for each in those),
            direction=directions.pop() if len(directions) == 1 else "neither",
        )

    @property
    def document(self) -> dict[str, Any]:
        """As `agewell diff --json` prints it."""
        fields = {
            "a": str(self.a),
            "b": str(self.b),
            "builds": {side: list(builds) for side, builds in self.builds.items()},
            "tolerance": self.tolerance,
            "confidence": student_t.CONFIDENCE,
            "worse_only": self.worse_only,
            "pairs": self.pairs,
            "configurations": self.configurations,
            "other_inputs": self.other_inputs,
            "beyond": len(self.beyond),
            "unpaired": {side: list(map(dict, runs)) for side, runs in self.unpaired.items()},
            "metrics": [_fields(each) for each in self.summaries()],
            "comparisons": [
                {**_fields(each), "settings": dict(each.settings)} for each in self.comparisons
            ],
        }
        return documents.document("diff", fields)

    def table(self) -> pa.Table:
        """A row a configuration and metric."""
        rows = [{**_fields(each), "settings": each.label} for each in self.comparisons]
        return pa.Table.from_pylist(rows)

    def plots(self) -> list[Plot]:
        """The ratio of each metric in each configuration."""
        names = in_order({each.metric: None for each in self.comparisons})
        known = [each for each in self.comparisons if each.ratio is not None]
        return [
            Plot(
                name="ratios",
                title="B over A",
                x_label="metric",
                y_label="ratio",
                curves=[
                    Curve(
                        "",
                        [names.index(each.metric) for each in known],
                        [each.ratio for each in known if each.ratio is not None],
                        style="points",
                    )
                ],
                categories=names,
            )
        ]

    def _shown(self) -> dict[str, object]:
        return {"pairs": self.pairs, "beyond": len(self.beyond), "tolerance": self.tolerance}


def diff(
    a: Path | str,
    b: Path | str,
    *,
    tolerance: float = TOLERANCE,
    metrics: Iterable[str] = (),
    ignore: Iterable[str] = (),
    worse_only: bool = False,
) -> Difference:
    """Hold the runs below one folder against those below another, or a document against another.

    Args:
        a: The first folder: a run, a sweep, or anything below which there are runs; or the file of
            a document with numbers, such as of `agewell score --json`.
        b: The second one.
        tolerance: Change that is taken for none, as a fraction of A.
        metrics: Those to compare; all by default.
        ignore: Settings that may differ within a pair, as `table.key`, or `table` for all of it.
        worse_only: Count changes for the worse only, of metrics that have a direction.

    Returns:
        The ratios, and which are beyond the tolerance.

    Raises:
        InputError: A folder or document cannot be read, two documents are not of one kind, no runs
            can be paired, one side has two answers to one question, or a metric is in no pair.
    """
    ignored = tuple(ignore)
    if not 0 <= tolerance < math.inf:
        raise InputError(f"tolerance {tolerance}: must be a fraction that is not negative")
    sides = _sides({"a": Path(a), "b": Path(b)}, ignored)
    pairs, unpaired = _paired(sides)
    if not pairs:
        raise InputError(f"{a}, {b}: no runs can be paired: {_why_none(sides)}")
    varying = _varying([sides["a"].runs[key].settings for key in pairs])
    # Folders of runs are named by keys, in which the build counts: their order means nothing.
    pairs.sort(
        key=lambda key: _rank([sides["a"].runs[key].settings.get(each) for each in varying], key)
    )
    wanted = set(metrics)
    compared: dict[str, list[Pair]] = {}
    settings: dict[str, Mapping[str, Any]] = {}
    other_inputs = 0
    for key in pairs:
        one, other = sides["a"].runs[key], sides["b"].runs[key]
        other_inputs += one.inputs != other.inputs
        question, seed = key
        compared.setdefault(question, []).append(Pair(seed, one.metrics, other.metrics))
        settings.setdefault(question, {name: one.settings.get(name) for name in varying})
    comparisons = []
    for question, replicates in compared.items():
        names = dict.fromkeys(
            name for pair in replicates for name in pair.a if all(name in p.b for p in replicates)
        )
        for name in in_order(names):
            if wanted and name not in wanted:
                continue
            found = _compare(name, replicates, tolerance)
            if found is not None:
                comparisons.append(
                    Comparison(
                        configuration_id=question,
                        settings=settings[question],
                        metric=name,
                        **found,
                    )
                )
    lacking = wanted - {each.metric for each in comparisons}
    if lacking:
        raise InputError(f"metric {min(lacking)}: no pair has it on both sides")
    return Difference(
        a=Path(a),
        b=Path(b),
        tolerance=tolerance,
        worse_only=worse_only,
        comparisons=comparisons,
        pairs=len(pairs),
        configurations=len(compared),
        unpaired=unpaired,
        other_inputs=other_inputs,
        builds={
            name: sorted({side.runs[key].build for key in pairs}) for name, side in sides.items()
        },
    )


_Key = tuple[str, int | None]
"""What is paired: the configuration and the seed."""


@dataclass(frozen=True, slots=True)
class _Run:
    run: str
    build: str
    inputs: str
    settings: Mapping[str, Any]
    metrics: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class _Side:
    """The runs below a folder by what is paired, and those that are not done."""

    runs: Mapping[_Key, _Run]
    not_done: Sequence[Mapping[str, str]]


def _sides(paths: Mapping[str, Path], ignored: Sequence[str]) -> dict[str, _Side]:
    """Both sides: runs below folders, or what documents of one kind say.

    Raises:
        InputError: They cannot be read, or are not of one kind.
    """
    files = [path for path in paths.values() if path.is_file()]
    if not files:
        return {name: _side(path, ignored) for name, path in paths.items()}
    if len(files) < len(paths):
        other = next(path for path in paths.values() if path not in files)
        raise InputError(
            f"{files[0]}: a file, and {other} is none; give two folders, or two documents"
        )
    read = {name: _document(path) for name, path in paths.items()}
    kinds = [kind for kind, _ in read.values()]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"{files[1]}: a document of {kinds[1]}, and {files[0]} is of {kinds[0]}; "
            "only two of a kind can be compared"
        )
    return {
        name: _said(paths[name], kind, document, ignored) for name, (kind, document) in read.items()
    }


def _document(path: Path) -> tuple[str, Mapping[str, Any]]:
    """A document with numbers to compare, and its kind.

    Raises:
        InputError: It is none.
    """
    document = read_json(path, "what a command of agewell printed with --json")
    kind = kind_of(document) if isinstance(document, dict) else None
    if kind == "run":
        raise InputError(f"{path}: a run; name its folder")
    if kind not in COMPARED:
        known = ", ".join(COMPARED)
        what = "no document of agewell" if kind is None else f"a document of {kind}"
        raise InputError(f"{path}: {what}; those of {known} can be compared, and folders of runs")
    return kind, document


def _said(path: Path, kind: str, document: Mapping[str, Any], ignored: Sequence[str]) -> _Side:
    """The numbers of a document, by what they are of.

    Raises:
        InputError: It is damaged, or two of its numbers are of the same.
    """
    try:
        found = entries(kind, document)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError(
            f"{path}: looks like a document of {kind}, but is damaged or of another version "
            f"({type(error).__name__}: {error}); make it again"
        ) from None
    runs: dict[_Key, _Run] = {}
    for of, metrics in found:
        settings = without_settings(of, ignored)
        name = ", ".join(f"{key}={_text(value)}" for key, value in of.items()) or str(path)
        run = _Run(name, str(document.get("agewell_build", "unknown")), "", settings, metrics)
        if runs.setdefault((identity(settings), None), run) is not run:
            raise InputError(f"{path}: {name}: stands there twice, or differs in what is ignored")
    return _Side(runs, [])


def _side(folder: Path, ignored: Sequence[str]) -> _Side:
    """The runs below a folder.

    Raises:
        InputError: There are none, or two of one question give different numbers.
    """
    tables = run_tables.tables([folder])
    measured: dict[str, dict[str, float | None]] = {}
    for row in tables.metrics.to_pylist():
        if row["lane"] == "run":
            measured.setdefault(row["run"], {})[row["metric"]] = row["value"]
    runs: dict[_Key, _Run] = {}
    not_done = []
    for row in tables.runs.to_pylist():
        name = row["run"]
        if row["status"] != DONE:
            not_done.append({"run": name, "why": f"{row['status']}: {row['error']}"})
            continue
        config = json.loads(row["configuration"])
        question = identity(config, ignored) if ignored else row["configuration_id"]
        settings = _flat(without_settings(config, ("run.seed", *ignored)))
        found = _Run(
            name, row["build"] or "unknown", row["inputs"], settings, measured.get(name, {})
        )
        earlier = runs.setdefault((question, row["seed"]), found)
        if earlier.metrics != found.metrics:
            raise InputError(
                f"{earlier.run}, {name}: two answers to one question, which only one of them can "
                "be compared with; name a folder that holds one of them"
            )
    return _Side(runs, not_done)


def _rank(values: Sequence[Any], key: _Key) -> tuple[Any, ...]:
    """The place of a pair among others: by what varies, numbers before words, then by its seed."""
    by_value = [
        (0, value, "")
        if isinstance(value, int | float) and not isinstance(value, bool)
        else (1, 0, str(value))
        for value in values
    ]
    return (by_value, str(key[0]), key[1] is not None, key[1] or 0)


def _paired(
    sides: Mapping[str, _Side],
) -> tuple[list[_Key], dict[str, list[Mapping[str, str]]]]:
    """What both sides have, and what only one has."""
    pairs = [key for key in sides["a"].runs if key in sides["b"].runs]
    unpaired: dict[str, list[Mapping[str, str]]] = {}
    for name, other in (("a", "b"), ("b", "a")):
        questions = {question for question, _ in sides[other].runs}
        unpaired[name] = [
            *sides[name].not_done,
            *(
                {
                    "run": run.run,
                    "why": "none with its seed"
                    if key[0] in questions
                    else "none of its configuration",
                }
                for key, run in sides[name].runs.items()
                if key not in sides[other].runs
            ),
        ]
    return pairs, unpaired


def _why_none(sides: Mapping[str, _Side]) -> str:
    """What keeps the two nearest runs from being a pair."""
    a, b = sides["a"].runs, sides["b"].runs
    for side, runs in (("first", a), ("second", b)):
        if not runs:
            return f"the {side} has no run that is done, and no numbers"
    if {question for question, _ in a} & {question for question, _ in b}:
        return "those of one configuration differ in their seeds"
    nearest = min(
        (
            sorted(
                name
                for name in {*one.settings, *other.settings}
                if one.settings.get(name) != other.settings.get(name)
            )
            for one in list(a.values())[:_SEARCHED_MAX]
            for other in list(b.values())[:_SEARCHED_MAX]
        ),
        key=len,
    )
    named = ", ".join(nearest[:_NAMED_MAX])
    more = f" and {len(nearest) - _NAMED_MAX} more" if len(nearest) > _NAMED_MAX else ""
    return f"the nearest differ in {named}{more}; --ignore {nearest[0]} pairs across a setting"


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a configuration by `table.key`."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            found |= {f"{name}.{key}": inner for key, inner in _flat(value).items()}
        else:
            found[name] = value
    return found


def _varying(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings in which configurations differ."""
    names = dict.fromkeys(name for each in configurations for name in each)
    return [
        name
        for name in names
        if len({canonical_json(each.get(name)) for each in configurations}) > 1
    ]


def _compare(metric: str, pairs: Sequence[Pair], tolerance: float) -> dict[str, Any] | None:
    """One metric of one configuration; None if no pair has numbers for it."""
    values = [(pair.a[metric], pair.b[metric]) for pair in pairs if metric in pair.a]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    if all(a is None and b is None for a, b in values):
        return None
    mean_a = _mean([a for a, _ in known])
    mean_b = _mean([b for _, b in known])
    found: dict[str, Any] = {
        "pairs": len(values),
        "a": mean_a,
        "b": mean_b,
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "verdict": "beyond",
        "direction": _direction(metric, mean_a, mean_b),
    }
    if all(a == b for a, b in values):
        return found | {"ratio": 1.0, "verdict": "same", "direction": "neither"}
    # What only one side can say is no small change, and neither is a change of sign.
    if len(known) < len(values) or any(a * b <= 0 and a != b for a, b in known):
        return found
    logs = [0.0 if a == b else math.log(abs(b)) - math.log(abs(a)) for a, b in known]
    ratio = _exp(math.fsum(logs) / len(logs))
    verdict = _verdict(_exp(min(logs)), _exp(max(logs)), tolerance)
    ends = student_t.interval(logs)
    if ends is not None:
        low, high = _exp(ends[0]), _exp(ends[1])
        found |= {"ratio_low": low, "ratio_high": high}
        # What every single pair shows needs no statistics.
        if verdict == "unsure":
            verdict = _verdict(low, high, tolerance)
    return found | {"ratio": ratio, "verdict": verdict}


def _verdict(low: float, high: float, tolerance: float) -> Verdict:
    """What ratios between `low` and `high` are beside the tolerance."""
    least, most = 1.0 - tolerance - _SLACK, 1.0 + tolerance + _SLACK
    if least <= low and high <= most:
        return "within"
    return "beyond" if high < least or low > most else "unsure"


def _direction(metric: str, a: float | None, b: float | None) -> Direction:
    better = describe(metric).better
    if a is None or b is None or a == b or better == "neither":
        return "neither"
    return "better" if (b < a) == (better == "lower") else "worse"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def _exp(value: float) -> float:
    """Of a logarithm; the end of an interval of two wild pairs may be beyond what a float holds."""
    return math.exp(max(-_LOG_MAX, min(value, _LOG_MAX)))


def _fields(value: Comparison | Summary) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__ if name != "settings"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
