//! What times the transfers of a layout: a cost model, or the model of a drive.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::{Device, DeviceModel};
use agewell_log::Purpose;
use agewell_log::policy::cost::CostModel;

/// What times transfers.
#[derive(Clone)]
pub(super) enum Timing {
    Simple { read: CostModel, write: CostModel },
    Mechanical(Box<DeviceModel>),
}

/// What a drive is asked to do for `purpose`.
pub(super) fn operation_of(purpose: Purpose) -> Operation {
    match purpose {
        Purpose::Discard => Operation::Discard,
        purpose if purpose.writes() => Operation::Write,
        _ => Operation::Read,
    }
}

/// A request for `sectors` sectors from `sector` on, issued at `issue_ns`.
pub(super) fn request(
    issue_ns: u64,
    sector: u64,
    sectors: u64,
    operation: Operation,
) -> BlockRequest {
    BlockRequest {
        enqueue: SimTime(issue_ns),
        sector: Sector(sector),
        sectors: SectorCount(sectors),
        operation,
        synchronous: true,
    }
}

/// Has `device` serve a request at `now_ns`; how long it takes.
pub(crate) fn serve(
    device: &mut DeviceModel,
    now_ns: u64,
    sector: u64,
    sectors: u64,
    operation: Operation,
) -> u64 {
    let request = request(now_ns, sector, sectors, operation);
    device.serve(SimTime(now_ns), &request).finish.0 - now_ns
}
