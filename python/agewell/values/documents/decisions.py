"""Documents of comparisons and advice."""

from typing import Any, NotRequired, TypedDict


class LayoutInCell(TypedDict):
    """One layout in one cell.

    Attributes:
        name: On the command line and in tables.
        words: What it is, one line.
        is_adaptive: Whether it changes how it works by what it sees, in the sense of
            Matthews 1999: the mechanism of collection, or where blocks lie by how they are
            read.
        table: Its `[layout]`.
    """

    name: str
    words: str
    is_adaptive: bool
    table: dict[str, Any]


class CompareLayoutInCell(TypedDict):
    """One layout in one cell.

    Attributes:
        layout: Name of the layout.
        run: Folder of the run.
        cannot: Why it cannot be done; none if it can.
        overall_write_cost: Overall write cost of a log; none of others.
        mean_disk_read_block_ms: Mean time of a block read from the disk.
        disk_seconds: Total disk time.
        p99_response_ms: Response time that 99 % of requests keep within.
        recovery_seconds: Time to recover after a crash.
        ratio: Disk time over the least of its cell; none if it cannot be done.
    """

    layout: str
    run: str | None
    cannot: str | None
    overall_write_cost: float | None
    mean_disk_read_block_ms: float | None
    disk_seconds: float | None
    p99_response_ms: float | None
    recovery_seconds: float | None
    ratio: float | None


class Cell(TypedDict):
    """One workload on one disk, so full.

    Attributes:
        workload: The workload, as it was named.
        device: The disk, as it was named.
        utilization: How full the disk is at its fullest, as a share.
        layouts: Each layout in this cell.
    """

    workload: str
    device: str
    utilization: float
    layouts: list[CompareLayoutInCell]


class WorstAt(TypedDict):
    """Where a layout is worst.

    Attributes:
        workload: The workload, as it was named.
        device: The disk, as it was named.
        utilization: How full the disk is at its fullest, as a share.
    """

    workload: str
    device: str
    utilization: float


class Robustness(TypedDict):
    """One layout over all cells.

    Attributes:
        layout: Its name.
        worst_ratio: Its greatest ratio to the best layout over the cells that it could do;
            None if it could do none.
        worst_at: Where that is.
        geometric_mean_ratio: Geometric mean of its ratios.
        best_in: Cells in which it is within `CLOSE_RATIO` of the best.
        done: Cells that it could do.
        cells: What each layout took, a workload, device and utilization each.
    """

    layout: str
    worst_ratio: float | None
    worst_at: WorstAt | None
    geometric_mean_ratio: float | None
    best_in: int
    done: int
    cells: int


class Compare(TypedDict):
    """Layouts on the same workloads and disks.

    Attributes:
        agewell_version: Version of agewell that made it.
        agewell_build: Build of agewell that made it.
        layouts: The layouts that were compared.
        cells: What each layout took, a workload, device and utilization each.
        robustness: Each layout over all cells, the most robust first.
        verdict: What follows, in sentences.
        plots: Files of the pictures that were drawn.
    """

    agewell_version: str
    agewell_build: str
    layouts: list[LayoutInCell]
    cells: list[Cell]
    robustness: list[Robustness]
    verdict: list[str]
    plots: NotRequired[list[str]]


class CompareLayouts(TypedDict):
    """The layouts that can be compared.

    Attributes:
        layouts: The layouts.
    """

    layouts: list[LayoutInCell]


class Recommended(TypedDict):
    """The layout to choose, and its experiment.

    Attributes:
        what: It in words.
        file: Its experiment, in the folder of the advice.
        run: Folder of the run.
        disk_seconds: Total disk time.
        room_made_by: How often a log made room by each mechanism, in words; none if it is
            no log.
        cannot: Why it cannot be done; none if it can.
        config: The resolved configuration: every setting, also where it is the default.
    """

    what: str
    file: str
    run: str
    disk_seconds: float | None
    room_made_by: str | None
    cannot: str | None
    config: dict[str, Any]


class TriedLayout(TypedDict):
    """A layout that was tried.

    Attributes:
        what: It in words.
        file: Its experiment, in the folder of the advice.
        run: Folder of the run.
        disk_seconds: Total disk time.
        room_made_by: How often a log made room by each mechanism, in words; none if it is
            no log.
        cannot: Why it cannot be done; none if it can.
    """

    what: str
    file: str
    run: str | None
    disk_seconds: float | None
    room_made_by: str | None
    cannot: str | None


class Step(TypedDict):
    """One question of the search.

    Attributes:
        question: `layout`, `segment size`, ...
        chosen: The one that was taken.
        note: Why nothing was tried, or empty.
        left_out: What was not tried and why, or empty.
        tried: The answers, in the order of asking.
    """

    question: str
    chosen: str | None
    note: str | None
    left_out: str | None
    tried: list[TriedLayout]


class OverTime(TypedDict):
    """How steadily the choice saves.

    Attributes:
        slices: Slices of the transferred bytes.
        least_pct: Saved in the slice where it saves least.
        median_pct: Saved in the middle slice.
        most_pct: Saved in the best slice.
        losing_slices: Numbers of the slices in which it loses.
        saved_pct: Saved in each slice.
    """

    slices: int
    least_pct: float
    median_pct: float
    most_pct: float
    losing_slices: list[int]
    saved_pct: list[float]


