"""Documents about file systems that are aged and measured."""

from typing import Any, NotRequired, TypedDict


class Options(TypedDict):
    """What is done with a workload.

    Attributes:
        copies: Copies of the workload side by side.
        daily: Sample at the end of each day of the workload rather than every few thousand
            operations.
        hold: Which files are removed for that.
        live_limit: The same as bytes, which count instead of what the target would give: of
            a recipe.
        seed: Seed of what is drawn.
        streams: Streams among which files are dealt out; as the workload says if not given.
        sync_every: Syncs beside those of the workload.
        until: Ends; the first that is reached counts.
        utilization: Used over total that is not exceeded.
    """

    copies: int
    daily: bool
    hold: str
    live_limit: str | None
    seed: int
    streams: int | None
    sync_every: dict[str, Any] | None
    until: list[dict[str, Any]]
    utilization: float | None


class Outcomes(TypedDict):
    """What became of the operations asked of a target.

    Attributes:
        done: Done.
        no_space: For which there was no room.
        no_space_creates: Files that could not be made for want of room.
        skipped: Left out because of one of those.
    """

    done: int
    no_space: int
    no_space_creates: int
    skipped: int


class Planned(TypedDict):
    """How much is planned so far.

    Attributes:
        left_out: Operations of the workload, its copies included, that were left out
            because their file was removed to hold the utilization.
        live_bytes: Their bytes in whole blocks and, where the target has them, fragments.
        live_digest: A digest of their numbers, sizes and directories.
        live_files: Files that live by the workload.
        operations: Operations asked of the target.
        removed: Files removed to hold the utilization.
        time_ns: Time of the workload, nanoseconds.
        written_bytes: Bytes that writes ask for.
    """

    left_out: int
    live_bytes: int
    live_digest: int
    live_files: int
    operations: int
    removed: int
    time_ns: int
    written_bytes: int


class Stop(TypedDict):
    """Why a replay ended.

    Attributes:
        reached: The end that was reached.
    """

    reached: dict[str, Any]


class UsageAfter(TypedDict):
    """How full a target is.

    Attributes:
        total_bytes: Bytes that can be used at all.
        used_bytes: Bytes in use.
    """

    total_bytes: int
    used_bytes: int


class Report(TypedDict):
    """What a replay did.

    Attributes:
        layout_counted: Counted blocks at the end.
        layout_optimal: Optimal blocks at the end, of all files.
        layout_score: Layout score at the end.
        live_limit: The bytes that held it.
        outcomes: What became of it.
        planned: What was asked of the target.
        stop: Why it ended.
        usage_after: At the end.
        usage_before: At the start.
        utilization_asked: Used over total as asked.
        utilization_max: Used over total as the target reports, highest sample.
    """

    layout_counted: int
    layout_optimal: int
    layout_score: float | None
    live_limit: dict[str, Any] | None
    outcomes: Outcomes
    planned: Planned
    stop: Stop | str
    usage_after: UsageAfter
    usage_before: UsageAfter
    utilization_asked: float | None
    utilization_max: float


class Target(TypedDict):
    """What was aged.

    Attributes:
        allocate: How room is taken in a directory.
        block_bytes: Length of a block, as the directory's file system says.
        chunk_bytes: Bytes written by one call.
        data: What is written into files.
        file_system: The kind of the directory's file system.
        kind: `simulated` or `directory`.
        total_bytes: Size of the file system below the directory.
        layout: The simulated layout with every setting.
    """

    allocate: NotRequired[str]
    block_bytes: NotRequired[int]
    chunk_bytes: NotRequired[int]
    data: NotRequired[str]
    file_system: NotRequired[str]
    kind: str
    total_bytes: NotRequired[int]
    layout: NotRequired[dict[str, Any]]


