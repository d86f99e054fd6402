//! Any sequence of operations on any layout, and what must hold after each.

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_layout::block_layout::{BlockLayout, FileBlock, Place};
use agewell_log::{Purpose, Unpriced};
use proptest::prelude::*;

use crate::kinds::KINDS;
use crate::shadow::{Shadow, Taken};

/// Blocks of the disks of the test.
pub(crate) const CAPACITY: u32 = 240;

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: u64 = 8192;

/// A layout and what is done to it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Which of all layouts.
    pub(crate) kind: usize,
    pub(crate) clients: u32,
    pub(crate) buffer_blocks: u32,
    /// Live blocks that are aimed at, of a hundred that fit.
    pub(crate) fill_pct: u32,
    /// Blocks that belong to no file, of a hundred that fit.
    pub(crate) preallocated_pct: u32,
    /// Whether a file lies there from the beginning.
    pub(crate) preloaded: bool,
    /// Deletions of a hundred operations.
    pub(crate) deletions: u32,
    /// Files.
    pub(crate) files: u32,
    pub(crate) steps: u32,
    pub(crate) seed: u64,
    /// Whether discards are enabled.
    pub(crate) tells: bool,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1_u32..4, prop_oneof![Just(1_u32), 2_u32..40], 20_u32..140);
    let before = (prop_oneof![Just(0_u32), 1_u32..45], any::<bool>());
    let load = (0_u32..40, 1_u32..8, 20_u32..400, any::<u64>());
    let kinds = (0..KINDS, any::<bool>());
    (kinds, sizes, before, load).prop_map(|((kind, tells), sizes, before, load)| Case {
        kind,
        clients: sizes.0,
        buffer_blocks: sizes.1,
        fill_pct: sizes.2,
        preallocated_pct: before.0,
        preloaded: before.1,
        deletions: load.0,
        files: load.1,
        steps: load.2,
        seed: load.3,
        tells,
    })
}

/// Blocks of files and their numbers, as a host keeps them.
struct Names {
    /// Number of each block of each file.
    blocks: Vec<Vec<Option<u32>>>,
    free: Vec<u32>,
    numbered: u32,
}

impl Names {
    fn find(&self, name: FileBlock) -> Option<u32> {
        *self.blocks[name.file as usize].get(name.block as usize)?
    }

    fn make(&mut self, name: FileBlock) -> u32 {
        let blocks = &mut self.blocks[name.file as usize];
        let index = name.block as usize;
        if index >= blocks.len() {
            blocks.resize(index + 1, None);
        }
        *blocks[index].get_or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.numbered += 1;
                self.numbered - 1
            })
        })
    }

    fn drop_block(&mut self, name: FileBlock) {
        let block = self.blocks[name.file as usize][name.block as usize].take();
        self.free.extend(block);
    }
}

/// The outcome of a run.
pub(crate) struct Ran {
    pub(crate) taken: Vec<Taken>,
    /// Writes that were refused.
    pub(crate) refused: u32,
    /// Writes that were done after one had been refused.
    pub(crate) done_after_refusal: u32,
    /// Transfers that were issued in a batch with others.
    pub(crate) together: u64,
    /// Places with dead data that the layout has said are dead.
    pub(crate) discarded: u64,
}

/// Guarantees of a layout beyond those of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Promises {
    /// A crash finds every committed version.
    pub(crate) is_atomic: bool,
    /// Places of a block lie side by side from [`Place::Disk`] on.
    pub(crate) is_whole: bool,
}

/// One layout under a case.
pub(crate) struct Run<'a, L> {
    case: &'a Case,
    layout: L,
    promises: Promises,
    shadow: Shadow,
    names: Names,
    stream: Stream,
    /// Places of a block.
    units: u32,
    ran: Ran,
}

