//! The file systems that update in place, as tables.

use agewell_config::{Form, Key, Keyed, choice, count, flag, keys, natural, size};
use agewell_layout::early_unix::{EarlyUnixError, EarlyUnixSetting};
use agewell_layout::ffs::{
    FragmentPlacement, IndirectPlacement, Optimization, ParameterError, Parameters, Policies,
};
use serde_json::{Map, Value};

use super::{BLOCK_BYTES, BlockTable, ConfigError, Table};

/// Bytes of metadata that a host caches where nothing else is said; chosen by us.
const METADATA_CACHE_BYTES: u64 = 1 << 20;

/// Bytes of a block of early UNIX (4.1BSD).
const EARLY_BLOCK_BYTES: u64 = 1024;

/// Blocks that directories have beside the data; chosen by us.
const DIRECTORY_BLOCKS: u64 = 64;

/// Bytes of the address of a block.
const ADDRESS_BYTES: u64 = 4;

keys! {
    /// What is done with metadata where requests reach the file system block by block.
    #[derive(Copy)]
    pub struct MetadataTable {
        /// whether inodes, maps, directories and indirect blocks are read and written
        <"1999, section 6.2.2 models none">
        is_transferred: bool = "metadata" flag().or(true);
        /// size of the cache of metadata
        <"ours">
        cache_bytes: u64 = "metadata_cache" size().or(METADATA_CACHE_BYTES);
    }
}

const INDIRECT: &[(&str, IndirectPlacement)] = &[
    ("new-group", IndirectPlacement::NewGroup),
    ("roomy-group", IndirectPlacement::RoomyGroup),
    ("near-previous", IndirectPlacement::NearPrevious),
    ("no-switch", IndirectPlacement::NoSwitch),
];

const FRAGMENTS: &[(&str, FragmentPlacement)] =
    &[("best-fit", FragmentPlacement::BestFit), ("near-previous", FragmentPlacement::NearPrevious)];

const OPTIMIZATION: &[(&str, Optimization)] =
    &[("time", Optimization::Time), ("space", Optimization::Space)];

/// Where the defaults of the Fast File System come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Smith & Seltzer 1996, table 1.
    Smith1996,
    /// Seltzer et al. 1995, table 1.
    Seltzer1995,
}

const PRESETS: &[(&str, Preset)] =
    &[("smith-1996", Preset::Smith1996), ("seltzer-1995", Preset::Seltzer1995)];

keys! {
    /// The Fast File System of 4.4BSD.
    pub struct FastTable {
        /// where the defaults below come from
        <"table 1 of 1996, of 1995">
        preset: Preset = "preset" choice(PRESETS).or(Preset::Smith1996);
        /// size of a block
        block_bytes: u64 = "block_size" size().or(BLOCK_BYTES);
        /// size of a fragment
        <"4.4BSD">
        fragment_bytes: Option<u64> = "fragment_size" size().or_else("an eighth of a block");
        /// where the blocks behind an indirect block go
        <"1996, section 4">
        indirect: IndirectPlacement = "indirect" choice(INDIRECT).or(Policies::PLAIN.indirect);
        /// where fragments go
        <"4.4BSD">
        fragments: FragmentPlacement = "fragments" choice(FRAGMENTS).or(Policies::PLAIN.fragments);
        /// what fragments that grow are moved for
        <"4.4BSD">
        optimization: Optimization = "optimization"
            choice(OPTIMIZATION).or(Policies::PLAIN.optimization);
        /// space that stays free, per cent
        minfree_pct: Option<u32> = "minfree_pct" natural().or_else("`10`");
        /// largest cluster, blocks
        maxcontig: Option<u32> = "maxcontig" natural().or_else("`7`, `8`");
        /// blocks of a file in one group
        maxbpg: Option<u32> = "maxbpg" natural().or_else("`128`");
        /// rotational gap
        rotdelay_ms: Option<u32> = "rotdelay_ms" natural().or_else("`0`, `4`");
        /// bytes of space for each inode
        bytes_per_inode: Option<u32> = "bytes_per_inode" natural().or_else("`2048`");
        /// blocks of the largest transfer
        transfer_blocks: Option<u32> = "transfer_blocks" natural().or_else("`8`, `7`");
        /// sectors of a track, as the file system believes
        sectors_per_track: Option<u32> = "sectors_per_track" natural().or_else("`118`, `57`");
        /// tracks of a cylinder, as it believes
        heads: Option<u32> = "heads" natural().or_else("`22`, `14`");
        /// cylinders; of a layout, as many as `utilization` asks
        cylinders: Option<u32> = "cylinders" natural().or_else("`424`, `2568`");
        /// cylinders of a group
        cylinders_per_group: Option<u32> = "cylinders_per_group" natural().or_else("`16`");
        /// turns a minute, for the gap
        rpm: Option<u32> = "rpm" natural().or_else("`5411`, `3600`");
        /// rotational positions that the tables of free blocks tell apart
        rotational_positions: Option<u32> = "rotational_positions" natural().or_else("`8`");
        /// bytes of a directory entry
        entry_bytes: Option<u32> = "entry_bytes" natural().or_else("`24`");
    }
}

