//! Prices learnt from transfers, against a device whose times are known.

use agewell_core::{RandomStreams, Stream, uniform_below};
use proptest::prelude::*;

use super::*;
use crate::{BlockDevice, CostMeter};

const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 7_000_000,
    bandwidth_bytes_per_s: 8_192_000,
    block_bytes: 8192,
};

/// A block streams in 1 ms.
const BLOCK_NS: u64 = 1_000_000;

/// A drive whose transfers take what its tables say, by distance: at once, and what the next one has
/// to wait for.
#[derive(Debug, Clone)]
struct Tabled {
    own_ns: Vec<u64>,
    left_ns: Vec<u64>,
    end: i64,
    waits_ns: u64,
}

impl Tabled {
    fn new(own_ns: &[u64], left_ns: &[u64]) -> Self {
        Self { own_ns: own_ns.to_vec(), left_ns: left_ns.to_vec(), end: 0, waits_ns: 0 }
    }

    fn serve(&mut self, transfer: &Transfer) -> u64 {
        let apart = step(i64::from(transfer.slot) - self.end);
        self.end = i64::from(transfer.slot + transfer.blocks);
        let own_ns = self.own_ns[apart % self.own_ns.len()];
        let waits_ns = std::mem::take(&mut self.waits_ns);
        if transfer.purpose.writes() {
            self.waits_ns = self.left_ns[apart % self.left_ns.len()];
        }
        own_ns + waits_ns + u64::from(transfer.blocks) * BLOCK_NS
    }
}

/// As a log does: reads of segments, and writes that go on, leave gaps or go elsewhere.
fn next(stream: &mut Stream, end: u32) -> Transfer {
    let mut below = |bound| uniform_below(stream, bound) as u32;
    let elsewhere = below(1 << 16) << 5;
    match below(8) {
        0 => Transfer::of_blocks(Purpose::CollectRead, elsewhere, 32),
        1 => Transfer::of_blocks(Purpose::NewData, elsewhere, 1 << below(6)),
        2 => Transfer::of_blocks(Purpose::NewData, end, 1 << below(6)),
        _ => Transfer::of_blocks(Purpose::Thread, end + below(12), 1 + below(2)),
    }
}

/// Time and price of `transfers` transfers, ns.
fn priced(
    times: &TransferTimes,
    mut serve: impl FnMut(&Transfer) -> u64,
    transfers: u32,
    stream: &mut Stream,
) -> (u64, u64) {
    let mut pricing = Pricing::new(times.prices().unwrap(), Spread::NONE);
    let (mut taken_ns, mut priced_ns, mut end) = (0, 0, 0);
    for _ in 0..transfers {
        let transfer = next(stream, end);
        end = (transfer.slot + transfer.blocks) % (1 << 22);
        taken_ns += serve(&transfer);
        priced_ns += pricing.next_ns(&transfer);
    }
    (taken_ns, priced_ns)
}

fn learn(
    times: &mut TransferTimes,
    mut serve: impl FnMut(&Transfer) -> u64,
    transfers: u32,
    stream: &mut Stream,
) {
    let mut end = 0;
    for _ in 0..transfers {
        let transfer = next(stream, end);
        end = (transfer.slot + transfer.blocks) % (1 << 22);
        times.note(&transfer, serve(&transfer), Comes::Next);
    }
}

