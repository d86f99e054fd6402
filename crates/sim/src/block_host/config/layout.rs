//! The `[layout]` table: which layout, and its choices.

mod file_system;
mod write_ahead;
mod write_anywhere;

use agewell_layout::sequential::Order;
use agewell_log::Victim;
use serde_json::{Value, json};

use super::log_layout::LogLayout;
use crate::config::{ConfigError, Table};
pub use file_system::{EarlyLayout, FastLayout, MetadataChoice};
pub use write_ahead::WriteAheadLayout;
pub use write_anywhere::WriteAnywhereLayout;

/// Bytes of a block where nothing else is said (Matthews 1999, §5.2.2).
pub(super) const BLOCK_BYTES: u64 = 8192;

/// Bytes of a write buffer of a layout that has no segments; as the default of a log.
const BUFFER_BYTES: u64 = 256 << 10;

/// A layout and its choices.
#[derive(Debug, Clone, PartialEq)]
pub enum Layout {
    /// A log.
    Log(LogLayout),
    /// Files placed sequentially, updated in place.
    Sequential(SequentialLayout),
    /// Every version of a block in a new place.
    WriteAnywhere(WriteAnywhereLayout),
    /// The Fast File System.
    Fast(FastLayout),
    /// The file system of early UNIX.
    Early(EarlyLayout),
    /// A journal around one that updates in place.
    WriteAhead(WriteAheadLayout),
}

/// The simple layout that updates in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequentialLayout {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How a buffer is sent.
    pub order: Order,
}

#[derive(Clone, Copy)]
enum Kind {
    Log,
    Sequential,
    WriteAnywhere,
    Fast { realloc: bool },
    Early,
    WriteAhead,
}

const KINDS: &[(&str, Kind)] = &[
    ("lfs", Kind::Log),
    ("sequential", Kind::Sequential),
    ("write-anywhere", Kind::WriteAnywhere),
    ("ffs", Kind::Fast { realloc: false }),
    ("ffs+realloc", Kind::Fast { realloc: true }),
    ("early-unix", Kind::Early),
    ("write-ahead", Kind::WriteAhead),
];

const ORDERS: &[(&str, Order)] = &[("place", Order::Place), ("written", Order::Written)];

impl Layout {
    pub(super) fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[layout]", value)?;
        let layout = match table.choice("kind", KINDS, None)? {
            Kind::Log => return Ok(Self::Log(LogLayout::read(table)?)),
            Kind::Sequential => Self::Sequential(SequentialLayout::read(&mut table)?),
            Kind::WriteAnywhere => Self::WriteAnywhere(WriteAnywhereLayout::read(&mut table)?),
            Kind::Fast { realloc } => Self::Fast(FastLayout::read(&mut table, realloc)?),
            Kind::Early => Self::Early(EarlyLayout::read(&mut table)?),
            Kind::WriteAhead => Self::WriteAhead(WriteAheadLayout::read(&mut table)?),
        };
        table.finish()?;
        Ok(layout)
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        match self {
            Self::Log(log) => log.block_bytes,
            Self::Sequential(sequential) => sequential.block_bytes,
            Self::WriteAnywhere(anywhere) => anywhere.block_bytes,
            Self::Fast(fast) => fast.block_bytes,
            Self::Early(early) => early.block_bytes,
            Self::WriteAhead(ahead) => ahead.inner.block_bytes(),
        }
    }

    /// Blocks of a write buffer that is as large as a segment.
    #[must_use]
    pub fn segment_blocks(&self) -> u32 {
        match self {
            Self::Log(log) => log.segment_blocks(),
            _ => (BUFFER_BYTES / self.block_bytes()).max(1) as u32,
        }
    }

    /// Whether it asks which blocks are in the host's cache.
    pub(crate) fn tracks_cache(&self) -> bool {
        matches!(self, Self::Log(log) if log.victim == Victim::CostAgeCache)
    }

    pub(super) fn resolved(&self) -> Value {
        match self {
            Self::Log(log) => log.resolved(),
            Self::Sequential(sequential) => sequential.resolved(),
            Self::WriteAnywhere(anywhere) => anywhere.resolved(),
            Self::Fast(fast) => fast.resolved(),
            Self::Early(early) => early.resolved(),
            Self::WriteAhead(ahead) => ahead.resolved(),
        }
    }
}

impl SequentialLayout {
    fn read(table: &mut Table) -> Result<Self, ConfigError> {
        Ok(Self {
            block_bytes: read_block_bytes(table)?,
            order: table.choice("order", ORDERS, Some(Order::Place))?,
        })
    }

    fn resolved(self) -> Value {
        let order = ORDERS.iter().find(|(_, order)| *order == self.order);
        json!({
            "kind": "sequential",
            "block_size": format!("{} B", self.block_bytes),
            "order": order.expect("every order stands in its table of names").0,
        })
    }
}

/// The key `block_size`.
pub(super) fn read_block_bytes(table: &mut Table) -> Result<u64, ConfigError> {
    let block_bytes = table.bytes("block_size")?.unwrap_or(BLOCK_BYTES);
    if block_bytes == 0 || !block_bytes.is_multiple_of(512) {
        return Err(table.invalid("block_size", "must be a whole number of 512-byte sectors"));
    }
    Ok(block_bytes)
}
