//! Accounts of a device's work for a host.

use agewell_core::{BlockRequest, Operation, SimDuration};

/// Requests of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// How many.
    pub requests: u64,
    /// Their sectors.
    pub sectors: u64,
    /// Time from issue to completion, together, ns.
    pub busy_ns: u64,
}

/// Work of a device, by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accounts {
    /// Reads.
    pub reads: Spent,
    /// Writes.
    pub writes: Spent,
}

impl Accounts {
    pub(crate) fn add(&mut self, request: &BlockRequest, busy: SimDuration) {
        let spent = match request.operation {
            Operation::Write => &mut self.writes,
            _ => &mut self.reads,
        };
        spent.requests += 1;
        spent.sectors += request.sectors.0;
        spent.busy_ns += busy.0;
    }

    /// Work since `before`, which is of the same device.
    #[must_use]
    pub fn since(&self, before: &Accounts) -> Accounts {
        let since = |now: Spent, before: Spent| Spent {
            requests: now.requests - before.requests,
            sectors: now.sectors - before.sectors,
            busy_ns: now.busy_ns - before.busy_ns,
        };
        Accounts {
            reads: since(self.reads, before.reads),
            writes: since(self.writes, before.writes),
        }
    }

    /// Time the device was busy, ns.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.reads.busy_ns + self.writes.busy_ns
    }
}
