//! A log that chooses its mechanism by rehearsing every one of them.
//!
//! The estimate of Matthews 1999 (eqs. 7 and 8) prices the next collection alone. But a collection
//! changes what the later ones will find: plugging leaves the log full of full segments, threading
//! leaves holes where they are, cleaning joins them. So the cheapest step is not the cheapest way
//! to go on, and the estimate picks the dearer mechanism where their costs are close.
//!
//! This log looks ahead instead. Now and then a copy of it, metadata only, goes on with each
//! mechanism under a forecast of the writes ([`forecast`]), and the log takes the mechanism whose
//! copy spent least ([`rehearsal`]). That prices a change exactly, because every copy begins with
//! the log as it is, and sees where each mechanism leads to. It is wrong as far as the forecast is.
//!
//! What is learnt from is what replaces something: writes over blocks that there are, and blocks
//! created where others were deleted. A fill that makes the live data larger than it ever was says
//! nothing about what comes after it.
//!
//! The moments are spaced geometrically, by writes, because what is known doubles with the past,
//! and what a wrong choice costs grows with it. So all rehearsals together are a small multiple of
//! the log's own work.
//!
//! Where blocks are written each by itself the copies are of a part of the log ([`Log::thinned`]), so
//! that looking ahead costs as much however large the log is. A very large log is followed at a
//! smaller scale ([`sample`]) beforehand: a follower of a sample of its blocks does what the log does
//! and stands for it, so that what is remembered does not grow with the disk either.
//!
//! Source: ours; to control a system by simulating it ahead with every choice, doing the best first
//! step and looking again, is model-predictive control (Richalet et al. 1978).

mod forecast;
mod history;
mod rates;
mod rehearsal;
mod repetition;
mod sample;

use std::panic::resume_unwind;

use forecast::forecast;
use history::{History, Order};
use rehearsal::{Candidate, rehearse};
use sample::Sample;

use super::policy::mechanism::{Collect, Mechanism};
use super::policy::placement::Placement;
use super::segment_table::SegmentTable;
use super::{
    BlockDevice, Call, CostMeter, Kept, Log, LogError, LogSetting, RestoreError, ShapeError,
    TransferTimes, Unpriced,
};

/// How many times as many writes have gone by at a moment as at the one before; chosen by us: what
/// is known has doubled by then.
const MOMENT_RATIO: u64 = 2;

/// Passes over the data that a log is taken to live through at least. The updates of Matthews 1999
/// (§5.2.1.1) are ten for each block; a log that has lived longer is taken to live as long again.
const LIFE_PASSES: u64 = 10;

/// Passes that are looked ahead at most beyond those; chosen by us: what a change costs shows within
/// one, and the next moment comes no later than [`MOMENT_PASSES_MAX`].
const AHEAD_PASSES_MAX: u64 = 8;

/// Writes at the second moment at least, chosen by us: fewer show nothing.
const MOMENT_WRITES_MIN: u64 = 128;

/// Passes from one moment to the next at most, so that a load that changes is noticed; chosen by
/// us.
const MOMENT_PASSES_MAX: u64 = 8;

/// Share of what is forecast that a mechanism is hoped to take as long as nothing is known of it; chosen by us: a
/// trial is as long as what was written before it, and takes two and a half times as long as the best at most.
const HOPE: f64 = 0.4;

/// Full segments of a log that is looked ahead with at least, of those there are; chosen by us: what
/// a free segment more or less decides, of a hundred and more, is below a hundredth.
const AHEAD_SEGMENTS_MIN: u32 = 128;

/// Blocks that they hold at least; chosen by us.
const AHEAD_BLOCKS_MIN: u32 = 1 << 16;

/// A log, and what advises it on its mechanism, if anything does.
#[derive(Debug, Clone)]
pub struct AdaptiveLog<P> {
    log: Log<P>,
    adviser: Option<Box<Adviser<P>>>,
}

