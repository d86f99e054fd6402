//! What becomes durable together, as it is planned: where blocks go and where their data comes from.

use std::sync::Arc;

use crate::aligned::AlignedBytes;

/// Where the data of a planned run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Entries of the group's own buffer, appended behind a slot left for a record.
    Appended,
    /// Entries of the group's own buffer, in holes.
    Threaded,
    /// Slots on the disk, appended.
    Collected,
    /// Slots on the disk, appended to what is not new either.
    Separated,
    /// Slots on the disk, in holes.
    Plugged,
}

impl Origin {
    /// Whether the data comes from the disk.
    pub(crate) fn copies(self) -> bool {
        matches!(self, Self::Collected | Self::Separated | Self::Plugged)
    }

    /// Whether it goes behind what was appended last, new data among it.
    pub(crate) fn appends(self) -> bool {
        matches!(self, Self::Appended | Self::Collected)
    }
}

/// Blocks that go to slots that follow one another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedRun {
    pub(crate) slot: u32,
    /// The first of its moves, and their number.
    pub(crate) first: u32,
    pub(crate) blocks: u32,
    pub(crate) origin: Origin,
}

/// A block, and the buffer entry or slot that has its data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    pub(crate) block: u32,
    pub(crate) source: u32,
    /// The slot of its last version, if there is one.
    pub(crate) old: u32,
}

/// Up to which groups the medium must be ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Needs {
    /// These must be on the medium: data that died in them is written over.
    pub(crate) flushed: u64,
    /// A checkpoint that lasts, or the map, must have the inline records of these, which are written over.
    pub(crate) covered: u64,
}

impl Needs {
    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { flushed: self.flushed.max(other.flushed), covered: self.covered.max(other.covered) }
    }
}

/// A group. Its parts are found when it is carried out.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) sequence: u64,
    /// Slots that are read for it: first and number.
    pub(crate) reads: Vec<(u32, u32)>,
    pub(crate) runs: Vec<PlannedRun>,
    pub(crate) moves: Vec<Move>,
    /// Blocks that are no more, and their slots.
    pub(crate) freed: Vec<(u32, u32)>,
    /// Data of buffer entries.
    pub(crate) data: Arc<AlignedBytes>,
    /// What must have been done before a slot of this group is written.
    pub(crate) needs: Needs,
    /// A hole for its record, if that may be an inline one: all its data goes into holes.
    pub(crate) record: Option<u32>,
    /// Segments to be announced: those that are free afterwards, in the order in which they will be opened,
    /// and those whose holes will be filled; none where a collection goes on.
    pub(crate) announced: Vec<u32>,
}

impl Group {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.freed.is_empty()
    }

    /// Blocks that are no more.
    pub(crate) fn freed_blocks(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.freed.iter().map(|freed| freed.0)
    }

    pub(crate) fn moves_of(&self, run: &PlannedRun) -> &[Move] {
        &self.moves[run.first as usize..(run.first + run.blocks) as usize]
    }

    /// Of each read, leaves what lies from the first to the last block that is copied: others may copy the
    /// rest, and what is read for nothing is.
    pub(crate) fn read_only_what_is_moved(&mut self) {
        let mut spans: Vec<Option<(u32, u32)>> = vec![None; self.reads.len()];
        let mut last = 0;
        for source in self.moves.iter().map(|moved| moved.source) {
            let is_in = |read: &(u32, u32)| (read.0..read.0 + read.1).contains(&source);
            if !is_in(&self.reads[last]) {
                let found = self.reads.iter().position(is_in);
                last = found.expect("what is copied has been asked for");
            }
            let (low, high) = spans[last].unwrap_or((source, source));
            spans[last] = Some((low.min(source), high.max(source)));
        }
        let spans = spans.into_iter().flatten();
        self.reads = spans.map(|(low, high)| (low, high - low + 1)).collect();
    }
}
