//! What a trace holds, in one pass and bounded memory.
//!
//! Quantiles come from histograms with bins 1 % wide (exact below 100). The footprint counts
//! distinct 4 KiB blocks: exactly up to a million, beyond that by HyperLogLog (Flajolet et al.
//! 2007) with 2^14 registers, standard error 0.8 %.

use std::collections::{BTreeMap, HashSet};

use agewell_core::mix;
use serde::Serialize;

use crate::metadata::TraceMetadata;
use crate::record::{BlockBatch, BlockRow, TIME_MISSING, flag};

/// Distinct request sizes kept apart; more are counted together.
const SIZES_MAX: usize = 4096;
/// Blocks counted exactly: about 40 MB.
const EXACT_BLOCKS_MAX: usize = 1 << 20;
/// Sectors in a block of the footprint: 4 KiB.
const BLOCK_SECTORS: u64 = 8;
/// Blocks of one request that are looked at; a longer one (a discard of the whole device) counts by
/// its length.
const BLOCKS_OF_REQUEST_MAX: u64 = 1 << 16;
const REGISTER_BITS: u32 = 14;

/// Mean, extremes and quantiles of a time, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TimeSummary {
    /// Requests that carry this time.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Half are shorter.
    pub p50_ms: f64,
    /// 90 % are shorter.
    pub p90_ms: f64,
    /// 99 % are shorter.
    pub p99_ms: f64,
    /// Longest.
    pub max_ms: f64,
}

/// Requests of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// Length in bytes.
    pub bytes: u64,
    /// How many requests.
    pub requests: u64,
}

/// Requests of one device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// Number.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Of them reads.
    pub reads: u64,
    /// Of them, those that continue the device's previous request.
    pub sequential: u64,
    /// Lowest sector touched.
    pub sector_min: u64,
    /// One above the highest sector touched.
    pub sector_end: u64,
}

/// What a trace holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TraceSummary {
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Discards.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
    /// Reads as a share of reads and writes, in per cent.
    pub reads_pct: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Enqueue time of the first request, s from the trace's start.
    pub first_s: f64,
    /// From the first request's enqueue time to the last's, s.
    pub span_s: f64,
    /// Known to be synchronous.
    pub synchronous: u64,
    /// Known to be asynchronous.
    pub asynchronous: u64,
    /// Requests that begin where the previous one on their device ended, in per cent.
    pub sequential_pct: f64,
    /// Distinct 4 KiB blocks touched, in bytes.
    pub footprint_bytes: u64,
    /// Whether the footprint is estimated (standard error 0.8 %) rather than counted.
    pub footprint_is_estimate: bool,
    /// The commonest sizes of reads and writes, commonest first.
    pub sizes: Vec<SizeCount>,
    /// Mean size of reads and writes in bytes.
    pub mean_bytes: f64,
    /// Largest in bytes.
    pub max_bytes: u64,
    /// Time between enqueue times.
    pub interarrival: TimeSummary,
    /// From enqueue to finish.
    pub response: Option<TimeSummary>,
    /// The same, of reads.
    pub read_response: Option<TimeSummary>,
    /// The same, of writes.
    pub write_response: Option<TimeSummary>,
    /// From start to finish.
    pub service: Option<TimeSummary>,
    /// The same, of reads.
    pub read_service: Option<TimeSummary>,
    /// The same, of writes.
    pub write_service: Option<TimeSummary>,
    /// Devices with requests, in the order of their number.
    pub devices: Vec<DeviceSummary>,
}

/// A histogram of times with bins 1 % wide.
#[derive(Debug, Default)]
struct Times {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    bins: BTreeMap<u32, u64>,
}

/// Ratio of a bin's edges.
const BIN_RATIO: f64 = 1.01;
/// Its natural logarithm.
const LOG_BIN_RATIO: f64 = 0.009_950_330_853_168_092;

impl Times {
    fn add(&mut self, time_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
        let bin = if time_ns < 100 {
            time_ns as u32
        } else {
            100 + (libm::log(time_ns as f64 / 100.0) / LOG_BIN_RATIO) as u32
        };
        *self.bins.entry(bin).or_default() += 1;
    }

    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        for (&bin, &count) in &self.bins {
            below += count;
            if below >= wanted {
                let ns = if bin < 100 {
                    f64::from(bin)
                } else {
                    // The middle of the bin.
                    100.0 * libm::pow(BIN_RATIO, f64::from(bin - 100) + 0.5)
                };
                return ns.min(self.max_ns as f64) / 1e6;
            }
        }
        0.0
    }

    fn summary(&self) -> Option<TimeSummary> {
        (self.count > 0).then(|| TimeSummary {
            count: self.count,
            mean_ms: self.sum_ns as f64 / self.count as f64 / 1e6,
            p50_ms: self.quantile_ms(0.50),
            p90_ms: self.quantile_ms(0.90),
            p99_ms: self.quantile_ms(0.99),
            max_ms: self.max_ns as f64 / 1e6,
        })
    }
}