impl FastTable {
    /// Reads the keys, and takes what is not given from the preset.
    ///
    /// # Errors
    /// If a value does not do.
    pub fn read_filled(table: &mut Table) -> Result<Self, ConfigError> {
        let mut read = Self::read(table)?;
        let preset = match read.preset {
            Preset::Smith1996 => Parameters::smith_1996(Policies::PLAIN),
            Preset::Seltzer1995 => Parameters::seltzer_1995(Policies::PLAIN),
        };
        read.fragment_bytes.get_or_insert(read.block_bytes / 8);
        for (key, default) in [
            (&mut read.minfree_pct, preset.minfree_pct),
            (&mut read.maxcontig, preset.maxcontig),
            (&mut read.maxbpg, preset.maxbpg),
            (&mut read.rotdelay_ms, preset.rotdelay_ms),
            (&mut read.bytes_per_inode, preset.bytes_per_inode),
            (&mut read.transfer_blocks, preset.transfer_blocks_max),
            (&mut read.sectors_per_track, preset.sectors_per_track),
            (&mut read.heads, preset.heads),
            (&mut read.cylinders, preset.cylinders),
            (&mut read.cylinders_per_group, preset.cylinders_per_group),
            (&mut read.rpm, preset.rpm),
            (&mut read.rotational_positions, preset.rotational_positions),
            (&mut read.entry_bytes, preset.entry_bytes),
        ] {
            key.get_or_insert(default);
        }
        Ok(read)
    }

    /// What the table, filled, says; blocks are gathered into clusters if `realloc`.
    ///
    /// # Panics
    /// If the table is not filled: see [`FastTable::read_filled`].
    #[must_use]
    pub fn parameters(&self, realloc: bool) -> Parameters {
        let filled = |key: Option<u32>| key.expect("every key has been filled in");
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Parameters {
            block_bytes: narrow(self.block_bytes),
            fragment_bytes: narrow(self.fragment_bytes.expect("it has been filled in")),
            sectors_per_track: filled(self.sectors_per_track),
            heads: filled(self.heads),
            cylinders: filled(self.cylinders),
            cylinders_per_group: filled(self.cylinders_per_group),
            minfree_pct: filled(self.minfree_pct),
            maxcontig: filled(self.maxcontig),
            maxbpg: filled(self.maxbpg),
            rotdelay_ms: filled(self.rotdelay_ms),
            rpm: filled(self.rpm),
            rotational_positions: filled(self.rotational_positions),
            bytes_per_inode: filled(self.bytes_per_inode),
            transfer_blocks_max: filled(self.transfer_blocks),
            entry_bytes: filled(self.entry_bytes),
            ..Parameters::smith_1996(Policies {
                realloc,
                indirect: self.indirect,
                fragments: self.fragments,
                optimization: self.optimization,
            })
        }
    }
}

/// The Fast File System, driven block by block.
#[derive(Debug, Clone, PartialEq)]
pub struct FastLayout {
    /// Its keys, filled.
    pub table: FastTable,
    /// Whether blocks are gathered into clusters before they are written.
    pub realloc: bool,
    /// Metadata.
    pub metadata: MetadataTable,
}

impl FastLayout {
    pub(super) fn read(table: &mut Table, realloc: bool) -> Result<Self, ConfigError> {
        let metadata = MetadataTable::read(table)?;
        let layout = Self { table: FastTable::read_filled(table)?, realloc, metadata };
        if layout.table.block_bytes == 0 || !layout.table.block_bytes.is_multiple_of(512) {
            return Err(table.invalid("block_size", "must be a whole number of 512-byte sectors"));
        }
        // Any size will do to see whether they go together.
        let refused = |why: ParameterError| ConfigError(format!("[layout]: {why}"));
        layout.parameters(1000).map_err(refused)?;
        Ok(layout)
    }

    /// Bytes of a fragment.
    #[must_use]
    pub fn fragment_bytes(&self) -> u32 {
        self.table.parameters(self.realloc).fragment_bytes
    }

