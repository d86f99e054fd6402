//! Dynamic reorganisation: learning from reads which blocks belong together, and deciding when
//! writing them together pays.
//!
//! What is here is policy: it sees what is read, written and deleted and where blocks lie, and
//! answers with blocks to lay side by side. It moves nothing, knows no clock and no disk but a
//! [`CostModel`](agewell_log::policy::cost::CostModel). The mechanism in the log is
//! [`Log::regroup`](agewell_log::Log::regroup), and
//! [`ReorganisingLog`](agewell_log::ReorganisingLog) joins the two.
//!
//! ```text
//! read, write, delete -> groups (graph and partitions, or files) --.
//!                     `-> history (reads, moves, memory) -----------+-> decision -> blocks to move
//!                                        trust (what came true) ----'
//! ```
//!
//! Source: Matthews 1999, §6.4; the variants are those that §6.6 and §7.2.1 propose.

mod access_graph;
mod decision;
mod files;
mod groups;
mod history;
mod partitions;
mod place_view;
mod read_times;
mod related;
mod reorganiser;
mod savings;
mod setting;
mod trust;

pub use access_graph::{AccessGraph, EDGES, Edge, Recorded};
pub use decision::{Proposal, RoomMade, VALUE_MIN, is_moved, patch_pays, room_ns};
pub use partitions::Partitions;
pub use place_view::{PlaceView, StepView};
pub use read_times::ReadTimes;
pub use related::RelatedBlocks;
pub use reorganiser::{ReorganisationCounts, Reorganiser};
pub use savings::{Steps, savings_ns};
pub use setting::{Decide, Related, ReorganiseSetting, When};
pub use trust::Trust;
