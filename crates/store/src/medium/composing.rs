//! What is written for a group: its data where it goes, and its records near it or in the ring.

use std::collections::BTreeSet;

use agewell_log::OpenSegment;

use crate::aligned::AlignedBytes;
use crate::composed::Composed;
use crate::device::Disk;
use crate::format::{
    DAMAGED, InlineRecord, Kind, NONE, Named, RING_RECORD_BLOCKS_MAX, RingRecord, Run, Runs,
    short_sum,
};
use crate::group::{Group, Origin, PlannedRun};
use crate::seeded::{SeededFault, is_seeded};

use super::Medium;

impl<D: Disk> Medium<D> {
    /// Where in its buffer the data of a move is.
    fn range_of(&self, group: &Group, index: u32, entries: &[u32]) -> std::ops::Range<usize> {
        let bytes = self.block_bytes();
        let entry = match entries.get(index as usize) {
            Some(entry) => *entry,
            None => group.moves[index as usize].source,
        };
        entry as usize * bytes..(entry as usize + 1) * bytes
    }

    /// What is to be written for `group`.
    pub(super) fn compose(
        &self,
        group: &Group,
        data: &[u8],
        entries: &[u32],
        bad: &BTreeSet<u32>,
    ) -> Composed {
        let (bytes, sequence) = (self.block_bytes(), group.sequence as u32);
        let mut composed = Composed::default();
        for run in &group.runs {
            let mut named = Vec::with_capacity(run.blocks as usize);
            for (index, slot) in (run.first..run.first + run.blocks).zip(run.slot..) {
                let range = self.range_of(group, index, entries);
                let block = group.moves[index as usize].block;
                let mut summed_slot = slot;
                if is_seeded(SeededFault::SumOfOldSlot) && run.origin.copies() {
                    summed_slot = group.moves[index as usize].source;
                }
                let uuid = &self.geometry.uuid;
                let sum = short_sum(uuid, block, summed_slot, &data[range.clone()]);
                named.push(Named { block, sum });
                let offset = self.geometry.slot_offset(slot);
                match composed.places.last_mut() {
                    Some((first, 0, last))
                        if *first + last.len() as u64 == offset && last.end == range.start =>
                    {
                        last.end = range.end;
                    }
                    _ => composed.places.push((offset, 0, range)),
                }
            }
            if bad.range(run.first..run.first + run.blocks).next().is_none() {
                let whole = Run { first: run.slot, blocks: run.blocks, sequence };
                composed.runs.push(whole, named);
            } else {
                for (index, (slot, named)) in (run.first..).zip((run.slot..).zip(named)) {
                    let first = if bad.contains(&index) { slot | DAMAGED } else { slot };
                    composed.runs.push(Run { first, blocks: 1, sequence }, [named]);
                }
            }
        }
        self.compose_records(group, bytes, &mut composed);
        composed
    }

    /// Divides what is to be recorded between inline records and the ring.
    fn compose_records(&self, group: &Group, bytes: usize, composed: &mut Composed) {
        let hole = group.record.filter(|slot| {
            self.places.may_be(&self.geometry, *slot) || is_seeded(SeededFault::HoleNotNamed)
        });
        if let Some(slot) = hole
            && self.compose_scattered(group, slot, composed)
        {
            return;
        }
        let places = &mut self.places.now().to_vec();
        let mut in_ring = Runs::default();
        let mut inline: Vec<(u32, Vec<Named>)> = Vec::new();
        let mut origins = group.runs.iter();
        for (run, named) in composed.runs.iter() {
            let planned = origins.next();
            let may = planned.is_some_and(|planned| {
                planned.origin == Origin::Appended && planned.blocks == run.blocks
            });
            let place = run.first.wrapping_sub(1);
            let among = places.iter().position(|next| self.geometry.is_behind(*next, place));
            let fits = InlineRecord::has_room(&self.geometry, named.len(), 0, 0);
            match among {
                Some(index) if may && fits => {
                    places[index] = self.place_behind(run);
                    inline.push((place, named.to_vec()));
                }
                _ => in_ring.push(run, named.iter().copied()),
            }
        }
        let last = inline.last();
        let freed_fit = last.is_some_and(|(_, named)| {
            InlineRecord::has_room(&self.geometry, named.len(), 0, group.freed.len())
        });
        if !freed_fit {
            in_ring.push_freed(group.sequence as u32, group.freed_blocks());
        }
        let parts = (inline.len() + usize::from(!in_ring.is_empty())) as u16;
        composed.heads = AlignedBytes::zeroed(inline.len() * bytes);
        let last = inline.len().wrapping_sub(1);
        for (part, (slot, data)) in inline.iter().enumerate() {
            let has_freed = part == last && freed_fit;
            let freed = if has_freed { group.freed_blocks().collect() } else { Vec::new() };
            let record = InlineRecord {
                data: data.clone(),
                freed,
                ..self.inline_record(group.sequence, (part as u16, parts))
            };
            let range = part * bytes..(part + 1) * bytes;
            record.encode(&self.geometry, *slot, &mut composed.heads[range.clone()]);
            composed.places.push((self.geometry.slot_offset(*slot), 1, range));
        }
        composed.freed_inline = freed_fit;
        composed.inline =
            inline.into_iter().map(|(slot, data)| (slot, data.len() as u32)).collect();
        if !in_ring.is_empty() {
            let is_flushed = self.flushed == self.written && !self.rewrite_is_due;
            let may_cover = is_flushed || is_seeded(SeededFault::UnflushedCovered);
            let mut covers = self.geometry.packs && may_cover && !self.unchecked.is_empty();
            if covers {
                let mut both = self.unchecked.clone();
                in_ring.iter().for_each(|(run, named)| both.push(run, named.iter().copied()));
                covers =
                    RingRecord::blocks_for(&self.geometry, both.bytes()) <= RING_RECORD_BLOCKS_MAX;
                in_ring = if covers { both } else { in_ring };
            }
            let kind = Kind::Part { part: parts - 1, parts, covers };
            let mut record = self.ring_record(kind, group.sequence, in_ring);
            record.open = self.open_after(&group.runs).into_iter().collect();
            if covers {
                record.open.extend(self.open.map(|open| OpenSegment { log: NONE, ..open }));
            }
            record.announced.clone_from(&group.announced);
            let at = self.ring_place(record.blocks(&self.geometry));
            let encoded = record.encode(&self.geometry, at);
            let range = composed.heads.len()..composed.heads.len() + encoded.len();
            composed.heads.append(&encoded);
            let address = self.geometry.ring + u64::from(at);
            composed.places.push((self.geometry.offset(address), 1, range));
            composed.ring = Some((record, at));
        }
        if self.zones.is_some() {
            composed.fill_gaps(group, &self.geometry);
        }
        // Neighbours behind one another: a record and its data go together.
        composed.places.sort_unstable_by_key(|place| place.0);
        if let Some(zones) = self.zones {
            composed.places = zones.split(std::mem::take(&mut composed.places));
        }
    }

