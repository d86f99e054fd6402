//! A device that prices every transfer by a cost model and keeps purposes apart.

use super::policy::cost::CostModel;
use super::{BlockDevice, Purpose, Transfer};

/// What one purpose took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Transfers.
    pub transfers: u64,
    /// Blocks moved.
    pub blocks: u64,
    /// Bytes of headers moved.
    pub header_bytes: u64,
    /// Disk time, ns.
    pub time_ns: u64,
}

/// Prices transfers.
#[derive(Debug, Clone)]
pub struct CostMeter {
    model: CostModel,
    spent: [Spent; Purpose::ALL.len()],
}

impl CostMeter {
    /// A meter at zero.
    #[must_use]
    pub fn new(model: CostModel) -> Self {
        Self { model, spent: Default::default() }
    }

    /// The model it prices by.
    #[must_use]
    pub fn model(&self) -> &CostModel {
        &self.model
    }

    /// What `purpose` took so far.
    #[must_use]
    pub fn spent(&self, purpose: Purpose) -> Spent {
        self.spent[purpose as usize]
    }

    /// What all purposes took so far, ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.spent.iter().map(|spent| spent.time_ns).sum()
    }

    /// What all purposes but reading for users took so far, ns.
    #[must_use]
    pub fn writing_ns(&self) -> u64 {
        let writing = Purpose::ALL.into_iter().filter(|purpose| !purpose.is_for_reading());
        writing.map(|purpose| self.spent(purpose).time_ns).sum()
    }

    /// Adds a transfer whose time is known otherwise.
    pub fn add(&mut self, transfer: &Transfer, time_ns: u64) {
        let spent = &mut self.spent[transfer.purpose as usize];
        spent.transfers += 1;
        spent.blocks += u64::from(transfer.blocks);
        spent.header_bytes += u64::from(transfer.header_bytes);
        spent.time_ns += time_ns;
    }

    /// Time that the model gives `transfer`.
    #[must_use]
    pub fn price_ns(&self, transfer: &Transfer) -> u64 {
        self.model.transfer_ns(transfer.further, transfer.bytes(self.model.block_bytes))
    }
}

impl BlockDevice for CostMeter {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        let time_ns = self.price_ns(transfer);
        self.add(transfer, time_ns);
    }

    fn spent_ns(&mut self) -> Option<u64> {
        Some(self.total_ns())
    }
}
