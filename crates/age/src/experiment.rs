//! An experiment on a file system that ages: a workload is replayed onto a simulated file system,
//! which is then measured as it lies and by the benchmarks of the papers on a modelled device.
//!
//! ```toml
//! [workload]
//! kind = "smith-1996"       # or "none", or "file" with path =
//! [layout]
//! kind = "ffs"              # ffs | ffs+realloc | lfs
//! [device]
//! model = "seagate-st32430n"
//! [host]
//! machine = "pentium-120"
//! [measure]
//! sequential = ["16 KiB", "56 KiB", "1 MiB"]
//! hot = "30 d"
//! raw = true
//! [run]
//! seed = 1
//! ```

mod config;
mod run;

pub use config::{AgingExperiment, Experiment, Measure, WorkloadChoice};
pub use run::{AgingOutcome, run};

#[cfg(test)]
mod tests;
