//! The `[layout]` table: which layout, and its choices. A kind has one set of keys and defaults,
//! whichever experiment it is part of.

mod file_system;
mod log;
mod log_table;
mod reorganise;
mod write_ahead;
mod write_anywhere;

use agewell_config::{Form, Keyed, KindOfTable, TableOfKeys, choice, keys, sectors};
use agewell_layout::sequential::Order;
use agewell_log::Victim;
use serde_json::{Map, Value, json};

use super::{ConfigError, Table};
pub use file_system::{EarlyLayout, EarlyTable, FastLayout, FastTable, MetadataTable};
pub use log::{Collecting, LogLayout, LogTrigger, TwoSizes};
pub use log_table::{LogTable, PlacementChoice, ZoneSize};
pub use reorganise::Reorganise;
pub use write_ahead::WriteAheadLayout;
pub use write_anywhere::WriteAnywhereLayout;

/// Bytes of a block where nothing else is said (Matthews 1999, §5.2.2).
const BLOCK_BYTES: u64 = 8192;

/// Bytes of a write buffer of a layout that has no segments; as the default of a log.
const BUFFER_BYTES: u64 = 256 << 10;

/// Most blocks of a segment, and of a write buffer; chosen by us: 64 GiB of 4 KiB, beyond which a
/// mistake is likelier than a meaning.
pub(crate) const SEGMENT_BLOCKS_MAX: u64 = 1 << 24;

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

keys! {
    /// The block of a layout.
    pub struct BlockTable {
        /// size of a block
        <"1999, section 5.2.2">
        block_bytes: u64 = "block_size" sectors().or(BLOCK_BYTES);
    }
}

keys! {
    /// The simple layout that updates in place.
    pub struct SequentialLayout {
        /// size of a block
        <"1999, section 5.2.2">
        block_bytes: u64 = "block_size" sectors().or(BLOCK_BYTES);
        /// how a buffer is sent
        <"ours">
        order: Order = "order"
            choice(&[("place", Order::Place), ("written", Order::Written)]).or(Order::Place);
    }
}

#[derive(Clone, Copy, PartialEq)]
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

impl Layout {
    /// Reads the table of a layout of blocks.
    ///
    /// # Errors
    /// Names the key that is not known, or whose value does not do.
    pub fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[layout]", value)?;
        let layout = match table.key("kind", &choice(KINDS).required())? {
            Kind::Log => Self::Log(LogLayout::read(&mut table)?),
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
            Self::Log(log) => log.keys.block_bytes,
            Self::Sequential(sequential) => sequential.block_bytes,
            Self::WriteAnywhere(anywhere) => anywhere.block_bytes,
            Self::Fast(fast) => fast.block_bytes(),
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

    /// The table with every default filled in.
    #[must_use]
    pub fn resolved(&self) -> Value {
        let mut table = Map::new();
        table.insert("kind".into(), json!(self.kind()));
        match self {
            Self::Log(log) => LogTable::resolve(&log.keys, &mut table),
            Self::Sequential(sequential) => SequentialLayout::resolve(sequential, &mut table),
            Self::WriteAnywhere(anywhere) => anywhere.resolve(&mut table),
            Self::Fast(fast) => fast.resolve(&mut table),
            Self::Early(early) => early.resolve(&mut table),
            Self::WriteAhead(ahead) => ahead.resolve(&mut table),
        }
        Value::Object(table)
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Log(_) => "lfs",
            Self::Sequential(_) => "sequential",
            Self::WriteAnywhere(_) => "write-anywhere",
            Self::Fast(fast) => fast.kind(),
            Self::Early(_) => "early-unix",
            Self::WriteAhead(_) => "write-ahead",
        }
    }

    /// The table, for the documentation and for editors.
    #[must_use]
    pub fn table() -> TableOfKeys {
        let kind = |name, keys| KindOfTable { name, keys };
        let kinds = vec![
            kind("lfs", LogTable::keys()),
            kind("sequential", SequentialLayout::keys()),
            kind("write-anywhere", WriteAnywhereLayout::keys()),
            kind("ffs", FastLayout::keys()),
            kind("ffs+realloc", FastLayout::keys()),
            kind("early-unix", EarlyLayout::keys()),
            kind("write-ahead", WriteAheadLayout::keys()),
        ];
        TableOfKeys { name: "layout", is_required: true, kinds, is_open: false }
    }
}
