//! Pieces made into requests: neighbours put together, long ones cut, copied where memory is not
//! aligned.

use std::io::IoSlice;

use super::super::Piece;
use super::aligned::{AlignedBuffer, REQUEST_BYTES};
use crate::aligned::is_aligned;

/// Requests in flight at most; chosen by us: what a SATA or NVMe drive makes use of.
pub(super) const IN_FLIGHT: usize = 64;

/// Places in memory that one request takes its bytes from at most: `UIO_MAXIOV` of Linux.
const PLACES_MAX: usize = 1024;

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
    Given(Vec<&'a [u8]>),
    /// In the buffer, between these bytes.
    Copied(usize, usize),
}

/// Bytes that go to one place of a disk, and where they are in memory.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) offset: u64,
    pub(super) bytes: usize,
    pub(super) slices: Vec<IoSlice<'a>>,
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

    /// The next requests of `pieces`, as many as can be in flight. Memory must be aligned, and lengths must
    /// be multiples of `alignment`, unless that is 1; what is not is copied. A piece that begins where the
    /// one before it ends is part of the same request, if there is room: a segment comes as its record and
    /// its blocks.
    pub(super) fn fill(&mut self, pieces: &mut Pieces<'a, '_>, alignment: usize) {
        self.requests.clear();
        self.buffer.first(0);
        while self.requests.len() < IN_FLIGHT && self.buffer.has_room() {
            let Some((offset, first)) = pieces.next_run(None, REQUEST_BYTES) else { break };
            let (mut runs, mut bytes) = (vec![first], first.len());
            while runs.len() < PLACES_MAX {
                let end = offset + bytes as u64;
                let next = pieces.next_run(Some(end), REQUEST_BYTES - bytes);
                let Some((_, run)) = next else { break };
                bytes += run.len();
                runs.push(run);
            }
            let takes = |run: &&[u8]| is_aligned(run) && run.len().is_multiple_of(alignment);
            if alignment == 1 || runs.iter().all(takes) {
                self.requests.push((offset, Place::Given(runs)));
                continue;
            }
            let from = self.buffer.begin();
            for run in &runs {
                self.buffer.push(run);
            }
            self.requests.push((offset, Place::Copied(from, from + bytes)));
        }
    }

    /// The requests.
    pub(super) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        self.requests.iter().map(|(offset, place)| {
            let slices: Vec<IoSlice<'_>> = match place {
                Place::Given(runs) => runs.iter().map(|run| IoSlice::new(run)).collect(),
                Place::Copied(from, to) => vec![IoSlice::new(&self.buffer.bytes()[*from..*to])],
            };
            let bytes = slices.iter().map(|slice| slice.len()).sum();
            Request { offset: *offset, bytes, slices }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::aligned::Buffers;
    use super::*;
    use crate::aligned::{AlignedBytes, MEMORY_ALIGNMENT};

    /// First byte and length of each request, batch by batch.
    fn written(pieces: &[Piece<'_>]) -> Vec<Vec<(u64, usize)>> {
        let (mut pieces, mut batches) = (Pieces::new(pieces), Vec::new());
        let mut batch = Batch::new(Buffers::default().take());
        loop {
            batch.fill(&mut pieces, 512);
            let requests = batch.requests();
            let requests: Vec<_> =
                requests.map(|request| (request.offset, request.bytes)).collect();
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
        let memory = AlignedBytes::zeroed(4 * MEMORY_ALIGNMENT);
        // Where each run is in memory; on the disk they follow one another.
        let is_given = |runs: &[(usize, usize)], alignment| {
            let mut end = 0;
            let piece = |(from, to): &(usize, usize)| {
                end += to - from;
                Piece { offset: (end - (to - from)) as u64, data: &memory[*from..*to] }
            };
            let pieces: Vec<Piece<'_>> = runs.iter().map(piece).collect();
            let mut batch = Batch::new(Buffers::default().take());
            batch.fill(&mut Pieces::new(&pieces), alignment);
            let requests: Vec<Request<'_>> = batch.requests().collect();
            assert_eq!((requests.len(), requests[0].bytes), (1, end));
            matches!(batch.requests[0].1, Place::Given(_))
        };
        assert!(is_given(&[(0, 512)], 512) && is_given(&[(512, 1024)], 1));
        assert!(!is_given(&[(512, 1024)], 512));
        // Neighbours on the disk that are none in memory.
        assert!(is_given(&[(8192, 12288), (0, 4096)], 512));
        assert!(is_given(&[(8192, 8704), (4096, 4608)], 512));
        assert!(!is_given(&[(8192, 12288), (512, 4608)], 512));
        assert!(!is_given(&[(8192, 8292), (0, 4096)], 512));
        assert!(is_given(&[(8192, 8292), (1, 4096)], 1));
    }
}