/// What observes a log and advises it on its mechanism.
#[derive(Debug, Clone)]
struct Adviser<P> {
    mechanisms: Vec<Mechanism>,
    sample: Sample,
    /// What stands for a large log: the sample of its blocks, collected as it collects.
    follower: Option<Log<P>>,
    /// The follower found no room: nothing is learned any more.
    lost: bool,
    /// What the sample was asked to do.
    history: History,
    /// Whether room has ever been short.
    began: bool,
    /// Decisions are made when they are asked for, and not amid a write.
    waits_to_be_asked: bool,
    /// The mechanism chosen at the last moment.
    chosen: Option<Mechanism>,
    /// Writes before the next moment to look ahead.
    next_writes: u64,
    /// What transfers took in a trial of each mechanism, if there was one.
    trials: Vec<TransferTimes>,
    /// As large as the live data ever was, blocks.
    peak_blocks: u64,
    /// Syncs of each client that were not passed on to the sample yet.
    held_syncs: Vec<u32>,
}

impl<P: Placement + Clone> AdaptiveLog<P> {
    /// A log that uses what its setting says.
    ///
    /// # Errors
    /// If the setting leaves the log nothing to work with.
    pub fn fixed(setting: LogSetting, placement: P) -> Result<Self, ShapeError> {
        Ok(Self { log: Log::new(setting, placement)?, adviser: None })
    }

    /// A log that chooses among `mechanisms`; `placement` makes one for a number of
    /// blocks.
    ///
    /// # Errors
    /// If the setting leaves the log nothing to work with.
    pub fn among(
        mechanisms: &[Mechanism],
        mut setting: LogSetting,
        placement: impl Fn(u32) -> P,
    ) -> Result<Self, ShapeError> {
        setting.collect = Collect::Always(mechanisms[0]);
        let adviser = Adviser::new(mechanisms, &setting, &placement)?;
        let placement = placement(setting.blocks);
        Ok(Self { log: Log::new(setting, placement)?, adviser: Some(Box::new(adviser)) })
    }

    /// The log that `kept` is of. It chooses among `mechanisms`, if there are any, and knows nothing yet
    /// of what is written.
    ///
    /// # Errors
    /// If what was kept contradicts itself, or leaves the log nothing to work with.
    pub fn restore(
        mechanisms: &[Mechanism],
        mut setting: LogSetting,
        placement: impl Fn(u32) -> P,
        kept: Kept<'_>,
    ) -> Result<Self, RestoreError>
    where
        P: Send,
    {
        let Some(first) = mechanisms.first() else {
            let placement = placement(setting.blocks);
            return Ok(Self { log: Log::restore(setting, placement, kept)?, adviser: None });
        };
        setting.collect = Collect::Always(*first);
        let mut adviser = Adviser::new(mechanisms, &setting, &placement)?;
        let placement = placement(setting.blocks);
        let log = if adviser.follower.is_none() {
            Log::restore(setting, placement, kept)?
        } else {
            // A log that is sampled is large.
            let (sample, map) = (adviser.sample, &kept.map);
            let mut follow = || {
                let sampled = sample.numbers_of(map).into_iter();
                sampled.for_each(|block| adviser.follow(Call::Preload(block)));
            };
            let table = std::thread::scope(|scope| {
                let follower = scope.spawn(&mut follow);
                let table = SegmentTable::restore(&setting.shape, map);
                follower.join().unwrap_or_else(|panic| resume_unwind(panic));
                table
            })?;
            Log::restore_with(setting, placement, kept, table)?
        };
        // What is written over it from here on is learnt from.
        adviser.peak_blocks = adviser.follower.as_ref().unwrap_or(&log).live_blocks();
        Ok(Self { log, adviser: Some(Box::new(adviser)) })
    }

    /// Prices what each mechanism does also by what a trial of it alone has shown, beside what the
    /// device says of the run; `trials` are in the order of the mechanisms.
    pub fn price_by(&mut self, trials: Vec<TransferTimes>) {
        if let Some(adviser) = &mut self.adviser {
            adviser.trials = trials;
        }
    }

