//! Victims that somebody else chooses: the seam for policies from outside.
//!
//! A log whose setting holds a [`VictimPolicy`] shows it the segments that may be collected, a column a
//! property, and collects the one that it names. What the setting says of
//! [`victim`](super::victim::Victim) stays in force but for that choice: which segments are shown (full
//! ones only if it takes them itself), what ages count from, whether it is known what is cached.
//!
//! Cost: a pass over the segments a choice, some 10 ns a segment, and what the policy takes.

use std::cmp::Ordering;
use std::fmt::Debug;

use agewell_core::{Stream, uniform_below};

/// The segments that may be collected, one entry a segment in every column.
///
/// They come in the order in which the index of the log holds them: of no meaning but for ties, and
/// the same for the same log.
#[derive(Debug, Clone)]
pub struct CollectableSegments {
    /// User block writes so far.
    pub clock: u64,
    /// Their numbers, which are the order of their places on the disk.
    pub number: Vec<i64>,
    /// The zones that they lie in, which come one after another.
    pub zone: Vec<i64>,
    /// Live blocks.
    pub live: Vec<i64>,
    /// Blocks that they can hold.
    pub blocks: Vec<i64>,
    /// User block writes since their data was new, as the setting counts it for its own policies.
    pub age: Vec<i64>,
    /// Clock when the first block was written.
    pub opened: Vec<i64>,
    /// Clock when they were full.
    pub sealed: Vec<i64>,
    /// Which of all sealings theirs was: of two with one clock, the later has the higher number.
    pub sealing: Vec<i64>,
    /// The log that wrote them.
    pub log: Vec<i64>,
    /// Whether all live blocks are in the host's cache, if that is known.
    pub cached: Vec<bool>,
    /// The log's own stream of random numbers.
    stream: Stream,
}

/// One of [`CollectableSegments`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct CollectableSegment {
    pub(crate) number: u32,
    pub(crate) zone: usize,
    pub(crate) live: u32,
    pub(crate) blocks: u32,
    pub(crate) age: u64,
    pub(crate) opened: u64,
    pub(crate) sealed: u64,
    pub(crate) sealing: u64,
    pub(crate) log: u8,
    pub(crate) cached: bool,
}

impl CollectableSegments {
    /// None yet.
    #[must_use]
    pub fn none(stream: Stream) -> Self {
        Self {
            clock: 0,
            number: Vec::new(),
            zone: Vec::new(),
            live: Vec::new(),
            blocks: Vec::new(),
            age: Vec::new(),
            opened: Vec::new(),
            sealed: Vec::new(),
            sealing: Vec::new(),
            log: Vec::new(),
            cached: Vec::new(),
            stream,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.number.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.number.is_empty()
    }

    /// A position below `bound`, drawn from the log's own stream.
    pub fn draw(&mut self, bound: usize) -> usize {
        uniform_below(&mut self.stream, bound as u64) as usize
    }

    /// The position of the highest of `scores`, one a segment; of equal ones that of the segment in the
    /// first zone, of those one that is not cached, of those the one with the fewest live blocks, of
    /// those the oldest, of those the one with the lowest number: as policies by age do.
    #[must_use]
    pub fn highest(&self, scores: &[f64]) -> Option<usize> {
        let mut best = None;
        for (place, score) in scores.iter().enumerate() {
            let ranks = |place: usize| {
                let (zone, cached) = (self.zone[place], self.cached[place]);
                (zone, cached, self.live[place], -self.age[place], self.number[place])
            };
            let is_better = best.is_none_or(|best: usize| match score.partial_cmp(&scores[best]) {
                Some(Ordering::Greater) => true,
                Some(Ordering::Equal) => ranks(place) < ranks(best),
                _ => false,
            });
            if is_better {
                best = Some(place);
            }
        }
        best
    }

    /// Begins again at `clock`, with draws from `stream`.
    pub(crate) fn begin(&mut self, clock: u64, stream: Stream) {
        (self.clock, self.stream) = (clock, stream);
        self.number.clear();
        self.zone.clear();
        self.live.clear();
        self.blocks.clear();
        self.age.clear();
        self.opened.clear();
        self.sealed.clear();
        self.sealing.clear();
        self.log.clear();
        self.cached.clear();
    }

    pub(crate) fn push(&mut self, segment: CollectableSegment) {
        self.number.push(i64::from(segment.number));
        self.zone.push(segment.zone as i64);
        self.live.push(i64::from(segment.live));
        self.blocks.push(i64::from(segment.blocks));
        self.age.push(segment.age as i64);
        self.opened.push(segment.opened as i64);
        self.sealed.push(segment.sealed as i64);
        self.sealing.push(segment.sealing as i64);
        self.log.push(i64::from(segment.log));
        self.cached.push(segment.cached);
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }
}

/// Chooses which segment is collected next.
pub trait VictimPolicy: Debug + Send + Sync {
    /// What it is called in results.
    fn name(&self) -> String;

    /// The position in `segments`, of which there is at least one, of the one to collect; none leaves
    /// the choice to the policy of the setting.
    fn choose(&mut self, segments: &mut CollectableSegments) -> Option<usize>;

    /// One that goes on from what this one has learnt: for copies of the log that look ahead.
    fn copied(&self) -> Box<dyn VictimPolicy>;
}

/// A policy from outside, and the columns that it is shown.
#[derive(Debug)]
pub struct OutsideVictim {
    pub(crate) policy: Box<dyn VictimPolicy>,
    pub(crate) segments: CollectableSegments,
}

impl OutsideVictim {
    /// Victims chosen by `policy`.
    #[must_use]
    pub fn new(policy: Box<dyn VictimPolicy>) -> Self {
        // The log gives its own stream with each choice.
        let stream = agewell_core::RandomStreams::new(0).stream("victims");
        Self { policy, segments: CollectableSegments::none(stream) }
    }
}

impl Clone for OutsideVictim {
    fn clone(&self) -> Self {
        // A copy fills columns of its own.
        Self::new(self.policy.copied())
    }
}
