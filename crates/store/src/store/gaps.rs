//! What lies between the slots that are read, and is read with them where passing over it costs more.
//!
//! In a log blocks of a file lie one behind another but for records and nodes that were written between them.
//! A disk that is asked for what is before such a gap and then for what is behind it has passed the latter
//! when it is asked, and makes another turn; one that is asked for all of it does not.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use agewell_log::policy::cost::CostModel;

/// Bytes of a gap that is read, at most, whatever prices say; chosen by us: a disk passes them in the tenth part
/// of a turn.
const GAP_BYTES_MAX: u64 = 128 << 10;

/// The same in a sweep; chosen by us: a disk passes them in less than a turn (at 7,200 a minute and 126 MB a second or
/// more), and so must wait for what lies behind them as long if they are not read.
const SWEPT_GAP_BYTES_MAX: u64 = 1 << 20;

/// A read counts for this part of what reads take; chosen by us.
const SHARE: u64 = 8;

/// Bytes a second that no disk with an arm gives: those of its interface (Serial ATA 3.0, 6 Gbit/s).
const DISK_BYTES_PER_S_MAX: u64 = 600_000_000;

/// A read of at least these bytes says how fast a device is; chosen by us: fewer may be in a disk's buffer.
const RATED_BYTES_MIN: u64 = 128 << 10;

/// Reads faster than those of any disk after which a device is taken for none, less those that were not; chosen by
/// us.
const FAST_READS: u32 = 8;

/// Reads that take longer, ns, move an arm; chosen by us: flash reads in 0.1 to 0.2 ms, disks in 3 and more.
const ARM_NS: u64 = 1_000_000;

/// Requests that are sent together are many from this number on; chosen by us.
const QUEUED_MIN: u64 = 8;

/// Reads of one block after which it is known what they take; chosen by us: as many make little of what was
/// expected before.
const KNOWN_AFTER: u32 = 16;

/// How long gaps may be: what is read as long as a read of one block takes.
#[derive(Debug)]
pub(super) struct Gaps {
    prices: CostModel,
    /// What a read of one block takes, by and by.
    read_ns: AtomicU64,
    /// Reads of one block, up to [`KNOWN_AFTER`].
    reads: AtomicU32,
    /// What one of many requests takes that are sent together, by and by, and whether any were seen.
    queued_read_ns: AtomicU64,
    has_queued: AtomicBool,
    /// Reads that no disk could have done so fast, less others, up to twice [`FAST_READS`].
    fast_reads: AtomicU32,
    is_learning: bool,
    /// Whether none is read any more.
    is_over: AtomicBool,
}

impl Gaps {
    /// By `prices`, until more is known if it `is_learning`.
    pub(super) fn new(prices: CostModel, is_learning: bool) -> Self {
        let (read_ns, is_over) = (AtomicU64::new(prices.access_ns), AtomicBool::new(false));
        let (reads, fast_reads) = (AtomicU32::new(0), AtomicU32::new(0));
        let (queued_read_ns, has_queued) =
            (AtomicU64::new(prices.access_ns), AtomicBool::new(false));
        Self {
            prices,
            read_ns,
            reads,
            queued_read_ns,
            has_queued,
            fast_reads,
            is_learning,
            is_over,
        }
    }

    /// Whether it wants to know what reads take.
    pub(super) fn is_learning(&self) -> bool {
        self.is_learning
    }

    /// A read of `blocks` blocks by `requests` requests took so long. What others say at the same time may be lost.
    pub(super) fn took(&self, blocks: u64, requests: u64, time_ns: u64) {
        let bytes = blocks * self.prices.block_bytes;
        if requests >= QUEUED_MIN {
            let one_ns = time_ns.saturating_sub(self.prices.streaming_ns(bytes)) / requests;
            let before = self.queued_read_ns.load(Ordering::Relaxed);
            let now = before - before / SHARE + one_ns / SHARE;
            let is_first = !self.has_queued.swap(true, Ordering::Relaxed);
            self.queued_read_ns.store(if is_first { one_ns } else { now }, Ordering::Relaxed);
        }
        if bytes >= RATED_BYTES_MIN {
            let is_fast = u128::from(bytes) * 1_000_000_000
                > u128::from(time_ns) * u128::from(DISK_BYTES_PER_S_MAX);
            let before = self.fast_reads.load(Ordering::Relaxed);
            let now =
                if is_fast { (before + 1).min(2 * FAST_READS) } else { before.saturating_sub(1) };
            self.fast_reads.store(now, Ordering::Relaxed);
        }
        if blocks != 1 {
            return;
        }
        let reads = self.reads.load(Ordering::Relaxed);
        self.reads.store((reads + 1).min(KNOWN_AFTER), Ordering::Relaxed);
        let before = self.read_ns.load(Ordering::Relaxed);
        let now = before - before / SHARE + time_ns / SHARE;
        self.read_ns.store(now, Ordering::Relaxed);
    }

