//! Measured transfer times: the price of each kind of transfer, learnt from a device.
//!
//! The cost model has only an average access and a transfer rate. On a drive a hole just passed
//! costs a turn and one a little ahead next to nothing; a drive that reports a write before it is
//! on the medium charges it to the request that comes next. So the kind of a transfer is what it
//! does (read or write, and what the one before did), how far it begins from where the one before
//! ended, and its length. For each kind the time beyond streaming its bytes is learnt.
//!
//! The time of a transfer is modelled as the sum of two parts: one of its own kind, and one of the
//! kind before it, for the wait that the transfer before leaves. Both are fitted together to the
//! mean times of all pairs of kinds that were seen. Kinds that were seen rarely are drawn towards
//! the same step at other lengths, and those towards all steps in that direction.
//!
//! A drive that holds several commands accepts a whole batch at once, so that the transfers of a
//! batch behind the first are another kind.
//!
//! A look-ahead cannot see when the device rests and when users read. So the calls that write are
//! counted by what comes before them (a rest, reads, neither), transfer times after each are learnt
//! separately, and the first transfer of a call is priced at the mean.
//!
//! Sums are halved when they are large, so that prices follow the device. Deterministic: pairs are
//! kept in their order, times are those that the device reports.
//!
//! Memory: 24 bytes for each pair of kinds that was seen, some hundreds; a table of prices 130 KB.
//! Cost: a search among the pairs for each transfer noted, a few operations for each one priced.
//!
//! Source: ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::policy::cost::CostModel;
use super::{Purpose, Transfer};

/// Classes of distances: none; each one up to [`EXACT_BLOCKS`] ahead; two in each octave beyond;
/// each octave back.
const STEPS: usize = ELSEWHERE + 1;

/// Steps ahead up to which each distance counts by itself, and beyond which octaves are halved;
/// chosen by us: within a track of an old drive each block more decides whether it is just missed.
const EXACT_BLOCKS: i64 = 8;

/// The first step of those back.
const FIRST_BACK: usize = EXACT_BLOCKS as usize + 1 + 2 * (u32::BITS as usize - 3);

/// The step from an unknown position: slots number 31 bits, so that no step back is as long.
const ELSEWHERE: usize = FIRST_BACK + u32::BITS as usize - 1;

/// Classes of lengths: none, and octaves up to 512 blocks.
const LENGTHS: usize = 11;

/// What a transfer and the one before do, and whether they are of one batch.
const OPERATIONS: usize = 8;

/// Kinds of transfers.
const KINDS: usize = OPERATIONS * STEPS * LENGTHS;

/// The kind of what came before the first transfer.
const NOTHING: u16 = KINDS as u16;

/// The kind of a rest before a transfer.
const REST: u16 = NOTHING + 1;

/// The kind of reads of users before a transfer.
const READS: u16 = NOTHING + 2;

/// What may come before a transfer.
const BEFORE: usize = KINDS + 3;

/// Transfers as many as which a coarser mean counts beside that of a kind; chosen by us.
const COARSER_COUNT: f64 = 4.0;

/// Transfers of a pair at which its sums are halved; chosen by us.
const COUNT_MAX: f64 = 4096.0;

/// Rounds of the fit; chosen by us: more change prices by less than a thousandth.
const ROUNDS: usize = 32;

/// How a transfer comes after the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comes {
    /// When that is done.
    Next,
    /// Issued at one instant with that, to a device that holds several commands.
    Together,
    /// After a rest.
    AfterRest,
}

/// What a device is asked for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Together {
    /// One transfer after another, as far as was seen.
    Nothing,
    /// Batches.
    Batches,
    /// All that a call of a user writes, and all that it reads.
    Calls,
}

/// Activity of a device between two transfers that follow each other as far as writes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    /// Both were issued in one batch.
    Together,
    Rest,
    Reads,
}

/// Where a device is after a transfer, as far as the price of the next depends on it.
#[derive(Debug, Clone, Copy)]
struct After {
    /// The slot behind the last; none before the first.
    slot: Option<u32>,
    kind: u16,
    wrote: bool,
}

impl After {
    const NOTHING: Self = Self { slot: None, kind: NOTHING, wrote: true };

