//! The queue between host and device: which waiting request is served next.
//!
//! | discipline | next request | source |
//! |---|---|---|
//! | FCFS | the one that came first | |
//! | SSTF | the one fewest cylinders away | Oney 1975 |
//! | SCAN | the nearest one ahead; the arm turns round when none is ahead | Coffman & Hofri 1980 |
//! | C-SCAN | the nearest one at or above the arm, else the lowest | Ruemmler & Wilkes 1991, §4.3 |
//! | C-LOOK | the next higher address, else the lowest address | Worthington, Ganger & Patt 1994 |
//! | SPTF | the one whose data the heads reach first | Seltzer, Chen & Ousterhout 1990; Jacobson & Wilkes 1991 |
//!
//! C-SCAN is the algorithm of the HP-UX drivers: it sweeps across the cylinders from zero upwards, serving all
//! requests that do not require it to change direction, then (logically) makes one long seek back and starts afresh.
//! On the hplajw trace of 1992 it names the request that the real driver chose in 95 % of the choices among several.
//! It knows cylinders only; requests to one cylinder leave in order of arrival. C-LOOK sweeps the same way but sorts by
//! address within the cylinder too, from the end of the request it handed out last.
//!
//! Differences from the sources: the arm never travels beyond the outermost waiting request, because a queue can only
//! choose among requests (so SCAN here is what some authors call LOOK); and the starvation guards of the real HP-UX
//! driver are left out, as in the report (footnote 2).
//!
//! **Starvation.** FCFS never starves a request. A sweep (SCAN, C-SCAN, C-LOOK) reaches every request within two
//! passes, unless new requests keep arriving at the cylinder under the arm (C-LOOK: just ahead of it). SSTF and SPTF
//! may hold a request back without bound while nearer ones arrive. None of them looks at [`BlockRequest::synchronous`].
//!
//! Invariants: every entry pushed is popped exactly once; of equal claims the lower sequence number
//! wins, so the order never depends on how the entries are stored. Sequence numbers must be unique.
//! A queue orders data transfers; it gives no barrier around a flush, which its owner must hold
//! back itself.

mod arrival;
mod cylinder_index;
mod nearest;
mod sweep;

use agewell_core::{BlockRequest, SimTime};

use crate::device::Device;
use arrival::ArrivalOrder;
use nearest::{NearestCylinder, NearestPosition};
use sweep::{SweepByAddress, SweepByCylinder, TwoWaySweep};

/// Which rule picks the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Discipline {
    /// First come, first served.
    Fcfs,
    /// Shortest seek first, in cylinders.
    Sstf,
    /// Up and down across the cylinders.
    Scan,
    /// Upwards only, by cylinder: the HP-UX driver of Ruemmler & Wilkes 1991, §4.3.
    CScan,
    /// Upwards only, by address.
    CLook,
    /// Shortest positioning time (seek and rotation) first.
    Sptf,
}

impl Discipline {
    /// Every discipline.
    pub const ALL: [Discipline; 6] = [
        Discipline::Fcfs,
        Discipline::Sstf,
        Discipline::Scan,
        Discipline::CScan,
        Discipline::CLook,
        Discipline::Sptf,
    ];

    /// The name in configuration files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Discipline::Fcfs => "fcfs",
            Discipline::Sstf => "sstf",
            Discipline::Scan => "scan",
            Discipline::CScan => "c-scan",
            Discipline::CLook => "c-look",
            Discipline::Sptf => "sptf",
        }
    }

    /// The discipline called `name`, if there is one.
    pub fn from_name(name: &str) -> Option<Discipline> {
        Self::ALL.into_iter().find(|discipline| discipline.name() == name)
    }
}

/// One waiting request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEntry {
    /// Order of arrival; unique within a queue.
    pub sequence: u64,
    /// The cylinder of the request's first sector on the device that the queue feeds.
    pub cylinder: u32,
    /// The request.
    pub request: BlockRequest,
}

/// Waiting requests and the rule that picks the next one.
///
/// Memory grows to the longest queue seen (and, for the disciplines that sort by cylinder, to the highest cylinder);
/// after that no operation allocates.
#[derive(Debug, Clone)]
pub struct Queue {
    discipline: Discipline,
    order: Order,
}

#[derive(Debug, Clone)]
enum Order {
    Arrival(ArrivalOrder),
    NearestCylinder(NearestCylinder),
    TwoWay(TwoWaySweep),
    ByCylinder(SweepByCylinder),
    ByAddress(SweepByAddress),
    NearestPosition(NearestPosition),
}

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new(discipline: Discipline) -> Self {
        let order = match discipline {
            Discipline::Fcfs => Order::Arrival(ArrivalOrder::default()),
            Discipline::Sstf => Order::NearestCylinder(NearestCylinder::default()),
            Discipline::Scan => Order::TwoWay(TwoWaySweep::default()),
            Discipline::CScan => Order::ByCylinder(SweepByCylinder::default()),
            Discipline::CLook => Order::ByAddress(SweepByAddress::default()),
            Discipline::Sptf => Order::NearestPosition(NearestPosition::default()),
        };
        Self { discipline, order }
    }

    /// The rule this queue follows.
    pub fn discipline(&self) -> Discipline {
        self.discipline
    }

    /// Adds a request. Entries usually arrive in order of `sequence`; others are put in their place at a cost.
    pub fn push(&mut self, entry: QueueEntry) {
        match &mut self.order {
            Order::Arrival(order) => order.push(entry),
            Order::NearestCylinder(order) => order.push(entry),
            Order::TwoWay(order) => order.push(entry),
            Order::ByCylinder(order) => order.push(entry),
            Order::ByAddress(order) => order.push(entry),
            Order::NearestPosition(order) => order.push(entry),
        }
    }

    /// Takes the request to serve next, if `device` were free at `now`; `None` if nothing waits.
    pub fn pop(&mut self, now: SimTime, device: &impl Device) -> Option<QueueEntry> {
        match &mut self.order {
            Order::Arrival(order) => order.pop(),
            Order::NearestCylinder(order) => order.pop(device.current_cylinder()),
            Order::TwoWay(order) => order.pop(device.current_cylinder()),
            Order::ByCylinder(order) => order.pop(device.current_cylinder()),
            Order::ByAddress(order) => order.pop(),
            Order::NearestPosition(order) => order.pop(now, device),
        }
    }

    /// Number of waiting requests.
    pub fn len(&self) -> usize {
        match &self.order {
            Order::Arrival(order) => order.len(),
            Order::NearestCylinder(order) => order.len(),
            Order::TwoWay(order) => order.len(),
            Order::ByCylinder(order) => order.len(),
            Order::ByAddress(order) => order.len(),
            Order::NearestPosition(order) => order.len(),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
