"""The file systems beside one another, small; skipped without root, loop devices or tracing."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from agewell.files import catalogue
from agewell.filesystems import mounted
from agewell.studies.context import Context
from agewell.studies.file_systems import comparison, loads, mounts, prices, rounds
from agewell.studies.file_systems.loads import RandomUpdates
from agewell.studies.file_systems.mounts import KERNEL, OURS, Kind

MEBIBYTE = 1 << 20
EXT4 = KERNEL[0]
CONTEXT = "adaptive-file-system"


@pytest.fixture
def can_mount() -> None:
    if why := mounts.missing() or EXT4.missing():
        pytest.skip(why)


def few(name: str, tmp_path: Path, kinds: list[Kind]) -> dict[str, rounds.Found]:
    """A load at 80 %, a twentieth of it."""
    return rounds.compare(
        kinds,
        lambda point, room: comparison.LOADS[name](point, room, 80, 0.05),
        tmp_path,
        rounds=1,
        image_bytes=96 * MEBIBYTE,
    )


@pytest.mark.usefixtures("can_mount")
@pytest.mark.parametrize("name", comparison.LOADS)
def test_every_load_runs_and_what_it_asked_for_takes_time(name: str, tmp_path: Path) -> None:
    if why := comparison.LOADS[name].missing():
        pytest.skip(why)
    found = few(name, tmp_path, [OURS, EXT4])
    for one in found.values():
        assert one.why == ""
        assert len(one.seconds) == 1
        parts = {part for part, _ in one.disk}
        assert parts == {"round", "names", "written"}
        assert all(seconds > 0 for seconds in one.disk.values())
        assert one.requests["writes"]["requests"] > 0
        # Unmounting alone asks for one.
        assert one.requests["flushes"]["commands"] > 0
    assert found["ours"].status["full"] > 0.5
    assert list(tmp_path.iterdir()) == [], "recordings are removed once they are replayed"


@pytest.mark.usefixtures("can_mount")
def test_a_load_asks_each_file_system_for_the_same(tmp_path: Path) -> None:
    """Updates in place of ext4 are recorded: as many as were asked for, twice alike."""
    counts = []
    for _ in range(2):
        found = few("random", tmp_path, [EXT4])["ext4"]
        updates = round(RandomUpdates.UPDATES * 0.05) // 32 * 32
        assert found.requests["writes"]["sectors"] >= updates * 8 * 0.98
        counts.append(found.requests["writes"]["sectors"])
    assert counts[0] == pytest.approx(counts[1], rel=0.02)


@pytest.mark.usefixtures("can_mount")
def test_every_row_has_its_value_or_a_reason(
    tmp_path: Path, context_of: Callable[[str], Context]
) -> None:
    """At one fullness: the values that `expected.toml` names are computed."""
    size = comparison.Size(percent=(90,), rounds=1, scale=0.02, image_bytes=128 * MEBIBYTE)
    values, missing = comparison.compared("random", context_of(CONTEXT), size)
    expected = catalogue.experiments() / CONTEXT / "random" / "expected.toml"
    rows = tomllib.loads(expected.read_text())["row"]
    keys = [row["key"] for row in rows if "-90/" in row["key"]]
    assert len(keys) > 20
    for key in keys:
        assert key in values or key.partition("/")[0] in missing, key
    assert (values["ext4-90/round_ratio"] or 0) > 0


@pytest.mark.usefixtures("can_mount")
def test_a_file_system_without_room_says_so(tmp_path: Path) -> None:
    class TooMuch(RandomUpdates):
        def __init__(self, point: Path, room_bytes: int) -> None:
            super().__init__(point, 2 * room_bytes, 90)

    found = rounds.compare([OURS, EXT4], TooMuch, tmp_path, rounds=1, image_bytes=96 * MEBIBYTE)
    for one in found.values():
        assert "No space" in one.why
        assert not one.seconds
        assert not one.disk


def test_what_is_not_here_is_left_out_with_the_reason(tmp_path: Path) -> None:
    nowhere = Kind("nowhere", ("mkfs.nowhere",), needs=("mkfs.nowhere",))
    found = rounds.compare([nowhere], lambda _point, _room: pytest.fail("it is made"), tmp_path)
    assert found["nowhere"].why == "there is no mkfs.nowhere here"


def test_prices_are_those_of_the_disk() -> None:
    """One more transfer: elsewhere less than half a turn and a mean seek, near far less."""
    access_us, further_us, megabytes = prices.measured()
    assert 500 < access_us < 8_333 / 2 + 13_100
    assert further_us < access_us / 3
    # Of the middle of the disk, at which the track is 338 sectors of 4 KiB long, a turn 8.33 ms.
    assert 100 < megabytes < 338 * 4096 / 8_333


@pytest.mark.usefixtures("can_mount")
def test_prices_are_given_to_a_mount(tmp_path: Path) -> None:
    with mounts.device(64 * MEBIBYTE) as device:
        device.make(OURS)
        for bad in ("prices=1", "prices=1:2:0", "prices=1:2:x"):
            with pytest.raises(Exception, match="prices is learnt, or") as refused:
                mounted.call(["mount", device.path, device.point, "-o", bad])
            assert "\n" not in str(refused.value)
        device.mount(Kind("ours", options=("prices=2000:400:136",)))
        loads.sync_all(device.point)
        assert mounted.status(device.point)["mechanism_is"]