    /// A gap could not be read, perhaps: a disk tries for seconds to read a sector that is damaged, and nobody
    /// needs this one.
    pub(super) fn give_up(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// What a read of one block takes, by and by, and what each takes that lies behind another, ns.
    pub(super) fn times_ns(&self) -> (u64, u64) {
        let block_ns = self.prices.streaming_ns(self.prices.block_bytes);
        (self.read_ns.load(Ordering::Relaxed), block_ns)
    }

    /// What one of many requests takes that are sent together, by and by, without its bytes, ns; as expected until
    /// some were.
    pub(super) fn queued_read_ns(&self) -> u64 {
        self.queued_read_ns.load(Ordering::Relaxed)
    }

    /// Slots of the longest gap that is read in a sweep, where nobody waits for any one of the requests.
    pub(super) fn longest_in_sweep(&self) -> u32 {
        if self.longest() == 0 { 0 } else { (SWEPT_GAP_BYTES_MAX / self.prices.block_bytes) as u32 }
    }

    /// Whether it is known that a read moves an arm.
    pub(super) fn has_arm(&self) -> bool {
        let is_known = !self.is_learning || self.reads.load(Ordering::Relaxed) >= KNOWN_AFTER;
        is_known && self.may_have_arm()
    }

    /// The same as far as it is expected. A disk that has read ahead by itself answers single reads at once, but not
    /// many at a time.
    pub(super) fn may_have_arm(&self) -> bool {
        let queued_ns =
            if self.has_queued.load(Ordering::Relaxed) { self.queued_read_ns() } else { 0 };
        self.longest() > 0 && self.read_ns.load(Ordering::Relaxed).max(queued_ns) > ARM_NS
    }

    /// Slots of the longest gap that is read.
    pub(super) fn longest(&self) -> u32 {
        let is_fast = self.fast_reads.load(Ordering::Relaxed) >= FAST_READS;
        if is_fast || self.is_over.load(Ordering::Relaxed) {
            return 0;
        }
        let read_ns = u128::from(self.read_ns.load(Ordering::Relaxed));
        let bytes = read_ns * u128::from(self.prices.bandwidth_bytes_per_s) / 1_000_000_000;
        (bytes.min(u128::from(GAP_BYTES_MAX)) as u64 / self.prices.block_bytes) as u32
    }
}

/// The gaps between `slots`, in their order, of at most `longest` slots each: as many as come to no more than
/// `most` slots.
pub(super) fn between(
    slots: impl Iterator<Item = u32>,
    longest: u32,
    most: usize,
) -> Vec<Range<u32>> {
    let (mut gaps, mut left, mut before) = (Vec::new(), most, None);
    for slot in slots {
        if let Some(gap) = before.and_then(|before| before_slot(before, slot, longest))
            && gap.len() <= left
        {
            left -= gap.len();
            gaps.push(gap);
        }
        before = Some(slot);
    }
    gaps
}

/// What lies between the slot `before` and the later slot `behind`, if it is worth reading.
pub(super) fn before_slot(before: u32, behind: u32, longest: u32) -> Option<Range<u32>> {
    let gap = before + 1..behind;
    (!gap.is_empty() && gap.len() <= longest as usize).then_some(gap)
}

/// Adds to `slots` those of `others`, both ascending, from which there are only gaps of at most `longest` slots to
/// one of them, and no more than `most` slots in all.
pub(super) fn add_near(slots: &mut Vec<u32>, others: &[u32], longest: u32, most: u32) {
    let (mut found, mut rest) = (Vec::new(), others);
    for slot in &*slots {
        let (before, behind) = rest.split_at(rest.partition_point(|other| other < slot));
        let goes_on = |last: &mut u32, at: u32| {
            let is_near = at.abs_diff(*last) <= longest + 1 && at.abs_diff(*slot) <= most;
            *last = at;
            is_near
        };
        let (mut last, mut end) = (*slot, *slot);
        found.extend(before.iter().rev().copied().take_while(|at| goes_on(&mut last, *at)));
        found.extend(behind.iter().copied().take_while(|at| goes_on(&mut end, *at)));
        rest = behind;
    }
    slots.append(&mut found);
    slots.sort_unstable();
    slots.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_than_a_request_is_passed_over() {
        let gaps = |slots: &[u32], most| between(slots.iter().copied(), 3, most);
        assert_eq!(gaps(&[], 9), []);
        assert_eq!(gaps(&[5, 6, 8, 12, 17, 16, 19], 9), [7..8, 9..12, 17..19]);
        // No more than there is room for, and what is short later.
        assert_eq!(gaps(&[5, 6, 8, 12, 17, 16, 19], 3), [7..8, 17..19]);
        assert_eq!(before_slot(7, 8, 3), None);
        assert_eq!(before_slot(9, 8, 3), None);
        assert_eq!(before_slot(u32::MAX - 1, u32::MAX, 3), None);
    }

    #[test]
    fn what_lies_near_is_what_is_joined_by_short_gaps() {
        let near = |slots: &[u32], others: &[u32]| {
            let mut slots = slots.to_vec();
            add_near(&mut slots, others, 3, 64);
            slots
        };
        assert_eq!(near(&[100], &[]), [100]);
        assert_eq!(near(&[100], &[88, 93, 97, 100, 103, 107, 112, 113]), [93, 97, 100, 103, 107]);
        assert_eq!(near(&[100, 200], &[101, 199, 204, 209]), [100, 101, 199, 200, 204]);
        // No chain leads further than what is read in a part of a turn, but from one wanted to the next.
        let all: Vec<u32> = (0..1000).collect();
        assert_eq!(near(&[500], &all), (436..=564).collect::<Vec<_>>());
        assert_eq!(near(&[500, 510], &all)[..], all[436..=574]);
    }

    #[test]
    fn an_arm_is_said_or_seen() {
        let prices = CostModel {
            access_ns: 9_000_000,
            further_ns: 9_000_000,
            bandwidth_bytes_per_s: 150_000_000,
            block_bytes: 4096,
        };
        assert!(Gaps::new(prices, false).has_arm());
        assert!(!Gaps::new(CostModel { access_ns: 90_000, ..prices }, false).has_arm());
        for (time_ns, has) in [(8_000_000, true), (80_000, false)] {
            let gaps = Gaps::new(prices, true);
            (0..KNOWN_AFTER - 1).for_each(|_| gaps.took(1, 1, time_ns));
            assert!(!gaps.has_arm(), "what was expected is not known");
            (0..8).for_each(|_| gaps.took(1, 1, time_ns));
            assert_eq!(gaps.has_arm(), has);
        }
        // What is read one by one may lie in a disk's buffer.
        let gaps = Gaps::new(prices, true);
        (0..40).for_each(|_| gaps.took(1, 1, 80_000));
        gaps.took(32, 32, 60_000_000);
        assert!(gaps.has_arm());
        (0..40).for_each(|_| gaps.took(32, 32, 2_000_000));
        assert!(!gaps.has_arm());
    }

    #[test]
    fn what_is_sent_together_takes_what_it_took() {
        let prices = CostModel {
            access_ns: 2_000_000,
            further_ns: 400_000,
            bandwidth_bytes_per_s: 131_072_000,
            block_bytes: 4096,
        };
        let gaps = Gaps::new(prices, true);
        // A block takes 31.25 us of its own.
        gaps.took(7, 7, 900_000);
        assert_eq!(gaps.queued_read_ns(), 2_000_000);
        gaps.took(32, 32, 32 * 1_431_250);
        assert_eq!(gaps.queued_read_ns(), 1_400_000);
        gaps.took(32, 16, 16 * 1_462_500);
        assert_eq!(gaps.queued_read_ns(), 1_400_000);
        assert_eq!((gaps.longest(), gaps.longest_in_sweep()), (32, 256));
        (0..40).for_each(|_| gaps.took(32, 32, 640_000));
        assert!(gaps.queued_read_ns() < 8_000);
    }

    #[test]
    fn a_gap_is_as_long_as_a_read_takes() {
        let prices = |access_ns, bandwidth_bytes_per_s| CostModel {
            access_ns,
            further_ns: access_ns,
            bandwidth_bytes_per_s,
            block_bytes: 4096,
        };
        // 0.4 ms of 140 MB a second: 56,000 bytes.
        let gaps = Gaps::new(prices(400_000, 140_000_000), true);
        assert_eq!(gaps.longest(), 13);
        assert_eq!(Gaps::new(prices(u64::MAX, u64::MAX), false).longest(), 32);
        // Flash that is taken for a disk at first.
        (0..40).for_each(|_| gaps.took(1, 1, 20_000));
        assert_eq!(gaps.longest(), 0);
        (0..40).for_each(|_| gaps.took(1, 1, 8_000_000));
        assert_eq!(gaps.longest(), 32);
        // Half a mebibyte at 200 MB a second, and at 2 GB: memory, until it is slow again.
        (0..40).for_each(|_| gaps.took(128, 1, 2_600_000));
        assert_eq!(gaps.longest(), 32);
        (0..40).for_each(|_| gaps.took(128, 1, 260_000));
        assert_eq!(gaps.longest(), 0);
        (0..9).for_each(|_| gaps.took(128, 1, 2_600_000));
        assert_eq!(gaps.longest(), 32);
        gaps.give_up();
        assert_eq!(gaps.longest(), 0);
    }
}
