//! A table with an entry for every quantum or slot of a device, of which only what differs from
//! zero takes room.
//!
//! A disk of 8 TB has two thousand million blocks, and a day's requests touch a few thousand of
//! them. Entries lie in pages of [`PAGE_ENTRIES`]; a page is kept from the first write of an entry
//! in it. Until then the directory names page 0, which holds zeros and is never written, so that
//! reading needs no branch.
//!
//! Cost: two dependent loads a look-up; 1/16 byte an entry of address space that the system fills
//! in where it is touched, and a page for each that is written to. A table of few entries is one
//! array after all, with one load a look-up.

/// Entries up to which a table is one array, found in one load: some tens of megabytes of address
/// space, of which the system fills in what is touched; chosen by us.
const WHOLE_ENTRIES_MAX: u32 = 1 << 22;

/// Entries in a page: a few cache lines, so that scattered entries cost little beside themselves;
/// chosen by us.
const PAGE_ENTRIES: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Paged<T> {
    /// Which of `pages` holds the entries; 0 for those that are all zero. Empty if `pages` holds
    /// every entry in order.
    directory: Vec<u32>,
    pages: Vec<T>,
    /// Which entry of the directory names each page, but for the first one.
    owners: Vec<u32>,
}

impl<T: Copy + Default + PartialEq> Paged<T> {
    /// A table of `entries` zeros.
    pub(crate) fn new(entries: u32) -> Self {
        if entries <= WHOLE_ENTRIES_MAX {
            let pages = vec![T::default(); entries as usize];
            return Self { directory: Vec::new(), pages, owners: Vec::new() };
        }
        Self {
            directory: vec![0; (entries as usize).div_ceil(PAGE_ENTRIES)],
            pages: vec![T::default(); PAGE_ENTRIES],
            owners: vec![0],
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> T {
        let index = index as usize;
        if self.directory.is_empty() {
            return self.pages[index];
        }
        let page = self.directory[index / PAGE_ENTRIES] as usize;
        self.pages[page * PAGE_ENTRIES + index % PAGE_ENTRIES]
    }

    /// The entry, to be written.
    #[inline]
    pub(crate) fn entry(&mut self, index: u32) -> &mut T {
        let index = index as usize;
        if self.directory.is_empty() {
            return &mut self.pages[index];
        }
        let mut page = self.directory[index / PAGE_ENTRIES] as usize;
        if page == 0 {
            page = self.add_page(index / PAGE_ENTRIES);
        }
        &mut self.pages[page * PAGE_ENTRIES + index % PAGE_ENTRIES]
    }

    #[cold]
    fn add_page(&mut self, owner: usize) -> usize {
        let page = self.owners.len();
        self.owners.push(owner as u32);
        self.pages.resize(self.pages.len() + PAGE_ENTRIES, T::default());
        self.directory[owner] = page as u32;
        page
    }

    #[inline]
    pub(crate) fn set(&mut self, index: u32, value: T) {
        // What is zero stays without a page.
        if value != T::default() || self.get(index) != value {
            *self.entry(index) = value;
        }
    }

    /// The entries that are not zero, in no particular order.
    pub(crate) fn nonzero(&self) -> impl Iterator<Item = (u32, T)> + '_ {
        let whole = self.directory.is_empty().then_some((0, self.pages.as_slice()));
        let paged = self.owners.iter().enumerate().skip(1).map(|(page, owner)| {
            let entries = &self.pages[page * PAGE_ENTRIES..(page + 1) * PAGE_ENTRIES];
            (*owner as usize * PAGE_ENTRIES, entries)
        });
        whole.into_iter().chain(paged).flat_map(|(first, entries)| {
            let told = entries.iter().enumerate().filter(|(_, value)| **value != T::default());
            told.map(move |(place, value)| ((first + place) as u32, *value))
        })
    }

    /// Entries that memory is kept for.
    #[cfg(test)]
    pub(crate) fn kept_entries(&self) -> usize {
        self.pages.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Paged;

    #[test]
    fn what_is_written_is_read_and_the_rest_is_zero() {
        for entries in [1000, super::WHOLE_ENTRIES_MAX, super::WHOLE_ENTRIES_MAX + 1] {
            let mut table = Paged::<u32>::new(entries);
            let last = entries - 1;
            table.set(0, 7);
            table.set(last, 9);
            *table.entry(65) += 3;
            assert_eq!((table.get(0), table.get(last), table.get(65)), (7, 9, 3));
            assert_eq!((table.get(1), table.get(64), table.get(500)), (0, 0, 0));
            let mut found: Vec<_> = table.nonzero().collect();
            found.sort_unstable();
            assert_eq!(found, [(0, 7), (65, 3), (last, 9)]);
        }
    }

    #[test]
    fn only_pages_that_are_written_take_room() {
        let mut table = Paged::<u32>::new(u32::MAX - 2);
        table.set(3_000_000_000, 1);
        table.set(5, 0);
        assert_eq!(table.kept_entries(), 2 * super::PAGE_ENTRIES);
        table.set(3_000_000_000, 0);
        assert_eq!(table.nonzero().next(), None);
    }
}
