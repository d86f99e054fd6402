"""`agewell probe`: a disk measured by reading it, and its device file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agewell.cli.options import CatalogueOption, JsonOption, QuietOption
from agewell.cli.terminal import note, print_json, print_table, progress
from agewell.experiments import probing

app = typer.Typer()


@app.command("probe")
def probe(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH|DEVICE",
            help="A block device, or a large file on it that was written in full.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The device file, TOML.")
    ],
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Time that it may take, about.")
    ] = "5min",
    write_area: Annotated[
        Path | None,
        typer.Option(
            "--write-area",
            metavar="FILE",
            help="Measure writes as well, in this file on the same disk: IT IS OVERWRITTEN.",
        ),
    ] = None,
    modelled: Annotated[
        bool,
        typer.Option(
            "--modelled",
            help="PATH is a device of the catalogue or a device file: measure its model, on a "
            "virtual clock, as a virtual machine would see it.",
        ),
    ] = False,
    despite_others: Annotated[
        bool,
        typer.Option(
            "--despite-others",
            help="Measure although others use the disk; the file says how much they did.",
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Seed of the places that are read.")
    ] = 1,
    catalogue_directory: CatalogueOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure a disk by reading it, and write a device file like those of the catalogue.

    Nothing is written but the device file, unless --write-area says where. The kind of disk is
    seen from its timing, never from what it says of itself. An arm gives its rotation, tracks and
    zones, skews, seek times, buffer and command queue; flash its times, transfer rates and
    parallel dies; anything else an access time and a bandwidth. Each number has its source in the
    file. Fresh reads at the end show how far the model is from the disk.

    Nothing else should use the disk meanwhile: with more than 2 % of foreign requests there is no
    file, unless --despite-others.

    Examples: agewell probe /dev/sda -o my-disk.toml; agewell probe hp-97560 --modelled -o a.toml
    """
    with progress("probe", quiet=quiet) as report:
        found = probing.probe(
            path,
            time=duration,
            out=output,
            write_area=write_area,
            modelled=modelled,
            despite_others=despite_others,
            seed=seed,
            catalogue_directory=catalogue_directory,
            progress=report,
        ).document
    if as_json:
        print_json({**found, "modelled": modelled, "output": str(output)})
        return
    if not quiet:
        _print({**found, "modelled": modelled}, output)


def _print(found: dict[str, Any], output: Path) -> None:
    classes = {
        "armed": "a disk with an arm",
        "flash": "flash",
        "simple": "access time and bandwidth",
    }
    rows = [("class", classes[found["class"]])]
    if found["fallback"]:
        rows.append(("no more because", found["fallback"]))
    rows.append(("capacity", f"{found['capacity_bytes'] / 1e9:,.2f} GB"))
    if found["rpm"]:
        rows.append(("rotation", f"{found['rpm']:,.1f} turns a minute"))
    for key, words in (("random", "random reads"), ("sequential", "sequential reads")):
        each = found[key]
        rows.append(
            (
                words,
                f"{each['disk_ms']:.4g} ms on the disk, {each['model_ms']:.4g} ms on the model "
                f"({each['error_pct']:+.1f} %), {each['reads']} reads",
            )
        )
    rows.append(("took", f"{found['seconds']:,.1f} s, {found['requests']:,} requests"))
    rows.append(("written", str(output)))
    print_table(("", ""), rows)
    if not found["modelled"] and found["requests_of_others"] is None:
        note("agewell: warning: nobody counts the requests of others on this disk")