    /// The log itself.
    #[must_use]
    pub fn log(&self) -> &Log<P> {
        &self.log
    }

    /// The log itself, for what nobody learns from: work of its own, regrouping, discards.
    pub fn log_mut(&mut self) -> &mut Log<P> {
        &mut self.log
    }

    /// Whether it is time to [decide](Self::decide) on the mechanism.
    #[must_use]
    #[inline]
    pub fn is_decision_due(&self) -> bool {
        self.adviser.as_ref().is_some_and(|adviser| adviser.is_due(&self.log))
    }

    /// Decides on the mechanism, if it is time to, by what transfers took so far on the device, if
    /// that was noted.
    pub fn decide(&mut self, times: Option<&TransferTimes>) {
        if let Some(adviser) = &mut self.adviser
            && adviser.is_due(&self.log)
        {
            adviser.look_ahead(&mut self.log, times);
        }
    }

    /// What [`decide`](Self::decide) would look at, to be thought over elsewhere while the log goes on; none
    /// if it is not yet time. What comes of it is to be [adopted](Self::adopt): until then no other
    /// decision is due.
    pub fn outlook(&mut self, times: Option<&TransferTimes>) -> Option<Outlook<P>> {
        let adviser = self.adviser.as_mut().filter(|adviser| adviser.is_due(&self.log))?;
        let ahead = adviser.begin(&self.log)?;
        let question = adviser.question(&self.log, times, ahead);
        let subject = adviser.follower.as_ref().unwrap_or(&self.log).clone();
        let history = adviser.history.take();
        Some(Outlook { subject, history, question })
    }

    /// The log goes on with the mechanism that `outlook` is for, if it was for any.
    pub fn adopt(&mut self, outlook: ThoughtOver) {
        let ThoughtOver { history, chosen } = outlook;
        if let Some(adviser) = &mut self.adviser {
            adviser.history.put_before(history);
            adviser.adopt(chosen, &mut self.log);
        }
    }

    /// From here on it is decided when [`decide`](Self::decide) is called, and room is made when it is asked for,
    /// and at no other time: for whoever has made room by a mechanism and counts on it.
    pub fn leave_decisions(&mut self) {
        self.log.makes_room_beforehand = false;
        if let Some(adviser) = &mut self.adviser {
            adviser.waits_to_be_asked = true;
        }
    }

    /// Goes on with `mechanism` until it is decided for the next time, so that it is known by then what it takes; not
    /// before as much has been written as shows something.
    pub fn try_mechanism(&mut self, mechanism: Mechanism) {
        if let Some(adviser) = &mut self.adviser {
            adviser.next_writes = adviser.next_writes.max(MOMENT_WRITES_MIN);
            let before = adviser.chosen;
            adviser.adopt(Some(mechanism), &mut self.log);
            // What was never decided on need not be better by anything.
            adviser.chosen = before.map(|_| mechanism);
        }
    }

    /// Room is about to be made beforehand, by whoever does not leave that to the log: it matters by
    /// which mechanism from here on.
    pub fn begin_choosing(&mut self) {
        if let Some(adviser) = &mut self.adviser {
            adviser.began = true;
        }
    }

    /// Whether it is time to decide and the mechanism matters yet.
    #[must_use]
    pub fn is_choice_due(&self) -> bool {
        self.adviser.as_ref().is_some_and(|adviser| adviser.began && adviser.is_due(&self.log))
    }

