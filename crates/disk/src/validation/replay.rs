//! Plays a measured trace through a device, on either time base.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use serde::{Deserialize, Serialize};

use crate::Device;

/// A trace with measured response times, as columns of the same length, in order of issue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// When each request was issued, ns.
    pub issue_ns: Vec<u64>,
    /// When it finished, ns.
    pub finish_ns: Vec<u64>,
    /// First sector (512 bytes).
    pub sector: Vec<u64>,
    /// Sectors.
    pub sectors: Vec<u32>,
    /// [`Operation`] as its code.
    pub operation: Vec<u8>,
}

/// Which clock carries the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeBase {
    /// Each request is issued its measured think time after the one before finished in the simulation (DiskSim).
    Closed,
    /// Each request is issued when it was.
    Trace,
}

impl Measured {
    /// Number of requests.
    pub fn len(&self) -> usize {
        self.sector.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sector.is_empty()
    }

    /// Whether each request was issued after the one before it had finished.
    pub fn is_serial(&self) -> bool {
        let issued_next = self.issue_ns.iter().skip(1);
        issued_next.zip(&self.finish_ns).all(|(issue, finish)| issue >= finish)
    }

    /// Measured response time of request `index`, ns.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn response_ns(&self, index: usize) -> u64 {
        self.finish_ns[index].saturating_sub(self.issue_ns[index])
    }

    /// The same requests in order of issue; requests issued at the same time keep their order.
    #[must_use]
    pub fn sorted_by_issue(self) -> Self {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|index| self.issue_ns[*index]);
        Self {
            issue_ns: order.iter().map(|index| self.issue_ns[*index]).collect(),
            finish_ns: order.iter().map(|index| self.finish_ns[*index]).collect(),
            sector: order.iter().map(|index| self.sector[*index]).collect(),
            sectors: order.iter().map(|index| self.sectors[*index]).collect(),
            operation: order.iter().map(|index| self.operation[*index]).collect(),
        }
    }

    /// Request `index`.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn request(&self, index: usize) -> BlockRequest {
        BlockRequest {
            enqueue: SimTime(self.issue_ns[index]),
            sector: Sector(self.sector[index]),
            sectors: SectorCount(u64::from(self.sectors[index])),
            operation: Operation::from_code(self.operation[index])
                .expect("the columns hold codes of operations"),
            synchronous: true,
        }
    }
}

/// The caller wants no more: what it gave as `go_on` has answered false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Requests between two questions whether to go on: some milliseconds.
const ASKED_EVERY: usize = 1 << 16;

/// Simulated response time of every request, ns. `go_on` is asked now and then.
///
/// # Errors
/// If it answers false.
pub fn replay(
    device: &mut impl Device,
    measured: &Measured,
    base: TimeBase,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<u64>, Stopped> {
    let classified = replay_classified(device, measured, base, measured.len(), go_on)?;
    Ok(classified.into_iter().map(|(response, _)| response).collect())
}

/// Simulated response time (ns) of the first `count` requests, and whether the buffer served them.
/// `go_on` is asked now and then.
///
/// # Errors
/// If it answers false.
pub fn replay_classified(
    device: &mut impl Device,
    measured: &Measured,
    base: TimeBase,
    count: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<(u64, bool)>, Stopped> {
    let mut responses = Vec::with_capacity(count);
    let mut finished = 0;
    let mut closed_issue = measured.issue_ns.first().copied().unwrap_or(0);
    for index in 0..count {
        if index % ASKED_EVERY == 0 && !go_on() {
            return Err(Stopped);
        }
        let request = measured.request(index);
        let wanted = match base {
            TimeBase::Closed => closed_issue,
            TimeBase::Trace => measured.issue_ns[index],
        };
        // A request that was issued before the simulated one before it is done waits at the device.
        let issue = wanted.max(finished);
        let service = device.serve(SimTime(issue), &request);
        finished = service.finish.0;
        responses.push((finished - wanted, service.buffer_hit));
        if index + 1 < count {
            let think = measured.issue_ns[index + 1].saturating_sub(measured.finish_ns[index]);
            closed_issue = finished + think;
        }
    }
    Ok(responses)
}
