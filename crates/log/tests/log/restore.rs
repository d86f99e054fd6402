//! A log that is restored is the log that was kept.

use agewell_log::policy::placement::NoSeparation;
use agewell_log::{
    Kept, Log, LogError, LogSetting, LogShape, NONE, OpenSegment, RestoreError, SegmentTimes,
    Unpriced,
};
use proptest::prelude::*;

use super::case::{Case, DISK, cases};

/// What a store would keep of a log of which nothing waits.
fn kept(log: &Log<NoSeparation>) -> (Vec<u32>, Vec<OpenSegment>, Vec<SegmentTimes>) {
    let map = (0..log.blocks()).map(|block| log.slot_of(block).unwrap_or(NONE)).collect();
    let times = (0..log.shape().segments()).map(|segment| log.segment_times(segment)).collect();
    (map, log.open_segments().collect(), times)
}

fn run(case: &Case) -> Result<(), LogError> {
    let setting = case.setting();
    let blocks = setting.blocks;
    let mut log = Log::new(setting.clone(), NoSeparation).expect("it has room to work with");
    for step in 0..blocks + case.steps {
        let block = step.wrapping_mul(2_654_435_761).wrapping_add(case.seed as u32) % blocks;
        let client = step % setting.clients;
        if case.deletions > 0 && step % (case.deletions * 3) == 2 {
            log.delete(block, &mut Unpriced);
        } else {
            log.write(block, client, &mut Unpriced)?;
        }
    }
    log.sync_all(&mut Unpriced)?;
    let (map, open, times) = kept(&log);
    let from = Kept { map: map.clone(), open: &open, times: &times, clock: log.clock() };
    let mut again = Log::restore(setting, NoSeparation, from).expect("it was a log");
    again.verify();
    assert_eq!(kept(&again), (map, open, times));
    assert_eq!(again.live_blocks(), log.live_blocks());
    let mut free: Vec<u32> = log.free_segments().collect();
    free.sort_unstable();
    assert_eq!(again.free_segments().collect::<Vec<_>>(), free);
    // It goes on.
    for block in (0..blocks).step_by(3) {
        if again.write(block, 0, &mut Unpriced).is_err() {
            break;
        }
    }
    again.verify();
    Ok(())
}

proptest! {
    #[test]
    fn a_restored_log_is_what_was_kept(case in cases()) {
        // One that was refused keeps what waits; only what is all on disk is restored.
        let _ = run(&case);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let shape = LogShape::uniform(8, 4).unwrap();
    let setting = LogSetting::plain(shape, 8, DISK);
    let restore = |map: &[u32], open: &[OpenSegment]| {
        let kept = Kept { map: map.to_vec(), open, ..Kept::default() };
        Log::restore(setting.clone(), NoSeparation, kept).err()
    };
    let open = |segment, next| OpenSegment { segment, next, log: 0 };
    assert_eq!(restore(&[0, 5], &[open(2, 9)]), None);
    let twice = RestoreError::Twice { block: 1, other: 0, slot: 5 };
    assert_eq!(restore(&[5, 5], &[]), Some(twice));
    assert_eq!(restore(&[32], &[]), Some(RestoreError::Outside { block: 0, slot: 32 }));
    // Behind its end, before its beginning, over live data, of no segment, twice.
    for (segment, next) in [(2, 12), (2, 7), (0, 0), (9, 36)] {
        assert!(matches!(restore(&[0], &[open(segment, next)]), Some(RestoreError::Open { .. })));
    }
    let both = restore(&[], &[open(2, 9), open(3, 12)]);
    assert!(matches!(both, Some(RestoreError::Open { segment: 3, .. })));
}