    /// Does what `call` says on `device`. Whoever knows what transfers take on it has
    /// [decided](Self::decide) before a write if that was due.
    ///
    /// # Errors
    /// If no room can be made for it.
    #[inline]
    pub fn carry_out(
        &mut self,
        call: Call<'_>,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        if let Call::Write { client, .. } = call {
            self.decide_before_write(client, device)?;
        }
        if let Some(adviser) = &mut self.adviser {
            adviser.observe(call, &self.log);
        }
        self.log.carry_out(call, device)
    }

    /// `client` is about to write: decides, if it is time to and nobody has asked for it.
    #[inline]
    fn decide_before_write(
        &mut self,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        let Some(adviser) = &self.adviser else { return Ok(()) };
        if adviser.waits_to_be_asked || !adviser.is_due(&self.log) {
            return Ok(());
        }
        if self.log.setting.whole_syncs {
            self.carry_out(Call::Sync { client }, device)?;
        }
        self.decide(None);
        Ok(())
    }

    /// Sends what all clients have written to the disk.
    ///
    /// # Errors
    /// If no room can be made for it.
    pub fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LogError> {
        let mut clients = 0..self.log.setting.clients;
        clients.try_for_each(|client| self.carry_out(Call::Sync { client }, device))
    }

    /// Writes many blocks that only have to wait: see [`Log::write_to_buffer`].
    pub fn write_to_buffer(&mut self, blocks: &[u32], client: u32) -> usize {
        if !self.log.takes_many_writes() {
            return 0;
        }
        let Some(adviser) = &mut self.adviser else {
            return self.log.write_to_buffer(blocks, client);
        };
        let most = adviser.notes_at_once(blocks, &self.log);
        let taken = self.log.write_to_buffer(&blocks[..most], client);
        blocks[..taken].iter().for_each(|block| adviser.history.write(*block, client));
        taken
    }

    /// Lays out blocks `first..first + blocks` as they were before the first request, one after
    /// another: see [`Log::preload_run`].
    ///
    /// # Errors
    /// If there is no room left beyond the reserve.
    pub fn preload_run(&mut self, first: u32, blocks: u32) -> Result<(), LogError> {
        if self.adviser.is_none() {
            return self.log.preload_run(first, blocks);
        }
        (first..first + blocks).try_for_each(|block| {
            self.carry_out(Call::EnsureBlocks(block + 1), &mut Unpriced)?;
            self.carry_out(Call::Preload(block), &mut Unpriced)
        })
    }

    /// Checks the invariants of the log and its follower.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn verify(&self) {
        self.log.verify();
        let adviser = self.adviser.iter().filter(|adviser| !adviser.lost);
        adviser.filter_map(|adviser| adviser.follower.as_ref()).for_each(Log::verify);
    }
}

impl<P: Placement + Clone> Adviser<P> {
    /// Of a log with `setting`.
    fn new(
        mechanisms: &[Mechanism],
        setting: &LogSetting,
        placement: &impl Fn(u32) -> P,
    ) -> Result<Self, ShapeError> {
        let sample = Sample::of_log(setting.blocks);
        let follower = match sample.setting(setting)? {
            None => None,
            Some(sampled) => {
                let placement = placement(sampled.blocks);
                Some(Log::new(sampled, placement)?)
            }
        };
        Ok(Self {
            mechanisms: mechanisms.to_vec(),
            sample,
            follower,
            lost: false,
            history: History::new(sample.blocks(setting.blocks), setting.clients),
            began: false,
            waits_to_be_asked: false,
            chosen: None,
            next_writes: if setting.whole_syncs { MOMENT_WRITES_MIN } else { 0 },
            trials: Vec::new(),
            peak_blocks: 0,
            held_syncs: vec![0; setting.clients as usize],
        })
    }

    /// Whether the next moment has come. Where room is made beforehand that is not before there is none.
    #[inline]
    fn is_due(&self, log: &Log<P>) -> bool {
        let has_come = self.history.writes() >= self.next_writes && !self.lost;
        has_come && (self.began || !log.setting.whole_syncs || log.is_short())
    }

