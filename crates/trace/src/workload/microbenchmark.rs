//! The three microbenchmarks of reading what was written: one large file, written in order, written
//! again in some order, and read in some order.
//!
//! | phase | blocks transferred before it | what |
//! |---|---|---|
//! | first write | 0 | the whole file in order |
//! | second write | `blocks` | the whole file as `write` says |
//! | read, pass k from 0 | `(2 + k) * blocks` | the whole file as `read` says |
//!
//! [`Microbenchmark::phases`] gives the same as numbers. Before the stream nothing is live; at the
//! end, and at most, the whole file. All requests come at time zero: a saturated client.
//!
//! Source: Matthews 1999, §6.3 (625 MB, one pass) and §6.5.1.1 (five). Difference: none known; the
//! paper does not say what its third benchmark's "non-sequential pattern" is. Here it is one of two
//! ([`Pattern`]), and the order of its writes is exactly that of each of its read passes. The random
//! write of the second benchmark writes every block once, in an order drawn from a stream of its
//! own (the text has it as "a random write of all the benchmark data").
//!
//! Invariants: each phase asks for each block of the file exactly once. Cost: O(1) a request;
//! 4 bytes a request of a pass for each order that is drawn, nothing for the others.

use std::ops::Range;
use std::sync::Arc;

use agewell_core::{FileAction, FileRequest, RandomStreams, SimTime};

use super::error::require;
use super::zipf::permutation;
use super::{FileWorkload, Survey, WorkloadError};

const NAME: &str = "microbenchmark";

/// The order of the second write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteOrder {
    /// Front to back.
    #[default]
    Sequential,
    /// In an order drawn again for it, which nothing else follows.
    Random,
    /// In the non-sequential pattern.
    Pattern,
}

/// The order of every read pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadOrder {
    /// Front to back.
    #[default]
    Sequential,
    /// In the non-sequential pattern.
    Pattern,
}

/// What the non-sequential pattern is; both chosen by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pattern {
    /// One permutation of the requests of a pass, fixed by the seed.
    #[default]
    Permuted,
    /// Every `stride_requests`-th request from the first on, then from the second on, and so forth,
    /// as a matrix stored by rows is read by columns.
    Strided,
}

/// What the microbenchmark takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicrobenchmarkParameters {
    /// Blocks of the file; 80,000 by default: 625 MiB of 8 KiB (Matthews 1999, §6.3).
    pub blocks: u32,
    /// Blocks of a request; 1 by default. The last request of the file may be shorter.
    pub request_blocks: u32,
    /// The order of the second write.
    pub write: WriteOrder,
    /// The order of the reads.
    pub read: ReadOrder,
    /// Read passes; 1 by default, as in Figures 6-1 to 6-6 (5 in Figures 6-7 to 6-11).
    pub reads: u32,
    /// What the non-sequential pattern is.
    pub pattern: Pattern,
    /// Requests from one to the next of the strided pattern; 256 by default (chosen by us: 2 MiB).
    pub stride_requests: u32,
}

impl Default for MicrobenchmarkParameters {
    fn default() -> Self {
        Self {
            blocks: 80_000,
            request_blocks: 1,
            write: WriteOrder::Sequential,
            read: ReadOrder::Sequential,
            reads: 1,
            pattern: Pattern::Permuted,
            stride_requests: 256,
        }
    }
}

impl MicrobenchmarkParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { blocks, request_blocks, stride_requests, .. } = *self;
        let need = "from 1 to 2147483647";
        require(blocks > 0 && blocks < 1 << 31, NAME, "blocks", blocks, need)?;
        let need = "from 1 to the blocks of the file";
        let fits = request_blocks > 0 && request_blocks <= blocks;
        require(fits, NAME, "request_blocks", request_blocks, need)?;
        require(stride_requests > 0, NAME, "stride_requests", stride_requests, "at least 1")
    }

    /// Requests of one pass over the file.
    #[must_use]
    pub fn pass_requests(&self) -> u32 {
        self.blocks.div_ceil(self.request_blocks)
    }

    /// Passes over the file: two of writes, and the reads.
    #[must_use]
    pub fn passes(&self) -> u64 {
        2 + u64::from(self.reads)
    }
}

/// What a phase does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseKind {
    /// Writes the file for the first time, in order.
    FirstWrite,
    /// Writes the file again, in the order asked for.
    SecondWrite,
    /// Reads the file; which time, from 0.
    Read(u32),
}

