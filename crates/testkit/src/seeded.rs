//! The tests tested: bugs that are put in on purpose, and whether those who look for bugs find them.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long it may take to find a bug.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

/// What `work` says; a panic is an error too.
///
/// # Errors
/// Those of `work`, and the words of a panic.
pub fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("of something else")))
    })
}

/// Puts each of `faults` in with `choose` and has `find` look for what is wrong: until when, who finds
/// it, and what it is. `FAULT` in the environment names the one to be looked for.
///
/// # Panics
/// If anything is found where nothing is wrong, if a bug is not found, or if `FAULT` names none.
#[allow(clippy::print_stderr, reason = "it says what was found, and by whom")]
#[allow(
    clippy::disallowed_methods,
    reason = "how long it takes is measured, and nothing else follows"
)]
pub fn every_fault_is_found<F: Copy + Debug>(
    faults: &[F],
    choose: fn(Option<F>),
    find: impl Fn(Instant) -> Option<(&'static str, String)>,
) {
    let only = std::env::var("FAULT").ok();
    let is_meant = |fault: &F| only.as_ref().is_none_or(|only| *only == format!("{fault:?}"));
    let faults: Vec<F> = faults.iter().copied().filter(is_meant).collect();
    assert!(!faults.is_empty(), "there is no fault {}", only.unwrap_or_default());
    // What goes wrong is said once.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let nothing_wrong = find(Instant::now());
    let mut missed = Vec::new();
    for fault in faults.iter().filter(|_| nothing_wrong.is_none()) {
        choose(Some(*fault));
        let begin = Instant::now();
        let found = find(begin + FOUND_WITHIN);
        choose(None);
        let took = begin.elapsed().as_secs_f64();
        if let Some((by, what)) = found {
            let line: String = what.lines().next().unwrap_or_default().chars().take(120).collect();
            eprintln!("{fault:?}: {took:.1} s, {by}: {line}");
        } else {
            eprintln!("{fault:?}: NOT FOUND in {took:.1} s");
            missed.push(*fault);
        }
    }
    std::panic::set_hook(hook);
    assert_eq!(nothing_wrong, None, "nothing is found where nothing is wrong");
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::time::Instant;

    use super::{caught, every_fault_is_found};

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    fn choose(fault: Option<u8>) {
        CHOSEN.store(fault.unwrap_or(0), Ordering::Relaxed);
    }

    /// One test, as the panic hook is the program's.
    #[test]
    fn a_fault_that_nobody_finds_fails_the_test() {
        let finds = |sought: &'static [u8]| {
            move |_: Instant| {
                let chosen = CHOSEN.load(Ordering::Relaxed);
                sought.contains(&chosen).then(|| ("someone", format!("{chosen}")))
            }
        };
        every_fault_is_found(&[1, 2], choose, finds(&[1, 2]));
        assert_eq!(CHOSEN.load(Ordering::Relaxed), 0);
        let told = |sought| {
            caught(|| {
                every_fault_is_found(&[1, 2], choose, finds(sought));
                Ok(())
            })
            .unwrap_err()
        };
        assert!(told(&[1]).contains("not found: [2]"));
        assert!(told(&[0]).contains("nothing is found where nothing is wrong"));
    }
}
