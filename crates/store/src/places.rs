//! Where inline records may go, and what they repeat.
//!
//! A reader that finds an inline record knows of all before it. So it must look where they are even if a ring
//! record is lost: each segment that takes inline records is named by two that last, or by the root, of which
//! there are two. And what has room for it has a copy of the last ring record.

use agewell_log::OpenSegment;

use crate::format::{ANNOUNCED_FREE_MAX, Geometry, NONE, RingRecord, Root};
use crate::seeded::{SeededFault, is_seeded};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// First slots of segments where, or behind which, the next inline records may go.
    now: Vec<u32>,
    /// The same of those in holes.
    holes: Vec<u32>,
    /// Both when the last ring record is on the medium.
    coming: Option<(Vec<u32>, Vec<u32>)>,
    /// What the last ring record names, or the root if it is younger: the first slot of each segment where
    /// a reader looks.
    named: Vec<u32>,
    /// The same of the one before.
    named_before: Vec<u32>,
    /// The copy of the last ring record that is on the medium, and of the one that will be.
    copy: Vec<u8>,
    coming_copy: Option<Vec<u8>>,
}

impl Places {
    /// Of a store of which the last ring record, or the root, names these slots.
    pub(crate) fn after(named: Vec<u32>) -> Self {
        Self { named, ..Self::default() }
    }

    /// Where the next inline records may go, and behind.
    pub(crate) fn now(&self) -> &[u32] {
        &self.now
    }

    /// Whether an inline record may go into `slot`, a hole.
    pub(crate) fn may_be(&self, geometry: &Geometry, slot: u32) -> bool {
        self.holes.iter().any(|first| geometry.is_behind(*first, slot))
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
        // Whichever of the two a reader goes by, it looks there.
        let again = |place: &u32, named: &[u32]| {
            if is_seeded(SeededFault::NamedOnce) {
                return Some(*place);
            }
            let before = named.iter().filter(|named| segment_of(named) == segment_of(place));
            before.min().map(|before| *place.max(before))
        };
        let twice: Vec<u32> = places.iter().filter_map(|place| again(place, &self.named)).collect();
        let thrice = twice.iter().filter_map(|place| again(place, &self.named_before)).collect();
        self.coming = Some((twice, thrice));
        self.named_before = std::mem::replace(&mut self.named, places);
        if geometry.packs {
            self.coming_copy = Some(record.as_copy(geometry, at));
        }
    }

    /// `root` is on the medium, at both its places, and nothing is in the ring.
    pub(crate) fn root_written(&mut self, root: &Root) {
        self.now = root.open.iter().map(|open| open.next).collect();
        self.holes.clone_from(&self.now);
        self.named.clone_from(&self.now);
        self.named_before.clone_from(&self.now);
        (self.coming, self.coming_copy) = (None, None);
        self.copy.clear();
    }

    /// Everything written is on the medium.
    pub(crate) fn flushed(&mut self) {
        if let Some(coming) = self.coming.take() {
            // A place that is not named any more is none: a reader does not look there. Who kept it would
            // need several segments that come free without a record between to be found out, which loads
            // rarely have; so that is tested here, and not as a seeded fault.
            (self.now, self.holes) = coming;
        }
        if let Some(copy) = self.coming_copy.take() {
            self.copy = copy;
        }
    }

    /// An inline record has been written at `place`, and data behind it: the next that has its data behind
    /// it goes to `behind`, or farther, or not into that segment if `behind` is [`NONE`].
    pub(crate) fn advance(&mut self, geometry: &Geometry, place: u32, behind: u32) {
        let coming = self.coming.iter_mut().map(|coming| &mut coming.0);
        for places in std::iter::once(&mut self.now).chain(coming) {
            let before = places.iter_mut().filter(|next| geometry.is_behind(**next, place));
            before.for_each(|next| *next = behind);
            places.retain(|next| *next != NONE);
        }
    }
}

/// What a root names: the open segment, and those that will be opened next. What it names is searched at every
/// opening, so those whose holes will be filled are left to ring records.
pub(crate) fn named_by_root(
    geometry: &Geometry,
    open: Option<OpenSegment>,
    announced: &[u32],
) -> Vec<OpenSegment> {
    let of = |segment: &u32| (*segment, *segment * geometry.segment_blocks);
    let announced = announced.iter().map(of);
    let announced = announced.map(|(segment, next)| OpenSegment { segment, next, log: 0 });
    open.into_iter().chain(announced).take(1 + ANNOUNCED_FREE_MAX).collect()
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
    fn holes_take_records_where_three_ring_records_name_them() {
        let options =
            FormatOptions { block_bytes: 512, segment_blocks: 16, ..FormatOptions::new([9; 16]) };
        let geometry = Geometry::plan(1 << 20, &options).unwrap();
        let mut places = Places::after(vec![0, 16]);
        let mut write = |number: u64, open: u32, announced: &[u32], slots: [u32; 3]| {
            places.ring_written(&geometry, &record(number, open, announced), 4);
            places.flushed();
            slots.map(|slot| places.may_be(&geometry, slot))
        };
        // What was named before the last is not known of a store that was just opened.
        assert_eq!(write(7, 5, &[1, 2], [20, 7, 40]), [false, false, false]);
        assert_eq!(write(8, 5, &[1, 2], [20, 7, 40]), [true, true, false]);
        // Where one of them looks from a later slot on, only behind that.
        assert_eq!(write(9, 40, &[1, 0], [20, 7, 40]), [true, true, true]);
        assert_eq!(write(10, 40, &[2, 0], [20, 4, 36]), [false, false, false]);
        let open = [OpenSegment { segment: 3, next: 48, log: 0 }];
        places.root_written(&Root { open: open.to_vec(), ..Root::default() });
        assert!(places.may_be(&geometry, 60) && !places.may_be(&geometry, 64));
    }

    #[test]
    fn only_what_the_last_two_records_or_the_root_name_takes_inline_records() {
        let options =
            FormatOptions { block_bytes: 512, segment_blocks: 16, ..FormatOptions::new([9; 16]) };
        let geometry = Geometry::plan(1 << 20, &options).unwrap();
        let mut places = Places::after(vec![0, 16, 32]);
        assert!(places.now().is_empty() && places.copy().is_empty());
        places.ring_written(&geometry, &record(7, 5, &[1, 2, 3]), 4);
        // Not before it is on the medium.
        assert!(places.now().is_empty() && places.copy().is_empty());
        places.flushed();
        assert_eq!(places.now(), [5, 16, 32]);
        let copied = RingRecord::of_copy(places.copy());
        assert_eq!(copied, Some((4, record(7, 5, &[1, 2, 3]))));
        places.advance(&geometry, 5, 9);
        places.advance(&geometry, 16, NONE);
        assert_eq!(places.now(), [9, 32]);
        // What was named before and is not now is none, nor what is named for the first time.
        places.ring_written(&geometry, &record(8, 50, &[4, 2]), 5);
        places.advance(&geometry, 32, 40);
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
