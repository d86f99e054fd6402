//! The metrics of a run of file requests under their fixed names.

use agewell_disk::FlashCounts;
use agewell_layout::block_layout::BlockCounts;
use agewell_log::Purpose;
use agewell_log::policy::cost::CostModel;
use agewell_log::{CostMeter, Counts};
use serde_json::{Map, Value, json};

use crate::host::block_host::HostCounts;
use crate::host::read_ahead::PrefetchCounts;
use crate::metrics::Distribution;

/// Everything that a run counted.
pub(crate) struct Totals<'a> {
    pub(crate) counts: BlockCounts,
    pub(crate) meter: &'a CostMeter,
    /// What the drive has done, if it is flash.
    pub(crate) flash: Option<FlashCounts>,
    pub(crate) host: HostCounts,
    /// What reading ahead came to, if anything is read ahead.
    pub(crate) ahead: Option<PrefetchCounts>,
    pub(crate) responses: &'a Distribution,
    pub(crate) response_total_ns: u128,
    pub(crate) recovery_ns: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) transactions: Option<u64>,
}

/// Time of writing and collecting over the time that the new data alone takes at full bandwidth
/// (Matthews 1999, §5.3, eq. 4), split into new data and the rest.
pub(crate) struct WriteCost {
    pub(crate) overall: f64,
    pub(crate) new_data: f64,
}

/// The write cost of what `meter` saw, if there was new data.
pub(crate) fn write_cost(meter: &CostMeter, new_blocks: u64) -> Option<WriteCost> {
    let ideal_ns = ideal_ns(meter.model(), new_blocks)?;
    let new_data = [Purpose::NewData, Purpose::Thread].map(|purpose| meter.spent(purpose).time_ns);
    Some(WriteCost {
        overall: meter.writing_ns() as f64 / ideal_ns,
        new_data: new_data.iter().sum::<u64>() as f64 / ideal_ns,
    })
}

/// Time for `blocks` at full bandwidth, if there are any.
pub(crate) fn ideal_ns(disk: &CostModel, blocks: u64) -> Option<f64> {
    let bytes = blocks as f64 * disk.block_bytes as f64;
    (blocks > 0).then(|| bytes / disk.bandwidth_bytes_per_s as f64 * 1e9)
}

