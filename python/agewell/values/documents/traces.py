"""Documents about traces of block requests."""

from typing import Any, NotRequired, TypedDict


class BusyFile(TypedDict):
    """What was read and written of one file.

    Attributes:
        path: Where it is.
        requests: Requests.
        read_bytes: Bytes that were read of it.
        written_bytes: Bytes that were written to it.
    """

    path: str
    requests: int
    read_bytes: int
    written_bytes: int


class BusyFiles(TypedDict):
    """The files of a trace.

    Attributes:
        busiest: Those with most bytes, most first; of equal ones by path.
        file_sectors: Of them, those of known files.
        files: The busiest files, where requests say of which file they are; none otherwise.
        sectors: Sectors read and written.
    """

    busiest: list[BusyFile]
    file_sectors: int
    files: int
    sectors: int


class Drive(TypedDict):
    """What a trace says of a drive.

    Attributes:
        model: The vendor's or driver's name of the drive, for instance `hp335h`.
        cylinders: Cylinders.
        heads: Tracks in a cylinder.
        sectors_per_track: Sectors on a track, each of `sector_bytes`.
        sector_bytes: Bytes in a sector of the drive: 256 on the HP-IB drives.
        rpm: Rotations a minute.
        overhead_us: Controller overhead of a request.
        head_switch_us: Time to change heads.
        sector_skew: Skew between tracks.
        read_characteristic: When a read may begin, for instance `oncrossing`.
        seek_parameters: Seek curve: boundary in cylinders; then us and us per square root of a
            cylinder below it; then us and us per cylinder above it; then as the header has it.
        immediate_report: Whether writes are reported done from the buffer.
        bus: Bus between host and drive.
        bus_mb_per_s: Bus rate, 10^6 bytes a second.
    """

    model: NotRequired[str | None]
    cylinders: NotRequired[int | None]
    heads: NotRequired[int | None]
    sectors_per_track: NotRequired[int | None]
    sector_bytes: NotRequired[int | None]
    rpm: NotRequired[float | None]
    overhead_us: NotRequired[float | None]
    head_switch_us: NotRequired[float | None]
    sector_skew: NotRequired[int | None]
    read_characteristic: NotRequired[str | None]
    seek_parameters: NotRequired[list[float]]
    immediate_report: NotRequired[bool | None]
    bus: NotRequired[str | None]
    bus_mb_per_s: NotRequired[float | None]


class Partition(TypedDict):
    """A partition of a device.

    Attributes:
        number: Its number on the device.
        name: Mount point or purpose.
        first_byte: First byte on the device.
        bytes: Length in bytes; 0 if unknown.
        records: Records of the trace that name it.
    """

    number: int
    name: str
    first_byte: int
    bytes: int
    records: int


class TraceDevice(TypedDict):
    """One device of a trace.

    Attributes:
        id: Its number in the trace.
        name: Its name.
        drive: Its drive, where the trace says.
        partitions: Its partitions, where the trace says.
    """

    id: int
    name: str
    drive: NotRequired[Drive | None]
    partitions: NotRequired[list[Partition]]


class Metadata(TypedDict):
    """What a trace says about itself.

    Complete only when the trace has been read to its end: devices and warnings are found on the
    way.

    Attributes:
        schema_version: Of the form of a trace.
        clients: Names of the processes in the client column, by their number, where the
            trace says.
        clock_start_ns: What the format's own clock read, in ns, when the trace's time was
            zero.
        compression: Compression the input came in.
        devices: Devices in the order of their number.
        first_skipped: What was wrong with the first of them.
        format: Format of the file.
        header: Other things the header says: host, kernel, options.
        skipped_records: Bad records left out because the user asked for it.
        start_wall_ns: Civil time of the trace's start in `start_wall_zone`, ns since
            1970-01-01 00:00 of that zone.
        start_wall_zone: `UTC`, an offset such as `-07:00`, or `local` where the trace does
            not say.
        warnings: Things that were changed or left out while reading, each with its count.
    """

    schema_version: int
    clients: NotRequired[dict[str, str]]
    clock_start_ns: int
    compression: str | None
    devices: list[TraceDevice]
    first_skipped: str | None
    format: str
    header: dict[str, Any]
    skipped_records: int
    start_wall_ns: int | None
    start_wall_zone: str | None
    warnings: dict[str, int]


