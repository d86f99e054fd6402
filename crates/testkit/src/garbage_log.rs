//! A log that collects garbage, in the plainest form: the reference for fast logs and placements.
//!
//! The rules are those of the SepBIT simulator (Wang et al., FAST 2022, `trace_replay`):
//!
//! * Space is unlimited. After each write segments are collected, one at a time, while dead blocks
//!   in sealed segments are more than a share of all written blocks.
//! * A sealed segment with a smaller share of dead blocks than that is never collected.
//! * Each log has one open segment, from the beginning. A segment is sealed when it is full.
//! * Live blocks of a victim move in the order in which they lie.
//! * Of equally good victims the one opened first is collected.
//!
//! Difference: that simulator collects at most one segment a write; what is left over follows with
//! the next writes.
//!
//! Every choice looks at all segments, every segment keeps all its blocks, and only two sums are
//! kept up to date; [`ReferenceLog::verify`] recounts them and everything else.

/// A segment as policies see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceSegment {
    /// Counted from 0 in the order of opening; never used again.
    pub number: u32,
    /// The log it was written by.
    pub log: u8,
    /// Blocks it can hold.
    pub blocks: u32,
    /// Blocks that are live.
    pub live: u32,
    /// Clock when it was opened.
    pub opened: u64,
    /// Clock of the last block written to it.
    pub written: u64,
}

/// What decides where blocks go. The clock is the number of user writes so far, the first being 1.
pub trait ReferencePolicy {
    /// Logs, numbered from 0.
    fn logs(&self) -> usize;

    /// The log for a block that the user writes.
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8;

    /// The log for a live block of a victim.
    fn place_collected(&mut self, block: u32, victim: &ReferenceSegment, clock: u64) -> u8;

    /// The victim's live blocks have all moved.
    fn collected(&mut self, _victim: &ReferenceSegment, _clock: u64) {}

    /// The block lies in this segment now.
    fn placed(&mut self, _block: u32, _segment: u32) {}

    /// The block's copy in this segment died by a write or deletion.
    fn died(&mut self, _block: u32, _segment: u32) {}

    /// The segment is gone.
    fn freed(&mut self, _segment: u32) {}

    /// The block was deleted.
    fn deleted(&mut self, _block: u32, _clock: u64) {}

    /// How much a segment is worth collecting, for [`ReferenceVictim::ByPolicy`].
    fn worth(&self, _segment: &ReferenceSegment, _clock: u64) -> f64 {
        0.0
    }
}

/// Which segment is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceVictim {
    /// The one with the fewest live blocks.
    Greedy,
    /// The one with the most (1 - u) / u times the square root of the time since its last block was
    /// written, as in the SepBIT simulator; an empty one first.
    CostBenefit,
    /// The one opened first.
    Fifo,
    /// The one that [`ReferencePolicy::worth`] says.
    ByPolicy,
}

#[derive(Debug, Clone)]
struct Segment {
    view: ReferenceSegment,
    /// What was written to it, and whether that is still live.
    blocks: Vec<(u32, bool)>,
    sealed: bool,
}

/// The log.
#[derive(Debug, Clone)]
pub struct ReferenceLog<P> {
    policy: P,
    victim: ReferenceVictim,
    segment_blocks: u32,
    dead_share: f64,
    /// In the order of opening.
    segments: Vec<Segment>,
    opened: u32,
    /// Number of each log's open segment.
    open: Vec<u32>,
    /// Segment and position of each block.
    place: Vec<Option<(u32, u32)>>,
    /// Blocks in all segments, live or dead.
    written: u64,
    /// Dead blocks in sealed segments.
    dead_sealed: u64,
    user_writes: u64,
    collected_writes: u64,
    collected_segments: u64,
}

impl<P: ReferencePolicy> ReferenceLog<P> {
    /// An empty log of `blocks` blocks in segments of `segment_blocks`, collected while more than
    /// `dead_share` of what is written is dead.
    pub fn new(
        blocks: usize,
        segment_blocks: u32,
        dead_share: f64,
        victim: ReferenceVictim,
        policy: P,
    ) -> Self {
        let logs = policy.logs();
        let mut log = Self {
            policy,
            victim,
            segment_blocks,
            dead_share,
            segments: Vec::new(),
            opened: 0,
            open: Vec::new(),
            place: vec![None; blocks],
            written: 0,
            dead_sealed: 0,
            user_writes: 0,
            collected_writes: 0,
            collected_segments: 0,
        };
        for number in 0..logs {
            let segment = log.open_segment(number as u8);
            log.open.push(segment);
        }
        log
    }

