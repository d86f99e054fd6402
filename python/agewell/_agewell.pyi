"""The extension module.

Private: the promise to users is the Python package around it. Structured values cross as JSON text,
bulk data as Parquet files. Every function raises `InputError` for bad input and `RunError` where
the work itself failed; the text of both is one complete line.
"""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AgewellError",
    "Blocks",
    "InputError",
    "Places",
    "RunError",
    "Segments",
    "age_recipe",
    "age_replay",
    "bench_directory",
    "build",
    "bytes_per_second",
    "check_parquet",
    "configuration_reference",
    "device_import",
    "device_list",
    "device_load",
    "duration_ns",
    "probe_disk",
    "record",
    "record_recover",
    "reorganise_path",
    "replay_recording",
    "resolve_experiment",
    "run_experiment",
    "score_path",
    "sha256",
    "snapshot_check",
    "snapshot_take",
    "store_check",
    "store_format",
    "store_grow",
    "store_lengthen",
    "store_replay",
    "store_salvage",
    "trace_convert",
    "trace_formats",
    "trace_head",
    "trace_info",
    "validate_device",
    "version",
    "watch_path",
    "with_checksums",
    "workload_info",
    "workload_make",
]

class AgewellError(Exception):
    """Any error that agewell reports to its user; the text is one complete line."""

class InputError(AgewellError):
    """Bad usage or bad input."""

class RunError(AgewellError):
    """The run failed."""

@final
class Segments:
    """The segments of a log that may be collected, for a victim policy.

    Every array has a number a segment and cannot be written to; one that is kept stays what it was.
    `argmin` and `argmax` take the first of equals: segments come zone by zone, in the order of the
    log's index, which means nothing else.
    """

    def __len__(self) -> int: ...
    @property
    def clock(self) -> int:
        """User block writes so far."""

    @property
    def number(self) -> NDArray[np.int64]:
        """Numbers of the segments, in the order of their places on the disk."""

    @property
    def zone(self) -> NDArray[np.int64]:
        """The zone that each lies in."""

    @property
    def live(self) -> NDArray[np.int64]:
        """Live blocks."""

    @property
    def blocks(self) -> NDArray[np.int64]:
        """Blocks that each can hold."""

    @property
    def utilization(self) -> NDArray[np.float64]:
        """Live blocks over all."""

    @property
    def age(self) -> NDArray[np.int64]:
        """User block writes since the data was new, counted as `layout.segment_age` says."""

    @property
    def opened(self) -> NDArray[np.int64]:
        """Clock when the first block was written."""

    @property
    def sealed(self) -> NDArray[np.int64]:
        """Clock when the segment was full."""

    @property
    def sealing(self) -> NDArray[np.int64]:
        """Which of all sealings: the lowest was full first."""

    @property
    def log(self) -> NDArray[np.int64]:
        """The open log that wrote the segment, of a placement with several."""

    @property
    def cached(self) -> NDArray[np.bool_]:
        """Whether the host's cache has all live blocks; known with `victim = "cost-age-cache"`."""

    def draw(self, count: int) -> NDArray[np.int64]:
        """Positions drawn at random, the same in every run with the same seed."""

@final
class Blocks:
    """Blocks that are placed together, for a placement policy.

    They are those of a write buffer, or the live blocks of a segment that is collected; a write
    that no buffer takes comes by itself. Every array has a number a block and cannot be written to.
    """

    def __len__(self) -> int: ...
    @property
    def clock(self) -> int:
        """Number of the first of these user block writes; of collected blocks, writes so far."""

    @property
    def number(self) -> NDArray[np.int64]:
        """Numbers of the blocks."""

    @property
    def age(self) -> NDArray[np.int64]:
        """User block writes since each was written last; -1 for one that was not there."""

    @property
    def is_collected(self) -> bool:
        """Whether they move out of a segment, and are not new."""

    @property
    def segment_log(self) -> int | None:
        """The log that wrote that segment; None for what is new, as the others below."""

    @property
    def segment_blocks(self) -> int | None:
        """Blocks that it can hold."""

    @property
    def segment_live(self) -> int | None:
        """Live blocks in it."""

    @property
    def segment_opened(self) -> int | None:
        """Clock when its first block was written."""

    @property
    def segment_sealed(self) -> int | None:
        """Clock when it was full."""

