//! Experiments, read strictly: one table a box of the flow, each key declared once (`agewell_config`),
//! every default visible in what an experiment resolves to.
//!
//! [`ExperimentKind`] says which of the three kinds of experiment a configuration is;
//! [`RequestExperiment`] is the one of block requests, [`LayoutExperiment`] that of file requests on
//! a layout of blocks.

pub mod device;
mod host;
pub mod kind;
pub mod layout;
mod layout_experiment;
mod remap;
mod request_experiment;
mod tables;
mod workload;

pub use agewell_config::{ConfigError, Table, read_table};
pub use device::{DeviceChoice, SimpleTable};
pub use host::{BufferSize, Host, IdleCleaning};
pub use kind::ExperimentKind;
pub use layout_experiment::{LayoutExperiment, LayoutRun, PolicyNames};
pub use remap::RemapSetup;
pub use request_experiment::{
    BeyondCapacity, DISKS_MAX, PoissonWorkload, QueueTable, Replay, RequestExperiment, RunOptions,
    TraceFile, TraceReplay, TraceWorkload, Workload,
};
pub use tables::Tables;
pub use workload::{FileTraceTable, FileWorkloadKind, Preallocated, WorkloadTable};
