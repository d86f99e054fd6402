"""Documents about devices: the catalogue, probes and validations."""

from typing import NotRequired, TypedDict


class Device(TypedDict):
    """One device, modelled.

    Attributes:
        block_bytes: Length of an erase block.
        capacity_bytes: Its size.
        capacity_sectors: Sectors of 512 bytes.
        channels: Channels to its dies.
        command_ms: Time of a command on a channel.
        cylinders: Cylinders.
        dies: Dies.
        erase_ms: Time to erase a block.
        kind: `mechanical`, `simple`, `flash` or `zoned`.
        mapping_bytes: Bytes that are mapped at once.
        mean_seek_ms: Mean time of a seek between two places at random; none without an arm.
        name: Its name.
        over_provisioning: Share of its cells beyond its size.
        page_bytes: Length of a page.
        placement: How it places what is written.
        program_ms: Time to program a page.
        queue_depth: Commands that it holds at once.
        read_bytes_per_s: Rate of long reads.
        read_ms: Time to read a page.
        request_overhead_ms: Time that a request takes besides.
        rpm: Turns of the platters a minute; none without platters.
        sources: Where each of its numbers comes from, by key of the device file.
        title: What it is.
        toml: The device file.
        uncertainty: How far the probe that made it was off; none without one.
        write_buffer_bytes: Size of its write buffer.
        write_bytes_per_s: Rate of long writes.
        write_command_ms: Time of a write command on a channel.
        buffer_kib: Size of its buffer, in KiB.
        full_seek_ms: Time of the longest seek.
        head_switch_ms: Time to change to another head.
        media_mb_per_s: Least and greatest rate from the medium.
        rotation_period_ms: Time of a turn.
        sector_bytes: Length of its own sectors.
        sectors_per_track: Fewest and most sectors of a track.
        single_cylinder_seek_ms: Time of a seek to the next cylinder.
        surfaces: Surfaces.
        zones: Zones of equal tracks.
        access_time_ms: Time before a transfer.
        bandwidth_bytes_per_s: Rate of a transfer.
        cache_bytes: Size of its cache on the medium; none without one.
        conventional_zones: Zones that may be written anywhere; none if not said.
        drive: Kind of the drive below its zones.
        management: Who keeps its zones in order: drive or host.
        write_zones: Zones that are written in order.
        zone_bytes: Length of a zone.
    """

    block_bytes: NotRequired[int]
    capacity_bytes: int
    capacity_sectors: int
    channels: NotRequired[int]
    command_ms: NotRequired[float]
    cylinders: int
    dies: NotRequired[int]
    erase_ms: NotRequired[float]
    kind: str
    mapping_bytes: NotRequired[int]
    mean_seek_ms: float | None
    name: str
    over_provisioning: NotRequired[float]
    page_bytes: NotRequired[int]
    placement: NotRequired[str]
    program_ms: NotRequired[float]
    queue_depth: NotRequired[int]
    read_bytes_per_s: NotRequired[int]
    read_ms: NotRequired[float]
    request_overhead_ms: NotRequired[float]
    rpm: float | None
    sources: dict[str, str]
    title: str
    toml: str
    uncertainty: dict[str, float] | None
    write_buffer_bytes: NotRequired[int]
    write_bytes_per_s: NotRequired[int]
    write_command_ms: NotRequired[float]
    buffer_kib: NotRequired[float]
    full_seek_ms: NotRequired[float]
    head_switch_ms: NotRequired[float]
    media_mb_per_s: NotRequired[list[float]]
    rotation_period_ms: NotRequired[float]
    sector_bytes: NotRequired[int]
    sectors_per_track: NotRequired[list[int]]
    single_cylinder_seek_ms: NotRequired[float]
    surfaces: NotRequired[int]
    zones: NotRequired[int]
    access_time_ms: NotRequired[float]
    bandwidth_bytes_per_s: NotRequired[int]
    cache_bytes: NotRequired[int]
    conventional_zones: NotRequired[int | None]
    drive: NotRequired[str]
    management: NotRequired[str]
    write_zones: NotRequired[int]
    zone_bytes: NotRequired[int]


class CataloguedDevice(TypedDict):
    """One line of the table of formats.

    Attributes:
        capacity_bytes: Its size.
        kind: `text`, `binary` or `columns`.
        mean_seek_ms: Mean time of a seek between two places at random; none without an arm.
        name: The name for `--format`.
        rpm: Turns of the platters a minute; none without platters.
        title: What it is.
    """

    capacity_bytes: int
    kind: str
    mean_seek_ms: float | None
    name: str
    rpm: float | None
    title: str


class Devices(TypedDict):
    """The catalogue of devices.

    Attributes:
        devices: The devices.
    """

    devices: list[CataloguedDevice]


class DeviceImport(TypedDict):
    """A device file out of the parameters of another tool.

    Attributes:
        path: File that was written.
        changes: What the rules changed.
        toml: The device file, where none was written.
    """

    path: NotRequired[str]
    changes: NotRequired[list[str]]
    toml: NotRequired[str]


