"""`agewell validate`: the demerit figures of DiskSim's drives, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agewell import _agewell, cli
from agewell.experiments import validations
from agewell.files import catalogue

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
TRACES = SHARED / "validation"

needs_shared = pytest.mark.skipif(
    not TRACES.is_dir(), reason="the measured traces are not beside the project"
)

# DiskSim 4.0 run on the same traces, ms: demerit of all, reads and writes; paired RMS.
DISKSIM = {
    "hp_c2247a": (0.090, 0.15, 0.124, 2.31),
    "hp_c3323a": (0.306, 0.254, 0.77, 4.09),
    "hp_c2490a": (0.254, 0.815, 1.491, 3.02),
    "cheetah4LP": (0.318, 0.36, 0.33, 1.89),
}


def imported(name: str, folder: Path) -> Path:
    """The device file that the importer makes of a DiskSim specification."""
    path = folder / f"{name}.toml"
    text = _agewell.device_import(str(SHARED / "disk" / f"{name}.diskspecs"), None)
    path.write_text(text, encoding="utf-8")
    return path


def validated(device: Path | str, trace: Path, **options: Any) -> dict[str, Any]:
    """The report of a validation."""
    directory = str(catalogue.directory())
    text = _agewell.validate_device(str(device), directory, str(trace), json.dumps(options))
    report: dict[str, Any] = json.loads(text)
    return report


@needs_shared
@pytest.mark.parametrize("drive", DISKSIM)
def test_every_column_is_below_disksim_without_any_fitting(drive: str, tmp_path: Path) -> None:
    report = validated(imported(drive, tmp_path), TRACES / f"{drive}.trace.zst")
    metrics = report["metrics"]
    assert report["estimated"]["fitted_ms"] == {}
    names = ("demerit_ms", "demerit_read_ms", "demerit_write_ms", "paired_rms_ms")
    for name, limit in zip(names, DISKSIM[drive], strict=True):
        assert metrics[name] < limit, name


@needs_shared
def test_a_folder_of_drives_is_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        cli.main(["validate", str(SHARED / "disk"), str(TRACES), "--json"])
    assert leaving.value.code == 0
    reports = json.loads(capsys.readouterr().out)["validations"]
    assert [report["parameters"].removesuffix(".diskspecs") for report in reports] == [
        "atlas_III",
        "barracuda",
        "cheetah4LP",
        "hp_c2247a",
        "hp_c2490a",
        "hp_c3323a",
        "hp_c3323a_validate",
        "ibm18es",
        "st41601n",
    ]
    for report in reports:
        disksim = validations.DISKSIM.get(report["drive"])
        if disksim is not None:
            assert report["metrics"]["demerit_ms"] < disksim.demerit_ms, report["parameters"]
            assert report["metrics"]["paired_rms_ms"] < disksim.paired_rms_ms, report["parameters"]


def test_drives_that_are_refused_do_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (catalogue.directory() / "hp-97560.toml").read_text(encoding="utf-8")
    for name in ("good", "bad"):
        (tmp_path / f"{name}.trace").write_text("R Hit 10 4 5000.0 1000.0\n" * 2)
    (tmp_path / "alone.trace").write_text("R Hit 10 4 5000.0 1000.0\n")
    (tmp_path / "good.toml").write_text(source)
    (tmp_path / "bad.toml").write_text("name = 3\n")
    with pytest.raises(SystemExit) as leaving:
        cli.main(["validate", str(tmp_path)])
    captured = capsys.readouterr()
    assert leaving.value.code == 2
    assert "good.toml" in captured.out
    assert "alone.trace: no parameters" in captured.err
    assert "bad.toml" in captured.err
    assert "1 of 2 drives" in captured.err


def test_a_folder_without_pairs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nothing to validate" in complaint(capsys, str(tmp_path))
    assert "needs a TRACE" in complaint(capsys, "hp-c2247a")


@needs_shared
def test_the_other_c3323a_file_holds_as_well(tmp_path: Path) -> None:
    device = imported("hp_c3323a_validate", tmp_path)
    metrics = validated(device, TRACES / "hp_c3323a.trace.zst")["metrics"]
    names = ("demerit_ms", "demerit_read_ms", "demerit_write_ms", "paired_rms_ms")
    for name, limit in zip(names, DISKSIM["hp_c3323a"], strict=True):
        assert metrics[name] < limit, name


@needs_shared
def test_the_drive_that_disksim_cannot_run_is_within_2_per_cent(tmp_path: Path) -> None:
    report = validated(imported("st41601n", tmp_path), TRACES / "st41601n.trace.zst")
    assert report["metrics"]["demerit_pct"] < 2.0


@needs_shared
@pytest.mark.parametrize(("drive", "ppm"), [("hp_c2247a", 334.2), ("st41601n", -11.8)])
def test_the_phase_of_a_well_mapped_drive_is_held_over_the_half_it_was_not_estimated_from(
    drive: str, ppm: float, tmp_path: Path
) -> None:
    report = validated(imported(drive, tmp_path), TRACES / f"{drive}.trace.zst")
    estimated = report["estimated"]
    assert estimated["rotation_locked"]
    assert estimated["rotation_coherence"] > 0.98
    assert estimated["rotation_ppm"] == pytest.approx(ppm, abs=1.0)
    # Requests of random phase would be off by period / sqrt(6) = 4.5 ms and a twentieth within 5 %.
    held_out = report["trace_clock"]["held_out"]["all"]
    assert held_out["paired_rms_ms"] < 2.6
    assert held_out["within_5_pct"] > 0.7


@needs_shared
def test_a_drive_whose_map_is_wrong_is_said_not_to_hold_its_phase(tmp_path: Path) -> None:
    report = validated(imported("cheetah4LP", tmp_path), TRACES / "cheetah4LP.trace.zst")
    assert report["estimated"]["rotation_locked"] is False


@needs_shared
def test_fitting_uses_three_overheads_and_is_judged_by_the_second_half(tmp_path: Path) -> None:
    device = imported("barracuda", tmp_path)
    trace = TRACES / "barracuda.trace.zst"
    plain = validated(device, trace)
    fitted = validated(device, trace, fit=True)
    assert set(fitted["estimated"]["fitted_ms"]) == {"read_hit_ms", "read_miss_ms", "write_ms"}
    name = "demerit_held_out_ms"
    assert fitted["metrics"][name] < 0.9 * plain["metrics"][name]


@needs_shared
def test_the_hp_c2200a_is_within_the_report_of_1991() -> None:
    trace = SHARED / "block" / "hplajw_1week.srt.zst"
    metrics = validated("hp-c2200a", trace)["metrics"]
    assert abs(metrics["mean_error_pct"]) < 4.0
    assert abs(metrics["mean_error_read_pct"]) < 6.0
    assert abs(metrics["mean_error_write_pct"]) < 3.0


@needs_shared
def test_json_is_one_document_and_tables_name_the_base(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = str(TRACES / "st41601n.trace.zst")
    with pytest.raises(SystemExit) as leaving:
        cli.main(["validate", "seagate-st41601n", trace, "--json"])
    assert leaving.value.code == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["trace"]["requests"] == 9999
    with pytest.raises(SystemExit):
        cli.main(["validate", "seagate-st41601n", trace, "--base", "closed"])
    out = capsys.readouterr().out
    assert "closed" in out
    assert "trace " not in out.replace("whole trace", "")


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a refused validation leaves."""
    with pytest.raises(SystemExit) as leaving:
        cli.main(["validate", *arguments])
    captured = capsys.readouterr()
    assert leaving.value.code == 2
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    return captured.err


def test_a_request_beyond_the_device_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "beyond.trace"
    trace.write_text("R Hit 10 4 5000.0 1000.0\nR Hit 99999999 4 5000.0 1000.0\n")
    said = complaint(capsys, "hp-c2247a", str(trace))
    assert "request 1" in said
    assert "99999999" in said
    assert str(trace) in said


def test_a_trace_without_measured_times_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "plain.ascii"
    trace.write_text("0.0 0 10 4 1\n1.5 0 20 4 0\n")
    assert "nothing to validate" in complaint(capsys, "hp-c2247a", str(trace))


def test_an_unknown_device_and_a_missing_trace_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "one.trace"
    trace.write_text("R Hit 10 4 5000.0 1000.0\n")
    assert "hp-c2247a" in complaint(capsys, "hp-c2247b", str(trace))
    assert "absent.trace" in complaint(capsys, "hp-c2247a", str(tmp_path / "absent.trace"))
