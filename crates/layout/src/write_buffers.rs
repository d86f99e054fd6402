//! Write buffers of layouts that keep the map of blocks unchanged until a block is sent: blocks that
//! clients have written and that wait to go to the disk.
//!
//! Each client has a buffer. A block written again while it waits, by whichever client, replaces
//! itself. (The log has buffers of its own: there the map says where in a buffer a block waits.)
//!
//! Invariants: a block waits in at most one buffer, and its bit is set exactly while it does.
//! Deletions leave holes that are skipped when the buffer is taken.

/// No block: it was deleted while it waited.
const NONE: u32 = u32::MAX;

/// The buffers of all clients.
#[derive(Debug, Clone)]
pub struct WriteBuffers {
    capacity_blocks: u32,
    clients: Vec<Vec<u32>>,
    /// Where each block waits: client and entry, `NONE` if it does not.
    waiting: Vec<(u32, u32)>,
    waiting_blocks: u32,
}

impl WriteBuffers {
    /// Buffers of `capacity_blocks` each; of one block, every write is sent at once.
    #[must_use]
    pub fn new(clients: u32, capacity_blocks: u32) -> Self {
        Self {
            capacity_blocks: capacity_blocks.max(1),
            clients: vec![Vec::new(); clients.max(1) as usize],
            waiting: Vec::new(),
            waiting_blocks: 0,
        }
    }

    /// Lets blocks be numbered up to `blocks`.
    pub fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.waiting.len() {
            self.waiting.resize(blocks as usize, (NONE, NONE));
        }
    }

    /// Clients.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.clients.len() as u32
    }

    /// Whether `block` waits.
    #[must_use]
    pub fn is_waiting(&self, block: u32) -> bool {
        self.waiting.get(block as usize).is_some_and(|place| place.0 != NONE)
    }

    /// The client in whose buffer `block` waits.
    #[must_use]
    pub fn client_of(&self, block: u32) -> Option<u32> {
        let (client, _) = *self.waiting.get(block as usize)?;
        (client != NONE).then_some(client)
    }

    /// Blocks that wait for all clients.
    #[must_use]
    pub fn waiting_blocks(&self) -> u32 {
        self.waiting_blocks
    }

    /// `client` has written `block`; false if it waited already and replaced itself.
    pub fn push(&mut self, client: u32, block: u32) -> bool {
        if self.is_waiting(block) {
            return false;
        }
        let entries = &mut self.clients[client as usize];
        self.waiting[block as usize] = (client, entries.len() as u32);
        entries.push(block);
        self.waiting_blocks += 1;
        true
    }

    /// Whether the buffer of `client` has to be sent.
    #[must_use]
    pub fn is_full(&self, client: u32) -> bool {
        self.clients[client as usize].len() >= self.capacity_blocks as usize
    }

    /// `block` is not needed any more; returns whether it waited.
    pub fn forget(&mut self, block: u32) -> bool {
        if !self.is_waiting(block) {
            return false;
        }
        let (client, entry) = std::mem::replace(&mut self.waiting[block as usize], (NONE, NONE));
        self.clients[client as usize][entry as usize] = NONE;
        self.waiting_blocks -= 1;
        true
    }

    /// Moves what waits for `client` into `blocks`, in the order of writing; nothing waits then.
    pub fn take(&mut self, client: u32, blocks: &mut Vec<u32>) {
        blocks.clear();
        for block in self.clients[client as usize].drain(..).filter(|block| *block != NONE) {
            self.waiting[block as usize] = (NONE, NONE);
            blocks.push(block);
        }
        self.waiting_blocks -= blocks.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_waits_once_and_what_is_deleted_is_not_sent() {
        let mut buffers = WriteBuffers::new(2, 3);
        buffers.ensure_blocks(10);
        assert!(buffers.push(0, 4) && buffers.push(0, 5) && !buffers.push(1, 4));
        assert!(buffers.push(0, 6) && buffers.is_full(0) && !buffers.is_full(1));
        assert_eq!((buffers.client_of(6), buffers.client_of(7)), (Some(0), None));
        assert!(buffers.forget(5) && !buffers.forget(5) && buffers.is_waiting(6));
        assert_eq!(buffers.waiting_blocks(), 2);
        let mut sent = Vec::new();
        buffers.take(0, &mut sent);
        assert_eq!(buffers.waiting_blocks(), 0);
        assert_eq!(sent, [4, 6]);
        assert!(!buffers.is_waiting(4) && !buffers.is_full(0));
        assert!(buffers.push(1, 4));
    }
}
