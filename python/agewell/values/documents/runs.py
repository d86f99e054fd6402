"""Documents about runs: what one is, many together, asked and compared."""

from typing import Any, NotRequired, TypedDict

from agewell.values.documents.scores import Report as ScoreReport


class DiskEstimate(TypedDict):
    """A disk in two numbers.

    Attributes:
        access_ms: Time before a transfer begins.
        bandwidth_mb_per_s: Rate of long transfers, in 10^6 bytes per second.
        further_ms: Time of a further transfer, without moving to it.
    """

    access_ms: float
    bandwidth_mb_per_s: float
    further_ms: float


class Input(TypedDict):
    """A file that a result depends on.

    Attributes:
        name: The file, as the experiment names it.
        sha256: Of its bytes, in hexadecimal.
    """

    name: str
    sha256: str


class Sequential(TypedDict):
    """Files of one size, made, read and written again.

    Attributes:
        file_bytes: Length of a file.
        files: Files that were made.
        layout_score: How well they lie; none if no block counts.
        create_mb_per_s: Creating and writing them: the median rate.
        create_deviation_mb_per_s: Standard deviation of the rates.
        create_disk_seconds: Time that the disk was busy.
        create_requests: Requests of the disk.
        read_mb_per_s: Reading them in the order of their creation: the median rate.
        read_deviation_mb_per_s: Standard deviation of the rates.
        read_disk_seconds: Time that the disk was busy.
        read_requests: Requests of the disk.
        overwrite_mb_per_s: Writing them again in place: the median rate.
        overwrite_deviation_mb_per_s: Standard deviation of the rates.
        overwrite_disk_seconds: Time that the disk was busy.
        overwrite_requests: Requests of the disk.
    """

    file_bytes: int
    files: int
    layout_score: float | None
    create_mb_per_s: float
    create_deviation_mb_per_s: float
    create_disk_seconds: float
    create_requests: int
    read_mb_per_s: float
    read_deviation_mb_per_s: float
    read_disk_seconds: float
    read_requests: int
    overwrite_mb_per_s: float
    overwrite_deviation_mb_per_s: float
    overwrite_disk_seconds: float
    overwrite_requests: int


class Run(TypedDict):
    """One run: what was simulated and what it measured.

    Attributes:
        agewell_build: Build of agewell that made it.
        agewell_version: Version of agewell that made it.
        baseline_metrics: Metrics of the same requests without remapping; none without
            remapping.
        config: The resolved configuration: every setting, also where it is the default.
        disk_estimate: What the layout takes the disk for.
        inputs: The files that the result depends on.
        kind: `requests`, `layout` or `file-system`.
        metrics: What was measured: docs/reference/metrics.md.
        seed: Seed of its random numbers.
        score: How the files of a file system lie.
        sequential: What a file system takes for files of each size.
        warnings: What a reader should know, in sentences.
        disks: Disks that were simulated.
    """

    agewell_build: str
    agewell_version: str
    baseline_metrics: dict[str, float | None] | None
    config: dict[str, Any]
    disk_estimate: NotRequired[DiskEstimate]
    inputs: list[Input]
    kind: str
    metrics: dict[str, float | None]
    seed: int
    score: NotRequired[ScoreReport]
    sequential: NotRequired[list[Sequential]]
    warnings: list[str]
    disks: NotRequired[int]


class RunError(TypedDict):
    """Why a run could not be made; a result beside it is of a later try.

    Attributes:
        version: Version of agewell that tried.
        build: Build of agewell that tried.
        config: The resolved configuration: every setting, also where it is the default.
        error: What is wrong.
        kind: What kind of error it is: `input` or `run`.
    """

    version: str
    build: str
    config: dict[str, Any]
    error: str
    kind: str


class RunTiming(TypedDict):
    """How long a run took.

    Attributes:
        run_seconds: How long the run took, without what came before and after.
    """

    run_seconds: float


class RunOrigin(TypedDict):
    """Where the paths of a run start.

    Attributes:
        base: Folder from which relative paths of the configuration start, relative to the
            run's.
    """

    base: str


class SampleOfSweep(TypedDict):
    """Values that were drawn.

    Attributes:
        method: How they were drawn: `random` or `sobol`.
        seed: Of the draw.
        count: How many points there are.
        ranges: Of each setting its range as a text, or its choices.
    """

    method: str
    seed: int
    count: int
    ranges: dict[str, str | list[Any]]


