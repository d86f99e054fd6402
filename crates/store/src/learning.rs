//! What transfers take on the device, learnt from those that the store makes.
//!
//! The table is the simulator's ([`TransferTimes`]); here is what a store notes in it. One call writes
//! the pieces of a group, so its time is divided among them: each has the time that its bytes take, and
//! all have the same of the rest. A flush belongs to the groups that it makes durable, and there to the
//! first transfer of each, as there is one in every group. What checkpoints and roots take is added to
//! the first transfer of the group that comes next: it is what they were written for.
//!
//! The device says what time it is. One without a clock teaches nothing, and the choice goes by the
//! prices in the options: the same calls then give the same bytes.

use agewell_log::policy::cost::CostModel;
use agewell_log::{Comes, Purpose, Transfer, TransferTimes};

use crate::format::{Geometry, MapPage};
use crate::group::{Group, Origin};

/// Groups that wait for a flush to be noted, at most; chosen by us: what is not synced for so long has
/// no part in it.
const WAITING_MAX: usize = 64;

/// What is learnt.
#[derive(Debug)]
pub(crate) struct Learning {
    disk: CostModel,
    times: TransferTimes,
    /// Groups that have been written and not flushed: their transfers, what each took, and how it came.
    waiting: Vec<Vec<(Transfer, u64, Comes)>>,
    /// Of what nothing has been noted in.
    owed_ns: u64,
    /// When the device was last done.
    done_ns: u64,
}

impl Learning {
    /// Nothing is known yet beside the prices of `disk`.
    pub(crate) fn new(disk: CostModel, now_ns: u64) -> Self {
        let mut times = TransferTimes::new(disk);
        times.issue_calls_together();
        Self { disk, times, waiting: Vec::new(), owed_ns: 0, done_ns: now_ns }
    }

    pub(crate) fn times(&self) -> &TransferTimes {
        &self.times
    }

    /// `group` was carried out: what it copies was read from the first to the second moment, and all
    /// written from there to the third.
    pub(crate) fn group(&mut self, group: &Group, at_ns: [u64; 3]) {
        let reads = group
            .reads
            .iter()
            .map(|(slot, blocks)| Transfer::of_blocks(Purpose::CollectRead, *slot, *blocks));
        let writes = group.runs.iter().map(|run| {
            let purpose = match run.origin {
                Origin::Appended => Purpose::NewData,
                Origin::Threaded => Purpose::Thread,
                Origin::Collected | Origin::Separated => Purpose::CollectWrite,
                Origin::Plugged => Purpose::Plug,
            };
            Transfer::of_blocks(purpose, run.slot, run.blocks)
        });
        self.done(&reads.collect::<Vec<_>>(), &writes.collect::<Vec<_>>(), at_ns);
    }

    /// The pages of the map that differ between `before` and `after` were written and flushed: scattered
    /// writes, as those into holes are. Here they lie behind the slots, which is as far from them.
    pub(crate) fn map(
        &mut self,
        geometry: &Geometry,
        before: &[u64],
        after: &[u64],
        at_ns: [u64; 2],
    ) {
        let changed = (0..).zip(before.iter().zip(after)).filter(|(_, (old, new))| old != new);
        let at = |(page, (_, new)): (u32, (&u64, &u64))| {
            let address = MapPage::address(geometry, page, new & 1 == 1);
            let place = geometry.slots() + (address - geometry.map) as u32;
            Transfer::of_blocks(Purpose::MetadataWrite, place, 1)
        };
        let writes: Vec<Transfer> = changed.map(at).collect();
        self.done(&[], &writes, [at_ns[0], at_ns[0], at_ns[1]]);
        self.note();
    }