class ProbedReads(TypedDict):
    """The times of the same reads on the disk and on its model.

    Attributes:
        disk_ms: Mean on the disk, ms. The slowest fiftieth is left out.
        error_pct: How far the model is off.
        model_ms: Mean on the model, ms.
        reads: Reads.
    """

    disk_ms: float
    error_pct: float
    model_ms: float
    reads: int


class Probe(TypedDict):
    """A disk that was measured by reading it.

    Attributes:
        capacity_bytes: Its size.
        class_: What it is: `armed`, `two-numbers` or `flash`.
        device_file: The device file, as text.
        fallback: Why a simpler model was taken; none if it was not.
        random: Reads at random, on the disk and on the model.
        requests: Reads that were made.
        requests_of_others: Requests of others meanwhile; none where they cannot be counted.
        rpm: Turns of the platters a minute; none without platters.
        seconds: How long it took.
        sequential: Sequential reads, on the disk and on the model.
        sources: Where each of its numbers comes from, by key of the device file.
        modelled: Whether a modelled disk was probed.
        output: The device file that was written.
    """

    capacity_bytes: int
    class_: str
    device_file: str
    fallback: str | None
    random: ProbedReads
    requests: int
    requests_of_others: int | None
    rpm: float | None
    seconds: float
    sequential: ProbedReads
    sources: dict[str, str]
    modelled: bool
    output: str


class Errors(TypedDict):
    """Errors of a set of requests.

    Times in ms.

    Attributes:
        demerit_exact_ms: Demerit from exact quantiles.
        demerit_ms: Demerit as DiskSim computes it.
        demerit_pct: Demerit relative to the measured mean, per cent.
        mean_error_pct: Relative difference of the means, per cent.
        mean_ms: Mean simulated response.
        measured_mean_ms: Mean measured response.
        paired_rms_ms: RMS of simulated minus measured, request by request.
        requests: Requests in the set.
        within_5_pct: Fraction of requests within 5 % of their measurement.
    """

    demerit_exact_ms: float
    demerit_ms: float
    demerit_pct: float
    mean_error_pct: float
    mean_ms: float
    measured_mean_ms: float
    paired_rms_ms: float
    requests: int
    within_5_pct: float


class ErrorsByOperation(TypedDict):
    """Errors of all requests, reads and writes; none for a kind that the set lacks.

    Attributes:
        all: All requests.
        reads: Reads.
        writes: Writes.
    """

    all: Errors | None
    reads: Errors | None
    writes: Errors | None


class ErrorsByPart(TypedDict):
    """Errors on one time base.

    Attributes:
        held_out: Its second half, which nothing was estimated from.
        whole: The whole trace.
    """

    held_out: ErrorsByOperation
    whole: ErrorsByOperation


class ValidatedDevice(TypedDict):
    """What every device file says.

    Attributes:
        name: what `model = "..."` finds: lower case, digits and hyphens.
        title: what people call it.
    """

    name: str
    title: str | None


class Estimated(TypedDict):
    """What was estimated from the first half.

    Attributes:
        bus_sector_us: One sector on the host's bus, microseconds, if the device file leaves
            it open.
        fitted_ms: With `fit`: what was added to each overhead, ms.
        requests: Requests of the first half.
        rotation_coherence: How well the phases of the residuals agree, 0 to 1.
        rotation_locked: Whether that is enough to hold the phase; if not, the trace base
            knows nothing of rotation.
        rotation_ppm: Rotation period against the nominal one, parts per million; only the
            trace base uses it.
    """

    bus_sector_us: float | None
    fitted_ms: dict[str, float]
    requests: int
    rotation_coherence: float | None
    rotation_locked: bool | None
    rotation_ppm: float | None


class Trace(TypedDict):
    """The measured trace.

    Attributes:
        devices: Names of the devices in the trace.
        format: Its format.
        path: The trace.
        requests: Requests before it.
        requests_without_times: Requests without measured times, left out.
    """

    devices: list[str]
    format: str
    path: str
    requests: int
    requests_without_times: int


class Validate(TypedDict):
    """A device model against measured times.

    Attributes:
        base: The clock that `metrics` are of: `closed` or `trace`.
        closed: Errors on the closed base.
        device: The device's name.
        estimated: The estimates from the first half.
        metrics: Flat figures under fixed names.
        trace: Errors on the trace's own clock.
        trace_clock: Errors when requests are issued at the measured times.
    """

    base: str
    closed: ErrorsByPart
    device: ValidatedDevice
    estimated: Estimated
    metrics: dict[str, float | None]
    trace: Trace
    trace_clock: ErrorsByPart


class ValidationOfDrive(Validate):
    """The outcome of a validation.

    Attributes:
        drive: Name of the drive.
        parameters: File of its parameters.
    """

    drive: str
    parameters: str


class ValidateDrives(TypedDict):
    """Models of several drives against their traces.

    Attributes:
        validations: A drive each.
    """

    validations: list[ValidationOfDrive]
