"""`agewell devices`: the catalogue, one device, and parameters read from other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from agewell import _agewell, files
from agewell.cli.options import CatalogueOption, JsonOption
from agewell.cli.terminal import note, print_json, print_table, print_text
from agewell.errors import InputError
from agewell.files import catalogue
from agewell.values.documents import document

app = typer.Typer()

_IMPORT = "import"
"""The one word after `agewell devices` that is not a device's name."""


@app.command("devices")
def devices(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME | import FILE]",
            help="A device of the catalogue or a device file; `import` reads another tool's.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Argument(metavar="", help="After `import`: a DiskSim .diskspecs file.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="With `import`: the device file to write; standard output by default.",
        ),
    ] = None,
    device_name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="With `import`: the device's name; by default that of its file.",
        ),
    ] = None,
    catalogue_directory: CatalogueOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the device catalogue, show one device, or import DiskSim parameters.

    `import` follows a .diskspecs file to its .model and .seek files, beside it.

    Examples: agewell devices; agewell devices hp-c2247a; agewell devices import
    hp_c3323a.diskspecs -o c3323a.toml
    """
    if name == _IMPORT:
        _import(file, out, device_name, as_json)
        return
    if file is not None:
        raise InputError(f"agewell devices takes one NAME, not also '{file}'")
    if out is not None or device_name is not None:
        raise InputError("--out and --name go with 'agewell devices import FILE'")
    directory = catalogue.directory(catalogue_directory)
    if name is None:
        _list(directory, as_json)
    else:
        _show(name, directory, as_json)


def _list(directory: Path, as_json: bool) -> None:
    entries: list[dict[str, Any]] = json.loads(_agewell.device_list(str(directory)))
    if as_json:
        print_json(document("devices", {"devices": entries}))
        return
    print_table(
        ("name", "kind", ">MB", ">rpm", ">mean seek ms", "device"),
        (
            (
                entry["name"],
                entry["kind"],
                f"{entry['capacity_bytes'] / 1e6:,.0f}",
                _number(entry["rpm"], 0),
                _number(entry["mean_seek_ms"], 2),
                entry["title"],
            )
            for entry in entries
        ),
    )


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _show(name: str, directory: Path, as_json: bool) -> None:
    device: dict[str, Any] = json.loads(_agewell.device_load(name, str(directory)))
    if as_json:
        print_json(document("device", device))
        return
    rows = [
        ("name", device["name"]),
        ("device", device["title"]),
        ("model", device["kind"]),
        ("capacity", f"{device['capacity_bytes'] / 1e6:,.1f} MB"),
    ]
    rows += _zone_rows(device) if device["kind"] == "zoned" else []
    if device["kind"] == "flash":
        rows += _flash_rows(device)
    elif "zones" in device:
        low, high = device["sectors_per_track"]
        slow, fast = device["media_mb_per_s"]
        rows += [
            ("cylinders x surfaces", f"{device['cylinders']} x {device['surfaces']}"),
            ("sectors per track", f"{low} to {high} of {device['sector_bytes']} B"),
            ("zones", str(device["zones"])),
            ("rotation", f"{device['rpm']:.1f} rpm, {device['rotation_period_ms']:.4f} ms a turn"),
            ("media rate", f"{slow:.2f} to {fast:.2f} MB/s"),
            (
                "seek, ms",
                f"one cylinder {device['single_cylinder_seek_ms']:.2f}, "
                f"mean {device['mean_seek_ms']:.2f}, full {device['full_seek_ms']:.2f}",
            ),
            ("head switch", f"{device['head_switch_ms']:.3f} ms"),
            ("buffer", f"{device['buffer_kib']:.0f} KiB"),
            ("queue depth", str(device["queue_depth"])),
        ]
    else:
        rows += [
            ("access time", f"{device['access_time_ms']:.3f} ms"),
            ("bandwidth", f"{device['bandwidth_bytes_per_s'] / 1e6:.2f} MB/s"),
        ]
    print_table(("", ""), rows)
    print_table(("of", "source"), sorted(device["sources"].items()))


def _zone_rows(device: dict[str, Any]) -> list[tuple[str, str]]:
    """How the zones of a shingled drive are written."""
    rows = [
        ("written in order by", f"the {device['management']}"),
        ("write zones", f"{device['write_zones']:,} of {device['zone_bytes'] / 2**20:,.0f} MiB"),
    ]
    if device["conventional_zones"] is not None:
        rows.append(("of them conventional", f"{device['conventional_zones']:,}"))
    if device["cache_bytes"] is not None:
        rows.append(("cache on the medium", f"{device['cache_bytes'] / 2**20:,.0f} MiB"))
    return rows


def _flash_rows(device: dict[str, Any]) -> list[tuple[str, str]]:
    """What a flash drive is made of, and what its parts take."""
    kib = {key: f"{device[key] / 1024:,.0f} KiB" for key in ("page_bytes", "mapping_bytes")}
    return [
        ("dies", f"{device['dies']} on {device['channels']} channels"),
        ("page", f"{kib['page_bytes']}, mapped by {kib['mapping_bytes']}"),
        ("erase block", f"{device['block_bytes'] / 2**20:,.2f} MiB"),
        ("over-provisioning", f"{100 * device['over_provisioning']:.1f} %"),
        ("placement", device["placement"]),
        (
            "page read, program, block erase",
            f"{device['read_ms']:.4f}, {device['program_ms']:.4f}, {device['erase_ms']:.3f} ms",
        ),
        (
            "request, command",
            f"{device['request_overhead_ms']:.4f} ms each, {device['command_ms']:.4f} ms shared",
        ),
        ("queue depth", str(device["queue_depth"])),
        ("write buffer", f"{device['write_buffer_bytes'] / 1024:,.0f} KiB"),
        ("long reads", f"{device['read_bytes_per_s'] / 1e6:,.0f} MB/s at most"),
        ("long writes", f"{device['write_bytes_per_s'] / 1e6:,.0f} MB/s at most"),
    ]


def _import(file: Path | None, out: Path | None, name: str | None, as_json: bool) -> None:
    if file is None:
        raise InputError("agewell devices import needs a FILE, for example hp_c3323a.diskspecs")
    text = _agewell.device_import(str(file), name)
    if out is None:
        if as_json:
            print_json(document("device-import", {"toml": text}))
        else:
            print_text(text)
        return
    files.write_text(out, text)
    changes = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]
    for change in changes:
        note(change)
    if as_json:
        print_json(document("device-import", {"path": str(out), "changes": changes}))
    else:
        note(f"{out}: written; 'agewell devices {out}' shows it")
