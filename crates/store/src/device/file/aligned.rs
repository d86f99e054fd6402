//! Memory that may be read into and written from past the page cache.

use std::sync::{Mutex, PoisonError};

/// Bytes of a request at most, and of a buffer; chosen by us: measured on a virtual disk, 1 MiB is as
/// fast as more.
pub(super) const REQUEST_BYTES: usize = 1 << 20;
/// Where a buffer begins; chosen by us: a page, which all devices take.
pub(super) const MEMORY_ALIGNMENT: usize = 4096;
/// Buffers that are kept for later; chosen by us: 16 MiB.
const KEPT_BUFFERS: usize = 16;

/// As much as a request moves.
#[derive(Debug)]
pub(super) struct AlignedBuffer {
    memory: Box<[u8]>,
    from: usize,
    /// Bytes in use.
    pub(super) length: usize,
}

impl AlignedBuffer {
    fn new() -> Self {
        let memory = vec![0; REQUEST_BYTES + MEMORY_ALIGNMENT].into_boxed_slice();
        let from = memory.as_ptr().align_offset(MEMORY_ALIGNMENT);
        Self { memory, from, length: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.length]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }

    /// Appends `bytes`, for which there is room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        assert!(end <= REQUEST_BYTES, "a request is as long as a buffer");
        self.memory[self.from + self.length..self.from + end].copy_from_slice(bytes);
        self.length = end;
    }
}

/// Buffers that nobody uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Mutex<Vec<AlignedBuffer>>,
}

impl Buffers {
    /// A buffer of which nothing is in use; what it holds is anything.
    pub(super) fn take(&self) -> AlignedBuffer {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = free.unwrap_or_else(AlignedBuffer::new);
        buffer.length = 0;
        buffer
    }

    pub(super) fn give_back(&self, buffer: AlignedBuffer) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT_BUFFERS {
            free.push(buffer);
        }
    }
}
