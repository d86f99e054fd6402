//! The `[layout]` table of real file systems behind the seam of layouts.

use agewell_layout::early_unix::{EarlyUnixError, EarlyUnixSetting};
use agewell_layout::ffs::{IndirectPlacement, ParameterError, Parameters, Policies};
use serde_json::{Value, json};

use super::super::{positive, small};
use super::read_block_bytes;
use crate::config::{ConfigError, Table};

/// Bytes of metadata that a host caches where nothing else is said; chosen by us.
const METADATA_CACHE_BYTES: u64 = 1 << 20;

/// Bytes of space for an inode (Seltzer et al. 1995's file system; `newfs` of 4.4BSD).
const BYTES_PER_INODE: u32 = 4096;

/// Bytes of a block of early UNIX (4.1BSD).
const EARLY_BLOCK_BYTES: u64 = 1024;

/// Blocks that directories have beside the data; chosen by us.
const DIRECTORY_BLOCKS: u64 = 64;

/// Bytes of the address of a block.
const ADDRESS_BYTES: u64 = 4;

/// What is done with metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataChoice {
    /// Whether it is read and written at all.
    pub is_transferred: bool,
    /// Bytes of it that are cached.
    pub cache_bytes: u64,
}

/// The Fast File System.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastLayout {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of a fragment.
    pub fragment_bytes: u32,
    /// Whether blocks are gathered into clusters before they are written, and where indirect blocks
    /// go.
    pub policies: Policies,
    /// Blocks laid side by side before a gap, and the largest cluster.
    pub maxcontig: u32,
    /// Blocks of a file in a group before it has to go on in another.
    pub maxbpg: u32,
    /// Space that stays free, per cent.
    pub minfree_pct: u32,
    /// Bytes of space for each inode.
    pub bytes_per_inode: u32,
    /// Blocks of the largest transfer.
    pub transfer_blocks: u32,
    /// Metadata.
    pub metadata: MetadataChoice,
}

/// The file system of early UNIX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyLayout {
    /// Bytes of a block of files.
    pub block_bytes: u64,
    /// Bytes of a block of the file system.
    pub system_block_bytes: u32,
    /// Whether each update waits for the one before.
    pub ordered: bool,
    /// Distance of consecutive blocks of the first free list.
    pub interleave_blocks: u32,
    /// Metadata.
    pub metadata: MetadataChoice,
}

const INDIRECT: &[(&str, IndirectPlacement)] = &[
    ("new-group", IndirectPlacement::NewGroup),
    ("roomy-group", IndirectPlacement::RoomyGroup),
    ("near-previous", IndirectPlacement::NearPrevious),
    ("no-switch", IndirectPlacement::NoSwitch),
];

/// Bytes that data and the blocks that name it take.
fn data_bytes(capacity_blocks: u64, block_bytes: u64, system_block_bytes: u64) -> u64 {
    let bytes = capacity_blocks * block_bytes;
    let addresses = (system_block_bytes / ADDRESS_BYTES).max(2);
    // One more for each level of indirect blocks: a series below 1 / (addresses - 1).
    bytes + bytes.div_ceil(addresses - 1) + DIRECTORY_BLOCKS * system_block_bytes
}

impl MetadataChoice {
    fn read(table: &mut Table) -> Result<Self, ConfigError> {
        Ok(Self {
            is_transferred: table.boolean("metadata")?.unwrap_or(true),
            cache_bytes: table.bytes("metadata_cache")?.unwrap_or(METADATA_CACHE_BYTES),
        })
    }
}

impl FastLayout {
    pub(super) fn read(table: &mut Table, realloc: bool) -> Result<Self, ConfigError> {
        let shape = Parameters::smith_1996(Policies::PLAIN);
        let block_bytes = read_block_bytes(table)?;
        let fragment_bytes = table.bytes("fragment_size")?.unwrap_or(block_bytes / 8);
        let layout = Self {
            block_bytes,
            fragment_bytes: u32::try_from(fragment_bytes)
                .map_err(|_| table.invalid("fragment_size", "is too large"))?,
            policies: Policies {
                realloc,
                indirect: table.choice("indirect", INDIRECT, Some(Policies::PLAIN.indirect))?,
                ..Policies::PLAIN
            },
            maxcontig: positive(table, "maxcontig", shape.maxcontig)?,
            maxbpg: positive(table, "maxbpg", shape.maxbpg)?,
            minfree_pct: small(table, "minfree_pct", 0)?,
            bytes_per_inode: positive(table, "bytes_per_inode", BYTES_PER_INODE)?,
            transfer_blocks: positive(table, "transfer_blocks", shape.transfer_blocks_max)?,
            metadata: MetadataChoice::read(table)?,
        };
        // Any size will do to see whether they go together.
        let refused = |why: ParameterError| ConfigError(format!("[layout]: {why}"));
        layout.parameters(1000).map_err(refused)?;
        Ok(layout)
    }

