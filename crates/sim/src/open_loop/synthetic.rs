//! A synthetic open load: requests at random instants, whatever the disks do.
//!
//! Gaps are exponential, so arrivals are a Poisson process. They are drawn by von Neumann's
//! comparison method (Various techniques used in connection with random digits, 1951), which needs
//! only integer comparisons: the same seed gives the same nanoseconds on every platform, which a
//! logarithm would not promise.

use agewell_core::{Operation, RandomStreams, SECTOR_BYTES, Stream, chance, uniform_below};
use agewell_trace::record::{BlockBatch, TIME_MISSING, flag};
use rand_core::Rng;

use crate::config::PoissonWorkload;

/// Rows given at a time.
const BATCH_ROWS: usize = 8192;

/// The generator.
#[derive(Debug)]
pub struct Poisson {
    load: PoissonWorkload,
    capacity_sectors: u64,
    mean_gap_ns: u64,
    arrivals: Stream,
    addresses: Stream,
    kinds: Stream,
    issued: u64,
    now_ns: u64,
    /// Where a sequential request to each disk would begin.
    next_sector: Vec<u64>,
}

impl Poisson {
    /// A load for disks of `capacity_sectors`, drawn from `streams`.
    ///
    /// # Errors
    /// If a request is larger than a disk.
    pub fn new(
        load: &PoissonWorkload,
        capacity_sectors: u64,
        streams: RandomStreams,
    ) -> Result<Self, String> {
        let request_sectors = load.request_bytes / SECTOR_BYTES;
        if request_sectors > capacity_sectors {
            return Err(format!(
                "[workload]: request_size is {request_sectors} sectors, \
                 the disk has {capacity_sectors}"
            ));
        }
        Ok(Self {
            load: load.clone(),
            capacity_sectors,
            mean_gap_ns: (1e9 / load.rate_per_s).round() as u64,
            arrivals: streams.stream("workload.arrivals"),
            addresses: streams.stream("workload.addresses"),
            kinds: streams.stream("workload.kinds"),
            issued: 0,
            now_ns: 0,
            next_sector: vec![0; load.disks as usize],
        })
    }

    /// Fills `batch` with the next requests; false when all have been issued.
    pub fn next_batch(&mut self, batch: &mut BlockBatch) -> bool {
        batch.clear();
        while batch.len() < BATCH_ROWS && self.issued < self.load.requests {
            self.issue(batch);
        }
        !batch.is_empty()
    }

    fn issue(&mut self, batch: &mut BlockBatch) {
        self.now_ns += exponential_ns(&mut self.arrivals, self.mean_gap_ns);
        self.issued += 1;
        let sectors = self.load.request_bytes / SECTOR_BYTES;
        let disk = uniform_below(&mut self.addresses, u64::from(self.load.disks));
        let sequential = chance(&mut self.kinds, self.load.sequential_fraction);
        let read = chance(&mut self.kinds, self.load.read_fraction);
        // Random addresses are whole multiples of the request, as a file system aligns its blocks.
        let random = uniform_below(&mut self.addresses, self.capacity_sectors / sectors) * sectors;
        let next = &mut self.next_sector[disk as usize];
        let sector =
            if sequential && *next + sectors <= self.capacity_sectors { *next } else { random };
        *next = sector + sectors;
        batch.enqueue_ns.push(self.now_ns);
        batch.start_ns.push(TIME_MISSING);
        batch.finish_ns.push(TIME_MISSING);
        batch.device.push(disk as u32);
        batch.sector.push(sector);
        batch.sectors.push(sectors as u32);
        batch.operation.push(if read { Operation::Read } else { Operation::Write } as u8);
        batch.flags.push(if read { flag::SYNCHRONOUS } else { flag::ASYNCHRONOUS });
        batch.client.push(0);
    }
}

fn exponential_ns(stream: &mut Stream, mean_ns: u64) -> u64 {
    let mut whole = 0_u64;
    loop {
        let first = stream.next_u64();
        let (mut last, mut run) = (first, 1_u32);
        loop {
            let next = stream.next_u64();
            if next >= last {
                break;
            }
            (last, run) = (next, run + 1);
        }
        // A falling run of odd length ends the trial with probability 1 - 1/e; its first number is
        // the fraction.
        if run % 2 == 1 {
            let fraction_ns = (u128::from(first) * u128::from(mean_ns)) >> 64;
            return whole * mean_ns + fraction_ns as u64;
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let mut stream = RandomStreams::new(3).stream("test");
        let gaps: Vec<f64> =
            (0..200_000).map(|_| exponential_ns(&mut stream, 1_000_000) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let beyond_two = gaps.iter().filter(|gap| **gap > 2.0).count() as f64 / gaps.len() as f64;
        // Standard errors are 0.0022, 0.0063 and 0.0008: four of each.
        assert!((mean - 1.0).abs() < 0.009, "{mean}");
        assert!((variance - 1.0).abs() < 0.025, "{variance}");
        assert!((beyond_two - (-2.0_f64).exp()).abs() < 0.0031, "{beyond_two}");
    }

    #[test]
    fn shares_and_alignment_are_as_asked() {
        let load = PoissonWorkload {
            requests: 20_000,
            rate_per_s: 100.0,
            read_fraction: 0.66,
            sequential_fraction: 0.25,
            request_bytes: 4096,
            disks: 3,
        };
        let mut source = Poisson::new(&load, 1_000_003, RandomStreams::new(1)).unwrap();
        let (mut batch, mut reads, mut rows) = (BlockBatch::default(), 0, 0);
        let (mut sequential, mut next) = (0, [u64::MAX; 3]);
        while source.next_batch(&mut batch) {
            rows += batch.len();
            for row in 0..batch.len() {
                reads += usize::from(batch.operation[row] == Operation::Read as u8);
                let disk = batch.device[row] as usize;
                sequential += usize::from(batch.sector[row] == next[disk]);
                next[disk] = batch.sector[row] + 8;
                assert!(next[disk] <= 1_000_003);
                assert_eq!(batch.sector[row] % 8, 0);
            }
        }
        assert_eq!(rows, 20_000);
        assert!((reads as f64 / 20_000.0 - 0.66).abs() < 0.014);
        assert!((sequential as f64 / 20_000.0 - 0.25).abs() < 0.013);
    }
}
