//! How much of each kind of work is to be done, and which old groups it falls on.
//!
//! Budgets follow from the published counts (see [`Plan::new`]). Invariants: no budget is
//! overdrawn; what is left of the reads is at least the blocks of the old groups nobody has read;
//! an old group is removed, or overwritten, or neither. Cost: 14 bytes an old group; O(1) a job.

use agewell_core::Stream;

use super::NEIGHBOURS;
use super::catalogue::Group;
use super::parameters::AuspexParameters;
use crate::workload::zipf::permutation;

/// Deletes that fall on old files, in per cent; chosen by us.
const OLD_DELETES_PERCENT: u64 = 5;

/// What a job does; see the module above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobKind {
    /// In blocks.
    Create,
    /// In blocks.
    Overwrite,
    /// In files; each takes one block of the writes, and what it needs above that is a rewrite's.
    Temporary,
    /// In files.
    Remove,
    /// In blocks.
    Rewrite,
    /// In blocks.
    Read,
}

const KINDS: [JobKind; 6] = [
    JobKind::Create,
    JobKind::Overwrite,
    JobKind::Temporary,
    JobKind::Remove,
    JobKind::Rewrite,
    JobKind::Read,
];

#[derive(Debug, Clone, Copy, Default)]
struct Budget {
    total: u64,
    left: u64,
}

impl Budget {
    fn new(total: u64) -> Self {
        Self { total, left: total }
    }

    fn done(self) -> u64 {
        self.total - self.left
    }

    /// Whether a smaller part of this is done than of `other`.
    fn is_behind(self, other: Self) -> bool {
        // Totals are below 2^32, so the products fit.
        self.done() * other.total < other.done() * self.total
    }
}

/// A queue of groups, fixed from the beginning.
#[derive(Debug, Clone)]
struct Queue {
    groups: Vec<u32>,
    next: usize,
}

impl Queue {
    fn next(&mut self) -> Option<u32> {
        let group = self.groups.get(self.next).copied();
        self.next += 1;
        group
    }
}

/// The work of the week.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    budgets: [Budget; KINDS.len()],
    first_reads: Budget,
    unread: Queue,
    overwritten: Queue,
    removed: Queue,
    old_blocks: Vec<u32>,
    was_read: Vec<bool>,
    is_removed: Vec<bool>,
}

impl Plan {
    /// An old group that is never removed, so that there is always something to read.
    pub(super) const GROUP_KEPT: u32 = 0;

    /// Plans for validated parameters and the old groups, whose blocks are the initial ones.
    ///
    /// With r blocks removed of the old data, creations are the growth + r, and overwrites are
    /// what is left of the blocks written and live at the end; temporary files are the deletes that
    /// do not fall on old files; rewrites are all other writes.
    pub(super) fn new(
        parameters: &AuspexParameters,
        groups: &[Group],
        stream: &mut Stream,
    ) -> Self {
        let growth = parameters.growth_blocks();
        let files_max = parameters.deletes * OLD_DELETES_PERCENT / 100;
        let blocks_max = parameters.written_live_blocks - growth;
        let (mut removed, mut overwritten) = (Vec::new(), Vec::new());
        let (mut files, mut blocks) = (0, 0);
        for number in neighbourhoods(groups.len() as u32, stream) {
            let group = groups[number as usize];
            let (more_files, more_blocks) = (u64::from(group.files), u64::from(group.blocks));
            let fits = files + more_files <= files_max && blocks + more_blocks <= blocks_max;
            if fits && number != Self::GROUP_KEPT {
                (files, blocks) = (files + more_files, blocks + more_blocks);
                removed.push(number);
            } else {
                overwritten.push(number);
            }
        }
        let temporary = parameters.deletes - files;
        let rewrites = parameters.writes - parameters.written_live_blocks - temporary;
        let totals =
            [growth + blocks, blocks_max - blocks, temporary, files, rewrites, parameters.reads];
        Self {
            budgets: totals.map(Budget::new),
            first_reads: Budget::new(parameters.initial_blocks),
            unread: Queue { groups: permutation(groups.len() as u32, stream), next: 0 },
            overwritten: Queue { groups: overwritten, next: 0 },
            removed: Queue { groups: removed, next: 0 },
            old_blocks: groups.iter().map(|group| group.blocks).collect(),
            was_read: vec![false; groups.len()],
            is_removed: vec![false; groups.len()],
        }
    }

    /// The kind of which the smallest part is done; none when all is. Rewrites need something
    /// `written`.
    pub(super) fn furthest_behind(&self, written: bool) -> Option<JobKind> {
        let mut last: Option<JobKind> = None;
        for kind in KINDS {
            let budget = self.budgets[kind as usize];
            if budget.left == 0 || (kind == JobKind::Rewrite && !written) {
                continue;
            }
            if last.is_none_or(|last| budget.is_behind(self.budgets[last as usize])) {
                last = Some(kind);
            }
        }
        last
    }

    /// What is left to do of a kind.
    pub(super) fn left(&self, kind: JobKind) -> u64 {
        self.budgets[kind as usize].left
    }

    /// Counts `amount` of a kind as done.
    pub(super) fn take(&mut self, kind: JobKind, amount: u64) {
        let left = &mut self.budgets[kind as usize].left;
        assert!(*left >= amount, "{kind:?} overdrawn: {amount} of {left}");
        *left -= amount;
    }

    /// Blocks of reads that need not be kept for groups nobody has read.
    pub(super) fn repeated_reads_left(&self) -> u64 {
        self.left(JobKind::Read) - self.first_reads.left
    }

    /// Whether a smaller part of the first reads is done than of all reads.
    pub(super) fn first_reads_behind(&self) -> bool {
        self.first_reads.left > 0
            && self.first_reads.is_behind(self.budgets[JobKind::Read as usize])
    }

    /// Counts the first read of a group; false if it was read before, or is new.
    pub(super) fn read_first(&mut self, group: u32) -> bool {
        let Some(was_read) = self.was_read.get_mut(group as usize) else { return false };
        if std::mem::replace(was_read, true) {
            return false;
        }
        self.first_reads.left -= u64::from(self.old_blocks[group as usize]);
        true
    }

    /// An old group nobody has read, in random order.
    pub(super) fn next_unread(&mut self) -> Option<u32> {
        loop {
            let group = self.unread.next()?;
            if !self.was_read[group as usize] {
                return Some(group);
            }
        }
    }

    /// The old group to overwrite next.
    pub(super) fn next_overwritten(&mut self) -> u32 {
        self.overwritten.next().expect("the groups hold the blocks to be overwritten")
    }

    /// The old group to remove next; it counts as removed from here on.
    pub(super) fn next_removed(&mut self) -> u32 {
        let group = self.removed.next().expect("the groups hold the files to be removed");
        self.is_removed[group as usize] = true;
        group
    }

    /// Whether a group was removed; new ones never are.
    pub(super) fn is_removed(&self, group: u32) -> bool {
        self.is_removed.get(group as usize).copied().unwrap_or(false)
    }
}

/// All groups, those of a neighbourhood one after another, the neighbourhoods in random order.
fn neighbourhoods(groups: u32, stream: &mut Stream) -> impl Iterator<Item = u32> {
    let order = permutation(groups.div_ceil(NEIGHBOURS), stream);
    order.into_iter().flat_map(move |place| {
        let first = place * NEIGHBOURS;
        first..groups.min(first + NEIGHBOURS)
    })
}
