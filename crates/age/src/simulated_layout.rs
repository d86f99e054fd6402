//! `[layout]` of a simulated file system: which one, of what shape, with which choices.

use agewell_config::{Form, Keyed, KindOfTable, TableOfKeys, choice, keys, natural, size};
use agewell_layout::early_unix::{EarlyUnix, EarlyUnixSetting};
use agewell_layout::ffs::{FastFileSystem, Parameters};
use agewell_layout::file_system::{FileDevice, FileExtent, FileSystem, FileSystemError};
use agewell_layout::log_file_system::{LogFileSystem, LogFileSystemSetting};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::Collect;
use agewell_log::{LogSetting, LogShape, Trigger};
use agewell_sim::config::layout::{
    Collecting, EarlyTable, FastTable, LogLayout, LogTable, LogTrigger, PlacementChoice,
};
use agewell_sim::config::{ConfigError, Table};
use serde_json::{Map, Value, json};

use crate::{AgeError, FileSystemFacts, NO_TIME};

/// Any simulated file system.
#[derive(Debug, Clone)]
pub enum AnyFileSystem {
    /// The Fast File System.
    Fast(Box<FastFileSystem>),
    /// A log.
    Log(Box<LogFileSystem>),
    /// The file system of early UNIX.
    Early(Box<EarlyUnix>),
}

/// Which file system, and how it is made.
#[derive(Debug, Clone, PartialEq)]
pub enum LayoutSetup {
    /// The Fast File System.
    Fast(FastChoice),
    /// A log.
    Log(Box<LogChoice>),
    /// The file system of early UNIX.
    Early(EarlyChoice),
}

/// How the Fast File System is made.
#[derive(Debug, Clone, PartialEq)]
pub struct FastChoice {
    table: FastTable,
    size_bytes: Option<u64>,
    /// What it is made with.
    pub parameters: Parameters,
}

/// How a log is made.
#[derive(Debug, Clone, PartialEq)]
pub struct LogChoice {
    /// The log.
    pub log: LogLayout,
    /// Its size, and what of it is kept free.
    pub room: RoomTable,
}

/// How the file system of early UNIX is made.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlyChoice {
    table: EarlyTable,
    /// What it is made with.
    pub setting: EarlyUnixSetting,
}

/// Bytes of a file system where nothing else is said: that of Smith & Seltzer 1996, table 1, so that
/// all can be aged by the same workload.
const SIZE_BYTES: u64 = 502 << 20;

keys! {
    /// How large the Fast File System is.
    struct FastSizeTable {
        /// bytes of the file system
        size_bytes: Option<u64> = "size" size().or_else("what the preset's cylinders hold");
    }
}

keys! {
    /// How large a file system is.
    struct SizeTable {
        /// bytes of the file system
        <"1996, table 1">
        size_bytes: u64 = "size" size().or(SIZE_BYTES);
    }
}

