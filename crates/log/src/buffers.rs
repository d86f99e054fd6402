//! The contents of write buffers: the blocks of each client, and their places on disk.
//!
//! Invariants: a block waits in at most one buffer; `old` is its place on disk, if it has one.

use super::shape::NONE;

/// A block that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The block; [`NONE`] if it was deleted while it waited, or has been written.
    pub block: u32,
    /// Where its last version lies on disk; [`NONE`] if nowhere.
    pub old: u32,
}

/// The buffers of all clients.
#[derive(Debug, Clone)]
pub(crate) struct Buffers {
    blocks: u32,
    pub(super) filled: Vec<u32>,
    /// Entry `client * blocks + place`.
    pub(crate) entries: Vec<Waiting>,
}

impl Buffers {
    pub(crate) fn new(clients: u32, blocks: u32) -> Self {
        let entries = if blocks > 1 { (clients * blocks) as usize } else { 0 };
        Self {
            blocks,
            filled: vec![0; clients as usize],
            entries: vec![Waiting { block: NONE, old: NONE }; entries],
        }
    }

    /// Adds a block to a client's buffer, which must have room; gives the entry's number.
    #[inline]
    pub(crate) fn push(&mut self, client: u32, waiting: Waiting) -> u32 {
        let place = self.filled[client as usize];
        debug_assert!(place < self.blocks, "the buffer of client {client} is full");
        self.filled[client as usize] = place + 1;
        let entry = client * self.blocks + place;
        self.entries[entry as usize] = waiting;
        entry
    }

    /// Whether a client's buffer has no room left.
    #[inline]
    pub(crate) fn is_full(&self, client: u32) -> bool {
        self.filled[client as usize] == self.blocks
    }

    /// The entries in use by a client.
    #[inline]
    pub(crate) fn range(&self, client: u32) -> std::ops::Range<u32> {
        let first = client * self.blocks;
        first..first + self.filled[client as usize]
    }

    /// The number of a client's next entry, and the entries from there on, but for the last: when
    /// that is taken the buffer is sent.
    pub(super) fn room_but_one(&mut self, client: u32) -> (u32, &mut [Waiting]) {
        let next = client * self.blocks + self.filled[client as usize];
        let last = (client + 1) * self.blocks - 1;
        (next, &mut self.entries[next as usize..last.max(next) as usize])
    }

    /// Everything of a client's has been sent.
    pub(crate) fn empty(&mut self, client: u32) {
        self.filled[client as usize] = 0;
    }

    /// Clients.
    pub(crate) fn clients(&self) -> u32 {
        self.filled.len() as u32
    }
}