/// Counts distinct blocks.
#[derive(Debug, Default)]
struct Footprint {
    /// Iterated only into registers, which keep a maximum: its order cannot show.
    exact: HashSet<(u32, u64)>,
    registers: Vec<u8>,
    last: Option<(u32, u64, u64)>,
}

impl Footprint {
    fn add(&mut self, row: &BlockRow) {
        let first = row.sector / BLOCK_SECTORS;
        let last = (row.sector + u64::from(row.sectors).max(1) - 1) / BLOCK_SECTORS;
        if self.last == Some((row.device, first, last)) {
            return;
        }
        self.last = Some((row.device, first, last));
        let step = ((last - first) / BLOCKS_OF_REQUEST_MAX).max(1);
        for block in (first..=last).step_by(step as usize) {
            if self.registers.is_empty() {
                self.exact.insert((row.device, block));
                if self.exact.len() > EXACT_BLOCKS_MAX {
                    self.registers = vec![0; 1 << REGISTER_BITS];
                    for &(device, block) in &std::mem::take(&mut self.exact) {
                        self.register(device, block);
                    }
                }
            } else {
                self.register(row.device, block);
            }
        }
    }

    fn register(&mut self, device: u32, block: u64) {
        let bits = mix(block.wrapping_add(u64::from(device) << 44));
        let index = (bits >> (64 - REGISTER_BITS)) as usize;
        let rank = ((bits << REGISTER_BITS).leading_zeros() + 1).min(64 - REGISTER_BITS + 1) as u8;
        self.registers[index] = self.registers[index].max(rank);
    }

    fn blocks(&self) -> (u64, bool) {
        if self.registers.is_empty() {
            return (self.exact.len() as u64, false);
        }
        let count = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|&rank| 2_f64.powi(-i32::from(rank))).sum();
        // The bias constant for 2^14 registers; beyond a million blocks no small-range correction
        // applies.
        let alpha = 0.7213 / (1.0 + 1.079 / count);
        ((alpha * count * count / sum) as u64, true)
    }
}

/// Computes a [`TraceSummary`] from batches.
#[derive(Debug, Default)]
pub struct Summarizer {
    summary: TraceSummary,
    first_ns: Option<u64>,
    last_ns: u64,
    sizes: BTreeMap<u32, u64>,
    interarrival: Times,
    response: [Times; 3],
    service: [Times; 3],
    devices: BTreeMap<u32, (DeviceSummary, u64)>,
    footprint: Footprint,
}

impl Summarizer {
    /// Adds the requests of `batch`.
    pub fn add(&mut self, batch: &BlockBatch) {
        for index in 0..batch.len() {
            self.add_row(&batch.row(index));
        }
    }

    fn add_row(&mut self, row: &BlockRow) {
        let summary = &mut self.summary;
        summary.requests += 1;
        let bytes = u64::from(row.sectors) * 512;
        match row.operation {
            0 => {
                summary.reads += 1;
                summary.read_bytes = summary.read_bytes.saturating_add(bytes);
            }
            1 => {
                summary.writes += 1;
                summary.written_bytes = summary.written_bytes.saturating_add(bytes);
            }
            2 => summary.discards += 1,
            _ => summary.flushes += 1,
        }
        summary.synchronous += u64::from(row.flags & flag::SYNCHRONOUS != 0);
        summary.asynchronous += u64::from(row.flags & flag::ASYNCHRONOUS != 0);
        if self.first_ns.is_some() {
            self.interarrival.add(row.enqueue_ns.saturating_sub(self.last_ns));
        } else {
            self.first_ns = Some(row.enqueue_ns);
        }
        self.last_ns = row.enqueue_ns;
        if row.finish_ns != TIME_MISSING {
            add_by_operation(&mut self.response, row.operation, row.finish_ns - row.enqueue_ns);
            if row.start_ns != TIME_MISSING {
                add_by_operation(&mut self.service, row.operation, row.finish_ns - row.start_ns);
            }
        }
        if row.operation > 1 {
            return;
        }
        summary.max_bytes = summary.max_bytes.max(bytes);
        if self.sizes.len() < SIZES_MAX || self.sizes.contains_key(&row.sectors) {
            *self.sizes.entry(row.sectors).or_default() += 1;
        }
        self.footprint.add(row);
        let end = row.sector + u64::from(row.sectors);
        let (device, expected) = self.devices.entry(row.device).or_insert_with(|| {
            let device =
                DeviceSummary { id: row.device, sector_min: u64::MAX, ..DeviceSummary::default() };
            (device, u64::MAX)
        });
        device.requests += 1;
        device.reads += u64::from(row.operation == 0);
        device.sequential += u64::from(row.sector == *expected);
        device.sector_min = device.sector_min.min(row.sector);
        device.sector_end = device.sector_end.max(end);
        *expected = end;
    }