    /// `log` is about to be asked for `call`: notes it, and lets the follower do the same with
    /// what the sample has of it.
    #[inline]
    fn observe(&mut self, call: Call<'_>, log: &Log<P>) {
        let Some(call) = self.sample.call_of(call) else { return };
        match call {
            Call::Write { block, client } => {
                if !self.grows_with(block, log) {
                    self.history.write(block, client);
                }
                if let Some(follower) = &mut self.follower {
                    self.sample.keep_utilization(follower, log);
                }
            }
            Call::Sync { client } => {
                let held = &mut self.held_syncs[client as usize];
                *held += 1;
                if !self.sample.passes_sync(*held) {
                    return;
                }
                *held = 0;
                self.history.sync(client);
            }
            Call::Fragment { blocks, chunk_blocks } => {
                let sampled = blocks.iter().filter_map(|block| self.sample.number_of(*block));
                let blocks: Vec<u32> = sampled.collect();
                return self.follow(Call::Fragment { blocks: &blocks, chunk_blocks });
            }
            _ => {}
        }
        self.follow(call);
    }

    /// The follower does the same, if there is one.
    #[inline]
    fn follow(&mut self, call: Call<'_>) {
        if let Some(follower) = &mut self.follower {
            self.lost = self.lost || follower.carry_out(call, &mut Unpriced).is_err();
        }
    }

    /// Whether the live data becomes larger than it ever was when `block` is written.
    #[inline]
    fn grows_with(&mut self, block: u32, log: &Log<P>) -> bool {
        let subject = self.follower.as_ref().unwrap_or(log);
        self.peak_blocks = self.peak_blocks.max(subject.live_blocks());
        let grows = subject.live_blocks() == self.peak_blocks && !subject.holds(block);
        self.peak_blocks += u64::from(grows);
        grows
    }

    /// Of `blocks`, which are written next, how many need only be noted: none where a follower has to
    /// do the same, none from the next moment on, none from one that is new.
    fn notes_at_once(&mut self, blocks: &[u32], log: &Log<P>) -> usize {
        if self.follower.is_some() {
            return 0;
        }
        self.peak_blocks = self.peak_blocks.max(log.live_blocks());
        let left = self.next_writes.saturating_sub(self.history.writes());
        let known = blocks.iter().take(usize::try_from(left).unwrap_or(usize::MAX));
        known.take_while(|block| log.holds(**block)).count()
    }

    /// Chooses the mechanism again, if it matters yet.
    #[cold]
    #[inline(never)]
    fn look_ahead(&mut self, log: &mut Log<P>, times: Option<&TransferTimes>) {
        let Some(ahead) = self.begin(log) else { return };
        let subject = self.follower.as_ref().unwrap_or(log);
        let chosen = self.question(log, times, ahead).answer(subject, &self.history);
        self.adopt(chosen, log);
    }

    /// The log goes on with `chosen`, if that is any.
    fn adopt(&mut self, chosen: Option<Mechanism>, log: &mut Log<P>) {
        let Some(chosen) = chosen else { return };
        self.chosen = Some(chosen);
        log.set_collect(Collect::Always(chosen));
        if let Some(follower) = &mut self.follower {
            follower.set_collect(Collect::Always(chosen));
        }
    }

    fn question(&self, log: &Log<P>, times: Option<&TransferTimes>, ahead: u64) -> Question {
        // What holes take is known when some have been filled: a sweep over them costs far less than as many
        // writes here and there.
        let sweeps = log.setting.threads_ahead > 0 && log.counts().threaded_blocks == 0;
        let untried = (sweeps && times.is_some()).then_some(Mechanism::Thread);
        Question {
            mechanisms: self.mechanisms.clone(),
            sample: self.sample,
            trials: self.trials.clone(),
            times: times.cloned(),
            chosen: self.chosen,
            untried,
            ahead,
        }
    }

