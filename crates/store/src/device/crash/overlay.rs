//! What lies over an image: extents that do not overlap, the latest on top.

use super::image::Source;

/// What of an extent is left when its beginning is cut off.
pub(super) trait Skip: Clone {
    fn skip(&self, bytes: u64) -> Self;
}

impl Skip for Source {
    fn skip(&self, bytes: u64) -> Self {
        Source::skip(self, bytes)
    }
}

/// A run of bytes, and what they are.
#[derive(Debug, Clone)]
pub(super) struct Extent<S> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) source: S,
}

/// Extents in the order of their places.
#[derive(Debug, Clone)]
pub(super) struct Overlay<S> {
    extents: Vec<Extent<S>>,
}

impl<S: Skip> Overlay<S> {
    /// Nothing, with room for `extents`.
    pub(super) fn with_capacity(extents: usize) -> Self {
        Self { extents: Vec::with_capacity(extents) }
    }

    pub(super) fn extents(&self) -> &[Extent<S>] {
        &self.extents
    }

    /// Replaces what lies from `start` up to `end`.
    pub(super) fn insert(&mut self, start: u64, end: u64, source: S) {
        if start == end {
            return;
        }
        let first = self.extents.partition_point(|extent| extent.end <= start);
        let behind = self.extents[first..].iter().take_while(|extent| extent.start < end).count();
        let new = Extent { start, end, source };
        if behind == 0 {
            self.extents.insert(first, new);
            return;
        }
        let last = &self.extents[first + behind - 1];
        let after = (last.end > end).then(|| Extent {
            start: end,
            end: last.end,
            source: last.source.skip(end - last.start),
        });
        let begun = &self.extents[first];
        let before = (begun.start < start).then(|| Extent { end: start, ..begun.clone() });
        let instead = before.into_iter().chain([new]).chain(after);
        self.extents.splice(first..first + behind, instead);
    }
}

impl Overlay<Source> {
    /// Fills `into` with what lies from `offset` on; `below` is asked for what is not covered.
    pub(super) fn read(&self, offset: u64, into: &mut [u8], below: impl Fn(u64, &mut [u8])) {
        let end = offset + into.len() as u64;
        let first = self.extents.partition_point(|extent| extent.end <= offset);
        let mut at = offset;
        for extent in self.extents[first..].iter().take_while(|extent| extent.start < end) {
            let (from, to) = (extent.start.max(offset), extent.end.min(end));
            below(at, &mut into[(at - offset) as usize..(from - offset) as usize]);
            let part = &mut into[(from - offset) as usize..(to - offset) as usize];
            extent.source.skip(from - extent.start).copy_to(from, part);
            at = to;
        }
        below(at, &mut into[(at - offset) as usize..]);
    }
}