@final
class Places:
    """The places of a disk, for an allocator of a write-anywhere layout."""

    def __len__(self) -> int: ...
    @property
    def free(self) -> NDArray[np.bool_]:
        """Whether each place is free."""

    @property
    def head(self) -> int:
        """The place behind the last transfer."""

    @property
    def last_written(self) -> int:
        """The place written last."""

    @property
    def is_upwards(self) -> bool:
        """Whether the last choice was filled upwards."""

    def at_or_after(self, place: int) -> int | None:
        """The first free place from `place` on."""

    def at_or_before(self, place: int) -> int | None:
        """The last free place up to `place`."""

def version() -> str:
    """The version of agewell, as in the workspace's Cargo.toml."""

def build() -> str:
    """What distinguishes this build from others of the same version: a hash of its sources."""

def sha256(data: bytes) -> str:
    """The SHA-256 of `data`, in hexadecimal."""

def run_experiment(
    config: str,
    base_dir: str | PathLike[str],
    catalogue_dir: str | PathLike[str],
    build: str,
    out_dir: str | PathLike[str] | None = None,
    progress: Callable[[int], object] | None = None,
    policies: Mapping[str, tuple[Callable[[Any], Any], str, str] | None] | None = None,
) -> str:
    """Run the experiment `config` (JSON) and give the result document (JSON).

    Relative paths in the experiment start from `base_dir`. With `out_dir` the result and its tables
    are written there. The document names `build`, the software that made it. `progress` is called
    with the number of requests read so far. `policies` are functions that decide in place of what
    the experiment names: for `victim`, `placement` and `allocator` the function, what results call
    it and what messages do.
    """

def replay_recording(
    trace: str | PathLike[str],
    device: str,
    catalogue_dir: str | PathLike[str],
    options: str = "{}",
    progress: Callable[[int], object] | None = None,
) -> str:
    """Replay a recording of block requests on a modelled device; what that took, as JSON.

    Each request waits for those that had been done when it was made. `options` (JSON) say
    `first_sector`, where on the device the recorded one begins, `sectors`, how large that one is,
    and `write_cache_bytes`, the cache of writes in front of it. `progress` is called with the
    requests done so far.
    """

def store_check(
    path: str | PathLike[str],
    data: bool = False,
    progress: Callable[[float], object] | None = None,
) -> str:
    """Read the store at `path`: its figures, and what is wrong with it, as JSON.

    With `data` the data of every block is read as well. `progress` is called with the share of it
    that is done.
    """

def store_format(
    path: str | PathLike[str],
    uuid: bytes,
    size: str | None = None,
    block_bytes: int = 4096,
    segment_blocks: int = 256,
    sparse: bool = False,
    force: bool = False,
) -> None:
    """Make an empty store in the file or on the device `path`.

    A file that is not there is made, of `size` (such as `8 GiB`): filled with zeros, or with holes
    if `sparse`. What is there keeps its size, and must be blank unless `force`. `uuid` has 16
    bytes.
    """

def duration_ns(name: str, text: str) -> int:
    """Nanoseconds out of a duration such as `10 min`, which the option `name` has."""

def bytes_per_second(name: str, text: str) -> int:
    """Bytes a second out of a rate such as `20 MB/s`, which the option `name` has."""

def store_grow(
    path: str | PathLike[str],
    size: str | None = None,
    sparse: bool = False,
) -> None:
    """Have the store in the file or on the device `path` take in all of it.

    A file is made longer first if `size` (such as `16 GiB`) is given: filled with zeros, or by a
    hole if `sparse`.
    """

def store_lengthen(path: str | PathLike[str], size: str) -> int:
    """Make a file longer that a store lies in, which may be in use; how long it was, bytes.

    It is filled with zeros up to `size` (such as `16 GiB`).
    """

