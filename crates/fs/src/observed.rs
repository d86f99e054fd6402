//! What is read of the store, in which order and how long it takes, for whoever puts together what is read
//! together.
//!
//! Files are observed a piece at a time, nodes one by one. Nothing is noted unless somebody asked for it,
//! and no more than fits until it is taken.

use agewell_store::device::Disk;

use crate::blocks::NumberSet;
use crate::core::Core;
use crate::format::ExtentState;
use crate::{FileSystem, extents};

/// Blocks of a piece of a file; chosen by us: 64 KiB of blocks of 4 KiB, as much as a disk streams in the
/// twentieth part of the time that it takes to get there.
pub const PIECE_BLOCKS: u64 = 16;

/// Reads that are noted until they are taken; chosen by us: half a megabyte of them.
const READS_MAX: usize = 1 << 14;

/// Likewise, pieces that were written.
const WRITTEN_MAX: usize = 1 << 14;

/// What is read and moved as one: a piece of a file, or a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit(u64);

impl Unit {
    const NODE: u64 = 1 << 63;
    const PIECE_BITS: u32 = 24;

    /// The node in the block `number`.
    #[must_use]
    pub fn node(number: u32) -> Self {
        Self(Self::NODE | u64::from(number))
    }

    /// The piece of the file `inode` that has its block `block`; none of a file beyond all bounds.
    #[must_use]
    pub fn piece(inode: u64, block: u64) -> Option<Self> {
        let piece = block / PIECE_BLOCKS;
        let is_usual = piece >> Self::PIECE_BITS == 0 && inode >> (63 - Self::PIECE_BITS) == 0;
        is_usual.then_some(Self(inode << Self::PIECE_BITS | piece))
    }

    /// As a number, by which it is known.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// That of a number.
    #[must_use]
    pub fn of_number(number: u64) -> Self {
        Self(number)
    }

    /// The block of the node, if it is one.
    pub(crate) fn as_node(self) -> Option<u32> {
        (self.0 & Self::NODE != 0).then_some(self.0 as u32)
    }

    /// The file and the first block of the piece, if it is one.
    pub(crate) fn as_piece(self) -> Option<(u64, u64)> {
        let piece = self.0 & ((1 << Self::PIECE_BITS) - 1);
        (self.0 & Self::NODE == 0).then_some((self.0 >> Self::PIECE_BITS, piece * PIECE_BLOCKS))
    }
}

/// Blocks of a unit that follow one another by number were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitRead {
    /// Of what.
    pub unit: Unit,
    /// Where in it the first is.
    pub at: u32,
    /// The number of the first.
    pub first: u32,
    /// How many.
    pub blocks: u32,
    /// What the whole call took, ns; none if it is the same call as that of the read before.
    pub took_ns: Option<u64>,
    /// Whether they had been read ahead.
    pub is_foreseen: bool,
    /// Blocks that were read ahead with it, which lie behind.
    pub ahead_blocks: u32,
}

/// What a call has read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallRead {
    /// What it took, ns.
    pub(crate) took_ns: Option<u64>,
    /// Whether it had been read ahead.
    pub(crate) is_foreseen: bool,
    /// Blocks that were read ahead with it.
    pub(crate) ahead_blocks: u32,
}

/// What was observed since it was last asked for.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Reads, in their order.
    pub reads: Vec<UnitRead>,
    /// What was written, in no order.
    pub written: Vec<Unit>,
    /// Reads that there was no room for.
    pub lost_reads: u64,
}

/// What notes it.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    pub(crate) is_on: bool,
    reads: Vec<UnitRead>,
    written: NumberSet<u64>,
    lost_reads: u64,
}

impl Observer {
    /// A call read `blocks` blocks from `first` on of a node or of the file `inode` from its block `at` on.
    pub(crate) fn read_piece(
        &mut self,
        inode: u64,
        at: u64,
        (first, blocks): (u32, u32),
        call: CallRead,
    ) {
        if !self.is_on {
            return;
        }
        let CallRead { mut took_ns, is_foreseen, mut ahead_blocks } = call;
        let end = at + u64::from(blocks);
        let mut from = at;
        while from < end {
            let to = end.min((from / PIECE_BLOCKS + 1) * PIECE_BLOCKS);
            let Some(unit) = Unit::piece(inode, from) else { return };
            let (first, blocks) = (first + (from - at) as u32, (to - from) as u32);
            let at = (from % PIECE_BLOCKS) as u32;
            let (took_ns, ahead_blocks) = (took_ns.take(), std::mem::take(&mut ahead_blocks));
            self.note(UnitRead { unit, at, first, blocks, took_ns, is_foreseen, ahead_blocks });
            from = to;
        }
    }

    /// A node was read.
    pub(crate) fn read_node(&mut self, number: u32, call: CallRead) {
        if self.is_on {
            let CallRead { took_ns, is_foreseen, ahead_blocks } = call;
            let (unit, at, first, blocks) = (Unit::node(number), 0, number, 1);
            self.note(UnitRead { unit, at, first, blocks, took_ns, is_foreseen, ahead_blocks });
        }
    }

