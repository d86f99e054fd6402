//! What the file system asks of its store, noted while somebody wants to know: the load of the log, which a
//! simulator can be given.

use std::collections::VecDeque;

use agewell_store::device::Disk;

use crate::{FileSystem, FsError};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Asked {
    /// Blocks are written.
    Write = 1,
    /// Blocks are read.
    Read = 2,
    /// Blocks are freed.
    Free = 3,
    /// All that was written before must be durable.
    Sync = 4,
}

/// A request to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// By the clock that was given.
    pub time_ns: u64,
    /// What is asked for.
    pub asked: Asked,
    /// The first block.
    pub first: u32,
    /// Blocks that follow one another.
    pub count: u32,
}

/// Requests since somebody began to ask, or last fetched them.
#[derive(Debug)]
pub(crate) struct Traced {
    clock: fn() -> u64,
    requests: VecDeque<Request>,
    most: usize,
    /// Requests that were fetched and forgotten.
    forgotten: u64,
    lost: u64,
    /// A bit for each block that there was at the beginning.
    pub(crate) held: Vec<u64>,
}

impl Traced {
    /// Keeps at most `most`, with the times of `clock`.
    pub(crate) fn new(most: usize, clock: fn() -> u64, held: Vec<u64>) -> Self {
        Self { clock, requests: VecDeque::new(), most, forgotten: 0, lost: 0, held }
    }

    /// Notes that this is asked of `blocks`, in their order.
    pub(crate) fn note(&mut self, asked: Asked, blocks: impl IntoIterator<Item = u32>) {
        let time_ns = (self.clock)();
        let mut run: Option<Request> = None;
        for block in blocks {
            match &mut run {
                Some(last) if last.first.checked_add(last.count) == Some(block) => last.count += 1,
                last => {
                    let next = Request { time_ns, asked, first: block, count: 1 };
                    if let Some(last) = last.replace(next) {
                        self.keep(last);
                    }
                }
            }
        }
        if let Some(last) = run {
            self.keep(last);
        }
    }

    /// Notes that all must be durable.
    pub(crate) fn note_sync(&mut self) {
        let time_ns = (self.clock)();
        self.keep(Request { time_ns, asked: Asked::Sync, first: 0, count: 0 });
    }

    fn keep(&mut self, request: Request) {
        if self.requests.len() < self.most {
            self.requests.push_back(request);
        } else {
            self.lost += 1;
        }
    }

    /// Those from number `from` on, at most `most` of them, and how many were lost so far. Those before are
    /// forgotten, so that whoever asks again for the same gets the same.
    pub(crate) fn fetch(&mut self, from: u64, most: usize) -> (Vec<Request>, u64) {
        let behind = from.saturating_sub(self.forgotten).min(self.requests.len() as u64);
        self.requests.drain(..behind as usize);
        self.forgotten += behind;
        (self.requests.iter().take(most).copied().collect(), self.lost)
    }
}

impl<D: Disk> FileSystem<D> {
    /// From now on what is asked of the store is noted, with the times of `clock` and at most `most` requests
    /// that nobody has fetched; the blocks that there are at the beginning, a bit each.
    ///
    /// # Errors
    /// If the store fails.
    pub fn begin_trace(&self, most: usize, clock: fn() -> u64) -> Result<(), FsError> {
        let core = &mut *self.core();
        core.blocks.commit()?;
        let traced = Traced::new(most, clock, core.blocks.store().held_blocks());
        *core.blocks.traced.borrow_mut() = Some(traced);
        Ok(())
    }

    /// Requests of the [trace](Self::begin_trace) from number `from` on, at most `most`, and how many were lost
    /// since it began because nobody fetched them; none if there is no trace. Those before are forgotten.
    #[must_use]
    pub fn fetch_traced(&self, from: u64, most: usize) -> Option<(Vec<Request>, u64)> {
        self.core().blocks.traced.borrow_mut().as_mut().map(|traced| traced.fetch(from, most))
    }

    /// A bit for each block that there was when the trace began, 64 in a word.
    #[must_use]
    pub fn traced_from(&self) -> Option<Vec<u64>> {
        self.core().blocks.traced.borrow().as_ref().map(|traced| traced.held.clone())
    }

    /// Nothing is noted any more.
    pub fn end_trace(&self) {
        *self.core().blocks.traced.borrow_mut() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Request, Traced};

    #[test]
    fn blocks_that_follow_one_another_are_one_request() {
        let mut traced = Traced::new(4, || 7, Vec::new());
        traced.note(Asked::Write, [3, 4, 5, 9, 8]);
        traced.note_sync();
        traced.note(Asked::Free, [1, 3]);
        let request = |asked, first, count| Request { time_ns: 7, asked, first, count };
        let wanted = [
            request(Asked::Write, 3, 3),
            request(Asked::Write, 9, 1),
            request(Asked::Write, 8, 1),
            request(Asked::Sync, 0, 0),
        ];
        assert_eq!(traced.fetch(0, 3), (wanted[..3].to_vec(), 2));
        assert_eq!(traced.fetch(0, 3), (wanted[..3].to_vec(), 2), "asked for again");
        assert_eq!(traced.fetch(3, 3), (wanted[3..].to_vec(), 2));
        traced.note(Asked::Read, [u32::MAX, 0]);
        assert_eq!(traced.fetch(4, 9).0.len(), 2, "there is no block behind the last");
        assert_eq!(traced.fetch(9, 9), (Vec::new(), 2));
    }
}