class TraceInfoTraceDevice(TypedDict):
    """Requests of one device.

    Attributes:
        id: Its number in the trace.
        name: Its name.
        reads: Of them reads.
        requests: Requests.
        sector_end: One above the highest sector touched.
        sector_min: Lowest sector touched.
        sequential: Of them, those that continue the device's previous request.
    """

    id: int
    name: str
    reads: int
    requests: int
    sector_end: int
    sector_min: int
    sequential: int


class TimesOfRequests(TypedDict):
    """Mean, extremes and quantiles of a time, in ms.

    Attributes:
        count: Requests that carry this time.
        max_ms: Longest.
        mean_ms: Mean.
        p50_ms: Half are shorter.
        p90_ms: 90 % are shorter.
        p99_ms: 99 % are shorter.
    """

    count: int
    max_ms: float
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float


class SizeCount(TypedDict):
    """Requests of one size.

    Attributes:
        bytes: Length in bytes.
        requests: How many requests.
    """

    bytes: int
    requests: int


class Summary(TypedDict):
    """What a trace holds.

    Attributes:
        asynchronous: Known to be asynchronous.
        devices: Devices with requests, in the order of their number.
        discards: Discards.
        first_s: Enqueue time of the first request, s from the trace's start.
        flushes: Flushes.
        footprint_bytes: Distinct 4 KiB blocks touched, in bytes.
        footprint_is_estimate: Whether the footprint is estimated (standard error 0.8 %)
            rather than counted.
        interarrival: Time between enqueue times.
        max_bytes: Largest in bytes.
        mean_bytes: Mean size of reads and writes in bytes.
        read_bytes: Bytes read.
        read_response: The same, of reads.
        read_service: The same, of reads.
        reads: Reads.
        reads_pct: Reads as a share of reads and writes, in per cent.
        requests: Requests.
        response: From enqueue to finish.
        sequential_pct: Requests that begin where the previous one on their device ended, in
            per cent.
        service: From start to finish.
        sizes: The commonest sizes of reads and writes, commonest first.
        span_s: From the first request's enqueue time to the last's, s.
        synchronous: Known to be synchronous.
        write_response: The same, of writes.
        write_service: The same, of writes.
        writes: Writes.
        written_bytes: Bytes written.
    """

    asynchronous: int
    devices: list[TraceInfoTraceDevice]
    discards: int
    first_s: float
    flushes: int
    footprint_bytes: int
    footprint_is_estimate: bool
    interarrival: TimesOfRequests
    max_bytes: int
    mean_bytes: float
    read_bytes: int
    read_response: TimesOfRequests | None
    read_service: TimesOfRequests | None
    reads: int
    reads_pct: float
    requests: int
    response: TimesOfRequests | None
    sequential_pct: float
    service: TimesOfRequests | None
    sizes: list[SizeCount]
    span_s: float
    synchronous: int
    write_response: TimesOfRequests | None
    write_service: TimesOfRequests | None
    writes: int
    written_bytes: int


class TraceInfo(TypedDict):
    """What a trace is and holds.

    Attributes:
        files: The busiest files, where requests say of which file they are; none otherwise.
        format: Format of the file.
        metadata: What the trace says of itself.
        start_wall: When it begins by the wall clock; none where that is not known.
        summary: What it holds.
        sureness: How the format was known.
        title: The format in words.
    """

    files: BusyFiles | None
    format: str
    metadata: Metadata
    start_wall: str | None
    summary: Summary
    sureness: str
    title: str


class Request(TypedDict):
    """Block requests as columns; every column has the same length.

    Attributes:
        client: Issuing client or process, 0 if unknown.
        device: Device, numbered by the trace's metadata.
        enqueue_ns: When the driver first saw the request, ns from the start of the trace.
        finish_ns: When the device reported completion, ns from the start of the trace; none if
            it was not seen.
        flags: Bits: 1 synchronous, 2 asynchronous, 4 metadata, 8 read-ahead.
        operation: `read`, `write`, `discard` or `flush`.
        sector: First sector, 512 bytes.
        sectors: Length in sectors of 512 bytes.
        start_ns: When the device was given the request, ns from the start of the trace; none if
            it was not seen.
    """

    client: int
    device: int
    enqueue_ns: int
    finish_ns: int | None
    flags: int
    operation: str
    sector: int
    sectors: int
    start_ns: int | None


