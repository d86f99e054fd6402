//! A disk whose power fails: what may be left of it, state by state.
//!
//! [`CrashDisk`] records a run. Between two flushes, in an *epoch*, a disk may have carried out any of
//! what it was asked, in parts; `scenario.rs` numbers what is looked at of that. Each such state is a
//! disk again ([`CrashState`]): extents over an image that all states of an epoch share, so that making
//! one copies no data.

mod image;
mod overlay;
mod recording;
mod scenario;
mod states;

pub use recording::{CrashDisk, Recording};
pub use states::{CrashState, CrashStates};

use agewell_core::SECTOR_BYTES;

use self::image::Source;

/// How sectors read that were discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Discarded {
    Untouched,
    Zeros,
    Garbage,
}

impl Discarded {
    const ALL: [Self; 3] = [Self::Untouched, Self::Zeros, Self::Garbage];

    /// What takes their place, if anything does.
    fn source(self) -> Option<Source> {
        match self {
            Self::Untouched => None,
            Self::Zeros => Some(Source::Zeros),
            Self::Garbage => Some(Source::Garbage),
        }
    }
}