/// The metrics of `totals` that every layout has; one without a meaning (a mean over nothing) is
/// null.
pub(crate) fn metrics(totals: &Totals) -> Map<String, Value> {
    let Totals { counts, meter, host, .. } = totals;
    let disk = meter.model();
    let reads = meter.spent(Purpose::Read);
    let writing_ns = meter.writing_ns();
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    let cost = write_cost(meter, counts.new_blocks);
    put("overall_write_cost", json!(cost.as_ref().map(|cost| cost.overall)));
    put("new_data_cost", json!(cost.as_ref().map(|cost| cost.new_data)));
    put("write_amplification", {
        let written = counts.new_blocks + counts.moved_blocks;
        json!(share(written, counts.new_blocks))
    });
    if let Some(flash) = &totals.flash {
        put("flash_write_amplification", json!(flash.write_amplification()));
    }
    put("user_blocks", json!(counts.user_blocks));
    put("absorbed_blocks", json!(counts.absorbed_blocks));
    put("new_blocks", json!(counts.new_blocks));
    put("moved_blocks", json!(counts.moved_blocks));
    for purpose in Purpose::ALL {
        let spent = meter.spent(purpose);
        // Headers are one account, and what never happened is not worth a line.
        let is_header = matches!(purpose, Purpose::HeaderRead | Purpose::HeaderWrite);
        if !is_header && (spent.transfers > 0 || ALWAYS.contains(&purpose)) {
            put(&format!("{}_seconds", purpose.name()), json!(spent.time_ns as f64 / 1e9));
        }
    }
    put("hidden_seconds", json!(host.hidden_ns as f64 / 1e9));
    let foreground = ideal_ns(disk, counts.new_blocks)
        .map(|ideal_ns| writing_ns.saturating_sub(host.hidden_ns) as f64 / ideal_ns);
    put("foreground_write_cost", json!(foreground));
    put("write_seconds", json!(writing_ns as f64 / 1e9));
    put("disk_seconds", json!(meter.total_ns() as f64 / 1e9));
    put("recovery_seconds", json!(totals.recovery_ns as f64 / 1e9));
    put("elapsed_seconds", json!(totals.elapsed_ns as f64 / 1e9));
    put("requests", json!(host.requests));
    put("read_blocks", json!(host.read_blocks));
    put("disk_reads", json!(reads.transfers));
    put("mean_disk_read_ms", json!(share(reads.time_ns, reads.transfers).map(|ns| ns / 1e6)));
    let missed = host.disk_read_blocks();
    put("disk_read_blocks", json!(missed));
    put("mean_disk_read_block_ms", json!(share(reads.time_ns, missed).map(|ns| ns / 1e6)));
    put("client_cache_hit_fraction", json!(share(host.client_hits, host.read_blocks)));
    let asked_of_server = host.read_blocks - host.client_hits - host.hole_reads;
    put("server_cache_hit_fraction", json!(share(host.server_hits, asked_of_server)));
    let mb_per_s = |blocks: u64, ns: u64| {
        let bytes = (blocks * disk.block_bytes) as f64;
        json!((ns > 0).then(|| bytes * 1e3 / ns as f64))
    };
    put("write_mb_per_s", mb_per_s(counts.new_blocks, writing_ns));
    put("read_mb_per_s", mb_per_s(missed, reads.time_ns));
    if let Some(ahead) = totals.ahead {
        put("prefetched_blocks", json!(ahead.blocks));
        put("prefetch_used_fraction", json!(share(ahead.used, ahead.blocks)));
    }
    let responses = totals.responses;
    let mean_ns =
        (host.requests > 0).then(|| totals.response_total_ns as f64 / host.requests as f64);
    put("mean_response_ms", json!(mean_ns.map(|ns| ns / 1e6)));
    for (name, per_mille) in
        [("p50_response_ms", 500), ("p95_response_ms", 950), ("p99_response_ms", 990)]
    {
        put(name, json!(responses.percentile(per_mille).map(|ns| ns as f64 / 1e6)));
    }
    if let Some(transactions) = totals.transactions {
        put("transactions", json!(transactions));
        let rate = share(transactions, totals.elapsed_ns).map(|rate| rate * 1e9);
        put("transactions_per_s", json!(rate));
    }
    map
}

/// Accounts that stand in every result.
const ALWAYS: [Purpose; 6] = [
    Purpose::NewData,
    Purpose::Thread,
    Purpose::CollectRead,
    Purpose::CollectWrite,
    Purpose::Plug,
    Purpose::Read,
];

/// Adds to `map` what only a log has.
pub(crate) fn log_metrics(
    map: &mut Map<String, Value>,
    counts: &Counts,
    meter: &CostMeter,
    segment_blocks: u32,
) {
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    let disk = meter.model();
    let cost = write_cost(meter, counts.new_blocks);
    put("cleaner_cost", json!(cost.as_ref().map(|cost| cost.overall - cost.new_data)));
    // Eqs. 1 and 2 count transfers in segments; a segment is its blocks.
    let collected = counts.read_blocks + counts.cleaned_blocks + counts.plugged_blocks;
    let overhead = share(collected, counts.new_blocks);
    put("write_cost", json!(overhead.map(|overhead| 1.0 + overhead)));
    put("cleaner_overhead", json!(overhead));
    let segment_bytes = u64::from(segment_blocks) * disk.block_bytes;
    put("transfer_inefficiency", json!(disk.transfer_inefficiency(segment_bytes)));
    put("cleaned_blocks", json!(counts.cleaned_blocks));
    put("plugged_blocks", json!(counts.plugged_blocks));
    put("threaded_blocks", json!(counts.threaded_blocks));
    put("segments_cleaned", json!(counts.segments_cleaned));
    put("segments_plugged", json!(counts.segments_plugged));
    put("segments_threaded", json!(counts.segments_threaded));
    put("segments_emptied", json!(counts.segments_emptied));
    put("segments_from_cache", json!(counts.segments_from_cache));
    put("victim_utilization", json!(share(counts.victim_live_blocks, counts.victim_blocks)));
    let headers = [Purpose::HeaderRead, Purpose::HeaderWrite];
    let header_ns: u64 = headers.iter().map(|purpose| meter.spent(*purpose).time_ns).sum();
    put("header_seconds", json!(header_ns as f64 / 1e9));
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
