//! The disk under a layout: transfers priced by a cost model, or timed on a mechanical model.
//!
//! The disk does one thing after another, and the host waits for it: foreground work, as in
//! Matthews 1999, §5.2.2. Its clock is the simulated time of everything in the run. What a layout
//! issues together is issued together to a drive that holds several commands (`together.rs`); one that
//! takes a command at a time is asked one transfer after another.

use agewell_core::{BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimTime};
use agewell_disk::{Device, DeviceModel, FlashCounts};
use agewell_log::policy::cost::CostModel;
use agewell_log::{BlockDevice, Comes, CostMeter, Purpose, Sources, Transfer, TransferTimes};
use agewell_trace::record::{BlockBatch, BlockRow, flag};

use super::flushes::Flushes;
use super::simple_disk::SimpleDisk;
use super::timing::{Timing, operation_of, request, serve};
use super::together::Together;
use super::zones::Zones;

/// A disk with a clock and accounts.
#[derive(Clone)]
pub(crate) struct TimedDisk {
    meter: CostMeter,
    /// What transfers take, if somebody wants to know.
    times: Option<Box<TransferTimes>>,
    /// Sectors of a place.
    unit_sectors: u64,
    zones: Zones,
    /// The requests so far, if they are recorded.
    recorded: Option<Box<BlockBatch>>,
    /// Places that the call of a user has replaced, if a crash in its midst must find them.
    replaced: Option<Vec<u32>>,
    /// Blocks that collections moved, if somebody wants to know them.
    moved: Option<Vec<u32>>,
    /// Host time that each place read for a user costs, ns.
    read_overhead_ns: u64,
    now_ns: u64,
    /// When the last transfer ended.
    idle_since_ns: u64,
    /// When the last transfer for a user had come in and been looked at.
    answered_ns: u64,
    /// Whether what dies is discarded on the drive.
    takes_discards: bool,
    timing: Timing,
    together: Together,
    /// A second disk, equal to the first.
    second: Option<SecondDisk>,
    behind: Behind,
    flushes: Flushes,
}

/// What the first disk does while the host goes on with the second.
#[derive(Clone, Copy, Default)]
struct Behind {
    /// Whether what is issued now is to go on behind.
    is_open: bool,
    /// When the first disk has done all of it.
    done_ns: u64,
    /// When the host asked for what the first disk does now.
    asked_ns: u64,
}

/// A disk that holds the places of a layout from some place on. The host waits for either disk, but
/// not for what is to go on behind on the first.
#[derive(Clone)]
struct SecondDisk {
    first_place: u32,
    timing: Timing,
}

impl TimedDisk {
    /// A disk without mechanics under a layout whose places are `unit_bytes`; a block for policies is
    /// `block_bytes`.
    pub(crate) fn simple(disk: &SimpleDisk, unit_bytes: u64, block_bytes: u64) -> Self {
        let (read, write) = (disk.reading(unit_bytes), disk.writing(unit_bytes));
        let timing = Timing::Simple { read, write };
        Self::new(disk.writing(block_bytes), unit_bytes, timing)
    }

    /// A modelled drive that holds a layout from its first sector on, a place `unit_bytes` long;
    /// `estimate` is what policies take it for.
    pub(crate) fn mechanical(device: DeviceModel, unit_bytes: u64, estimate: CostModel) -> Self {
        Self::new(estimate, unit_bytes, Timing::Mechanical(Box::new(device)))
    }

    fn new(estimate: CostModel, unit_bytes: u64, timing: Timing) -> Self {
        Self {
            meter: CostMeter::new(estimate),
            times: None,
            unit_sectors: unit_bytes / SECTOR_BYTES,
            zones: Zones::default(),
            recorded: None,
            replaced: None,
            moved: None,
            read_overhead_ns: 0,
            now_ns: 0,
            idle_since_ns: 0,
            answered_ns: 0,
            takes_discards: false,
            together: Together::new(match &timing {
                Timing::Simple { .. } => 1,
                Timing::Mechanical(device) => device.queue_depth(),
            }),
            timing,
            second: None,
            behind: Behind::default(),
            flushes: Flushes::default(),
        }
    }

    /// Places from `first_place` on, if any, lie on a second disk, equal to this one.
    pub(crate) fn set_second_from(&mut self, first_place: Option<u32>) {
        let timing = &self.timing;
        self.second =
            first_place.map(|first_place| SecondDisk { first_place, timing: timing.clone() });
    }

    /// The layout keeps to `zones`.
    pub(crate) fn set_zones(&mut self, zones: Zones) {
        self.zones = zones;
    }

