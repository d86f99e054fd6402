//! The engine of a log-structured store: segments, their collection, and the policies that decide
//! about both.
//!
//! [`Log`] is the mechanism. It keeps which block lies where, turns writes into transfers of whole
//! or partial segments, and makes room by the means its policies choose: cleaning (copy the live
//! blocks of some segments to the end of the log), hole-plugging (copy them into the holes of other
//! segments) or threading (write new data into the holes of a segment). It knows no clock and no
//! disk: transfers go to a [`BlockDevice`], which may price them ([`CostMeter`]), time them on a
//! modelled disk, or carry them out.

mod adaptive;
mod age_order;
mod ages;
mod asked_victim;
mod block_device;
mod buffer;
mod buffers;
mod call;
mod changed_segments;
mod collection;
mod cost_meter;
mod counts;
mod deaths;
mod error;
pub mod free_places;
mod fullness;
mod log;
mod log_setting;
pub mod pending_discards;
pub mod policy;
mod preload;
mod reorganisation;
mod reorganisation_log;
mod restore;
mod segment_table;
mod shape;
mod thinning;
mod threading;
mod transfer_times;
mod utilization_order;
mod verify;
mod victim_index;
mod whole_syncs;

pub use adaptive::{AdaptiveLog, Outlook, ThoughtOver};
pub use ages::{Ages, CollectedOrder, SegmentAge};
pub use block_device::{BlockDevice, Purpose, Sources, Transfer, Unpriced};
pub use buffers::Waiting;
pub use call::Call;
pub use cost_meter::{CostMeter, Spent};
pub use counts::Counts;
pub use error::{LogError, ShapeError};
pub use log::Log;
pub use log_setting::{Header, LogSetting, Trigger, ZoneUse};
pub use preload::even_chunks;
pub use restore::{Kept, OpenSegment, RestoreError, SegmentTimes};
pub use shape::{LogShape, NONE, Zone};
pub use transfer_times::{Comes, Spread, TransferPrices, TransferTimes};
pub use victim_index::Victim;
