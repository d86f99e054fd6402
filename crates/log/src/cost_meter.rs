//! A device that prices every transfer, by a cost model or by learnt times, and accounts each
//! purpose separately.

use super::policy::cost::CostModel;
use super::transfer_times::{Pricing, Spread};
use super::{BlockDevice, Purpose, Transfer, TransferTimes};

/// Account of one purpose.
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
    /// Learnt prices, if transfers are not priced by the model.
    pricing: Option<Pricing>,
}

impl CostMeter {
    /// A meter at zero.
    #[must_use]
    pub fn new(model: CostModel) -> Self {
        Self { model, spent: Default::default(), pricing: None }
    }

    /// A meter at zero that prices as `times` say, if they say anything, and else by the model;
    /// slots lie as far apart as `spread` says.
    #[must_use]
    pub fn learnt(model: CostModel, times: Option<&TransferTimes>, spread: Spread) -> Self {
        let prices = times.and_then(TransferTimes::prices);
        Self { pricing: prices.map(|prices| Pricing::new(prices, spread)), ..Self::new(model) }
    }

    /// Whether it prices by what a device has shown.
    #[must_use]
    pub fn is_learnt(&self) -> bool {
        self.pricing.is_some()
    }

    /// The model it prices by.
    #[must_use]
    pub fn model(&self) -> &CostModel {
        &self.model
    }

    /// The account of `purpose` so far.
    #[must_use]
    pub fn spent(&self, purpose: Purpose) -> Spent {
        self.spent[purpose as usize]
    }

    /// Time of all purposes so far, ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.spent.iter().map(|spent| spent.time_ns).sum()
    }

    /// Time of all purposes but reading for users so far, ns.
    #[must_use]
    pub fn writing_ns(&self) -> u64 {
        let writing = Purpose::ALL.into_iter().filter(|purpose| !purpose.is_for_reading());
        writing.map(|purpose| self.spent(purpose).time_ns).sum()
    }

    /// Adds a transfer whose time is known otherwise.
    pub fn add(&mut self, transfer: &Transfer, time_ns: u64) {
        self.add_alike(transfer, time_ns, 1);
    }

    /// Adds `transfers` transfers like `transfer`, each of which took `time_ns`.
    #[inline]
    pub fn add_alike(&mut self, transfer: &Transfer, time_ns: u64, transfers: u64) {
        let spent = &mut self.spent[transfer.purpose as usize];
        spent.transfers += transfers;
        spent.blocks += transfers * u64::from(transfer.blocks);
        spent.header_bytes += transfers * u64::from(transfer.header_bytes);
        spent.time_ns += transfers * time_ns;
    }

    /// What follows was asked for by another call of a user: the device may have rested since the
    /// one before.
    #[inline]
    pub fn begin_call(&mut self) {
        self.pricing.iter_mut().for_each(Pricing::begin_call);
    }

    /// Time that `transfer` is priced at after those before it.
    #[inline]
    fn price_ns(&mut self, transfer: &Transfer) -> u64 {
        match &mut self.pricing {
            None => {
                self.model.transfer_ns(transfer.further, transfer.bytes(self.model.block_bytes))
            }
            Some(pricing) => pricing.next_ns(transfer),
        }
    }
}

impl BlockDevice for CostMeter {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        let time_ns = self.price_ns(transfer);
        self.add(transfer, time_ns);
    }

    fn begin_batch(&mut self) {
        self.pricing.iter_mut().for_each(Pricing::begin_batch);
    }

    fn end_batch(&mut self) {
        self.pricing.iter_mut().for_each(Pricing::end_batch);
    }

    fn wait(&mut self) {
        self.pricing.iter_mut().for_each(Pricing::wait);
    }

    fn commit(&mut self) {
        self.pricing.iter_mut().for_each(Pricing::wait);
    }
}