    /// The kind of what comes before `transfer`, and its own.
    #[inline]
    fn kinds_at(self, transfer: &Transfer, between: Between, spread: Spread) -> (u16, u16) {
        let (before, wrote) = match between {
            Between::Nothing | Between::Together => (self.kind, self.wrote),
            Between::Rest => (REST, self.wrote),
            Between::Reads => (READS, false),
        };
        let step = match self.slot {
            Some(slot) if between != Between::Reads => {
                step(spread.of(i64::from(transfer.slot) - i64::from(slot)))
            }
            _ => ELSEWHERE,
        };
        let length = (u32::BITS - transfer.blocks.leading_zeros()).min(LENGTHS as u32 - 1);
        let operations = usize::from(between == Between::Together) * 4
            + usize::from(wrote) * 2
            + usize::from(transfer.purpose.writes());
        (before, ((operations * STEPS + step) * LENGTHS + length as usize) as u16)
    }

    /// After `transfer`, which was of `kind`.
    #[inline]
    fn of(transfer: &Transfer, kind: u16) -> Self {
        let slot = Some(transfer.slot.saturating_add(transfer.blocks));
        Self { slot, kind, wrote: transfer.purpose.writes() }
    }
}

/// How much farther than slots say things lie apart: a sample of a log has fewer segments than the
/// log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Distances within which slots are as far apart as they say: a segment.
    pub near_blocks: u32,
    /// How many times as far apart those beyond are.
    pub scale: u32,
}

impl Spread {
    /// Slots are as far apart as they say.
    pub const NONE: Self = Self { near_blocks: 0, scale: 1 };

    #[inline]
    fn of(self, blocks: i64) -> i64 {
        if self.scale == 1 || blocks.unsigned_abs() <= u64::from(self.near_blocks) {
            blocks
        } else {
            blocks * i64::from(self.scale)
        }
    }
}

/// The number of a distance, in blocks from the end of one transfer to the beginning of the next.
#[inline]
fn step(blocks: i64) -> usize {
    if (0..=EXACT_BLOCKS).contains(&blocks) {
        return blocks as usize;
    }
    let far = blocks.unsigned_abs().min(u64::from(u32::MAX)) as u32;
    let octave = far.ilog2();
    if blocks < 0 {
        return FIRST_BACK + octave as usize;
    }
    let upper_half = (far >> (octave - 1)) & 1;
    EXACT_BLOCKS as usize + 1 + 2 * (octave as usize - 3) + upper_half as usize
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64, count: f64) {
        self.sum += value * count;
        self.count += count;
    }

    /// The mean, with `coarser` counted as [`COARSER_COUNT`] more.
    fn towards(self, coarser: f64) -> f64 {
        (self.sum + coarser * COARSER_COUNT) / (self.count + COARSER_COUNT)
    }
}

/// Times of the transfers of a device.
#[derive(Debug, Clone)]
pub struct TransferTimes {
    disk: CostModel,
    after: After,
    /// By the kind before times 2^16 and the kind.
    pairs: BTreeMap<u32, Mean>,
    /// The pair noted last.
    latest: Option<u32>,
    /// Users have read since.
    has_read: bool,
    /// A call has begun since.
    has_called: bool,
    calls: Calls,
    together: Together,
}

/// What comes before the first transfers of calls.
#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    count: f64,
    after_rest: f64,
    after_reads: f64,
}

impl Calls {
    fn note(&mut self, between: Between) {
        self.count += 1.0;
        self.after_rest += f64::from(u8::from(between == Between::Rest));
        self.after_reads += f64::from(u8::from(between == Between::Reads));
        if self.count >= COUNT_MAX {
            self.count /= 2.0;
            self.after_rest /= 2.0;
            self.after_reads /= 2.0;
        }
    }
}

impl TransferTimes {
    /// Nothing was seen of `disk` yet.
    #[must_use]
    pub fn new(disk: CostModel) -> Self {
        Self {
            disk,
            after: After::NOTHING,
            pairs: BTreeMap::new(),
            latest: None,
            has_read: false,
            has_called: false,
            calls: Calls::default(),
            together: Together::Nothing,
        }
    }

    /// What a call of a user writes is one batch, whatever the log commits in between, and so is what it
    /// reads: who carries a log out as groups that are all or nothing.
    pub fn issue_calls_together(&mut self) {
        self.together = Together::Calls;
    }

    /// What follows belongs to another call of a user.
    #[inline]
    pub fn begin_call(&mut self) {
        self.has_called = true;
    }

