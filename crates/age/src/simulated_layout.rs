//! `[layout]` of a simulated file system: which one, of what shape, with which choices.

use agewell_layout::early_unix::{EarlyUnix, EarlyUnixSetting};
use agewell_layout::ffs::{
    FastFileSystem, FragmentPlacement, IndirectPlacement, Optimization, Parameters, Policies,
};
use agewell_layout::file_system::{FileDevice, FileExtent, FileSystem, FileSystemError};
use agewell_layout::log_file_system::{LogFileSystem, LogFileSystemSetting};
use agewell_log::policy::cost::CostModel;
use agewell_log::{LogSetting, LogShape, Victim};
use agewell_sim::config::{ConfigError, Table};
use serde_json::{Value, json};

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
    Fast(Parameters),
    /// A log.
    Log(LogChoice),
    /// The file system of early UNIX.
    Early(EarlyUnixSetting),
}

/// How a log is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogChoice {
    /// Bytes of the whole.
    pub total_bytes: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Share kept free, per cent.
    pub minfree_pct: u32,
}

/// The log's name, which a log without files shares.
const LOG: &str = "lfs";

#[derive(Debug, Clone, Copy)]
enum Kind {
    Fast { realloc: bool },
    Log,
    Early,
}

impl LayoutSetup {
    /// Names on the command line and in experiments.
    pub const KINDS: [&'static str; 4] = ["ffs", "ffs+realloc", LOG, "early-unix"];

    /// Whether `kind` is a file system of this module and of no other: a log also takes requests
    /// that have no files.
    #[must_use]
    pub fn is_only_here(kind: &str) -> bool {
        Self::KINDS.contains(&kind) && kind != LOG
    }

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
        let setup = match table.choice("kind", &kinds, None)? {
            Kind::Fast { realloc } => Self::Fast(read_fast(&mut table, realloc)?),
            Kind::Log => Self::Log(read_log(&mut table)?),
            Kind::Early => Self::Early(read_early(&mut table)?),
        };
        table.finish()?;
        Ok(setup)
    }

    /// Every value, as it could be written in an experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        match self {
            Self::Fast(parameters) => resolved_fast(parameters),
            Self::Log(log) => json!({
                "kind": LOG,
                "size": format!("{} B", log.total_bytes),
                "segment_size": format!("{} B", log.segment_bytes),
                "block_size": format!("{} B", log.block_bytes),
                "minfree_pct": log.minfree_pct,
            }),
            Self::Early(early) => json!({
                "kind": "early-unix",
                "size": format!("{} B", early.total_bytes),
                "block_size": format!("{} B", early.block_bytes),
                "bytes_per_inode": early.bytes_per_inode,
                "interleave_blocks": early.interleave_blocks,
                "ordered": early.ordered,
            }),
        }
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        match self {
            Self::Fast(parameters) => u64::from(parameters.block_bytes),
            Self::Log(log) => log.block_bytes,
            Self::Early(early) => u64::from(early.block_bytes),
        }
    }

    /// An empty file system of this kind.
    ///
    /// # Errors
    /// If its parameters do not go together.
    pub fn build(&self) -> Result<AnyFileSystem, AgeError> {
        let refused = |why: String| AgeError::Input(format!("[layout]: {why}"));
        match self {
            Self::Fast(parameters) => {
                let made = FastFileSystem::new(parameters).map_err(|why| refused(why.to_string()));
                Ok(AnyFileSystem::Fast(Box::new(made?)))
            }
            Self::Log(log) => {
                let made = build_log(log).map_err(|why| refused(why.to_string()));
                Ok(AnyFileSystem::Log(Box::new(made?)))
            }
            Self::Early(early) => {
                let made = EarlyUnix::new(*early).map_err(|why| refused(why.to_string()));
                Ok(AnyFileSystem::Early(Box::new(made?)))
            }
        }
    }

    /// What a snapshot says of it.
    #[must_use]
    pub fn facts(&self) -> FileSystemFacts {
        let facts = FileSystemFacts { taken_ns: NO_TIME, free_map: true, ..Default::default() };
        match self {
            Self::Fast(parameters) => {
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
                kind: LOG.to_owned(),
                block_bytes: log.block_bytes as u32,
                fragment_bytes: log.block_bytes as u32,
                total_bytes: log.total_bytes,
                group_bytes: log.segment_bytes,
                ..facts
            },
            Self::Early(early) => FileSystemFacts {
                kind: "early-unix".to_owned(),
                block_bytes: early.block_bytes,
                fragment_bytes: early.block_bytes,
                total_bytes: early.total_bytes,
                ..facts
            },
        }
    }
}