class Against(TypedDict):
    """What the choice saves against one layout.

    Attributes:
        baseline: A layout as it is by default.
        saved_pct: Disk time that the choice saves against it; none if it cannot run.
        over_time: How steadily it saves, by slices of the run; none where nothing was
            transferred.
        saved_pct_by_utilization: What it saves at each utilization that was tried.
        loses_at_utilization: Utilizations at which the choice takes longer.
    """

    baseline: TriedLayout
    saved_pct: float | None
    over_time: OverTime | None
    saved_pct_by_utilization: dict[str, float | None]
    loses_at_utilization: list[float]


class Installable(TypedDict):
    """A real file system.

    Attributes:
        name: What it is called.
        likeness: In what it is like the layout, and in what not.
        command: What makes it on a disk DEVICE, whose contents are lost.
    """

    name: str
    likeness: str
    command: str


class AdviceTriedLayout(TypedDict):
    """A layout that was tried.

    Attributes:
        quantum: `[remap] quantum`.
        interval: `[remap] interval`.
        free_saved_pct: Disk time saved if the moves are free; None if it could not be done.
        paid_saved_pct: Disk time saved with what the moves in quiet periods take counted;
            None if it was not tried, because free moves save no more than counts as equal.
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
    files: list[str]
    cannot: str | None


class Shuffling(TypedDict):
    """Whether shuffling the requests pays.

    Attributes:
        note: Why it was not tried; none if it was.
        tried: What was tried.
        advice: Whether it pays, in a sentence.
    """

    note: str | None
    tried: list[AdviceTriedLayout]
    advice: str


class Advice(TypedDict):
    """Which layout to choose, and what that rests on.

    Attributes:
        agewell_version: Version of agewell that made it.
        agewell_build: Build of agewell that made it.
        workload: Name of the workload.
        device: Name of the device.
        device_uncertainty: How far a probe of the device was off, where its file says so.
        utilization: That was asked for.
        recommended: The layout to choose.
        steps: The questions of the search, in order.
        against: What it saves against layouts as they are by default.
        quicker_to_recover: A layout that recovers sooner at little cost, if there is one.
        advice: What to do, in sentences.
        installable: The real file system that is nearest to it.
        shuffling: Whether shuffling its requests pays.
    """

    agewell_version: str
    agewell_build: str
    workload: str
    device: str
    device_uncertainty: dict[str, float] | None
    utilization: float
    recommended: Recommended
    steps: list[Step]
    against: list[Against]
    quicker_to_recover: TriedLayout | None
    advice: list[str]
    installable: Installable
    shuffling: Shuffling


class Device(TypedDict):
    """A disk in two numbers.

    Attributes:
        access_ms: Time before a transfer begins.
        bandwidth_mb_per_s: Rate of long transfers, in 10^6 bytes per second.
        source: Where they come from, for people.
    """

    access_ms: float
    bandwidth_mb_per_s: float
    source: str


class SegmentCost(TypedDict):
    """What one segment size costs.

    Attributes:
        segment_bytes: The size.
        disk_seconds: Total disk time.
        overall_write_cost: Overall write cost (Matthews 1999).
        new_data_cost: Part of it that is new data.
        cleaner_cost: Part of the overall write cost that is collection.
        transfer_inefficiency: Time of transfers over that of the bare bytes.
        above_best_pct: How far it is above the best.
    """

    segment_bytes: int
    disk_seconds: float
    overall_write_cost: float
    new_data_cost: float
    cleaner_cost: float
    transfer_inefficiency: float
    above_best_pct: float | None


class SegmentSize(TypedDict):
    """Which segment size a log should have, and what a wrong one costs.

    Attributes:
        device: The disk.
        sizes: What each size costs.
        failed_segment_bytes: Sizes with which the log made no progress.
        left_out: Why sizes were left out; empty if none was.
        best_segment_bytes: The size of the least disk time.
        within_2_pct_segment_bytes: Sizes within 2 % of the best: least and greatest.
        rule_segment_bytes: What the rule says: access time times bandwidth, times four.
        rule_nearest_segment_bytes: The size nearest to the rule.
        rule_above_best_pct: How far the size nearest to the rule is above the best.
        sprite_above_best_pct: How far 512 KiB, as in Sprite, is above the best.
        own_segment_bytes: The experiment's own size.
        own_above_best_pct: How far the experiment's own size is above the best; none if it
            was not tried.
        advice: What to do, in sentences.
        config: The resolved configuration: every setting, also where it is the default.
        plots: Files of the pictures that were drawn.
    """

    device: Device
    sizes: list[SegmentCost]
    failed_segment_bytes: list[int]
    left_out: str
    best_segment_bytes: int
    within_2_pct_segment_bytes: list[int]
    rule_segment_bytes: float
    rule_nearest_segment_bytes: int
    rule_above_best_pct: float | None
    sprite_above_best_pct: float | None
    own_segment_bytes: int
    own_above_best_pct: float | None
    advice: list[str]
    config: dict[str, Any]
    plots: list[str]
