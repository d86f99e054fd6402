//! Runs of a log-structured layout: file requests through the host's caches and write buffers into
//! a log, whose transfers a disk prices or times.

pub mod config;
mod disk;
mod file_blocks;
mod host;
mod metrics;
mod oracle;
mod placement;
mod prepared;
mod run;
mod series;
mod workload;

pub use config::LogExperiment;
pub(crate) use run::run;
pub(crate) use series::LogSeries;
