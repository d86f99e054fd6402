//! A device that records its transfers, for tests by example.

use agewell_log::{BlockDevice, Purpose, Transfer};

/// Purpose, first place and places of each transfer.
#[derive(Default)]
pub(crate) struct Taken(pub(crate) Vec<(Purpose, u32, u32)>);

impl BlockDevice for Taken {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        self.0.push((transfer.purpose, transfer.slot, transfer.blocks));
    }
}

impl Taken {
    /// First place and places of the transfers for one purpose.
    pub(crate) fn of(&self, purpose: Purpose) -> Vec<(u32, u32)> {
        let of = self.0.iter().filter(|taken| taken.0 == purpose);
        of.map(|(_, place, places)| (*place, *places)).collect()
    }
}
