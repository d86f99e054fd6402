//! Every layout, small.

use agewell_layout::block_layout::BlockLayout;
use agewell_layout::early_unix::{EarlyUnix, EarlyUnixSetting};
use agewell_layout::ffs::{FastFileSystem, Parameters, Policies};
use agewell_layout::file_system_blocks::{
    ExaminedFileSystem, FileSystemBlocks, FileSystemBlocksSetting,
};
use agewell_layout::reorganise::{Related, ReorganiseSetting, When};
use agewell_layout::reorganising_log::ReorganisingLog;
use agewell_layout::sequential::{Order, Sequential, SequentialSetting};
use agewell_layout::write_ahead::{JournalPlace, Journaled, WriteAhead, WriteAheadSetting};
use agewell_layout::write_anywhere::{CrashRecovery, Search, WriteAnywhere, WriteAnywhereSetting};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::placement::{NoSeparation, Regrouping};
use agewell_log::{AdaptiveLog, LogSetting, LogShape};

use crate::case::{BLOCK_BYTES, CAPACITY, Case, Promises, Ran, Run};

/// The kinds by number.
const NAMES: [&str; 24] = [
    "sequential",
    "sequential as written",
    "log",
    "write-anywhere sweep",
    "write-anywhere nearest",
    "write-anywhere stripe",
    "write-anywhere sweep, checkpoints",
    "write-anywhere nearest, snapshots",
    "ffs",
    "ffs realloc, no metadata",
    "ffs, two pieces a block",
    "early unix",
    "early unix, small blocks, no metadata",
    "full journal in front of sequential",
    "full journal in the middle of sequential, few checkpoints",
    "full journal on its own disk, ffs",
    "metadata journal in front of ffs",
    "metadata journal in the middle of ffs realloc",
    "metadata journal on its own disk, ffs",
    "log that reorganises blocks at once",
    "log that reorganises files by gain, when idle",
    "log that reorganises whole files on eviction",
    "full journal in front of ffs realloc",
    "full journal in the middle of ffs realloc, no metadata",
];

/// How many there are.
pub(crate) const KINDS: usize = NAMES.len();

pub(crate) fn name(kind: usize) -> &'static str {
    NAMES[kind]
}

const ATOMIC: Promises = Promises { is_atomic: true, is_whole: true };
const IN_PLACE: Promises = Promises { is_atomic: false, is_whole: true };
const IN_PIECES: Promises = Promises { is_atomic: false, is_whole: false };

/// Runs the layout of `case`.
pub(crate) fn run(case: &Case) -> Ran {
    match case.kind {
        0 => run_one(case, sequential(case, Order::Place), IN_PLACE),
        1 => run_one(case, sequential(case, Order::Written), IN_PLACE),
        2 => run_one(case, log(case), ATOMIC),
        3 => run_one(case, anywhere(case, Search::Sweep, CrashRecovery::Scan), ATOMIC),
        4 => run_one(case, anywhere(case, Search::Nearest, CrashRecovery::Scan), ATOMIC),
        5 => {
            let stripe = Search::Stripe { stripe_blocks: 7 };
            run_one(case, anywhere(case, stripe, CrashRecovery::Scan), ATOMIC)
        }
        6 => run_one(case, anywhere(case, Search::Sweep, CrashRecovery::Checkpoint), ATOMIC),
        7 => run_one(case, anywhere(case, Search::Nearest, CrashRecovery::Snapshot), ATOMIC),
        8 => run_one(case, blocks_of(case, true, ffs(Policies::PLAIN, 8192)), IN_PLACE),
        9 => run_one(case, blocks_of(case, false, ffs(Policies::REALLOC, 8192)), IN_PLACE),
        10 => run_one(case, blocks_of(case, true, ffs(Policies::REALLOC, 4096)), IN_PIECES),
        11 => run_one(case, blocks_of(case, true, early_unix(8192)), IN_PLACE),
        12 => run_one(case, blocks_of(case, false, early_unix(1024)), IN_PIECES),
        13 => journaled_sequential(case, JournalPlace::Start, 3),
        14 => journaled_sequential(case, JournalPlace::Middle, 0),
        15 => fully_journaled_ffs(case, Policies::PLAIN, true, JournalPlace::OwnDisk),
        16 => metadata_journaled_ffs(case, Policies::PLAIN, JournalPlace::Start),
        17 => metadata_journaled_ffs(case, Policies::REALLOC, JournalPlace::Middle),
        18 => metadata_journaled_ffs(case, Policies::PLAIN, JournalPlace::OwnDisk),
        19 => run_one(case, reorganising(case, ReorganiseSetting::matthews_1999(12)), ATOMIC),
        20 => {
            let (related, when) = (Related::Files, When::Idle);
            let setting = ReorganiseSetting { related, when, ..ReorganiseSetting::by_gain(12) };
            run_one(case, reorganising(case, setting), ATOMIC)
        }
        22 => fully_journaled_ffs(case, Policies::REALLOC, true, JournalPlace::Start),
        23 => fully_journaled_ffs(case, Policies::REALLOC, false, JournalPlace::Middle),
        _ => {
            let (related, when) = (Related::WholeFile, When::Eviction);
            let base = ReorganiseSetting::matthews_1999(12);
            run_one(case, reorganising(case, ReorganiseSetting { related, when, ..base }), ATOMIC)
        }
    }
}

