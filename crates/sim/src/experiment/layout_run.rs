//! One experiment of file requests, from its configuration to its result document, whatever the
//! layout.

use std::sync::atomic::{AtomicBool, Ordering};

use agewell_layout::block_layout::BlockLayout;
use agewell_layout::file_system_blocks::ExaminedFileSystem;
use agewell_layout::write_anywhere::{WriteAnywhere, WriteAnywhereSetting};

use super::in_place_setup::journaled;
use super::lane::{Lane, Progress, does_not_fit};
use super::log_run;
use super::outcome::Outcome;
use super::policies::Policies;
use super::prepared::Prepared;
use crate::config::layout::{Layout, WriteAheadLayout};
use crate::config::{DeviceChoice, FileWorkloadKind, LayoutExperiment};
use crate::error::RunError;
use crate::places::Places;
use crate::result::inputs_unless;

/// Runs `experiment`; see [`crate::run()`].
pub(crate) fn run(
    experiment: &LayoutExperiment,
    places: Places,
    policies: &Policies,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let (stopped, files) = (AtomicBool::new(false), input_files(experiment));
    // A long trace takes as long to hash as to read: its hash is made beside the run.
    std::thread::scope(|scope| {
        let hashing = scope.spawn(|| inputs_unless(&stopped, files, places));
        let outcome = run_layout(experiment, places, policies, progress);
        stopped.store(outcome.is_err(), Ordering::Relaxed);
        let hashed = hashing.join().expect("hashing a file does not panic");
        let mut outcome = outcome?;
        outcome.document["inputs"] = hashed?;
        Ok(outcome)
    })
}

fn input_files(experiment: &LayoutExperiment) -> (Option<&str>, Option<&str>) {
    let trace = match &experiment.workload.kind {
        FileWorkloadKind::BlockTrace(trace) => Some(trace.path.as_str()),
        FileWorkloadKind::FileTrace(trace) => Some(trace.path.as_str()),
        _ => None,
    };
    let device = match &experiment.device {
        DeviceChoice::Model(name) => Some(name.as_str()),
        DeviceChoice::Simple(_) | DeviceChoice::Inline(_) => None,
    };
    (trace, device)
}

/// All of a run but the hashes of its inputs, whose place in the document is left empty.
fn run_layout(
    experiment: &LayoutExperiment,
    places: Places,
    policies: &Policies,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let prepared = Prepared::new(experiment, places, policies)?;
    match &experiment.layout {
        Layout::Log(layout) => log_run::run(&prepared, layout, progress),
        Layout::Sequential(layout) => run_plain(&prepared, prepared.sequential(layout), progress),
        Layout::Fast(layout) => run_plain(&prepared, prepared.fast(layout)?, progress),
        Layout::Early(layout) => run_plain(&prepared, prepared.early(layout)?, progress),
        Layout::WriteAhead(layout) => run_journaled(&prepared, layout, progress),
        Layout::WriteAnywhere(layout) => {
            let setting = WriteAnywhereSetting {
                capacity_blocks: prepared.capacity_blocks as u32,
                block_bytes: layout.block_bytes,
                clients: prepared.buffers(),
                buffer_blocks: prepared.plain_buffer_blocks(),
                search: layout.search,
                recovery: layout.recovery,
                checkpoint_blocks: layout.checkpoint_blocks,
            };
            let mut layout = WriteAnywhere::new(setting).map_err(does_not_fit)?;
            if let Some(allocator) = &policies.allocator {
                layout.allocate_by(allocator.copied());
            }
            run_plain(&prepared, layout, progress)
        }
    }
}

/// Runs a layout behind a journal.
fn run_journaled(
    prepared: &Prepared,
    layout: &WriteAheadLayout,
    progress: Progress,
) -> Result<Outcome, RunError> {
    match &*layout.inner {
        Layout::Fast(inner) => {
            let inner = prepared.fast(inner)?;
            let system = inner.system();
            let places = system.total_sectors() / u64::from(system.unit_sectors());
            run_plain(prepared, journaled(layout, inner, places)?, progress)
        }
        Layout::Sequential(inner) => {
            let inner = prepared.sequential(inner);
            let places = prepared.capacity_blocks;
            run_plain(prepared, journaled(layout, inner, places)?, progress)
        }
        other => unreachable!("the table lets {other:?} behind no journal"),
    }
}

/// Runs a layout that needs nothing beside what every layout needs.
fn run_plain<L: BlockLayout>(
    prepared: &Prepared,
    layout: L,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let mut lane = Lane::new(prepared, layout)?;
    lane.run(prepared, progress, |_| {})?;
    let values = lane.values();
    Ok(prepared.outcome(lane, values, None))
}
