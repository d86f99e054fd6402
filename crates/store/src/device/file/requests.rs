//! Pieces made into requests: neighbours put together, long ones cut, copied where memory is not
//! aligned.

use super::super::Piece;
use super::aligned::{AlignedBuffer, Buffers, MEMORY_ALIGNMENT, REQUEST_BYTES};

/// What is written by one request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) offset: u64,
    pub(super) data: Data<'a>,
}

#[derive(Debug)]
pub(super) enum Data<'a> {
    /// Memory of the caller.
    Given(&'a [u8]),
    Copied(AlignedBuffer),
}

impl Request<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Given(bytes) => bytes,
            Data::Copied(buffer) => buffer.bytes(),
        }
    }
}

/// The requests that write `pieces`, in their order; `needs_alignment` if memory must be aligned.
///
/// A piece that begins where the one before it ends is part of the same request, if there is room: a
/// segment comes as its record and its blocks.
pub(super) struct Requests<'a, 'b> {
    pieces: &'b [Piece<'a>],
    /// What of the first of them is done.
    done: usize,
    buffers: &'b Buffers,
    needs_alignment: bool,
}

impl<'a, 'b> Requests<'a, 'b> {
    pub(super) fn new(
        pieces: &'b [Piece<'a>],
        buffers: &'b Buffers,
        needs_alignment: bool,
    ) -> Self {
        Self { pieces, done: 0, buffers, needs_alignment }
    }

    /// The next run of at most `bytes` bytes of one piece that begins at `offset`, if that is where the
    /// next piece goes on.
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

impl<'a> Iterator for Requests<'a, '_> {
    type Item = Request<'a>;

    fn next(&mut self) -> Option<Request<'a>> {
        let (offset, first) = self.next_run(None, REQUEST_BYTES)?;
        let mut length = first.len();
        let mut next = self.next_run(Some(offset + length as u64), REQUEST_BYTES - length);
        let is_aligned = !self.needs_alignment || is_aligned(first);
        if next.is_none() && is_aligned {
            return Some(Request { offset, data: Data::Given(first) });
        }
        let mut buffer = self.buffers.take();
        buffer.push(first);
        while let Some((_, run)) = next {
            buffer.push(run);
            length += run.len();
            next = self.next_run(Some(offset + length as u64), REQUEST_BYTES - length);
        }
        Some(Request { offset, data: Data::Copied(buffer) })
    }
}

/// Whether memory begins where all devices take it.
pub(super) fn is_aligned(memory: &[u8]) -> bool {
    memory.as_ptr().addr().is_multiple_of(MEMORY_ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[Piece<'_>]) -> Vec<(u64, usize)> {
        let buffers = Buffers::default();
        let requests = Requests::new(pieces, &buffers, true);
        requests.map(|request| (request.offset, request.bytes().len())).collect()
    }

    #[test]
    fn neighbours_are_one_request_and_long_pieces_are_cut() {
        let data = vec![0; 3 * REQUEST_BYTES];
        let piece = |offset, bytes| Piece { offset, data: &data[..bytes] };
        assert_eq!(written(&[]), []);
        assert_eq!(written(&[piece(0, 512), piece(512, 1024), piece(1536, 0)]), [(0, 1536)]);
        assert_eq!(written(&[piece(0, 512), piece(1024, 512)]), [(0, 512), (1024, 512)]);
        assert_eq!(written(&[piece(512, 512), piece(0, 512)]), [(512, 512), (0, 512)]);
        let (whole, request) = (REQUEST_BYTES as u64, REQUEST_BYTES);
        assert_eq!(
            written(&[piece(0, 2 * request + 512), piece(2 * whole + 512, request)]),
            [(0, request), (whole, request), (2 * whole, request), (3 * whole, 512)]
        );
    }

    #[test]
    fn memory_that_is_aligned_is_not_copied() {
        let memory = vec![0; 2 * MEMORY_ALIGNMENT];
        let from = memory.as_ptr().align_offset(MEMORY_ALIGNMENT);
        let buffers = Buffers::default();
        let is_given = |from: usize, needs_alignment| {
            let pieces = [Piece { offset: 0, data: &memory[from..from + 512] }];
            let request = Requests::new(&pieces, &buffers, needs_alignment).next().unwrap();
            matches!(request.data, Data::Given(_))
        };
        assert!(is_given(from, true) && is_given(from + 512, false));
        assert!(!is_given(from + 512, true));
    }
}