def store_replay(
    trace: str | PathLike[str],
    options: str,
    catalogue_dir: str | PathLike[str],
    progress: Callable[[float], object] | None = None,
) -> str:
    """Have a new store, or updates in place, carry out the trace of file operations `trace`.

    Its reads, writes and syncs are of one file. What that took until the first directory that it
    makes and until its end is given as JSON, and every block has been read back. `options` (JSON)
    say `by` (`clean`, `plug`, `thread`, `matthews-1999`, `adaptive` or `in-place`), `segments` and,
    if they are not as usual, `segment_blocks`, `block_bytes`, `reserve_segments`, `device` (of the
    catalogue; memory without a clock otherwise), `access_ns`, `further_ns`,
    `bandwidth_bytes_per_s`, `learns_prices` and `reads_back`. `progress` is called with the share
    done.
    """

def store_salvage(
    path: str | PathLike[str],
    blocks: str | PathLike[str],
    table: str | PathLike[str],
    progress: Callable[[float], object] | None = None,
) -> str:
    """Copy every intact block of the store at `path` into the file `blocks`; a count, as JSON.

    In the file `table` stands what has become of each. `progress` is called with the share done.
    """

def configuration_reference() -> str:
    """What may stand in an experiment, as JSON: `schema`, and `tables` of keys in Markdown."""

def resolve_experiment(config: str) -> str:
    """Check an experiment (JSON) and fill in every default (JSON), without running it."""

def trace_info(path: str | PathLike[str], format: str | None = None, skip_bad: bool = False) -> str:
    """Read a whole trace and describe it (JSON)."""

def trace_head(
    path: str | PathLike[str],
    format: str | None = None,
    count: int = 10,
    skip_bad: bool = False,
) -> str:
    """The first records of a trace (JSON list)."""

def trace_convert(
    inputs: list[str | PathLike[str]] | list[str],
    output: str | PathLike[str],
    input_format: str | None,
    output_format: str | None,
    filters: str,
    skip_bad: bool,
    progress: Callable[[int, int], object] | None = None,
) -> str:
    """Read traces, merge them by time, filter (JSON list) and write them; a summary (JSON).

    `progress` is called with the bytes and the requests read so far.
    """

def trace_formats() -> str:
    """The known formats (JSON list)."""

def device_list(catalogue_dir: str | PathLike[str]) -> str:
    """The devices of a catalogue (JSON list)."""

def device_load(device: str, catalogue_dir: str | PathLike[str]) -> str:
    """Parameters of a device and figures derived from them (JSON)."""

def device_import(path: str | PathLike[str], name: str | None = None) -> str:
    """A device file (TOML) made from the parameters of another tool."""

def validate_device(
    device: str,
    catalogue_dir: str | PathLike[str],
    trace: str | PathLike[str],
    options: str = "{}",
) -> str:
    """Hold a device against the measured times of a trace (JSON report)."""

def probe_disk(
    target: str | PathLike[str],
    time: str,
    seed: int = 1,
    name: str | None = None,
    write_area: str | PathLike[str] | None = None,
    catalogue_dir: str | PathLike[str] | None = None,
    despite_others: bool = False,
    progress: Callable[[float, str], object] | None = None,
) -> str:
    """Measure a disk by reading it: its device file and how far that is from the disk (JSON).

    `target` is a block device or a file; with `catalogue_dir` a modelled device, on a virtual
    clock. `write_area` names a file that may be overwritten; of a modelled device its last
    sixteenth is, if it is given. `progress` is called with the share of the time that is used and
    what is being done. When it raises, or on Ctrl-C, the work stops.
    """

def record(
    target: str | PathLike[str],
    output: str | PathLike[str],
    progress: Callable[[str], bool],
    time: str | None = None,
    size: str | None = None,
    buffer: str | None = None,
    anonymous: bool = False,
    files: bool = False,
    notes: str = "{}",
    group_seconds: float | None = None,
) -> str:
    """Record the block requests of the disk that `target` is or is on; what was recorded (JSON).

    `time`, `size` and `buffer` are quantities such as `1 h`, `2 GB` and `4 MiB`; `notes` is a JSON
    object of texts that the trace keeps. `progress` is called several times a second, first when
    recording has begun, with how it goes (JSON); it returns whether to go on. When it raises, the
    recording is given up: what of it is in finished row groups can be recovered. A row group ends
    after `group_seconds`, by default after a time that grows with the recording.
    """

