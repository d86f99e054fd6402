//! The control log: the same log without reorganisation, to see what that costs and saves.
//!
//! What a block moved does to the collections that come after it cannot be foreseen well: it takes
//! a slot of the free space at once, and leaves a hole that gives it back only when its segment is
//! collected, if that is soon. Where free space is scarce that costs several times what room costs
//! on average. So it is measured: a copy of the log, metadata only, is written and collected as the
//! log is, and moves nothing. Both are priced by the policies' cost model; what the log spent beyond
//! the copy is what moving has cost in all, the moves themselves included. And where a block lies in
//! the copy is where it would lie.
//!
//! Invariants: the copy holds the blocks that the log holds. If it ever finds no room where the log
//! does, nothing more is learnt from it.
//!
//! Memory: one more map, owner and bit for each block; time: one more write for each write.
//!
//! Source: ours; a control beside the experiment.

use agewell_log::policy::placement::{Placement, Regrouping};
use agewell_log::{
    AdaptiveLog, BlockDevice, Call, CostMeter, LogError, Transfer, TransferTimes, Unpriced,
    pass_batches_on,
};

/// A log that moves nothing, and the prices of what both did.
#[derive(Debug, Clone)]
pub(super) struct ControlLog<P> {
    /// None if it is not asked for, or has found no room.
    log: Option<AdaptiveLog<Regrouping<P>>>,
    spent: CostMeter,
    spent_of_log: CostMeter,
    /// What that has really taken, ns; zero where it is not known.
    taken_ns: u64,
}

/// A device, and a meter of what passes on to it.
pub(super) struct Metered<'a, D> {
    device: &'a mut D,
    meter: &'a mut CostMeter,
}

impl<D: BlockDevice> BlockDevice for Metered<'_, D> {
    #[inline]
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        self.meter.transfer(transfer, contents);
        self.device.transfer(transfer, contents);
    }

    fn commit(&mut self) {
        self.device.commit();
    }

    fn discard(&mut self, slot: u32, blocks: u32) {
        self.device.discard(slot, blocks);
    }

    fn begin_background(&mut self) {
        self.device.begin_background();
    }

    fn end_background(&mut self) {
        self.device.end_background();
    }

    fn is_drained(&self) -> bool {
        self.device.is_drained()
    }

    fn drain(&mut self) {
        self.device.drain();
    }

    pass_batches_on!();
}

impl<P: Placement + Clone> ControlLog<P> {
    /// The control log of `log`, which is empty; none that does anything unless it is `wanted`.
    pub(super) fn of(log: &AdaptiveLog<Regrouping<P>>, wanted: bool) -> Self {
        let meter = CostMeter::new(log.log().setting().disk);
        Self {
            log: wanted.then(|| log.clone()),
            spent: meter.clone(),
            spent_of_log: meter,
            taken_ns: 0,
        }
    }

    /// Lets the log do `work` on `device`, and meters what it spends.
    #[inline]
    pub(super) fn watch<D: BlockDevice, T>(
        &mut self,
        device: &mut D,
        work: impl FnOnce(&mut Metered<'_, D>) -> T,
    ) -> T {
        work(&mut Metered { device, meter: &mut self.spent_of_log })
    }

    /// What the model makes of all that the log did but for reads of users, ns.
    pub(super) fn writing_ns(&self) -> u64 {
        self.spent_of_log.writing_ns()
    }

    /// The device has taken `taken_ns` for things that were no reads of users.
    pub(super) fn took(&mut self, taken_ns: u64) {
        self.taken_ns += taken_ns;
    }

    /// Does with the control log what the log is asked for.
    #[inline]
    pub(super) fn follow(&mut self, call: Call<'_>) {
        match call {
            // What lies there before the first request has taken no time of the device.
            Call::Preload(_) => self.work(|log, _| log.carry_out(call, &mut Unpriced)),
            _ => self.work(|log, meter| log.carry_out(call, meter)),
        }
    }

    /// Lets the control log do `work` of its own.
    #[inline]
    pub(super) fn work(
        &mut self,
        work: impl FnOnce(&mut AdaptiveLog<Regrouping<P>>, &mut CostMeter) -> Result<(), LogError>,
    ) {
        let Some(log) = &mut self.log else { return };
        if work(log, &mut self.spent).is_err() {
            self.log = None;
        }
    }

    /// Whether the control log has to decide on its mechanism.
    #[inline]
    pub(super) fn is_decision_due(&self) -> bool {
        self.log.as_ref().is_some_and(AdaptiveLog::is_decision_due)
    }

    /// Decides by what transfers of the log's device took.
    pub(super) fn decide(&mut self, times: Option<&TransferTimes>) {
        self.log.iter_mut().for_each(|log| log.decide(times));
    }

    /// Where `block` would lie if nothing had been moved, if that is known.
    #[inline]
    pub(super) fn slot_of(&self, block: u32) -> Option<u32> {
        self.log.as_ref()?.log().slot_of(block)
    }

    /// Disk time that the log has spent on writing, moving and making room beyond what its control log has,
    /// ns; less than nothing if it has spent less. Without a copy to compare with, nothing is known
    /// to have been lost.
    pub(super) fn moving_ns(&self) -> f64 {
        if self.log.is_none() {
            return 0.0;
        }
        let (log_ns, twin_ns) = (self.spent_of_log.writing_ns(), self.spent.writing_ns());
        // The model's time against the device's.
        let scale = if self.taken_ns > 0 && log_ns > 0 {
            self.taken_ns as f64 / log_ns as f64
        } else {
            1.0
        };
        (log_ns as f64 - twin_ns as f64) * scale
    }

    /// Bytes the copy takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.log().memory_bytes())
    }

    pub(super) fn verify(&self) {
        self.log.iter().for_each(AdaptiveLog::verify);
    }
}

#[cfg(test)]
mod tests {
    use agewell_log::policy::cost::CostModel;
    use agewell_log::policy::placement::NoSeparation;
    use agewell_log::{LogSetting, LogShape};

    use super::*;

    const DISK: CostModel = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 8192,
    };

    #[test]
    fn what_lay_there_before_the_first_request_is_no_time_that_moving_saves() {
        let setting = LogSetting::plain(LogShape::uniform(20, 16).unwrap(), 256, DISK);
        let placement = Regrouping::new(NoSeparation, 256).unwrap();
        let mut log = AdaptiveLog::fixed(setting, placement).unwrap();
        let mut control = ControlLog::of(&log, true);
        for block in 0..256 {
            log.carry_out(Call::Preload(block), &mut Unpriced).unwrap();
            control.follow(Call::Preload(block));
        }
        assert!(control.moving_ns().abs() < 1.0);
        control.follow(Call::Write { block: 3, client: 0 });
        control.follow(Call::Sync { client: 0 });
        assert!(control.moving_ns() < 0.0, "the control has written, the log has not");
    }
}
