//! Buffers for what is not aligned where it is.

use std::sync::{Mutex, PoisonError};

use crate::aligned::{AlignedBytes, MEMORY_ALIGNMENT};

/// Bytes of a request at most; chosen by us: measured on a virtual disk, 1 MiB is as fast as more.
pub(super) const REQUEST_BYTES: usize = 1 << 20;
/// Bytes of a buffer: of what is copied, so much is in flight; chosen by us.
pub(super) const BUFFER_BYTES: usize = 8 * REQUEST_BYTES;
/// Of a read that is copied so much is in flight: what fits into a buffer with the rests of sectors.
pub(super) const READ_BYTES: usize = BUFFER_BYTES - REQUEST_BYTES;
/// Buffers that are kept for later; chosen by us: 32 MiB, if all of each was once used.
const KEPT_BUFFERS: usize = 4;

/// Memory of which the first part is in use.
#[derive(Debug)]
pub(super) struct AlignedBuffer {
    memory: AlignedBytes,
    length: usize,
}

impl AlignedBuffer {
    fn new() -> Self {
        Self { memory: AlignedBytes::zeroed(BUFFER_BYTES), length: 0 }
    }

    /// What is in use.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[..self.length]
    }

    /// The first `length` bytes, which are in use from here on.
    pub(super) fn first(&mut self, length: usize) -> &mut [u8] {
        self.length = length;
        &mut self.memory[..length]
    }

    /// Whether a request of any length fits behind what is in use.
    pub(super) fn has_room(&self) -> bool {
        self.length.next_multiple_of(MEMORY_ALIGNMENT) + REQUEST_BYTES <= BUFFER_BYTES
    }

    /// Begins a request behind what is in use; where.
    pub(super) fn begin(&mut self) -> usize {
        self.length = self.length.next_multiple_of(MEMORY_ALIGNMENT);
        self.length
    }

    /// Appends `bytes`, for which there is room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.memory[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
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
        free.unwrap_or_else(AlignedBuffer::new)
    }

    pub(super) fn give_back(&self, mut buffer: AlignedBuffer) {
        buffer.length = 0;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT_BUFFERS {
            free.push(buffer);
        }
    }
}