    /// Transfers that read were done from the first to the second moment, those that write from there to
    /// the third.
    fn done(&mut self, reads: &[Transfer], writes: &[Transfer], at_ns: [u64; 3]) {
        let [begin_ns, between_ns, end_ns] = at_ns;
        let rested = begin_ns.saturating_sub(self.done_ns) >= self.disk.access_ns.max(1);
        let mut group = Vec::with_capacity(reads.len() + writes.len());
        self.divide(reads, between_ns.saturating_sub(begin_ns), &mut group);
        self.divide(writes, end_ns.saturating_sub(between_ns), &mut group);
        self.done_ns = end_ns;
        let Some((_, time_ns, comes)) = group.first_mut() else {
            // A group that only frees has nothing but its record.
            self.owed_ns += end_ns.saturating_sub(begin_ns);
            return;
        };
        *time_ns += std::mem::take(&mut self.owed_ns);
        if rested {
            *comes = Comes::AfterRest;
        }
        self.waiting.push(group);
        if self.waiting.len() > WAITING_MAX {
            self.note();
        }
    }

    /// Divides `time_ns` among `transfers`, which were asked for at once.
    fn divide(&self, transfers: &[Transfer], time_ns: u64, into: &mut Vec<(Transfer, u64, Comes)>) {
        let streaming_ns =
            |transfer: &Transfer| self.disk.streaming_ns(transfer.bytes(self.disk.block_bytes));
        let all_ns: u64 = transfers.iter().map(streaming_ns).sum();
        for (place, transfer) in transfers.iter().enumerate() {
            // Where all took less than their bytes should, each has its part of that.
            let own_ns = if all_ns <= time_ns {
                streaming_ns(transfer) + (time_ns - all_ns) / transfers.len() as u64
            } else {
                (u128::from(time_ns) * u128::from(streaming_ns(transfer)) / u128::from(all_ns))
                    as u64
            };
            let comes = if place == 0 { Comes::Next } else { Comes::Together };
            into.push((*transfer, own_ns, comes));
        }
    }

    /// All groups so far have been flushed, which took from the first moment to the second.
    pub(crate) fn flushed(&mut self, begin_ns: u64, end_ns: u64) {
        let time_ns = end_ns.saturating_sub(begin_ns);
        self.done_ns = end_ns;
        let groups = self.waiting.len() as u64;
        if groups == 0 {
            self.owed_ns += time_ns;
            return;
        }
        for group in &mut self.waiting {
            group[0].1 += time_ns / groups;
        }
        self.note();
    }

    /// Something was done that no group is charged with yet.
    pub(crate) fn more(&mut self, begin_ns: u64, end_ns: u64) {
        self.owed_ns += end_ns.saturating_sub(begin_ns);
        self.done_ns = end_ns;
    }

    fn note(&mut self) {
        for group in self.waiting.drain(..) {
            self.times.begin_call();
            for (transfer, time_ns, comes) in group {
                self.times.note(&transfer, time_ns, comes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: CostModel = CostModel {
        access_ns: 10_000_000,
        further_ns: 4_000_000,
        bandwidth_bytes_per_s: 100_000_000,
        block_bytes: 4096,
    };

    #[test]
    fn all_time_is_noted_once() {
        let mut learning = Learning::new(DISK, 0);
        let write = |slot| Transfer::of_blocks(Purpose::NewData, slot, 4);
        learning.more(0, 1_000_000);
        learning.done(&[], &[write(0), write(100)], [1_000_000, 1_000_000, 4_000_000]);
        learning.done(
            &[Transfer::of_blocks(Purpose::CollectRead, 64, 64)],
            &[write(300)],
            [4_000_000, 20_000_000, 30_000_000],
        );
        let sum_ns = |waiting: &[Vec<(Transfer, u64, Comes)>]| -> u64 {
            waiting.iter().flatten().map(|(_, time_ns, _)| time_ns).sum()
        };
        assert_eq!(sum_ns(&learning.waiting), 30_000_000);
        let comes: Vec<Comes> = learning.waiting.iter().flatten().map(|each| each.2).collect();
        assert_eq!(comes, [Comes::Next, Comes::Together, Comes::Next, Comes::Next]);
        assert!(learning.times.prices().is_none());
        learning.flushed(30_000_000, 38_000_000);
        assert!(learning.waiting.is_empty() && learning.times.prices().is_some());
        // Nothing waits for this one; the next group pays.
        learning.flushed(38_000_000, 40_000_000);
        learning.done(&[], &[write(500)], [60_000_000, 60_000_000, 61_000_000]);
        assert_eq!(learning.waiting[0][0].1, 3_000_000);
        assert_eq!(learning.waiting[0][0].2, Comes::AfterRest);
    }
}
