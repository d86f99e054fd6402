//! Single-block updates of one file by one client: what the synthetic update workloads share.
//!
//! A [`BlockChoice`] says which block is updated next; everything else (the fill, the number of
//! updates, the syncs, the times) is here and the same for all of them. The fill writes every
//! block once in address order; it is either what the survey reports as live before the stream
//! ([`Fill::Before`]) or the beginning of the stream ([`Fill::InStream`], for comparisons with
//! simulators that count it).
//!
//! Source: Matthews 1999, §5.2.1.1. Cost: O(1) a request and no memory beside the choice's own.

use agewell_core::{FileAction, FileRequest, SimDuration, SimTime};

use super::error::require;
use super::{FileWorkload, InitialFile, Survey, WorkloadError};

/// Where the sequential fill of the file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fill {
    /// Before the stream: the survey reports the file as live, the stream holds updates only.
    #[default]
    Before,
    /// In the stream: it begins with one write a block at time zero, and without syncs.
    InStream,
}

/// What all workloads of single-block updates take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateParameters {
    /// Live blocks, all of one file; 80,000 by default.
    pub blocks: u32,
    /// Updates per live block; 10 by default (Matthews 1999, §5.2.1.1).
    pub updates_per_block: u32,
    /// Updates from one sync to the next, 0 means never; 4 by default (ibid.).
    pub sync_every: u32,
    /// Time from one update to the next; zero by default, which is a saturated client: then no
    /// rule that waits for time to pass ever fires.
    pub interval: SimDuration,
    /// Where the fill stands; before the stream by default.
    pub fill: Fill,
}

impl Default for UpdateParameters {
    fn default() -> Self {
        Self {
            blocks: 80_000,
            updates_per_block: 10,
            sync_every: 4,
            interval: SimDuration::ZERO,
            fill: Fill::Before,
        }
    }
}

impl UpdateParameters {
    /// Updates in the stream.
    #[must_use]
    pub fn updates(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.updates_per_block)
    }

    /// Writes of the fill that are in the stream.
    fn fill_writes(&self) -> u32 {
        if self.fill == Fill::InStream { self.blocks } else { 0 }
    }

    /// Refuses parameters that make no workload.
    pub(super) fn validate(&self, workload: &'static str) -> Result<(), WorkloadError> {
        require(self.blocks > 0, workload, "blocks", self.blocks, "at least 1")?;
        let last_ns = u128::from(self.updates()) * u128::from(self.interval.0);
        let interval = format!("{} ns", self.interval.0);
        let need = "short enough that the last update comes within 2^63 ns (292 years)";
        require(last_ns < 1 << 63, workload, "interval", interval, need)
    }
}

/// Which block is updated next.
pub trait BlockChoice {
    /// A block of the file.
    fn next_block(&mut self) -> u32;
}

/// A workload of single-block updates whose blocks `C` chooses.
#[derive(Debug, Clone)]
pub struct UpdateWorkload<C> {
    parameters: UpdateParameters,
    choice: C,
    fill_next: u32,
    fill_end: u32,
    updates_left: u64,
    writes_to_sync: u32,
    sync_due: bool,
    time: SimTime,
}

impl<C: BlockChoice> UpdateWorkload<C> {
    /// The workload of validated `parameters` over `choice`.
    pub(super) fn over(parameters: UpdateParameters, choice: C) -> Self {
        Self {
            parameters,
            choice,
            fill_next: 0,
            fill_end: parameters.fill_writes(),
            updates_left: parameters.updates(),
            writes_to_sync: parameters.sync_every,
            sync_due: false,
            time: SimTime::ZERO,
        }
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &UpdateParameters {
        &self.parameters
    }

    /// What chooses the blocks.
    pub(super) fn choice(&self) -> &C {
        &self.choice
    }

    /// What is live before the whole stream, and its sizes; by construction, so O(1).
    #[must_use]
    pub fn survey(&self) -> Survey {
        let blocks = self.parameters.blocks;
        let before = self.parameters.fill == Fill::Before;
        let updates = self.parameters.updates();
        let syncs = updates.checked_div(u64::from(self.parameters.sync_every)).unwrap_or(0);
        Survey {
            initial: if before { vec![InitialFile { file: 0, blocks }] } else { Vec::new() },
            initial_blocks: if before { u64::from(blocks) } else { 0 },
            peak_live_blocks: u64::from(blocks),
            final_live_blocks: u64::from(blocks),
            files: 1,
            clients: 1,
            requests: u64::from(self.parameters.fill_writes()) + updates + syncs,
        }
    }

    fn request(&self, action: FileAction, block: u32, blocks: u32) -> FileRequest {
        FileRequest { time: self.time, client: 0, file: 0, block, blocks, action }
    }

    fn next_update(&mut self) -> FileRequest {
        self.updates_left -= 1;
        let block = self.choice.next_block();
        debug_assert!(block < self.parameters.blocks, "block {block} beyond the file");
        let request = self.request(FileAction::Write, block, 1);
        // Counting down costs less than a division; zero wraps to 2^32 - 1 and means never.
        self.writes_to_sync = self.writes_to_sync.wrapping_sub(1);
        if self.writes_to_sync == 0 && self.parameters.sync_every > 0 {
            self.writes_to_sync = self.parameters.sync_every;
            self.sync_due = true;
        } else {
            self.time += self.parameters.interval;
        }
        request
    }
}

impl<C: BlockChoice> FileWorkload for UpdateWorkload<C> {
    #[inline]
    fn next_request(&mut self) -> Option<FileRequest> {
        if self.sync_due {
            self.sync_due = false;
            let sync = self.request(FileAction::Sync, 0, 0);
            self.time += self.parameters.interval;
            return Some(sync);
        }
        if self.fill_next < self.fill_end {
            self.fill_next += 1;
            return Some(self.request(FileAction::Write, self.fill_next - 1, 1));
        }
        if self.updates_left == 0 { None } else { Some(self.next_update()) }
    }

    fn next_updates(&mut self, blocks: &mut Vec<u32>, requests_max: usize) -> Option<FileRequest> {
        let UpdateParameters { sync_every, interval, .. } = self.parameters;
        let is_at_updates = self.fill_next == self.fill_end && self.updates_left > 0;
        if !is_at_updates || sync_every > 0 || interval != SimDuration::ZERO {
            return None;
        }
        let count = self.updates_left.min(requests_max as u64);
        self.updates_left -= count;
        blocks.clear();
        let Self { choice, .. } = self;
        blocks.extend((0..count as usize).map(|_| choice.next_block()));
        Some(self.request(FileAction::Write, 0, 1))
    }
}
