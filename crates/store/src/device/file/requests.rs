//! Pieces made into requests: neighbours put together, long ones cut, copied where memory is not
//! aligned.

use super::super::Piece;
use super::aligned::{AlignedBuffer, MEMORY_ALIGNMENT, REQUEST_BYTES};

/// Requests in flight at most; chosen by us: what a SATA or NVMe drive makes use of.
pub(super) const IN_FLIGHT: usize = 64;

/// What is yet to be written of some pieces.
pub(super) struct Pieces<'a, 'b> {
    pieces: &'b [Piece<'a>],
    /// What of the first of them is done.
    done: usize,
}

impl<'a, 'b> Pieces<'a, 'b> {
    pub(super) fn new(pieces: &'b [Piece<'a>]) -> Self {
        Self { pieces, done: 0 }
    }

    /// The next run of at most `bytes` bytes of one piece; if it must begin at `offset`, only if it does.
    fn next_run(&mut self, offset: Option<u64>, bytes: usize) -> Option<(u64, &'a [u8])> {
        while self.pieces.first().is_some_and(|piece| piece.data.len() == self.done) {
            self.pieces = &self.pieces[1..];
            self.done = 0;
        }
        let piece = self.pieces.first()?;
        let at = piece.offset + self.done as u64;
        if bytes == 0 || offset.is_some_and(|offset| offset != at) {
            return None;
        }
        let run = &piece.data[self.done..];
        let run = &run[..run.len().min(bytes)];
        self.done += run.len();
        Some((at, run))
    }
}

/// Where the bytes of a request are.
#[derive(Debug)]
enum Place<'a> {
    /// In the caller's memory.
    Given(&'a [u8]),
    /// In the buffer, between these bytes.
    Copied(usize, usize),
}

/// Requests that are made together.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    buffer: AlignedBuffer,
    requests: Vec<(u64, Place<'a>)>,
}

impl<'a> Batch<'a> {
    /// None, with room for the bytes of some.
    pub(super) fn new(buffer: AlignedBuffer) -> Self {
        Self { buffer, requests: Vec::new() }
    }

    /// The buffer, for whoever makes the next.
    pub(super) fn into_buffer(self) -> AlignedBuffer {
        self.buffer
    }

    /// The next requests of `pieces`, as many as can be in flight; `needs_alignment` if their memory must
    /// be aligned. A piece that begins where the one before it ends is part of the same request, if there
    /// is room: a segment comes as its record and its blocks.
    pub(super) fn fill(&mut self, pieces: &mut Pieces<'a, '_>, needs_alignment: bool) {
        self.requests.clear();
        self.buffer.first(0);
        while self.requests.len() < IN_FLIGHT && self.buffer.has_room() {
            let Some((offset, first)) = pieces.next_run(None, REQUEST_BYTES) else { break };
            let mut end = offset + first.len() as u64;
            let room = |end: u64| REQUEST_BYTES - (end - offset) as usize;
            let mut next = pieces.next_run(Some(end), room(end));
            if next.is_none() && (!needs_alignment || is_aligned(first)) {
                self.requests.push((offset, Place::Given(first)));
                continue;
            }
            let from = self.buffer.begin();
            self.buffer.push(first);
            while let Some((_, run)) = next {
                self.buffer.push(run);
                end += run.len() as u64;
                next = pieces.next_run(Some(end), room(end));
            }
            self.requests.push((offset, Place::Copied(from, from + (end - offset) as usize)));
        }
    }

    /// Where each request begins on the disk, and its bytes.
    pub(super) fn requests(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.requests.iter().map(|(offset, place)| {
            let bytes = match place {
                Place::Given(bytes) => bytes,
                Place::Copied(from, to) => &self.buffer.bytes()[*from..*to],
            };
            (*offset, bytes)
        })
    }
}

/// Whether memory begins where all devices take it.
pub(super) fn is_aligned(memory: &[u8]) -> bool {
    memory.as_ptr().addr().is_multiple_of(MEMORY_ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::super::aligned::Buffers;
    use super::*;

    /// First byte and length of each request, batch by batch.
    fn written(pieces: &[Piece<'_>]) -> Vec<Vec<(u64, usize)>> {
        let (mut pieces, mut batches) = (Pieces::new(pieces), Vec::new());
        let mut batch = Batch::new(Buffers::default().take());
        loop {
            batch.fill(&mut pieces, true);
            let requests = batch.requests();
            let requests: Vec<_> = requests.map(|(offset, bytes)| (offset, bytes.len())).collect();
            if requests.is_empty() {
                return batches;
            }
            batches.push(requests);
        }
    }

    #[test]
    fn neighbours_are_one_request_and_long_pieces_are_cut() {
        let data = vec![0; 3 * REQUEST_BYTES];
        let piece = |offset, bytes| Piece { offset, data: &data[..bytes] };
        assert!(written(&[]).is_empty());
        assert_eq!(written(&[piece(0, 512), piece(512, 1024), piece(1536, 0)]), [[(0, 1536)]]);
        assert_eq!(written(&[piece(0, 512), piece(1024, 512)]), [[(0, 512), (1024, 512)]]);
        assert_eq!(written(&[piece(512, 512), piece(0, 512)]), [[(512, 512), (0, 512)]]);
        let (whole, request) = (REQUEST_BYTES as u64, REQUEST_BYTES);
        assert_eq!(
            written(&[piece(0, 2 * request + 512), piece(2 * whole + 512, request)]),
            [[(0, request), (whole, request), (2 * whole, request), (3 * whole, 512)]]
        );
    }

    #[test]
    fn batches_are_as_many_requests_or_bytes_as_are_in_flight() {
        let data = vec![0; 20 * REQUEST_BYTES + 1];
        let small = (0..200).map(|at| Piece { offset: at * 1024, data: &data[..512] });
        let lengths = |batches: Vec<Vec<_>>| batches.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(written(&small.collect::<Vec<_>>())), [64, 64, 64, 8]);
        // One byte behind where it is aligned: all is copied.
        let from = data.as_ptr().align_offset(MEMORY_ALIGNMENT) + 1;
        let large = [Piece { offset: 0, data: &data[from..from + 19 * REQUEST_BYTES] }];
        assert_eq!(lengths(written(&large)), [8, 8, 3]);
    }

    #[test]
    fn memory_that_is_aligned_is_not_copied() {
        let memory = vec![0; 2 * MEMORY_ALIGNMENT];
        let from = memory.as_ptr().align_offset(MEMORY_ALIGNMENT);
        let is_given = |from: usize, needs_alignment| {
            let pieces = [Piece { offset: 0, data: &memory[from..from + 512] }];
            let mut batch = Batch::new(Buffers::default().take());
            batch.fill(&mut Pieces::new(&pieces), needs_alignment);
            matches!(batch.requests[0].1, Place::Given(_))
        };
        assert!(is_given(from, true) && is_given(from + 512, false));
        assert!(!is_given(from + 512, true));
    }
}
