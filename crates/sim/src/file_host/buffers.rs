//! The buffer cache: which sectors are in memory, and which of them the device does not have yet.
//!
//! Buffers are blocks of the device, kept in the order of their last use. A buffer knows which of
//! its sectors it holds, because a file system with fragments reads and writes parts of blocks.
//! What leaves the cache dirty has to be written by the caller.

use std::collections::BTreeMap;

use crate::cache::{Cache, Eviction};

/// A run of sectors: the first, and how many.
type Run = (u64, u64);

/// The sectors of a buffer that are in memory, and of those the ones to be written: a bit each.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    valid: u64,
    dirty: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Buffers {
    order: Cache,
    held: BTreeMap<u32, Held>,
    sectors: u64,
    capacity: usize,
    keys: usize,
}

impl Buffers {
    /// `capacity` empty buffers of `sectors` (at most 64) each, over a device of `keys` of them.
    pub(super) fn new(capacity: usize, keys: usize, sectors: u64) -> Self {
        assert!((1..=64).contains(&sectors), "buffers of {sectors} sectors");
        let order = Cache::new(Eviction::Lru, capacity, keys);
        Self { order, held: BTreeMap::new(), sectors, capacity, keys }
    }

    /// Whether all of it is in memory; then it counts as used.
    pub(super) fn holds(&mut self, sector: u64, sectors: u64) -> bool {
        let all = self.parts(sector, sectors).all(|(buffer, mask)| {
            self.held.get(&buffer).is_some_and(|held| held.valid & mask == mask)
        });
        if all {
            for (buffer, _) in self.parts(sector, sectors) {
                self.order.reference(buffer);
            }
        }
        all
    }

    /// It was read. Returns what has to be written to make room.
    pub(super) fn filled(&mut self, sector: u64, sectors: u64) -> Vec<Run> {
        self.change(sector, sectors, |held, mask| held.valid |= mask)
    }

    /// It is being written to the device. Returns what has to be written to make room.
    pub(super) fn written(&mut self, sector: u64, sectors: u64) -> Vec<Run> {
        self.change(sector, sectors, |held, mask| {
            held.valid |= mask;
            held.dirty &= !mask;
        })
    }

    /// It was changed in memory only. Returns what has to be written to make room.
    pub(super) fn dirtied(&mut self, sector: u64, sectors: u64) -> Vec<Run> {
        self.change(sector, sectors, |held, mask| {
            held.valid |= mask;
            held.dirty |= mask;
        })
    }

    fn change(&mut self, sector: u64, sectors: u64, set: impl Fn(&mut Held, u64)) -> Vec<Run> {
        let mut out = Vec::new();
        if self.capacity == 0 {
            // Without a cache a delayed write has nowhere to wait.
            let mut held = Held::default();
            set(&mut held, 1);
            if held.dirty != 0 {
                out.push((sector, sectors));
            }
            return out;
        }
        // Those that are there first: what is on its way to the device anyway must not be evicted
        // dirty by its own neighbour.
        for (buffer, mask) in self.parts(sector, sectors) {
            if let Some(held) = self.held.get_mut(&buffer) {
                set(held, mask);
                self.order.reference(buffer);
            }
        }
        for (buffer, mask) in self.parts(sector, sectors) {
            if let Some(evicted) = self.order.insert(buffer)
                && let Some(held) = self.held.remove(&evicted)
            {
                self.runs(evicted, held.dirty, &mut out);
            }
            set(self.held.entry(buffer).or_default(), mask);
        }
        out
    }

    /// All that has to be written, by address; it is clean from now on.
    pub(super) fn take_dirty(&mut self) -> Vec<Run> {
        let mut out = Vec::new();
        let mut held = std::mem::take(&mut self.held);
        for (buffer, held) in &mut held {
            self.runs(*buffer, held.dirty, &mut out);
            held.dirty = 0;
        }
        self.held = held;
        out
    }

    /// Forgets everything, written or not.
    pub(super) fn clear(&mut self) {
        self.order = Cache::new(Eviction::Lru, self.capacity, self.keys);
        self.held.clear();
    }

    /// The buffers that `sectors` from `sector` on touch, and which sectors of each.
    fn parts(&self, sector: u64, sectors: u64) -> impl Iterator<Item = (u32, u64)> + use<> {
        let size = self.sectors;
        let end = sector + sectors;
        (sector / size..end.div_ceil(size)).map(move |buffer| {
            let from = sector.saturating_sub(buffer * size);
            let to = (end - buffer * size).min(size);
            let below = |bits: u64| if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            (buffer as u32, below(to) & !below(from))
        })
    }

    /// The runs of sectors of `buffer` whose bits are set in `mask`.
    fn runs(&self, buffer: u32, mut mask: u64, out: &mut Vec<Run>) {
        while mask != 0 {
            let first = u64::from(mask.trailing_zeros());
            let length = u64::from((mask >> first).trailing_ones());
            out.push((u64::from(buffer) * self.sectors + first, length));
            mask =
                if first + length == 64 { 0 } else { mask >> (first + length) << (first + length) };
        }
    }
}
