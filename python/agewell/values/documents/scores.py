"""Documents about how files lie: scores and snapshots."""

from typing import Any, NotRequired, TypedDict


class Contents(TypedDict):
    """What a snapshot says of itself, counted.

    Attributes:
        block_bytes: Bytes of a block.
        changed: Files that changed meanwhile.
        directories: Directories.
        extents: Extents of all of them.
        file_bytes: Their lengths together, bytes.
        files: Regular files.
        fragment_bytes: Bytes of the smallest piece that can be allocated.
        free_bytes: Bytes of it that are free, as the file system says.
        free_map: Whether the map of free space is complete.
        group_bytes: Bytes of a group; 0 without groups.
        kind: `ext4`, `xfs`, `btrfs`, `ffs`, ...
        others: Symbolic links and special files.
        taken_ns: When the snapshot was taken, nanoseconds since 1970, if known.
        total_bytes: Bytes of the file system.
        unreadable: Files that could not be read.
        utilization: Share of it that is in use; none where its size is not known.
        vanished: Files that vanished while the snapshot was taken.
    """

    block_bytes: int
    changed: int
    directories: int
    extents: int
    file_bytes: int
    files: int
    fragment_bytes: int
    free_bytes: int
    free_map: bool
    group_bytes: int
    kind: str
    others: int
    taken_ns: int | None
    total_bytes: int
    unreadable: int
    utilization: float | None
    vanished: int


class DirectoryLayout(TypedDict):
    """A layout score with what it is made of.

    Attributes:
        counted_blocks: Blocks that have a predecessor.
        layout_score: The score, if any block counts.
        optimal_blocks: Blocks right behind their predecessor.
    """

    counted_blocks: int
    layout_score: float | None
    optimal_blocks: int


class FragmentsBin(TypedDict):
    """Files of this number of fragments.

    Attributes:
        files: Files.
        fragments_max: The most.
        fragments_min: The fewest.
    """

    files: int
    fragments_max: int
    fragments_min: int


class Fragmentation(TypedDict):
    """How regular files are broken.

    Attributes:
        breaks: Breaks: fragments that follow another of their file.
        by_fragments: Files by fragments.
        files: Files with data on the device.
        fragments: Fragments of all files.
        fragments_per_file: Fragments a file.
        mean_gap_bytes: Mean length of the gap at a break, forward or backward, bytes.
        median_gap_bytes: Its median, bytes.
        multi_block_files: Files of two blocks or more, a tail as one: those that can be
            split.
        out_of_order: Breaks where the next fragment lies before the end of the one before
            (van der Meer et al. 2019: out of order).
        out_of_order_files: Files with such a break.
        split_files: Files in two fragments or more.
        split_share: Their share of those that can be.
    """

    breaks: int
    by_fragments: list[FragmentsBin]
    files: int
    fragments: int
    fragments_per_file: float | None
    mean_gap_bytes: float | None
    median_gap_bytes: int | None
    multi_block_files: int
    out_of_order: int
    out_of_order_files: int
    split_files: int
    split_share: float | None


class LengthBin(TypedDict):
    """Free extents of about one length.

    Attributes:
        bytes: Their bytes.
        bytes_end: The next bin's least length, bytes.
        bytes_min: The least length, bytes, included.
        extents: Extents.
    """

    bytes: int
    bytes_end: int
    bytes_min: int
    extents: int


class Reach(TypedDict):
    """Free space in extents of at least some length.

    Attributes:
        bytes: Bytes in extents at least so long.
        extent_bytes: The length, bytes.
        share: Share of what is free.
    """

    bytes: int
    extent_bytes: int
    share: float | None


class FreeSpace(TypedDict):
    """What is free, as far as the snapshot has a map of it.

    Attributes:
        by_length: By length, powers of two.
        bytes: Bytes of all free extents.
        counted_blocks: Free blocks, the first left out.
        extents: Free extents.
        following_blocks: Free blocks that follow another.
        fragment_bytes: Bytes of them in no whole block.
        free_space_score: Share of free blocks, without the first, that follow another free
            block.
        half_in_extents_of_bytes: Half of what is free lies in extents at least so long,
            bytes.
        largest_extent_bytes: The longest, bytes.
        mean_extent_bytes: Their mean length, bytes.
        reach: How much of it lies in extents long enough for something.
    """

    by_length: list[LengthBin]
    bytes: int
    counted_blocks: int
    extents: int
    following_blocks: int
    fragment_bytes: int
    free_space_score: float | None
    half_in_extents_of_bytes: int
    largest_extent_bytes: int
    mean_extent_bytes: float | None
    reach: list[Reach]


