//! A disk with one head: a transfer that begins where the last one ended only streams.

use agewell_log::policy::cost::CostModel;
use agewell_log::{BlockDevice, Purpose, Transfer};

/// The drive of the paper's microbenchmarks: 2.10 MB/s and about 19 ms (Matthews 1999, §6.2.2).
pub(crate) const HP_97560: CostModel = CostModel {
    access_ns: 19_000_000,
    further_ns: 10_000_000,
    bandwidth_bytes_per_s: 2_100_000,
    block_bytes: 8192,
};

/// Adds up disk time by purpose.
#[derive(Debug, Clone)]
pub(crate) struct HeadDisk {
    head: u64,
    spent_ns: [u64; Purpose::ALL.len()],
}

impl HeadDisk {
    pub(crate) fn new() -> Self {
        Self { head: 0, spent_ns: [0; Purpose::ALL.len()] }
    }

    pub(crate) fn spent_ns(&self, purpose: Purpose) -> u64 {
        self.spent_ns[purpose as usize]
    }

    pub(crate) fn total_ns(&self) -> u64 {
        self.spent_ns.iter().sum()
    }
}

impl BlockDevice for HeadDisk {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        let address = u64::from(transfer.slot);
        let streams = address == self.head;
        let model = &HP_97560;
        let bytes = transfer.bytes(model.block_bytes);
        let time_ns = if streams {
            model.streaming_ns(bytes)
        } else {
            model.transfer_ns(transfer.further, bytes)
        };
        self.head = address + u64::from(transfer.blocks);
        self.spent_ns[transfer.purpose as usize] += time_ns;
    }
}
