"""What the JSON documents of agewell hold: a typed declaration a kind.

From a declaration follow the JSON Schema that `agewell schema COMMAND` prints, and the page
`docs/reference/json.md`. Types are those of the fields, and what each field means is said under
`Attributes:`; units stand at the end of names. What kind a document is, and in which version, is
said by `agewell.values.documents`, with whose names the declarations go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agewell.values.documents import (
    adaptive,
    aging,
    decisions,
    devices,
    reorganising,
    runs,
    scores,
    studies,
    traces,
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """Where documents of a kind come from, and what they hold.

    Attributes:
        shape: Its fields, a typed dictionary.
        commands: Which print it with `--json`.
        file: The name under which it is left in a folder; empty if it is only printed.
    """

    shape: type
    commands: tuple[str, ...] = ()
    file: str = ""


KINDS: Mapping[str, Declaration] = {
    "run": Declaration(runs.Run, ("run",), "result.json"),
    "run-error": Declaration(runs.RunError, file="error.json"),
    "run-timing": Declaration(runs.RunTiming, file="timing.json"),
    "run-origin": Declaration(runs.RunOrigin, file="origin.json"),
    "sweep-runs": Declaration(runs.SweepRuns, ("sweep",)),
    "sweep": Declaration(runs.Sweep, file="sweep.json"),
    "results": Declaration(runs.Results, ("results",)),
    "results-views": Declaration(runs.ResultsViews, ("results",)),
    "diff": Declaration(runs.Diff, ("diff",)),
    "report": Declaration(runs.Report, ("report",)),
    "compare": Declaration(decisions.Compare, ("compare",), "compare.json"),
    "compare-layouts": Declaration(decisions.CompareLayouts, ("compare",)),
    "advice": Declaration(decisions.Advice, ("advise",), "advice.json"),
    "segment-size": Declaration(decisions.SegmentSize, ("advise segment-size",)),
    "score": Declaration(scores.Score, ("score", "advise")),
    "snapshot": Declaration(scores.Snapshot, ("snapshot",)),
    "bench": Declaration(aging.Bench, ("bench",)),
    "age": Declaration(aging.Age, ("age",)),
    "workload": Declaration(
        aging.WorkloadMade,
        (
            "workload git",
            "workload oplist",
            "workload snapshots",
            "workload profile",
            "workload trace",
            "workload smith-1996",
        ),
    ),
    "workload-info": Declaration(aging.WorkloadInfo, ("workload info",)),
    "reorganise": Declaration(reorganising.Reorganise, ("reorganise",)),
    "reorganise-round": Declaration(reorganising.ReorganiseRound, ("reorganise",)),
    "fs-status": Declaration(adaptive.FsStatus, ("fs status",)),
    "fs-layout": Declaration(adaptive.FsLayout, ("fs layout",)),
    "fs-scrub": Declaration(adaptive.FsScrub, ("fs scrub",)),
    "fsck": Declaration(adaptive.Fsck, ("fsck",)),
    "store-info": Declaration(adaptive.StoreInfo, ("store info", "store format", "store grow")),
    "store-check": Declaration(adaptive.StoreCheck, ("store check",)),
    "store-salvage": Declaration(adaptive.StoreSalvage, ("store salvage",)),
    "devices": Declaration(devices.Devices, ("devices",)),
    "device": Declaration(devices.Device, ("devices",)),
    "device-import": Declaration(devices.DeviceImport, ("devices",)),
    "probe": Declaration(devices.Probe, ("probe",)),
    "validate": Declaration(devices.Validate, ("validate",)),
    "validate-drives": Declaration(devices.ValidateDrives, ("validate",)),
    "trace-info": Declaration(traces.TraceInfo, ("trace info",)),
    "trace-head": Declaration(traces.TraceHead, ("trace head",)),
    "trace-convert": Declaration(
        traces.TraceConvert, ("trace convert", "trace filter", "trace merge")
    ),
    "trace-formats": Declaration(traces.TraceFormats, ("trace formats",)),
    "record": Declaration(traces.Record, ("record",)),
    "record-recover": Declaration(traces.RecordRecover, ("record",)),
    "reproduce": Declaration(studies.Reproduce, ("reproduce",), "rows.json"),
    "reproduce-papers": Declaration(studies.ReproducePapers, ("reproduce",)),
}
"""Every kind of document, in the order of the reference."""

COMMANDS = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.commands))
"""Every command that prints a document."""
