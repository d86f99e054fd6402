//! Lists of block addresses, the contents of indirect blocks, in one arena.
//!
//! A list has room for a power of two of addresses and is replaced by one of twice the size when it
//! needs more, so that a file of 13 blocks does not cost the 8 KB that its indirect block has on
//! disk. Lists given back are used again. Address 0 is a hole.

/// Addresses in the smallest list; chosen by us.
const SMALLEST: u32 = 16;
/// Sizes of lists: up to 2^14 addresses, those of a block of 64 KB.
const SIZES: usize = 11;

/// One list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List {
    /// First word over `SMALLEST`.
    at: u32,
    size: u32,
}

impl List {
    /// How many addresses there is room for.
    #[inline]
    pub(crate) fn capacity(self) -> u32 {
        SMALLEST << self.size
    }
}

/// All lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockLists {
    words: Vec<u32>,
    free: [Vec<u32>; SIZES],
}

impl BlockLists {
    /// A list of holes with room for `length` addresses.
    pub(crate) fn create(&mut self, length: u32) -> List {
        let size = length.div_ceil(SMALLEST).next_power_of_two().trailing_zeros();
        let capacity = (SMALLEST << size) as usize;
        if let Some(at) = self.free[size as usize].pop() {
            let first = (at * SMALLEST) as usize;
            self.words[first..first + capacity].fill(0);
            return List { at, size };
        }
        let at = self.words.len() as u32 / SMALLEST;
        self.words.resize(self.words.len() + capacity, 0);
        List { at, size }
    }

    /// Gives `list` back.
    pub(crate) fn discard(&mut self, list: List) {
        self.free[list.size as usize].push(list.at);
    }

    /// The addresses of `list`.
    #[inline]
    pub(crate) fn all(&self, list: List) -> &[u32] {
        let first = list.at as usize * SMALLEST as usize;
        &self.words[first..first + list.capacity() as usize]
    }

    /// One address; 0 behind the end.
    #[inline]
    pub(crate) fn get(&self, list: List, index: u32) -> u32 {
        self.all(list).get(index as usize).copied().unwrap_or(0)
    }

    /// Sets one address; `list` moves if it has no room for it.
    #[inline]
    pub(crate) fn set(&mut self, list: &mut List, index: u32, address: u32) {
        if index >= list.capacity() {
            let larger = self.create(index + 1);
            let (from, length) = (list.at as usize * SMALLEST as usize, list.capacity() as usize);
            let to = larger.at as usize * SMALLEST as usize;
            self.words.copy_within(from..from + length, to);
            self.discard(*list);
            *list = larger;
        }
        self.words[list.at as usize * SMALLEST as usize + index as usize] = address;
    }
}
