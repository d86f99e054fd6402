//! What is read together is put together: what was observed becomes a history, and what of it pays is
//! moved (Matthews 1999, §6.4). The rule is that of the simulator and of `agewell reorganise --watch`, on
//! pieces of files and nodes in place of blocks and files.

mod unit_view;

use std::sync::Arc;

use agewell_fs::{FileSystem, FsError, Observed, Unit, UnitRead};
use agewell_log::policy::cost::CostModel;
use agewell_regrouping::{
    Choice, Considered, Group, MemberKey, MemberView, Part, ReadHistory, Request, Run, choose,
    place_sum,
};
use agewell_store::device::Disk;

use unit_view::UnitView;

/// Bytes that a unit takes in the history, about: by its own account.
const UNIT_BYTES: u64 = 256;

/// Most blocks of a group, where a segment has more; chosen by us: as many as are put together at once.
const GROUP_BLOCKS_MAX: u32 = 512;

/// What has become of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Regrouped {
    /// Pieces of files and nodes in the history.
    pub units: u64,
    /// Reads of the device that were observed, and those that were not for want of room.
    pub reads: u64,
    /// Those.
    pub lost_reads: u64,
    /// What was looked at the last time.
    pub considered: Considered,
    /// Times that it was decided.
    pub decisions: u64,
    /// Groups that were moved, and those for which there was no room.
    pub groups: u64,
    /// Those.
    pub without_room: u64,
    /// Blocks that were moved.
    pub blocks: u64,
    /// Time that reads were saved so far, as observed, s; negative if they took longer.
    pub saved_seconds: f64,
    /// Time of all reads of the device, s.
    pub read_seconds: f64,
    /// Time of all moves, s.
    pub moving_seconds: f64,
}

/// What learns from what was read and puts together what pays.
#[derive(Debug)]
pub struct Regrouping<D> {
    file_system: Arc<FileSystem<D>>,
    history: ReadHistory,
    slot_bytes: u64,
    has_news: bool,
    done: Regrouped,
}

impl<D: Disk> Regrouping<D> {
    /// Of `file_system`, which is observed from now on, in `memory_bytes` of memory; `disk` is what its
    /// device is like until its own times are known.
    #[must_use]
    pub fn new(file_system: Arc<FileSystem<D>>, memory_bytes: u64, disk: CostModel) -> Self {
        let geometry = file_system.store().geometry();
        let slot_bytes = u64::from(geometry.block_bytes);
        let disk = CostModel { block_bytes: slot_bytes, ..disk };
        let row_slots = geometry.segment_blocks.min(GROUP_BLOCKS_MAX);
        let units_max = u32::try_from(memory_bytes / UNIT_BYTES).unwrap_or(u32::MAX);
        let history = ReadHistory::new(units_max, row_slots, disk);
        file_system.observe(true);
        Self { file_system, history, slot_bytes, has_news: false, done: Regrouped::default() }
    }

    /// What has become of it so far.
    #[must_use]
    pub fn done(&self) -> Regrouped {
        let totals = &self.history.totals;
        Regrouped {
            units: self.history.count() as u64,
            reads: totals.reads,
            saved_seconds: self.history.trust.saved_ns() / 1e9,
            read_seconds: totals.read_ns as f64 / 1e9,
            moving_seconds: totals.moving_ns as f64 / 1e9,
            ..self.done
        }
    }

    /// Takes in what was observed since the last time.
    pub fn learn(&mut self) {
        let Observed { reads, written, lost_reads } = self.file_system.observed();
        self.done.lost_reads += lost_reads;
        for unit in written {
            let part = Part { file: key_of(unit), offset: 0, slots: 1 };
            let parts = vec![part];
            let request = Request { is_read: false, slot: 0, slots: 1, time_ns: 0, parts };
            self.history.observe(&request);
        }
        self.has_news |= !reads.is_empty();
        for call in reads.chunk_by(|_, next| next.took_ns.is_none()) {
            self.learn_call(call);
        }
    }