    /// The file system that holds `capacity_blocks` of data.
    ///
    /// # Errors
    /// If the choices do not go together.
    pub fn parameters(&self, capacity_blocks: u64) -> Result<Parameters, ParameterError> {
        let parameters = self.table.parameters(self.realloc);
        // Ranges are checked before anything is computed from them.
        parameters.check()?;
        let block_bytes = self.table.block_bytes;
        parameters.with_data_bytes(data_bytes(capacity_blocks, block_bytes, block_bytes))
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.realloc { "ffs+realloc" } else { "ffs" }
    }

    pub(super) fn resolve(&self, table: &mut Map<String, Value>) {
        FastTable::resolve(&self.table, table);
        MetadataTable::resolve(&self.metadata, table);
    }

    pub(super) fn keys() -> Vec<Key> {
        [FastTable::keys(), MetadataTable::keys()].concat()
    }
}

/// Bytes that data and the blocks that name it take.
fn data_bytes(capacity_blocks: u64, block_bytes: u64, system_block_bytes: u64) -> u64 {
    let bytes = capacity_blocks * block_bytes;
    let addresses = (system_block_bytes / ADDRESS_BYTES).max(2);
    // One more for each level of indirect blocks: a series below 1 / (addresses - 1).
    bytes + bytes.div_ceil(addresses - 1) + DIRECTORY_BLOCKS * system_block_bytes
}

keys! {
    /// The file system of early UNIX.
    pub struct EarlyTable {
        /// block of the file system; of a layout, a block is a whole number of them
        <"4.1BSD">
        system_block_bytes: u64 = "system_block_size" size().or(EARLY_BLOCK_BYTES);
        /// each update waits for the one before
        <"1999, section 3.2">
        ordered: bool = "ordered" flag().or(true);
        /// distance of consecutive blocks of the first free list
        <"ours">
        interleave_blocks: u32 = "interleave_blocks" count().or(1);
        /// bytes of space for each inode
        <"ours">
        bytes_per_inode: u32 = "bytes_per_inode" natural().or(2048);
    }
}

impl EarlyTable {
    /// A file system of `total_bytes`.
    #[must_use]
    pub fn setting(&self, total_bytes: u64) -> EarlyUnixSetting {
        let block_bytes = u32::try_from(self.system_block_bytes).unwrap_or(u32::MAX);
        EarlyUnixSetting {
            bytes_per_inode: self.bytes_per_inode,
            interleave_blocks: self.interleave_blocks,
            ordered: self.ordered,
            ..EarlyUnixSetting::matthews_1999(block_bytes, total_bytes)
        }
    }
}

/// The file system of early UNIX, driven block by block.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlyLayout {
    /// Bytes of a block of files.
    pub block_bytes: u64,
    /// Its keys.
    pub table: EarlyTable,
    /// Metadata.
    pub metadata: MetadataTable,
}

impl EarlyLayout {
    pub(super) fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let block_bytes = BlockTable::read(table)?.block_bytes;
        let mut read = EarlyTable::read(table)?;
        if !table.has("system_block_size") {
            read.system_block_bytes = read.system_block_bytes.min(block_bytes);
        }
        let system = read.system_block_bytes;
        if system == 0 || !block_bytes.is_multiple_of(system) {
            let why = "must be so that a block is a whole number of them";
            return Err(table.invalid("system_block_size", why));
        }
        let layout = Self { block_bytes, table: read, metadata: MetadataTable::read(table)? };
        let refused = |why: EarlyUnixError| ConfigError(format!("[layout]: {why}"));
        layout.setting(1000).map_err(refused)?;
        Ok(layout)
    }

    /// The file system that holds `capacity_blocks` of data.
    ///
    /// # Errors
    /// If the choices do not go together.
    pub fn setting(&self, capacity_blocks: u64) -> Result<EarlyUnixSetting, EarlyUnixError> {
        let bytes = data_bytes(capacity_blocks, self.block_bytes, self.table.system_block_bytes);
        self.table.setting(bytes).with_data_bytes(bytes)
    }

    pub(super) fn resolve(&self, table: &mut Map<String, Value>) {
        BlockTable::resolve(&BlockTable { block_bytes: self.block_bytes }, table);
        EarlyTable::resolve(&self.table, table);
        MetadataTable::resolve(&self.metadata, table);
    }

    pub(super) fn keys() -> Vec<Key> {
        [BlockTable::keys(), EarlyTable::keys(), MetadataTable::keys()].concat()
    }
}