class SizeBin(TypedDict):
    """Files of one size.

    Attributes:
        blocks_max: Blocks of the largest that belong here.
        blocks_min: Blocks of the smallest that belong here.
        counted_blocks: Blocks that have a predecessor in their file.
        files: Files.
        layout_score: Share of them; none if no block counts.
        optimal_blocks: Of these, blocks right behind their predecessor.
        split_files: Files in two fragments or more.
    """

    blocks_max: int
    blocks_min: int
    counted_blocks: int
    files: int
    layout_score: float | None
    optimal_blocks: int
    split_files: int


class DirectoryOfRoot(TypedDict):
    """Regular files at any depth below one directory of the root.

    Attributes:
        counted_blocks: Blocks that have a predecessor in their file.
        files: Files.
        inode: Its inode; the root's own for files that lie right in the root.
        layout_score: Share of them; none if no block counts.
        name: Its name, if the snapshot has names.
        optimal_blocks: Of these, blocks right behind their predecessor.
        split_files: Files in two fragments or more.
    """

    counted_blocks: int
    files: int
    inode: int
    layout_score: float | None
    name: str | None
    optimal_blocks: int
    split_files: int


class Hot(TypedDict):
    """Files modified shortly before the snapshot (Smith & Seltzer 1996, §5.2).

    Attributes:
        by_size: Their layout by size, powers of two (figure 6).
        counted_blocks: Blocks that have a predecessor in their file.
        files: Files.
        layout_score: Share of them; none if no block counts.
        optimal_blocks: Of these, blocks right behind their predecessor.
        period_ns: How long before, ns.
        split_files: Files in two fragments or more.
        until_ns: Before when, nanoseconds since 1970: the time of the snapshot, or of the
            latest modification where that is not known.
    """

    by_size: list[SizeBin]
    counted_blocks: int
    files: int
    layout_score: float
    optimal_blocks: int
    period_ns: int
    split_files: int
    until_ns: int | None


class Special(TypedDict):
    """Special extents of regular files; the rules stand in `pieces`.

    Attributes:
        beyond_end_bytes: Left out: bytes allocated beyond the end of their file.
        encoded_blocks: Counted by the blocks of the file: compressed or encrypted.
        files_with_holes: Files with a hole in front of data.
        files_without_blocks: Files without any data on the device.
        inline_extents: Left out: extents of inline data.
        shared_blocks: Counted in each of their files: blocks that others use too.
        tails: Tails and fragments; counted as one block each if asked for.
        unknown_extents: Left out: extents without a known address.
        unwritten_blocks: Counted: blocks allocated but never written.
    """

    beyond_end_bytes: int
    encoded_blocks: int
    files_with_holes: int
    files_without_blocks: int
    inline_extents: int
    shared_blocks: int
    tails: int
    unknown_extents: int
    unwritten_blocks: int


class FileScore(TypedDict):
    """One regular file.

    Attributes:
        blocks: Its blocks on the device.
        counted_blocks: Blocks that have a predecessor in their file.
        fragments: Its fragments.
        inode: Its number.
        layout_score: Share of them; none if no block counts.
        optimal_blocks: Of these, blocks right behind their predecessor.
        path: Where it is, from the root of what was measured; none without names.
    """

    blocks: int
    counted_blocks: int
    fragments: int
    inode: int
    layout_score: float
    optimal_blocks: int
    path: str | None


class Layout(TypedDict):
    """How regular files lie.

    Attributes:
        by_blocks: By size, every size up to 16 blocks.
        by_directory: By directory right below the root, the most badly placed blocks first.
        by_size: By size, powers of two: 1, 2, 3 to 4, 5 to 8 blocks, ...
        counted_blocks: Blocks that have a predecessor in their file.
        hot: Files modified shortly before the snapshot, if a period was given.
        layout_score: Share of them; none if no block counts.
        mean_file_score: The mean of the scores of files, each weighing the same.
        optimal_blocks: Of these, blocks right behind their predecessor.
        scored_files: Files that have a score: two blocks or more.
        special: What is special, counted or left out.
        worst_files: The files with the most badly placed blocks, up to ten.
    """

    by_blocks: list[SizeBin]
    by_directory: list[DirectoryOfRoot]
    by_size: list[SizeBin]
    counted_blocks: int
    hot: Hot | None
    layout_score: float | None
    mean_file_score: float | None
    optimal_blocks: int
    scored_files: int
    special: Special
    worst_files: list[FileScore]


