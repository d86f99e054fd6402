//! Units, times, operations and named random streams shared by every agewell crate.
//!
//! This crate depends on no other crate of the workspace and knows nothing of traces, disks or
//! layouts. Every quantity that crosses a crate boundary is a type of its own here, so that a
//! sector number can never be taken for a byte count or a duration for an instant.

mod address;
mod daily_window;
mod file_request;
mod overflow;
mod quantity;
mod random;
mod request;
mod suggest;
mod text_file;
mod time;

pub use address::{SECTOR_BYTES, Sector, SectorCount};
pub use daily_window::{DAY_NS, DailyWindow, DailyWindowError};
pub use file_request::{FileAction, FileRequest};
pub use overflow::{Overflow, within_64_bits};
pub use quantity::{
    QuantityError, parse_bytes, parse_bytes_per_second, parse_duration, parse_duration_ns,
};
pub use random::{RandomStreams, Stream, chance, mix, uniform_below};
pub use request::{BlockRequest, Operation};
pub use suggest::{nearest, unknown_key_message};
pub use text_file::{TEXT_BYTES_MAX, read_bounded, read_text};
pub use time::{SimDuration, SimTime};
