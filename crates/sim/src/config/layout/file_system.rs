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
enum Preset {
    /// Smith & Seltzer 1996, table 1.
    Smith1996,
    /// Seltzer et al. 1995, table 1.
    Seltzer1995,
}

const PRESETS: &[(&str, Preset)] =
    &[("smith-1996", Preset::Smith1996), ("seltzer-1995", Preset::Seltzer1995)];

keys! {
    /// The choices of the Fast File System of 4.4BSD.
    struct FastChoices {
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
    }
}

keys! {
    /// The numbers of a preset.
    struct PresetNumbers over Preset::Smith1996.parameters() => Parameters {
        /// space that stays free, per cent
        minfree_pct = "minfree_pct" natural();
        /// largest cluster, blocks
        maxcontig = "maxcontig" natural();
        /// blocks of a file in one group
        maxbpg = "maxbpg" natural();
        /// rotational gap
        rotdelay_ms = "rotdelay_ms" natural();
        /// bytes of space for each inode
        bytes_per_inode = "bytes_per_inode" natural();
        /// blocks of the largest transfer
        transfer_blocks_max = "transfer_blocks" natural();
        /// sectors of a track, as the file system believes
        sectors_per_track = "sectors_per_track" natural();
        /// tracks of a cylinder, as it believes
        heads = "heads" natural();
        /// cylinders; of a layout, as many as `utilization` asks
        cylinders = "cylinders" natural();
        /// cylinders of a group
        cylinders_per_group = "cylinders_per_group" natural();
        /// turns a minute, for the gap
        rpm = "rpm" natural();
        /// rotational positions that the tables of free blocks tell apart
        rotational_positions = "rotational_positions" natural();
        /// bytes of a directory entry
        entry_bytes = "entry_bytes" natural();
    }
}

impl Preset {
    fn parameters(self) -> Parameters {
        match self {
            Self::Smith1996 => Parameters::smith_1996(Policies::PLAIN),
            Self::Seltzer1995 => Parameters::seltzer_1995(Policies::PLAIN),
        }
    }
}

/// The Fast File System of 4.4BSD.
#[derive(Debug, Clone, PartialEq)]
pub struct FastTable {
    choices: FastChoices,
    numbers: Parameters,
}

impl FastTable {
    /// Reads the keys, and takes what is not given from the preset.
    ///
    /// # Errors
    /// If a value does not do.
    pub fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let mut choices = FastChoices::read(table)?;
        choices.fragment_bytes.get_or_insert(choices.block_bytes / 8);
        let numbers = PresetNumbers::read_over(table, choices.preset.parameters())?;
        Ok(Self { choices, numbers })
    }

    /// The parameters of the table; blocks are reallocated to clusters if `realloc`.
    #[must_use]
    pub fn parameters(&self, realloc: bool) -> Parameters {
        let FastChoices { block_bytes, fragment_bytes, .. } = self.choices;
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Parameters {
            block_bytes: narrow(block_bytes),
            fragment_bytes: narrow(fragment_bytes.unwrap_or(block_bytes / 8)),
            policies: Policies {
                realloc,
                indirect: self.choices.indirect,
                fragments: self.choices.fragments,
                optimization: self.choices.optimization,
            },
            ..self.numbers
        }
    }

    /// Adds every key to `table`, as it would be given.
    pub fn resolve(&self, table: &mut Map<String, Value>) {
        FastChoices::resolve(&self.choices, table);
        PresetNumbers::resolve(&self.numbers, table);
    }

    /// The keys, with the default of either preset.
    #[must_use]
    pub fn keys() -> Vec<Key> {
        let other = PresetNumbers::resolved(&Preset::Seltzer1995.parameters());
        let numbers = PresetNumbers::keys().into_iter().map(|key| {
            let second = format!("`{}`", other[key.name]);
            let both = format!("{}, {second}", key.default);
            if key.default == second { key } else { key.with_default(&both) }
        });
        FastChoices::keys().into_iter().chain(numbers).collect()
    }
}

/// The Fast File System, driven block by block.
#[derive(Debug, Clone, PartialEq)]
pub struct FastLayout {
    /// Its keys.
    pub table: FastTable,
    /// Whether blocks are reallocated to clusters before they are written.
    pub realloc: bool,
    /// Metadata.
    pub metadata: MetadataTable,
}

impl FastLayout {
    pub(super) fn read(table: &mut Table, realloc: bool) -> Result<Self, ConfigError> {
        let metadata = MetadataTable::read(table)?;
        let layout = Self { table: FastTable::read(table)?, realloc, metadata };
        if layout.block_bytes() == 0 || !layout.block_bytes().is_multiple_of(512) {
            return Err(table.invalid("block_size", "must be a whole number of 512-byte sectors"));
        }
        // Any size will do to see whether they go together.
        let refused = |why: ParameterError| ConfigError(format!("[layout]: {why}"));
        layout.parameters(1000).map_err(refused)?;
        Ok(layout)
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.table.choices.block_bytes
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
        let block_bytes = self.block_bytes();
        parameters.with_data_bytes(data_bytes(capacity_blocks, block_bytes, block_bytes))
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.realloc { "ffs+realloc" } else { "ffs" }
    }

    pub(super) fn resolve(&self, table: &mut Map<String, Value>) {
        self.table.resolve(table);
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