class TraceHead(TypedDict):
    """The first requests of a trace.

    Attributes:
        requests: The requests.
    """

    requests: list[Request]


class TraceConvert(TypedDict):
    """A trace that was written.

    Attributes:
        bytes_in: Bytes of input after decompression.
        bytes_out: Bytes of output.
        first_skipped: The first of them.
        input_format: Format of the input, or `merged`.
        left_out: Requests that the output format cannot express.
        output_format: Format of the output.
        requests_in: Requests read.
        requests_out: Requests written.
        skipped_records: Bad records left out on request.
        split_requests: Requests that the filters cut in pieces.
        warnings: What was changed while reading.
    """

    bytes_in: int
    bytes_out: int
    first_skipped: str | None
    input_format: str
    left_out: int
    output_format: str
    requests_in: int
    requests_out: int
    skipped_records: int
    split_requests: int
    warnings: dict[str, int]


class Format(TypedDict):
    """One line of the table of formats.

    Attributes:
        kind: `text`, `binary` or `columns`.
        name: The name for `--format`.
        title: What it is.
        trap: What is treacherous about it.
        writes: Whether agewell writes it too.
    """

    kind: str
    name: str
    title: str
    trap: str
    writes: bool


class TraceFormats(TypedDict):
    """The formats of traces.

    Attributes:
        formats: The formats.
    """

    formats: list[Format]


class Kernel(TypedDict):
    """What was completed, by operation: as the kernel counts it, or as a trace has it.

    Attributes:
        discard_sectors: Sectors that they freed.
        discards: Discards completed.
        flushes: Flushes completed.
        read_sectors: Sectors of 512 bytes that they moved.
        reads: Reads completed.
        write_sectors: Sectors that they moved.
        writes: Writes completed. The kernel also counts the empty write that carries a
            flush.
    """

    discard_sectors: int
    discards: int
    flushes: int
    read_sectors: int
    reads: int
    write_sectors: int
    writes: int


class Recording(TypedDict):
    """A recording that has ended.

    Attributes:
        buffer_bytes: Buffer of each processor, bytes.
        busiest_second_bytes: The buffer that would have held the busiest second, if all of
            it had come from one processor.
        cut_requests: Requests that began or ended outside of the recording.
        device: The disk.
        empty_writes: Empty writes that carry a flush, which the kernel counts as writes.
        ended_by: Why it ended: `time`, `size` or `stopped`.
        events: Events read.
        kernel: As the kernel counted them meanwhile, where it does.
        late_events: Events that came after later ones had been used.
        lost_events: Events that the kernel lost, and what its own counters (`overrun`) say.
        lost_when: When events were lost.
        named_sectors: Sectors read and written that are of known files, of all, where that
            was asked for.
        overrun: The kernel's `overrun`, all processors.
        reader_cpu_seconds: Processor time of the thread that reads and pairs, s.
        recorded: Requests completed, as recorded.
        requests: Requests in the trace.
        row_groups: Row groups that a kill would have kept, the last one included.
        seconds: How long it was recorded, s.
        trace_bytes: Bytes of the trace.
    """

    buffer_bytes: int
    busiest_second_bytes: int
    cut_requests: int
    device: str
    empty_writes: int
    ended_by: str
    events: int
    kernel: Kernel | None
    late_events: int
    lost_events: int
    lost_when: str
    named_sectors: list[int] | None
    overrun: int
    reader_cpu_seconds: float
    recorded: Kernel
    requests: int
    row_groups: int
    seconds: float
    trace_bytes: int


class Record(TypedDict):
    """A recording of block requests.

    Attributes:
        recording: How it was recorded.
        trace: What was recorded, as of `trace info`; none if nothing was.
        command_status: Exit status of the command that was recorded; none without one.
    """

    recording: Recording
    trace: TraceInfo | None
    command_status: int | None


class RecordRecover(TypedDict):
    """A recording that was cut off, made whole.

    Attributes:
        rows: Requests that were recovered.
        bytes: Length of the trace.
    """

    rows: int
    bytes: int
