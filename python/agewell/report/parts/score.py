"""Layout metrics of trees, images and snapshots, with the map of the device."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell.filesystems import scoring
from agewell.report import drawing
from agewell.report.charts import score as charts
from agewell.report.page import Cell, Highlight, PageTable, Picture, Section
from agewell.report.part import Part


def part(document: Mapping[str, Any], _path: Path) -> Part:
    """What `agewell score --json` printed."""
    scores = [scoring.Score.of(target) for target in document["targets"]]
    with drawing.style("score"):
        svg = drawing.inline_figure(charts.figure(scores), "score", "Layout metrics")
    shown = scoring.known_metrics(scores)
    table = PageTable(
        columns=["what", *(metric.label for metric in shown)],
        rows=[
            [
                Cell(scored.path),
                *(
                    Cell(scoring.metric_text(metric, scored.metrics[metric.name]))
                    for metric in shown
                ),
            ]
            for scored in scores
        ],
        numeric=frozenset(range(1, len(shown) + 1)),
    )
    names = dict.fromkeys(scored.path for scored in scores)
    last = scores[-1]
    return Part(
        kind="score",
        title="Layout metrics",
        subtitle=", ".join(names),
        verdict=_verdict(scores),
        highlights=_highlights(last),
        sections=[
            Section(
                identifier="layout",
                title="Layout",
                tables=[table],
                pictures=[Picture("score", "Layout metrics", svg)],
            )
        ],
        facts=[("again", f"agewell score {shlex.join(names)}")],
    )


def _verdict(scores: list[scoring.Score]) -> list[str]:
    """What each says; of a series the last."""
    if len(scores) == 1 or scoring.is_series(scores):
        return scoring.verdict(scores[-1])
    return [f"{scored.path}: {scoring.verdict(scored)[0]}" for scored in scores]


def _highlights(scored: scoring.Score) -> list[Highlight]:
    score, gain = scored.metrics["layout_score"], scored.metrics.get("rewriting_gain_pct")
    found = []
    if gain is not None and scored.reorganising is not None:
        walk = scored.reorganising["walk"]
        found.append(
            Highlight(
                f"{-gain:+.1f} %",
                "time of a walk over all files, if they were rewritten in order",
                f"{walk['as_they_lie_seconds']:,.1f} s as they lie",
                "good" if gain > 0 else "",
            )
        )
    if score is not None:
        found.append(Highlight(scoring.share_text(score), "layout score"))
    return found
