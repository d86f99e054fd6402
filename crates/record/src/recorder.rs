//! The recording itself: from the kernel's buffers to the trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agewell_core::Operation;
use agewell_trace::{
    BlockBatch, Event, EventKind, RequestStream, SCHEMA_VERSION, TIME_MISSING, TraceMetadata,
};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::RecordError;
use crate::buffer_size;
use crate::decode::{Decoded, KERNEL_EVENTS};
use crate::device::{Counters, Disk};
use crate::encoder::Encoder;
use crate::latencies::Latencies;
use crate::losses::Losses;
use crate::merge::Merge;
use crate::naming::Naming;
use crate::page::read_page;
use crate::processes::Processes;
use crate::tracefs::{Buffer, Instance, wait};

/// Longest time between two rounds of reading; chosen by us: short enough for an interrupt, long
/// enough to cost nothing.
const ROUND_NS: u64 = 100_000_000;
/// An event is in its buffer within this time of the time it carries, or it comes late and is counted;
/// chosen by us, far above what a writer that is interrupted takes.
const SLACK_NS: u64 = 100_000_000;
/// How often a line of progress is made.
const SECOND_NS: u64 = 1_000_000_000;
/// Row groups end after this time at least; chosen by us.
const GROUP_NS_MIN: u64 = 10 * SECOND_NS;
/// And after this at most; chosen by us.
const GROUP_NS_MAX: u64 = 600 * SECOND_NS;
/// Between those, after this part of the recording so far, so that a week has some hundred groups.
const GROUP_PART: u64 = 100;
/// Or after as many requests: the row groups of every trace.
const GROUP_ROWS: u64 = 1 << 20;

/// What is to be recorded, and how.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// A block device, or a path on one.
    pub target: PathBuf,
    /// The trace.
    pub output: PathBuf,
    /// How long, ns; until someone stops it if `None`.
    pub time_ns: Option<u64>,
    /// How large the trace may become, bytes.
    pub size_bytes: Option<u64>,
    /// Buffer of each processor, bytes; by the memory if `None`.
    pub buffer_bytes: Option<u64>,
    /// Say of each request which file it is of, out of snapshots before and behind the recording.
    pub files: bool,
    /// Keep neither names nor numbers of processes, nor the name of the machine.
    pub anonymous: bool,
    /// Time between two row groups, ns; by the length of the recording if `None`.
    pub group_ns: Option<u64>,
    /// What else the trace is to say of itself.
    pub notes: BTreeMap<String, String>,
}

/// What a recording is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Looking where the files lie, before.
    Before,
    /// Recording.
    #[default]
    Recording,
    /// Looking again.
    Behind,
    /// Naming the files of the requests.
    Naming,
}

/// How a recording goes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Progress {
    /// What it is at.
    pub phase: Phase,
    /// Files seen, before and behind the recording.
    pub files: u64,
    /// Since it began, s.
    pub seconds: f64,
    /// Requests so far.
    pub requests: u64,
    /// In the last second.
    pub requests_per_second: f64,
    /// Bytes read and written in the last second.
    pub bytes_per_second: f64,
    /// Half of the last second's requests were answered within this time, ms.
    pub p50_ms: Option<f64>,
    /// All but a hundredth were.
    pub p99_ms: Option<f64>,
    /// Events lost so far.
    pub lost_events: u64,
    /// Bytes of the trace so far, about.
    pub trace_bytes: u64,
    /// Whether the trace is written to the disk that is recorded, and so records itself.
    pub records_itself: bool,
}

