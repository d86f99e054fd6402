"""Documents about files that are moved."""

from typing import NotRequired, TypedDict

from agewell.values.documents.scores import FreeSpace


class LeftOut(TypedDict):
    """Files that are left as they are, for one reason.

    Attributes:
        reason: The reason, in a word.
        words: The reason, in words.
        files: How many there are.
        bytes: Their length.
    """

    reason: str
    words: str
    files: int
    bytes: int


class InParts(TypedDict):
    """Files that are laid in the parts that a recording reads of them.

    Attributes:
        files: Files.
        parts: Parts in which they are laid.
        seconds: What the recording takes, laid so.
    """

    files: int
    parts: int
    seconds: float


class Order(TypedDict):
    """In which order the files of a recording are laid, and why.

    Attributes:
        order: The one that was taken: `first-reads` or `access-graph`.
        first_reads_seconds: What the recording takes with whole files in the order of first reads.
        access_graph_seconds: What it takes with whole files along the access graph; none if no
            file is come back to.
        in_parts: Files that are laid in parts; none if all are whole.
    """

    order: str
    first_reads_seconds: float
    access_graph_seconds: float | None
    in_parts: InParts | None


class PartedFiles(TypedDict):
    """Files that are laid in parts, and what that does to them.

    Attributes:
        files: Files.
        parts: Parts in which they are laid; what is not read of them stays where it is.
        layout_score_before: Share of their blocks that lie right behind the one before; none if
            they have one block each.
        layout_score_after: The same afterwards, as planned.
    """

    files: int
    parts: int
    layout_score_before: float | None
    layout_score_after: float | None


class ByName(TypedDict):
    """Neighbours in one order.

    Attributes:
        adjacency: Share of pairs that are adjacent.
        adjacent_pairs: Pairs where the next begins right behind the one before.
        mean_gap_bytes: Mean distance from the end of one to the start of the next, forward
            or backward, bytes.
        median_gap_bytes: Its median, bytes.
        pairs: Pairs of neighbours.
    """

    adjacency: float | None
    adjacent_pairs: int
    mean_gap_bytes: float | None
    median_gap_bytes: int | None
    pairs: int


class Layout(TypedDict):
    """How the files of a snapshot lie, in few numbers.

    Attributes:
        by_name: By name, as sorted listings and most programs read them.
        by_readdir: As the file system lists them, which is how a program reads that does
            not sort.
        free_extents: How free space is broken.
        layout_score: Share of them; none if no block counts.
    """

    by_name: ByName
    by_readdir: ByName
    free_extents: FreeSpace
    layout_score: float


class Saving(TypedDict):
    """What a plan saves on a disk.

    An estimate.

    Attributes:
        after_seconds: The same afterwards, s.
        before_seconds: Time of a cold read of all files in the plan's order as they lie,
            with metadata, s.
        device: The device's name.
        gain_pct: Time saved, per cent.
        metadata_seconds: Of both, for directories and inodes, s.
        noticed: Whether it is at least noticed.
        pays: Whether it is likely to pay.
        title: What people call it.
        uncertainty_pct: How far the times may be off, per cent either way.
    """

    after_seconds: float
    before_seconds: float
    device: str
    gain_pct: float
    metadata_seconds: float
    noticed: bool
    pays: bool
    title: str
    uncertainty_pct: float


class Work(TypedDict):
    """What carrying a plan out takes.

    Attributes:
        file_bytes: Their bytes, of parts those.
        files: Files that are moved to their place, or parts of which are.
        moved_bytes: Bytes moved in all, with what makes room.
        no_room: Files for which there is no room.
        node_bytes: Of the bytes moved, nodes of btrfs, to give their chunks to data.
        stay: Files that stay because they lie well, or are beyond the budget.
        stretches_after: The same afterwards.
        stretches_before: Pieces in which the files lie in their order, before.
    """

    file_bytes: int
    files: int
    moved_bytes: int
    no_room: int
    node_bytes: int
    stay: int
    stretches_after: int
    stretches_before: int


class Done(TypedDict):
    """What was done.

    Attributes:
        evacuated_bytes: Of them, to make room.
        files: Files in place that were moved.
        left: Files left as they were, and their bytes, by reason.
        moved_bytes: Bytes moved, with what made room.
        out_of_time: Whether the time was over.
        remaining: Files for which there was no time or no room.
        seconds: How long it took, s.
    """

    evacuated_bytes: int
    files: int
    left: list[LeftOut]
    moved_bytes: int
    out_of_time: bool
    remaining: int
    seconds: float


class Reorganise(TypedDict):
    """A reorganisation, planned or carried out.

    Attributes:
        carried_out: Whether files were moved.
        file_system: Which file system it is.
        layout: How files lie.
        left_out: Files that are left out, and why.
        order: How the order of a recording was chosen; none without one.
        parted: Files that are laid in parts; none if all are whole.
        saving: What it saves.
        work: What there is to move.
        done: What was done.
        layout_after: How they lie afterwards.
    """

    carried_out: bool
    file_system: str
    layout: Layout
    left_out: list[LeftOut]
    order: Order | None
    parted: PartedFiles | None
    saving: Saving
    work: Work
    done: NotRequired[Done]
    layout_after: NotRequired[Layout]


class Considered(TypedDict):
    """What was looked at, and what became of it.

    Attributes:
        best_cost_seconds: And what it would cost, s.
        best_saved_seconds: What the best of those declined is likely to save, s.
        beyond_budget: Groups beyond the budget.
        bounded: Groups with a file that has been moved as often as it may be.
        declined: Groups that would not save more than they cost.
        groups: Groups of files that were read together more than twice, or single ones.
        well: Of those, groups that lie well.
    """

    best_cost_seconds: float
    best_saved_seconds: float
    beyond_budget: int
    bounded: int
    declined: int
    groups: int
    well: int


class ReorganiseRound(TypedDict):
    """One round of `reorganise --watch`, a line each.

    Attributes:
        all_read_seconds: Time of all reads so far, s.
        busy_pct: Share of the time for which others kept the disk busy when a round was postponed,
            per cent.
        bytes: Bytes that were, with those that made room.
        considered: What was looked at.
        cost_seconds: What it costs, s.
        files: Files that were moved, or would be.
        files_known: Files in the history.
        kind: Always `round`.
        left_bytes: What is left of the hour's budget, bytes; none without one.
        likely_seconds: What that is likely to save until the files are written again, s.
        lost_events: Events that the kernel lost.
        moved_bytes: Bytes of all moves so far.
        moving_seconds: Time of all moves so far, s.
        named_pct: Of the bytes read, those of known files, per cent.
        now_ns: When it ended, ns since 1970.
        outcome: What became of it.
        read_seconds: That time.
        reads: Reads, and the time for which the disk was busy with them, s.
        saved_seconds: Time that reads were saved by moves so far, as observed, s; negative
            if they took longer.
        seconds: How long was recorded, s.
    """

    all_read_seconds: float
    busy_pct: float
    bytes: int
    considered: Considered
    cost_seconds: float
    files: int
    files_known: int
    kind: str
    left_bytes: int | None
    likely_seconds: float
    lost_events: int
    moved_bytes: int
    moving_seconds: float
    named_pct: float
    now_ns: int
    outcome: str
    read_seconds: float
    reads: int
    saved_seconds: float
    seconds: float