keys! {
    /// How large a log is, and what of it is kept free.
    pub struct RoomTable {
        /// bytes of the file system
        <"1996, table 1">
        total_bytes: u64 = "size" size().or(SIZE_BYTES);
        /// space that stays free, per cent
        <"4.4BSD">
        minfree_pct: u32 = "minfree_pct" natural().to(100).or(10);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Fast { realloc: bool },
    Log,
    Early,
}

impl LayoutSetup {
    /// Names on the command line and in experiments.
    pub const KINDS: [&'static str; 4] = ["ffs", "ffs+realloc", "lfs", "early-unix"];

    /// Reads the table.
    ///
    /// # Errors
    /// If a key is not known, or its value does not do.
    pub fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[layout]", value)?;
        let [plain, realloc, log, early] = Self::KINDS;
        let kinds = [
            (plain, Kind::Fast { realloc: false }),
            (realloc, Kind::Fast { realloc: true }),
            (log, Kind::Log),
            (early, Kind::Early),
        ];
        let setup = match table.key("kind", &choice(&kinds).required())? {
            Kind::Fast { realloc } => Self::Fast(FastChoice::read(&mut table, realloc)?),
            Kind::Log => Self::Log(Box::new(LogChoice::read(&mut table)?)),
            Kind::Early => Self::Early(EarlyChoice::read(&mut table)?),
        };
        table.finish()?;
        Ok(setup)
    }

    /// Every value, as it could be written in an experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        let mut table = Map::new();
        table.insert("kind".to_owned(), json!(self.kind()));
        match self {
            Self::Fast(fast) => {
                fast.table.resolve(&mut table);
                let size_bytes = fast.size_bytes;
                FastSizeTable::resolve(&FastSizeTable { size_bytes }, &mut table);
            }
            Self::Log(log) => {
                LogTable::resolve(&log.log.keys, &mut table);
                RoomTable::resolve(&log.room, &mut table);
            }
            Self::Early(early) => {
                EarlyTable::resolve(&early.table, &mut table);
                let size_bytes = early.setting.total_bytes;
                SizeTable::resolve(&SizeTable { size_bytes }, &mut table);
            }
        }
        Value::Object(table)
    }

    fn kind(&self) -> &'static str {
        let [plain, realloc, log, early] = Self::KINDS;
        match self {
            Self::Fast(fast) if fast.parameters.policies.realloc => realloc,
            Self::Fast(_) => plain,
            Self::Log(_) => log,
            Self::Early(_) => early,
        }
    }

    /// The table, for the documentation and for editors.
    #[must_use]
    pub fn table() -> TableOfKeys {
        let fast = [FastTable::keys(), FastSizeTable::keys()].concat();
        let log = [LogTable::keys(), RoomTable::keys()].concat();
        let early = [EarlyTable::keys(), SizeTable::keys()].concat();
        let kinds = Self::KINDS.into_iter().zip([fast.clone(), fast, log, early]);
        TableOfKeys {
            name: "layout",
            is_required: true,
            kinds: kinds.map(|(name, keys)| KindOfTable { name, keys }).collect(),
            is_open: false,
        }
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        match self {
            Self::Fast(fast) => u64::from(fast.parameters.block_bytes),
            Self::Log(log) => log.log.keys.block_bytes,
            Self::Early(early) => u64::from(early.setting.block_bytes),
        }
    }

    /// An empty file system of this kind.
    ///
    /// # Errors
    /// If its parameters do not go together.
    pub fn build(&self) -> Result<AnyFileSystem, AgeError> {
        let refused = |why: String| AgeError::Input(format!("[layout]: {why}"));
        match self {
            Self::Fast(fast) => {
                let made = FastFileSystem::new(&fast.parameters);
                let made = made.map_err(|why| refused(why.to_string()));
                Ok(AnyFileSystem::Fast(Box::new(made?)))
            }
            Self::Log(log) => {
                let made = log.build().map_err(|why| refused(why.to_string()));
                Ok(AnyFileSystem::Log(Box::new(made?)))
            }
            Self::Early(early) => {
                let made = EarlyUnix::new(early.setting).map_err(|why| refused(why.to_string()));
                Ok(AnyFileSystem::Early(Box::new(made?)))
            }
        }
    }

    /// What a snapshot says of it.
    #[must_use]
    pub fn facts(&self) -> FileSystemFacts {
        let facts = FileSystemFacts { taken_ns: NO_TIME, free_map: true, ..Default::default() };
        match self {
            Self::Fast(FastChoice { parameters, .. }) => {
                let cylinder = u64::from(parameters.heads)
                    * u64::from(parameters.sectors_per_track)
                    * u64::from(parameters.sector_bytes);
                FileSystemFacts {
                    kind: "ffs".to_owned(),
                    block_bytes: parameters.block_bytes,
                    fragment_bytes: parameters.fragment_bytes,
                    total_bytes: cylinder * u64::from(parameters.cylinders),
                    group_bytes: cylinder * u64::from(parameters.cylinders_per_group),
                    ..facts
                }
            }
            Self::Log(log) => FileSystemFacts {
                kind: "lfs".to_owned(),
                block_bytes: log.log.keys.block_bytes as u32,
                fragment_bytes: log.log.keys.block_bytes as u32,
                total_bytes: log.room.total_bytes,
                group_bytes: log.log.keys.segment_bytes,
                ..facts
            },
            Self::Early(EarlyChoice { setting, .. }) => FileSystemFacts {
                kind: "early-unix".to_owned(),
                block_bytes: setting.block_bytes,
                fragment_bytes: setting.block_bytes,
                total_bytes: setting.total_bytes,
                ..facts
            },
        }
    }
}

fn refused(why: impl std::fmt::Display) -> ConfigError {
    ConfigError(format!("[layout]: {why}"))
}

impl FastChoice {
    fn read(table: &mut Table, realloc: bool) -> Result<Self, ConfigError> {
        let read = FastTable::read(table)?;
        let size_bytes = FastSizeTable::read(table)?.size_bytes;
        let mut parameters = read.parameters(realloc);
        if let Some(bytes) = size_bytes {
            parameters = parameters.with_total_bytes(bytes);
        }
        parameters.check().map_err(refused)?;
        Ok(Self { table: read, size_bytes, parameters })
    }
}

