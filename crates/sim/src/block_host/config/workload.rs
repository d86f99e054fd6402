//! The `[workload]` table of a log-structured run.

use agewell_core::SimDuration;
use agewell_trace::workload::{
    AuspexParameters, DecisionSupportParameters, Fill, HotColdParameters, LongTermParameters,
    MicrobenchmarkParameters, MultimediaParameters, Pattern, ReadOrder,
    ScientificSimulationParameters, SoftwareDevelopmentParameters, Survey, TpcbParameters,
    TransactionProcessingParameters, UpdateParameters, WriteOrder, ZipfParameters,
};
use serde_json::{Value, json};

use super::{positive, small};
use crate::config::{ConfigError, Table};

mod families;

/// File requests, and how full the disk is.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadTable {
    /// Which requests.
    pub kind: FileWorkloadKind,
    /// Live data at its peak over the capacity of the disk (Matthews 1999, §5.2.1.2), with what was
    /// preallocated.
    pub utilization: f64,
    /// Data that is never asked for and that fragments what is free, if any.
    pub preallocated: Option<Preallocated>,
}

/// Data that lies on the disk in even chunks and is never asked for (Matthews 1999, §6.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preallocated {
    /// Its share of the disk.
    pub share: f64,
    /// Blocks of a chunk.
    pub chunk_blocks: u32,
}

/// Which requests.
#[derive(Debug, Clone, PartialEq)]
pub enum FileWorkloadKind {
    /// Uniform updates.
    RandomUpdate(UpdateParameters),
    /// Most updates to few blocks.
    HotCold(HotColdParameters),
    /// Updates by rank.
    Zipf(ZipfParameters),
    /// The whole file again and again.
    Sequential(UpdateParameters),
    /// Transactions.
    Tpcb(TpcbParameters),
    /// A file server's week.
    AuspexLike(AuspexParameters),
    /// A large file written, written again and read.
    Microbenchmark(MicrobenchmarkParameters),
    /// Recordings, written once and played often.
    Multimedia(MultimediaParameters),
    /// Edit, compile, link, run.
    SoftwareDevelopment(SoftwareDevelopmentParameters),
    /// Random updates through an index, with commits.
    TransactionProcessing(TransactionProcessingParameters),
    /// Scans and queries by index over a large table.
    DecisionSupport(DecisionSupportParameters),
    /// Large inputs and outputs of experiments.
    ScientificSimulation(ScientificSimulationParameters),
    /// Three months of a file system of programs.
    LongTerm(LongTermParameters),
    /// A block trace, taken as one large file a device.
    BlockTrace {
        /// Path as the experiment gives it.
        path: String,
        /// Format by name, or detected.
        format: Option<String>,
        /// Filters in order.
        filters: Vec<String>,
        /// Count and skip bad records rather than fail.
        skip_bad: bool,
    },
    /// A file-operation trace.
    FileTrace {
        /// Path as the experiment gives it.
        path: String,
        /// The mark at which the part begins, if not all is wanted.
        part: Option<String>,
        /// How many times over.
        repeat: u32,
    },
}

#[derive(Clone, Copy)]
enum Kind {
    RandomUpdate,
    HotCold,
    Zipf,
    Sequential,
    Tpcb,
    AuspexLike,
    Microbenchmark,
    Multimedia,
    SoftwareDevelopment,
    TransactionProcessing,
    DecisionSupport,
    ScientificSimulation,
    LongTerm,
    BlockTrace,
    FileTrace,
}

const KINDS: &[(&str, Kind)] = &[
    ("random-update", Kind::RandomUpdate),
    ("hot-cold", Kind::HotCold),
    ("zipf", Kind::Zipf),
    ("sequential", Kind::Sequential),
    ("tpcb", Kind::Tpcb),
    ("auspex-like", Kind::AuspexLike),
    ("microbenchmark", Kind::Microbenchmark),
    ("multimedia", Kind::Multimedia),
    ("software-development", Kind::SoftwareDevelopment),
    ("transaction-processing", Kind::TransactionProcessing),
    ("decision-support", Kind::DecisionSupport),
    ("scientific-simulation", Kind::ScientificSimulation),
    ("long-term", Kind::LongTerm),
    ("trace", Kind::BlockTrace),
    ("file-trace", Kind::FileTrace),
];

const FILLS: &[(&str, Fill)] = &[("before", Fill::Before), ("measured", Fill::InStream)];

const WRITE_ORDERS: &[(&str, WriteOrder)] = &[
    ("sequential", WriteOrder::Sequential),
    ("random", WriteOrder::Random),
    ("pattern", WriteOrder::Pattern),
];

const READ_ORDERS: &[(&str, ReadOrder)] =
    &[("sequential", ReadOrder::Sequential), ("pattern", ReadOrder::Pattern)];

const PATTERNS: &[(&str, Pattern)] =
    &[("permuted", Pattern::Permuted), ("strided", Pattern::Strided)];

impl WorkloadTable {
    pub(super) fn is_kind(kind: &str) -> bool {
        KINDS.iter().any(|(name, _)| *name == kind)
    }

