//! A block device, or a file on one, past the page cache.
//!
//! It is opened for reading only. What may be written is another file, opened apart from it, and only
//! when asked for ([`RealDisk::with_write_area`]).

#![allow(clippy::disallowed_methods, reason = "a disk is measured by the clock of the machine")]

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use agewell_core::{SECTOR_BYTES, SimDuration, SimTime};

use crate::disk::{Answer, DiskFacts, Extent, ProbeError, ProbedDisk, WritableArea};

/// Less says little of a disk: it fits into a drive's own buffer. Chosen by us.
pub(crate) const SMALLEST_BYTES: u64 = 64 << 20;

/// Alignment of addresses and memory for direct reads; chosen by us: a page, which all devices take.
const ALIGNMENT: usize = 4096;

/// `O_DIRECT | O_NONBLOCK`: past the page cache, and without waiting for the writer of a pipe.
fn direct_flags() -> i32 {
    (rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::NONBLOCK).bits() as i32
}

/// Memory that direct reads may fill.
struct AlignedBuffer {
    memory: Vec<u8>,
    from: usize,
}

impl AlignedBuffer {
    fn new() -> Self {
        Self { memory: Vec::new(), from: 0 }
    }

    fn of(&mut self, bytes: usize) -> &mut [u8] {
        if self.memory.len() < bytes + ALIGNMENT {
            self.memory = vec![0; bytes + ALIGNMENT];
            self.from = self.memory.as_ptr().align_offset(ALIGNMENT);
        }
        &mut self.memory[self.from..self.from + bytes]
    }
}

/// The kernel's counters of a disk.
#[derive(Debug, Clone)]
struct Counters {
    stat: PathBuf,
    /// Requests that a long one is cut into are at most this long.
    request_bytes: u64,
    before: u64,
}

impl Counters {
    /// Requests that the disk has completed: reads, writes, discards and flushes.
    fn completed(stat: &Path) -> Option<u64> {
        let text = std::fs::read_to_string(stat).ok()?;
        let fields: Vec<u64> =
            text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        Some([0, 4, 11].iter().filter_map(|field| fields.get(*field)).sum())
    }
}

/// A disk of this machine.
pub struct RealDisk {
    facts: DiskFacts,
    path: PathBuf,
    file: File,
    began: Instant,
    buffer: AlignedBuffer,
    counters: Option<Counters>,
    own_requests: u64,
    area: Option<Area>,
}

struct Area {
    path: PathBuf,
    file: File,
    sectors: u64,
}

impl RealDisk {
    /// Opens the block device or file at `path` for reading.
    ///
    /// # Errors
    /// If it cannot be opened past the page cache, is neither a file nor a block device, is too
    /// small, or has holes.
    pub fn open(path: &Path) -> Result<Self, ProbeError> {
        let failed =
            |source| ProbeError::Open { path: path.to_owned(), purpose: "reading", source };
        let unsuitable = |why: String| ProbeError::Unsuitable { path: path.to_owned(), why };
        let metadata = std::fs::metadata(path).map_err(failed)?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(unsuitable(
                "is neither a file nor a block device; give one of them".into(),
            ));
        }
        let opened = OpenOptions::new().read(true).custom_flags(direct_flags()).open(path);
        let mut file = opened.map_err(|source| match source.kind() {
            ErrorKind::InvalidInput => unsuitable(
                "cannot be read past the page cache (its file system has no O_DIRECT); give the block \
                 device itself"
                    .into(),
            ),
            _ => failed(source),
        })?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if bytes < SMALLEST_BYTES {
            return Err(unsuitable(format!(
                "{bytes} bytes are too few to measure a disk by; give a block device or a file of {} MiB \
                 or more",
                SMALLEST_BYTES >> 20
            )));
        }
        let bytes = bytes / ALIGNMENT as u64 * ALIGNMENT as u64;
        if kind.is_file() && metadata.blocks() * 512 < bytes {
            return Err(unsuitable(
                "has holes, which no disk is asked for; give a file that was written in full"
                    .into(),
            ));
        }
        let number = if kind.is_block_device() { metadata.rdev() } else { metadata.dev() };
        let folder = device_folder(number);
        let sector_bytes = folder
            .as_deref()
            .and_then(|folder| read_number(&folder.join("queue/physical_block_size")))
            .map_or(512, |bytes| if bytes >= 4096 { 4096 } else { 512 });
        let cache = folder
            .as_deref()
            .and_then(|folder| std::fs::read_to_string(folder.join("queue/write_cache")).ok());
        let counters = folder.and_then(|folder| {
            let stat = folder.join("stat");
            let limit = |name: &str| read_number(&folder.join("queue").join(name));
            let kib = limit("max_sectors_kb").unwrap_or(512).max(4);
            // The pages of a buffer need not lie side by side: each may be a segment of its own.
            let segments = limit("max_segments").unwrap_or(128).max(1);
            let request_bytes = (kib << 10).min(segments * ALIGNMENT as u64);
            let before = Counters::completed(&stat)?;
            Some(Counters { stat, request_bytes, before })
        });
        let facts = DiskFacts {
            name: path.display().to_string(),
            sectors: bytes / SECTOR_BYTES,
            sector_bytes,
            write_cache: cache.map(|cache| cache.trim() == "write back"),
            is_modelled: false,
        };
        Ok(Self {
            facts,
            path: path.to_owned(),
            file,
            began: Instant::now(),
            buffer: AlignedBuffer::new(),
            counters,
            own_requests: 0,
            area: None,
        })
    }

    /// The same, which may write the file at `path`.
    ///
    /// # Errors
    /// If it cannot be opened for writing, or is too small to learn from.
    pub fn with_write_area(mut self, path: &Path) -> Result<Self, ProbeError> {
        let failed =
            |source| ProbeError::Open { path: path.to_owned(), purpose: "writing", source };
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() || metadata.len() < SMALLEST_BYTES {
            let why = format!(
                "is not a file of {} MiB or more, which --write-area overwrites",
                SMALLEST_BYTES >> 20
            );
            return Err(ProbeError::Unsuitable { path: path.to_owned(), why });
        }
        // Without O_DSYNC: whether the drive reports writes early is what is to be seen.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(direct_flags())
            .open(path)
            .map_err(failed)?;
        let sectors = metadata.len() / ALIGNMENT as u64 * ALIGNMENT as u64 / SECTOR_BYTES;
        self.area = Some(Area { path: path.to_owned(), file, sectors });
        Ok(self)
    }

    fn count(&mut self, extent: Extent) {
        let longest = self.counters.as_ref().map_or(u64::MAX, |counters| counters.request_bytes);
        self.own_requests += extent.bytes().div_ceil(longest);
    }

    fn clock(&self) -> SimTime {
        SimTime(self.began.elapsed().as_nanos() as u64)
    }

    fn area(&mut self) -> &Area {
        self.area.as_ref().expect("only a disk with an area is asked for it")
    }
}

