//! Lays the files of a mounted file system where they are read: what is read together lies together.
//!
//! ```text
//! Snapshot, order --> plan --> arranger --> mechanism --> the file system
//!          order      what,    which file   ext4, dedupe
//!                     saving   goes where
//! ```
//!
//! `order` says in which order files are read, and which of them in parts that are laid apart; `plan`
//! which of them are moved, what that costs and saves; the `arranger` chooses places among what is
//! free, and is the same code in a plan and when it is carried out. These are functions of values and
//! touch no file. A `mechanism` takes hold of free space and has one file after another lie there,
//! through calls by which the kernel keeps the contents; `carry_out` drives it. `watch` does all of
//! that again and again, with an order that it learns from recorded requests, where its history says
//! that it pays.
//!
//! Invariants: contents, sizes and times of files never change; a file is moved only if it is still
//! what the plan saw; free space is held by a file without a name, which ends with the process.

#![cfg(target_os = "linux")]

mod arranger;
mod budget;
mod carry_out;
mod file_system;
mod gain;
mod kernel;
mod mechanism;
mod new_chunks;
mod order;
mod pace;
mod parted;
mod path_text;
mod plan;
mod plan_file;
mod planned_file;
mod read_time;
mod room;
mod runs;
mod skip;
mod volume;
mod watch;

pub use arranger::{Arranger, Limits, Move, Piece};
pub use carry_out::{Done, Progress, Step, carry_out};
pub use file_system::FileSystem;
pub use order::{
    ByteRange, ChosenOrder, FileRead, FileReads, InParts, Order, Part, RecordedOrder, RecordedRead,
    by_recording, read_order,
};
pub use pace::Pace;
pub use parted::PartedFiles;
pub use plan::{Plan, PlanOptions, Saving, Work, plan};
pub use plan_file::{read_plan, write_plan};
pub use planned_file::PlannedFile;
pub use read_time::{ReadTime, cold_read};
pub use room::Room;
pub use runs::Runs;
pub use skip::{Skip, SkipCounts};
pub use volume::Volume;
pub use watch::{Considered, Outcome, Round, Tell, Told, WatchOptions, watch};