    pub(super) fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[workload]", value)?;
        let kind = match table.choice("kind", KINDS, None)? {
            Kind::RandomUpdate => FileWorkloadKind::RandomUpdate(read_update(&mut table)?),
            Kind::Sequential => FileWorkloadKind::Sequential(read_update(&mut table)?),
            Kind::HotCold => FileWorkloadKind::HotCold(HotColdParameters {
                update: read_update(&mut table)?,
                hot_fraction: table.number("hot_fraction", 0.0, 1.0)?.unwrap_or(0.1),
                hot_share: table.number("hot_share", 0.0, 1.0)?.unwrap_or(0.9),
                shift_every: table.whole("shift_every")?.unwrap_or(0),
            }),
            Kind::Zipf => FileWorkloadKind::Zipf(ZipfParameters {
                update: read_update(&mut table)?,
                alpha: table.number("alpha", 0.0, 10.0)?.unwrap_or(1.0),
            }),
            Kind::Tpcb => FileWorkloadKind::Tpcb(read_tpcb(&mut table)?),
            Kind::AuspexLike => FileWorkloadKind::AuspexLike(read_auspex(&mut table)?),
            Kind::Microbenchmark => {
                FileWorkloadKind::Microbenchmark(read_microbenchmark(&mut table)?)
            }
            Kind::Multimedia => families::read_multimedia(&mut table)?,
            Kind::SoftwareDevelopment => families::read_software_development(&mut table)?,
            Kind::TransactionProcessing => families::read_transaction_processing(&mut table)?,
            Kind::DecisionSupport => families::read_decision_support(&mut table)?,
            Kind::ScientificSimulation => families::read_scientific_simulation(&mut table)?,
            Kind::LongTerm => families::read_long_term(&mut table)?,
            Kind::BlockTrace => FileWorkloadKind::BlockTrace {
                path: table.string("path")?.ok_or_else(|| table.missing("path"))?,
                format: table.string("format")?,
                filters: table.strings("filters")?.unwrap_or_default(),
                skip_bad: table.boolean("skip_bad")?.unwrap_or(false),
            },
            Kind::FileTrace => FileWorkloadKind::FileTrace {
                path: table.string("path")?.ok_or_else(|| table.missing("path"))?,
                part: table.string("part")?,
                repeat: positive(&mut table, "repeat", 1)?,
            },
        };
        let utilization = table.number("utilization", 0.0, 1.0)?.unwrap_or(0.85);
        if utilization <= 0.0 || utilization >= 1.0 {
            return Err(table.invalid(
                "utilization",
                "must lie between 0 and 1: a log that is full has no room to write to",
            ));
        }
        let preallocated = Self::read_preallocated(&mut table, utilization)?;
        table.finish()?;
        Ok(Self { kind, utilization, preallocated })
    }

    /// Blocks of a disk that is as full as asked when most of `survey` is live.
    pub(crate) fn capacity_blocks(&self, survey: &Survey) -> f64 {
        let preallocated = self.preallocated.map_or(0.0, |preallocated| preallocated.share);
        survey.peak_live_blocks as f64 / (self.utilization - preallocated)
    }

    fn read_preallocated(
        table: &mut Table,
        utilization: f64,
    ) -> Result<Option<Preallocated>, ConfigError> {
        let chunk_blocks = positive(table, "preallocated_chunk", 8)?;
        let share = table.number("preallocated", 0.0, 1.0)?.unwrap_or(0.0);
        if share >= utilization {
            return Err(table.invalid("preallocated", "is part of the utilization: must be less"));
        }
        Ok((share > 0.0).then_some(Preallocated { share, chunk_blocks }))
    }

    pub(super) fn resolved(&self) -> Value {
        let mut table = match &self.kind {
            FileWorkloadKind::RandomUpdate(update) => update_table("random-update", update),
            FileWorkloadKind::Sequential(update) => update_table("sequential", update),
            FileWorkloadKind::HotCold(hot) => {
                let mut table = update_table("hot-cold", &hot.update);
                table["hot_fraction"] = json!(hot.hot_fraction);
                table["hot_share"] = json!(hot.hot_share);
                table["shift_every"] = json!(hot.shift_every);
                table
            }
            FileWorkloadKind::Zipf(zipf) => {
                let mut table = update_table("zipf", &zipf.update);
                table["alpha"] = json!(zipf.alpha);
                table
            }
            FileWorkloadKind::Tpcb(tpcb) => json!({
                "kind": "tpcb",
                "transactions": tpcb.transactions,
                "accounts": tpcb.accounts,
                "account_blocks": tpcb.account_blocks,
                "cache_blocks": tpcb.cache_blocks,
                "metadata": tpcb.metadata,
                "dirty_blocks": tpcb.dirty_blocks,
                "interval": format!("{} ns", tpcb.interval.0),
            }),
            FileWorkloadKind::AuspexLike(auspex) => json!({
                "kind": "auspex-like",
                "reads": auspex.reads,
                "writes": auspex.writes,
                "deletes": auspex.deletes,
                "locality": auspex.locality,
            }),
            FileWorkloadKind::Microbenchmark(parameters) => json!({
                "kind": "microbenchmark",
                "blocks": parameters.blocks,
                "request_blocks": parameters.request_blocks,
                "write": name_of(WRITE_ORDERS, parameters.write),
                "read": name_of(READ_ORDERS, parameters.read),
                "reads": parameters.reads,
                "pattern": name_of(PATTERNS, parameters.pattern),
                "stride_requests": parameters.stride_requests,
            }),
            FileWorkloadKind::BlockTrace { path, format, filters, skip_bad } => {
                let mut table = json!({
                    "kind": "trace", "path": path, "filters": filters, "skip_bad": skip_bad,
                });
                if let Some(format) = format {
                    table["format"] = json!(format);
                }
                table
            }
            FileWorkloadKind::FileTrace { path, part, repeat } => {
                let mut table = json!({ "kind": "file-trace", "path": path, "repeat": repeat });
                if let Some(part) = part {
                    table["part"] = json!(part);
                }
                table
            }
            FileWorkloadKind::Multimedia(parameters) => families::multimedia_table(parameters),
            FileWorkloadKind::SoftwareDevelopment(parameters) => {
                families::software_development_table(parameters)
            }
            FileWorkloadKind::TransactionProcessing(parameters) => {
                families::transaction_processing_table(parameters)
            }
            FileWorkloadKind::DecisionSupport(parameters) => {
                families::decision_support_table(parameters)
            }
            FileWorkloadKind::ScientificSimulation(parameters) => {
                families::scientific_simulation_table(parameters)
            }
            FileWorkloadKind::LongTerm(parameters) => families::long_term_table(parameters),
        };
        table["utilization"] = json!(self.utilization);
        if let Some(preallocated) = self.preallocated {
            table["preallocated"] = json!(preallocated.share);
            table["preallocated_chunk"] = json!(preallocated.chunk_blocks);
        }
        table
    }
}

