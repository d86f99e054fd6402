//! The bytes of a file: pages, of which those that nobody wrote are not there.

use std::collections::BTreeMap;
use std::io::IoSlice;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Pages that are kept side by side.
const EXTENT: u64 = 512;

static ZEROS: [u8; PAGE] = [0; PAGE];

type Page = Box<[u8]>;

/// Pages by extent, and how many there are.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    extents: BTreeMap<u64, Vec<Option<Page>>>,
    pages: u64,
}

impl Contents {
    /// Pages that take memory.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Bytes from `offset` on, as pieces of pages; holes are zeros.
    pub(crate) fn pieces(&self, offset: u64, size: usize) -> Vec<IoSlice<'_>> {
        let mut pieces = Vec::with_capacity(size / PAGE + 2);
        let mut at = offset;
        let end = offset + size as u64;
        while at < end {
            let (page, first) = split(at);
            let extent = self.extents.get(&(page / EXTENT));
            // As far as the extent goes without another look into the tree.
            for page in page..(page / EXTENT + 1) * EXTENT {
                let first = if at == offset { first } else { 0 };
                let last = (PAGE as u64).min(first as u64 + (end - at)) as usize;
                let bytes = extent
                    .and_then(|pages| pages.get((page % EXTENT) as usize))
                    .and_then(Option::as_deref)
                    .unwrap_or(&ZEROS);
                pieces.push(IoSlice::new(&bytes[first..last]));
                at += (last - first) as u64;
                if at == end {
                    break;
                }
            }
        }
        pieces
    }

    /// Writes, over `size_before` bytes of which those behind the end of a page may be anything but zero.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let (page, first) = split(at);
            let extent = self.extents.entry(page / EXTENT).or_default();
            let mut index = (page % EXTENT) as usize;
            let mut first = first;
            while !rest.is_empty() && index < EXTENT as usize {
                let (now, later) = rest.split_at(rest.len().min(PAGE - first));
                if extent.len() <= index {
                    extent.resize_with(index + 1, || None);
                }
                match &mut extent[index] {
                    Some(page) => page[first..first + now.len()].copy_from_slice(now),
                    none => {
                        self.pages += 1;
                        *none = Some(if now.len() == PAGE {
                            now.into()
                        } else {
                            let mut page = vec![0; PAGE].into_boxed_slice();
                            page[first..first + now.len()].copy_from_slice(now);
                            page
                        });
                    }
                }
                at += now.len() as u64;
                rest = later;
                index += 1;
                first = 0;
            }
        }
    }

    /// Makes a range zero; whole pages of it take no memory then.
    pub(crate) fn punch(&mut self, start: u64, end: u64) {
        let (first, behind_start) = split(start);
        let (last, behind_end) = split(end);
        if first == last {
            self.zero(first, behind_start, behind_end);
            return;
        }
        self.zero(first, behind_start, PAGE);
        self.zero(last, 0, behind_end);
        let whole = if behind_start == 0 { first } else { first + 1 }..last;
        if whole.is_empty() {
            return;
        }
        let extents = whole.start / EXTENT..=(whole.end - 1) / EXTENT;
        let emptied: Vec<u64> = self
            .extents
            .range_mut(extents)
            .filter_map(|(&number, pages)| {
                let base = number * EXTENT;
                let from = whole.start.saturating_sub(base).min(pages.len() as u64) as usize;
                let to = (whole.end - base).min(pages.len() as u64) as usize;
                if from < to {
                    let gone = pages[from..to].iter_mut().filter_map(Option::take).count();
                    self.pages -= gone as u64;
                }
                pages.iter().all(Option::is_none).then_some(number)
            })
            .collect();
        for number in emptied {
            self.extents.remove(&number);
        }
    }

    /// The first page at or behind `page` that is there, or is not; `None` if there is none before
    /// `pages_end`.
    pub(crate) fn next(&self, mut page: u64, pages_end: u64, is_there: bool) -> Option<u64> {
        while page < pages_end {
            let number = page / EXTENT;
            match self.extents.range(number..).next() {
                Some((&found, pages)) if found == number => {
                    let found = pages.get((page % EXTENT) as usize).is_some_and(Option::is_some);
                    if found == is_there {
                        return Some(page);
                    }
                    page += 1;
                }
                Some((&found, _)) if is_there => page = found * EXTENT,
                None if is_there => return None,
                _ => return Some(page),
            }
        }
        None
    }

    fn zero(&mut self, page: u64, first: usize, last: usize) {
        let extent = self.extents.get_mut(&(page / EXTENT));
        let page = extent.and_then(|pages| pages.get_mut((page % EXTENT) as usize));
        if let Some(Some(page)) = page
            && !(first == 0 && last == PAGE)
        {
            page[first..last].fill(0);
        }
    }
}

/// The number of a page, and how far in it.
fn split(offset: u64) -> (u64, usize) {
    (offset / PAGE as u64, (offset % PAGE as u64) as usize)
}
