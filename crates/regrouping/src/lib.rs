//! What is read together, and whether it pays to put it together.
//!
//! Policy only, of plain values: it sees what is read and where that lies, and answers whether a group
//! is worth being laid side by side. It moves nothing, knows no clock and no disk but a
//! [`CostModel`](agewell_log::policy::cost::CostModel). One rule for the blocks of a simulated log, the
//! files of a mounted file system, and the pieces of files of our own.
//!
//! ```text
//! reads -> RelatedBlocks (access graph, partitions) --.
//!      `-> ReadTimes (what steps take) ----------------+-> Proposal -> is_moved
//!          Trust (what came true) ---------------------'
//! the same of files: ReadHistory -> choose
//! ```
//!
//! Source: Matthews 1999, §6.4; the decision by gain is ours, as §6.5.1.1 proposes.

mod access_graph;
mod choice;
mod decision;
mod member_places;
mod partitions;
mod place_view;
mod read_history;
mod read_times;
mod related;
mod savings;
mod trust;

pub use access_graph::{AccessGraph, EDGES, Edge, Recorded};
pub use choice::{Choice, Considered, Group, choose};
pub use decision::{Proposal, RoomMade, VALUE_MIN, is_moved, patch_pays, room_ns};
pub use member_places::{MemberPlaces, MemberView, place_sum, run_slots};
pub use partitions::Partitions;
pub use place_view::{PlaceView, StepView};
pub use read_history::{Known, MemberKey, Part, ReadHistory, Request, Run, Totals};
pub use read_times::ReadTimes;
pub use related::RelatedBlocks;
pub use savings::{Steps, savings_ns};
pub use trust::Trust;