/// The folder of sysfs that describes the whole disk of device `number`.
fn device_folder(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let own = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // A partition stands within its disk, and has no queue of its own.
    if own.join("queue").is_dir() { Some(own) } else { own.parent().map(Path::to_owned) }
}

fn read_number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn failed(name: &str, extent: Extent, done: &'static str, source: std::io::Error) -> ProbeError {
    let byte = extent.first * SECTOR_BYTES;
    ProbeError::Request { name: name.to_owned(), byte, done, source }
}

impl ProbedDisk for RealDisk {
    fn facts(&self) -> &DiskFacts {
        &self.facts
    }

    fn read(&mut self, extent: Extent) -> Result<Answer, ProbeError> {
        self.count(extent);
        let memory = self.buffer.of(extent.bytes() as usize);
        let begin = SimTime(self.began.elapsed().as_nanos() as u64);
        let read = self.file.read_exact_at(memory, extent.first * SECTOR_BYTES);
        let end = self.clock();
        read.map_err(|source| failed(&self.facts.name, extent, "read", source))?;
        Ok(Answer { begin, end })
    }

    fn read_together(
        &mut self,
        extents: &[Extent],
        depth: usize,
        answers: &mut Vec<Answer>,
    ) -> Result<(), ProbeError> {
        for extent in extents {
            self.count(*extent);
        }
        let depth = depth.clamp(1, extents.len().max(1));
        let (next, start) = (AtomicUsize::new(0), Barrier::new(depth));
        let done: Mutex<Vec<Option<Answer>>> = Mutex::new(vec![None; extents.len()]);
        let error: Mutex<Option<ProbeError>> = Mutex::new(None);
        let disk = &*self;
        std::thread::scope(|scope| {
            for _ in 0..depth {
                scope.spawn(|| {
                    let mut buffer = AlignedBuffer::new();
                    let mut own = Vec::new();
                    start.wait();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(extent) = extents.get(number) else { break };
                        let memory = buffer.of(extent.bytes() as usize);
                        let begin = disk.clock();
                        let read = disk.file.read_exact_at(memory, extent.first * SECTOR_BYTES);
                        let end = disk.clock();
                        if let Err(source) = read {
                            let problem = failed(&disk.facts.name, *extent, "read", source);
                            *error.lock().expect("no reader panics") = Some(problem);
                            break;
                        }
                        own.push((number, Answer { begin, end }));
                    }
                    let mut done = done.lock().expect("no reader panics");
                    for (number, answer) in own {
                        done[number] = Some(answer);
                    }
                });
            }
        });
        if let Some(problem) = error.into_inner().expect("no reader panics") {
            return Err(problem);
        }
        answers.extend(done.into_inner().expect("no reader panics").into_iter().flatten());
        Ok(())
    }

    fn idle(&mut self, time: SimDuration) {
        std::thread::sleep(Duration::from_nanos(time.0));
    }

    fn now(&self) -> SimTime {
        self.clock()
    }

    fn writable(&mut self) -> Option<&mut dyn WritableArea> {
        self.area.is_some().then_some(self as &mut dyn WritableArea)
    }

    fn requests_of_others(&self) -> Option<(u64, u64)> {
        let counters = self.counters.as_ref()?;
        let all = Counters::completed(&counters.stat)?.saturating_sub(counters.before);
        Some((all.saturating_sub(self.own_requests), all))
    }
}

impl WritableArea for RealDisk {
    fn sectors(&self) -> u64 {
        self.area.as_ref().map_or(0, |area| area.sectors)
    }

    fn write(&mut self, extent: Extent) -> Result<Answer, ProbeError> {
        self.count(extent);
        let began = self.began;
        let mut buffer = std::mem::replace(&mut self.buffer, AlignedBuffer::new());
        let area = self.area();
        let memory = buffer.of(extent.bytes() as usize);
        let begin = SimTime(began.elapsed().as_nanos() as u64);
        let written = area.file.write_all_at(memory, extent.first * SECTOR_BYTES);
        let end = SimTime(began.elapsed().as_nanos() as u64);
        let name = area.path.display().to_string();
        self.buffer = buffer;
        written.map_err(|source| failed(&name, extent, "written", source))?;
        Ok(Answer { begin, end })
    }

    fn idle(&mut self, time: SimDuration) {
        ProbedDisk::idle(self, time);
    }
}

impl std::fmt::Debug for RealDisk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RealDisk").field("path", &self.path).finish_non_exhaustive()
    }
}