    /// What one call has read, as the requests that the device carried out for it.
    fn learn_call(&mut self, call: &[UnitRead]) {
        let mut requests: Vec<Request> = Vec::new();
        let mut ahead_slots = 0;
        for read in call {
            ahead_slots += u64::from(read.ahead_blocks);
            let places = self.file_system.store().places(read.first, read.blocks);
            for (offset, place) in (u64::from(read.at)..).zip(places) {
                // What is in memory only was not read from the device, or has been written since.
                let Some(slot) = place.map(|place| place / self.slot_bytes) else { continue };
                let part = Part { file: key_of(read.unit), offset, slots: 1 };
                if read.is_foreseen {
                    self.history.foreseen(&part, slot);
                    continue;
                }
                match requests.last_mut() {
                    Some(last) if last.slot + last.slots == slot => {
                        last.slots += 1;
                        match last.parts.last_mut() {
                            Some(same) if same.file == part.file => same.slots += 1,
                            _ => last.parts.push(part),
                        }
                    }
                    _ => {
                        let (time_ns, parts) = (0, vec![part]);
                        requests.push(Request { is_read: true, slot, slots: 1, time_ns, parts });
                    }
                }
            }
        }
        let took_ns = call.first().and_then(|read| read.took_ns).unwrap_or(0);
        let each_ns = took_ns / requests.len().max(1) as u64;
        if let Some(last) = requests.last_mut() {
            // It brought these as well, of which nothing is learnt but how long it took.
            last.slots += ahead_slots;
        }
        for mut request in requests {
            request.time_ns = each_ns;
            self.history.observe(&request);
        }
    }

    /// Puts together what pays, as long as `is_idle`; how many groups were.
    ///
    /// # Errors
    /// If the device fails.
    pub fn put_together(&mut self, is_idle: &mut dyn FnMut() -> bool) -> Result<u64, FsError> {
        let has_news = std::mem::take(&mut self.has_news) && self.history.times.is_known();
        // One that was shut is left as it is.
        if !has_news || self.file_system.is_shut() {
            return Ok(0);
        }
        let mut view = UnitView::new(&self.file_system, &self.history, self.slot_bytes);
        self.history.settle_places(view.places());
        let Choice { groups, considered } = choose(&mut self.history, &view, u64::MAX);
        self.done.considered = considered;
        self.done.decisions += 1;
        let mut moved = Vec::new();
        let mut done = Ok(());
        for group in groups {
            if !is_idle() {
                // What is left is looked at again.
                self.has_news = true;
                break;
            }
            match self.move_group(&group, is_idle) {
                Ok(0) => self.done.without_room += 1,
                Ok(_) => moved.push(group),
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
        }
        // Where they lie now is known when they lie there.
        self.file_system.store().sync()?;
        for group in &moved {
            let before: Vec<(u32, Vec<Run>)> = group
                .files
                .iter()
                .map(|unit| (*unit, view.places().runs(*unit).to_vec()))
                .collect();
            view.look(&self.file_system, &self.history, &group.files);
            for (unit, before) in before {
                let after = view.places().runs(unit);
                if !after.is_empty() && after != &before[..] {
                    self.history.moved(unit, &before, place_sum(after));
                }
            }
            self.history.trust.moved(group.torn, group.expected);
        }
        self.done.groups += moved.len() as u64;
        // The arm has been elsewhere.
        self.history.interrupted();
        done.map(|()| moved.len() as u64)
    }

    /// Moves a group; how many blocks were.
    fn move_group(
        &mut self,
        group: &Group,
        is_idle: &mut dyn FnMut() -> bool,
    ) -> Result<u64, FsError> {
        let store = Arc::clone(self.file_system.store());
        let units = group.files.iter().filter_map(|number| self.history.file(*number));
        let units: Vec<Unit> = units.map(|unit| Unit::of_number(unit.key.number)).collect();
        let places = self.file_system.unit_places(&units);
        let blocks: Vec<u32> = places.iter().flatten().map(|place| place.0).collect();
        let begin_ns = store.disk().now_ns();
        let before = store.log_counts();
        if !store.make_room_together(blocks.len() as u32, is_idle)? {
            return Ok(0);
        }
        let moved = u64::from(store.put_together(&blocks)?);
        group.files.iter().for_each(|number| self.history.tried(*number));
        let counts = store.log_counts();
        let cleaned = counts.cleaned_blocks - before.cleaned_blocks;
        let took_ns = store.disk().now_ns().zip(begin_ns).map(|(end, begin)| end - begin);
        let totals = &mut self.history.totals;
        totals.moving_ns += took_ns.unwrap_or(group.cost_ns as u64);
        totals.moved_bytes += (moved + cleaned) * self.slot_bytes;
        totals.room_bytes += cleaned * self.slot_bytes;
        self.done.blocks += moved;
        if moved as usize == blocks.len() {
            self.file_system.lie_together(blocks);
        }
        Ok(moved)
    }
}

/// By what a unit is known.
fn key_of(unit: Unit) -> MemberKey {
    MemberKey { number: unit.number(), birth_ns: 0 }
}