impl<'a, L: BlockLayout> Run<'a, L> {
    pub(crate) fn new(case: &'a Case, layout: L, promises: Promises) -> Self {
        let blocks = 4 * CAPACITY;
        let mut run = Self {
            case,
            promises,
            shadow: Shadow::new(blocks, promises.is_atomic),
            names: Names {
                blocks: vec![Vec::new(); case.files as usize],
                free: Vec::new(),
                numbered: 0,
            },
            stream: RandomStreams::new(case.seed).stream("operations"),
            units: (BLOCK_BYTES / layout.unit_bytes(BLOCK_BYTES)) as u32,
            ran: Ran {
                taken: Vec::new(),
                refused: 0,
                done_after_refusal: 0,
                together: 0,
                discarded: 0,
            },
            layout,
        };
        run.layout.ensure_blocks(blocks);
        run
    }

    fn draw(&mut self, below: u32) -> u32 {
        uniform_below(&mut self.stream, u64::from(below.max(1))) as u32
    }

    /// Runs the case to its end.
    pub(crate) fn run(mut self) -> Ran {
        self.lay_out();
        if self.case.tells {
            self.layout.enable_discard();
        }
        // What a layout counts while it prefills is not checked.
        let laid_out = self.layout.counts();
        for step in 0..self.case.steps {
            self.shadow.allow(20_000);
            self.step();
            self.shadow.check_settled();
            assert_eq!(self.layout.live_blocks(), self.shadow.live_blocks(), "live blocks");
            if step % 16 == 0 {
                self.check();
            }
        }
        let synced = self.layout.sync_all(&mut self.shadow);
        self.check();
        if synced.is_ok() && self.ran.refused == 0 {
            let counts = self.layout.counts();
            let sent = counts.absorbed_blocks + counts.new_blocks;
            let sent_before = laid_out.absorbed_blocks + laid_out.new_blocks;
            assert_eq!(counts.user_blocks - laid_out.user_blocks, sent - sent_before, "blocks");
        }
        self.shadow.allow(20_000);
        let before = self.shadow.taken.len();
        self.layout.recover(&mut self.shadow);
        let mut recovery = self.shadow.taken[before..].iter();
        let is_recovery = |taken: &Taken| {
            matches!(taken.0.purpose, Purpose::RecoveryRead | Purpose::RecoveryWrite)
        };
        assert!(recovery.all(is_recovery), "only recovery happens after a crash");
        self.ran.discarded = self.shadow.discarded;
        self.ran.together = self.shadow.transfers_together();
        self.ran.taken = self.shadow.taken;
        self.ran
    }

    fn lay_out(&mut self) {
        let blocks = CAPACITY * self.case.preallocated_pct / 100;
        if blocks > 0 && self.promises.is_whole {
            let first = self.names.numbered;
            self.names.numbered += blocks;
            self.layout.fragment(first, blocks, 8).expect("less than half of the disk fits");
            for block in first..first + blocks {
                let Place::Disk(place) = self.layout.place_of(block) else {
                    panic!("block {block} is preallocated and not on the disk");
                };
                self.shadow.laid_out(block, place, self.units);
            }
        }
        if self.case.preloaded && self.promises.is_whole {
            self.layout.create(0, 0, &mut Unpriced).expect("there is room");
            for block in 0..CAPACITY / 8 {
                let name = FileBlock { file: 0, block };
                let number = self.names.make(name);
                if self.layout.preload(number, name).is_err() {
                    // A log does not collect for what was there before.
                    assert!(blocks > 0, "an eighth of an empty disk fits");
                    self.names.drop_block(name);
                    break;
                }
            }
            // Where the last of them are may change until the last is there.
            for block in 0..CAPACITY / 8 {
                let Some(number) = self.names.find(FileBlock { file: 0, block }) else { break };
                let Place::Disk(place) = self.layout.place_of(number) else {
                    panic!("block {number} is preloaded and not on the disk");
                };
                self.shadow.laid_out(number, place, self.units);
            }
        }
        self.layout.verify();
    }

    /// One operation.
    fn step(&mut self) {
        let kind = self.draw(100);
        let client = self.draw(self.case.clients);
        let file = self.draw(self.case.files);
        if kind < self.case.deletions {
            self.delete(file);
        } else if kind < 88 {
            self.write_some(file, client);
        } else if kind < 96 {
            self.read_some(file);
        } else if kind < 98 {
            // A log may be too full for it, like for a write.
            let _ = self.layout.sync(client, &mut self.shadow);
        } else if kind < 99 {
            let _ = self.layout.work_ahead(2, &mut self.shadow);
        } else {
            let _ = self.layout.sync_all(&mut self.shadow);
        }
    }