/// A recording that has ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Recording {
    /// The disk.
    pub device: String,
    /// How long it was recorded, s.
    pub seconds: f64,
    /// Requests in the trace.
    pub requests: u64,
    /// Bytes of the trace.
    pub trace_bytes: u64,
    /// Row groups that a kill would have kept, the last one included.
    pub row_groups: u64,
    /// Events read.
    pub events: u64,
    /// Events that the kernel lost, and what its own counters (`overrun`) say.
    pub lost_events: u64,
    /// The kernel's `overrun`, all processors.
    pub overrun: u64,
    /// When events were lost.
    pub lost_when: String,
    /// Events that came after later ones had been used.
    pub late_events: u64,
    /// Requests completed, as recorded.
    pub recorded: Counters,
    /// Empty writes that carry a flush, which the kernel counts as writes.
    pub empty_writes: u64,
    /// As the kernel counted them meanwhile, where it does.
    pub kernel: Option<Counters>,
    /// Requests that began or ended outside of the recording.
    pub cut_requests: u64,
    /// Processor time of the thread that reads and pairs, s.
    pub reader_cpu_seconds: f64,
    /// Buffer of each processor, bytes.
    pub buffer_bytes: u64,
    /// The buffer that would have held the busiest second, if all of it had come from one processor.
    pub busiest_second_bytes: u64,
    /// Sectors read and written that are of known files, of all, where that was asked for.
    pub named_sectors: Option<(u64, u64)>,
    /// Why it ended: `time`, `size` or `stopped`.
    pub ended_by: &'static str,
}