    /// `transfer` came after those noted before as `comes` says, and took `time_ns`.
    pub fn note(&mut self, transfer: &Transfer, time_ns: u64, comes: Comes) {
        match transfer.purpose {
            Purpose::Read | Purpose::Prefetch => {
                self.has_read = true;
                return;
            }
            Purpose::Flush | Purpose::Discard => return self.note_more(time_ns),
            _ => {}
        }
        let between = match (std::mem::take(&mut self.has_read), comes) {
            (true, _) => Between::Reads,
            (false, Comes::AfterRest) => Between::Rest,
            (false, Comes::Together) => Between::Together,
            (false, Comes::Next) => Between::Nothing,
        };
        if comes == Comes::Together {
            self.together = self.together.max(Together::Batches);
        }
        if std::mem::take(&mut self.has_called) {
            self.calls.note(between);
        }
        let (before, kind) = self.after.kinds_at(transfer, between, Spread::NONE);
        self.after = After::of(transfer, kind);
        let streaming_ns = self.disk.streaming_ns(transfer.bytes(self.disk.block_bytes));
        let latest = u32::from(before) << 16 | u32::from(kind);
        self.latest = Some(latest);
        let pair = self.pairs.entry(latest).or_default();
        pair.add(time_ns as f64 - streaming_ns as f64, 1.0);
        if pair.count >= COUNT_MAX {
            pair.sum /= 2.0;
            pair.count /= 2.0;
        }
    }

    /// The transfer noted last has made the device busy for `time_ns` more.
    fn note_more(&mut self, time_ns: u64) {
        if let Some(pair) = self.latest.and_then(|latest| self.pairs.get_mut(&latest)) {
            pair.sum += time_ns as f64;
        }
    }

    /// The observations of a trial and of this run together; shares of calls are those of this run.
    #[must_use]
    pub fn after_trial(&self, trial: &Self) -> Self {
        let mut both = self.clone();
        for (pair, tried) in &trial.pairs {
            let mean = both.pairs.entry(*pair).or_default();
            mean.sum += tried.sum;
            mean.count += tried.count;
        }
        both.together = both.together.max(trial.together);
        both
    }

    /// The prices that what was seen leads to; none if nothing was.
    #[must_use]
    pub fn prices(&self) -> Option<TransferPrices> {
        (!self.pairs.is_empty()).then(|| TransferPrices::fitted(self))
    }
}

/// Expected time of each kind of transfer beyond streaming its bytes.
#[derive(Debug, Clone)]
pub struct TransferPrices {
    disk: CostModel,
    /// Of its own kind, ns.
    own_ns: Vec<f64>,
    /// Of what comes before, ns.
    left_ns: Vec<f64>,
    /// Share of calls that begin after a rest.
    after_rest: f64,
    /// Share of calls that begin after reads of users.
    after_reads: f64,
    together: Together,
}

impl TransferPrices {
    fn fitted(times: &TransferTimes) -> Self {
        let calls = times.calls.count.max(1.0);
        let mut prices = Self {
            disk: times.disk,
            own_ns: vec![0.0; KINDS],
            left_ns: vec![0.0; BEFORE],
            after_rest: times.calls.after_rest / calls,
            after_reads: times.calls.after_reads / calls,
            together: times.together,
        };
        for _ in 0..ROUNDS {
            prices.fit_own(&times.pairs);
            prices.fit_left(&times.pairs);
        }
        prices
    }

    /// Fits what kinds take themselves, given what is left by those before them.
    fn fit_own(&mut self, pairs: &BTreeMap<u32, Mean>) {
        let mut kinds = vec![Mean::default(); KINDS];
        let mut steps = vec![Mean::default(); OPERATIONS * STEPS];
        let mut directions = [Mean::default(); OPERATIONS * DIRECTIONS];
        let mut operations = [Mean::default(); OPERATIONS];
        for (pair, mean) in pairs {
            let (before, kind) = ((pair >> 16) as usize, (pair & 0xffff) as usize);
            let own_ns = mean.sum / mean.count - self.left_ns[before];
            let step = kind / LENGTHS;
            let operation = step / STEPS;
            kinds[kind].add(own_ns, mean.count);
            steps[step].add(own_ns, mean.count);
            directions[operation * DIRECTIONS + direction(step % STEPS)].add(own_ns, mean.count);
            operations[operation].add(own_ns, mean.count);
        }
        for (number, (own_ns, means)) in
            self.own_ns.chunks_mut(LENGTHS).zip(kinds.chunks(LENGTHS)).enumerate()
        {
            let (operation, step) = (number / STEPS, number % STEPS);
            // Where most is issued together the further transfers of a batch are what one knows nothing of.
            let is_further = self.together == Together::Calls && operation >= OPERATIONS / 2;
            let unseen_ns = if is_further { self.disk.further_ns } else { self.disk.access_ns };
            let of_operation = operations[operation].towards(unseen_ns as f64);
            let within = directions[operation * DIRECTIONS + direction(step)].towards(of_operation);
            let of_step = steps[number].towards(within);
            for (own_ns, mean) in own_ns.iter_mut().zip(means) {
                *own_ns = mean.towards(of_step);
            }
        }
    }