fn read_update(table: &mut Table) -> Result<UpdateParameters, ConfigError> {
    let default = UpdateParameters::default();
    Ok(UpdateParameters {
        blocks: positive(table, "blocks", default.blocks)?,
        updates_per_block: positive(table, "updates_per_block", default.updates_per_block)?,
        // Syncs by count are the host's: [host] sync_every.
        sync_every: 0,
        interval: table.duration("interval")?.unwrap_or(SimDuration::ZERO),
        fill: table.choice("fill", FILLS, Some(Fill::Before))?,
    })
}

fn read_tpcb(table: &mut Table) -> Result<TpcbParameters, ConfigError> {
    let default = TpcbParameters::default();
    Ok(TpcbParameters {
        transactions: table.whole("transactions")?.unwrap_or(default.transactions),
        accounts: positive(table, "accounts", default.accounts)?,
        account_blocks: positive(table, "account_blocks", default.account_blocks)?,
        cache_blocks: small(table, "cache_blocks", default.cache_blocks)?,
        metadata: table.boolean("metadata")?.unwrap_or(default.metadata),
        dirty_blocks: small(table, "dirty_blocks", default.dirty_blocks)?,
        interval: table.duration("interval")?.unwrap_or(default.interval),
        ..default
    })
}

fn read_auspex(table: &mut Table) -> Result<AuspexParameters, ConfigError> {
    let default = AuspexParameters::default();
    Ok(AuspexParameters {
        reads: table.whole("reads")?.unwrap_or(default.reads),
        writes: table.whole("writes")?.unwrap_or(default.writes),
        deletes: table.whole("deletes")?.unwrap_or(default.deletes),
        locality: table.number("locality", 0.0, 1.0)?.unwrap_or(default.locality),
        ..default
    })
}

fn read_microbenchmark(table: &mut Table) -> Result<MicrobenchmarkParameters, ConfigError> {
    let default = MicrobenchmarkParameters::default();
    Ok(MicrobenchmarkParameters {
        blocks: positive(table, "blocks", default.blocks)?,
        request_blocks: positive(table, "request_blocks", default.request_blocks)?,
        write: table.choice("write", WRITE_ORDERS, Some(default.write))?,
        read: table.choice("read", READ_ORDERS, Some(default.read))?,
        reads: small(table, "reads", default.reads)?,
        pattern: table.choice("pattern", PATTERNS, Some(default.pattern))?,
        stride_requests: positive(table, "stride_requests", default.stride_requests)?,
    })
}

/// What a choice is called in a configuration.
fn name_of<T: Copy + PartialEq>(names: &[(&'static str, T)], choice: T) -> &'static str {
    let named = names.iter().find(|(_, named)| *named == choice);
    named.expect("every choice stands in its table of names").0
}

fn update_table(kind: &str, update: &UpdateParameters) -> Value {
    json!({
        "kind": kind,
        "blocks": update.blocks,
        "updates_per_block": update.updates_per_block,
        "interval": format!("{} ns", update.interval.0),
        "fill": name_of(FILLS, update.fill),
    })
}