/// One pass over the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// What it does.
    pub kind: PhaseKind,
    /// Where it stands among all blocks that the stream writes and reads, counted from 0.
    pub blocks: Range<u64>,
    /// Where it stands among all requests of the stream, counted from 0.
    pub requests: Range<u64>,
}

/// Which request of the file comes at which place of a pass.
#[derive(Debug, Clone)]
enum Order {
    Sequential,
    Strided { stride: u32 },
    Drawn(Arc<[u32]>),
}

impl Order {
    /// The place behind `place` in the strided order is a step on, or the next column's first.
    #[inline]
    fn after(&self, unit: u32, place: u32, units: u32) -> u32 {
        match self {
            Order::Sequential => unit + 1,
            Order::Strided { stride } => match unit.checked_add(*stride) {
                Some(next) if next < units => next,
                _ => unit % stride + 1,
            },
            Order::Drawn(order) => order.get(place as usize + 1).copied().unwrap_or(0),
        }
    }

    fn first(&self) -> u32 {
        match self {
            Order::Sequential | Order::Strided { .. } => 0,
            Order::Drawn(order) => order[0],
        }
    }
}

/// The microbenchmark.
#[derive(Debug, Clone)]
pub struct Microbenchmark {
    parameters: MicrobenchmarkParameters,
    /// Orders of the second write and of the reads.
    write: Order,
    read: Order,
    pass: u64,
    /// Place in the pass, and the request that comes there.
    place: u32,
    unit: u32,
}

impl Microbenchmark {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &MicrobenchmarkParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let drawn = |name: &str| {
            Order::Drawn(permutation(parameters.pass_requests(), &mut streams.stream(name)).into())
        };
        let pattern = match parameters.pattern {
            Pattern::Permuted => drawn("workload/microbenchmark/pattern"),
            Pattern::Strided => Order::Strided { stride: parameters.stride_requests },
        };
        let write = match parameters.write {
            WriteOrder::Sequential => Order::Sequential,
            WriteOrder::Random => drawn("workload/microbenchmark/random"),
            WriteOrder::Pattern => pattern.clone(),
        };
        let read = match parameters.read {
            ReadOrder::Sequential => Order::Sequential,
            ReadOrder::Pattern => pattern,
        };
        Ok(Self { parameters: *parameters, write, read, pass: 0, place: 0, unit: 0 })
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &MicrobenchmarkParameters {
        &self.parameters
    }

    /// The passes over the file in their order.
    #[must_use]
    pub fn phases(&self) -> Vec<Phase> {
        let blocks = u64::from(self.parameters.blocks);
        let requests = u64::from(self.parameters.pass_requests());
        let range = |pass: u64, size: u64| pass * size..(pass + 1) * size;
        let reads = (0..self.parameters.reads).map(PhaseKind::Read);
        [PhaseKind::FirstWrite, PhaseKind::SecondWrite]
            .into_iter()
            .chain(reads)
            .zip(0..)
            .map(|(kind, pass)| Phase {
                kind,
                blocks: range(pass, blocks),
                requests: range(pass, requests),
            })
            .collect()
    }

    /// What is live before the whole stream, and its sizes; by construction, so O(1).
    #[must_use]
    pub fn survey(&self) -> Survey {
        let blocks = u64::from(self.parameters.blocks);
        Survey {
            initial: Vec::new(),
            initial_blocks: 0,
            peak_live_blocks: blocks,
            final_live_blocks: blocks,
            files: 1,
            clients: 1,
            requests: self.parameters.passes() * u64::from(self.parameters.pass_requests()),
        }
    }

    fn order(&self) -> &Order {
        match self.pass {
            0 => &Order::Sequential,
            1 => &self.write,
            _ => &self.read,
        }
    }
}

impl FileWorkload for Microbenchmark {
    #[inline]
    fn next_request(&mut self) -> Option<FileRequest> {
        if self.pass == self.parameters.passes() {
            return None;
        }
        let MicrobenchmarkParameters { blocks, request_blocks, .. } = self.parameters;
        let block = self.unit * request_blocks;
        let request = FileRequest {
            time: SimTime::ZERO,
            client: 0,
            file: 0,
            block,
            blocks: request_blocks.min(blocks - block),
            action: if self.pass < 2 { FileAction::Write } else { FileAction::Read },
        };
        let units = self.parameters.pass_requests();
        if self.place + 1 == units {
            self.pass += 1;
            self.place = 0;
            self.unit = self.order().first();
        } else {
            self.unit = self.order().after(self.unit, self.place, units);
            self.place += 1;
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests;