    /// `blocks` places from `slot` on were written before the first request, and more will be behind
    /// them: a drive that is written in order must know.
    pub(crate) fn prefill_log(&mut self, slot: u32, blocks: u32) {
        if self.zones.zone_sectors > 0 {
            self.transfer(&Transfer::of_blocks(Purpose::NewData, slot, blocks), &[]);
        }
    }

    /// A block of `bytes` lay in `place` and those behind it before the first request.
    pub(crate) fn prefill(&mut self, place: u32, bytes: u64) {
        let sector = self.zones.base_sector + u64::from(place) * self.unit_sectors;
        if let Timing::Mechanical(device) = &mut self.timing {
            let sectors = (bytes / SECTOR_BYTES).min(device.capacity().0 - sector);
            device.prefill(Sector(sector), SectorCount(sectors));
        }
    }

    /// Enables discards, if they are of use to the drive; whether they are. A drive whose zones are
    /// emptied before they are written again needs no other word.
    pub(crate) fn take_discards(&mut self) -> bool {
        self.takes_discards = match &self.timing {
            Timing::Simple { .. } => false,
            Timing::Mechanical(device) => {
                device.layout_advice().wants_discards && self.zones.zone_sectors == 0
            }
        };
        self.takes_discards
    }

    /// Whether it is the model of a drive.
    pub(crate) fn is_mechanical(&self) -> bool {
        matches!(self.timing, Timing::Mechanical(_))
    }

    /// What a flash drive has done, if it is one.
    pub(crate) fn flash_counts(&self) -> Option<FlashCounts> {
        match &self.timing {
            Timing::Mechanical(device) => match &**device {
                DeviceModel::Flash(flash) => Some(flash.counts()),
                _ => None,
            },
            Timing::Simple { .. } => None,
        }
    }

    /// Notes from here on what transfers take, beside what is noted in `times`.
    pub(crate) fn begin_learning(&mut self, times: TransferTimes) {
        self.times = Some(Box::new(times));
    }

    /// What was noted, if something was to be.
    pub(crate) fn end_learning(&mut self) -> Option<TransferTimes> {
        self.times.take().map(|times| *times)
    }

    /// `transfer` has taken `time_ns`, from now on.
    fn took(&mut self, transfer: &Transfer, time_ns: u64) {
        self.meter.add(transfer, time_ns);
        let comes = self.next_comes();
        if let Some(times) = &mut self.times {
            times.note(transfer, time_ns, comes);
        }
    }

    /// How what the disk is asked now comes after what it did: after a rest if that is as long as an
    /// access takes.
    fn next_comes(&self) -> Comes {
        // What goes on behind ends after now.
        let rested_ns = self.now_ns.saturating_sub(self.idle_since_ns);
        let is_long = rested_ns >= self.meter.model().access_ns.max(1);
        if is_long { Comes::AfterRest } else { Comes::Next }
    }

    /// Records every request from here on.
    pub(crate) fn record(&mut self) {
        self.recorded = Some(Box::default());
    }

    /// What a call of a user replaces is not written over by it from here on.
    pub(crate) fn keep_replaced(&mut self) {
        self.replaced = Some(Vec::new());
    }

    /// Notes from here on which blocks collections move.
    pub(crate) fn note_moves(&mut self) {
        self.moved = Some(Vec::new());
    }

