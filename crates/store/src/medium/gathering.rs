//! The data of a group brought together: what is copied is read, and held against its sums.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::aligned::AlignedBytes;
use crate::device::Disk;
use crate::format::short_sum;
use crate::group::Group;
use crate::seeded::{SeededFault, is_seeded};

use super::{Medium, READS_MAX, read_blocks};

/// The data of a group.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) data: Arc<AlignedBytes>,
    /// Of copies, which block of the data is that of each move.
    pub(super) entries: Vec<u32>,
    /// Moves whose data cannot be read.
    pub(super) bad: BTreeSet<u32>,
}

impl<D: Disk> Medium<D> {
    /// The data of `group`: of what is copied, all that is read for it.
    pub(super) fn gather(&mut self, group: &Group) -> Gathered {
        if !group.runs.iter().any(|run| run.origin.copies()) {
            return Gathered { data: Arc::clone(&group.data), ..Gathered::default() };
        }
        assert!(group.data.is_empty(), "copies are groups of their own");
        let bytes = self.block_bytes();
        let blocks = group.reads.iter().map(|read| read.1).sum::<u32>() as usize;
        let mut data = self.spare.pop().unwrap_or_default();
        data.set_length(blocks * bytes);
        let (mut entries, mut bad) = (Vec::with_capacity(group.moves.len()), BTreeSet::new());
        let mut rest = &mut data[..];
        // What has been read: first slot, blocks, and where they are in the buffer.
        let (mut found, mut behind) = (Vec::with_capacity(group.reads.len()), 0);
        for (first, blocks) in group.reads.iter().copied() {
            let into =
                rest.split_off_mut(..blocks as usize * bytes).expect("there is room for all");
            // What cannot be read is zeros, and does not match its sum.
            let offset = self.geometry.slot_offset(first);
            read_blocks(&self.disk, offset, bytes, into, |_, _| ());
            found.push((first, blocks, behind));
            behind += blocks;
        }
        let mut last = 0;
        for (index, moved) in group.moves.iter().enumerate() {
            let is_in = |read: &(u32, u32, u32)| (read.0..read.0 + read.1).contains(&moved.source);
            if !is_in(&found[last]) {
                last = found.iter().position(is_in).expect("what is copied has been read");
            }
            let (first, _, behind) = found[last];
            let entry = behind + moved.source - first;
            entries.push(entry);
            let contents = &mut data[entry as usize * bytes..][..bytes];
            let sum = self.sums.get(moved.block);
            let uuid = &self.geometry.uuid;
            let is_good =
                |contents: &[u8]| short_sum(uuid, moved.block, moved.source, contents) == sum;
            let is_lost = self.sums.is_damaged(moved.block)
                || !is_good(contents)
                    && !(1..READS_MAX).any(|_| {
                        let offset = self.geometry.slot_offset(moved.source);
                        self.disk.read(offset, contents).is_ok() && is_good(contents)
                    });
            if is_lost && !is_seeded(SeededFault::DamageCopiedAsGood) {
                bad.insert(index as u32);
            }
        }
        Gathered { data: Arc::new(data), entries, bad }
    }
}
