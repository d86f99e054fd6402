//! Access time and bandwidth of a drive for policies, measured before the first request.

use agewell_core::Operation;
use agewell_core::{SECTOR_BYTES, Stream, uniform_below};
use agewell_disk::{Device, DeviceModel, WriteRule};
use agewell_log::policy::cost::CostModel;

use crate::drive::serve;

/// Requests that each figure of a measurement averages over; chosen by us: the mean of that many
/// access times is known to a percent.
const MEASURED_REQUESTS: u32 = 2000;

/// Bytes of the long transfers that give the bandwidth; chosen by us: far above the half-power point
/// of any disk in the catalogue.
const MEASURED_BYTES: u64 = 8 << 20;

/// Distance up to which a block is near, bytes: a segment; chosen by us.
const NEAR_BYTES: u64 = 256 << 10;

/// The cost model of `device` for policies, measured on its first `span_sectors`: the mean time for
/// one block anywhere, for one near the one before, and the rate of long writes.
pub(crate) fn measure(
    device: &DeviceModel,
    span_sectors: u64,
    block_bytes: u64,
    stream: &mut Stream,
) -> CostModel {
    // A drive that is written in order is measured by reads, which it takes anywhere.
    let operation = match device.layout_advice().write_rule {
        WriteRule::Anywhere => Operation::Write,
        WriteRule::SequentialInZones { .. } => Operation::Read,
    };
    let mut device = device.clone();
    let block_sectors = block_bytes / SECTOR_BYTES;
    let mut now_ns = 0;
    let mut serve_at = |sector: u64, sectors: u64| {
        let time_ns = serve(&mut device, now_ns, sector, sectors, operation);
        now_ns += time_ns;
        time_ns
    };
    let long = (MEASURED_BYTES / SECTOR_BYTES).min(span_sectors);
    let long_ns: u64 =
        (0..16).map(|place| serve_at((span_sectors - long) * place / 15, long)).sum();
    let bandwidth =
        16 * u128::from(long * SECTOR_BYTES) * 1_000_000_000 / u128::from(long_ns.max(1));
    let model = CostModel {
        access_ns: 0,
        further_ns: 0,
        bandwidth_bytes_per_s: u64::try_from(bandwidth).unwrap_or(u64::MAX).max(1),
        block_bytes,
    };
    let streaming_ns = model.streaming_ns(block_bytes);
    let near = (NEAR_BYTES / SECTOR_BYTES).min(span_sectors).max(block_sectors + 1);
    let mut mean_ns = |is_near: bool| {
        let mut total_ns = 0;
        for _ in 0..MEASURED_REQUESTS {
            let base = uniform_below(stream, span_sectors - near + 1);
            let first = base + uniform_below(stream, near - block_sectors);
            // One after another, without rests: a drive that reports writes early must not be let
            // empty its buffer unseen.
            let elsewhere_ns = serve_at(first, block_sectors);
            let beside = base + uniform_below(stream, near - block_sectors);
            total_ns += if is_near { serve_at(beside, block_sectors) } else { elsewhere_ns };
        }
        (total_ns / u64::from(MEASURED_REQUESTS)).saturating_sub(streaming_ns)
    };
    // A drive that reports writes early lets each wait for the one before it: the time of a far one
    // shows at the near one behind it, and the other way round.
    let (one_ns, other_ns) = (mean_ns(false), mean_ns(true));
    CostModel { access_ns: one_ns.max(other_ns), further_ns: one_ns.min(other_ns), ..model }
}

#[cfg(test)]
mod tests;
