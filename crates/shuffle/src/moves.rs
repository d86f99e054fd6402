//! From one placement to the next: the copies, in an order in which everything always has a valid
//! copy on the disk.
//!
//! The difference of two placements falls into chains, which end in a vacant slot, and cycles. A
//! chain is copied from its vacant end backward. A cycle is opened by copying its first quantum
//! aside, into a vacant slot if the device has one that no quantum is bound for, else into a buffer
//! of one quantum outside the disk; only that one quantum then rests, for the length of its cycle,
//! on the buffer keeping its content (Ruemmler & Wilkes 1991, §2, ask that there be a valid,
//! identifiable copy on the disk at all times; that needs the spare slot).
//!
//! The report moves everything in no time (§4.3). Here every copy can be asked for its disk
//! requests, so that a simulator may do the moves in idle periods and charge for them. Copies are
//! one quantum each; adjacent ones are not merged into larger transfers, which a driver with memory
//! to spare could do: the cost is an upper bound.

use agewell_core::{Operation, Sector, SectorCount};

use crate::paged::Paged;
use crate::placement::Move;
use crate::{OrganPipeSlots, Placement, QuantumGrid, RemapTable};

/// Where a copy comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A slot of the device.
    Slot(u32),
    /// The buffer of one quantum outside the device.
    Buffer,
}

/// One copy of one quantum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveStep {
    /// The quantum.
    pub quantum: u32,
    /// Where it is read.
    pub from: Place,
    /// Where it is written.
    pub to: Place,
    /// Whether a valid copy already lies at the destination, so that nothing is read or written.
    pub already_there: bool,
    /// Whether nothing is held aside after this step.
    pub completes: bool,
}

/// One disk request of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveRequest {
    /// Read or write.
    pub operation: Operation,
    /// First sector on the device.
    pub sector: Sector,
    /// Length: always a quantum.
    pub sectors: SectorCount,
}

impl MoveStep {
    /// The read and the write of this copy, as far as the disk does them: read first.
    pub fn requests(self, grid: &QuantumGrid) -> impl Iterator<Item = MoveRequest> + use<> {
        let sectors = grid.quantum_sectors();
        let request = |operation, place| match place {
            Place::Slot(slot) if !self.already_there => {
                Some(MoveRequest { operation, sector: grid.slot_sector(slot), sectors })
            }
            _ => None,
        };
        [request(Operation::Read, self.from), request(Operation::Write, self.to)]
            .into_iter()
            .flatten()
    }
}

/// What a plan costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoveCost {
    /// Disk reads.
    pub reads: u64,
    /// Disk writes.
    pub writes: u64,
    /// Sectors read and written.
    pub sectors: u64,
}

/// The copies from one placement to another, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MovePlan {
    /// The copies.
    pub steps: Vec<MoveStep>,
    /// Quanta that end in another slot than they began in.
    pub moved_quanta: u32,
}

impl MovePlan {
    /// Disk requests and sectors of all copies.
    #[must_use]
    pub fn cost(&self, grid: &QuantumGrid) -> MoveCost {
        let mut cost = MoveCost::default();
        for request in self.steps.iter().flat_map(|step| step.requests(grid)) {
            match request.operation {
                Operation::Read => cost.reads += 1,
                _ => cost.writes += 1,
            }
            cost.sectors += request.sectors.0;
        }
        cost
    }
}

/// The copies that take `table` to `placement`, those that fill the slots around `center` first.
///
/// `already_there` says for a quantum and its destination whether a valid copy lies there.
#[must_use]
pub fn plan_moves(
    table: &RemapTable,
    placement: &Placement,
    center: u32,
    already_there: impl Fn(u32, u32) -> bool,
) -> MovePlan {
    let grid = table.grid();
    let mut bound_for = Paged::new(grid.quanta());
    let mut wanted_by = Paged::new(grid.slots());
    for Move { quantum, slot } in placement.moves() {
        bound_for.set(*quantum, slot + 1);
        wanted_by.set(*slot, quantum + 1);
    }
    let spare = table.vacant_slot(center, |slot| wanted_by.get(slot) == NOBODY);
    let mut wanted: Vec<u32> = placement.moves().iter().map(|each| each.slot).collect();
    wanted.sort_unstable_by_key(|slot| OrganPipeSlots::rank(center, grid.slots(), *slot));
    let mut planner =
        Planner { table, bound_for, wanted_by, spare, already_there, plan: MovePlan::default() };
    for slot in wanted {
        planner.resolve(slot);
    }
    planner.plan
}

const NOBODY: u32 = 0;

struct Planner<'a, Copied> {
    table: &'a RemapTable,
    /// The slot that each quantum moves to plus one; zero for those that stay.
    bound_for: Paged<u32>,
    /// The quantum that is bound for each slot from another one plus one, or `NOBODY`.
    wanted_by: Paged<u32>,
    spare: Option<u32>,
    already_there: Copied,
    plan: MovePlan,
}

impl<Copied: Fn(u32, u32) -> bool> Planner<'_, Copied> {
    /// Plans the chain or cycle through `slot`, unless nobody is bound for it (any more).
    fn resolve(&mut self, slot: u32) {
        if self.wanted_by.get(slot) == NOBODY {
            return;
        }
        // Follow the occupants to where they are bound: either a slot falls vacant, or we come
        // back.
        let mut end = slot;
        loop {
            let Some(occupant) = self.table.quantum_in(end) else {
                self.fill_backward(end);
                return;
            };
            end = self.target(occupant);
            if end == slot {
                self.turn_cycle(slot);
                return;
            }
        }
    }

    /// Where `quantum`, which lies in a slot that another is bound for, moves.
    fn target(&self, quantum: u32) -> u32 {
        let target = self.bound_for.get(quantum).checked_sub(1);
        target.expect("a verified placement gives away no slot whose quantum stays")
    }

    /// Fills the free `hole`, then the one this leaves, until nobody is bound for the hole.
    fn fill_backward(&mut self, mut hole: u32) {
        loop {
            let Some(quantum) = self.wanted_by.get(hole).checked_sub(1) else { return };
            self.wanted_by.set(hole, NOBODY);
            let from = self.table.slot_of(quantum);
            self.step(quantum, Place::Slot(from), hole);
            self.plan.moved_quanta += 1;
            hole = from;
        }
    }

    fn turn_cycle(&mut self, slot: u32) {
        let first = self.table.quantum_in(slot).expect("every slot of a cycle is occupied");
        let target = self.target(first);
        let aside = self.spare.map_or(Place::Buffer, Place::Slot);
        self.plan.steps.push(MoveStep {
            quantum: first,
            from: Place::Slot(slot),
            to: aside,
            already_there: false,
            completes: false,
        });
        self.wanted_by.set(target, NOBODY);
        let opened = self.plan.steps.len();
        self.fill_backward(slot);
        for step in &mut self.plan.steps[opened..] {
            step.completes = false;
        }
        self.step(first, aside, target);
        self.plan.moved_quanta += 1;
    }

    fn step(&mut self, quantum: u32, from: Place, to: u32) {
        self.plan.steps.push(MoveStep {
            quantum,
            from,
            to: Place::Slot(to),
            already_there: (self.already_there)(quantum, to),
            completes: true,
        });
    }
}
