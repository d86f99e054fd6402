//! Memory that may be read into and written from past the page cache, without a copy.

use std::ops::{Deref, DerefMut};

/// Where it begins; chosen by us: a page, which all devices take.
pub(crate) const MEMORY_ALIGNMENT: usize = 4096;

/// Whether memory begins where all devices take it.
#[cfg(any(test, target_os = "linux"))]
pub(crate) fn is_aligned(memory: &[u8]) -> bool {
    memory.as_ptr().addr().is_multiple_of(MEMORY_ALIGNMENT)
}

/// Bytes that begin at a page.
#[derive(Debug, Default)]
pub(crate) struct AlignedBytes {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl AlignedBytes {
    /// `length` bytes, all zero.
    pub(crate) fn zeroed(length: usize) -> Self {
        // Zeros that the kernel makes when they are first touched.
        let memory = vec![0; length + MEMORY_ALIGNMENT];
        let from = memory.as_ptr().align_offset(MEMORY_ALIGNMENT);
        Self { memory, from, length }
    }

    /// As many bytes as `length` says; what they hold is anything.
    pub(crate) fn set_length(&mut self, length: usize) {
        if self.from + length <= self.memory.len() {
            self.length = length;
        } else {
            *self = Self::zeroed(length);
        }
    }

    /// Puts `bytes` behind what there is.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let before = self.length;
        if self.from + before + bytes.len() > self.memory.len() {
            let mut longer = Self::zeroed(before + bytes.len());
            longer[..before].copy_from_slice(self);
            *self = longer;
        }
        self.length = before + bytes.len();
        self[before..].copy_from_slice(bytes);
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.length]
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_at_a_page_however_long_it_is() {
        let mut bytes = AlignedBytes::default();
        assert!(bytes.is_empty());
        for length in [1, 512, 5000, 100, 1 << 20, 0, 4096] {
            bytes.set_length(length);
            assert_eq!(bytes.len(), length);
            assert!(length == 0 || is_aligned(&bytes));
            bytes.fill(7);
        }
        let mut grown = AlignedBytes::default();
        for part in 0..40_u8 {
            grown.append(&vec![part; 200 * usize::from(part)]);
        }
        assert!(is_aligned(&grown) && grown.is_sorted() && grown.len() == 200 * (40 * 39 / 2));
        assert!(AlignedBytes::zeroed(9000).iter().all(|byte| *byte == 0));
    }
}
