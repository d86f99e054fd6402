"""Policies that are functions: what they decide, what they may not, and how they are named."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agewell as api
from conftest import COMMAND_SECONDS, Agewell, heed_interrupts
from policy_twins import ALLOCATORS, PLACEMENTS, VICTIMS, cost_age, greedy
from test_log_runs import LOG_EXPERIMENT

WRITE_ANYWHERE = {"kind": "write-anywhere", "recovery": "checkpoint", "checkpoint_blocks": 256}


def experiment(**tables: dict[str, Any]) -> dict[str, Any]:
    """The small log of the other tests, with entries of its tables changed, or another device."""
    changed: dict[str, Any] = tomllib.loads(LOG_EXPERIMENT)
    for name, entries in tables.items():
        kept = {} if name == "device" else changed.get(name, {})
        changed[name] = {**kept, **entries}
    return changed


def write_anywhere(**entries: Any) -> dict[str, Any]:
    """The same load on a write-anywhere layout."""
    return {**experiment(), "layout": {**WRITE_ANYWHERE, **entries}}


def same(one: api.Result, other: api.Result) -> None:
    """Metrics and intervals are equal to the last bit."""
    assert json.dumps(one.metrics) == json.dumps(other.metrics)
    assert one.series.equals(other.series)


LOADS: dict[str, dict[str, dict[str, Any]]] = {
    "uniform": {},
    "hot and cold": {"workload": {"kind": "hot-cold"}},
    "in small segments": {
        "workload": {"utilization": 0.7},
        "layout": {"segment_size": "16 KiB", "segment_age": "segment"},
    },
    "while there is garbage": {"layout": {"trigger": "garbage", "garbage": 0.2}},
    "in two zones": {"layout": {"zones": ["0.5 32 KiB", "0.5 64 KiB"]}},
    "by the rule of 1999": {"layout": {"collect": "matthews-1999", "plug_candidate": "policy"}},
    "on a drive, looking ahead": {
        "layout": {"collect": "adaptive", "mechanisms": ["clean", "plug"]},
        "workload": {"updates_per_block": 2},
        "device": {"model": "hp-97560"},
    },
    "looking ahead": {"layout": {"collect": "adaptive", "mechanisms": ["clean", "plug"]}},
}


ASKED_MORE_THAN_CHOSEN = {"by the rule of 1999", "looking ahead", "on a drive, looking ahead"}
"""Loads under which a policy is asked and not followed, which the twin that learns takes for its
victims."""


@pytest.mark.parametrize(
    ("name", "load"),
    [
        (name, load)
        for name in VICTIMS
        for load in LOADS
        if name != "renewal" or load not in ASKED_MORE_THAN_CHOSEN
    ],
)
def test_a_victim_policy_as_a_function_decides_as_its_twin(name: str, load: str) -> None:
    tables = {table: dict(entries) for table, entries in LOADS[load].items()}
    tables["layout"] = {**tables.get("layout", {}), "victim": name}
    tables["workload"] = {"updates_per_block": 5, **tables.get("workload", {})}
    asked = experiment(**tables)
    result = api.run(asked, victim=VICTIMS[name]())
    same(result, api.run(asked))
    assert result.metrics["segments_cleaned"] + result.metrics["segments_plugged"] > 100


@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("buffers", ["256 KiB", "8 KiB"])
def test_a_placement_as_a_function_decides_as_its_twin(name: str, buffers: str) -> None:
    logs, twin = PLACEMENTS[name]
    tables: dict[str, dict[str, Any]] = {
        "workload": {"kind": "hot-cold", "updates_per_block": 5},
        "host": {"buffer_size": buffers},
        "layout": {"logs": logs, "victim": "cost-age"},
    }
    mine = api.run(experiment(**tables), placement=twin())
    tables["layout"]["placement"] = name
    same(mine, api.run(experiment(**tables)))


@pytest.mark.parametrize("name", ALLOCATORS)
@pytest.mark.parametrize("recovery", ["scan", "checkpoint", "snapshot"])
def test_an_allocator_as_a_function_decides_as_its_twin(name: str, recovery: str) -> None:
    # What the setting searches by is not asked.
    other = "nearest" if name == "sweep" else "sweep"
    mine = api.run(write_anywhere(search=other, recovery=recovery), allocator=ALLOCATORS[name])
    same(mine, api.run(write_anywhere(search=name, recovery=recovery)))


def test_a_victim_and_a_placement_decide_side_by_side() -> None:
    logs, placement = PLACEMENTS["dac"]
    layout = {"victim": "greedy", "logs": logs}
    both = api.run(experiment(layout=layout), victim=greedy, placement=placement())
    same(both, api.run(experiment(layout={**layout, "placement": "dac"})))


def test_the_same_functions_give_the_same_bytes_and_are_named(tmp_path: Path) -> None:
    for run in ("first", "second"):
        api.run(experiment(), victim=cost_age, out=tmp_path / run)
    first, second = (tmp_path / run / "result.json" for run in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    named = json.loads(first.read_bytes())["config"]["policies"]
    assert named["victim"].startswith("policy_twins:cost_age sha256:")
    other = api.run(experiment(), victim=greedy).config["policies"]["victim"]
    assert other.startswith("policy_twins:greedy sha256:")
    assert "policies" not in api.run(experiment()).config


def test_parameters_that_are_filled_in_are_part_of_a_name() -> None:
    def nth(segments: Any, place: int) -> int:
        return min(place, len(segments) - 1)

    names = {
        api.run(experiment(), victim=functools.partial(nth, place=place)).config["policies"][
            "victim"
        ]
        for place in (0, 1)
    }
    assert len(names) == 2


def test_a_run_with_a_function_is_not_made_again_without_it(tmp_path: Path) -> None:
    made = api.run(experiment(), victim=cost_age, out=tmp_path / "run")
    with pytest.raises(
        api.InputError, match=r"\[policies\] victim: 'policy_twins:cost_age .* give"
    ):
        api.run(tmp_path / "run")
    same(api.run(tmp_path / "run", victim=cost_age), made)


def test_arrays_are_of_what_may_be_collected_and_cannot_be_written_to() -> None:
    kept: list[Any] = []

    def look(segments: Any) -> int:
        assert len(segments) == len(segments.live)
        assert (segments.live < segments.blocks).all()
        assert (segments.blocks == 8).all()
        assert (segments.utilization == segments.live / segments.blocks).all()
        assert (segments.opened <= segments.sealed).all()
        assert (segments.sealed <= segments.clock).all()
        assert (segments.age >= 0).all()
        assert len(set(segments.number.tolist())) == len(segments)
        assert not segments.cached.any()
        for name in ("live", "age", "utilization", "cached"):
            array = getattr(segments, name)
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        kept.append((segments.live, segments.live.copy()))
        return int(segments.live.argmin())

    api.run(experiment(), victim=look)
    # What is kept stays what it was.
    assert len(kept) > 100
    assert all((array == copy).all() for array, copy in kept)


def fails(segments: Any) -> int:
    """Divides by nothing, on purpose."""
    nothing = len(segments) - len(segments)
    return 1 // nothing


def test_what_a_function_raises_is_one_line_that_says_where() -> None:
    with pytest.raises(api.RunError) as raised:
        api.run(experiment(), victim=fails)
    line = fails.__code__.co_firstlineno
    message = str(raised.value)
    assert message.startswith(f"victim policy '{__name__}:fails' ({__file__}:{line}): ")
    assert message.endswith(
        f"ZeroDivisionError: integer division or modulo by zero at {__file__}:{line + 3}"
    )
    assert "\n" not in message
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


BAD_VICTIMS: dict[str, tuple[Any, str]] = {
    "nothing": (lambda _: None, "returned NoneType; return the position"),
    "a position too far": (
        lambda segments: segments.live.size,
        "returned position .*, and the .* seg",
    ),
    "a position before the first": (lambda _: -1, "returned position -1"),
    "a truth value": (lambda _: True, "returned bool"),
    "a fraction": (lambda _: 0.5, "returned float"),
    "a list": (lambda segments: segments.live.tolist(), "returned list"),
    "no scores": (lambda _: np.zeros(0), r"shape \[0\] where there are"),
    "too many scores": (lambda segments: np.zeros((len(segments), 2)), r"shape \[.*, 2\] where"),
    "truth values": (lambda segments: segments.live > 0, "returned an array of bool"),
    "texts": (lambda segments: segments.live.astype(str), "returned an array of <U"),
    "no number": (
        lambda segments: np.where(segments.live > segments.live.min(), 1.0, np.nan),
        r"no number \(NaN\), that of position",
    ),
}


@pytest.mark.parametrize("what", BAD_VICTIMS)
def test_what_is_no_victim_is_refused_in_one_line(what: str) -> None:
    function, message = BAD_VICTIMS[what]
    with pytest.raises(api.InputError, match=message) as raised:
        api.run(experiment(), victim=function)
    assert str(raised.value).startswith(f"victim policy '{__name__}:<lambda>'")
    assert "\n" not in str(raised.value)


BAD_PLACEMENTS: dict[str, tuple[Any, str]] = {
    "a log too many": (lambda _: 6, "returned log 6, and the logs are those from 0 to 5"),
    "a log before the first": (lambda blocks: np.full(len(blocks), -1), "returned log -1"),
    "fractions": (lambda blocks: np.zeros(len(blocks)), "returned an array of float64"),
    "nothing": (lambda _: None, "returned NoneType"),
}


@pytest.mark.parametrize("what", BAD_PLACEMENTS)
def test_what_is_no_placement_is_refused_in_one_line(what: str) -> None:
    function, message = BAD_PLACEMENTS[what]
    with pytest.raises(api.InputError, match=message):
        api.run(experiment(), placement=function)


BAD_ALLOCATORS: dict[str, tuple[Any, str]] = {
    "a place in use": (lambda places: int((~places.free).argmax()), "place .*, which is not free"),
    "no place of the disk": (lambda places: places.free.size, "and the disk has those from 0 to"),
    "no direction": (lambda places: (places.at_or_after(0), 2), "1 or -1"),
    "nothing": (lambda _: None, "returned None; return the number of a free place"),
}


@pytest.mark.parametrize("what", BAD_ALLOCATORS)
def test_what_is_no_place_is_refused_in_one_line(what: str) -> None:
    function, message = BAD_ALLOCATORS[what]
    with pytest.raises(api.InputError, match=message):
        api.run(write_anywhere(), allocator=function)


def test_scores_that_are_equal_are_ranked() -> None:
    alike = api.run(experiment(layout={"victim": "cost-age"}), victim=lambda s: np.zeros(len(s)))

    def by_rank(segments: Any) -> Any:
        ranks = (segments.number, -segments.age, segments.live, segments.cached, segments.zone)
        return np.lexsort(ranks)[0]

    same(alike, api.run(experiment(layout={"victim": "cost-age"}), victim=by_rank))


def test_draws_are_those_of_the_seed() -> None:
    def drawn(segments: Any) -> Any:
        return segments.draw(1)[0]

    one = api.run(experiment(), victim=drawn)
    same(one, api.run(experiment(), victim=drawn))
    assert api.run(experiment(run={"seed": 4}), victim=drawn).metrics != one.metrics


def test_policies_are_refused_where_nobody_asks_them() -> None:
    aging = {"workload": {"kind": "none"}, "layout": {"kind": "ffs"}}
    requests = {
        "workload": {"kind": "poisson", "requests": 10, "rate_per_s": 1.0},
        "device": {"model": "hp-97560"},
    }
    ffs = {**experiment(), "layout": {"kind": "ffs"}}
    for asked, policies, message in (
        (requests, {"victim": greedy}, r"\[policies\]: block requests go straight to a disk"),
        (aging, {"victim": greedy}, "a file system that ages asks no policies"),
        (ffs, {"victim": greedy}, r"victim: only layout.kind = \"lfs\" asks one"),
        (ffs, {"placement": greedy}, r"placement: only layout.kind = \"lfs\" asks one"),
        (experiment(), {"allocator": greedy}, r"allocator: only layout.kind = \"write-anywhere\""),
        (
            experiment(layout={"placement": "dac"}),
            {"placement": greedy},
            "leave out layout.placement",
        ),
        (experiment(), {"victim": "greedy"}, "victim: a str cannot be called"),
    ):
        with pytest.raises(api.InputError, match=message):
            api.run(asked, **policies)


POLICY_FILE = """\
import numpy as np
from beside import SIGN

