//! Clients that work side by side: what the workloads of many files share.
//!
//! A [`Behaviour`] says what each client does next, one [`Step`] at a time; everything else (which
//! client is next, the requests of a step and their times) is here. A step that transfers blocks
//! becomes requests of at most `request_blocks`, one every `pace` of the client's own time.
//!
//! Invariants: requests come in the order of their times, those of one time by the number of the
//! client; a behaviour is asked in that order, too, so that all clients may share its state. Cost:
//! a request costs O(1) while one client is ahead of the others, and a look at every client where
//! they take turns; memory is that of the behaviour.

use agewell_core::{FileAction, FileRequest, SimTime};

use super::survey::survey_knowing;
use super::{FileWorkload, InitialFile, Survey};

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reads or writes consecutive blocks of a file.
    Transfer(Transfer),
    /// Deletes a file, at once.
    Delete(u32),
    /// Truncates a file to no block, at once.
    Empty(u32),
    /// Has what it wrote made durable, at once.
    Sync,
    /// Does nothing for this time, nanoseconds.
    Wait(u64),
    /// Is done for good.
    Done,
}

/// Consecutive blocks of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Read or write.
    pub action: FileAction,
    /// The file.
    pub file: u32,
    /// First block.
    pub block: u32,
    /// Blocks from there; no step is made of none.
    pub blocks: u32,
    /// Nanoseconds from one request to the next, and after the last.
    pub pace_ns: u64,
}

/// What clients do.
pub trait Behaviour: Clone {
    /// What `client` does at `time_ns`, when its last step is over. It is not asked again after
    /// [`Step::Done`].
    fn next_step(&mut self, client: u32, time_ns: u64) -> Step;

    /// The directory of a file, as [`FileWorkload::directory_of`].
    fn directory_of(&self, file: u32) -> u32;

    /// Files live before the stream, of a behaviour that has not been asked yet.
    fn initial(&self) -> Vec<InitialFile>;
}

#[derive(Debug, Clone, Copy)]
struct Client {
    /// When its next request or step is due; the end of time once it is done.
    next_ns: u64,
    /// What is left of its step; of no blocks between steps.
    transfer: Transfer,
}

/// A workload of clients that behave as `B`.
#[derive(Debug, Clone)]
pub struct ClientWorkload<B> {
    behaviour: B,
    clients: Vec<Client>,
    request_blocks: u32,
    /// Whose turn it is, and until when it is nobody else's.
    current: usize,
    turn_ends_ns: u64,
}

const DONE_NS: u64 = u64::MAX;

impl<B: Behaviour> ClientWorkload<B> {
    /// A workload of `clients` >= 1 that all begin at time zero.
    pub(super) fn over(behaviour: B, clients: u32, request_blocks: u32) -> Self {
        let nothing =
            Transfer { action: FileAction::Read, file: 0, block: 0, blocks: 0, pace_ns: 0 };
        Self {
            behaviour,
            clients: vec![Client { next_ns: 0, transfer: nothing }; clients as usize],
            request_blocks,
            current: 0,
            turn_ends_ns: 0,
        }
    }

    /// What the clients do.
    pub(super) fn behaviour(&self) -> &B {
        &self.behaviour
    }

    /// The files live before a stream that has not begun, by number.
    #[must_use]
    pub fn initial(&self) -> Vec<InitialFile> {
        self.behaviour.initial()
    }

    /// What is live before a stream that has not begun, and its sizes. A copy is run to its end, so
    /// it takes the time of the stream.
    #[must_use]
    pub fn survey(&self) -> Survey {
        survey_knowing(self.initial(), &mut self.clone())
    }

    /// Gives the turn to the client that is due first, the lowest number first.
    fn turn(&mut self) {
        let (mut first, mut first_ns, mut second_ns) = (0, DONE_NS, DONE_NS);
        for (index, client) in self.clients.iter().enumerate() {
            if client.next_ns < first_ns {
                (second_ns, first, first_ns) = (first_ns, index, client.next_ns);
            } else {
                second_ns = second_ns.min(client.next_ns);
            }
        }
        (self.current, self.turn_ends_ns) = (first, second_ns);
    }

    fn request(&self, action: FileAction, file: u32, block: u32, blocks: u32) -> FileRequest {
        let time = SimTime(self.clients[self.current].next_ns);
        FileRequest { time, client: self.current as u32, file, block, blocks, action }
    }

    /// The next request of the transfer under way.
    #[inline]
    fn advance(&mut self) -> FileRequest {
        let Transfer { action, file, block, blocks, pace_ns } = self.clients[self.current].transfer;
        let now = blocks.min(self.request_blocks);
        let request = self.request(action, file, block, now);
        let client = &mut self.clients[self.current];
        client.transfer.block = block + now;
        client.transfer.blocks = blocks - now;
        client.next_ns = client.next_ns.saturating_add(pace_ns);
        request
    }
}

impl<B: Behaviour> FileWorkload for ClientWorkload<B> {
    fn next_request(&mut self) -> Option<FileRequest> {
        loop {
            if self.clients[self.current].next_ns >= self.turn_ends_ns {
                self.turn();
            }
            let client = self.clients[self.current];
            if client.next_ns == DONE_NS {
                return None;
            }
            if client.transfer.blocks > 0 {
                return Some(self.advance());
            }
            let index = self.current as u32;
            match self.behaviour.next_step(index, client.next_ns) {
                Step::Transfer(transfer) => {
                    assert!(transfer.blocks > 0, "a transfer of blocks has some");
                    self.clients[self.current].transfer = transfer;
                }
                Step::Delete(file) => return Some(self.request(FileAction::Delete, file, 0, 0)),
                Step::Empty(file) => return Some(self.request(FileAction::Truncate, file, 0, 0)),
                Step::Sync => return Some(self.request(FileAction::Sync, 0, 0, 0)),
                Step::Wait(ns) => {
                    let next = &mut self.clients[self.current].next_ns;
                    // Below the end of time, which means that it is done.
                    *next = next.saturating_add(ns).min(DONE_NS - 1);
                }
                Step::Done => self.clients[self.current].next_ns = DONE_NS,
            }
        }
    }

    fn directory_of(&self, file: u32) -> u32 {
        self.behaviour.directory_of(file)
    }
}