class Map(TypedDict):
    """The device in cells of equal length; the last one may reach beyond its end.

    Attributes:
        cell_bytes: Bytes of a cell.
        free_bytes: Free bytes of each cell.
        long_piece_bytes: Bytes of files in two fragments or more, in fragments of 1 MiB or
            more.
        other_bytes: Bytes of everything else.
        short_piece_bytes: And in shorter fragments.
        whole_file_bytes: Bytes of files that lie in one fragment.
    """

    cell_bytes: int
    free_bytes: list[int]
    long_piece_bytes: list[int]
    other_bytes: list[int]
    short_piece_bytes: list[int]
    whole_file_bytes: list[int]


class Order(TypedDict):
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


class Neighbours(TypedDict):
    """Neighbours in three orders.

    Attributes:
        by_creation: As they were made.
        by_name: By name, as sorted listings and most programs read them.
        by_readdir: As the file system lists them, which is how a program reads that does
            not sort.
    """

    by_creation: Order
    by_name: Order
    by_readdir: Order


class Options(TypedDict):
    """What may be chosen about the metrics.

    Attributes:
        count_tails: Whether a tail (fragments at the end of a file) is a block of its file.
        hot_period_ns: Hot files are those modified within so long before the snapshot, ns;
            none: no such subset.
        map_cells: Cells of the map of the device.
        strict_holes: Whether a block behind a hole counts as badly placed wherever it lies.
    """

    count_tails: bool
    hot_period_ns: int | None
    map_cells: int
    strict_holes: bool


class GroupTenth(TypedDict):
    """One tenth of all groups together.

    Attributes:
        blocks: Blocks of it.
        counted_blocks: Blocks that have a predecessor in their file.
        free_blocks: Free blocks of it.
        free_extents: Free extents that begin in it.
        free_share: Share of it that is free.
        layout_score: Share of them; none if no block counts.
        mean_free_extent_bytes: Their mean length, bytes, however far they reach.
        optimal_blocks: Of these, blocks right behind their predecessor.
    """

    blocks: int
    counted_blocks: int
    free_blocks: int
    free_extents: int
    free_share: float | None
    layout_score: float | None
    mean_free_extent_bytes: float | None
    optimal_blocks: int


class Placement(TypedDict):
    """Free space and layout by place within a group.

    Attributes:
        groups: Groups, a last one that is not whole included.
        tenths: From the front of a group to its end.
    """

    groups: int
    tenths: list[GroupTenth]


class Alone(TypedDict):
    """Reading each file alone, the heads coming from anywhere.

    Attributes:
        as_they_lie_seconds: As they lie, all files together, s.
        defragmented_seconds: Each file in one piece, s.
        gain_pct: Time saved, per cent.
        mean_file_ms: A file as it lies, ms; none without files.
    """

    as_they_lie_seconds: float
    defragmented_seconds: float
    gain_pct: float
    mean_file_ms: float | None


class Walk(TypedDict):
    """Reading all files in a walk by names.

    Attributes:
        as_they_lie_seconds: As they lie, s.
        breaks: Places that are not right behind the read before, as they lie.
        defragmented_seconds: Each file in one piece where it begins, s.
        defragmenting_gain_pct: Time saved by making each file one piece, per cent.
        rewriting_gain_pct: Time saved by writing all in order, per cent.
        rewritten_seconds: All in the order of the walk, s.
    """

    as_they_lie_seconds: float
    breaks: int
    defragmented_seconds: float
    defragmenting_gain_pct: float
    rewriting_gain_pct: float
    rewritten_seconds: float