    /// A moment to look ahead has come: by how many writes; none if it does not matter yet. The next is
    /// later.
    fn begin(&mut self, log: &Log<P>) -> Option<u64> {
        let subject = self.follower.as_ref().unwrap_or(log);
        // Until the first collection all mechanisms do the same.
        self.began = self.began || !subject.has_free_for_new_data() || log.is_short();
        if !self.began {
            return None;
        }
        let (writes, pass_writes) = (self.history.writes(), subject.live_blocks().max(1));
        let latest = writes + pass_writes * MOMENT_PASSES_MAX;
        self.next_writes = (writes * MOMENT_RATIO).max(MOMENT_WRITES_MIN).min(latest);
        let left = (pass_writes * LIFE_PASSES).saturating_sub(writes);
        Some(left.max(writes.min(pass_writes * AHEAD_PASSES_MAX)))
    }
}

/// What is asked about a log and its history: which mechanism it should go on with.
#[derive(Debug, Clone)]
struct Question {
    mechanisms: Vec<Mechanism>,
    sample: Sample,
    trials: Vec<TransferTimes>,
    times: Option<TransferTimes>,
    /// The mechanism chosen at the last moment.
    chosen: Option<Mechanism>,
    /// One of which it is not known what it takes on the device.
    untried: Option<Mechanism>,
    /// Writes to look ahead.
    ahead: u64,
}

impl Question {
    /// The mechanism that is best for `subject`; none if nothing can be said.
    fn answer<P: Placement + Clone>(
        &self,
        subject: &Log<P>,
        history: &History,
    ) -> Option<Mechanism> {
        let ahead = self.ahead;
        let order = history.order(subject.blocks(), |block| subject.holds(block));
        let segment_blocks = subject.shape().segment_blocks_max();
        let segments = AHEAD_SEGMENTS_MIN.max(AHEAD_BLOCKS_MIN / segment_blocks);
        // Only where each block is written by itself: what is written together lies together, and a
        // part of the log would mix in one segment what the log has in several.
        let thinned = if order == Order::None { subject.thinned(segments) } else { None };
        let forecast = match &thinned {
            None => forecast(history, order, subject, ahead),
            Some(part) => {
                let share = part.live_blocks() as f64 / subject.live_blocks() as f64;
                let history = history.thinned(share, |block| part.holds(block));
                forecast(&history, order, part, (ahead as f64 * share) as u64)
            }
        };
        let subject = thinned.as_ref().unwrap_or(subject);
        if forecast.is_empty() {
            return None;
        }
        let spread = self.sample.spread(subject.shape().segment_blocks_max());
        let disk = subject.setting.disk;
        let run = self.times.as_ref();
        let meter = |place: usize| {
            let both = run.zip(self.trials.get(place)).map(|(run, trial)| run.after_trial(trial));
            CostMeter::learnt(disk, both.as_ref().or(run), spread)
        };
        let candidates = self.mechanisms.iter().copied().zip((0..).map(meter));
        let candidates = candidates.map(|(mechanism, meter)| Candidate {
            mechanism,
            meter,
            hope: if self.untried == Some(mechanism) { HOPE } else { 1.0 },
        });
        let candidates: Vec<Candidate> = candidates.collect();
        Some(rehearse(subject, &candidates, self.chosen, &forecast))
    }
}

/// A log at a moment when it is to be decided on its mechanism, and all that the decision is made by.
#[derive(Debug)]
pub struct Outlook<P> {
    subject: Log<P>,
    history: History,
    question: Question,
}

/// What came of an [`Outlook`].
#[derive(Debug)]
pub struct ThoughtOver {
    history: History,
    chosen: Option<Mechanism>,
}

impl<P: Placement + Clone> Outlook<P> {
    /// Rehearses every mechanism, which takes a while.
    #[must_use]
    pub fn think_over(self) -> ThoughtOver {
        let chosen = self.question.answer(&self.subject, &self.history);
        ThoughtOver { history: self.history, chosen }
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::{RandomStreams, uniform_below};

    use super::*;
    use crate::LogShape;
    use crate::policy::cost::CostModel;
    use crate::policy::placement::NoSeparation;

    const DISK: CostModel = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 8192,
    };

