//! Errors of a log.

/// Why a log of this shape cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A segment of no blocks, or no segments.
    #[error("a log needs segments of one block or more, and more than one of them")]
    Empty,
    /// Slots are numbered with 31 bits.
    #[error("{slots} slots of blocks are more than a log can number (2^31); use larger blocks")]
    TooManySlots {
        /// Slots asked for, with the padding of segments to a power of two.
        slots: u64,
    },
    /// The blocks do not fit, or leave nothing to work with.
    #[error(
        "{live} live blocks do not fit into {capacity} blocks ({segments} segments): a log needs \
         {spare} segments beyond its live data to collect into; lower the utilization or use \
         smaller segments"
    )]
    TooFull {
        /// Blocks that are to be live.
        live: u64,
        /// Blocks that the log can hold.
        capacity: u64,
        /// Its segments.
        segments: u32,
        /// Segments it keeps free or open.
        spare: u32,
    },
}

/// Why a log cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No segment can be freed by any number of copies.
    #[error(
        "the log is full: {live} of {capacity} blocks are live, the rest lies in pieces that no \
         collection can gather; lower the utilization or use smaller segments"
    )]
    Full {
        /// Live blocks.
        live: u64,
        /// Blocks that the log can hold.
        capacity: u64,
    },
}
