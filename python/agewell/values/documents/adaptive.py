"""Documents about the adaptive file system, and the stores that it lies on."""

from typing import NotRequired, TypedDict


class Times(TypedDict):
    """How long requests of a kind took.

    Attributes:
        p50_us: Time that half of them keep within.
        p999_us: Time that 99.9 % keep within.
        p99_us: Time that 99 % keep within.
        requests: How many there were.
        worst_us: The longest time.
    """

    p50_us: float
    p999_us: float
    p99_us: float
    requests: int
    worst_us: float


class Considered(TypedDict):
    """What was looked at, and what became of it.

    Attributes:
        best_cost_seconds: And what it would cost, s.
        best_saved_seconds: What the best of those declined is likely to save, s.
        bounded: Groups with a file that has been moved as often as it may be.
        declined: Groups that would not save more than they cost.
        groups: Groups of files that were read together more than twice, or single ones.
        well: Of those, groups that lie well.
    """

    best_cost_seconds: float
    best_saved_seconds: float
    bounded: int
    declined: int
    groups: int
    well: int


class Regrouping(TypedDict):
    """What has become of it; nothing but `is_on` where it is not done.

    Attributes:
        blocks: Blocks of the store.
        considered: What was looked at the last time.
        decisions: Times that it was decided.
        groups: Groups that were moved, and those for which there was no room.
        is_on: Whether it is done.
        lost_reads: Those.
        moving_seconds: Time of all moves, s.
        read_seconds: Time of all reads of the device, s.
        reads: Reads of the device that were observed, and those that were not for want of
            room.
        saved_seconds: Time that reads were saved so far, as observed, s; negative if they
            took longer.
        units: Pieces of files and nodes in the history.
        why: Why nothing was put together; none if something was.
        without_room: Those.
    """

    blocks: NotRequired[int]
    considered: NotRequired[Considered]
    decisions: NotRequired[int]
    groups: NotRequired[int]
    is_on: bool
    lost_reads: NotRequired[int]
    moving_seconds: NotRequired[float]
    read_seconds: NotRequired[float]
    reads: NotRequired[int]
    saved_seconds: NotRequired[float]
    units: NotRequired[int]
    why: NotRequired[str]
    without_room: NotRequired[int]


class Journal(TypedDict):
    """What has changed in nodes of the tree since they were written.

    Attributes:
        blocks: Its blocks that are in use.
        blocks_max: Its blocks; 0 if there is none.
        checkpoints: Times that the nodes were written since the file system was mounted.
        nodes: Nodes of which it has changes.
    """

    blocks: int
    blocks_max: int
    checkpoints: int
    nodes: int


class SinceMounted(TypedDict):
    """Counters of a log, in blocks and segments.

    Attributes:
        cleaned_blocks: Live blocks that collections copied to the end of a log.
        flushes: Flushes of the device.
        metadata_blocks: Blocks of metadata that were written.
        new_blocks: New data blocks sent to the disk.
        plugged_blocks: Live blocks that collections copied into holes.
        regrouped_blocks: Blocks written together in the reorganisation log.
        segments_cleaned: Segments cleaned.
        segments_emptied: Segments that emptied by themselves.
        segments_plugged: Segments whose blocks went into holes elsewhere.
        segments_threaded: Times that new data was threaded into a segment.
        threaded_blocks: New blocks threaded into holes.
        user_blocks: Blocks written by users.
        write_amplification: Blocks written over those that users wrote; none before the
            first.
    """

    cleaned_blocks: int
    flushes: int
    metadata_blocks: int
    new_blocks: int
    plugged_blocks: int
    regrouped_blocks: int
    segments_cleaned: int
    segments_emptied: int
    segments_plugged: int
    segments_threaded: int
    threaded_blocks: int
    user_blocks: int
    write_amplification: float | None


class FsStatus(TypedDict):
    """How a mounted file system does.

    Attributes:
        block_bytes: Length of a block.
        blocks: Blocks of the store.
        capacity_bytes: Its size.
        device: The file or device that it is on; none if it does not know.
        free_bytes: Bytes that are free.
        full: How full it is, as a share.
        journal: What is in the journal.
        mechanism: How room is made now.
        mechanism_is: Why.
        collected_logs: Logs by expected lifetime for what is collected; 0: it goes behind new data.
        names: Making and removing files.
        process: Number of the process that serves it.
        read: Reads of files.
        regrouping: What was put together by itself.
        segment_blocks: Blocks of a segment.
        segments: Segments.
        segments_offset_bytes: Where the first segment begins.
        since_mounted: What was done since it was mounted.
        sweeps: Sweeps over the disk by which scattered files were read.
        sync: Syncs.
        write: Writes to files.
    """

    block_bytes: int
    blocks: int
    capacity_bytes: int
    device: str | None
    free_bytes: int
    full: float
    journal: Journal
    mechanism: str
    mechanism_is: str
    collected_logs: int
    names: Times
    process: int
    read: Times
    regrouping: Regrouping
    segment_blocks: int
    segments: int
    segments_offset_bytes: int
    since_mounted: SinceMounted
    sweeps: int
    sync: Times
    write: Times


