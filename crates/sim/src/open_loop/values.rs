//! The metrics of block requests under their fixed names.

use serde_json::{Map, Value, json};

use super::remap::RemapSummary;
use crate::metrics::{Interval, Metrics, Sums};

/// The metrics of one lane under their fixed names; a metric without a meaning (a mean over
/// nothing) is null.
pub(super) fn metrics_value(metrics: &Metrics, remap: Option<&RemapSummary>) -> Map<String, Value> {
    let all = metrics.all();
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("requests", json!(all.requests));
    put("read_requests", json!(metrics.reads.requests));
    put("write_requests", json!(metrics.writes.requests));
    put("split_requests", json!(metrics.split_requests));
    put("mean_response_ms", json!(all.mean_response_ms()));
    put("mean_service_ms", json!(all.mean_service_ms()));
    put("mean_read_service_ms", json!(metrics.reads.mean_service_ms()));
    put("mean_write_service_ms", json!(metrics.writes.mean_service_ms()));
    for (name, per_mille) in [("p50", 500), ("p95", 950), ("p99", 990)] {
        let response = metrics.response.percentile(per_mille).map(ms);
        put(&format!("{name}_response_ms"), json!(response));
    }
    put("mean_seek_cylinders", json!(metrics.mean_seek_cylinders()));
    put("zero_seek_fraction", json!(share(metrics.zero_seeks, metrics.physical)));
    put("buffer_hit_fraction", json!(share(metrics.buffer_hits, metrics.physical)));
    let names = ["mean_seek_ms", "mean_rotation_ms", "mean_transfer_ms", "mean_overhead_ms"];
    for (name, sum) in names.into_iter().zip(metrics.parts_ns) {
        put(name, json!(crate::metrics::mean_ms(sum, metrics.physical)));
    }
    put("disk_seconds", json!(all.service_ns as f64 / 1e9));
    put("read_mb_per_s", json!(megabytes_per_second(&metrics.reads)));
    put("write_mb_per_s", json!(megabytes_per_second(&metrics.writes)));
    if let Some(remap) = remap {
        put("rearrangements", json!(remap.rearrangements));
        put("moved_fraction", json!(share(remap.moved_quanta, remap.movable_quanta)));
        put("moved_quanta", json!(remap.moved_quanta));
        put("moves_left", json!(remap.moves_left));
        put("moves_dropped", json!(remap.dropped_steps));
        put("move_ios", json!(remap.move_ios));
        put("move_bytes", json!(remap.move_sectors * agewell_core::SECTOR_BYTES));
        put("move_disk_seconds", json!(remap.move_ns as f64 / 1e9));
    }
    map
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Rate at which the disk moved data while it served these requests, in 10^6 bytes per second of
/// service time.
fn megabytes_per_second(sums: &Sums) -> Option<f64> {
    let bytes = sums.sectors as f64 * agewell_core::SECTOR_BYTES as f64;
    (sums.service_ns > 0).then(|| bytes / 1e6 / (sums.service_ns as f64 / 1e9))
}

/// Whether both lanes saw the same requests in the same intervals. They do unless the replay is
/// closed: then a faster lane issues its requests earlier.
pub(super) fn share_intervals(run: &Metrics, baseline: &Metrics) -> bool {
    let key = |row: &Interval| (row.index, row.requests);
    run.series.rows().iter().map(key).eq(baseline.series.rows().iter().map(key))
}

/// The report's figure of merit (Ruemmler & Wilkes 1991, §5.1): the improvement of the mean service
/// time of each interval in per cent, weighted by the interval's share of requests, over the
/// intervals that begin at or after `from_ns`. `None` if no interval counts, or the lanes do not
/// share their intervals.
pub(super) fn weighted_improvement_pct(
    run: &Metrics,
    baseline: &Metrics,
    from_ns: u64,
) -> Option<f64> {
    if !share_intervals(run, baseline) {
        return None;
    }
    let interval_ns = run.series.interval().0;
    let (mut weighted, mut requests) = (0.0, 0_u64);
    for (ours, theirs) in run.series.rows().iter().zip(baseline.series.rows()) {
        let begins_ns = ours.index * interval_ns;
        if begins_ns < from_ns || theirs.service_ns == 0 {
            continue;
        }
        let improvement = 1.0 - ours.service_ns as f64 / theirs.service_ns as f64;
        weighted += improvement * ours.requests as f64;
        requests += ours.requests;
    }
    (requests > 0).then(|| 100.0 * weighted / requests as f64)
}
