//! What is measured: the seam between the probe and a disk.

use std::path::PathBuf;

use agewell_core::{SECTOR_BYTES, SimDuration, SimTime};

/// Sectors that a request reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First sector, of 512 bytes.
    pub first: u64,
    /// Length in sectors of 512 bytes.
    pub sectors: u64,
}

impl Extent {
    /// Where it begins, in bytes.
    #[must_use]
    pub fn bytes_before(self) -> u64 {
        self.first.saturating_mul(SECTOR_BYTES)
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.sectors * SECTOR_BYTES
    }
}

/// When a request was sent, and when its data were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Just before it was sent.
    pub begin: SimTime,
    /// Just after it was answered.
    pub end: SimTime,
}

impl Answer {
    /// Time that it took, ns.
    #[must_use]
    pub fn taken_ns(self) -> f64 {
        self.end.saturating_since(self.begin).0 as f64
    }
}

/// What is known of a disk without measuring it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// What people call it: a path, or the name of a model.
    pub name: String,
    /// Addressable sectors of 512 bytes.
    pub sectors: u64,
    /// Bytes that the disk reads or writes at least: 512 or 4096.
    pub sector_bytes: u32,
    /// Whether writes are reported before they are on the medium; `None` if nothing says so.
    pub write_cache: Option<bool>,
    /// Whether the clock is that of a simulation.
    pub is_modelled: bool,
}

/// Why a probe ended without a device file.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It cannot be opened.
    #[error("{}: cannot be opened for {purpose}: {source}", path.display())]
    Open {
        /// The file or block device.
        path: PathBuf,
        /// Reading or writing.
        purpose: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is not something that can be measured.
    #[error("{}: {why}", path.display())]
    Unsuitable {
        /// The file or block device.
        path: PathBuf,
        /// What is wrong with it and what would be right.
        why: String,
    },
    /// A request failed.
    #[error("{name}: byte {byte}: cannot be {done}: {source}")]
    Request {
        /// The disk.
        name: String,
        /// Offset in bytes.
        byte: u64,
        /// Read or written.
        done: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Others use the disk.
    #[error(
        "{name}: {others} of {all} requests while it was measured were not the probe's \
         ({share_pct:.1} %, at most {limit_pct} % is allowed); stop what uses the disk, or probe with --despite-others"
    )]
    Busy {
        /// The disk.
        name: String,
        /// Requests of others.
        others: u64,
        /// All requests.
        all: u64,
        /// The share of others, %.
        share_pct: f64,
        /// The most that is allowed, %.
        limit_pct: f64,
    },
    /// There was not enough to go by.
    #[error("{name}: {why}")]
    Unmeasurable {
        /// The disk.
        name: String,
        /// What happened.
        why: String,
    },
    /// The caller wants no more.
    #[error("interrupted")]
    Interrupted,
}

/// A disk that answers reads and has a clock.
pub trait ProbedDisk {
    /// What is known of it beforehand.
    fn facts(&self) -> &DiskFacts;

    /// Reads `extent` and waits for the answer.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&mut self, extent: Extent) -> Result<Answer, ProbeError>;

    /// Reads `extents`, at most `depth` of them outstanding at a time, and pushes an answer for each.
    ///
    /// # Errors
    /// If one of them cannot be read.
    fn read_together(
        &mut self,
        extents: &[Extent],
        depth: usize,
        answers: &mut Vec<Answer>,
    ) -> Result<(), ProbeError>;

    /// Asks for nothing for `time`.
    fn idle(&mut self, time: SimDuration);

    /// What the clock says.
    fn now(&self) -> SimTime;

    /// The area that may be written, if there is one.
    fn writable(&mut self) -> Option<&mut dyn WritableArea> {
        None
    }

    /// Requests that the disk has answered and the probe has not asked for, and all requests; `None` if
    /// nobody counts them.
    fn requests_of_others(&self) -> Option<(u64, u64)> {
        None
    }
}

/// The part of a disk that a probe may write.
pub trait WritableArea {
    /// Its sectors, in addresses of its own from 0 on.
    fn sectors(&self) -> u64;

    /// Writes `extent` and waits until it is reported.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&mut self, extent: Extent) -> Result<Answer, ProbeError>;

    /// Asks for nothing for `time`.
    fn idle(&mut self, time: SimDuration);
}