class Extent(TypedDict):
    """A piece of a file that lies in one piece.

    Attributes:
        logical_bytes: Its first byte in the file.
        physical_bytes: Its first byte on the device; none if it lies in what describes the
            file, in memory only, or is promised only.
        length_bytes: Bytes.
        kind: `data`, `inline`, `promised` or `memory`.
        is_shared: Other files may have it too.
        segment: Segment that it lies in; none if it lies in none.
    """

    logical_bytes: int
    physical_bytes: int
    length_bytes: int
    kind: str
    is_shared: bool
    segment: int


class FileLayout(TypedDict):
    """A file.

    Attributes:
        path: Where it is.
        blocks: Blocks of it that lie on the device.
        layout_score: Share of blocks right behind the block before; none if none counts.
        extents: Where it lies.
    """

    path: str
    blocks: int
    layout_score: float
    extents: list[Extent]


class FsLayout(TypedDict):
    """Where the files of a mounted file system lie.

    Attributes:
        layout_score: Share of blocks right behind the block before; none if none counts.
        segment_bytes: Length of a segment; none where it is not known.
        segments_offset_bytes: Where the first segment begins.
        segments_live: Live share of each segment.
        files: The files.
    """

    layout_score: float
    segment_bytes: int
    segments_offset_bytes: int
    segments_live: list[float]
    files: list[FileLayout]


class FsScrub(TypedDict):
    """What a scrub has found.

    Attributes:
        damaged_blocks: Numbers of damaged blocks.
        files: Of each damaged file, the bytes from which blocks are damaged.
    """

    damaged_blocks: list[int]
    files: dict[str, list[int]]


class FsckFinding(TypedDict):
    """One thing that is wrong.

    Attributes:
        inode: Number of the file; none if it is of none.
        path: Its path; none if it has none.
        repair: What `--repair` does about it; none if nothing can be done.
        text: What is wrong, in a line.
    """

    inode: int | None
    path: str | None
    repair: str | None
    text: str


class Fsck(TypedDict):
    """What a check of a file system has found.

    Attributes:
        clean: Whether nothing is wrong.
        data_blocks: Blocks of data.
        findings: What is not as it should be.
        further: Further ones, which are not kept.
        inodes: Inodes.
        nodes: Nodes of the tree.
        repaired: Things that were set right.
        was_unmounted: Whether it was unmounted in order.
    """

    clean: bool
    data_blocks: int
    findings: list[FsckFinding]
    further: int
    inodes: int
    nodes: int
    repaired: int
    was_unmounted: bool


class Store(TypedDict):
    """How a store is divided.

    All addresses count blocks.

    Attributes:
        block_bytes: Bytes of a block.
        blocks: Block numbers there may be.
        closed_in_order: Whether it was closed in order.
        dropped_groups: Groups at the end of the ring that were not whole.
        generation: Greater whenever it changes.
        has_root: Whether there is a map to begin with.
        incarnation: Times that it was opened for writing.
        reserve_segments: Segments kept from users.
        ring_records: Records in the ring since the map was written.
        root_generation: Which map it is.
        segment_blocks: Blocks of a segment.
        segments: Segments.
        sequence: Number of the last group.
        used_blocks: Blocks of the device that are used.
        uuid: What no other has.
        version: Of its format.
    """

    block_bytes: int
    blocks: int
    closed_in_order: bool
    dropped_groups: int
    generation: int
    has_root: bool
    incarnation: int
    reserve_segments: int
    ring_records: int
    root_generation: int
    segment_blocks: int
    segments: int
    sequence: int
    used_blocks: int
    uuid: str
    version: str


class StoreInfo(TypedDict):
    """What a store of blocks is.

    Attributes:
        store: How it is made.
        metrics: How full it is.
    """

    store: Store
    metrics: dict[str, float | None]


class StoreFinding(TypedDict):
    """One thing that was found.

    Attributes:
        address: Where that lies, blocks from the start of the device.
        blocks: Ranges of blocks that it affects: first and last.
        problem: What is wrong, a few words.
        severity: How much it weighs.
        structure: What it is about.
        text: The finding, in a line.
    """

    address: int | None
    blocks: list[list[int]]
    problem: str
    severity: str
    structure: str
    text: str


class StoreCheck(TypedDict):
    """What a check of a store has found.

    Attributes:
        affected_blocks: Blocks that the damage affects; none where it is not known.
        clean: Whether nothing is wrong.
        findings: What is wrong, a line each.
        metrics: How full it is.
        store: How it is made.
    """

    affected_blocks: int | None
    clean: bool
    findings: list[StoreFinding]
    metrics: dict[str, float | None]
    store: Store


class StoreSalvage(TypedDict):
    """What was copied out of a store.

    Attributes:
        blocks: Of each kind that is not whole, the ranges of blocks: first and last.
        counts: Blocks by what became of them.
        findings: All that is wrong with the store but the data of its blocks.
        unknown: Ranges of blocks of which nothing is known.
        unknown_blocks: Blocks of which nothing is known.
        whole: Whether every block was copied out.
        output: Files that were written.
    """

    blocks: dict[str, list[list[int]]]
    counts: dict[str, int]
    findings: list[StoreFinding]
    unknown: list[list[int]]
    unknown_blocks: int
    whole: bool
    output: list[str]
