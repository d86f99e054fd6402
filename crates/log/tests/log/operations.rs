//! Any sequence of operations on any log, against the recorder.

use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::{Ages, CollectedOrder, Header, LogError, SegmentAge, Trigger, Victim, ZoneUse};
use proptest::prelude::*;

use crate::case::{Case, Means, Reserve, cases};

/// Runs a case; a log that says it is full must have been allowed to be.
fn holds_what_was_written(case: &Case, check_every: u32, thorough: bool) {
    if let Err(LogError::Full { live, capacity }) = case.run(check_every, thorough) {
        assert!(!case.must_fit(), "full at {live} of {capacity} blocks: {case:?}");
    }
}

/// As many as take a few seconds, or as many as the environment says.
fn cases_to_try() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4000)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases_to_try(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every live block is found where the map says, in its last version; counts are exact; no
    /// block lies in two places; free, live and dead slots make up the disk.
    #[test]
    fn every_log_holds_what_was_written(case in cases()) {
        holds_what_was_written(&case, 5, false);
    }

    /// A crash after any transfer finds every block that was on disk, where the old map names it.
    #[test]
    fn a_crash_after_any_transfer_loses_nothing(mut case in cases()) {
        case.steps /= 3;
        holds_what_was_written(&case, 50, true);
    }
}

/// The plainest log, with little in it.
fn plain() -> Case {
    Case {
        segment_blocks: 7,
        segments: 2,
        second_blocks: 0,
        victim: Victim::Greedy,
        means: Means::Fixed(Collect::Always(Mechanism::Clean)),
        placement: 0,
        ages: Ages::default(),
        header: Header::Free,
        join_holes: false,
        record_slots: 0,
        zone_use: ZoneUse::Any,
        trigger: Trigger::NoFreeSegment,
        batch_segments: 0,
        reserve: Reserve::OneEach { more: 0 },
        eligible_garbage: 0.0,
        tracks_cache: false,
        beside: 0,
        reorganises: false,
        clients: 1,
        buffer_blocks: 1,
        fill: 0.5,
        preloaded: 0.0,
        deletions: 0,
        hot: 1,
        steps: 200,
        seed: 1,
    }
}

/// The look-ahead of an adaptive log went on beyond the writes whose deaths its placement knew.
#[test]
fn regression_a_rehearsal_goes_on_beyond_the_writes_to_come() {
    let case = Case {
        segment_blocks: 64,
        segments: 17,
        second_blocks: 64,
        means: Means::Adaptive,
        placement: 8,
        reorganises: true,
        buffer_blocks: 1,
        fill: 0.565_706_889_230_860_2,
        hot: 1,
        steps: 167,
        seed: 12_059_238_285_452_074_412,
        ..plain()
    };
    holds_what_was_written(&case, 5, false);
}

/// Logs that share a reserve of one segment lend one another room: a log without a segment found none.
#[test]
fn a_shared_reserve_of_one_segment_is_enough() {
    let case = Case {
        segment_blocks: 32,
        segments: 9,
        victim: Victim::Renewal,
        placement: 4,
        ages: Ages { segment: SegmentAge::Data, order: CollectedOrder::Age },
        reserve: Reserve::Shared { more: 0 },
        fill: 0.95,
        preloaded: 0.7,
        steps: 398,
        seed: 11_986_996_969_107_271_385,
        ..plain()
    };
    holds_what_was_written(&case, 5, false);
}

/// A block left the cache while its segment was open, and the segment's age was asked for.
#[test]
fn regression_a_block_of_an_open_segment_leaves_the_cache() {
    let case = Case {
        segment_blocks: 32,
        victim: Victim::Renewal,
        tracks_cache: true,
        fill: 0.2,
        ..plain()
    };
    holds_what_was_written(&case, 1, true);
}

/// The oldest segments were full, a batch of one met one of them, and the log gave up.
#[test]
fn regression_full_segments_at_the_head_of_the_queue_are_passed() {
    for victim in [Victim::Fifo, Victim::WindowedGreedy { window: 1 }] {
        for seed in 0..20 {
            let case = Case {
                segment_blocks: 3,
                segments: 13,
                victim,
                batch_segments: 1,
                fill: 0.95,
                seed,
                ..plain()
            };
            assert!(case.must_fit());
            holds_what_was_written(&case, 1, true);
        }
    }
}

/// The window compared live blocks of segments of different sizes, and took full small ones for
/// ever; where new and collected data lie apart, the garbage was never looked for.
#[test]
fn regression_garbage_in_the_larger_segments_is_found() {
    for zone_use in [ZoneUse::Any, ZoneUse::NewFirstCollectedLast] {
        for placement in [1, 2] {
            let case = Case {
                second_blocks: 1,
                victim: Victim::WindowedGreedy { window: 3 },
                placement,
                zone_use,
                trigger: Trigger::GarbageShare(0.1),
                seed: 1_191_543_673_064_402,
                ..plain()
            };
            holds_what_was_written(&case, 1, true);
        }
    }
}

/// A log that filled up while it collected left segments half collected.
#[test]
fn regression_a_collection_that_finds_no_room_is_taken_back() {
    let mut filled_up = 0;
    for seed in 0..50 {
        let case = Case {
            segment_blocks: 32,
            segments: 8,
            second_blocks: 5,
            victim: Victim::CostAge,
            placement: 4,
            clients: 3,
            buffer_blocks: 65,
            fill: 1.56,
            deletions: 30,
            steps: 453,
            seed,
            ..plain()
        };
        filled_up += u32::from(case.run(1, false).is_err());
    }
    assert!(filled_up > 0, "none of the logs filled up");
}
