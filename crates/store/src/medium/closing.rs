//! The map made whole at both its places, when a store is closed or grows.

use crate::StoreError;
use crate::aligned::AlignedBytes;
use crate::device::{Disk, Piece};
use crate::format::{Geometry, MapPage, Root};

use super::{Medium, PAGES_AT_ONCE, flush, read, write};

/// How a store was divided before it began to grow, and what the medium knew of its map.
pub(crate) struct DividedBefore {
    geometry: Geometry,
    root: Root,
    dirty: Vec<u64>,
}

impl<D: Disk> Medium<D> {
    /// Gives every map page the same at both places, so that one may be lost, and has the roots say that
    /// the store is closed, and name the first places: whoever opens it reads those one after another.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        self.copy_pages()?;
        self.root.generation += 1;
        self.root.closed = true;
        (0..2).try_for_each(|copy| self.write_root(copy))
    }

    /// Copies every page to its other place; from then on the first is named, but of a page that cannot be
    /// copied.
    fn copy_pages(&mut self) -> Result<(), StoreError> {
        let bytes = self.block_bytes();
        let mut buffer = AlignedBytes::default();
        let mut first = 0;
        while first < self.geometry.map_pages {
            let pages = (self.geometry.map_pages - first).min(PAGES_AT_ONCE as u32);
            let all = first as usize..(first + pages) as usize;
            first += pages;
            if self.root.pages[all.clone()].iter().all(|named| *named == 0) {
                continue;
            }
            buffer.set_length(2 * pages as usize * bytes);
            // Each place of a page in the buffer, in blocks.
            let at: fn(usize, bool, usize) -> usize = if self.geometry.is_apart {
                |page, second, pages| usize::from(second) * pages + page
            } else {
                |page, second, _| 2 * page + usize::from(second)
            };
            let parts = if self.geometry.is_apart { 2 } else { 1 };
            let length = buffer.len() / parts;
            for (second, into) in [false, true].into_iter().zip(buffer.chunks_exact_mut(length)) {
                let address = MapPage::address(&self.geometry, all.start as u32, second);
                read(&self.disk, self.geometry.offset(address), into)?;
            }
            let block = |page: usize, second: bool| {
                let from = at(page, second, pages as usize) * bytes;
                &buffer[from..from + bytes]
            };
            let mut copies = Vec::new();
            for (index, page) in all.enumerate() {
                let named = self.root.pages[page];
                let is_second = named & 1 == 1;
                let current = block(index, is_second);
                let sum = MapPage::check(&self.geometry, page as u32, current);
                if named == 0 || sum.is_none_or(|(_, sum)| (sum ^ named) & !1 != 0) {
                    continue;
                }
                self.root.pages[page] &= !1;
                if block(index, !is_second) != current {
                    let address = MapPage::address(&self.geometry, page as u32, !is_second);
                    copies.push(Piece { offset: self.geometry.offset(address), data: current });
                }
            }
            if !copies.is_empty() {
                write(&self.disk, &copies)?;
                self.counts.map_blocks += copies.len() as u64;
            }
        }
        flush(&self.disk)
    }

    /// The store is divided as `geometry` says from here on: all of the map is to be written, where it lies
    /// then. Gives what it was.
    pub(crate) fn divide_as(&mut self, geometry: Geometry) -> DividedBefore {
        let is_dirty = |page: usize| self.dirty[page / 64] >> (page % 64) & 1 == 1;
        let in_use = |page: &usize| self.root.pages[*page] != 0 || is_dirty(*page);
        let mut dirty = vec![0; geometry.map_pages.div_ceil(64) as usize];
        (0..self.root.pages.len())
            .filter(in_use)
            .for_each(|page| dirty[page / 64] |= 1 << (page % 64));
        let root = self.root.clone();
        self.root.pages = vec![0; geometry.map_pages as usize];
        let dirty = std::mem::replace(&mut self.dirty, dirty);
        DividedBefore { geometry: std::mem::replace(&mut self.geometry, geometry), root, dirty }
    }

    /// The store is divided as it was `before`, as no superblock says otherwise yet.
    pub(crate) fn divide_as_before(&mut self, before: DividedBefore) {
        (self.geometry, self.root, self.dirty) = (before.geometry, before.root, before.dirty);
        self.root_is_due = false;
    }

    /// Writes what copies of the superblock are still to be written.
    pub(crate) fn write_due_superblocks(&mut self) -> Result<(), StoreError> {
        while let Some(address) = self.superblocks_due.first() {
            self.write_superblocks(&[*address])?;
            self.superblocks_due.remove(0);
        }
        Ok(())
    }

    /// Writes the superblock to `addresses`, one copy after another.
    pub(crate) fn write_superblocks(&self, addresses: &[u64]) -> Result<(), StoreError> {
        for address in addresses {
            let data = self.geometry.encode(*address);
            write(&self.disk, &[Piece { offset: self.geometry.offset(*address), data: &data }])?;
            flush(&self.disk)?;
        }
        Ok(())
    }
}