    /// What has been moved since this was last asked.
    pub(crate) fn take_moved(&mut self) -> Vec<u32> {
        self.moved.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The requests recorded, if they were.
    pub(crate) fn into_recorded(self) -> Option<Box<BlockBatch>> {
        self.recorded
    }

    /// Each place read for a user keeps the host busy for `ns`.
    pub(crate) fn set_read_overhead(&mut self, ns: u64) {
        self.read_overhead_ns = ns;
    }

    /// What follows was asked for by another call of a user: the disk may have rested since the one
    /// before.
    #[inline]
    pub(crate) fn begin_call(&mut self) {
        self.times.iter_mut().for_each(|times| times.begin_call());
        self.replaced.iter_mut().for_each(Vec::clear);
    }

    /// What all transfers have taken so far, ns; waits for them.
    pub(crate) fn spent_ns(&mut self) -> u64 {
        self.settle();
        self.meter.total_ns()
    }

    /// What transfers took, kind by kind, if that is noted.
    pub(crate) fn transfer_times(&self) -> Option<&TransferTimes> {
        self.times.as_deref()
    }

    /// What transfers took, by purpose.
    pub(crate) fn meter(&self) -> &CostMeter {
        &self.meter
    }

    /// Forgets what was spent so far; the clock and the arm stay where they are.
    pub(crate) fn begin_measuring(&mut self) {
        self.meter = CostMeter::new(*self.meter.model());
    }

    /// When the disk has done everything it was asked.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// When the disk last did something.
    pub(crate) fn idle_since_ns(&self) -> u64 {
        self.idle_since_ns
    }

    /// When users had what they last read from the disk.
    pub(crate) fn answered_ns(&self) -> u64 {
        self.answered_ns
    }

    /// Users have what they read at `ns`; the host does nothing else before that.
    fn answer(&mut self, ns: u64) {
        self.answered_ns = ns;
        self.now_ns = self.now_ns.max(ns);
    }

    fn pass(&mut self, busy_ns: u64) {
        self.now_ns += busy_ns;
        self.idle_since_ns = self.now_ns;
    }

    /// Whether what is issued together goes to the drive together.
    pub(crate) fn gathers(&self) -> bool {
        self.together.queue_depth() > 1
    }

    /// What a user's read of any one place takes, ns, if it is the same of all of them and nothing comes
    /// of it but what [`Self::pass_reading`] and [`Self::add_place_reads`] do.
    pub(crate) fn place_read_ns(&self) -> Option<u64> {
        let is_watched = self.recorded.is_some() || self.times.is_some() || self.second.is_some();
        match &self.timing {
            Timing::Simple { read, .. } if !is_watched => Some(read.blocks_ns(1)),
            _ => None,
        }
    }

    /// A user reads a place, which takes `ns`; it is not yet in the accounts.
    #[inline]
    pub(crate) fn pass_reading(&mut self, ns: u64) {
        self.pass(ns);
        self.answer(self.now_ns + self.read_overhead_ns);
    }

    /// `reads` places were read for users, each in `ns`.
    pub(crate) fn add_place_reads(&mut self, reads: u64, ns: u64) {
        self.meter.add_alike(&Transfer::of_blocks(Purpose::Read, 0, 1), ns, reads);
    }

    /// Nothing happens before `time`.
    pub(crate) fn wait_until(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
    }

    /// The host is busy for so long.
    pub(crate) fn host_busy(&mut self, ns: u64) {
        self.now_ns += ns;
    }
}

impl BlockDevice for TimedDisk {
    fn transfer_from(&mut self, transfer: &Transfer, contents: &[u32], sources: Sources<'_>) {
        // What is collected amid a sync is durable before the rest of it: a store collects before it.
        if let Some(replaced) = &mut self.replaced
            && transfer.purpose == Purpose::Thread
        {
            match sources {
                Sources::Run(_, waiting) => replaced.extend(waiting.iter().map(|each| each.old)),
                Sources::Entries(entries, all) => {
                    replaced.extend(entries.iter().map(|entry| all[*entry as usize].old));
                }
                Sources::Through(waiting) => replaced.push(waiting.old),
                // What copies are made of is not replaced by a call of a user.
                Sources::Copies(_) | Sources::Unnamed => {}
            }
        }
        self.transfer(transfer, contents);
    }

    fn may_fill(&self, slot: u32) -> bool {
        self.replaced.as_ref().is_none_or(|replaced| !replaced.contains(&slot))
    }

    fn unfillable_most(&self) -> u64 {
        self.replaced.as_ref().map_or(0, |replaced| replaced.len() as u64)
    }

    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        if let Some(moved) = &mut self.moved
            && matches!(transfer.purpose, Purpose::CollectWrite | Purpose::Plug)
        {
            moved.extend_from_slice(contents);
        }
        if self.together.is_gathering() && self.gather(transfer) {
            return;
        }
        let sectors = self.sectors(transfer);
        let operation = operation_of(transfer.purpose);
        let writes = operation == Operation::Write;
        if let Some(place) = self.second_place(transfer.slot) {
            let sector = u64::from(place) * self.unit_sectors;
            // The arm is where it was left (Matthews 1999, §3.4).
            let transfer = Transfer { further: true, ..*transfer };
            let time_ns = self.serve(1, (sector, sectors), operation, &transfer, 0);
            self.meter.add(&transfer, time_ns);
            self.pass(time_ns);
            if writes {
                self.flushes.note(1, false);
            }
            return;
        }
        self.turn_to_first();
        let place = u64::from(transfer.slot) * self.unit_sectors;
        let sector = self.zones.base_sector + place;
        let mut time_ns = 0;
        if writes && self.zones.zone_sectors > 0 && place.is_multiple_of(self.zones.zone_sectors) {
            // What lay in the zone is dead, or the log would not begin it again.
            let zone = (sector, self.zones.zone_sectors);
            time_ns += self.serve(0, zone, Operation::Discard, transfer, 0);
        }
        time_ns += self.serve(0, (sector, sectors), operation, transfer, time_ns);
        self.took(transfer, time_ns);
        self.pass(time_ns);
        self.turn_back();
        if writes {
            self.flushes.note(0, self.behind.is_open);
        }
        if transfer.purpose == Purpose::Read {
            self.answer(self.now_ns + self.read_overhead_ns * u64::from(transfer.blocks));
        }
    }

