//! Disk shuffling: observations of where requests go in, a placement and the moves that reach it
//! out.
//!
//! The crate is pure. It holds no clock, does no I/O and knows neither traces nor disks: times,
//! addresses and the shape of the drive are arguments, placements and lists of moves are results.
//! The simulator is its first user; a device driver is meant to be able to use the same code
//! unchanged.
//!
//! * [`QuantumGrid`] divides the device into quanta of equal size ([`QuantumKind`]);
//! * [`Observation`] counts accesses a quantum and interval, ages the counts, and follows links;
//! * [`choose`] is the policy: from a read-only [`ShuffleView`] to a [`Placement`];
//! * [`plan_moves`] turns two placements into copies that keep a valid copy of everything;
//! * [`RemapTable`] says where a logical sector lies now;
//! * [`Shuffler`] wires them together for one device.
//!
//! Source: Ruemmler & Wilkes, *Disk Shuffling*, HPL-91-156, October 1991, §5. What the report
//! leaves open and what we chose is said in the header of each module and in
//! `docs/concepts/shuffling.md`.

mod closure;
mod config;
mod links;
mod moves;
mod observation;
mod paged;
mod placement;
mod policy;
mod quantum;
mod remap;
mod reserved;
mod shuffler;

pub use config::{MoveMode, RemapKind, ShuffleConfig, ShuffleTable};
pub use links::LinkTable;
pub use moves::{MoveCost, MovePlan, MoveRequest, MoveStep, Place, plan_moves};
pub use observation::{AGED_ONE, Aging, Observation};
pub use placement::{Move, OrganPipeSlots, Placement};
pub use policy::{PolicyConfig, ShuffleView, choose};
pub use quantum::{DriveShape, QuantumGrid, QuantumKind};
pub use remap::{Piece, Pieces, RemapTable};
pub use reserved::ReservedRegion;
pub use shuffler::{Rearrangement, ShuffleSetting, Shuffler};

/// Why a shuffling configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShuffleError {
    /// The device holds less than two quanta, so there is nothing to arrange.
    #[error(
        "[remap]: {sectors} sectors from sector {first_sector} on hold {quanta} quanta of \
         {quantum_sectors} sectors; at least 2 are needed: choose a smaller quantum"
    )]
    TooFewQuanta {
        /// First sector of the grid.
        first_sector: u64,
        /// Sectors that can be divided.
        sectors: u64,
        /// Size of a quantum in sectors.
        quantum_sectors: u64,
        /// How many fit.
        quanta: u64,
    },
    /// More quanta than a 32-bit index can name.
    #[error(
        "[remap]: {quanta} quanta are more than the {limit} supported: choose a larger quantum"
    )]
    TooManyQuanta {
        /// How many there would be.
        quanta: u64,
        /// The most that fit.
        limit: u64,
    },
    /// Every quantum is to be placed, accessed or not, and they are too many to keep a plan of.
    #[error(
        "[remap]: {quanta} quanta are more than the {limit} that can all be placed: choose a \
         larger quantum, or place accessed ones only (kind = \"shuffle\", arrange_unaccessed = \
         false)"
    )]
    TooManyToPlace {
        /// How many there are.
        quanta: u32,
        /// The most that can be placed.
        limit: u32,
    },
    /// The logical device is larger than the device it is to lie on.
    #[error("[remap]: logical_size is {logical} sectors but the device has only {capacity}")]
    LogicalBeyondDevice {
        /// Logical size in sectors.
        logical: u64,
        /// Device size in sectors.
        capacity: u64,
    },
    /// Block copying needs room that the workload does not leave.
    #[error(
        "[remap]: a reserved region of {reserved} quanta does not fit beside {quanta} addressed \
         quanta on {slots}; set logical_size, lower reserved, or use kind = \"reserved-exchange\""
    )]
    NoRoomForReserve {
        /// Quanta of the region.
        reserved: u32,
        /// Addressed quanta.
        quanta: u32,
        /// Quanta that the device holds.
        slots: u32,
    },
}
