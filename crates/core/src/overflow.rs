//! Arithmetic that leaves 64 bits, as an error of whoever gave the numbers.
//!
//! Simulated time is a count of nanoseconds that ends after 584 years, and the loops that add to it
//! have no way to return an error. Overflow checks are on in every build, so absurd values end in a
//! panic wherever they meet; [`within_64_bits`] makes one line of it that names the place. Every
//! other panic is a bug of ours and goes on as it was.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread is within [`within_64_bits`].
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Where its last overflow was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A number that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overflow {
    /// Where in the source.
    pub place: String,
}

impl std::fmt::Display for Overflow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "a time, size or count passes what 64 bits hold (584 years in nanoseconds; {}); use \
             values that a machine can have",
            self.place
        )
    }
}

/// What the compiler's checks of `+`, `-`, `*`, `<<` and the like say.
fn is_overflow(payload: &(dyn std::any::Any + Send)) -> bool {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.is_some_and(|text| text.starts_with("attempt to ") && text.ends_with(" with overflow"))
}

/// Does `work`; an overflow on this thread is an error and prints nothing.
///
/// # Errors
/// If a number left its bits.
///
/// # Panics
/// If `work` does for another reason.
pub fn within_64_bits<T>(work: impl FnOnce() -> T) -> Result<T, Overflow> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if INSIDE.get() && is_overflow(info.payload()) {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                PLACE.set(place);
            } else {
                before(info);
            }
        }));
    });
    let outside = INSIDE.replace(true);
    // What `work` leaves half done is dropped with the error.
    let result = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(outside);
    result.map_err(|panic| {
        if !is_overflow(&*panic) {
            resume_unwind(panic);
        }
        Overflow { place: PLACE.take() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_is_an_error_that_names_its_place() {
        let most = std::hint::black_box(u64::MAX);
        assert_eq!(within_64_bits(|| most / 2), Ok(u64::MAX / 2));
        let overflow = within_64_bits(|| most + 1).expect_err("it does not fit");
        assert!(overflow.place.contains("overflow.rs"), "{overflow}");
        assert!(!overflow.to_string().contains('\n'));
    }

    #[test]
    #[should_panic(expected = "our own bug")]
    fn another_panic_goes_on() {
        let _never = within_64_bits(|| -> u64 { panic!("our own bug") });
    }
}