    fn discard(&mut self, slot: u32, blocks: u32) {
        if self.takes_discards && self.second_place(slot).is_none() {
            self.transfer(&Transfer::of_blocks(Purpose::Discard, slot, blocks), &[]);
        }
    }

    fn begin_batch(&mut self) {
        self.together.begin();
    }

    fn end_batch(&mut self) {
        if self.together.end() {
            self.settle();
        }
    }

    fn wait(&mut self) {
        self.settle();
    }

    fn commit(&mut self) {
        self.settle();
        for number in 0..2 {
            if self.flushes.take(number) {
                self.flush(number);
            }
        }
    }

    fn begin_background(&mut self) {
        self.settle();
        self.behind.is_open = self.second.is_some();
    }

    fn end_background(&mut self) {
        self.settle();
        self.behind.is_open = false;
    }

    fn is_drained(&self) -> bool {
        self.behind.done_ns <= self.now_ns
    }

    fn drain(&mut self) {
        self.wait_until(self.behind.done_ns);
        self.flushes.caught_up();
    }
}

impl TimedDisk {
    /// The host turns to the first disk, which may be at something still.
    fn turn_to_first(&mut self) {
        self.behind.asked_ns = self.now_ns;
        self.wait_until(self.behind.done_ns);
    }

    /// The first disk has done what it was asked; the host did not wait if that goes on behind.
    fn turn_back(&mut self) {
        if self.behind.is_open {
            self.behind.done_ns = self.now_ns;
            self.now_ns = self.behind.asked_ns;
        }
    }

    /// What times disk `number`, 0 or 1, if there is one.
    fn timing_of(&mut self, number: usize) -> Option<&mut Timing> {
        match number {
            0 => Some(&mut self.timing),
            _ => self.second.as_mut().map(|second| &mut second.timing),
        }
    }

    /// Sectors that `transfer` moves, with its headers.
    fn sectors(&self, transfer: &Transfer) -> u64 {
        let headers = u64::from(transfer.header_bytes).div_ceil(SECTOR_BYTES);
        u64::from(transfer.blocks) * self.unit_sectors + headers
    }

    /// First sector and sectors of `transfer` on the first disk. Headers have no place of their own:
    /// they are taken to lie beside the blocks, and at the very end of the disk before them.
    fn sectors_of(&self, transfer: &Transfer) -> (u64, u64) {
        let sectors = self.sectors(transfer);
        let sector = self.zones.base_sector + u64::from(transfer.slot) * self.unit_sectors;
        match &self.timing {
            Timing::Simple { .. } => (sector, sectors),
            Timing::Mechanical(device) => (sector.min(device.capacity().0 - sectors), sectors),
        }
    }

    /// Which place of the second disk `slot` is, if it is one.
    fn second_place(&self, slot: u32) -> Option<u32> {
        self.second.as_ref().and_then(|second| slot.checked_sub(second.first_place))
    }

    /// Whether a transfer is one by itself: on the second disk, or a write to a zone that may have
    /// to be emptied first.
    fn goes_apart(&self, transfer: &Transfer) -> bool {
        let is_to_zone = transfer.purpose.writes() && self.zones.zone_sectors > 0;
        is_to_zone || self.second_place(transfer.slot).is_some()
    }

    /// Has disk `number` serve one request of `transfer`, `after_ns` from now; how long it takes.
    fn serve(
        &mut self,
        number: u32,
        (sector, sectors): (u64, u64),
        operation: Operation,
        transfer: &Transfer,
        after_ns: u64,
    ) -> u64 {
        let now_ns = self.now_ns + after_ns;
        let asked_ns = if number == 0 { self.behind.asked_ns + after_ns } else { now_ns };
        let timing = match &mut self.second {
            Some(second) if number == 1 => &mut second.timing,
            _ => &mut self.timing,
        };
        let (sector, time_ns) = match timing {
            Timing::Simple { read, write } => {
                let model = if operation == Operation::Write { write } else { read };
                let bytes = transfer.bytes(model.block_bytes);
                (sector, model.transfer_ns(transfer.further, bytes))
            }
            Timing::Mechanical(device) => {
                // Headers have no place of their own: they are taken to lie beside the blocks, and
                // at the very end of the disk before them.
                let sector = sector.min(device.capacity().0 - sectors);
                (sector, serve(device, now_ns, sector, sectors, operation))
            }
        };
        let request = request(now_ns, sector, sectors, operation);
        self.record_transfer(number, [asked_ns, now_ns, now_ns + time_ns], &request);
        time_ns
    }

