//! What a mounted file system says of itself, as JSON: an extended attribute that no listing shows.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use agewell_fs::FileSystem;
use agewell_store::Means;
use agewell_store::device::Disk;
use serde_json::{Value, json};

use crate::latencies::Latencies;
use crate::regrouping::Regrouped;

/// The name of the attribute.
pub(crate) const STATUS: &str = "agewell.status";

/// Times of requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) reads: Latencies,
    pub(crate) writes: Latencies,
    pub(crate) syncs: Latencies,
    pub(crate) names: Latencies,
    /// Sweeps over the disk that read scattered files, and their parts.
    pub(crate) sweeps: AtomicU64,
    pub(crate) sweep_parts: AtomicU64,
}

impl Requests {
    /// All of them so far, and parts of sweeps: whether anything goes on.
    pub(crate) fn count(&self) -> u64 {
        let kinds = [&self.reads, &self.writes, &self.syncs, &self.names];
        let requests: u64 = kinds.into_iter().map(Latencies::requests).sum();
        requests + self.sweep_parts.load(Ordering::Relaxed)
    }
}

/// What was put together, and why nothing is.
fn regrouping(done: Option<&Regrouped>) -> Value {
    let Some(done) = done else { return json!({"is_on": false}) };
    let Regrouped { considered, .. } = done;
    let why = match () {
        () if done.decisions == 0 => "too little has been read again, or never while nobody asked",
        () if considered.groups == 0 => "nothing is read together more than twice",
        () if considered.declined > 0 => "what is left would not save more than it costs",
        () if done.without_room > 0 => "there is no room for what would pay",
        () => "what is read together lies together",
    };
    json!({
        "is_on": true,
        "why": why,
        "units": done.units,
        "reads": done.reads,
        "lost_reads": done.lost_reads,
        "decisions": done.decisions,
        "considered": {
            "groups": considered.groups,
            "well": considered.well,
            "bounded": considered.bounded,
            "declined": considered.declined,
            "best_saved_seconds": considered.best_saved_seconds,
            "best_cost_seconds": considered.best_cost_seconds,
        },
        "groups": done.groups,
        "without_room": done.without_room,
        "blocks": done.blocks,
        "saved_seconds": done.saved_seconds,
        "read_seconds": done.read_seconds,
        "moving_seconds": done.moving_seconds,
    })
}

fn times(latencies: &Latencies) -> Value {
    let (requests, worst_us, [p50_us, p99_us, p999_us]) = latencies.summary([0.5, 0.99, 0.999]);
    json!({
        "requests": requests,
        "p50_us": p50_us,
        "p99_us": p99_us,
        "p999_us": p999_us,
        "worst_us": worst_us,
    })
}

/// See the module.
pub(crate) fn document<D: Disk>(
    file_system: &FileSystem<D>,
    (device, means): (Option<&Path>, Means),
    requests: &Requests,
    regrouped: Option<&Regrouped>,
) -> Value {
    let (space, store) = (file_system.space(), file_system.store());
    let (log, medium) = (store.log_counts(), store.medium_counts());
    let journaled = file_system.journaled();
    let why = match means {
        Means::Fixed(_) => "as it was mounted",
        Means::Adaptive => "the cheapest when each was tried on what was written last",
    };
    let block_bytes = u64::from(space.block_bytes);
    json!({
        "process": std::process::id(),
        "device": device.map(Path::to_string_lossy),
        "block_bytes": space.block_bytes,
        "blocks": store.geometry().blocks,
        "segments": store.geometry().segments,
        "segment_blocks": store.geometry().segment_blocks,
        "segments_offset_bytes": store.segments_offset_bytes(),
        "capacity_bytes": space.blocks * block_bytes,
        "free_bytes": space.free * block_bytes,
        "full": 1.0 - space.free as f64 / space.blocks.max(1) as f64,
        "mechanism": format!("{:?}", store.collect_rule()),
        "mechanism_is": why,
        "collected_logs": store.collected_logs(),
        "since_mounted": {
            "user_blocks": log.user_blocks,
            "new_blocks": log.new_blocks,
            "cleaned_blocks": log.cleaned_blocks,
            "plugged_blocks": log.plugged_blocks,
            "threaded_blocks": log.threaded_blocks,
            "regrouped_blocks": log.regrouped_blocks,
            "segments_cleaned": log.segments_cleaned,
            "segments_plugged": log.segments_plugged,
            "segments_threaded": log.segments_threaded,
            "segments_emptied": log.segments_emptied,
            "write_amplification": log.write_amplification(),
            "metadata_blocks": medium.inline_blocks + medium.ring_blocks + medium.map_blocks,
            "flushes": medium.flushes,
        },
        "journal": {
            "nodes": journaled.nodes,
            "blocks": journaled.blocks,
            "blocks_max": journaled.blocks_max,
            "checkpoints": journaled.checkpoints,
        },
        "regrouping": regrouping(regrouped),
        "sweeps": requests.sweeps.load(Ordering::Relaxed),
        "read": times(&requests.reads),
        "write": times(&requests.writes),
        "sync": times(&requests.syncs),
        "names": times(&requests.names),
    })
}
