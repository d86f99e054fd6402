//! The `[workload]` table of an experiment on a layout.

use agewell_config::{
    Form, Keyed, KindOfTable, TableOfKeys, choice, count, flag, keys, natural, number, text, time,
    whole,
};
use agewell_trace::workload::{
    AuspexParameters, DecisionSupportParameters, Fill, HotColdParameters, LongTermParameters,
    MicrobenchmarkParameters, MultimediaParameters, Pattern, ReadOrder,
    ScientificSimulationParameters, SoftwareDevelopmentParameters, Survey, TpcbParameters,
    TransactionProcessingParameters, UpdateParameters, WriteOrder, ZipfParameters,
};
use serde_json::{Map, Value, json};

use super::request_experiment::TraceFile;
use super::{ConfigError, Table};

mod families;

use families::{
    DecisionSupportKeys, LongTermKeys, MultimediaKeys, ScientificSimulationKeys,
    SoftwareDevelopmentKeys, TransactionProcessingKeys,
};

/// File requests, and how full the disk is.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadTable {
    /// Which requests.
    pub kind: FileWorkloadKind,
    /// Live data at its peak over the capacity of the disk (Matthews 1999, §5.2.1.2), with what was
    /// preallocated.
    pub utilization: f64,
    /// Data that is never read and that fragments the free space, if any.
    pub preallocated: Option<Preallocated>,
}

/// Data that lies on the disk in even chunks and is never read (Matthews 1999, §6.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preallocated {
    /// Its share of the disk.
    pub share: f64,
    /// Blocks of a chunk.
    pub chunk_blocks: u32,
}

keys! {
    /// The keys that every workload has.
    struct FullnessTable {
        /// live data at its peak, and what is preallocated, over the capacity; above 0, below 1
        <"1999, section 5.2.1.2">
        utilization: f64 = "utilization" number(0.0, 1.0).or(0.85);
        /// share of the disk that data takes which is never asked for and lies in even chunks, so that it
        /// fragments what is free; part of the utilization
        <"1999, section 6.3: `0.4`">
        preallocated: f64 = "preallocated" number(0.0, 1.0).or(0.0);
        /// blocks of such a chunk
        <"the same">
        preallocated_chunk: u32 = "preallocated_chunk" count().or(8);
    }
}