    /// The file system that holds `capacity_blocks` of data: the shape of Smith & Seltzer 1996,
    /// without a rotational gap.
    ///
    /// # Errors
    /// If the choices do not go together.
    pub fn parameters(&self, capacity_blocks: u64) -> Result<Parameters, ParameterError> {
        let parameters = Parameters {
            block_bytes: u32::try_from(self.block_bytes).unwrap_or(u32::MAX),
            fragment_bytes: self.fragment_bytes,
            maxcontig: self.maxcontig,
            maxbpg: self.maxbpg,
            minfree_pct: self.minfree_pct,
            bytes_per_inode: self.bytes_per_inode,
            transfer_blocks_max: self.transfer_blocks,
            ..Parameters::smith_1996(self.policies)
        };
        // Ranges are checked before anything is computed from them.
        parameters.check()?;
        let bytes = data_bytes(capacity_blocks, self.block_bytes, self.block_bytes);
        parameters.with_data_bytes(bytes)
    }

    pub(super) fn resolved(self) -> Value {
        let indirect = INDIRECT.iter().find(|(_, each)| *each == self.policies.indirect);
        json!({
            "kind": if self.policies.realloc { "ffs+realloc" } else { "ffs" },
            "block_size": format!("{} B", self.block_bytes),
            "fragment_size": format!("{} B", self.fragment_bytes),
            "indirect": indirect.expect("every placement has a name").0,
            "maxcontig": self.maxcontig,
            "maxbpg": self.maxbpg,
            "minfree_pct": self.minfree_pct,
            "bytes_per_inode": self.bytes_per_inode,
            "transfer_blocks": self.transfer_blocks,
            "metadata": self.metadata.is_transferred,
            "metadata_cache": format!("{} B", self.metadata.cache_bytes),
        })
    }
}

impl EarlyLayout {
    pub(super) fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let block_bytes = read_block_bytes(table)?;
        let system = table.bytes("system_block_size")?;
        let system = system.unwrap_or(EARLY_BLOCK_BYTES.min(block_bytes));
        if system == 0 || !block_bytes.is_multiple_of(system) {
            let why = "must be so that a block is a whole number of them";
            return Err(table.invalid("system_block_size", why));
        }
        let layout = Self {
            block_bytes,
            system_block_bytes: u32::try_from(system)
                .map_err(|_| table.invalid("system_block_size", "is too large"))?,
            ordered: table.boolean("ordered")?.unwrap_or(true),
            interleave_blocks: positive(table, "interleave_blocks", 1)?,
            metadata: MetadataChoice::read(table)?,
        };
        let refused = |why: EarlyUnixError| ConfigError(format!("[layout]: {why}"));
        layout.setting(1000).map_err(refused)?;
        Ok(layout)
    }

    /// The file system that holds `capacity_blocks` of data.
    ///
    /// # Errors
    /// If the choices do not go together.
    pub fn setting(&self, capacity_blocks: u64) -> Result<EarlyUnixSetting, EarlyUnixError> {
        let bytes =
            data_bytes(capacity_blocks, self.block_bytes, u64::from(self.system_block_bytes));
        let setting = EarlyUnixSetting {
            ordered: self.ordered,
            interleave_blocks: self.interleave_blocks,
            ..EarlyUnixSetting::matthews_1999(self.system_block_bytes, bytes)
        };
        setting.with_data_bytes(bytes)
    }

    pub(super) fn resolved(self) -> Value {
        json!({
            "kind": "early-unix",
            "block_size": format!("{} B", self.block_bytes),
            "system_block_size": format!("{} B", self.system_block_bytes),
            "ordered": self.ordered,
            "interleave_blocks": self.interleave_blocks,
            "metadata": self.metadata.is_transferred,
            "metadata_cache": format!("{} B", self.metadata.cache_bytes),
        })
    }
}
