//! The layout score of the files below the directory, kept while they change.
//!
//! A file that nobody writes does not move, so its counts are asked for once after each change and
//! kept. While a replay runs only every sixteenth file is asked; at the end all are. Data that has
//! no place yet (delayed allocation) is asked for again the next time.

use std::sync::atomic::Ordering;

use agewell_core::mix;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::DirectoryTarget;
use super::lane::state;
use super::places::file_name;
use crate::onto::LayoutCounts;
use crate::source::live::ExtentMap;
use crate::{Action, AgeError, Extent, ExtentFlags, Operation};

/// One file in this number is in the sample: chosen by us, so that asking costs a few per cent of what
/// making and writing the files costs.
const SAMPLE_ONE_IN: u64 = 16;

/// What is known of the places of files.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// Changed since they were last asked for; one may stand here several times.
    changed: Vec<u32>,
    /// By number of the file; nothing counted where it was never asked for.
    known: Vec<LayoutCounts>,
    sum: LayoutCounts,
}

fn in_sample(file: u32) -> bool {
    mix(u64::from(file)).is_multiple_of(SAMPLE_ONE_IN)
}

impl Sample {
    /// Takes note that `operation` changes the places of its file.
    pub(super) fn note(&mut self, operation: &Operation) {
        let changes = matches!(operation.action, Action::Write | Action::Truncate | Action::Delete);
        if changes && in_sample(operation.file) && self.changed.last() != Some(&operation.file) {
            self.changed.push(operation.file);
        }
    }

    fn set(&mut self, file: u32, counts: LayoutCounts) {
        let index = file as usize;
        if index >= self.known.len() {
            self.known.resize(index + 1, LayoutCounts::default());
        }
        let before = std::mem::replace(&mut self.known[index], counts);
        self.sum.optimal = self.sum.optimal - before.optimal + counts.optimal;
        self.sum.counted = self.sum.counted - before.counted + counts.counted;
    }
}

impl DirectoryTarget {
    /// The counts of the sample, or of all files.
    pub(super) fn measure(&mut self, sample_only: bool) -> Result<LayoutCounts, AgeError> {
        let block_bytes = self.block_bytes()?;
        let mut asked = Vec::new();
        if sample_only {
            std::mem::swap(&mut asked, &mut self.sample.changed);
            asked.sort_unstable();
            asked.dedup();
        } else {
            asked.extend(0..self.states.len() as u32);
        }
        let mut total = LayoutCounts::default();
        let mut map = ExtentMap::new(false);
        let mut extents = Vec::new();
        for file in asked {
            extents.clear();
            let told = self.ask(file, &mut map, &mut extents)?;
            let counts = LayoutCounts::of_extents(&extents, block_bytes);
            total.optimal += counts.optimal;
            total.counted += counts.counted;
            if sample_only {
                self.sample.set(file, counts);
                if !told {
                    self.sample.changed.push(file);
                }
            }
        }
        Ok(if sample_only { self.sample.sum } else { total })
    }

    /// The extents of `file`, none if it is not there; false if some have no place yet.
    fn ask(
        &mut self,
        file: u32,
        map: &mut ExtentMap,
        extents: &mut Vec<Extent>,
    ) -> Result<bool, AgeError> {
        let there = self
            .states
            .get(file as usize)
            .is_some_and(|seen| matches!(seen.load(Ordering::Relaxed), state::LIVE | state::SHORT));
        if !there {
            return Ok(true);
        }
        self.places.begin_segment();
        let directory = self.files[file as usize].directory;
        self.places.pin(directory)?;
        let mut name = String::new();
        file_name(file, &mut name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match self.places.descriptor(directory) {
            Some(at) => rustix::fs::openat(at, name.as_str(), flags, Mode::empty()),
            None => Err(Errno::NOENT),
        };
        let fail = |doing, why: Errno| {
            AgeError::io(doing, &self.places.file_path(directory, file))(why.into())
        };
        let descriptor = match opened {
            Ok(descriptor) => descriptor,
            Err(why) => return Err(fail("open", why)),
        };
        match map.read(&descriptor, extents) {
            Ok(_) => {}
            Err(why) if crate::source::live::is_unsupported(why) => extents.clear(),
            Err(why) => return Err(fail("map", why)),
        }
        let told = !extents.iter().any(|extent| extent.flags.any(ExtentFlags::UNKNOWN));
        extents.retain(|extent| !extent.flags.any(ExtentFlags::UNKNOWN.with(ExtentFlags::INLINE)));
        Ok(told)
    }
}