    fn note(&mut self, read: UnitRead) {
        if self.reads.len() < READS_MAX {
            self.reads.push(read);
        } else {
            self.lost_reads += 1;
        }
    }

    /// The blocks of the file `inode` from `from` to `to` were written.
    pub(crate) fn wrote(&mut self, inode: u64, (from, to): (u64, u64)) {
        if !self.is_on || from >= to {
            return;
        }
        let last = to - 1;
        for piece in from / PIECE_BLOCKS..=last / PIECE_BLOCKS {
            if self.written.len() >= WRITTEN_MAX {
                return;
            }
            let unit = Unit::piece(inode, piece * PIECE_BLOCKS);
            self.written.extend(unit.map(Unit::number));
        }
    }

    pub(crate) fn take(&mut self) -> Observed {
        let reads = std::mem::take(&mut self.reads);
        let written = std::mem::take(&mut self.written);
        let lost_reads = std::mem::take(&mut self.lost_reads);
        Observed { reads, written: written.into_iter().map(Unit).collect(), lost_reads }
    }
}

impl<D: Disk> FileSystem<D> {
    /// Notes from now on what is read, or does so no longer.
    pub fn observe(&self, is_on: bool) {
        self.core().blocks.observer.is_on = is_on;
    }

    /// What was observed since the last time.
    #[must_use]
    pub fn observed(&self) -> Observed {
        self.core().blocks.observer.take()
    }

    /// `blocks` were put together in the store, in this order: when one of them is read, those behind it
    /// are read with it.
    pub fn lie_together(&self, blocks: Vec<u32>) {
        self.core().blocks.groups.add(blocks);
    }

    /// Blocks of each of `units` that lie on the device, in the order of the file, and where, bytes; none
    /// for units that there are not any more.
    #[must_use]
    pub fn unit_places(&self, units: &[Unit]) -> Vec<Vec<(u32, u64)>> {
        let mut core = self.core();
        units.iter().map(|unit| places(&mut core, *unit)).collect()
    }
}

/// The blocks of `unit` that lie on the device, and where, bytes.
fn places<D: Disk>(core: &mut Core<D>, unit: Unit) -> Vec<(u32, u64)> {
    let runs: Vec<(u32, u32)> = match (unit.as_node(), unit.as_piece()) {
        (Some(number), _) if core.blocks.is_used(number) => vec![(number, 1)],
        (_, Some((inode, at))) => {
            // A file that is gone has none, and neither has what is damaged.
            let found = extents::between(core, inode, (at, at + PIECE_BLOCKS), usize::MAX);
            let there = found.unwrap_or_default().into_iter();
            let there = there.filter(|extent| extent.state != ExtentState::Promised);
            there.map(|extent| (extent.number, extent.count)).collect()
        }
        _ => Vec::new(),
    };
    let mut places = Vec::new();
    for (first, count) in runs {
        let found = (first..).zip(core.blocks.places(first, count));
        places.extend(found.filter_map(|(number, place)| Some((number, place?))));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_says_what_it_is() {
        assert_eq!(Unit::node(7).as_node(), Some(7));
        assert_eq!(Unit::node(7).as_piece(), None);
        let piece = Unit::piece(12, 35).unwrap();
        assert_eq!((piece.as_node(), piece.as_piece()), (None, Some((12, 32))));
        assert_eq!(Unit::of_number(piece.number()), piece);
        assert_eq!(Unit::piece(12, PIECE_BLOCKS << 24), None);
        assert_eq!(Unit::piece(1 << 39, 0), None);
    }

    #[test]
    fn a_read_is_noted_piece_by_piece_and_its_time_once() {
        let mut observer = Observer::default();
        let call = CallRead { took_ns: Some(9), ..CallRead::default() };
        observer.read_piece(3, 0, (100, 5), call);
        assert!(observer.take().reads.is_empty(), "nobody asked");
        observer.is_on = true;
        observer.read_piece(3, 10, (100, 30), call);
        let reads = observer.take().reads;
        let seen: Vec<_> = reads
            .iter()
            .map(|read| {
                (read.unit.as_piece().unwrap().1 + u64::from(read.at), read.first, read.blocks)
            })
            .collect();
        assert_eq!(seen, [(10, 100, 6), (16, 106, 16), (32, 122, 8)]);
        let times: Vec<_> = reads.iter().map(|read| read.took_ns).collect();
        assert_eq!(times, [Some(9), None, None]);
        for number in 0..READS_MAX as u32 + 5 {
            observer.read_node(number, CallRead::default());
        }
        observer.wrote(3, (15, 17));
        let observed = observer.take();
        assert_eq!((observed.reads.len(), observed.lost_reads), (READS_MAX, 5));
        assert_eq!(observed.written.len(), 2);
    }
}