    /// Some blocks of a file, one behind the other.
    fn write_some(&mut self, file: u32, client: u32) {
        let wanted = CAPACITY * self.case.fill_pct / 100;
        let file_blocks = (wanted / self.case.files).max(1);
        let first = self.draw(file_blocks);
        let blocks = 1 + self.draw(12);
        for block in first..(first + blocks).min(file_blocks) {
            let name = FileBlock { file, block };
            let existed = self.names.find(name).is_some();
            let number = self.names.make(name);
            let before = self.shadow.writes(number);
            if self.layout.write(number, name, client, &mut self.shadow).is_ok() {
                self.ran.done_after_refusal += u32::from(self.ran.refused > 0);
                continue;
            }
            self.ran.refused += 1;
            match self.layout.place_of(number) {
                Place::Nowhere => {
                    assert!(!existed, "an update has lost block {number}");
                    self.shadow.withdraw(number, before);
                    self.names.drop_block(name);
                }
                // The version before is still there.
                Place::Disk(_) => self.shadow.withdraw(number, before),
                // The newest version waits until there is room.
                Place::Memory => {}
            }
            return;
        }
    }

    /// The end of a file, all of it, or a block within.
    fn delete(&mut self, file: u32) {
        let blocks = self.names.blocks[file as usize].len() as u32;
        let (first, end) = match self.draw(3) {
            0 => (0, blocks),
            1 => (self.draw(blocks), blocks),
            _ => {
                let block = self.draw(blocks);
                (block, (block + 1).min(blocks))
            }
        };
        for block in first..end {
            let name = FileBlock { file, block };
            if let Some(number) = self.names.find(name) {
                // From here on its last version may be forgotten.
                self.shadow.deleted(number);
                self.layout.delete(number, &mut self.shadow);
                self.names.drop_block(name);
            }
        }
        let is_gone = self.names.blocks[file as usize].iter().all(Option::is_none);
        if is_gone && self.draw(2) == 0 {
            self.layout.remove(file, &mut self.shadow);
        }
    }

    /// Blocks of a file are read: from the disk they are found in their last version.
    fn read_some(&mut self, file: u32) {
        let blocks = self.names.blocks[file as usize].len() as u32;
        let first = self.draw(blocks);
        let wanted: Vec<u32> = (first..(first + 20).min(blocks))
            .filter_map(|block| self.names.find(FileBlock { file, block }))
            .collect();
        let on_disk: Vec<u32> = wanted
            .iter()
            .copied()
            .filter(|block| matches!(self.layout.place_of(*block), Place::Disk(_)))
            .collect();
        let expected: Vec<_> = on_disk
            .iter()
            .flat_map(|block| std::iter::repeat_n(self.shadow.newest(*block), self.units as usize))
            .collect();
        self.shadow.found.clear();
        self.layout.read(&wanted, Purpose::Read, &mut self.shadow);
        assert_eq!(self.shadow.found, expected, "what is read is what was written last");
        for block in wanted {
            let is_kept = self.draw(2) == 0;
            self.layout.set_resident(block, true);
            self.layout.set_resident(block, is_kept);
        }
    }

    /// Everything that exists is in memory or on the disk in its last version; nothing else is.
    fn check(&self) {
        self.layout.verify();
        self.shadow.check_crash_if(self.promises.is_atomic);
        for block in 0..self.names.numbered {
            let version = self.shadow.newest(block);
            match self.layout.place_of(block) {
                Place::Nowhere => assert!(!self.shadow.exists(block), "block {block} is lost"),
                Place::Memory => assert!(self.shadow.exists(block), "block {block} is a ghost"),
                Place::Disk(place) => {
                    let units = if self.promises.is_whole { self.units } else { 1 };
                    for place in place..place + units {
                        assert_eq!(self.shadow.at(place), Some(version), "at {place}");
                    }
                }
            }
        }
    }
}
