"""Advice on the size of segments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agewell.experiments.experiment_file import to_toml
from agewell.report.page import Cell, Highlight, PageTable, Section
from agewell.report.part import Part
from agewell.values.metrics import describe, show
from agewell.values.plot import Curve, Plot
from agewell.values.sizes import size_text

_NOT_METRICS = ("segment_bytes", "above_best_pct")


def part(document: Mapping[str, Any], _path: Path) -> Part:
    """What `agewell advise segment-size --json` printed."""
    device, sizes = document["device"], document["sizes"]
    metrics = [name for name in sizes[0] if name not in _NOT_METRICS]
    rows = [
        [
            Cell(size_text(each["segment_bytes"])),
            *(Cell("-" if each[name] is None else show(name, each[name])) for name in metrics),
            Cell("-" if each["above_best_pct"] is None else f"{each['above_best_pct']:.1f}"),
        ]
        for each in sizes
    ]
    columns = ("segment size", *(describe(name).label for name in metrics), "above the best (%)")
    plot = Plot(
        name="segment-size",
        title="Cost over segment size",
        x_label="segment size",
        y_label=describe("overall_write_cost").label,
        curves=[
            Curve(
                "",
                list(range(len(sizes))),
                [_number(each["overall_write_cost"]) for each in sizes],
                style="bars",
            )
        ],
        categories=[size_text(each["segment_bytes"]) for each in sizes],
    )
    best = Highlight(size_text(document["best_segment_bytes"]), "segment size that costs least")
    return Part(
        kind="segment size",
        title="Advice on segment size",
        subtitle=f"access time {device['access_ms']:.4g} ms, bandwidth "
        f"{device['bandwidth_mb_per_s']:,.4g} MB/s",
        verdict=document["advice"],
        highlights=[best],
        sections=[
            Section(
                identifier="sizes",
                title="Every size",
                tables=[PageTable(columns, rows, frozenset(range(len(columns))))],
                plots=[plot],
                listing=("The experiment", to_toml(document["config"])),
            )
        ],
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
