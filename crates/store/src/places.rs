//! Where inline records may go, and what they repeat.
//!
//! A reader that finds an inline record knows of all before it. So it must look where they are even if a ring
//! record is lost: each segment that takes inline records is named by two that last, or by the root, of which
//! there are two. And what has room for it has a copy of the last ring record.

use agewell_log::OpenSegment;

use crate::format::{Geometry, NONE, RingRecord, Root};
use crate::seeded::{SeededFault, is_seeded};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Slots where the next of a segment may go.
    now: Vec<u32>,
    /// The same when the last ring record is on the medium.
    coming: Option<Vec<u32>>,
    /// Segments that the last ring record names, or the root if it is younger.
    named: Vec<u32>,
    /// The copy of the last ring record that is on the medium, and of the one that will be.
    copy: Vec<u8>,
    coming_copy: Option<Vec<u8>>,
}

impl Places {
    /// Of a store of which the last ring record, or the root, names these segments.
    pub(crate) fn named_before(named: Vec<u32>) -> Self {
        Self { named, ..Self::default() }
    }

    /// Where the next inline records may go.
    pub(crate) fn now(&self) -> &[u32] {
        &self.now
    }

    /// What is repeated in records.
    pub(crate) fn copy(&self) -> &[u8] {
        &self.copy
    }

    /// A record has been written to the ring at `at`.
    pub(crate) fn ring_written(&mut self, geometry: &Geometry, record: &RingRecord, at: u32) {
        let first = |segment: &u32| segment * geometry.segment_blocks;
        let open = record.open.iter().map(|open| open.next);
        let places: Vec<u32> = open.chain(record.announced.iter().map(first)).collect();
        let segment_of = |place: &u32| place / geometry.segment_blocks;
        let twice = |place: &u32| {
            self.named.contains(&segment_of(place)) || is_seeded(SeededFault::NamedOnce)
        };
        self.coming = Some(places.iter().copied().filter(twice).collect());
        self.named = places.iter().map(segment_of).collect();
        if geometry.packs {
            self.coming_copy = Some(record.as_copy(geometry, at));
        }
    }

    /// `root` is on the medium, at both its places, and nothing is in the ring.
    pub(crate) fn root_written(&mut self, root: &Root) {
        self.now = root.open.iter().map(|open| open.next).collect();
        self.named = root.open.iter().map(|open| open.segment).collect();
        (self.coming, self.coming_copy) = (None, None);
        self.copy.clear();
    }

    /// Everything written is on the medium.
    pub(crate) fn flushed(&mut self) {
        if let Some(coming) = self.coming.take() {
            // A place that is not named any more is none: a reader does not look there. Who kept it would
            // need several segments that come free without a record between to be found out, which loads
            // rarely have; so that is tested here, and not as a seeded fault.
            self.now = coming;
        }
        if let Some(copy) = self.coming_copy.take() {
            self.copy = copy;
        }
    }

    /// An inline record has been written at `place`; `behind` it and its data is room for the next, unless
    /// that is [`NONE`].
    pub(crate) fn advance(&mut self, place: u32, behind: u32) {
        for places in std::iter::once(&mut self.now).chain(&mut self.coming) {
            places.iter_mut().filter(|next| **next == place).for_each(|next| *next = behind);
            places.retain(|next| *next != NONE);
        }
    }
}

/// What a root names: the open segment, and those that will be opened next.
pub(crate) fn named_by_root(
    geometry: &Geometry,
    open: Option<OpenSegment>,
    free: &[u32],
) -> Vec<OpenSegment> {
    let of = |segment: &u32| (*segment, *segment * geometry.segment_blocks);
    let announced = free.iter().map(of);
    let announced = announced.map(|(segment, next)| OpenSegment { segment, next, log: 0 });
    open.into_iter().chain(announced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FormatOptions, Kind, Runs};

    fn record(number: u64, open: u32, announced: &[u32]) -> RingRecord {
        RingRecord {
            incarnation: 1,
            number,
            sequence: 3,
            flushed: 3,
            kind: Kind::Checkpoint,
            open: vec![OpenSegment { segment: open / 16, next: open, log: 0 }],
            announced: announced.to_vec(),
            runs: Runs::default(),
            copy: Vec::new(),
        }
    }

    #[test]
    fn only_what_the_last_two_records_or_the_root_name_takes_inline_records() {
        let options =
            FormatOptions { block_bytes: 512, segment_blocks: 16, ..FormatOptions::new([9; 16]) };
        let geometry = Geometry::plan(1 << 20, &options).unwrap();
        let mut places = Places::named_before(vec![0, 1, 2]);
        assert!(places.now().is_empty() && places.copy().is_empty());
        places.ring_written(&geometry, &record(7, 5, &[1, 2, 3]), 4);
        // Not before it is on the medium.
        assert!(places.now().is_empty() && places.copy().is_empty());
        places.flushed();
        assert_eq!(places.now(), [5, 16, 32]);
        let copied = RingRecord::of_copy(places.copy());
        assert_eq!(copied, Some((4, record(7, 5, &[1, 2, 3]))));
        places.advance(5, 9);
        places.advance(16, NONE);
        assert_eq!(places.now(), [9, 32]);
        // What was named before and is not now is none, nor what is named for the first time.
        places.ring_written(&geometry, &record(8, 50, &[4, 2]), 5);
        places.advance(32, 40);
        assert_eq!(places.now(), [9, 40]);
        places.flushed();
        assert_eq!(places.now(), [50, 40]);
        places.flushed();
        assert_eq!(places.now(), [50, 40]);
        let open = [60, 64].map(|next| OpenSegment { segment: next / 16, next, log: 0 });
        places.root_written(&Root { open: open.to_vec(), ..Root::default() });
        assert_eq!((places.now(), places.copy().len()), (&[60, 64][..], 0));
        // The root lies twice: its names count as two.
        places.ring_written(&geometry, &record(9, 64, &[5]), 6);
        places.flushed();
        assert_eq!(places.now(), [64]);
    }
}