def cost_benefit(segments):
    u = segments.utilization
    return SIGN * segments.age * (1 - u) / (1 + u)

def fails(segments):
    raise KeyError("no such segment")
"""


@pytest.fixture
def policy_folder(tmp_path: Path) -> Path:
    """A folder with an experiment and a file of policies."""
    (tmp_path / "log.toml").write_text(LOG_EXPERIMENT)
    (tmp_path / "policy.py").write_text(POLICY_FILE)
    (tmp_path / "beside.py").write_text("SIGN = 1\n")
    return tmp_path


@pytest.mark.usefixtures("policy_folder")
def test_the_command_takes_functions_of_files(agewell: Agewell) -> None:
    mine = agewell("run", "log.toml", "--json", "--victim", "policy.py:cost_benefit")
    twin = agewell("run", "log.toml", "--json", "--set", "layout.victim=cost-age")
    one, other = json.loads(mine.stdout), json.loads(twin.stdout)
    # Greedy's index, which the function is asked by, is in another order than that by age.
    assert one["metrics"]["segments_cleaned"] == other["metrics"]["segments_cleaned"]
    assert one["config"]["policies"]["victim"].startswith("policy:cost_benefit sha256:")
    placed = agewell("run", "log.toml", "--quiet", "--placement", "policy.py:fails", check=False)
    assert placed.returncode == 1
    assert placed.stderr == (
        "agewell: error: placement policy 'policy:fails' (policy.py:8): KeyError: "
        "'no such segment' at policy.py:9\n"
    )


@pytest.mark.usefixtures("policy_folder")
@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("policy.py", "expected FILE.py:NAME, for example policy.py:greedy"),
        ("absent.py:f", "absent.py cannot be read: No such file or directory"),
        ("policy.py:grady", "policy.py has no function 'grady'; it has cost_benefit, fails"),
        ("words.py:f", "words.py:2: not Python: "),
        ("bad.py:f", "ZeroDivisionError: division by zero at bad.py:2"),
    ],
)
def test_a_function_that_is_not_there_is_said_in_one_line(
    agewell: Agewell, tmp_path: Path, place: str, message: str
) -> None:
    (tmp_path / "bad.py").write_text("# nothing\n1 / 0\n")
    (tmp_path / "words.py").write_text("# words\nno such thing\n")
    done = agewell("run", "log.toml", "--quiet", "--victim", place, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


SLOW = """\
import sys
import time

import agewell

def slow(segments):
    print("asked", flush=True)
    # In short ones: a signal that comes just before a sleep begins does not end it.
    for _ in range(3000):
        time.sleep(0.01)
    print("slept", flush=True)
    return 0

agewell.run("log.toml", victim=slow, out="run")
"""


@pytest.mark.usefixtures("policy_folder")
def test_an_interrupt_is_heeded_in_a_policy(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "slow.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=COMMAND_SECONDS)
    assert said == ""
    assert "KeyboardInterrupt" in errors
    assert not (tmp_path / "run" / "result.json").exists()