/// Now, ns since 1970.
pub(crate) fn wall_ns() -> u64 {
    clock_ns(ClockId::Realtime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// One buffer and what is known of it.
struct Source {
    buffer: Buffer,
    last_ns: u64,
    /// Every event before this has been read.
    read_until_ns: u64,
}

/// Requests so far, by what is shown of them.
#[derive(Default)]
struct Tally {
    recorded: Counters,
    requests: u64,
    incomplete: u64,
    bytes: u64,
    most_per_second: f64,
    latencies: Latencies,
}

impl Tally {
    fn add(&mut self, batch: &BlockBatch) {
        self.requests += batch.len() as u64;
        for index in 0..batch.len() {
            let row = batch.row(index);
            let sectors = u64::from(row.sectors);
            if row.finish_ns == TIME_MISSING {
                self.incomplete += 1;
                continue;
            }
            self.latencies.add(row.finish_ns - row.enqueue_ns);
            let recorded = &mut self.recorded;
            match Operation::from_code(row.operation) {
                Some(Operation::Read) => {
                    recorded.reads += 1;
                    recorded.read_sectors += sectors;
                    self.bytes += sectors * 512;
                }
                Some(Operation::Write) => {
                    recorded.writes += 1;
                    recorded.write_sectors += sectors;
                    self.bytes += sectors * 512;
                }
                Some(Operation::Discard) => {
                    recorded.discards += 1;
                    recorded.discard_sectors += sectors;
                }
                _ => recorded.flushes += 1,
            }
        }
    }
}

/// The state of a recording under way.
struct Recorder {
    // Dropped before the instance, which cannot be removed while its buffers are open.
    sources: Vec<Source>,
    instance: Instance,
    buffer_bytes: u64,
    page: Vec<u8>,
    merge: Merge,
    stream: RequestStream,
    processes: Processes,
    losses: Losses,
    encoder: Encoder,
    tally: Tally,
    start_ns: u64,
    events: u64,
    broken: u64,
    empty_writes: u64,
    row_groups: u64,
    group_ns: Option<u64>,
    group_began_ns: u64,
}

/// Records until the time is over, the trace is large enough, or `progress`, which is called several
/// times a second and first when recording has begun, says no.
///
/// # Errors
/// If the system cannot be recorded or the trace cannot be written; what `progress` returns.
pub fn record(
    options: &RecordOptions,
    progress: &mut dyn FnMut(&Progress) -> Result<bool, RecordError>,
) -> Result<Recording, RecordError> {
    let disk = Disk::of(&options.target)?;
    if !options.files {
        return record_disk(&disk, options, progress);
    }
    let mut naming = Naming::begin(&disk, options, progress)?;
    let recording = record_disk(&disk, options, progress)?;
    naming.finish(recording, &options.output, progress)
}

fn record_disk(
    disk: &Disk,
    options: &RecordOptions,
    progress: &mut dyn FnMut(&Progress) -> Result<bool, RecordError>,
) -> Result<Recording, RecordError> {
    let kinds: Vec<(&str, EventKind)> = KERNEL_EVENTS
        .into_iter()
        .filter(|(_, kind)| match kind {
            EventKind::Issue | EventKind::Requeue | EventKind::Complete => disk.has_requests,
            EventKind::PieceComplete => !disk.has_requests,
            _ => true,
        })
        .collect();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let usual_bytes = buffer_size::usual_bytes(memory_bytes(), processors);
    let buffer_bytes = options.buffer_bytes.unwrap_or(usual_bytes);
    let instance = Instance::new(&kinds, &disk.kernel_numbers(), buffer_bytes)?;
    let buffers = instance.buffers()?;
    let encoder = Encoder::new(&options.output)?;
    let folder = options.output.parent().filter(|folder| !folder.as_os_str().is_empty());
    let records_itself = disk.holds(folder.unwrap_or(Path::new(".")));
    let before = disk.counters();
    let start_ns = now_ns();
    let wall_ns = wall_ns();
    let cpu_ns = clock_ns(ClockId::ThreadCPUTime);
    let mut metadata = TraceMetadata {
        schema_version: SCHEMA_VERSION,
        format: "record".to_owned(),
        start_wall_ns: i64::try_from(wall_ns).ok(),
        start_wall_zone: Some("UTC".to_owned()),
        devices: vec![disk.description()],
        ..TraceMetadata::default()
    };
    metadata.header = options.notes.clone();
    metadata.header.extend(disk.facts());
    metadata.header.extend(machine(options.anonymous));
    let sources = buffers.into_iter().map(|buffer| Source {
        buffer,
        last_ns: start_ns,
        read_until_ns: start_ns,
    });
    let mut recorder = Recorder {
        sources: sources.collect(),
        buffer_bytes,
        page: vec![0; instance.layout.page_bytes()],
        instance,
        merge: Merge::default(),
        stream: RequestStream::new(metadata, start_ns),
        processes: Processes::new(options.anonymous),
        losses: Losses::default(),
        encoder,
        tally: Tally::default(),
        start_ns,
        events: 0,
        broken: 0,
        empty_writes: 0,
        row_groups: 0,
        group_ns: options.group_ns,
        group_began_ns: start_ns,
    };
    recorder.instance.trace(true)?;
    let ended_by = recorder.run(options, records_itself, progress)?;
    recorder.instance.trace(false)?;
    let end_ns = now_ns();
    let after = disk.counters();
    let kernel = before.zip(after).map(|(before, after)| after.since(before));
    recorder.end(disk, ended_by, end_ns, cpu_ns, kernel)
}

fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// What a trace says of the machine.
fn machine(anonymous: bool) -> Vec<(String, String)> {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
    let mut facts = vec![
        ("clock".to_owned(), "CLOCK_MONOTONIC".to_owned()),
        ("recorder".to_owned(), concat!("agewell ", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    if let Ok(release) = read("/proc/sys/kernel/osrelease") {
        facts.push(("kernel".to_owned(), format!("Linux {release} {}", std::env::consts::ARCH)));
    }
    if !anonymous && let Ok(host) = read("/proc/sys/kernel/hostname") {
        facts.push(("host".to_owned(), host));
    }
    facts
}

impl Recorder {
    fn run(
        &mut self,
        options: &RecordOptions,
        records_itself: bool,
        progress: &mut dyn FnMut(&Progress) -> Result<bool, RecordError>,
    ) -> Result<&'static str, RecordError> {
        let mut shown = Progress { records_itself, ..Progress::default() };
        let (mut second_ns, mut requests, mut bytes) = (self.start_ns, 0, 0);
        loop {
            let going_on = progress(&shown)?;
            let buffers = self.sources.iter().map(|source| &source.buffer);
            wait(buffers, ROUND_NS);
            self.round()?;
            let now = now_ns();
            let elapsed_ns = now - self.start_ns;
            shown.seconds = elapsed_ns as f64 / 1e9;
            shown.requests = self.tally.requests;
            shown.trace_bytes = self.encoder.bytes();
            if now - second_ns >= SECOND_NS {
                let seconds = (now - second_ns) as f64 / 1e9;
                shown.requests_per_second = (self.tally.requests - requests) as f64 / seconds;
                shown.bytes_per_second = (self.tally.bytes - bytes) as f64 / seconds;
                shown.p50_ms = self.tally.latencies.quantile_ms(0.50);
                shown.p99_ms = self.tally.latencies.quantile_ms(0.99);
                self.tally.latencies.clear();
                let most = &mut self.tally.most_per_second;
                *most = most.max(shown.requests_per_second);
                shown.lost_events = self.kernel_losses()?;
                (second_ns, requests, bytes) = (now, self.tally.requests, self.tally.bytes);
            }
            if !going_on {
                return Ok("stopped");
            }
            if options.time_ns.is_some_and(|time_ns| elapsed_ns >= time_ns) {
                return Ok("time");
            }
            if options.size_bytes.is_some_and(|bytes| shown.trace_bytes >= bytes) {
                return Ok("size");
            }
            self.end_group_if_due(now)?;
        }
    }

    /// What the kernel has counted as lost so far.
    fn kernel_losses(&self) -> Result<u64, RecordError> {
        let counts = self.sources.iter().map(|source| source.buffer.counts());
        counts.map(|counts| counts.map(|counts| counts.overrun + counts.dropped)).sum()
    }

    /// Reads what is in the buffers and writes the requests that are complete.
    fn round(&mut self) -> Result<(), RecordError> {
        for index in 0..self.sources.len() {
            self.drain(index)?;
        }
        let read_until_ns = self.sources.iter().map(|source| source.read_until_ns).min();
        self.release(read_until_ns.unwrap_or(0).saturating_sub(SLACK_NS))
    }

    /// Uses every event before `time_ns`.
    fn release(&mut self, time_ns: u64) -> Result<(), RecordError> {
        let stream = &mut self.stream;
        self.merge.release(time_ns, |event| stream.event(event));
        stream.settle(time_ns);
        self.write()
    }

    fn write(&mut self) -> Result<(), RecordError> {
        let mut batch = BlockBatch::default();
        while self.stream.take(&mut batch) {
            self.tally.add(&batch);
            self.encoder.write(&batch)?;
        }
        Ok(())
    }

    /// Reads the buffer of one processor until it is empty, or once around.
    fn drain(&mut self, index: usize) -> Result<(), RecordError> {
        let began_ns = now_ns();
        let source = &mut self.sources[index];
        let page_bytes = self.page.len() as u64;
        let pages_most = self.buffer_bytes.div_ceil(page_bytes);
        let mut pages = 0;
        let is_empty = loop {
            if pages == pages_most {
                break false;
            }
            if !source.buffer.read(&mut self.page)? {
                break true;
            }
            pages += 1;
            let (decoder, merge) = (&self.instance.decoder, &mut self.merge);
            let (processes, broken) = (&mut self.processes, &mut self.broken);
            let empty_writes = &mut self.empty_writes;
            let read = read_page(&self.instance.layout, &self.page, |time_ns, record| {
                match decoder.decode(time_ns, record) {
                    Decoded::Event(event, name) => {
                        *empty_writes += u64::from(is_empty_write(&event));
                        // Whoever is interrupted by a completion has nothing to do with it.
                        let asks = matches!(event.kind, EventKind::Queue | EventKind::Issue);
                        let client = if asks { processes.number(event.client, name) } else { 0 };
                        // The one disk, whichever of its partitions a piece names.
                        merge.push(Event { device: 0, client, ..event });
                    }
                    Decoded::Other => {}
                    Decoded::Broken => *broken += 1,
                }
            });
            let report = read.map_err(|why| RecordError::Run(why.to_string()))?;
            self.events += report.records;
            self.losses.add(source.last_ns, report.first_ns, report.missed);
            if report.missed != crate::page::Missed::None {
                self.stream.lost(0, report.first_ns);
            }
            source.last_ns = report.last_ns;
        };
        source.read_until_ns = if is_empty { began_ns } else { source.last_ns };
        Ok(())
    }

    fn end_group_if_due(&mut self, now_ns: u64) -> Result<(), RecordError> {
        let elapsed_ns = now_ns - self.start_ns;
        let group_ns = self
            .group_ns
            .unwrap_or_else(|| (elapsed_ns / GROUP_PART).clamp(GROUP_NS_MIN, GROUP_NS_MAX));
        let rows = self.encoder.group_rows();
        let is_due = rows >= GROUP_ROWS || now_ns - self.group_began_ns >= group_ns;
        if !is_due || rows == 0 {
            return Ok(());
        }
        self.group_began_ns = now_ns;
        self.row_groups += 1;
        let metadata = self.metadata();
        self.encoder.end_group(metadata)
    }

    /// What the trace says of itself so far.
    fn metadata(&mut self) -> TraceMetadata {
        let lost_when = self.losses.text(self.start_ns);
        let metadata = self.stream.metadata();
        metadata.clients = self.processes.names();
        if !lost_when.is_empty() {
            metadata.header.insert("lost_events_when".to_owned(), lost_when);
        }
        metadata.clone()
    }

    fn end(
        mut self,
        disk: &Disk,
        ended_by: &'static str,
        end_ns: u64,
        cpu_began_ns: u64,
        kernel: Option<Counters>,
    ) -> Result<Recording, RecordError> {
        // Nothing is written any more, so each buffer ends.
        self.round()?;
        while self.sources.iter().any(|source| source.read_until_ns < end_ns) {
            self.round()?;
        }
        self.release(u64::MAX)?;
        self.stream.finish();
        self.write()?;
        let (mut overrun, mut dropped) = (0, 0);
        for source in &self.sources {
            let counts = source.buffer.counts()?;
            overrun += counts.overrun;
            dropped += counts.dropped;
        }
        let unplaced = self.losses.settle(overrun);
        let lost_events = self.losses.events() + unplaced + dropped;
        let cpu_ns = clock_ns(ClockId::ThreadCPUTime) - cpu_began_ns;
        if lost_events > 0 {
            self.stream.lost(lost_events, end_ns);
        }
        let mut metadata = self.metadata();
        let seconds = (end_ns - self.start_ns) as f64 / 1e9;
        metadata.header.insert("recorded_seconds".to_owned(), format!("{seconds:.3}"));
        metadata.header.insert("lost_events".to_owned(), lost_events.to_string());
        if let Some(kernel) = kernel {
            let text = serde_json::to_string(&kernel).expect("plain numbers");
            metadata.header.insert("kernel_counts".to_owned(), text);
        }
        let buffer_bytes = self.buffer_bytes;
        metadata.header.insert("buffer_bytes".to_owned(), buffer_bytes.to_string());
        let cut_requests = self.tally.incomplete;
        let lost_when = self.losses.text(self.start_ns);
        let written = self.encoder.finish(metadata)?;
        Ok(Recording {
            device: disk.name.clone(),
            seconds,
            requests: written.rows,
            trace_bytes: written.bytes,
            row_groups: self.row_groups + 1,
            events: self.events,
            lost_events,
            overrun,
            lost_when,
            late_events: self.merge.late(),
            recorded: self.tally.recorded,
            empty_writes: self.empty_writes,
            kernel,
            cut_requests,
            reader_cpu_seconds: cpu_ns as f64 / 1e9,
            buffer_bytes,
            named_sectors: None,
            busiest_second_bytes: buffer_size::bytes_for(self.tally.most_per_second),
            ended_by,
        })
    }
}

/// Whether a piece is a write of no sectors that carries a flush.
fn is_empty_write(event: &Event) -> bool {
    event.kind == EventKind::Queue
        && event.sectors == 0
        && event.letters.operation == Some(Operation::Write)
}