    /// The summary of what was added.
    #[must_use]
    pub fn finish(self, metadata: &TraceMetadata) -> TraceSummary {
        let mut summary = self.summary;
        let transfers = summary.reads + summary.writes;
        let share = |part: u64, of: u64| {
            if of == 0 { 0.0 } else { part as f64 / of as f64 }
        };
        summary.reads_pct = 100.0 * share(summary.reads, transfers);
        summary.mean_bytes = share(summary.read_bytes + summary.written_bytes, transfers);
        let first_ns = self.first_ns.unwrap_or(0);
        summary.first_s = first_ns as f64 / 1e9;
        summary.span_s = (self.last_ns - first_ns) as f64 / 1e9;
        let mut sizes: Vec<SizeCount> = self
            .sizes
            .iter()
            .map(|(&sectors, &requests)| SizeCount { bytes: u64::from(sectors) * 512, requests })
            .collect();
        sizes.sort_by_key(|size| (std::cmp::Reverse(size.requests), size.bytes));
        sizes.truncate(10);
        summary.sizes = sizes;
        summary.interarrival = self.interarrival.summary().unwrap_or_default();
        [summary.response, summary.read_response, summary.write_response] =
            self.response.each_ref().map(Times::summary);
        [summary.service, summary.read_service, summary.write_service] =
            self.service.each_ref().map(Times::summary);
        let (blocks, is_estimate) = self.footprint.blocks();
        summary.footprint_bytes = blocks.saturating_mul(BLOCK_SECTORS * 512);
        summary.footprint_is_estimate = is_estimate;
        let sequential = self.devices.values().map(|(device, _)| device.sequential).sum();
        summary.sequential_pct = 100.0 * share(sequential, transfers);
        summary.devices = self
            .devices
            .into_values()
            .map(|(mut device, _)| {
                device.name = metadata.device_name(device.id);
                device
            })
            .collect();
        summary
    }
}

/// All, reads, writes.
fn add_by_operation(times: &mut [Times; 3], operation: u8, time_ns: u64) {
    if operation > 1 {
        return;
    }
    times[0].add(time_ns);
    times[1 + usize::from(operation)].add(time_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(enqueue_ns: u64, sector: u64, sectors: u32, operation: u8) -> BlockRow {
        BlockRow {
            enqueue_ns,
            start_ns: enqueue_ns + 1_000_000,
            finish_ns: enqueue_ns + 3_000_000,
            device: 0,
            sector,
            sectors,
            operation,
            flags: 0,
            client: 0,
        }
    }

    #[test]
    fn a_small_trace_is_summed_exactly() {
        let mut batch = BlockBatch::default();
        batch.push(row(0, 0, 8, 0));
        batch.push(row(1_000_000, 8, 8, 1));
        batch.push(row(5_000_000, 4, 8, 0));
        let mut summarizer = Summarizer::default();
        summarizer.add(&batch);
        let summary = summarizer.finish(&TraceMetadata::default());
        assert_eq!((summary.reads, summary.writes), (2, 1));
        assert_eq!(summary.footprint_bytes, 2 * 4096);
        assert!((summary.service.expect("times").mean_ms - 2.0).abs() < 1e-12);
        assert!((summary.response.expect("times").mean_ms - 3.0).abs() < 1e-12);
        assert!((summary.interarrival.mean_ms - 2.5).abs() < 1e-12);
        assert!((summary.sequential_pct - 100.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_logarithm_is_that_of_the_ratio() {
        assert_eq!(LOG_BIN_RATIO.to_bits(), libm::log(BIN_RATIO).to_bits());
    }

    #[test]
    fn quantiles_are_within_a_bin_and_the_estimate_within_its_error() {
        let mut times = Times::default();
        for value in 1..=100_000_u64 {
            times.add(value * 1000);
        }
        let summary = times.summary().expect("times");
        assert!((summary.p50_ms / 50.0 - 1.0).abs() < 0.01, "{}", summary.p50_ms);
        assert!((summary.p99_ms / 99.0 - 1.0).abs() < 0.01, "{}", summary.p99_ms);
        let mut footprint = Footprint::default();
        let blocks = 2_000_000_u64;
        for block in 0..blocks {
            footprint.add(&row(0, block * 24, 8, 0));
        }
        let (estimate, is_estimate) = footprint.blocks();
        assert!(is_estimate);
        // Four standard errors.
        assert!((estimate as f64 / blocks as f64 - 1.0).abs() < 0.033, "{estimate}");
    }
}