const INDIRECT: [(&str, IndirectPlacement); 4] = [
    ("new-group", IndirectPlacement::NewGroup),
    ("roomy-group", IndirectPlacement::RoomyGroup),
    ("near-previous", IndirectPlacement::NearPrevious),
    ("no-switch", IndirectPlacement::NoSwitch),
];

const FRAGMENTS: [(&str, FragmentPlacement); 2] =
    [("best-fit", FragmentPlacement::BestFit), ("near-previous", FragmentPlacement::NearPrevious)];

const OPTIMIZATION: [(&str, Optimization); 2] =
    [("time", Optimization::Time), ("space", Optimization::Space)];

/// The name of `value` in a table of names.
fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, known)| known == value).expect("every value has a name").0
}

fn read_fast(table: &mut Table<'_>, realloc: bool) -> Result<Parameters, ConfigError> {
    let policies = Policies {
        realloc: table.boolean("realloc")?.unwrap_or(realloc),
        indirect: table.choice("indirect", &INDIRECT, Some(Policies::PLAIN.indirect))?,
        fragments: table.choice("fragments", &FRAGMENTS, Some(Policies::PLAIN.fragments))?,
        optimization: table.choice(
            "optimization",
            &OPTIMIZATION,
            Some(Policies::PLAIN.optimization),
        )?,
    };
    let presets = [("smith-1996", false), ("seltzer-1995", true)];
    let seltzer = table.choice("preset", &presets, Some(false))?;
    let mut parameters =
        if seltzer { Parameters::seltzer_1995(policies) } else { Parameters::smith_1996(policies) };
    if let Some(bytes) = table.bytes("block_size")? {
        parameters.block_bytes = narrow(table, "block_size", bytes)?;
    }
    if let Some(bytes) = table.bytes("fragment_size")? {
        parameters.fragment_bytes = narrow(table, "fragment_size", bytes)?;
    }
    let numbers: [(&str, &mut u32); 13] = [
        ("sectors_per_track", &mut parameters.sectors_per_track),
        ("heads", &mut parameters.heads),
        ("cylinders", &mut parameters.cylinders),
        ("cylinders_per_group", &mut parameters.cylinders_per_group),
        ("minfree_pct", &mut parameters.minfree_pct),
        ("maxcontig", &mut parameters.maxcontig),
        ("maxbpg", &mut parameters.maxbpg),
        ("rotdelay_ms", &mut parameters.rotdelay_ms),
        ("rpm", &mut parameters.rpm),
        ("rotational_positions", &mut parameters.rotational_positions),
        ("bytes_per_inode", &mut parameters.bytes_per_inode),
        ("transfer_blocks", &mut parameters.transfer_blocks_max),
        ("entry_bytes", &mut parameters.entry_bytes),
    ];
    for (key, place) in numbers {
        if let Some(number) = table.whole(key)? {
            *place = narrow(table, key, number)?;
        }
    }
    if let Some(bytes) = table.bytes("size")? {
        parameters = parameters.with_total_bytes(bytes);
    }
    parameters.check().map_err(|why| ConfigError(format!("[layout]: {why}")))?;
    Ok(parameters)
}

fn narrow(table: &Table<'_>, key: &str, number: u64) -> Result<u32, ConfigError> {
    u32::try_from(number).map_err(|_| table.invalid(key, format!("{number} is too much")))
}

fn resolved_fast(parameters: &Parameters) -> Value {
    let policies = &parameters.policies;
    json!({
        "kind": if policies.realloc { "ffs+realloc" } else { "ffs" },
        "block_size": format!("{} B", parameters.block_bytes),
        "fragment_size": format!("{} B", parameters.fragment_bytes),
        "sectors_per_track": parameters.sectors_per_track,
        "heads": parameters.heads,
        "cylinders": parameters.cylinders,
        "cylinders_per_group": parameters.cylinders_per_group,
        "minfree_pct": parameters.minfree_pct,
        "maxcontig": parameters.maxcontig,
        "maxbpg": parameters.maxbpg,
        "rotdelay_ms": parameters.rotdelay_ms,
        "rpm": parameters.rpm,
        "rotational_positions": parameters.rotational_positions,
        "bytes_per_inode": parameters.bytes_per_inode,
        "transfer_blocks": parameters.transfer_blocks_max,
        "entry_bytes": parameters.entry_bytes,
        "indirect": name_of(&INDIRECT, &policies.indirect),
        "fragments": name_of(&FRAGMENTS, &policies.fragments),
        "optimization": name_of(&OPTIMIZATION, &policies.optimization),
    })
}