    /// Flushes at every commit from here on; a disk without mechanics has nothing to flush.
    pub(crate) fn begin_flushing(&mut self) {
        self.flushes.begin();
    }

    /// Flushes disk `number`.
    fn flush(&mut self, number: usize) {
        if number == 0 {
            self.turn_to_first();
        }
        let issue_ns = self.now_ns;
        let Some(Timing::Mechanical(device)) = self.timing_of(number) else { return };
        // A flush names no sectors; one is asked for only because requests must not be empty.
        let request = request(issue_ns, 0, 1, Operation::Flush);
        let finish_ns = device.serve(SimTime(issue_ns), &request).finish.0;
        self.took(&Transfer::of_blocks(Purpose::Flush, 0, 0), finish_ns - issue_ns);
        self.pass(finish_ns - issue_ns);
        let without_sectors = BlockRequest { sectors: SectorCount(0), ..request };
        let asked_ns = if number == 0 { self.behind.asked_ns } else { issue_ns };
        self.record_transfer(number as u32, [asked_ns, issue_ns, finish_ns], &without_sectors);
    }

    /// Keeps `transfer` for later; false, with nothing kept, if it has to be carried out by itself.
    fn gather(&mut self, transfer: &Transfer) -> bool {
        let is_apart = self.goes_apart(transfer);
        let operation = operation_of(transfer.purpose);
        let gathered = self.together.operation();
        if is_apart || gathered.is_some_and(|gathered| gathered != operation) {
            self.settle();
        }
        if is_apart {
            return false;
        }
        let (sector, sectors) = self.sectors_of(transfer);
        self.together.push(*transfer, request(self.now_ns, sector, sectors, operation));
        true
    }

    /// Whether transfers are queued that are yet to be carried out.
    pub(crate) fn has_gathered(&self) -> bool {
        self.together.operation().is_some()
    }

    /// Carries out what is queued.
    fn settle(&mut self) {
        if let Some(operation) = self.together.operation() {
            self.settle_gathered(operation);
        }
    }

    fn settle_gathered(&mut self, operation: Operation) {
        let mut together = std::mem::replace(&mut self.together, Together::new(0));
        self.turn_to_first();
        let (issue_ns, comes) = (self.now_ns, self.next_comes());
        let Timing::Mechanical(device) = &mut self.timing else {
            unreachable!("a disk without mechanics holds one command")
        };
        together.serve(device, issue_ns);
        let (mut done_ns, mut read_blocks, mut answered_ns) = (issue_ns, 0, None);
        for (done, (finish_ns, transfer)) in together.completions().enumerate() {
            self.meter.add(transfer, finish_ns - done_ns);
            if let Some(times) = &mut self.times {
                // In the order of the layout, whose first transfer stands for the first that is done.
                let comes = if done == 0 { comes } else { Comes::Together };
                times.note(&together.transfers()[done], finish_ns - done_ns, comes);
            }
            done_ns = finish_ns;
            if transfer.purpose == Purpose::Read {
                read_blocks += u64::from(transfer.blocks);
                answered_ns = Some(finish_ns);
            }
        }
        for (request, finish_ns) in together.requests() {
            let asked_ns = self.behind.asked_ns;
            self.record_transfer(0, [asked_ns, issue_ns, finish_ns], request);
        }
        self.pass(done_ns - issue_ns);
        self.turn_back();
        if operation == Operation::Write {
            self.flushes.note(0, self.behind.is_open);
        }
        if let Some(answered_ns) = answered_ns {
            // The host looks at what users asked for while the drive goes on with the rest.
            self.answer(answered_ns + self.read_overhead_ns * read_blocks);
        }
        together.clear();
        self.together = together;
    }

    /// Records a request to disk `number`, if requests are: when the host asked for it, when it began
    /// and when it was done, ns.
    fn record_transfer(
        &mut self,
        number: u32,
        [enqueue_ns, start_ns, finish_ns]: [u64; 3],
        request: &BlockRequest,
    ) {
        if let Some(recorded) = &mut self.recorded {
            recorded.push(BlockRow {
                enqueue_ns,
                start_ns,
                finish_ns,
                device: number,
                sector: request.sector.0,
                sectors: request.sectors.0 as u32,
                operation: request.operation as u8,
                flags: flag::SYNCHRONOUS,
                ..BlockRow::default()
            });
        }
    }
}