class Reorganising(TypedDict):
    """The expected time to read all regular files, as they lie and reorganised.

    It is an estimate.

    Attributes:
        alone: Each file alone.
        bytes: Bytes read.
        defragmenting_verdict: Verdict on making each file one piece, for the walk.
        device: The device's name.
        files: Files with data on the device.
        metadata_reads: Reads of directories and inodes in a walk.
        metadata_seconds: Time for them in a walk, with the way there and back, the same in
            every layout, s.
        noticed_pct: Time saved from which on it is noticed.
        pays_pct: Time saved from which on reorganising is likely to pay.
        rewriting_seconds: Time to write all files again: reading them as they lie and
            writing as much, s.
        rewriting_verdict: Verdict on writing all files again in the order of the walk.
        scaled: Whether the file system is larger than the device, so that distances were
            scaled.
        title: What people call it.
        transfer_seconds: Time in which data move, the same in every layout, s.
        walk: All files in a walk by names.
        walks_to_pay: Walks after which writing again has paid for itself; none if it
            saves nothing.
    """

    alone: Alone
    bytes: int
    defragmenting_verdict: str
    device: str
    files: int
    metadata_reads: int
    metadata_seconds: float
    noticed_pct: float
    pays_pct: float
    rewriting_seconds: float
    rewriting_verdict: str
    scaled: bool
    title: str
    transfer_seconds: float
    walk: Walk
    walks_to_pay: float | None


class Report(TypedDict):
    """How the files of one file system lie.

    Attributes:
        contents: What there is.
        directory_layout: How directories lie.
        fragmentation: How regular files are broken.
        free_space: What is free.
        layout: How regular files lie.
        map: The device in cells.
        neighbours: How neighbours in a directory lie to each other.
        options: What was chosen.
        placement: Where in the groups; none without groups.
    """

    contents: Contents
    directory_layout: DirectoryLayout
    fragmentation: Fragmentation
    free_space: FreeSpace
    layout: Layout
    map: Map
    neighbours: Neighbours
    options: Options
    placement: Placement | None


class Target(Report):
    """Every metric of one snapshot.

    Attributes:
        path: What was measured.
        metrics: Its headline numbers, as `--fail-under` takes them.
        parameters: What the file system says of itself, by name.
        reorganising: What reorganising would save on the device; none without one.
    """

    path: str
    metrics: dict[str, float | None]
    parameters: dict[str, Any]
    reorganising: Reorganising | None


class Score(TypedDict):
    """How files lie and how free space is broken.

    Attributes:
        series: Whether the targets are one file system at several times, in their order.
        targets: What was measured.
        advice: What to do about it, of `advise` on a directory; none if nothing.
    """

    series: bool
    targets: list[Target]
    advice: NotRequired[str | None]


class Facts(TypedDict):
    """What is known of the file system as a whole.

    Attributes:
        block_bytes: Bytes of a block: the unit of the layout score.
        changed: Files that changed meanwhile.
        first_group_bytes: Where group 0 begins, bytes.
        fragment_bytes: Bytes of the smallest piece that can be allocated; a block's where
            there are no fragments.
        free_bytes: Bytes of it that are free, as the file system says; those in
            the map of free space may be fewer where it reports no map.
        free_map: Whether the map of free space is complete.
        group_bytes: Bytes of a cylinder, block or allocation group; 0 where there are none.
        kind: `ext4`, `xfs`, `btrfs`, `ffs`, `ufs1`, ...
        parameters: What else the file system says of itself, by name.
        taken_ns: When the snapshot was taken, nanoseconds since 1970; not known of an
            image or a simulated file system.
        total_bytes: Bytes of the whole file system.
        unreadable: Files that could not be read.
        vanished: Files that vanished while the snapshot was taken.
    """

    block_bytes: int
    changed: int
    first_group_bytes: int
    fragment_bytes: int
    free_bytes: int
    free_map: bool
    group_bytes: int
    kind: str
    parameters: dict[str, Any]
    taken_ns: int
    total_bytes: int
    unreadable: int
    vanished: int


class FilesByKind(TypedDict):
    """Files by kind.

    Attributes:
        directory: Directories.
        link: Symbolic links.
        other: Special files.
        regular: Regular files.
    """

    directory: int
    link: int
    other: int
    regular: int


class Snapshot(TypedDict):
    """A snapshot that was taken.

    Attributes:
        bytes: Length of the snapshot.
        extents: The extents of all files, those of one side by side.
        facts: The file system.
        files: Files by kind.
        free_extent_bytes: Bytes of the free extents.
        free_extents: Extents of free space.
        names: Names that the snapshot keeps.
    """

    bytes: int
    extents: int
    facts: Facts
    files: FilesByKind
    free_extent_bytes: int
    free_extents: int
    names: bool | None
