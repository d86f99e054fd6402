//! Dynamic reorganisation: deciding by what is read which blocks are laid side by side, and when.
//!
//! What is here is policy: it sees what is read, written and deleted and where blocks lie, and
//! answers with blocks to lay side by side. It moves nothing, knows no clock and no disk but a
//! [`CostModel`](agewell_log::policy::cost::CostModel). What it learns by and the rule of what pays are
//! in [`agewell_regrouping`], the mechanism in the log is [`Log::regroup`](agewell_log::Log::regroup),
//! and [`ReorganisingLog`](crate::reorganising_log::ReorganisingLog) joins them.
//!
//! ```text
//! read, write, delete -> groups (graph and partitions, or files) --.
//!                     `-> history (reads, moves, memory) -----------+-> decision -> blocks to move
//!                                        trust (what came true) ----'
//! ```
//!
//! Source: Matthews 1999, §6.4; the variants are those that §6.6 and §7.2.1 propose.

mod files;
mod groups;
mod history;
mod reorganiser;
mod setting;

pub use reorganiser::{ReorganisationCounts, Reorganiser};
pub use setting::{Decide, Related, ReorganiseSetting, When};
