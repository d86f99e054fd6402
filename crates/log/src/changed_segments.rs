//! Segments whose new live counts are to be reported to the index of victims.

use super::segment_table::NONE;

/// Segments whose live count the index does not know yet and must know to choose, in the order in
/// which that came about. One that became free in between stays listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedSegments {
    /// As many as `count` says; the rest is room.
    pub(super) segments: Vec<u32>,
    pub(super) count: usize,
}

impl ChangedSegments {
    /// Makes room for `deaths` more.
    #[inline]
    pub(super) fn reserve(&mut self, deaths: usize) {
        if self.segments.len() - self.count < deaths {
            self.segments.resize(2 * self.count + deaths, NONE);
        }
    }

    /// The segments, to be forgotten by [`Self::forget`].
    pub(crate) fn listed(&self) -> &[u32] {
        &self.segments[..self.count]
    }

    /// None is listed any more.
    pub(crate) fn forget(&mut self) {
        self.count = 0;
    }
}