impl EarlyChoice {
    fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let read = EarlyTable::read(table)?;
        let setting = read.setting(SizeTable::read(table)?.size_bytes);
        EarlyUnix::new(setting).map_err(refused)?;
        Ok(Self { table: read, setting })
    }
}

impl LogChoice {
    fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let log = LogLayout::read(table)?;
        let block_bytes = log.keys.block_bytes;
        if !block_bytes.is_power_of_two() || !(512..=1 << 20).contains(&block_bytes) {
            return Err(table.invalid("block_size", "must be a power of two from 512 B to 1 MiB"));
        }
        let has_one_log = log.keys.placement == PlacementChoice::None;
        let has_one_size = log.two_sizes.is_none() && log.keys.zones.is_empty();
        for (key, is_plain) in [
            ("placement", has_one_log),
            ("zones", has_one_size),
            ("reorganise", log.reorganise.is_none()),
            ("trigger", !matches!(log.trigger, LogTrigger::Garbage(_))),
        ] {
            if !is_plain {
                let why = "is for layouts of blocks; a log with files of its own has one log of \
                           segments of one size on a disk of one size";
                return Err(table.invalid(key, why));
            }
        }
        let choice = Self { log, room: RoomTable::read(table)? };
        choice.build().map_err(refused)?;
        Ok(choice)
    }

    fn build(&self) -> Result<LogFileSystem, agewell_log::ShapeError> {
        let Self { log, room } = self;
        let segments = u32::try_from(room.total_bytes / log.keys.segment_bytes).unwrap_or(u32::MAX);
        // Only adaptive collection asks what the disk costs: that of Matthews 1999, §5.4.1.
        let disk = CostModel {
            access_ns: 15_000_000,
            further_ns: 15_000_000,
            bandwidth_bytes_per_s: 5_000_000,
            block_bytes: log.keys.block_bytes,
        };
        let shape = LogShape::uniform(segments, log.segment_blocks())?;
        let (collect, mechanisms) = match &log.collect {
            Collecting::Fixed(collect) => (*collect, Vec::new()),
            Collecting::Adaptive(mechanisms) => {
                (Collect::Always(mechanisms[0]), mechanisms.clone())
            }
        };
        let setting = LogSetting {
            buffer_blocks: log.segment_blocks(),
            victim: log.victim,
            collect,
            trigger: match log.trigger {
                LogTrigger::FreeShare(share) => Trigger::FreeShare(share),
                _ => Trigger::NoFreeSegment,
            },
            batch_segments: log.keys.batch_segments,
            reserve_segments: log.keys.reserve_segments,
            ages: log.ages,
            header: log.keys.header,
            join_holes: log.keys.join_holes,
            record_slots: 0,
            ..LogSetting::plain(shape, 1, disk)
        };
        LogFileSystem::new(LogFileSystemSetting {
            log: setting,
            mechanisms,
            block_bytes: log.keys.block_bytes,
            cluster_blocks: ((56 << 10) / log.keys.block_bytes).max(1) as u32,
            minfree_pct: room.minfree_pct,
        })
    }
}

/// Calls the same method on whichever file system it is.
macro_rules! each {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            AnyFileSystem::Fast($inner) => $call,
            AnyFileSystem::Log($inner) => $call,
            AnyFileSystem::Early($inner) => $call,
        }
    };
}

type Refused<T> = Result<T, FileSystemError>;

impl FileSystem for AnyFileSystem {
    fn root(&self) -> u32 {
        each!(self, inner => inner.root())
    }

    fn block_bytes(&self) -> u64 {
        each!(self, inner => inner.block_bytes())
    }

    fn make_directory(&mut self, parent: u32, device: &mut impl FileDevice) -> Refused<u32> {
        each!(self, inner => FileSystem::make_directory(inner.as_mut(), parent, device))
    }

    fn create(&mut self, directory: u32, device: &mut impl FileDevice) -> Refused<u32> {
        each!(self, inner => FileSystem::create(inner.as_mut(), directory, device))
    }

