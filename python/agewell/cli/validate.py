"""`agewell validate`: a device model against measured response times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agewell import _agewell, catalogue
from agewell.cli.options import CatalogueOption, JsonOption
from agewell.cli.terminal import note, print_json, print_table

app = typer.Typer()

Base = Literal["closed", "trace", "both"]


@app.command("validate")
def validate(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="A device of the catalogue or a device file.")
    ],
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A trace with measured start and finish times.")
    ],
    base: Annotated[
        Base,
        typer.Option(
            help=(
                "Which table to print: closed (think time after simulated completion), trace (the "
                "measured issue times) or both. JSON always holds both."
            )
        ),
    ] = "both",
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="Fit three overheads on the first half of the trace; judge by the second half.",
        ),
    ] = False,
    trace_device: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Only this device of the trace; by default all, each on a drive of its own.",
            show_default=False,
        ),
    ] = None,
    catalogue_directory: CatalogueOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a measured trace through a device model and report the errors.

    The demerit is the RMS horizontal distance between the distributions of simulated and measured
    response times (Ruemmler & Wilkes 1994), computed as DiskSim does; the paired error is the RMS
    over single requests.

    Example: agewell validate hp-c2247a hp_c2247a.trace.zst
    """
    directory = catalogue.directory() if catalogue_directory is None else catalogue_directory
    options = json.dumps({"fit": fit, "trace_device": trace_device})
    report: dict[str, Any] = json.loads(
        _agewell.validate_device(device, str(directory), str(trace), options)
    )
    if as_json:
        print_json(report)
        return
    note(f"{report['device']['title']}: {report['trace']['requests']:,} measured requests")
    _print_bases(report, base)
    _tell_of_estimates(report)


def _print_bases(report: dict[str, Any], base: Base) -> None:
    rows = []
    for name, key in (("closed", "closed"), ("trace", "trace_clock")):
        if base not in (name, "both"):
            continue
        for part, part_name in (("whole", "whole trace"), ("held_out", "second half")):
            for kind in ("all", "reads", "writes"):
                errors = report[key][part][kind]
                if errors is not None:
                    rows.append((name, part_name, kind, *_cells(errors)))
    print_table(
        (
            "base",
            "of",
            "requests",
            ">number",
            ">simulated ms",
            ">measured ms",
            ">mean error %",
            ">demerit ms",
            ">demerit %",
            ">paired RMS ms",
            ">within 5 %",
        ),
        rows,
    )


def _cells(errors: dict[str, float]) -> tuple[str, ...]:
    return (
        f"{errors['requests']:,}",
        f"{errors['mean_ms']:.3f}",
        f"{errors['measured_mean_ms']:.3f}",
        f"{errors['mean_error_pct']:+.2f}",
        f"{errors['demerit_ms']:.4f}",
        f"{errors['demerit_pct']:.2f}",
        f"{errors['paired_rms_ms']:.3f}",
        f"{100 * errors['within_5_pct']:.1f} %",
    )


def _tell_of_estimates(report: dict[str, Any]) -> None:
    estimated = report["estimated"]
    if estimated["bus_sector_us"] is not None:
        note(
            "The device file leaves the bus to the host; from the first half: "
            f"{estimated['bus_sector_us']:.1f} us a sector."
        )
    if estimated["rotation_ppm"] is not None:
        if estimated["rotation_locked"]:
            note(
                "Trace base: phase and period from the first half, "
                f"{estimated['rotation_ppm']:+.1f} ppm off the nominal period "
                f"(coherence {estimated['rotation_coherence']:.3f})."
            )
        else:
            note(
                "Trace base: the phase could not be held "
                f"(coherence {estimated['rotation_coherence']:.3f}): rotation is unknown there."
            )
    for name, added_ms in estimated["fitted_ms"].items():
        note(f"Fitted on the first half: {name} {added_ms:+.4f}")
