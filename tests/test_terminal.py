"""What commands say on a terminal beside their results."""

from __future__ import annotations

import time

import pytest

from agewell.cli import terminal


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_the_time_left_goes_by_what_was_done_since_the_first_report() -> None:
    clock = Clock()
    left = terminal.TimeLeft(clock)
    assert left.after(None) == ""
    # Half was there before: of it nothing is known.
    assert left.after(0.5) == ""
    clock.seconds += 60
    assert left.after(0.5) == ""
    assert left.after(0.6) == "about 4 min left"
    clock.seconds += 60
    assert left.after(0.7) == "about 3 min left"
    # It stands still: what is left grows.
    clock.seconds += 120
    assert left.after(0.7) == "about 6 min left"
    assert left.after(1.0) == ""


def test_nothing_is_said_in_the_first_moments() -> None:
    clock = Clock()
    left = terminal.TimeLeft(clock)
    left.after(0.0)
    clock.seconds += terminal.ESTIMATED_AFTER_SECONDS / 2
    assert left.after(0.001) == ""
    clock.seconds += terminal.ESTIMATED_AFTER_SECONDS
    assert left.after(0.001) != ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "5 s"),
        (12, "10 s"),
        (54, "55 s"),
        (55, "1 min"),
        (100, "2 min"),
        (3540, "59 min"),
        (3590, "1 h"),
        (4800, "1 h 20 min"),
        (86_000, "23 h 50 min"),
        (86_390, "1 d"),
        (183_600, "2 d 3 h"),
    ],
)
def test_a_time_to_wait_is_as_precise_as_an_estimate(seconds: float, said: str) -> None:
    assert terminal._duration(seconds) == said


def test_a_log_says_how_long_it_will_take(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr(terminal.TimeLeft.__init__, "__defaults__", (clock,))
    with terminal.progress("sweeping", quiet=False) as report:
        report(0.0, "0 of 20 runs")
        clock.seconds += 30
        report(0.25, "5 of 20 runs")
    assert capsys.readouterr().err == "sweeping: 25 %, 5 of 20 runs, about 2 min left\n"