class Sweep(TypedDict):
    """What a sweep is; its numbers are in its table.

    Attributes:
        version: Version of agewell that made it.
        build: Build of agewell that made it.
        axes: The values of each setting that varies.
        together: Settings that vary together, as points of a table.
        samples: What was drawn.
        runs: Keys of its runs, in order.
    """

    version: str
    build: str
    axes: dict[str, list[Any]]
    together: NotRequired[list[list[str]]]
    samples: NotRequired[list[SampleOfSweep]]
    runs: list[str]


class SweepRuns(TypedDict):
    """The runs of a sweep.

    Attributes:
        axes: The settings that vary.
        table: The table of the runs.
        runs: A run each: its values on the axes, `run`, `error`, `run_seconds`, and
            `metrics.` before the name of each metric.
    """

    axes: list[str]
    table: str
    runs: list[dict[str, Any]]


class Column(TypedDict):
    """A column of an answer.

    Attributes:
        name: Name of the column.
        type: Its type, as Arrow writes it.
    """

    name: str
    type: str


class Results(TypedDict):
    """The answer to a query.

    Attributes:
        columns: The columns of the answer.
        rows: Its rows, a value a column.
    """

    columns: list[Column]
    rows: list[list[Any]]


class ResultsViews(TypedDict):
    """What can be asked.

    Attributes:
        views: The columns of each view, and what each is.
        examples: Queries to begin with.
    """

    views: dict[str, dict[str, str]]
    examples: list[str]


class Builds(TypedDict):
    """By which builds each side was made.

    Attributes:
        a: Of the first.
        b: Of the second.
    """

    a: list[str]
    b: list[str]


class Summary(TypedDict):
    """One metric over all configurations.

    Attributes:
        metric: The name.
        configurations: How many have it on both sides.
        ratio: Geometric mean of their ratios; none where one has none.
        ratio_min: The least.
        ratio_max: The greatest.
        beyond: How many are beyond the tolerance.
        unsure: How many may be.
        direction: Of those beyond: `better`, `worse` or `neither`.
    """

    metric: str
    configurations: int
    ratio: float | None
    ratio_min: float | None
    ratio_max: float | None
    beyond: int
    unsure: int
    direction: str


class Comparison(TypedDict):
    """One metric of one configuration.

    Attributes:
        configuration_id: Of the configuration.
        metric: The name.
        pairs: How many there are, one a seed.
        a: Mean over the pairs.
        b: Likewise.
        ratio: B over A; None where it has no meaning, as for values of different signs.
        ratio_low: Lower end of its interval; None for a single pair.
        ratio_high: Upper end.
        verdict: What that says beside the tolerance.
        direction: Whether B is better.
        settings: Those of its settings in which the compared configurations differ.
    """

    configuration_id: str
    metric: str
    pairs: int
    a: float | None
    b: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    verdict: str
    direction: str
    settings: dict[str, Any]


class Diff(TypedDict):
    """Two sets of runs, or two documents, held against one another.

    Attributes:
        a: The folder of the first.
        b: The folder of the second.
        builds: Builds of agewell that made each side.
        tolerance: Change that is taken for none, as a fraction.
        confidence: Of the intervals, as a fraction.
        worse_only: Whether only changes for the worse count.
        pairs: Runs that have been paired.
        configurations: Different configurations among them.
        other_inputs: Pairs whose input files have other bytes under the same names.
        beyond: Comparisons that are beyond the tolerance.
        unpaired: Of each side, the runs without a partner and why.
        metrics: Each metric over all configurations.
        comparisons: A configuration and metric each.
    """

    a: str
    b: str
    builds: Builds
    tolerance: float
    confidence: float
    worse_only: bool
    pairs: int
    configurations: int
    other_inputs: int
    beyond: int
    unpaired: Builds
    metrics: list[Summary]
    comparisons: list[Comparison]


class PartOfPage(TypedDict):
    """What one command left.

    Attributes:
        kind: Which: `comparison`, `advice`, `score`, ...
        title: What it is of, for the heading.
        verdict: What it says, in sentences, the answer first.
    """

    kind: str
    title: str
    verdict: list[str]


class RunOfPage(TypedDict):
    """A run on a page.

    Attributes:
        name: How it is called on the page.
        metrics: Its metrics.
        baseline_metrics: Those of its baseline; none without one.
    """

    name: str
    metrics: dict[str, float | None]
    baseline_metrics: dict[str, float | None] | None


class Report(TypedDict):
    """A page that was written.

    Attributes:
        page: The page.
        plots: Files of the pictures that were drawn.
        parts: What stands on it.
        runs: The runs on it.
    """

    page: str
    plots: list[str]
    parts: list[PartOfPage]
    runs: list[RunOfPage]