/// Declares the kinds of workloads: each with its parameters, its name and its keys.
macro_rules! kinds {
    ($($(#[$meta:meta])* $Kind:ident($Parameters:ty) = $name:literal by $Keys:ty;)*) => {
        /// Which requests.
        #[derive(Debug, Clone, PartialEq)]
        pub enum FileWorkloadKind {
            $($(#[$meta])* $Kind($Parameters),)*
        }

        impl FileWorkloadKind {
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn read(name: &str, table: &mut Table) -> Result<Self, ConfigError> {
                match name {
                    $($name => <$Keys as Keyed>::read(table).map(Self::$Kind),)*
                    _ => unreachable!("the name was looked up"),
                }
            }

            fn resolve(&self, table: &mut Map<String, Value>) {
                match self {
                    $(Self::$Kind(parameters) => {
                        table.insert("kind".into(), json!($name));
                        <$Keys as Keyed>::resolve(parameters, table);
                    })*
                }
            }

            fn tables() -> Vec<KindOfTable> {
                vec![$(KindOfTable { name: $name, keys: <$Keys as Keyed>::keys() }),*]
            }
        }
    };
}

kinds! {
    /// Uniform updates.
    RandomUpdate(UpdateParameters) = "random-update" by UpdateKeys;
    /// Most updates to few blocks.
    HotCold(HotColdParameters) = "hot-cold" by HotColdKeys;
    /// Updates by rank.
    Zipf(ZipfParameters) = "zipf" by ZipfKeys;
    /// The whole file again and again.
    Sequential(UpdateParameters) = "sequential" by UpdateKeys;
    /// Transactions.
    Tpcb(TpcbParameters) = "tpcb" by TpcbKeys;
    /// A file server's week.
    AuspexLike(AuspexParameters) = "auspex-like" by AuspexKeys;
    /// A large file written, written again and read.
    Microbenchmark(MicrobenchmarkParameters) = "microbenchmark" by MicrobenchmarkKeys;
    /// Recordings, written once and played often.
    Multimedia(MultimediaParameters) = "multimedia" by MultimediaKeys;
    /// Edit, compile, link, run.
    SoftwareDevelopment(SoftwareDevelopmentParameters)
        = "software-development" by SoftwareDevelopmentKeys;
    /// Random updates through an index, with commits.
    TransactionProcessing(TransactionProcessingParameters)
        = "transaction-processing" by TransactionProcessingKeys;
    /// Scans and queries by index over a large table.
    DecisionSupport(DecisionSupportParameters) = "decision-support" by DecisionSupportKeys;
    /// Large inputs and outputs of experiments.
    ScientificSimulation(ScientificSimulationParameters)
        = "scientific-simulation" by ScientificSimulationKeys;
    /// Three months of a file system of programs.
    LongTerm(LongTermParameters) = "long-term" by LongTermKeys;
    /// A block trace, taken as one large file a device.
    BlockTrace(TraceFile) = "trace" by TraceFile;
    /// A file-operation trace.
    FileTrace(FileTraceTable) = "file-trace" by FileTraceTable;
}

keys! {
    /// Blocks of a file that are updated.
    pub(super) struct UpdateKeys
        // Syncs by count are the host's: [host] sync_every.
        over UpdateParameters { sync_every: 0, ..UpdateParameters::default() } => UpdateParameters
    {
        /// live blocks
        <"ours">
        blocks = "blocks" count();
        /// updates over live blocks
        <"1999, section 5.2.1.1">
        updates_per_block = "updates_per_block" count();
        /// time from one update to the next; zero: as fast as the host can
        interval = "interval" time();
        /// `"before"`: the fill is not measured; `"measured"`: it is part of the result
        fill = "fill" choice(&[("before", Fill::Before), ("measured", Fill::InStream)]);
    }
}

keys! {
    /// Updates, most of them to few blocks.
    struct HotColdKeys over HotColdParameters::default() => HotColdParameters {
        flat update: UpdateKeys;
        /// share of the blocks that are hot
        <"Rosenblum & Ousterhout 1992">
        hot_fraction = "hot_fraction" number(0.0, 1.0);
        /// share of the updates that they get
        <"the same">
        hot_share = "hot_share" number(0.0, 1.0);
        /// updates after which the hot blocks move; 0: never
        shift_every = "shift_every" whole();
    }
}

keys! {
    /// Updates by rank.
    struct ZipfKeys over ZipfParameters::default() => ZipfParameters {
        flat update: UpdateKeys;
        /// exponent; ranks are scattered over the blocks
        alpha = "alpha" number(0.0, 10.0);
    }
}

keys! {
    /// The transactions of Seltzer et al. 1995.
    struct TpcbKeys over TpcbParameters::default() => TpcbParameters {
        /// how many
        <"ours">
        transactions = "transactions" whole();
        /// records of the account file
        <"1995, table 2">
        accounts = "accounts" count();
        /// blocks of the account file
        <"1995, table 2">
        account_blocks = "account_blocks" count();
        /// blocks in the database's cache
        <"1995, table 2">
        cache_blocks = "cache_blocks" natural();
        /// whether inodes and indirect blocks are written too
        metadata = "metadata" flag();
        /// blocks that are dirty before all are written, with the metadata behind them and a sync; what the
        /// log moves makes its indirect blocks dirty too, as in 4.4BSD. 0: metadata follows each block,
        /// and moves cost none
        dirty_blocks = "dirty_blocks" natural();
        /// time from one transaction to the next
        interval = "interval" time();
    }
}

keys! {
    /// A week of a file server.
    struct AuspexKeys over AuspexParameters::default() => AuspexParameters {
        /// blocks read
        reads = "reads" whole();
        /// blocks written
        writes = "writes" whole();
        /// files deleted
        deletes = "deletes" whole();
        /// how likely what was written together is rewritten together; not published
        <"ours">
        locality = "locality" number(0.0, 1.0);
    }
}

keys! {
    /// One large file, written, written again and read.
    struct MicrobenchmarkKeys
        over MicrobenchmarkParameters::default() => MicrobenchmarkParameters
    {
        /// blocks of the file
        <"1999, section 6.3: 625 MiB of 8 KiB">
        blocks = "blocks" count();
        /// blocks of a request
        <"ours">
        request_blocks = "request_blocks" count();
        /// order of the second write: random is drawn for it alone
        <"1999, section 6.3">
        write = "write" choice(&[
            ("sequential", WriteOrder::Sequential),
            ("random", WriteOrder::Random),
            ("pattern", WriteOrder::Pattern),
        ]);
        /// order of each read pass: that of the write of that name
        <"the same">
        read = "read" choice(&[
            ("sequential", ReadOrder::Sequential),
            ("pattern", ReadOrder::Pattern),
        ]);
        /// read passes
        <"1 in figures 6-1 to 6-6, 5 in 6-7 to 6-11">
        reads = "reads" natural();
        /// the non-sequential pattern, which 1999 does not describe: a permutation by the seed, or as a
        /// matrix stored by rows is read by columns
        <"ours">
        pattern = "pattern" choice(&[
            ("permuted", Pattern::Permuted),
            ("strided", Pattern::Strided),
        ]);
        /// with `"strided"`: requests from one to the next
        <"ours">
        stride_requests = "stride_requests" count();
    }
}

keys! {
    /// A trace of file operations.
    pub struct FileTraceTable {
        /// the file
        path: String = "path" text().required();
        /// a directory that the traced program made, by its path or last name: the trace from there to the
        /// next one made beside it
        part: Option<String> = "part" text().or_else("all");
        /// how many times over; a repetition finds what the one before has left
        repeat: u32 = "repeat" count().or(1);
    }
}

impl WorkloadTable {
    /// Names of kinds.
    pub const KINDS: &'static [&'static str] = FileWorkloadKind::NAMES;

    pub(super) fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[workload]", value)?;
        let names: Vec<(&str, &str)> = Self::KINDS.iter().map(|name| (*name, *name)).collect();
        let name = table.key("kind", &choice(&names).required())?;
        let kind = FileWorkloadKind::read(name, &mut table)?;
        let fullness = FullnessTable::read(&mut table)?;
        let FullnessTable { utilization, preallocated: share, preallocated_chunk } = fullness;
        if utilization <= 0.0 || utilization >= 1.0 {
            return Err(table.invalid(
                "utilization",
                "must lie between 0 and 1: a log that is full has no room to write to",
            ));
        }
        if share >= utilization {
            return Err(table.invalid("preallocated", "is part of the utilization: must be less"));
        }
        table.finish()?;
        let preallocated =
            (share > 0.0).then_some(Preallocated { share, chunk_blocks: preallocated_chunk });
        Ok(Self { kind, utilization, preallocated })
    }

    /// Blocks of a disk that is as full as asked when most of `survey` is live.
    pub(crate) fn capacity_blocks(&self, survey: &Survey) -> f64 {
        let preallocated = self.preallocated.map_or(0.0, |preallocated| preallocated.share);
        survey.peak_live_blocks as f64 / (self.utilization - preallocated)
    }

    pub(super) fn resolved(&self) -> Value {
        let mut table = Map::new();
        self.kind.resolve(&mut table);
        table.insert("utilization".into(), json!(self.utilization));
        if let Some(preallocated) = self.preallocated {
            table.insert("preallocated".into(), json!(preallocated.share));
            table.insert("preallocated_chunk".into(), json!(preallocated.chunk_blocks));
        }
        Value::Object(table)
    }

    pub(super) fn table() -> TableOfKeys {
        let mut kinds = FileWorkloadKind::tables();
        for kind in &mut kinds {
            kind.keys.extend(FullnessTable::keys());
        }
        TableOfKeys { name: "workload", is_required: true, kinds, is_open: false }
    }
}
