//! The bytes of a file, in extents that lie in one piece, and which of their pages somebody wrote.

use std::collections::BTreeMap;
use std::io::IoSlice;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Pages of an extent, chosen by us: a read of 1 MiB is of two at most.
const EXTENT_PAGES: usize = 512;

/// Bytes of one.
const EXTENT: usize = EXTENT_PAGES * PAGE;

static ZEROS: [u8; EXTENT] = [0; EXTENT];

/// Bytes up to the last that was written; pages that nobody wrote are zero.
#[derive(Debug, Default)]
struct Extent {
    bytes: Vec<u8>,
    written: [u64; EXTENT_PAGES / 64],
}

impl Extent {
    fn is_written(&self, page: usize) -> bool {
        self.written[page / 64] & 1 << (page % 64) != 0
    }

    fn pages(&self) -> u64 {
        self.written.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if self.bytes.len() <= offset {
            self.bytes.resize(offset, 0);
            self.bytes.extend_from_slice(data);
        } else {
            if self.bytes.len() < end {
                self.bytes.resize(end, 0);
            }
            self.bytes[offset..end].copy_from_slice(data);
        }
        for page in offset / PAGE..end.div_ceil(PAGE) {
            self.written[page / 64] |= 1 << (page % 64);
        }
    }

    /// Makes a range zero; whole pages of it count as never written.
    fn punch(&mut self, start: usize, end: usize) {
        let stays = self.bytes.len();
        if start < stays {
            if end < stays {
                self.bytes[start..end].fill(0);
            } else {
                self.bytes.truncate(start);
            }
        }
        for page in start.div_ceil(PAGE)..end / PAGE {
            self.written[page / 64] &= !(1 << (page % 64));
        }
    }
}

/// Extents by number.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    extents: BTreeMap<u64, Extent>,
    pages: u64,
}

impl Contents {
    /// Pages that were written.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Bytes from `offset` on, in pieces; what nobody wrote is zeros.
    pub(crate) fn pieces(&self, offset: u64, size: usize) -> Vec<IoSlice<'_>> {
        let mut pieces = Vec::with_capacity(2 * (size / EXTENT + 2));
        for (number, start, end) in parts(offset, offset + size as u64) {
            let bytes = self.extents.get(&number).map_or(&[][..], |extent| &extent.bytes);
            let written = bytes.len().clamp(start, end);
            if start < written {
                pieces.push(IoSlice::new(&bytes[start..written]));
            }
            if written < end {
                pieces.push(IoSlice::new(&ZEROS[written..end]));
            }
        }
        pieces
    }

    /// Writes from `offset` on.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for (number, start, end) in parts(offset, offset + data.len() as u64) {
            let (now, later) = rest.split_at(end - start);
            let extent = self.extents.entry(number).or_default();
            let before = extent.pages();
            extent.write(start, now);
            self.pages += extent.pages() - before;
            rest = later;
        }
    }

    /// Makes a range zero; whole pages of it take no memory then.
    pub(crate) fn punch(&mut self, start: u64, end: u64) {
        let first = start / EXTENT as u64;
        let mut emptied = Vec::new();
        for (&number, extent) in self.extents.range_mut(first..) {
            let base = number * EXTENT as u64;
            if base >= end {
                break;
            }
            let before = extent.pages();
            let from = start.saturating_sub(base) as usize;
            extent.punch(from, (end - base).min(EXTENT as u64) as usize);
            let after = extent.pages();
            self.pages -= before - after;
            if after == 0 {
                emptied.push(number);
            }
        }
        for number in emptied {
            self.extents.remove(&number);
        }
    }

    /// The first page at or behind `page` that was written, or was not; `None` if there is none before
    /// `pages_end`.
    pub(crate) fn next(&self, mut page: u64, pages_end: u64, is_written: bool) -> Option<u64> {
        let pages = EXTENT_PAGES as u64;
        while page < pages_end {
            let number = page / pages;
            match self.extents.range(number..).next() {
                Some((&found, extent)) if found == number => {
                    if extent.is_written((page % pages) as usize) == is_written {
                        return Some(page);
                    }
                    page += 1;
                }
                Some((&found, _)) if is_written => page = found * pages,
                None if is_written => return None,
                _ => return Some(page),
            }
        }
        None
    }
}

/// A range of bytes as ranges within extents, with the number of each.
fn parts(offset: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let extent = EXTENT as u64;
    (offset / extent..end.div_ceil(extent)).map(move |number| {
        let base = number * extent;
        (number, offset.saturating_sub(base) as usize, (end - base).min(extent) as usize)
    })
}
