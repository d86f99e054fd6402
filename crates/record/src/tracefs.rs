//! The kernel's trace file system: an instance of our own, and the raw buffers of its processors.
//!
//! An instance has buffers, events and filters apart from anyone else's. Where tracefs is not
//! mounted, it is mounted for this process alone: `fsmount` gives a mount that no directory shows
//! and that ends with the process. An instance does not end with its process, which may be killed;
//! each is locked for as long as it is used, and one without a lock is removed by the next recording.
//!
//! Source: Linux `Documentation/trace/ftrace.rst`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agewell_trace::EventKind;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::time::Timespec;

use crate::RecordError;
use crate::decode::Decoder;
use crate::format::EventFormat;
use crate::page::PageLayout;

/// Where tracefs usually is.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// What the names of our instances begin with.
const PREFIX: &str = "agewell-record-";
/// Names that are tried for an instance; chosen by us.
const ATTEMPTS: u32 = 16;
/// Bytes of the longest control file that is read; the kernel makes them in a page or two.
const CONTROL_BYTES: usize = 1 << 16;
/// Share of a processor's buffer that wakes the reader; chosen by us: three quarters are left for what
/// comes while it is waking.
const WAKE_PERCENT: u32 = 25;

/// The trace file system.
struct Tracefs {
    root: PathBuf,
    /// Keeps a mount of our own.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    fn open() -> Result<Self, RecordError> {
        let found = USUAL.iter().map(Path::new).find(|root| root.join("events/block").is_dir());
        if let Some(root) = found {
            return Ok(Self { root: root.to_owned(), _mount: None });
        }
        let mount = || -> rustix::io::Result<OwnedFd> {
            let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&context)?;
            fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        };
        let mount = mount().map_err(|why| {
            RecordError::Input(format!(
                "the kernel's trace buffers (tracefs) cannot be opened: {why}; run it as root, on a \
                 kernel with CONFIG_TRACEFS"
            ))
        })?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        if !root.join("events/block").is_dir() {
            return Err(RecordError::Input(
                "the kernel traces no block requests (there is no events/block in tracefs); use one \
                 with CONFIG_BLK_DEV_IO_TRACE"
                    .to_owned(),
            ));
        }
        Ok(Self { root, _mount: Some(mount) })
    }
}

/// An instance of the tracer, removed when it is dropped.
pub(crate) struct Instance {
    tracefs: Tracefs,
    path: PathBuf,
    _lock: File,
    pub(crate) layout: PageLayout,
    pub(crate) decoder: Decoder,
}

/// What the kernel says of one processor's buffer (`per_cpu/cpuN/stats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BufferCounts {
    /// Events overwritten before they were read.
    pub(crate) overrun: u64,
    /// Events that found no room at all.
    pub(crate) dropped: u64,
}

impl BufferCounts {
    fn parse(text: &str) -> Self {
        let count = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            overrun: count("overrun:"),
            dropped: count("commit overrun:") + count("dropped events:"),
        }
    }
}

/// The text of a control file. Some of them (`header_page`) give what fits the first read and nothing
/// after it, so that is one of a page and more.
fn read_control(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = vec![0; CONTROL_BYTES];
    let mut bytes = 0;
    loop {
        match file.read(&mut text[bytes..])? {
            0 => break,
            more => bytes += more,
        }
    }
    text.truncate(bytes);
    String::from_utf8(text).map_err(io::Error::other)
}

fn unlike(what: &str, why: &str) -> RecordError {
    RecordError::Run(format!(
        "the {what} of this kernel is not as agewell knows it: {why}; report the kernel's version"
    ))
}

impl Instance {
    /// An instance that traces the events of `kinds` on the devices with the numbers `devices` (as the
    /// kernel has them), with buffers of `buffer_bytes` for each processor. It does not trace yet.
    pub(crate) fn new(
        kinds: &[(&str, EventKind)],
        devices: &[u32],
        buffer_bytes: u64,
    ) -> Result<Self, RecordError> {
        let tracefs = Tracefs::open()?;
        let instances = tracefs.root.join("instances");
        remove_abandoned(&instances);
        let (path, lock) = claim(&instances)?;
        let read =
            |path: PathBuf| read_control(&path).map_err(|why| RecordError::io("read", &path)(why));
        let mut instance = Self {
            layout: PageLayout {
                commit: crate::format::Field { offset: 8, bytes: 8 },
                data: crate::format::Field { offset: 16, bytes: 4080 },
            },
            decoder: Decoder::none(),
            tracefs,
            path,
            _lock: lock,
        };
        instance.write("tracing_on", "0")?;
        let text = read(instance.tracefs.root.join("events/header_page"))?;
        instance.layout =
            PageLayout::parse(&text).map_err(|why| unlike("page of the trace buffer", &why))?;
        // One clock for all processors, which other programs can read too.
        instance.write("trace_clock", "mono")?;
        instance.write("options/overwrite", "1")?;
        instance.write("buffer_percent", &WAKE_PERCENT.to_string())?;
        instance.write("buffer_size_kb", &buffer_bytes.div_ceil(1024).to_string())?;
        let filter: Vec<String> = devices.iter().map(|device| format!("dev == {device}")).collect();
        let filter = filter.join(" || ");
        let mut formats = Vec::new();
        for &(name, kind) in kinds {
            let event = format!("events/block/{name}");
            let text = read(instance.path.join(&event).join("format"))?;
            let format = EventFormat::parse(&text).map_err(|why| unlike(name, &why))?;
            formats.push((kind, format));
            instance.write(&format!("{event}/filter"), &filter)?;
            instance.write(&format!("{event}/enable"), "1")?;
        }
        instance.decoder =
            Decoder::new(&formats).map_err(|why| unlike("record of a block event", &why))?;
        Ok(instance)
    }

