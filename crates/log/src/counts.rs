//! Counters of a log: blocks that moved and why, segments collected and how.

/// Counters of a log, in blocks and segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Blocks written by users.
    pub user_blocks: u64,
    /// Of those, absorbed in a buffer by a later write or a deletion.
    pub absorbed_blocks: u64,
    /// New data blocks sent to the disk.
    pub new_blocks: u64,
    /// Blocks of segments read by collections.
    pub read_blocks: u64,
    /// Live blocks that collections copied to the end of a log.
    pub cleaned_blocks: u64,
    /// Live blocks that collections copied into holes.
    pub plugged_blocks: u64,
    /// New blocks threaded into holes.
    pub threaded_blocks: u64,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Segments whose blocks went into holes elsewhere.
    pub segments_plugged: u64,
    /// Times that new data was threaded into a segment.
    pub segments_threaded: u64,
    /// Segments that emptied by themselves.
    pub segments_emptied: u64,
    /// Segments collected without reading them, because they were in the cache.
    pub segments_from_cache: u64,
    /// Live blocks of all segments collected; over their blocks it is their mean utilization.
    pub victim_live_blocks: u64,
    /// Blocks of all segments collected.
    pub victim_blocks: u64,
    /// Blocks written together in the reorganisation log.
    pub regrouped_blocks: u64,
    /// Of those, read from the disk for it.
    pub regroup_read_blocks: u64,
    /// Blocks patched where they lie in the reorganisation log.
    pub patched_blocks: u64,
}

impl Counts {
    /// Blocks written to the disk over blocks sent to it as new data; `None` if there are none.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.new_blocks + self.moved_blocks();
        (self.new_blocks > 0).then(|| written as f64 / self.new_blocks as f64)
    }

    /// Blocks written that were not new: collected, regrouped, patched.
    #[must_use]
    pub fn moved_blocks(&self) -> u64 {
        self.cleaned_blocks + self.plugged_blocks + self.regrouped_blocks + self.patched_blocks
    }

    /// Counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            user_blocks: self.user_blocks - before.user_blocks,
            absorbed_blocks: self.absorbed_blocks - before.absorbed_blocks,
            new_blocks: self.new_blocks - before.new_blocks,
            read_blocks: self.read_blocks - before.read_blocks,
            cleaned_blocks: self.cleaned_blocks - before.cleaned_blocks,
            plugged_blocks: self.plugged_blocks - before.plugged_blocks,
            threaded_blocks: self.threaded_blocks - before.threaded_blocks,
            segments_cleaned: self.segments_cleaned - before.segments_cleaned,
            segments_plugged: self.segments_plugged - before.segments_plugged,
            segments_threaded: self.segments_threaded - before.segments_threaded,
            segments_emptied: self.segments_emptied - before.segments_emptied,
            segments_from_cache: self.segments_from_cache - before.segments_from_cache,
            victim_live_blocks: self.victim_live_blocks - before.victim_live_blocks,
            victim_blocks: self.victim_blocks - before.victim_blocks,
            regrouped_blocks: self.regrouped_blocks - before.regrouped_blocks,
            regroup_read_blocks: self.regroup_read_blocks - before.regroup_read_blocks,
            patched_blocks: self.patched_blocks - before.patched_blocks,
        }
    }
}
