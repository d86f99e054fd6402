//! Contents of directories: the number of entries in each 512 bytes.
//!
//! An entry goes into the first chunk with room; one that is removed leaves room in its chunk;
//! empty chunks at the end go with the next entry that is made (4.4BSD's `ufs_direnter`).

use super::geometry::Geometry;

/// The chunks of one directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Contents {
    /// Entries of each chunk; those for itself and its parent count in the first.
    used: Vec<u16>,
    /// No chunk before this one has room.
    first_open: u32,
    /// Entries beside those for itself and its parent.
    pub(crate) entries: u32,
}

/// The effect of an entry on its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The chunk it goes into.
    pub(crate) chunk: u32,
    /// Chunks of the directory afterwards.
    pub(crate) chunks: u32,
}

impl Contents {
    /// Entries that stand for the directory itself and its parent: 12 bytes each.
    fn of_itself(geometry: &Geometry) -> u16 {
        24_u32.div_ceil(super::geometry::DIRECTORY_CHUNK_BYTES / geometry.entries_per_chunk) as u16
    }

    /// An empty directory.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { used: vec![Self::of_itself(geometry)], first_open: 0, entries: 0 }
    }

    /// Chunks it has.
    pub(crate) fn chunks(&self) -> u32 {
        self.used.len() as u32
    }

    /// Where the next entry goes, if there is room for the directory to grow.
    pub(crate) fn place(&mut self, geometry: &Geometry) -> Place {
        let full = geometry.entries_per_chunk as u16;
        while self.used.get(self.first_open as usize).is_some_and(|used| *used >= full) {
            self.first_open += 1;
        }
        let chunk = self.first_open;
        let useful = self.used.iter().rposition(|used| *used > 0).map_or(0, |at| at as u32 + 1);
        Place { chunk, chunks: useful.max(chunk + 1) }
    }

    /// Makes an entry there.
    pub(crate) fn insert(&mut self, place: Place) {
        self.used.resize(place.chunks as usize, 0);
        self.used[place.chunk as usize] += 1;
        self.entries += 1;
    }

    /// Removes an entry of `chunk`.
    pub(crate) fn remove(&mut self, chunk: u32) {
        self.used[chunk as usize] -= 1;
        self.first_open = self.first_open.min(chunk);
        self.entries -= 1;
    }

    /// Whether it is what the entries of `chunks` make it: for checks.
    pub(crate) fn agrees(&self, geometry: &Geometry, chunks: &[u32]) -> bool {
        let mut used = vec![0_u16; self.used.len()];
        used[0] = Self::of_itself(geometry);
        for chunk in chunks {
            used[*chunk as usize] += 1;
        }
        let full = geometry.entries_per_chunk as u16;
        let closed = &self.used[..self.first_open.min(self.chunks()) as usize];
        used == self.used
            && self.entries as usize == chunks.len()
            && closed.iter().all(|used| *used >= full)
            && used.iter().all(|used| *used <= full)
    }
}
