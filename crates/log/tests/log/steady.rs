//! Logs in their steady state: filled, then updated until what they do is what they go on doing.

use agewell_core::{RandomStreams, Stream, chance, uniform_below};
use agewell_log::policy::placement::Placement;
use agewell_log::{Counts, Log, Unpriced};

/// Blocks of each log.
pub(crate) const BLOCKS: u32 = 1 << 17;

/// The next block to update.
pub(crate) type Draw = fn(&mut Stream) -> u32;

/// Counts of `log` over `passes` passes of updates, after as many that are not counted.
pub(crate) fn steady_state<P: Placement>(log: &mut Log<P>, passes: u32, draw: Draw) -> Counts {
    let mut stream = RandomStreams::new(1).stream("updates");
    for block in 0..BLOCKS {
        log.write(block, 0, &mut Unpriced).unwrap();
    }
    let mut before = Counts::default();
    for turn in 0..2 * passes * BLOCKS {
        if turn == passes * BLOCKS {
            before = *log.counts();
        }
        log.write(draw(&mut stream), 0, &mut Unpriced).unwrap();
    }
    log.verify();
    log.counts().since(&before)
}

pub(crate) fn uniform(stream: &mut Stream) -> u32 {
    uniform_below(stream, u64::from(BLOCKS)) as u32
}

/// 90 % of the updates to 10 % of the blocks (Rosenblum & Ousterhout 1992, §3.4).
pub(crate) fn hot_and_cold(stream: &mut Stream) -> u32 {
    let hot = u64::from(BLOCKS / 10);
    if chance(stream, 0.9) {
        uniform_below(stream, hot) as u32
    } else {
        (hot + uniform_below(stream, u64::from(BLOCKS) - hot)) as u32
    }
}
