"""`agewell devices`: listing, showing, importing, and refusing what is inconsistent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agewell import _agewell, cli
from agewell.files import catalogue

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
DISKS = SHARED / "disk"

needs_shared = pytest.mark.skipif(
    not DISKS.is_dir(), reason="the DiskSim parameter files are not beside the project"
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command line: exit status, standard output, standard error."""
    with pytest.raises(SystemExit) as leaving:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    code = leaving.value.code
    assert isinstance(code, int)
    return code, captured.out, captured.err


def test_the_catalogue_is_listed_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "devices", "--json")
    assert code == 0
    devices = {entry["name"]: entry for entry in json.loads(out)["devices"]}
    assert devices["hp-97560"]["rpm"] == pytest.approx(4002)
    assert {entry["kind"] for entry in devices.values()} == {
        "flash",
        "mechanical",
        "simple",
        "zoned",
    }


def test_a_device_shows_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "devices", "hp-c2200a")
    assert code == 0
    assert "1449 x 8" in out
    assert "source" in out


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hgst-hsh721415ale6m0", ["55,880 of 256 MiB", "of them conventional", "7200.0 rpm"]),
        ("seagate-st8000as0002", ["cache on the medium", "20,480 MiB", "5980.0 rpm"]),
        ("samsung-970-pro", ["16 on 8 channels", "32 KiB, mapped by 4 KiB", "3,360 MB/s"]),
    ],
)
def test_a_drive_of_today_shows_how_it_is_written(
    name: str, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "devices", name)
    assert code == 0
    assert [words for words in expected if words not in out] == []


def test_a_name_not_in_the_catalogue_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "devices", "hp-c2247")
    assert (code, out) == (2, "")
    assert "did you mean 'hp-c2247a'?" in err
    assert len(err.strip().splitlines()) == 1


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "atlas_III",
        "barracuda",
        "cheetah4LP",
        "hp_c2247a",
        "hp_c2249a",
        "hp_c2490a",
        "hp_c3323a",
        "ibm18es",
        "st41601n",
    ],
)
def test_an_imported_device_reads_back_as_it_was_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "device.toml"
    code, _, _ = run(capsys, "devices", "import", str(DISKS / f"{name}.diskspecs"), "-o", str(out))
    assert code == 0
    text = out.read_text(encoding="utf-8")
    device = json.loads(_agewell.device_load(str(out), ""))
    plain = "".join(line + "\n" for line in text.splitlines() if not line.startswith("#"))
    assert device["toml"] == plain
    assert [path.name for path in tmp_path.iterdir()] == ["device.toml"]


def specification(folder: Path, *, model: str, seek: str = "1, 2.0\n100, 9.0\n") -> Path:
    """A small DiskSim disk whose model has `model` in its zone."""
    (folder / "small.seek").write_text(f"Seek distances measured: {seek.count(chr(10))}\n{seek}")
    (folder / "small.model").write_text(
        """dm_disk small_model {
   Number of data surfaces = 2,
   Number of cylinders = 101,
   Block count = 2020,
   Layout Model = dm_layout_g1 {
      LBN-to-PBN mapping scheme = 0,
      Sparing scheme used = 0,
      Rangesize for sparing = 1,
      Zones = [
         dm_layout_g1_zone {
"""
        + model
        + """
            Offset of first block = 0,
            Empty space at zone front = 0,
            Number of spares = 0,
            slips = [], defects = []
         }
      ]
   },
   Mechanical Model = dm_mech_g1 {
      Access time type = trackSwitchPlusRotation,
      Seek type = extracted, # a comment
      Full seek curve = small.seek,
      Add. write settling delay = -0.1,
      Head switch time = 0.5,
      Rotation speed (in rpms) = 6000,
      Percent error in rpms = 0.0
   }
}
"""
    )
    path = folder / "small.diskspecs"
    path.write_text(
        "disksim_disk Small {\n   Model = source small.model,\n"
        "   Bulk sector transfer time = 0.1,\n   Number of buffer segments = 0\n}\n"
    )
    return path


GOOD_ZONE = "First cylinder number = 0, Last cylinder number = 100, Blocks per track = 10,"


def test_a_small_disk_of_our_own_imports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = specification(tmp_path, model=GOOD_ZONE)
    code, out, _ = run(capsys, "devices", "import", str(path))
    assert code == 0
    device = tmp_path / "device.toml"
    device.write_text(out)
    shown = json.loads(_agewell.device_load(str(device), ""))
    assert (shown["capacity_sectors"], shown["rpm"]) == (2020, pytest.approx(6000))
    assert shown["name"] == "small"


@pytest.mark.parametrize(
    ("zone", "seek", "complaint"),
    [
        (GOOD_ZONE.replace("= 10,", "= ten,"), "1, 2.0\n", "small.model: line 11"),
        (GOOD_ZONE, "1 2.0\n", "small.seek: line 2"),
        ("First cylinder number 0,", "1, 2.0\n", "small.model: line 11"),
    ],
)
def test_a_damaged_specification_is_refused_with_file_and_line(
    zone: str, seek: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = specification(tmp_path, model=zone, seek=seek)
    target = tmp_path / "out.toml"
    code, out, err = run(capsys, "devices", "import", str(path), "-o", str(target))
    assert (code, out) == (2, "")
    assert complaint in err
    assert len(err.strip().splitlines()) == 1
    assert not target.exists()


@pytest.mark.parametrize(
    ("zone", "seek", "message"),
    [
        (GOOD_ZONE.replace("= 100", "= 101"), "1, 2.0\n", "The disk has 102 here"),
        (GOOD_ZONE, "1, 2.0\n10, 9.0\n20, 3.0\n50, 4.0\n", "at 10 cylinders, 9 ms by"),
        (GOOD_ZONE, "5, 2.0\n1, 1.0\n", "do not ascend"),
    ],
)
def test_what_tools_write_is_repaired_and_the_repair_reported(
    zone: str, seek: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = specification(tmp_path, model=zone, seek=seek)
    code, out, _ = run(capsys, "devices", "import", str(path))
    assert code == 0
    assert message in out
    device = tmp_path / "device.toml"
    device.write_text(out)
    assert json.loads(_agewell.device_load(str(device), ""))["capacity_sectors"] == 2020


def test_a_missing_model_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = specification(tmp_path, model=GOOD_ZONE)
    (tmp_path / "small.model").unlink()
    code, _, err = run(capsys, "devices", "import", str(path))
    assert code == 2
    assert "small.diskspecs: line 2" in err
    assert "small.model" in err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("rpm = 4002", "rpm = 0"), "rpm must be a number from 1 to 1000000"),
        (("capacity_sectors = 2684016", "capacity_sectors = 2684017"), "hold only 2684016"),
        (("capacity_sectors = 2684016", "capacity_sektors = 2684016"), "did you mean"),
        (("last_cylinder = 1961", "last_cylinder = 2000"), "the disk has 1962 cylinders"),
        (("root_ms = [", "root_ms = [900.0, 0.0] #"), "seek curve falls"),
    ],
)
def test_an_inconsistent_device_file_is_refused(
    change: tuple[str, str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (catalogue.directory() / "hp-97560.toml").read_text(encoding="utf-8")
    assert change[0] in source
    path = tmp_path / "changed.toml"
    path.write_text(source.replace(*change), encoding="utf-8")
    code, out, err = run(capsys, "devices", str(path))
    assert (code, out) == (2, "")
    assert complaint in err
    assert str(path) in err
    assert len(err.strip().splitlines()) == 1