    const BLOCKS: u32 = 200 * 32 * 8 / 10;

    /// A log of 200 segments that is 80 % full, and decides when it is asked.
    fn asked_log() -> AdaptiveLog<NoSeparation> {
        let shape = LogShape::uniform(200, 32).unwrap();
        let setting = LogSetting { buffer_blocks: 8, ..LogSetting::plain(shape, BLOCKS, DISK) };
        let mut log = AdaptiveLog::among(&Mechanism::ALL, setting, |_| NoSeparation).unwrap();
        log.preload_run(0, BLOCKS).unwrap();
        log.leave_decisions();
        log
    }

    #[test]
    fn a_few_writes_do_not_decide_on_what_is_tried() {
        let mut log = asked_log();
        log.try_mechanism(Mechanism::Thread);
        log.begin_choosing();
        for block in 0..MOMENT_WRITES_MIN as u32 {
            assert!(!log.is_choice_due(), "after {block} writes");
            log.carry_out(Call::Write { block: block * 7, client: 0 }, &mut Unpriced).unwrap();
        }
        assert!(log.is_choice_due());
        assert_eq!(log.log().collect_rule(), Collect::Always(Mechanism::Thread));
    }

    #[test]
    fn what_is_thought_over_elsewhere_is_decided_the_same() {
        let mut log = asked_log();
        log.begin_choosing();
        let (mut at_once, mut elsewhere) = (log.clone(), log);
        let mut stream = RandomStreams::new(7).stream("updates");
        let mut chosen = Vec::new();
        for _ in 0..6 * BLOCKS {
            assert_eq!(at_once.is_choice_due(), elsewhere.is_choice_due());
            if at_once.is_choice_due() {
                at_once.decide(None);
                let outlook = elsewhere.outlook(None).unwrap();
                assert!(!elsewhere.is_choice_due(), "one at a time");
                elsewhere.adopt(outlook.think_over());
                assert_eq!(elsewhere.log.collect_rule(), at_once.log.collect_rule());
                chosen.push(at_once.adviser.as_ref().unwrap().chosen);
            }
            // Skewed, so that which mechanism is best is not plain from the first.
            let bound = if uniform_below(&mut stream, 10) < 9 { BLOCKS / 10 } else { BLOCKS };
            let block = uniform_below(&mut stream, u64::from(bound)) as u32;
            for log in [&mut at_once, &mut elsewhere] {
                log.carry_out(Call::Write { block, client: 0 }, &mut Unpriced).unwrap();
            }
        }
        // At first there is nothing to go by.
        assert!(chosen.iter().flatten().count() > 5, "{chosen:?}");
        assert_eq!(elsewhere.log.counts(), at_once.log.counts());
    }

    #[test]
    fn a_follower_is_as_full_as_its_log_although_nobody_syncs() {
        let blocks = 5 << 20;
        let shape = LogShape::uniform(blocks / 4096 * 10 / 9, 4096).unwrap();
        let setting = LogSetting { buffer_blocks: 4096, ..LogSetting::plain(shape, blocks, DISK) };
        let mut log = AdaptiveLog::among(&Mechanism::ALL, setting, |_| NoSeparation).unwrap();
        log.preload_run(0, blocks).unwrap();
        for block in 0..64 {
            let call = Call::Write { block: block * 77_777, client: 0 };
            log.carry_out(call, &mut Unpriced).unwrap();
        }
        let adviser = log.adviser.as_ref().unwrap();
        let follower = adviser.follower.as_ref().unwrap();
        let reserve = follower.setting.reserve_segments * follower.shape().segment_blocks_max();
        let used = follower.shape().capacity_blocks() - u64::from(reserve);
        let of_follower = follower.live_blocks() as f64 / used as f64;
        let of_log = log.log.live_blocks() as f64 / log.log.shape().capacity_blocks() as f64;
        assert!((of_follower / of_log - 1.0).abs() < 0.003, "{of_follower}, the log {of_log}");
    }
}