    fn open_segment(&mut self, log: u8) -> u32 {
        let number = self.opened;
        self.opened += 1;
        let view = ReferenceSegment {
            number,
            log,
            blocks: self.segment_blocks,
            live: 0,
            opened: self.user_writes,
            written: self.user_writes,
        };
        self.segments.push(Segment { view, blocks: Vec::new(), sealed: false });
        number
    }

    fn segment(&mut self, number: u32) -> &mut Segment {
        let index = self.segments.binary_search_by_key(&number, |segment| segment.view.number);
        let index = index.expect("blocks lie in segments that exist");
        &mut self.segments[index]
    }

    fn kill(&mut self, block: u32) -> bool {
        let Some((number, position)) = self.place[block as usize].take() else {
            return false;
        };
        let segment = self.segment(number);
        segment.blocks[position as usize].1 = false;
        segment.view.live -= 1;
        if segment.sealed {
            self.dead_sealed += 1;
        }
        self.policy.died(block, number);
        true
    }

    fn append(&mut self, block: u32, log: u8) {
        let number = self.open[usize::from(log)];
        let (clock, full) = (self.user_writes, self.segment_blocks as usize);
        let segment = self.segment(number);
        let position = segment.blocks.len() as u32;
        segment.blocks.push((block, true));
        segment.view.live += 1;
        segment.view.written = clock;
        if segment.blocks.len() == full {
            segment.sealed = true;
            self.dead_sealed += u64::from(dead_blocks(&segment.view));
            self.open[usize::from(log)] = self.open_segment(log);
        }
        self.written += 1;
        self.place[block as usize] = Some((number, position));
        self.policy.placed(block, number);
    }

    /// The user writes `block`.
    pub fn write(&mut self, block: u32) {
        self.user_writes += 1;
        let overwrites = self.kill(block);
        let log = self.policy.place_new(block, overwrites, self.user_writes);
        self.append(block, log);
        while self.too_much_is_dead() && self.collect() {}
    }

    /// The user deletes `block`; a block that is not live stays so.
    pub fn delete(&mut self, block: u32) {
        if self.kill(block) {
            self.policy.deleted(block, self.user_writes);
        }
    }

    fn too_much_is_dead(&self) -> bool {
        self.dead_sealed as f64 / self.written as f64 > self.dead_share
    }

    /// The segment to collect, if any may be.
    pub fn choose(&self) -> Option<ReferenceSegment> {
        let mut best: Option<(f64, ReferenceSegment)> = None;
        for segment in self.segments.iter().filter(|segment| segment.sealed) {
            let view = segment.view;
            if f64::from(dead_blocks(&view)) / f64::from(view.blocks) < self.dead_share {
                continue;
            }
            let worth = self.worth(&view);
            if best.is_none_or(|best| worth > best.0) {
                best = Some((worth, view));
            }
        }
        best.map(|best| best.1)
    }

    fn worth(&self, view: &ReferenceSegment) -> f64 {
        match self.victim {
            ReferenceVictim::Greedy => f64::from(dead_blocks(view)),
            ReferenceVictim::CostBenefit if view.live == 0 => f64::INFINITY,
            ReferenceVictim::CostBenefit => {
                let age = (self.user_writes - view.written) as f64;
                f64::from(dead_blocks(view)) / f64::from(view.live) * age.sqrt()
            }
            ReferenceVictim::Fifo => -f64::from(view.number),
            ReferenceVictim::ByPolicy => self.policy.worth(view, self.user_writes),
        }
    }

    /// Collects one segment; whether there was one to collect.
    pub fn collect(&mut self) -> bool {
        let Some(victim) = self.choose() else {
            return false;
        };
        let blocks = self.segment(victim.number).blocks.clone();
        for (block, _) in blocks.iter().filter(|block| block.1) {
            let log = self.policy.place_collected(*block, &victim, self.user_writes);
            self.append(*block, log);
            self.collected_writes += 1;
        }
        self.policy.collected(&victim, self.user_writes);
        self.written -= u64::from(victim.blocks);
        self.dead_sealed -= u64::from(dead_blocks(&victim));
        self.segments.retain(|segment| segment.view.number != victim.number);
        self.policy.freed(victim.number);
        self.collected_segments += 1;
        true
    }

    /// Blocks that the user wrote.
    pub fn user_writes(&self) -> u64 {
        self.user_writes
    }

    /// Blocks that collection wrote.
    pub fn collected_writes(&self) -> u64 {
        self.collected_writes
    }

    /// Segments that were collected.
    pub fn collected_segments(&self) -> u64 {
        self.collected_segments
    }

    /// Blocks written for each block that the user wrote, everything from the first write on.
    pub fn write_amplification(&self) -> f64 {
        1.0 + self.collected_writes as f64 / self.user_writes as f64
    }

    /// The segment and position of `block`, if it is live.
    pub fn place(&self, block: u32) -> Option<(u32, u32)> {
        self.place[block as usize]
    }

