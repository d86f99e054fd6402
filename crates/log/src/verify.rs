//! Checks everything a log promises about its own state.

use super::log::{Log, WAITING};
use super::policy::placement::Placement;
use super::segment_table::{NONE, State};

impl<P: Placement> Log<P> {
    /// Checks the invariants, in time proportional to the log: every block is in one place, live
    /// bits and counts agree with the map, and free, live and dead slots make up the capacity.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn verify(&self) {
        self.index.verify();
        let mut live_slots = 0_u64;
        let mut live_blocks = 0_u64;
        for (block, place) in self.map.iter().enumerate() {
            let slot = match *place {
                NONE => continue,
                waiting if waiting & WAITING != 0 => {
                    let entry = self.buffers.entries[(waiting & !WAITING) as usize];
                    assert_eq!(entry.block as usize, block, "block {block} waits elsewhere");
                    entry.old
                }
                slot => slot,
            };
            live_blocks += 1;
            if slot != NONE {
                live_slots += 1;
                assert_eq!(self.table.owner[slot as usize] as usize, block);
                assert!(self.table.is_live(slot), "block {block} in a dead slot {slot}");
            }
        }
        assert_eq!(live_blocks, self.live_blocks, "live blocks");
        self.verify_segments(live_slots);
    }

    fn verify_segments(&self, live_slots: u64) {
        let shape = &self.table.shape;
        // Looked up below, one byte a segment: a search for each would take their number squared.
        let mut listed = vec![false; shape.segments() as usize];
        for (zone, free) in self.free.iter().enumerate() {
            for segment in free {
                assert_eq!(shape.zone_of(*segment), zone, "segment {segment} is free elsewhere");
                assert!(!listed[*segment as usize], "segment {segment} is free twice");
                listed[*segment as usize] = true;
            }
        }
        let (mut free, mut unwritten, mut live, mut dead, mut dead_sealed) = (0, 0, 0, 0, 0);
        for segment in 0..shape.segments() {
            let (first, end) = self.table.bounds(segment);
            let bits = (first..end).filter(|slot| self.table.is_live(*slot)).count() as u64;
            assert_eq!(bits, u64::from(self.table.live[segment as usize]), "segment {segment}");
            let blocks = u64::from(end - first);
            let zone = shape.zone_of(segment);
            let indexed = self.index.utilization[zone].contains(segment);
            live += bits;
            match self.table.state[segment as usize] {
                State::FREE => {
                    assert_eq!(bits, 0, "live blocks in free segment {segment}");
                    assert!(listed[segment as usize], "free segment {segment} is not listed");
                    free += blocks;
                }
                State::OPEN => {
                    let open = self.open.iter().find(|open| open.segment == segment);
                    let open = open.expect("an open segment belongs to a log");
                    unwritten += u64::from(open.end - open.next);
                    dead += u64::from(open.next - first) - bits;
                }
                State::SEALED => {
                    let order = &self.index.utilization[zone];
                    let known = u64::from(order.live(segment));
                    assert_eq!(known, bits.min(u64::from(order.exact_below())));
                    assert!(bits > 0, "segment {segment} is empty and not free");
                    dead += blocks - bits;
                    dead_sealed += blocks - bits;
                }
                State::CHANGED => {
                    dead += blocks - bits;
                    dead_sealed += blocks - bits;
                }
                _ => panic!("segment {segment} is left half collected"),
            }
            let full = self.table.state[segment as usize].is_full();
            assert_eq!(indexed, full, "segment {segment} in the index");
        }
        assert_eq!(live, live_slots, "live slots that no block names");
        assert_eq!(live, self.table.live_slots, "live slots");
        assert_eq!(dead_sealed, self.dead_sealed(), "dead blocks of full segments");
        assert_eq!(live + dead, self.written_slots, "written slots");
        assert_eq!(free + unwritten + live + dead, shape.capacity_blocks(), "capacity");
    }
}