fn run_one(case: &Case, layout: impl BlockLayout, promises: Promises) -> Ran {
    Run::new(case, layout, promises).run()
}

fn sequential(case: &Case, order: Order) -> Sequential {
    Sequential::new(SequentialSetting {
        capacity_blocks: CAPACITY,
        clients: case.clients,
        buffer_blocks: case.buffer_blocks,
        order,
    })
}

fn journaled_sequential(case: &Case, place: JournalPlace, checkpoint_commits: u32) -> Ran {
    let setting = WriteAheadSetting {
        journaled: Journaled::Full,
        place,
        inner_places: CAPACITY,
        place_bytes: BLOCK_BYTES,
        block_places: 1,
        journal_places: 40,
        group_places: 8,
        checkpoint_commits,
    };
    let layout = WriteAhead::new(setting, sequential(case, Order::Written));
    run_one(case, layout, ATOMIC)
}

fn metadata_journaled_ffs(case: &Case, policies: Policies, place: JournalPlace) -> Ran {
    let layout = journaled_ffs(case, policies, true, (Journaled::Metadata, place, 300));
    run_one(case, layout, IN_PLACE)
}

/// A quarter of the journal holds what all clients have waiting and what an operation adds to it.
fn fully_journaled_ffs(
    case: &Case,
    policies: Policies,
    metadata: bool,
    place: JournalPlace,
) -> Ran {
    let journal_places = 4 * (8 * case.clients * case.buffer_blocks + 400);
    let layout = journaled_ffs(case, policies, metadata, (Journaled::Full, place, journal_places));
    run_one(case, layout, ATOMIC)
}

fn journaled_ffs(
    case: &Case,
    policies: Policies,
    metadata: bool,
    (journaled, place, journal_places): (Journaled, JournalPlace, u32),
) -> WriteAhead<FileSystemBlocks<FastFileSystem>> {
    let system = ffs(policies, 8192);
    let setting = WriteAheadSetting {
        journaled,
        place,
        inner_places: (system.total_sectors() / u64::from(system.unit_sectors())) as u32,
        place_bytes: 1024,
        block_places: 8,
        journal_places,
        group_places: 60,
        checkpoint_commits: 0,
    };
    WriteAhead::new(setting, blocks_of(case, metadata, system))
}

fn log(case: &Case) -> AdaptiveLog<NoSeparation> {
    AdaptiveLog::fixed(log_setting(case, 2), NoSeparation).expect("the log has room to work")
}

fn reorganising(case: &Case, setting: ReorganiseSetting) -> ReorganisingLog<NoSeparation> {
    let placement = Regrouping::new(NoSeparation, 1).expect("one log and another");
    let log =
        AdaptiveLog::fixed(log_setting(case, 3), placement).expect("the log has room to work");
    ReorganisingLog::new(log, setting)
}

fn log_setting(case: &Case, reserve_segments: u32) -> LogSetting {
    let segment_blocks = 12;
    LogSetting {
        clients: case.clients,
        buffer_blocks: case.buffer_blocks,
        reserve_segments,
        ..LogSetting::plain(
            LogShape::uniform(CAPACITY / segment_blocks, segment_blocks).expect("segments"),
            1,
            CostModel {
                access_ns: 15_000_000,
                further_ns: 5_500_000,
                bandwidth_bytes_per_s: 5_000_000,
                block_bytes: BLOCK_BYTES,
            },
        )
    }
}

fn anywhere(case: &Case, search: Search, recovery: CrashRecovery) -> WriteAnywhere {
    WriteAnywhere::new(WriteAnywhereSetting {
        capacity_blocks: CAPACITY,
        block_bytes: BLOCK_BYTES,
        clients: case.clients,
        buffer_blocks: case.buffer_blocks,
        search,
        recovery,
        checkpoint_blocks: 30,
    })
    .expect("the disk is larger than its map")
}

/// A file system for `CAPACITY` blocks in groups of some thirty.
fn ffs(policies: Policies, block_bytes: u32) -> FastFileSystem {
    let parameters = Parameters {
        block_bytes,
        fragment_bytes: block_bytes / 8,
        sectors_per_track: 32,
        heads: 2,
        cylinders_per_group: 12,
        minfree_pct: 0,
        bytes_per_inode: 4096,
        ..Parameters::smith_1996(policies)
    };
    let bytes = u64::from(CAPACITY) * BLOCK_BYTES;
    let parameters = parameters.with_data_bytes(bytes).expect("the shape is right");
    FastFileSystem::new(&parameters).expect("the shape is right")
}

fn early_unix(block_bytes: u32) -> EarlyUnix {
    let bytes = u64::from(CAPACITY) * BLOCK_BYTES;
    let setting = EarlyUnixSetting::matthews_1999(block_bytes, bytes).with_data_bytes(bytes);
    EarlyUnix::new(setting.expect("the shape is right")).expect("the shape is right")
}

fn blocks_of<F: ExaminedFileSystem>(case: &Case, metadata: bool, system: F) -> FileSystemBlocks<F> {
    let setting = FileSystemBlocksSetting {
        block_bytes: BLOCK_BYTES,
        clients: case.clients,
        buffer_blocks: case.buffer_blocks,
        metadata,
        metadata_cache_blocks: 4,
        transfer_bytes_max: 56 << 10,
    };
    FileSystemBlocks::new(setting, system)
}
