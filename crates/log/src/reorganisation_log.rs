//! State of the reorganisation log.

use super::segment_table::NONE;

/// State of the reorganisation log beside its open segment.
#[derive(Debug, Clone)]
pub(crate) struct Reorganisation {
    /// Places to be patched, with their blocks.
    pub(crate) patches: Vec<(u32, u32)>,
    /// The segment opened last.
    pub(super) last: u32,
    /// The segment that the next is to be near, whatever the last was.
    pub(super) aim: Option<u32>,
    /// Blocks and slots at work.
    pub(super) members: Vec<u32>,
    pub(super) slots: Vec<u32>,
}

impl Default for Reorganisation {
    fn default() -> Self {
        Self { patches: Vec::new(), last: NONE, aim: None, members: Vec::new(), slots: Vec::new() }
    }
}