    fn write(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Refused<()> {
        each!(self, inner => {
            FileSystem::write(inner.as_mut(), file, offset_bytes, size_bytes, device)
        })
    }

    fn read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Refused<()> {
        each!(self, inner => {
            FileSystem::read(inner.as_mut(), file, offset_bytes, size_bytes, device)
        })
    }

    fn truncate(
        &mut self,
        file: u32,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Refused<()> {
        each!(self, inner => FileSystem::truncate(inner.as_mut(), file, size_bytes, device))
    }

    fn remove(&mut self, file: u32, device: &mut impl FileDevice) -> Refused<()> {
        each!(self, inner => FileSystem::remove(inner.as_mut(), file, device))
    }

    fn remove_directory(&mut self, directory: u32, device: &mut impl FileDevice) -> Refused<()> {
        each!(self, inner => FileSystem::remove_directory(inner.as_mut(), directory, device))
    }

    fn rename(
        &mut self,
        file: u32,
        to_directory: u32,
        device: &mut impl FileDevice,
    ) -> Refused<()> {
        each!(self, inner => FileSystem::rename(inner.as_mut(), file, to_directory, device))
    }

    fn sync(&mut self, device: &mut impl FileDevice) -> Refused<()> {
        each!(self, inner => FileSystem::sync(inner.as_mut(), device))
    }

    fn sync_file(&mut self, file: u32, device: &mut impl FileDevice) -> Refused<()> {
        each!(self, inner => FileSystem::sync_file(inner.as_mut(), file, device))
    }

    fn size_bytes(&self, file: u32) -> u64 {
        each!(self, inner => FileSystem::size_bytes(inner.as_ref(), file))
    }

    fn extents(&self, file: u32) -> Vec<FileExtent> {
        each!(self, inner => FileSystem::extents(inner.as_ref(), file))
    }

    fn usage_bytes(&self) -> (u64, u64) {
        each!(self, inner => FileSystem::usage_bytes(inner.as_ref()))
    }

    fn layout_counts(&self) -> (u64, u64) {
        each!(self, inner => FileSystem::layout_counts(inner.as_ref()))
    }

    fn free_extents(&self) -> Vec<(u64, u64)> {
        each!(self, inner => FileSystem::free_extents(inner.as_ref()))
    }

    fn verify(&self) {
        each!(self, inner => FileSystem::verify(inner.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::SECTOR_BYTES;

    use super::*;

    #[test]
    fn what_is_read_resolves_to_itself() {
        for given in [
            json!({"kind": "ffs"}),
            json!({"kind": "ffs+realloc", "size": "64 MiB", "maxcontig": 4}),
            json!({"kind": "ffs+realloc", "preset": "seltzer-1995", "indirect": "no-switch"}),
            json!({"kind": "lfs", "size": "64 MiB", "segment_size": "512 KiB"}),
            json!({"kind": "early-unix", "size": "64 MiB", "system_block_size": "512 B"}),
        ] {
            let setup = LayoutSetup::read(given.clone()).expect("a layout");
            let again = LayoutSetup::read(setup.resolved()).expect("what it resolves to");
            assert_eq!(again, setup, "{given}");
        }
    }

    #[test]
    fn what_does_not_do_is_refused_in_one_line() {
        for (given, expected) in [
            (json!({"kind": "ffs+reallok"}), "did you mean 'ffs+realloc'?"),
            (json!({"kind": "ffs", "maxcontg": 3}), "did you mean 'maxcontig'?"),
            (json!({"kind": "ffs", "maxcontig": 5_000_000_000_u64}), "must be below 2^32"),
            (json!({"kind": "ffs", "block_size": "8 KiB", "fragment_size": "3 KiB"}), "[layout]"),
            (json!({"kind": "lfs", "segment_size": "10 KiB"}), "whole blocks"),
            (json!({"kind": "lfs", "size": "256 KiB"}), "[layout]"),
            (json!({"kind": "early-unix", "system_block_size": "1000 B"}), "[layout]"),
            (json!({}), "'kind' is missing"),
        ] {
            let error = LayoutSetup::read(given).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn each_kind_works_and_says_what_it_is() {
        for kind in LayoutSetup::KINDS {
            let setup = LayoutSetup::read(json!({"kind": kind})).expect("a layout");
            let facts = setup.facts();
            let mut files = setup.build().expect("a file system");
            let file = files.create(files.root(), &mut ()).expect("room");
            files.write(file, 0, 100_000, &mut ()).expect("room");
            files.sync(&mut ()).expect("room");
            files.verify();
            let extents = files.extents(file);
            assert!(extents.iter().map(|extent| extent.bytes).sum::<u64>() >= 100_000);
            assert!(extents.iter().all(|extent| extent.sector < facts.total_bytes / SECTOR_BYTES));
            assert_eq!(u64::from(facts.block_bytes), files.block_bytes());
            let (used, total) = files.usage_bytes();
            assert!(used >= 100_000 && used < total && total <= facts.total_bytes);
        }
    }
}
