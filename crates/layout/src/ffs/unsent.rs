//! Data that the file system holds back: written by a program, not yet handed to the device.
//!
//! 4.4BSD lets a block wait in the buffer cache until it is part of a full cluster, so that the
//! blocks can still be moved together. One bit a fragment, kept only where a device uses the
//! transfers.

use crate::file_system::{Content, FileDevice, FileTransfer, Urgency};

/// Which fragments wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unsent {
    /// One bit a fragment; empty until something waits.
    words: Vec<u64>,
    fragments: u32,
}

impl Unsent {
    pub(crate) fn new(fragments: u32) -> Self {
        Self { words: Vec::new(), fragments }
    }

    /// `count` fragments, at most 8 and of one block, wait.
    #[inline]
    pub(crate) fn mark(&mut self, address: u32, count: u32) {
        if self.words.is_empty() {
            self.words = vec![0; self.fragments.div_ceil(64) as usize];
        }
        self.words[(address / 64) as usize] |= Self::bits(address, count);
    }

    /// They do not wait any longer, or never will.
    #[inline]
    pub(crate) fn clear(&mut self, address: u32, count: u32) {
        if let Some(word) = self.words.get_mut((address / 64) as usize) {
            *word &= !Self::bits(address, count);
        }
    }

    /// Whether any of them waits.
    #[inline]
    pub(crate) fn waits(&self, address: u32, count: u32) -> bool {
        let word = self.words.get((address / 64) as usize).copied().unwrap_or(0);
        word & Self::bits(address, count) != 0
    }

    /// Data that waited at `from` waits at `to`.
    #[inline]
    pub(crate) fn transfer(&mut self, from: u32, to: u32, count: u32) {
        if self.waits(from, count) {
            self.clear(from, count);
            self.mark(to, count);
        }
    }

    /// Blocks do not cross words: there are at most 8 fragments in one, and it begins at a multiple
    /// of its fragments.
    #[inline]
    fn bits(address: u32, count: u32) -> u64 {
        (u64::MAX >> (64 - count)) << (address % 64)
    }

    /// Hands everything that waits to `device`, in the order of addresses, at most `fragments_max`
    /// at once.
    pub(crate) fn send_all(
        &mut self,
        fragments_max: u32,
        sectors_per_fragment: u32,
        device: &mut impl FileDevice,
    ) {
        let (mut start, mut length) = (0, 0);
        let mut send = |address: u32, fragments: u32| {
            if fragments > 0 {
                device.write(FileTransfer {
                    sector: u64::from(address) * u64::from(sectors_per_fragment),
                    sectors: fragments * sectors_per_fragment,
                    content: Content::Data,
                    urgency: Urgency::Delayed,
                });
            }
        };
        for (index, word) in self.words.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let bit = bits.trailing_zeros();
                let address = index as u32 * 64 + bit;
                bits &= bits - 1;
                if address != start + length || length == fragments_max {
                    send(start, length);
                    (start, length) = (address, 0);
                }
                length += 1;
            }
        }
        send(start, length);
    }
}