    /// Records all of `group`, whose data goes into holes, in `slot`, a hole as well; false if there is no room
    /// for it in one block.
    fn compose_scattered(&self, group: &Group, slot: u32, composed: &mut Composed) -> bool {
        let Runs { runs, named } = &composed.runs;
        if !InlineRecord::has_room(&self.geometry, named.len(), runs.len(), group.freed.len()) {
            return false;
        }
        let record = InlineRecord {
            data: named.clone(),
            runs: runs.iter().map(|run| (run.first, run.blocks)).collect(),
            freed: group.freed_blocks().collect(),
            ..self.inline_record(group.sequence, (0, 1))
        };
        composed.heads = AlignedBytes::zeroed(self.block_bytes());
        record.encode(&self.geometry, slot, &mut composed.heads);
        composed.inline = vec![(slot, named.len() as u32)];
        (composed.is_scattered, composed.freed_inline) = (true, true);
        composed.places.push((self.geometry.slot_offset(slot), 1, 0..self.block_bytes()));
        composed.places.sort_unstable_by_key(|place| place.0);
        true
    }

    /// Where the next inline record goes behind that of `run`: nowhere behind the end of its segment, as
    /// a reader does not go on into the one that happens to lie there.
    pub(super) fn place_behind(&self, run: Run) -> u32 {
        let next = run.first + run.blocks;
        let is_in_next = next.is_multiple_of(self.geometry.segment_blocks);
        if is_in_next && !is_seeded(SeededFault::ChainCrossesSegment) { NONE } else { next }
    }

    /// The open segment once `runs` are there.
    pub(super) fn open_after(&self, runs: &[PlannedRun]) -> Option<OpenSegment> {
        let Some(last) = runs.iter().rfind(|run| run.origin.appends()) else { return self.open };
        let early = u32::from(is_seeded(SeededFault::OpenOneTooEarly));
        let (next, blocks) = (last.slot + last.blocks - early, self.geometry.segment_blocks);
        let open = OpenSegment { segment: last.slot / blocks, next, log: 0 };
        (next % blocks > 0).then_some(open)
    }

    /// What a record says was flushed before it.
    fn flushed_said(&self, sequence: u64) -> u64 {
        if is_seeded(SeededFault::FlushedTooFar) { sequence } else { self.flushed }
    }

    /// Part `part` of `parts` of group `sequence`, which says nothing of blocks yet.
    fn inline_record(&self, sequence: u64, (part, parts): (u16, u16)) -> InlineRecord {
        InlineRecord {
            incarnation: self.incarnation,
            sequence,
            flushed: self.flushed_said(sequence),
            part,
            parts,
            data: Vec::new(),
            runs: Vec::new(),
            freed: Vec::new(),
            copy: self.places.copy().to_vec(),
        }
    }

    pub(super) fn ring_record(&self, kind: Kind, sequence: u64, runs: Runs) -> RingRecord {
        RingRecord {
            incarnation: self.incarnation,
            number: self.ring.number,
            sequence,
            flushed: self.flushed_said(sequence),
            kind,
            open: self.open.into_iter().collect(),
            announced: self.announced.clone(),
            runs,
            copy: self.places.copy().to_vec(),
        }
    }
}
