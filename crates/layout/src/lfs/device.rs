//! The seam between the log and whatever carries out its transfers.

/// Why blocks are transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// New data, appended to a log.
    NewData = 0,
    /// New data, threaded into the holes of a segment.
    Thread = 1,
    /// A segment is read to be collected.
    CollectRead = 2,
    /// Collected blocks, appended to a log.
    CollectWrite = 3,
    /// Collected blocks, written into holes.
    Plug = 4,
    /// A segment header is read because a hole of the segment will be filled.
    HeaderRead = 5,
    /// A segment header is written because a hole of the segment has been filled.
    HeaderWrite = 6,
}

impl Purpose {
    /// Every purpose, in the order of its number.
    pub const ALL: [Purpose; 7] = [
        Purpose::NewData,
        Purpose::Thread,
        Purpose::CollectRead,
        Purpose::CollectWrite,
        Purpose::Plug,
        Purpose::HeaderRead,
        Purpose::HeaderWrite,
    ];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Purpose::NewData => "new_data",
            Purpose::Thread => "thread",
            Purpose::CollectRead => "collect_read",
            Purpose::CollectWrite => "collect_write",
            Purpose::Plug => "plug",
            Purpose::HeaderRead => "header_read",
            Purpose::HeaderWrite => "header_write",
        }
    }

    /// Whether the disk is written.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Purpose::CollectRead | Purpose::HeaderRead)
    }
}

/// One transfer of neighbouring blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Why.
    pub purpose: Purpose,
    /// First slot; it and those that follow belong to one segment.
    pub slot: u32,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of headers moved beside the blocks.
    pub header_bytes: u32,
    /// Whether the transfer before it went to the same segment in the same piece of work, so that
    /// the arm is there (Matthews 1999, §5.4.1: half a rotation and no seek).
    pub further: bool,
}

impl Transfer {
    /// Blocks alone, by themselves.
    #[must_use]
    #[inline]
    pub fn of_blocks(purpose: Purpose, slot: u32, blocks: u32) -> Self {
        Self { purpose, slot, blocks, header_bytes: 0, further: false }
    }

    /// Bytes moved, where a block is `block_bytes`.
    #[must_use]
    #[inline]
    pub fn bytes(&self, block_bytes: u64) -> u64 {
        u64::from(self.blocks) * block_bytes + u64::from(self.header_bytes)
    }
}

/// Carries out, prices or records what a log does.
pub trait LogDevice {
    /// A transfer. `contents` are the blocks whose data is moved, one a slot, for writes; nothing
    /// for reads.
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]);

    /// Everything transferred before is now what the map on disk says; slots that this frees may be
    /// written from here on.
    fn commit(&mut self) {}
}

/// A device that costs nothing, for counting blocks alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unpriced;

impl LogDevice for Unpriced {
    #[inline]
    fn transfer(&mut self, _transfer: &Transfer, _contents: &[u32]) {}
}