    /// Fits what kinds leave to be waited for, given what those after them take themselves.
    fn fit_left(&mut self, pairs: &BTreeMap<u32, Mean>) {
        let mut kinds = vec![Mean::default(); BEFORE];
        for (pair, mean) in pairs {
            let (before, kind) = ((pair >> 16) as usize, (pair & 0xffff) as usize);
            kinds[before].add(mean.sum / mean.count - self.own_ns[kind], mean.count);
        }
        for (left_ns, mean) in self.left_ns.iter_mut().zip(&kinds) {
            *left_ns = mean.towards(0.0);
        }
    }
}

/// Directions whose steps are drawn towards each other: none, ahead nearby, ahead, back.
const DIRECTIONS: usize = 4;

fn direction(step: usize) -> usize {
    match step {
        0 => 0,
        step if step <= EXACT_BLOCKS as usize => 1,
        step if step < FIRST_BACK => 2,
        _ => 3,
    }
}

/// Prices transfers that come one after another.
#[derive(Debug, Clone)]
pub(crate) struct Pricing {
    prices: Arc<TransferPrices>,
    spread: Spread,
    after: After,
    /// A call has begun since.
    has_called: bool,
    /// Batches that are open.
    brackets: u32,
    /// Whether the last transfer writes, if more may be issued in its batch.
    issued_writes: Option<bool>,
}

impl Pricing {
    /// By `prices`, with nothing before the first transfer.
    pub(crate) fn new(prices: TransferPrices, spread: Spread) -> Self {
        Self {
            prices: Arc::new(prices),
            spread,
            after: After::NOTHING,
            has_called: false,
            brackets: 0,
            issued_writes: None,
        }
    }

    /// Begins a batch: transfers from here on are issued together.
    pub(crate) fn begin_batch(&mut self) {
        self.brackets += 1;
    }

    /// Ends a batch, unless it is within another.
    pub(crate) fn end_batch(&mut self) {
        self.brackets = self.brackets.saturating_sub(1);
        if self.brackets == 0 {
            self.wait();
        }
    }

    /// Waits: what follows is not issued before all is done.
    pub(crate) fn wait(&mut self) {
        if self.prices.together != Together::Calls {
            self.issued_writes = None;
        }
    }

    /// What follows belongs to another call of a user.
    #[inline]
    pub(crate) fn begin_call(&mut self) {
        self.has_called = true;
        if self.prices.together == Together::Calls {
            self.issued_writes = None;
        }
    }

    /// Time of `transfer` after those priced before, ns.
    #[inline]
    pub(crate) fn next_ns(&mut self, transfer: &Transfer) -> u64 {
        let prices = &*self.prices;
        let sum_ns = |(before, kind): (u16, u16)| {
            prices.own_ns[usize::from(kind)] + prices.left_ns[usize::from(before)]
        };
        let writes = transfer.purpose.writes();
        let issues_together = prices.together > Together::Nothing;
        let is_together = issues_together && self.issued_writes == Some(writes);
        let between = if is_together { Between::Together } else { Between::Nothing };
        let is_open = self.brackets > 0 || prices.together == Together::Calls;
        self.issued_writes = is_open.then_some(writes);
        let (before, kind) = self.after.kinds_at(transfer, between, self.spread);
        let mut moving_ns = sum_ns((before, kind));
        if std::mem::take(&mut self.has_called) && prices.after_rest + prices.after_reads > 0.0 {
            // The activity between two calls is random; here its mean is used.
            let after = |between| sum_ns(self.after.kinds_at(transfer, between, self.spread));
            moving_ns += (after(Between::Rest) - moving_ns) * prices.after_rest
                + (after(Between::Reads) - moving_ns) * prices.after_reads;
        }
        self.after = After::of(transfer, kind);
        let streaming_ns = prices.disk.streaming_ns(transfer.bytes(prices.disk.block_bytes));
        (streaming_ns as f64 + moving_ns).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests;