    fn write(&self, control: &str, text: &str) -> Result<(), RecordError> {
        let path = self.path.join(control);
        fs::write(&path, text).map_err(|why| {
            RecordError::Run(format!("cannot write '{text}' to {}: {why}", path.display()))
        })
    }

    /// Starts or stops tracing.
    pub(crate) fn trace(&self, on: bool) -> Result<(), RecordError> {
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    /// The buffers of the processors, in the order of their numbers.
    pub(crate) fn buffers(&self) -> Result<Vec<Buffer>, RecordError> {
        let folder = self.path.join("per_cpu");
        let cannot = RecordError::io("list", &folder);
        let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut processors: Vec<u32> = entries
            .map_err(cannot)?
            .iter()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
            .collect();
        processors.sort_unstable();
        processors
            .into_iter()
            .map(|processor| {
                let path = folder.join(format!("cpu{processor}"));
                let raw = path.join("trace_pipe_raw");
                let mut options = File::options();
                let options = options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
                let file = options.open(&raw).map_err(RecordError::io("open", &raw))?;
                Ok(Buffer { path, file })
            })
            .collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // What cannot be switched off or removed now is removed by the next recording.
        let _ = self.write("tracing_on", "0");
        let _ = self.write("events/enable", "0");
        let _ = fs::remove_dir(&self.path);
    }
}

/// Makes an instance and locks it. Between the two another recording may take it for an abandoned one,
/// and then the next is tried.
fn claim(instances: &Path) -> Result<(PathBuf, File), RecordError> {
    let process = std::process::id();
    for attempt in 0..ATTEMPTS {
        let path = instances.join(format!("{PREFIX}{process}-{attempt}"));
        match fs::create_dir(&path) {
            Ok(()) => {}
            // Of another recording of this process, or of one in another container.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(why) => {
                return Err(RecordError::Input(format!(
                    "a tracing instance cannot be made ({}): {why}; run it as root",
                    path.display()
                )));
            }
        }
        if let Some(lock) = locked(&path).filter(|_| path.is_dir()) {
            return Ok((path, lock));
        }
    }
    Err(RecordError::Run(format!("{}: no tracing instance is to be had", instances.display())))
}

/// The instance at `path`, locked, if no one else has locked it.
fn locked(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Removes the instances of recordings that were killed.
fn remove_abandoned(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // The lock is held until it is gone.
        if let Some(_lock) = locked(&entry.path()) {
            let _ = fs::write(entry.path().join("tracing_on"), "0");
            let _ = fs::write(entry.path().join("events/enable"), "0");
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The buffer of one processor.
pub(crate) struct Buffer {
    path: PathBuf,
    file: File,
}

impl Buffer {
    /// Reads what there is of the next page into `page`; `false` if there is nothing.
    pub(crate) fn read(&mut self, page: &mut [u8]) -> Result<bool, RecordError> {
        loop {
            match self.file.read(page) {
                Ok(0) => return Ok(false),
                Ok(bytes) if bytes < page.len() => {
                    let path = self.path.display();
                    let all = page.len();
                    return Err(RecordError::Run(format!(
                        "{path}: the kernel gave {bytes} bytes of a page of {all}"
                    )));
                }
                Ok(_) => return Ok(true),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(RecordError::io("read", &self.path)(why)),
            }
        }
    }

    /// What the kernel has counted.
    pub(crate) fn counts(&self) -> Result<BufferCounts, RecordError> {
        let path = self.path.join("stats");
        let text = fs::read_to_string(&path).map_err(RecordError::io("read", &path))?;
        Ok(BufferCounts::parse(&text))
    }
}

/// Waits until one of the buffers is filled enough to be read, or for `wait_ns`.
pub(crate) fn wait<'a>(buffers: impl Iterator<Item = &'a Buffer>, wait_ns: u64) {
    let mut waiting: Vec<PollFd<'_>> =
        buffers.map(|buffer| PollFd::new(&buffer.file, PollFlags::IN)).collect();
    let limit = Timespec {
        tv_sec: (wait_ns / 1_000_000_000) as i64,
        tv_nsec: (wait_ns % 1_000_000_000) as i64,
    };
    // A signal ends the wait early, which does no harm.
    let _ = poll(&mut waiting, Some(&limit));
}

#[cfg(test)]
mod tests {
    use super::BufferCounts;

    #[test]
    fn counts_of_a_buffer() {
        let text = "entries: 12\noverrun: 34\ncommit overrun: 5\nbytes: 670\noldest event ts: 1.5\n\
            now ts: 2.5\ndropped events: 6\nread events: 7\n";
        assert_eq!(BufferCounts::parse(text), BufferCounts { overrun: 34, dropped: 11 });
    }
}