def record_recover(output: str | PathLike[str]) -> str:
    """Make a whole trace of what a killed recording left of `output`: rows and bytes (JSON)."""

def reorganise_path(
    path: str | PathLike[str],
    catalogue_dir: str | PathLike[str],
    now_ns: int,
    options: str = "{}",
    progress: Callable[[str, int, int | None, float], object] | None = None,
) -> str:
    """Plan to lay the files of a mounted tree one behind another, and do it (JSON).

    `options` is a JSON object: `by`, `device`, `budget`, `rate`, `time`, `dry_run`, `anyway`,
    `plan`. `progress` is called with a phase, what is done, what there is to do, and seconds.
    """

def snapshot_take(
    path: str | PathLike[str],
    output: str | PathLike[str],
    now_ns: int,
    names: bool = False,
    sync: bool = False,
    resume: bool = False,
    progress: Callable[[int, int | None], object] | None = None,
    checkpoint_files: int | None = None,
) -> str:
    """Take a snapshot of a mounted tree or an image, write it, and say what it holds (JSON).

    `now_ns` is the time now, nanoseconds since 1970. `progress` is called with the files seen so
    far and, where the file system says so, how many there are. When it raises, or on Ctrl-C,
    nothing stands under `output`; what is finished of a large tree stands in `output` + ".partial",
    which `resume` goes on with. Finished work is kept every `checkpoint_files` files.
    """

def snapshot_check(path: str | PathLike[str]) -> str:
    """Read a snapshot file, check all of it, and say what it holds (JSON)."""

def age_replay(
    request: str,
    progress: Callable[[int, int | None, int, float, float, float | None, bool], object]
    | None = None,
) -> str:
    """Replay a workload onto a target as the request (JSON) says; the record (JSON).

    `progress` is called with operations done, operations in all if known, those without room, days
    of the workload passed, used over total, the layout score or None, and whether operations are
    only taken note of because they were done before.
    """

def age_recipe(path: str | PathLike[str]) -> str:
    """A recipe, checked (JSON)."""

def bench_directory(request: str, progress: Callable[[int, int], object] | None = None) -> str:
    """Measure a directory of a mounted file system as the request (JSON) says; the record (JSON).

    `progress` is called with the benchmarks done and how many there are.
    """

def score_path(
    path: str | PathLike[str],
    catalogue_dir: str | PathLike[str],
    now_ns: int,
    options: str = "{}",
    progress: Callable[[int, int | None], object] | None = None,
) -> str:
    """Measure a snapshot file, an image or a mounted tree, and give the metrics (JSON).

    `options` is a JSON object: `strict_holes`, `count_tails`, `hot` (a duration), `map_cells`,
    `sync`, and `device`, or `access_time` with `bandwidth`. `now_ns` is the time now, nanoseconds
    since 1970. `progress` is called with the files seen so far and, where the file system says so,
    how many there are.
    """

def workload_make(
    request: str,
    output: str | PathLike[str],
    progress: Callable[[int], object] | None = None,
) -> str:
    """Make an aging workload (JSON request) and write it; its facts and length in bytes (JSON).

    `progress` is called with the operations made so far; an exception from it stops the work.
    """

def workload_info(
    path: str | PathLike[str], progress: Callable[[int], object] | None = None
) -> str:
    """Read a whole workload, check its rules, and give its facts (JSON)."""

def check_parquet(path: str | PathLike[str]) -> bool:
    """Check every byte of a Parquet file that has checksums; whether it has."""

def with_checksums(table: bytes) -> bytes:
    """Put checksums into a Parquet file whose metadata have the key `agewell.checksums`."""

def watch_path(
    path: str | PathLike[str],
    catalogue_dir: str | PathLike[str],
    options: str,
    report: Callable[[str], bool],
) -> None:
    """Keep a mounted tree in shape until the time is over or `report` says no.

    `options` is a JSON object: `budget` (bytes an hour), `every`, `time`, `device`, `usual`,
    `state`, `dry_run`. `report` is called several times a second with JSON text, an object with its
    `kind` (`look`, `record`, `wait`, `move`, `round`), and returns whether to go on.
    """
