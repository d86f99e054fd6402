//! Calls into a library that may panic on a damaged file, and its messages on one line.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// One line of a library's message.
pub fn one_line(message: impl std::fmt::Display) -> String {
    message.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

thread_local! {
    /// Whether this thread is inside the Parquet library on behalf of `guarded`.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls into the Parquet library, which panics on some damaged files instead of returning an
/// error: such a panic becomes an error and prints nothing. Every other panic is reported as
/// before.
///
/// # Errors
/// The text of the panic, as one line.
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                before(info);
            }
        }));
    });
    INSIDE.set(true);
    // The reader is not used again after a panic, so nothing half-changed is ever seen.
    let result = catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(false);
    result.map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        format!("the data make no sense ({})", one_line(text.unwrap_or("no reason given")))
    })
}
