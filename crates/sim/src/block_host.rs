//! Runs of a layout of blocks: file requests through the host's caches into a layout, whose transfers
//! a disk prices or times.

mod calibration;
pub mod config;
mod disk;
mod file_blocks;
mod file_trace;
mod flushes;
mod host;
mod in_place_setup;
mod kept_requests;
mod log_run;
mod log_setup;
mod metrics;
#[cfg(test)]
mod one_by_one;
mod oracle;
mod placement;
mod prepared;
mod read_ahead;
mod run;
mod series;
mod single_reads;
mod together;
mod updates;
mod workload;
mod zones;

pub use config::{LayoutExperiment, WorkloadTable};
pub(crate) use run::run;
pub(crate) use series::{LogSeries, ThroughputSeries};