    /// All segments, in the order of opening.
    pub fn segments(&self) -> impl Iterator<Item = ReferenceSegment> + '_ {
        self.segments.iter().map(|segment| segment.view)
    }

    /// The live blocks of each segment, in the order in which they lie.
    pub fn live_blocks(&self) -> impl Iterator<Item = (u32, Vec<u32>)> + '_ {
        self.segments.iter().map(|segment| {
            let live = segment.blocks.iter().filter(|block| block.1);
            (segment.view.number, live.map(|block| block.0).collect())
        })
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy, when the log has done its work.
    pub fn into_policy(self) -> P {
        self.policy
    }

    /// Checks that every live block is in one place, that counts are exact, and that each log has
    /// one open segment with room.
    ///
    /// # Panics
    ///
    /// If not.
    pub fn verify(&self) {
        let mut found = vec![None; self.place.len()];
        let (mut written, mut dead_sealed) = (0, 0);
        for segment in &self.segments {
            let number = segment.view.number;
            let mut live = 0;
            for (position, (block, _)) in segment.blocks.iter().enumerate().filter(|one| one.1.1) {
                let before = found[*block as usize].replace((number, position as u32));
                assert_eq!(before, None, "block {block} is live in two places");
                live += 1;
            }
            assert_eq!(live, segment.view.live, "live blocks of segment {number}");
            written += segment.blocks.len() as u64;
            let dead = segment.blocks.len() as u64 - u64::from(live);
            dead_sealed += if segment.sealed { dead } else { 0 };
            let full = segment.blocks.len() == segment.view.blocks as usize;
            assert_eq!(full, segment.sealed, "segment {number} is sealed when it is full");
            let is_open = self.open[usize::from(segment.view.log)] == number;
            assert_eq!(is_open, !segment.sealed, "segment {number} is open until it is sealed");
        }
        assert_eq!((written, dead_sealed), (self.written, self.dead_sealed), "running counts");
        assert_eq!(found, self.place, "every live block lies where the map says");
    }
}

fn dead_blocks(view: &ReferenceSegment) -> u32 {
    view.blocks - view.live
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneLog;

    impl ReferencePolicy for OneLog {
        fn logs(&self) -> usize {
            1
        }
        fn place_new(&mut self, _block: u32, _overwrites: bool, _clock: u64) -> u8 {
            0
        }
        fn place_collected(&mut self, _block: u32, _victim: &ReferenceSegment, _clock: u64) -> u8 {
            0
        }
    }

    #[test]
    fn a_log_by_hand() {
        // Segments of two blocks; more than a quarter may not be dead.
        let mut log = ReferenceLog::new(4, 2, 0.25, ReferenceVictim::Greedy, OneLog);
        for block in 0..4 {
            log.write(block);
        }
        assert_eq!(log.segments().count(), 3, "two sealed, one open");
        // 0 is rewritten: 1 of 5 is dead. Then 1: 2 of 6, both in segment 0, which goes.
        log.write(0);
        assert_eq!(log.collected_segments(), 0);
        log.write(1);
        assert_eq!((log.collected_segments(), log.collected_writes()), (1, 0));
        log.verify();
        // 2 leaves 3 alone in segment 1: 1 of 5 is dead, and stays.
        log.write(2);
        assert_eq!((log.place(3), log.place(2)), (Some((1, 1)), Some((3, 0))));
        // A deletion collects nothing by itself; the next write finds 2 of 6 dead.
        log.delete(3);
        log.delete(3);
        log.write(0);
        assert_eq!((log.collected_segments(), log.collected_writes()), (2, 0));
        log.verify();
        assert_eq!(log.user_writes(), 8);
    }

    #[test]
    fn uniform_updates_cost_what_the_closed_form_says() {
        // FIFO collection at utilization 0.85: 0.85 = (1 - v) / -ln v gives v = 0.716 and a write
        // amplification of 1 / (1 - v) = 3.52 in the steady state (Desnoyers 2012).
        let blocks = 32_768_u32;
        let mut log = ReferenceLog::new(32_768, 128, 0.15, ReferenceVictim::Fifo, OneLog);
        let mut random = agewell_core::RandomStreams::new(1).stream("updates");
        let mut before = 0;
        for turn in 0..7 * blocks {
            // The first round fills the log in order.
            let drawn = agewell_core::uniform_below(&mut random, u64::from(blocks)) as u32;
            log.write(if turn < blocks { turn } else { drawn });
            if turn + 1 == 4 * blocks {
                before = log.collected_writes();
            }
        }
        let amplification = 1.0 + (log.collected_writes() - before) as f64 / f64::from(3 * blocks);
        assert!((amplification / 3.52 - 1.0).abs() < 0.02, "{amplification}");
        log.verify();
    }
}
