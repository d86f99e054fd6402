//! What runs on Linux only, on other systems: the same functions, each of which says so in one line.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error;

/// Functions by the name they have on Linux, and what each would do.
macro_rules! linux_only {
    ($($name:ident: $does:literal;)*) => {
        $(
            #[doc = concat!("Refuses: ", $does, " needs Linux.")]
            #[pyfunction]
            #[pyo3(signature = (*_arguments, **_options))]
            pub(crate) fn $name(
                _arguments: &Bound<'_, PyTuple>,
                _options: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<String> {
                Err(error::input(format!(
                    "{} needs Linux, and this is {}; run it there",
                    $does,
                    std::env::consts::OS
                )))
            }
        )*
    };
}

linux_only! {
    bench_directory: "measuring a mounted file system";
    record: "recording a disk";
    record_recover: "recovering a recording";
    reorganise_path: "reorganising a mounted file system";
    store_format: "making a store";
    store_grow: "having a store grow";
    store_lengthen: "having a store grow";
    watch_path: "keeping a mounted file system in shape";
}
