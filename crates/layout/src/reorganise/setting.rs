//! Settings of a reorganisation: the variants of Matthews 1999, §6.4, §6.6 and §7.2.1, and ours.

/// Relations by which blocks belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Related {
    /// Blocks that are read one after another (Matthews 1999, §6.4.1).
    Blocks,
    /// Files that are read one after another (§7.2.1: "a file rather than a block access graph").
    Files,
    /// Blocks that are read one after another and do not follow in their file (§7.2.1: "only
    /// recording non-sequential access patterns").
    NonSequential,
    /// Blocks of a file, in their order (§6.6: defragmentation).
    WholeFile,
    /// Files of a directory, in the order in which they came into being.
    Directory,
    /// As for blocks, and what is found goes as near to the middle of the disk as there is room, so
    /// that what is read most lies there (§6.6: organ pipe of partitions).
    Frequency,
}

impl Related {
    /// Every variant.
    pub const ALL: [Related; 6] = [
        Related::Blocks,
        Related::Files,
        Related::NonSequential,
        Related::WholeFile,
        Related::Directory,
        Related::Frequency,
    ];

    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Related::Blocks => "blocks",
            Related::Files => "files",
            Related::NonSequential => "non-sequential",
            Related::WholeFile => "whole-file",
            Related::Directory => "directory",
            Related::Frequency => "frequency",
        }
    }

    /// Whether it must be known which block of which file a block is.
    #[must_use]
    pub fn needs_names(self) -> bool {
        !matches!(self, Related::Blocks | Related::Frequency)
    }
}

/// How it is decided whether a group is worth being moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decide {
    /// If its value exceeds 2 and it is not clustered (Matthews 1999, §6.4.2).
    Value,
    /// If, besides, what that is likely to save exceeds what it costs; ours, as §6.5.1.1 proposes.
    Gain,
}

impl Decide {
    /// Every rule.
    pub const ALL: [Decide; 2] = [Decide::Value, Decide::Gain];

    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Decide::Value => "value",
            Decide::Gain => "gain",
        }
    }
}

/// When a group that is worth it is moved (Matthews 1999, §6.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// At once; members that are not in memory are read. A decision by gain looks at a group when
    /// reads leave it, for then all that they bring into memory is there.
    AtOnce,
    /// When the disk is idle.
    Idle,
    /// When all of its members have been brought into memory.
    Load,
    /// When one of its members is about to leave memory.
    Eviction,
}

impl When {
    /// Every variant.
    pub const ALL: [When; 4] = [When::AtOnce, When::Idle, When::Load, When::Eviction];

    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            When::AtOnce => "at-once",
            When::Idle => "idle",
            When::Load => "load",
            When::Eviction => "eviction",
        }
    }
}

/// Everything about a reorganisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReorganiseSetting {
    /// The relation by which blocks belong together.
    pub related: Related,
    /// Whether it is worth being moved.
    pub decide: Decide,
    /// When it is.
    pub when: When,
    /// Most blocks that are moved together. The source names no bound; a segment is a good one.
    pub partition_blocks: u32,
    /// Most times that a block is moved before it is written again; 255 for no bound.
    pub moves_max: u8,
    /// Blocks that were read or written last and are taken to be in memory still.
    pub memory_blocks: u32,
    /// Most blocks moved for each block read from disk, to compare variants at equal cost; infinite
    /// for no bound.
    pub budget: f64,
}

impl ReorganiseSetting {
    /// The reorganisation of Matthews 1999 in a log whose segments are `segment_blocks` long.
    #[must_use]
    pub fn matthews_1999(segment_blocks: u32) -> Self {
        Self {
            related: Related::Blocks,
            decide: Decide::Value,
            when: When::AtOnce,
            partition_blocks: segment_blocks,
            moves_max: u8::MAX,
            memory_blocks: 4 * segment_blocks,
            budget: f64::INFINITY,
        }
    }

    /// Ours: the same groups, moved where the gain exceeds the cost.
    #[must_use]
    pub fn by_gain(segment_blocks: u32) -> Self {
        Self { decide: Decide::Gain, moves_max: 4, ..Self::matthews_1999(segment_blocks) }
    }
}
