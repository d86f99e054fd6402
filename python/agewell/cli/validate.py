"""`agewell validate`: a device model against measured response times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agewell.cli.options import CatalogueOption, JsonOption
from agewell.cli.terminal import note, print_json, print_table
from agewell.errors import InputError
from agewell.experiments import validations
from agewell.values.documents import document, fields_of

app = typer.Typer()

Base = Literal["closed", "trace", "both"]


@app.command("validate")
def validate(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE",
            help=(
                "A device of the catalogue, a device file, a DiskSim .diskspecs file, or a folder "
                "of such files."
            ),
        ),
    ],
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TRACE]",
            help=(
                "A trace with measured start and finish times; with a folder of devices, a folder "
                "of traces (by default the same), one row a drive."
            ),
        ),
    ] = None,
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
        ),
    ] = None,
    catalogue_directory: CatalogueOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a measured trace through a device model and report the errors.

    The demerit is the RMS horizontal distance between the distributions of simulated and measured
    response times (Ruemmler & Wilkes 1994), computed as DiskSim does; the paired error is the RMS
    over single requests. In a folder, NAME.trace goes with NAME.toml and NAME.diskspecs; figures of
    DiskSim 4.0 stand beside those of its own validation traces.

    Examples: agewell validate hp-c2247a hp_c2247a.trace.zst; agewell validate drives traces
    """
    if Path(device).is_dir():
        _validate_all(Path(device), trace, catalogue_directory, fit=fit, as_json=as_json)
        return
    if trace is None:
        raise InputError("agewell validate needs a TRACE, for example hp_c2247a.trace.zst")
    report = validations.validate(
        device, trace, fit=fit, trace_device=trace_device, catalogue_directory=catalogue_directory
    ).document
    if as_json:
        print_json(report)
        return
    note(f"{report['device']['title']}: {report['trace']['requests']:,} measured requests")
    _print_bases(report, base)
    _warn_of_estimates(report)


def _validate_all(
    parameters: Path, traces: Path | None, directory: Path | None, *, fit: bool, as_json: bool
) -> None:
    found, alone = validations.pairs(parameters, traces or parameters)
    for trace in alone:
        note(f"{trace.name}: no parameters of that name in {parameters}; left out")
    reports: list[dict[str, Any]] = []
    refused = 0
    for pair in found:
        drive = {"drive": pair.name, "parameters": pair.parameters.name}
        try:
            report = validations.validate(
                pair.parameters, pair.trace, fit=fit, catalogue_directory=directory
            ).document
        except InputError as why:
            refused += 1
            note(f"{pair.parameters.name}: {why}")
            reports.append({**drive, "refused": str(why)})
        else:
            reports.append({**drive, **fields_of(report)})
    if as_json:
        print_json(document("validate-drives", {"validations": reports}))
    else:
        _print_drives(reports)
    if refused:
        raise InputError(f"{refused} of {len(found)} drives could not be validated")


def _print_drives(reports: list[dict[str, Any]]) -> None:
    print_table(
        (
            "parameters",
            ">requests",
            ">measured ms",
            ">demerit ms",
            ">DiskSim",
            ">reads",
            ">DiskSim",
            ">writes",
            ">DiskSim",
            ">paired RMS",
            ">DiskSim",
            ">2nd half",
        ),
        [_drive(report) for report in reports],
    )


def _drive(report: dict[str, Any]) -> tuple[str, ...]:
    if "refused" in report:
        return (report["parameters"], *("-" for _ in range(11)))
    metrics = report["metrics"]
    disksim = validations.DISKSIM.get(report["drive"])
    cells = []
    for name, digits in (
        ("demerit_ms", 3),
        ("demerit_read_ms", 3),
        ("demerit_write_ms", 3),
        ("paired_rms_ms", 2),
    ):
        cells.append(f"{metrics[name]:.{digits}f}" if name in metrics else "-")
        cells.append("-" if disksim is None else f"{getattr(disksim, name):.{digits}f}")
    return (
        report["parameters"],
        f"{report['trace']['requests']:,}",
        f"{metrics['measured_mean_service_ms']:.3f}",
        *cells,
        f"{metrics['demerit_held_out_ms']:.3f}",
    )


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


def _warn_of_estimates(report: dict[str, Any]) -> None:
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
