//! The file system against a plain model: random operations, damage, crashes at every moment.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]
#![allow(
    clippy::disallowed_methods,
    reason = "how long it takes is measured, and nothing else follows"
)]

mod compare;
mod load;
mod model;
mod operations;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` says; a panic is an error too.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("of something else")))
    })
}
