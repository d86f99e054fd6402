//! A disk that remembers what every slot holds, and the map that a crash would go back to.
//!
//! It knows the log only by its transfers and commits. *Committed* means: the map that
//! names, for each block, the slot of the last version that was transferred before the last commit.
//! A deletion is in the map from the commit that it makes. A crash between two transfers, or in the
//! middle of one, finds the committed map; so no slot that it names may be written before the next
//! commit (Matthews 1999, §5.4.1: new place, then map, then the old place is free).

use agewell_log::{BlockDevice, LogShape, Purpose, Transfer};

/// A version of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The block.
    pub block: u32,
    /// Versions of all blocks are numbered in the order of their writing, from 1.
    pub number: u64,
}

/// Where the committed map finds a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable {
    /// The slot.
    pub slot: u32,
    /// The number of the version.
    pub number: u64,
}

/// The disk.
#[derive(Debug, Clone)]
pub struct CrashDisk {
    shape: LogShape,
    /// What lies in each slot.
    slots: Vec<Option<Version>>,
    /// Whether each slot has been read by a collection since it was last written.
    read: Vec<bool>,
    /// Versions that were read to be put together, in this call.
    regrouping: Vec<Version>,
    /// The committed map.
    durable: Vec<Option<Durable>>,
    /// The block of the committed map that each slot is named by.
    named_by: Vec<Option<u32>>,
    /// Transferred since the last commit.
    pending: Vec<(Version, u32)>,
    /// Number of the last version that the user wrote of each block; 0 if it does not exist.
    newest: Vec<u64>,
    versions: u64,
    deleting: Option<u32>,
    /// Whether collections may take blocks from the cache.
    cached: bool,
    /// Whether the whole disk is looked at after every transfer.
    thorough: bool,
    transfers_left: u64,
}

impl CrashDisk {
    /// An empty disk for `blocks` blocks. Where blocks may be `cached`, a collection need not read
    /// what it moves; a `thorough` disk looks for what a crash would lose after every transfer.
    pub fn new(shape: &LogShape, blocks: u32, cached: bool, thorough: bool) -> Self {
        let (slots, blocks) = (shape.slots() as usize, blocks as usize);
        Self {
            shape: shape.clone(),
            slots: vec![None; slots],
            read: vec![false; slots],
            regrouping: Vec::new(),
            durable: vec![None; blocks],
            named_by: vec![None; slots],
            pending: Vec::new(),
            newest: vec![0; blocks],
            versions: 0,
            deleting: None,
            cached,
            thorough,
            transfers_left: 0,
        }
    }

    /// The user is about to write `block`.
    pub fn writes(&mut self, block: u32) {
        self.versions += 1;
        self.newest[block as usize] = self.versions;
    }

    /// What the user wrote last was refused; `before` is the version before it.
    pub fn withdraw(&mut self, block: u32, before: Option<u64>) {
        self.newest[block as usize] = before.unwrap_or(0);
    }

    /// The user is about to delete `block`.
    pub fn deletes(&mut self, block: u32) {
        self.newest[block as usize] = 0;
        self.deleting = Some(block);
    }

    /// A call may make this many transfers; more is taken for a loop without end.
    pub fn allow(&mut self, transfers: u64) {
        self.transfers_left = transfers;
        self.regrouping.clear();
    }

    /// Number of the last version of `block`, if it exists.
    pub fn newest(&self, block: u32) -> Option<u64> {
        Some(self.newest[block as usize]).filter(|number| *number > 0)
    }

    /// Where the committed map finds `block`.
    pub fn durable(&self, block: u32) -> Option<Durable> {
        self.durable[block as usize]
    }

    /// Blocks that exist.
    pub fn live_blocks(&self) -> u64 {
        self.newest.iter().filter(|number| **number > 0).count() as u64
    }

    /// What a crash now would find: every block of the committed map, where the map says.
    ///
    /// # Panics
    /// If one of them is not there.
    pub fn check_crash(&self) {
        for (block, durable) in self.durable.iter().enumerate() {
            let Some(Durable { slot, number }) = *durable else { continue };
            let expected = Version { block: block as u32, number };
            assert_eq!(self.slots[slot as usize], Some(expected), "a crash loses block {block}");
        }
    }

    fn write(&mut self, purpose: Purpose, slot: u32, block: u32) {
        assert_eq!(
            self.named_by[slot as usize], None,
            "slot {slot} is overwritten while the committed map names it"
        );
        assert!(
            self.pending.iter().all(|pending| pending.1 != slot),
            "slot {slot} is written twice before a commit"
        );
        let number = match purpose {
            Purpose::NewData | Purpose::Thread => self.newest[block as usize],
            Purpose::Patch => self.just_written(block),
            _ => self.source(block),
        };
        assert!(number > 0, "block {block} is written though it does not exist");
        let version = Version { block, number };
        self.slots[slot as usize] = Some(version);
        self.read[slot as usize] = false;
        self.pending.push((version, slot));
    }

    /// The version of `block` that a collection moves: what it read where the map says.
    fn source(&self, block: u32) -> u64 {
        let durable = self.durable[block as usize].expect("what is collected is on disk");
        let found = self.slots[durable.slot as usize];
        assert_eq!(found, Some(Version { block, number: durable.number }));
        let was_read = self.read[durable.slot as usize]
            || self.regrouping.contains(&Version { block, number: durable.number });
        assert!(self.cached || was_read, "block {block} was not read");
        durable.number
    }

    /// The newest version of `block`, which must be on disk elsewhere before it is patched.
    fn just_written(&self, block: u32) -> u64 {
        let durable = self.durable[block as usize].expect("what is patched is on disk");
        assert_eq!(
            durable.number, self.newest[block as usize],
            "block {block} is patched too soon"
        );
        durable.number
    }
}

impl BlockDevice for CrashDisk {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        assert!(self.transfers_left > 0, "no end of transfers");
        self.transfers_left -= 1;
        let Transfer { purpose, slot, blocks, .. } = *transfer;
        if purpose == Purpose::Read {
            // Users may read across segments that lie side by side, and collect nothing by it.
            return;
        }
        let segment = self.shape.segment_of(slot);
        let end = self.shape.first_slot(segment) + self.shape.segment_blocks(segment);
        assert!(slot + blocks <= end, "a transfer leaves segment {segment}");
        if purpose.writes() {
            assert_eq!(contents.len(), blocks as usize, "one block a slot");
            for (slot, block) in (slot..).zip(contents) {
                self.write(purpose, slot, *block);
            }
        } else {
            assert!(contents.is_empty(), "a read has no contents");
            let slots = slot as usize..(slot + blocks) as usize;
            if purpose == Purpose::RegroupRead {
                self.regrouping.extend(self.slots[slots].iter().flatten());
            } else {
                self.read[slots].fill(true);
            }
        }
        if self.thorough {
            self.check_crash();
        }
    }

    fn commit(&mut self) {
        for (Version { block, number }, slot) in std::mem::take(&mut self.pending) {
            if let Some(old) = self.durable[block as usize] {
                assert!(old.number <= number, "block {block} goes back to an old version");
                self.named_by[old.slot as usize] = None;
            }
            self.durable[block as usize] = Some(Durable { slot, number });
            self.named_by[slot as usize] = Some(block);
        }
        if let Some(block) = self.deleting.take()
            && let Some(old) = self.durable[block as usize].take()
        {
            self.named_by[old.slot as usize] = None;
        }
    }
}
