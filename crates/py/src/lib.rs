//! The one extension module, `agewell._agewell`: thin glue between the crates and Python.
//!
//! Structured values cross as JSON text, bulk data as Parquet files; the Python package gives both
//! their shape.

#![allow(
    clippy::needless_pass_by_value,
    reason = "arguments from Python are made for the call and belong to it"
)]
#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of Python<'py> has one lifetime, where attach wants a function for any"
)]

mod age;
mod disk;
mod error;
mod interpreter;
#[cfg(not(target_os = "linux"))]
mod linux_only;
mod options;
mod policies;
mod probe;
mod quantities;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod reorganise;
mod sim;
mod store;
#[cfg(target_os = "linux")]
mod store_format;
#[cfg(target_os = "linux")]
mod store_grow;
mod store_replay;
mod tables;
mod trace;
mod waiting_replay;
#[cfg(target_os = "linux")]
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _agewell {
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::age::benchmark::bench_directory;

    #[pymodule_export]
    use crate::age::replay::{age_recipe, age_replay};

    #[pymodule_export]
    use crate::age::score::score_path;

    #[pymodule_export]
    use crate::age::snapshot::{snapshot_check, snapshot_take};

    #[pymodule_export]
    use crate::disk::{device_import, device_list, device_load, validate_device};

    #[pymodule_export]
    use crate::error::{AgewellError, InputError, RunError};

    #[cfg(not(target_os = "linux"))]
    #[pymodule_export]
    use crate::linux_only::{
        bench_directory, record, record_recover, reorganise_path, store_format, store_grow,
        store_lengthen, watch_path,
    };

    #[pymodule_export]
    use crate::policies::{BlocksView, FreePlacesView, SegmentsView};

    #[pymodule_export]
    use crate::probe::probe_disk;

    #[pymodule_export]
    use crate::quantities::{duration, rate};

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::record::{record, record_recover};

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::reorganise::reorganise_path;

    #[pymodule_export]
    use crate::sim::{configuration_reference, resolve_experiment, run_experiment};

    #[pymodule_export]
    use crate::store::{store_check, store_salvage};

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::store_format::store_format;

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::store_grow::{store_grow, store_lengthen};

    #[pymodule_export]
    use crate::store_replay::store_replay;

    #[pymodule_export]
    use crate::tables::{check_parquet, with_checksums};

    #[pymodule_export]
    use crate::trace::{trace_convert, trace_formats, trace_head, trace_info};

    #[pymodule_export]
    use crate::waiting_replay::replay_recording;

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::watch::watch_path;

    #[pymodule_export]
    use crate::age::workload::{workload_info, workload_make};

    #[pymodule_export]
    use super::{build, sha256, version};
}

/// What distinguishes this build from others of the same version: a hash of the sources that results are
/// computed from (`build.rs`).
#[pyfunction]
fn build() -> &'static str {
    env!("AGEWELL_BUILD")
}

/// The SHA-256 of `data`, in hexadecimal. Python's own loads OpenSSL, which takes a tenth of the time of
/// a command that computes little.
#[pyfunction]
fn sha256(data: &[u8]) -> String {
    agewell_sim::result::sha256_of(data)
}

/// The version of agewell, as in the workspace's Cargo.toml.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
