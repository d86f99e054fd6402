#!/usr/bin/env python3
"""Read the figures of an HP C2200A off the hplajw trace: docs/concepts/c2200a.md says how and why.

Usage: measure-c2200a.py hplajw_1week.srt.zst [--half 1|2]

The trace gives, for every request, when the driver started it and when it completed. Nothing here
knows the parameters of the disk but its address map (8 heads, 113 sectors of 256 bytes a track).
"""

import argparse
from collections import deque
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

HEADS = 8
DATA_SECTORS = 113
SECTOR_BYTES = 256
# A record of the trace: 14 big-endian words; positions as the SRT format has them.
RECORD_WORDS = 14
SECONDS, MICROSECONDS, START, STOP, BYTES, SECTOR, DEVICE, FLAGS = 2, 3, 4, 5, 6, 7, 8, 11
READ_FLAG = 1
# Completions further apart than this say nothing about each other's place on the turning platter.
NEAR_US = 3_000_000
NOMINAL_TURN_US = 60e6 / 4002

# The published seek curve (Ruemmler & Wilkes 1991, table 3), us, to subtract it.
LINEAR_FROM = 616
ONE_CYLINDER = 2500.0
# Classes with fewer requests show nothing.
FEWEST = 100

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass
class Requests:
    """The requests of one disk in order of service; times in us."""

    enqueue: Ints
    start: Ints
    stop: Ints
    size: Ints
    sector: Ints
    read: Flags

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Ints:
        """The sector after the last."""
        return self.sector + self.size // SECTOR_BYTES

    @property
    def crosses(self) -> Flags:
        """Whether the request goes on to another track."""
        last: Ints = self.end - 1
        return np.not_equal(last // DATA_SECTORS, self.sector // DATA_SECTORS)


def load(path: str, half: int | None) -> Requests:
    """The requests of disk 0, of one half of the trace or of all of it."""
    with pa.input_stream(path) as stream:
        raw = stream.read()
    body = raw[raw.index(b"\f") + 1 :]
    words = np.frombuffer(body, dtype=">u4").reshape(-1, RECORD_WORDS).astype(np.int64)
    if half is not None:
        middle = len(words) // 2
        words = words[:middle] if half == 1 else words[middle:]
    words = words[(words[:, DEVICE] >> 8) & 0xFF == 0]
    enqueue = words[:, SECONDS] * 1_000_000 + words[:, MICROSECONDS]
    order = np.argsort(enqueue + words[:, START], kind="stable")
    words, enqueue = words[order], enqueue[order]
    return Requests(
        enqueue=enqueue,
        start=enqueue + words[:, START],
        stop=enqueue + words[:, STOP],
        size=words[:, BYTES],
        sector=words[:, SECTOR],
        read=(words[:, FLAGS] & READ_FLAG) != 0,
    )


def coherence(turns: Floats) -> float:
    """How well angles agree: 1 all the same, 0 any."""
    return float(abs(np.exp(2j * np.pi * turns).mean()))


def rotation_us(requests: Requests) -> float:
    """One turn: repeated writes of one place complete whole turns apart."""
    key = np.stack([requests.sector, requests.size], axis=1)
    order = np.lexsort((requests.stop, requests.size, requests.sector))
    order = order[~requests.read[order]]
    same = np.all(key[order][1:] == key[order][:-1], axis=1)
    apart = (requests.stop[order][1:] - requests.stop[order][:-1])[same]
    apart = apart[(apart > NEAR_US // 3) & (apart < NEAR_US * 3)].astype(float)
    periods = np.arange(NOMINAL_TURN_US - 10, NOMINAL_TURN_US + 10, 0.02)
    scores = [coherence(apart / period) for period in periods]
    best = float(periods[int(np.argmax(scores))])
    print(f"turn {best:.2f} us from {len(apart)} repeated writes, coherence {max(scores):.3f}")
    return best


def near_pairs(requests: Requests, chosen: Flags) -> tuple[Ints, Ints]:
    """Chosen requests and the chosen one before each, if it completed a moment ago."""
    index = np.flatnonzero(chosen)
    index = index[np.argsort(requests.stop[index], kind="stable")]
    before, after = index[:-1], index[1:]
    near = requests.stop[after] - requests.stop[before] < NEAR_US
    return before[near], after[near]


def geometry(requests: Requests, turn: float) -> tuple[int, int, int]:
    """Sector times in a turn, skew from track to track, advance from cylinder to cylinder."""
    small = (requests.size <= 8 * 1024) & ~requests.crosses & ~requests.read
    before, after = near_pairs(requests, small)
    angle = (requests.stop[after] - requests.stop[before]) / turn
    last = requests.end - 1
    sector, track = last % DATA_SECTORS, last // DATA_SECTORS
    head, cylinder = track % HEADS, track // HEADS
    best = (0.0, 0, 0, 0)
    for count in range(DATA_SECTORS, DATA_SECTORS + 4):
        steps = np.exp(-2j * np.pi * np.arange(count) / count)
        rest = np.exp(2j * np.pi * (angle - (sector[after] - sector[before]) / count))
        heads = (head[after] - head[before]) % count
        cylinders = (cylinder[after] - cylinder[before]) % count
        for skew in range(count):
            turned = rest * steps[(skew * heads) % count]
            # One sum a remainder, then a Fourier transform over the advance.
            sums = np.bincount(cylinders, turned.real, count) + 1j * np.bincount(
                cylinders, turned.imag, count
            )
            scores = np.abs(np.fft.fft(sums)) / len(turned)
            advance = int(np.argmax(scores))
            best = max(best, (float(scores[advance]), count, skew, advance))
    score, count, skew, advance = best
    print(
        f"{count} sector times a turn, track skew {skew}, cylinder to cylinder {advance} "
        f"(cylinder skew {(advance - (HEADS - 1) * skew) % count}), coherence {score:.3f}"
    )
    return count, skew, advance


def angles(requests: Requests, layout: tuple[int, int, int]) -> tuple[Floats, Floats]:
    """Where each request begins and ends on the platter, in turns."""
    count, skew, advance = layout

    def angle(sector: Ints) -> Floats:
        track = sector // DATA_SECTORS
        place = sector % DATA_SECTORS + skew * (track % HEADS) + advance * (track // HEADS)
        return (place % count) / count

    return angle(requests.sector), angle(requests.end - 1) + 1 / count


def read_completion(requests: Requests, turn: float, end: Floats) -> tuple[float, float]:
    """What a read adds after its last sector, beyond what a write adds: us, and us a byte."""
    small = (requests.size <= 8 * 1024) & ~requests.crosses
    before, after = near_pairs(requests, small)
    mixed = requests.read[before] != requests.read[after]
    before, after = before[mixed], after[mixed]
    late = (requests.stop[after] - requests.stop[before]) / turn - (end[after] - end[before])
    late = np.where(requests.read[after], late, -late)
    size = np.where(requests.read[after], requests.size[after], requests.size[before])
    fixed, slope = 1500.0, 1.0
    rest, good = late, np.ones(len(late), dtype=np.bool_)
    for _ in range(5):
        rest = ((late - (fixed + slope * size) / turn + 0.5) % 1 - 0.5) * turn
        good = np.abs(rest) < turn / 15
        design = np.stack([np.ones(good.sum()), size[good]], axis=1)
        change = np.linalg.lstsq(design, rest[good], rcond=None)[0]
        fixed, slope = fixed + change[0], slope + change[1]
    print(
        f"a read completes {fixed:.0f} us + {slope:.4f} us a byte after its last sector, "
        f"beyond a write ({good.sum()} of {len(good)} pairs, spread {rest[good].std():.0f} us)"
    )
    return fixed, slope


def crossing(requests: Requests, turn: float, end: Floats) -> None:
    """Reads of 8 KB that cross a track: completion after the last sector, by the part before."""
    full = requests.size == 8 * 1024
    index = np.flatnonzero(full & ~requests.crosses & ~requests.read)
    reference = np.exp(2j * np.pi * (requests.stop[index] / turn - end[index]))
    reads = np.flatnonzero(full & requests.crosses & requests.read)
    low = np.searchsorted(requests.stop[index], requests.stop[reads] - NEAR_US)
    high = np.searchsorted(requests.stop[index], requests.stop[reads] + NEAR_US)
    sums = np.concatenate([[0], np.cumsum(reference)])
    known = high - low > 1
    reads, mean = reads[known], (sums[high] - sums[low])[known]
    late = (requests.stop[reads] / turn - end[reads] - np.angle(mean) / (2 * np.pi)) % 1 * turn
    part = (DATA_SECTORS - requests.sector[reads] % DATA_SECTORS) * SECTOR_BYTES
    print("8 KB reads across tracks: bytes on the first, us after the last sector (median, n)")
    for kilobyte in range(8):
        here = part // 1024 == kilobyte
        if here.any():
            print(f"  {part[here].mean():5.0f} {np.median(late[here]):6.0f} {here.sum():4d}")


def published_seek_us(distance: Ints) -> Floats:
    """The seek curve of Ruemmler & Wilkes 1991, table 3, and the trace's header."""
    long = np.where(distance < LINEAR_FROM, 3450 + 597 * np.sqrt(distance), 10840.0 + 12 * distance)
    return np.select([distance == 0, distance == 1], [0.0, ONE_CYLINDER], long)


def ready(requests: Requests, turn: float, layout: tuple[int, int, int], read: Floats) -> None:
    """When the first sector could be met, by class: the start that leaves fewest turns wrong."""
    count = layout[0]
    begin, end = angles(requests, layout)
    after, before = np.arange(1, len(requests)), np.arange(len(requests) - 1)
    gap = requests.start[after] - requests.stop[before]
    medium = requests.size // SECTOR_BYTES / count * turn
    tail = np.where(requests.read, read[0] + read[1] * requests.size, 0.0)
    met = (requests.stop - requests.start - medium - tail)[after]
    fine = ~requests.crosses[after] & ~requests.crosses[before] & (gap < NEAR_US)
    track = requests.sector // DATA_SECTORS
    last = (requests.end - 1) // DATA_SECTORS
    distance = np.abs(track[after] // HEADS - last[before] // HEADS)
    same = track[after] == last[before]
    stops = [(0, 0), (1, 1), (2, 4), (5, 19), (20, 79), (80, 299), (300, 615), (616, 2000)]
    classes = [("same track", same), ("other head", (distance == 0) & ~same)]
    classes += [(f"{a} to {b} cyl.", (distance >= a) & (distance <= b)) for a, b in stops[1:]]
    seek = published_seek_us(distance)
    phase = end[before] + (tail[before] + gap) / turn
    print("ready after the start, less the published seek, us: least wrong, share wrong by a turn")
    sizes = [("reads", None), ("writes 1 KB", 1024), ("writes 2 KB", 2048), ("writes 8 KB", 8192)]
    for label, size in sizes:
        kind = requests.read[after] if size is None else ~requests.read[after]
        kind = kind & ((size is None) | (requests.size[after] == size))
        for name, where in classes:
            chosen = fine & kind & where
            if chosen.sum() < FEWEST:
                continue
            wrong = []
            candidates = np.arange(500, 9000, 50)
            for candidate in candidates:
                at = candidate + seek[chosen]
                wait = (begin[after][chosen] - phase[chosen] - at / turn) % 1 * turn
                wrong.append(np.mean(np.abs(at + wait - met[chosen]) > turn / 2))
            good = candidates[np.array(wrong) <= min(wrong) + max(0.002, 1 / chosen.sum())]
            print(
                f"  {label:11s} {name:16s} {chosen.sum():5d}  {good.min()} to {good.max()}  "
                f"{min(wrong):.3f}"
            )


def queue_choices(requests: Requests) -> None:
    """How often each rule names the request that the driver chose among those waiting."""
    cylinder = (requests.sector // DATA_SECTORS // HEADS).tolist()
    enqueue, sector = requests.enqueue.tolist(), requests.sector.tolist()
    arrivals = deque(np.argsort(requests.enqueue, kind="stable").tolist())
    hits = {"C-SCAN by cylinder": 0, "by address within the cylinder": 0, "SSTF": 0, "FCFS": 0}
    choices = passed_over = 0
    arm = 0
    waiting: set[int] = set()
    for chosen, start in enumerate(requests.start.tolist()):
        while arrivals and enqueue[arrivals[0]] <= start:
            waiting.add(arrivals.popleft())
        if len(waiting) > 1:
            choices += 1
            here = arm
            came = {k: (enqueue[k], k) for k in waiting}
            up = {k: (cylinder[k] < here, cylinder[k]) for k in waiting}
            away = {k: abs(cylinder[k] - here) for k in waiting}
            named = min(waiting, key=lambda k: (up[k], came[k]))
            hits["C-SCAN by cylinder"] += named == chosen
            passed_over += named != chosen and cylinder[named] == arm != cylinder[chosen]
            named = min(waiting, key=lambda k: (up[k], sector[k], k))
            hits["by address within the cylinder"] += named == chosen
            hits["SSTF"] += min(waiting, key=lambda k: (away[k], came[k])) == chosen
            hits["FCFS"] += min(waiting, key=lambda k: came[k]) == chosen
        waiting.discard(chosen)
        arm = cylinder[chosen]
    print(f"{choices} choices among two or more waiting requests; right by")
    for rule, count in hits.items():
        print(f"  {rule:31s} {count / choices:.3f}")
    print(f"  C-SCAN wrong where the arm left its cylinder early: {passed_over}")


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace")
    parser.add_argument("--half", type=int, choices=(1, 2))
    options = parser.parse_args()
    requests = load(options.trace, options.half)
    print(f"{len(requests)} requests of disk 0")
    queue_choices(requests)
    turn = rotation_us(requests)
    layout = geometry(requests, turn)
    _, end = angles(requests, layout)
    completion = read_completion(requests, turn, end)
    crossing(requests, turn, end)
    ready(requests, turn, layout, np.array(completion))


if __name__ == "__main__":
    main()
