"""Whether shuffling the requests that a layout sends would pay, and by which quantum and interval.

The chosen layout runs once more with `[run] record = true`, which leaves the block requests that it
sent; they are replayed over the same drive as they lie and shuffled (Ruemmler & Wilkes 1991), each
quantum and interval with moves that are free and done at once, as in the report of 1991. That
bounds what there is to gain; where it is more than counts as equal, the moves are made as disk
requests in quiet periods, which is what it comes to. What the moves take counts against what they
save. A drive without an arm has no near and far places, and is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agewell.advice.measure import CLOSE_PCT, saved_pct
from agewell.advice.search import EXPERIMENTS_FOLDER, Search
from agewell.experiments.configuration import Configuration
from agewell.experiments.simulation import RESULT_FILE
from agewell.runs.keyed_runs import Answer

REQUESTS_FILE = "requests.parquet"
QUANTA = ("cylinder", "track", "block")
INTERVALS = (4, 16)
"""Rearrangements in the time of the workload; chosen by us: rarely and often."""
FREE, PAID = "instant", "idle"
"""`[remap] moves`."""
ARMLESS = {
    "simple": "on a disk of two numbers no place is nearer than another",
    "flash": "flash has no arm, so that no place is nearer than another",
}
"""Kinds of devices on which shuffling has nothing to gain."""

_RECORDING_FILE = "recommended-recorded.toml"


@dataclass(frozen=True, slots=True)
class Shuffled:
    """One quantum and interval.

    Attributes:
        quantum: `[remap] quantum`.
        interval: `[remap] interval`.
        free_saved_pct: Disk time saved if the moves are free; None if it could not be done.
        paid_saved_pct: Disk time saved with what the moves in quiet periods take counted; None if
            it was not tried, because free moves save no more than counts as equal.
        move_requests: Disk requests that moves in quiet periods took.
        moves_left: Wanted, but there was no quiet time, or a new plan came first.
        files: Its experiments, without the folder: free, and paid if that was tried.
        cannot: Why it could not be done, or empty.
    """

    quantum: str
    interval: str
    free_saved_pct: float | None
    paid_saved_pct: float | None
    move_requests: int
    moves_left: int
    files: Sequence[str]
    cannot: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "quantum": self.quantum,
            "interval": self.interval,
            "free_saved_pct": self.free_saved_pct,
            "paid_saved_pct": self.paid_saved_pct,
            "move_requests": self.move_requests,
            "moves_left": self.moves_left,
            "files": [f"{EXPERIMENTS_FOLDER}/{name}" for name in self.files],
            "cannot": self.cannot or None,
        }


@dataclass(frozen=True, slots=True)
class ShufflingAdvice:
    """What shuffling would come to; `note` says why nothing was tried, or is empty."""

    tried: Sequence[Shuffled]
    note: str = ""

    @property
    def best(self) -> Shuffled | None:
        """The quantum and interval that saves most with its moves counted."""
        able = [each for each in self.tried if each.paid_saved_pct is not None]
        return max(able, key=lambda each: each.paid_saved_pct or 0.0, default=None)

    def sentence(self) -> str:
        """The advice in words."""
        best = self.best
        free = max(
            (each for each in self.tried if each.free_saved_pct is not None),
            key=lambda each: each.free_saved_pct or 0.0,
            default=None,
        )
        if free is None:
            reason = self.note or (self.tried[0].cannot if self.tried else "nothing was tried")
            return f"No advice on shuffling: {reason}."
        gain = free.free_saved_pct or 0.0
        if best is None or (gain <= CLOSE_PCT and (best.paid_saved_pct or 0.0) <= CLOSE_PCT):
            return (
                "Do not shuffle: even with moves for nothing no quantum and interval saves more "
                f"than {max(gain, 0.0):.1f} % ({EXPERIMENTS_FOLDER}/{free.files[0]})."
            )
        assert best.paid_saved_pct is not None, "the best is one of those whose moves were counted"
        if best.paid_saved_pct > CLOSE_PCT:
            return (
                f"Shuffle by {best.quantum}, every {best.interval}: it saves "
                f"{best.paid_saved_pct:.1f} % more, moves counted "
                f"({EXPERIMENTS_FOLDER}/{best.files[1]})."
            )
        if best.move_requests == 0:
            return (
                f"Do not shuffle: with moves for nothing it would save {gain:.1f} % "
                f"({EXPERIMENTS_FOLDER}/{free.files[0]}), but the disk is never quiet for a move."
            )
        return (
            f"Do not shuffle: with moves for nothing it would save {gain:.1f} % "
            f"({EXPERIMENTS_FOLDER}/{free.files[0]}), with the moves counted "
            f"{best.paid_saved_pct:.1f} % at best ({EXPERIMENTS_FOLDER}/{best.files[1]})."
        )

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "note": self.note or None,
            "tried": [each.document() for each in self.tried],
            "advice": self.sentence(),
        }


def advise_on_shuffling(search: Search, recommended: Configuration) -> ShufflingAdvice:
    """Replay what the recommended experiment sends, as it lies and shuffled.

    Raises:
        RunError: A run was lost; the finished ones stay.
    """
    kind = search.device_description()["kind"]
    if kind in ARMLESS:
        return ShufflingAdvice([], ARMLESS[kind])
    recording = {**recommended, "run": {**recommended.get("run", {}), "record": True}}
    answers = search.make(
        {_RECORDING_FILE: ("What is recommended, with its disk requests kept", recording)},
        0.8,
        "recording",
    )
    recorded = answers[_RECORDING_FILE]
    document = recorded.document
    if document is None:
        return ShufflingAdvice([], recorded.cannot)
    folder = recorded.run.folder(search.out)
    requests = folder / REQUESTS_FILE
    if not requests.is_file():
        # A record whose requests were removed to save room is made again.
        (folder / RESULT_FILE).unlink(missing_ok=True)
        return advise_on_shuffling(search, recommended)
    elapsed_s = float(document["metrics"]["elapsed_seconds"])
    intervals = [f"{max(round(elapsed_s / times), 1)} s" for times in INTERVALS]
    path = f"../runs/{recorded.run.key}/{REQUESTS_FILE}"

    def replayed(
        pairs: Sequence[tuple[str, str]], moves: str, fraction: float
    ) -> dict[tuple[str, str], Answer]:
        """What became of quanta and intervals."""
        asked = {
            _file_name(quantum, interval, moves): (
                f"The requests of {_RECORDING_FILE}, shuffled by {quantum} every {interval}, "
                f"moves {moves}",
                _experiment(path, search, document, quantum, interval, moves),
            )
            for quantum, interval in pairs
        }
        made = search.make(asked, fraction, "shuffling")
        return {pair: made[_file_name(*pair, moves)] for pair in pairs}

    pairs = [(quantum, interval) for quantum in QUANTA for interval in dict.fromkeys(intervals)]
    free = replayed(pairs, FREE, 0.85)
    able = [pair for pair in pairs if _gains(free[pair])]
    paid = replayed(able, PAID, 0.95)
    return ShufflingAdvice([_shuffled(pair, free[pair], paid.get(pair)) for pair in pairs])


def _gains(free: Answer) -> bool:
    """Whether free moves save enough that it is worth asking what they cost."""
    return free.document is not None and _saved_pct(free.document) > CLOSE_PCT


def _experiment(
    requests: str,
    search: Search,
    document: Mapping[str, Any],
    quantum: str,
    interval: str,
    moves: str,
) -> Configuration:
    return {
        "workload": {"kind": "trace", "path": requests},
        "remap": {
            "kind": "shuffle",
            "quantum": quantum,
            "interval": interval,
            "first_after": interval,
            "moves": moves,
            "block_size": document["config"]["layout"]["block_size"],
        },
        "device": search.device.seen_from(search.base),
        "run": {"seed": document["seed"]},
    }


def _shuffled(pair: tuple[str, str], free: Answer, paid: Answer | None) -> Shuffled:
    names = [_file_name(*pair, moves) for moves in (FREE, PAID)]
    if free.document is None:
        return Shuffled(*pair, None, None, 0, 0, names[:1], free.cannot)
    free_saved_pct = _saved_pct(free.document)
    if paid is None:
        return Shuffled(*pair, free_saved_pct, None, 0, 0, names[:1])
    if paid.document is None:
        return Shuffled(*pair, None, None, 0, 0, names, paid.cannot)
    metrics = paid.document["metrics"]
    return Shuffled(
        *pair,
        free_saved_pct=free_saved_pct,
        paid_saved_pct=_saved_pct(paid.document),
        move_requests=int(metrics["move_ios"]),
        moves_left=int(metrics["moves_left"]) + int(metrics["moves_dropped"]),
        files=names,
    )


def _saved_pct(document: Mapping[str, Any]) -> float:
    """Disk time saved against the requests as they lie, what the moves take counted."""
    metrics, before = document["metrics"], document["baseline_metrics"]
    after_s = metrics["disk_seconds"] + metrics["move_disk_seconds"]
    return saved_pct(float(after_s), float(before["disk_seconds"])) or 0.0


def _file_name(quantum: str, interval: str, moves: str) -> str:
    return f"shuffle-{quantum}-{interval.replace(' ', '')}-{moves}.toml"