class Workload(TypedDict):
    """A workload by where it comes from and what it is.

    Attributes:
        operations: Operations in all.
        parameters: Parameters of its source, enough to make it again.
        seed: Seed of its source.
        sha256: Of the bytes of its file.
        source: Name of its source.
    """

    operations: int
    parameters: dict[str, Any]
    seed: int
    sha256: str
    source: str


class Age(TypedDict):
    """A file system that was aged.

    Attributes:
        options: What is done with it.
        report: What came of the replay.
        target: Its target.
        workload: The workload's file.
    """

    options: Options
    report: Report
    target: Target
    workload: Workload


class Facts(TypedDict):
    """Facts of a workload: what its source says and what was counted.

    Attributes:
        actions: Operations by name of their action.
        days: Days begun from the start to the last operation.
        directories: Numbers of directories used, with the root's.
        file_numbers: Numbers of files used: a target's table of files needs as many rows.
        groups: Directories 1 to `groups` stand for cylinder groups; none where
            directories are directories.
        last_ns: Time of the last operation, ns from the start.
        live_bytes: Bytes of the files that are left at the end.
        live_directories: Directories left at the end, with the root.
        live_files: Files left at the end.
        notes: What was left out or changed on the way, each with its count.
        operations: Operations in all.
        parameters: Parameters by name, enough to make it again.
        peak_live_bytes: The most bytes alive at once.
        peak_live_files: The most files alive at once.
        seed: Seed of its random streams; 0 where nothing is drawn.
        source: Name of the source: `git`, `smith-1996`, ...
        start_unix_s: Civil time of its start, seconds since 1970, where there is one.
        streams: Concurrent writers.
        written_bytes: Bytes of all writes.
    """

    actions: dict[str, int]
    days: int
    directories: int
    file_numbers: int
    groups: int | None
    last_ns: int
    live_bytes: int
    live_directories: int
    live_files: int
    notes: dict[str, int]
    operations: int
    parameters: dict[str, Any]
    peak_live_bytes: int
    peak_live_files: int
    seed: int
    source: str
    start_unix_s: int | None
    streams: int
    written_bytes: int


class WorkloadMade(TypedDict):
    """A workload that was made.

    Attributes:
        bytes: Length of the file.
        facts: What it holds.
    """

    bytes: int
    facts: Facts


class WorkloadInfo(Facts):
    """What a workload holds."""


class Summary(TypedDict):
    """One measurement.

    Attributes:
        bytes: Bytes that were transferred.
        file_bytes: Bytes of each file; none where they differ.
        layout_score: Layout score of the files; none where it is not known.
        mb_per_s: The median rate.
        mb_per_s_deviation: Standard deviation of the rates.
        phase: `create`, `read`, `overwrite`, `hot-read`, `hot-overwrite`, `raw-read`.
        sync_each: Whether each file was synced.
    """

    bytes: int
    file_bytes: int | None
    layout_score: float | None
    mb_per_s: float
    mb_per_s_deviation: float
    phase: str
    sync_each: bool


class BenchTarget(TypedDict):
    """What was measured.

    Attributes:
        cache: What was emptied between phases.
        kind: `directory`, or the simulated file system.
        still_cached: Times that a file was in memory still when it was measured.
    """

    cache: NotRequired[str]
    kind: str
    still_cached: NotRequired[int]


class Bench(TypedDict):
    """A file system that was measured.

    Attributes:
        files_per_directory: Files that are made in one directory.
        hot_files: Hot files that were measured; none without them.
        repetitions: Times that everything was measured.
        summary: A row a size and phase.
        target: What was measured.
        total_bytes: Bytes of the files of one size together.
        config: The resolved configuration: every setting, also where it is the default.
        metrics: Metrics of the simulated file system.
    """

    files_per_directory: NotRequired[int]
    hot_files: NotRequired[int | None]
    repetitions: NotRequired[int]
    summary: list[Summary]
    target: BenchTarget
    total_bytes: NotRequired[int]
    config: NotRequired[dict[str, Any]]
    metrics: NotRequired[dict[str, float | None]]