fn streams(seed: u64) -> (Stream, Stream) {
    let streams = RandomStreams::new(seed);
    (streams.stream("learnt"), streams.stream("priced"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever steps take, and whatever of it only the next transfer waits for, others of the same
    /// drive are priced right.
    #[test]
    fn transfers_are_priced_at_what_they_take(
        own_ns in prop::collection::vec(0_u64..30_000_000, 5..40),
        left_ns in prop::collection::vec(0_u64..30_000_000, 1..40),
        seed in 0_u64..1000,
    ) {
        let (mut learnt, mut after) = streams(seed);
        let mut drive = Tabled::new(&own_ns, &left_ns);
        let mut times = TransferTimes::new(DISK);
        learn(&mut times, |transfer| drive.serve(transfer), 20_000, &mut learnt);
        let (taken_ns, priced_ns) =
            priced(&times, |transfer| drive.serve(transfer), 5_000, &mut after);
        let ratio = priced_ns as f64 / taken_ns as f64;
        prop_assert!((ratio - 1.0).abs() < 0.02, "{}", ratio);
    }

    #[test]
    fn longer_steps_have_no_lower_number(one in any::<i32>(), other in any::<i32>()) {
        let (near, far) = (one.min(other), one.max(other));
        let (near, far) = if near < 0 && far < 0 { (far, near) } else { (near, far) };
        prop_assert!(step(i64::from(far)) < STEPS);
        if (near < 0) == (far < 0) {
            prop_assert!(step(i64::from(near)) <= step(i64::from(far)));
        }
    }
}

#[test]
fn steps_ahead_are_told_apart_one_by_one_then_by_half_octaves() {
    let numbers: Vec<usize> = [0, 1, 7, 8, 9, 11, 12, 15, 16, 23, 24].map(step).to_vec();
    assert_eq!(numbers, [0, 1, 7, 8, 9, 9, 10, 10, 11, 11, 12]);
    assert_eq!(step(i64::from(u32::MAX)), FIRST_BACK - 1);
    assert_eq!((step(-1), step(-2), step(-3), step(-4)), {
        let back = FIRST_BACK;
        (back, back + 1, back + 1, back + 2)
    });
    assert!(step(-i64::from(i32::MAX)) < ELSEWHERE);
}

#[test]
fn nothing_seen_has_no_prices() {
    let mut times = TransferTimes::new(DISK);
    assert!(times.prices().is_none());
    times.note(&Transfer::of_blocks(Purpose::Read, 7, 1), 5_000_000, Comes::Next);
    assert!(times.prices().is_none(), "reads of users are no writing");
}

/// On a disk that charges by the model a price learnt is that of the model.
#[test]
fn a_disk_like_the_model_is_priced_like_the_model() {
    let mut times = TransferTimes::new(DISK);
    let serve =
        |transfer: &Transfer| DISK.transfer_ns(transfer.further, transfer.bytes(DISK.block_bytes));
    let (mut learnt, mut after) = streams(1);
    learn(&mut times, serve, 2_000, &mut learnt);
    let (taken_ns, priced_ns) = priced(&times, serve, 2_000, &mut after);
    assert!((priced_ns as f64 / taken_ns as f64 - 1.0).abs() < 1e-3, "{priced_ns} {taken_ns}");
}

/// Writes that go on where the last ended: after a rest nothing is waited for, after reads the arm is
/// elsewhere. What comes before a call is priced at its mean, as often as it was seen.
#[test]
fn calls_are_priced_as_if_they_came_after_rests_and_reads_as_often_as_before() {
    let serve = |between| match between {
        Between::Nothing | Between::Together => 9_000_000,
        Between::Rest => 1_000_000,
        Between::Reads => 21_000_000,
    };
    let mut times = TransferTimes::new(DISK);
    let mut taken_ns = 0;
    for number in 0..4_000_u32 {
        let between = match number % 8 {
            0 | 3 => Between::Rest,
            5 => Between::Reads,
            _ => Between::Nothing,
        };
        if between == Between::Reads {
            times.note(&Transfer::of_blocks(Purpose::Read, 9_999, 1), 15_000_000, Comes::Next);
        }
        times.begin_call();
        let time_ns = serve(between) + BLOCK_NS;
        let append = Transfer::of_blocks(Purpose::NewData, number, 1);
        let rests = between == Between::Rest;
        times.note(&append, time_ns, if rests { Comes::AfterRest } else { Comes::Next });
        taken_ns += time_ns;
    }
    let mut pricing = Pricing::new(times.prices().unwrap(), Spread::NONE);
    let price = |number| {
        pricing.begin_call();
        pricing.next_ns(&Transfer::of_blocks(Purpose::NewData, number, 1))
    };
    let priced_ns: u64 = (0..4_000).map(price).sum();
    assert!((priced_ns as f64 / taken_ns as f64 - 1.0).abs() < 0.02, "{priced_ns} {taken_ns}");
    // Within a call nothing comes between.
    let within_ns = pricing.next_ns(&Transfer::of_blocks(Purpose::NewData, 4_000, 1));
    assert!(within_ns.abs_diff(10 * BLOCK_NS) < BLOCK_NS / 4, "{within_ns}");
}

#[test]
fn a_device_that_changes_is_followed() {
    let mut times = TransferTimes::new(DISK);
    let (mut stream, mut after) = streams(2);
    learn(&mut times, |_| 30_000_000, 30_000, &mut stream);
    learn(&mut times, |_| 40_000_000, 400_000, &mut stream);
    let (taken_ns, priced_ns) = priced(&times, |_| 40_000_000, 1_000, &mut after);
    let ratio = priced_ns as f64 / taken_ns as f64;
    assert!((0.96..1.01).contains(&ratio), "{ratio}");
}

/// Observations of a trial and of a run count as if all were made in one of them.
#[test]
fn a_trial_and_a_run_together_price_at_their_mean() {
    let seen = |time_ns: u64| {
        let mut times = TransferTimes::new(DISK);
        learn(&mut times, |_| time_ns, 20_000, &mut streams(3).0);
        times
    };
    let both = seen(40_000_000).after_trial(&seen(60_000_000));
    let (taken_ns, priced_ns) = priced(&both, |_| 50_000_000, 1_000, &mut streams(4).1);
    let ratio = priced_ns as f64 / taken_ns as f64;
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

/// In a sample of a log segments are nearer to each other than in the log, slots of one are not.
#[test]
fn steps_beyond_a_segment_are_as_long_as_in_the_whole_log() {
    let spread = Spread { near_blocks: 32, scale: 4 };
    let lengths = [0, 5, -32, 33, -100].map(|blocks| spread.of(blocks));
    assert_eq!(lengths, [0, 5, -32, 132, -400]);
}

/// A flush, which is waited for because of what was written, is part of what that takes.
#[test]
fn flushes_belong_to_the_transfer_before_them() {
    let mut times = TransferTimes::new(DISK);
    for number in 0..2_000 {
        times.note(&Transfer::of_blocks(Purpose::NewData, number, 1), 2_000_000, Comes::Next);
        times.note(&Transfer::of_blocks(Purpose::Flush, 0, 0), 5_000_000, Comes::Next);
    }
    let mut pricing = Pricing::new(times.prices().unwrap(), Spread::NONE);
    let append = |number| pricing.next_ns(&Transfer::of_blocks(Purpose::NewData, number, 1));
    let last_ns = (2_000..2_100).map(append).last().unwrap();
    assert!(last_ns.abs_diff(7_000_000) < 100_000, "{last_ns}");
}

/// The second transfer of a batch costs next to nothing here; the same transfers one after another
/// cost as much as each alone.
#[test]
fn transfers_issued_together_are_priced_apart() {
    let mut times = TransferTimes::new(DISK);
    for number in 0..3_000 {
        let comes = if number % 3 == 0 { Comes::Next } else { Comes::Together };
        let time_ns = if comes == Comes::Together { 1_500_000 } else { 11_000_000 };
        times.note(&Transfer::of_blocks(Purpose::Thread, number * 2, 1), time_ns, comes);
    }
    let mut meter = CostMeter::learnt(DISK, Some(&times), Spread::NONE);
    let mut take = |first: u32, is_together: bool| {
        let before_ns = meter.total_ns();
        if is_together {
            meter.begin_batch();
        }
        for number in first..first + 3 {
            meter.transfer(&Transfer::of_blocks(Purpose::Thread, number * 2, 1), &[]);
        }
        if is_together {
            meter.end_batch();
        }
        meter.commit();
        meter.total_ns() - before_ns
    };
    take(0, true);
    let (together_ns, apart_ns) = (take(3, true), take(6, false));
    assert!(together_ns.abs_diff(14_000_000) < 300_000, "{together_ns}");
    assert!(apart_ns.abs_diff(33_000_000) < 700_000, "{apart_ns}");
}