fn read_log(table: &mut Table<'_>) -> Result<LogChoice, ConfigError> {
    // Segments of 1 MB and blocks of 8 KB are those of 4.4BSD's log; the size is that of the file
    // system of Smith & Seltzer 1996, so that both can be aged by the same workload.
    let choice = LogChoice {
        total_bytes: table.bytes("size")?.unwrap_or(502 << 20),
        segment_bytes: table.bytes("segment_size")?.unwrap_or(1 << 20),
        block_bytes: table.bytes("block_size")?.unwrap_or(8192),
        minfree_pct: table.whole("minfree_pct")?.unwrap_or(10).min(100) as u32,
    };
    if !choice.block_bytes.is_power_of_two() || !(512..=1 << 20).contains(&choice.block_bytes) {
        return Err(table.invalid("block_size", "must be a power of two from 512 B to 1 MiB"));
    }
    if !choice.segment_bytes.is_multiple_of(choice.block_bytes) || choice.segment_bytes == 0 {
        return Err(table.invalid("segment_size", "must be a whole number of blocks"));
    }
    build_log(&choice).map_err(|why| ConfigError(format!("[layout]: {why}")))?;
    Ok(choice)
}

fn read_early(table: &mut Table<'_>) -> Result<EarlyUnixSetting, ConfigError> {
    // Blocks of 1 KB are those of 4.1BSD; the size is that of the file system of Smith & Seltzer
    // 1996, as above.
    let bytes = table.bytes("block_size")?.unwrap_or(1024);
    let block_bytes = narrow(table, "block_size", bytes)?;
    let total_bytes = table.bytes("size")?.unwrap_or(502 << 20);
    let mut early = EarlyUnixSetting::matthews_1999(block_bytes, total_bytes);
    if let Some(bytes) = table.whole("bytes_per_inode")? {
        early.bytes_per_inode = narrow(table, "bytes_per_inode", bytes)?;
    }
    if let Some(blocks) = table.whole("interleave_blocks")? {
        early.interleave_blocks = narrow(table, "interleave_blocks", blocks)?;
    }
    if let Some(ordered) = table.boolean("ordered")? {
        early.ordered = ordered;
    }
    EarlyUnix::new(early).map_err(|why| ConfigError(format!("[layout]: {why}")))?;
    Ok(early)
}

fn build_log(choice: &LogChoice) -> Result<LogFileSystem, agewell_log::ShapeError> {
    let segment_blocks = (choice.segment_bytes / choice.block_bytes) as u32;
    let segments = (choice.total_bytes / choice.segment_bytes) as u32;
    // Only adaptive collection asks what the disk costs.
    let disk = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: choice.block_bytes,
    };
    let log = LogSetting {
        buffer_blocks: segment_blocks,
        victim: Victim::CostAge,
        ..LogSetting::plain(LogShape::uniform(segments, segment_blocks)?, 1, disk)
    };
    LogFileSystem::new(LogFileSystemSetting {
        log,
        block_bytes: choice.block_bytes,
        cluster_blocks: ((56 << 10) / choice.block_bytes).max(1) as u32,
        minfree_pct: choice.minfree_pct,
    })
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
            json!({"kind": "ffs", "realloc": true, "size": "64 MiB", "maxcontig": 4}),
            json!({"kind": "ffs+realloc", "preset": "seltzer-1995", "indirect": "no-switch"}),
            json!({"kind": "lfs", "size": "64 MiB", "segment_size": "512 KiB"}),
            json!({"kind": "early-unix", "size": "64 MiB", "block_size": "512 B"}),
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
            (json!({"kind": "ffs", "maxcontig": 5_000_000_000_u64}), "is too much"),
            (json!({"kind": "ffs", "block_size": "8 KiB", "fragment_size": "3 KiB"}), "[layout]"),
            (json!({"kind": "lfs", "segment_size": "10 KiB"}), "whole number of blocks"),
            (json!({"kind": "lfs", "size": "1 MiB"}), "[layout]"),
            (json!({"kind": "early-unix", "block_size": "1000 B"}), "[layout]"),
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
