//! The tests tested: bugs that are put in on purpose, and whether those who look for bugs find them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;

/// Rounds in which a bug must be found; chosen by us. Not a time: on a busy machine as much is looked at.
const ROUNDS: u64 = 120;

/// A look at something, by name, that says what is wrong.
pub struct Look {
    who: &'static str,
    look: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Look {
    /// The look of `who`.
    pub fn new(
        who: &'static str,
        look: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { who, look: Box::new(look) }
    }

    /// What is wrong, if anything is; a panic is.
    fn wrong(&self) -> Option<String> {
        caught(&self.look).err()
    }
}

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

/// The first line of what is written down.
const HEADING: &str =
    "# A fault, and the round and the number of the look that found it; ACCEPT=1 writes it.\n";

/// A look by its round and its number in it.
type Place = (u64, usize);

/// Where each fault was found before, by name: lines of a name, a round and a number.
fn found_before(text: &str) -> BTreeMap<String, Place> {
    let place = |line: &str| {
        let mut words = line.split_whitespace();
        let fault = words.next()?.to_owned();
        Some((fault, (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
    };
    text.lines().filter_map(place).collect()
}

/// Puts each of `faults` in with `choose` and looks, round by round, until what is wrong is found; what finds it
/// must not find anything without the fault. A round looks at other cases than those before.
///
/// The look that found a fault before is taken first: `path` names it, and is only where to begin. With `ACCEPT`
/// in the environment all are looked for and it is written again; `FAULT` names the one to be looked for.
///
/// # Panics
/// If a bug is not found, if what finds it does so where nothing is wrong, or if `FAULT` names none.
#[allow(clippy::print_stderr, reason = "it says what was found, and by whom")]
#[allow(
    clippy::disallowed_methods,
    reason = "how long it takes is measured, and nothing else follows"
)]
pub fn every_fault_is_found<F: Copy + Debug>(
    faults: &[F],
    choose: fn(Option<F>),
    looks: impl Fn(u64) -> Vec<Look>,
    path: &Path,
) {
    let only = std::env::var("FAULT").ok();
    let is_meant = |fault: &F| only.as_ref().is_none_or(|only| *only == format!("{fault:?}"));
    let faults: Vec<F> = faults.iter().copied().filter(is_meant).collect();
    assert!(!faults.is_empty(), "there is no fault {}", only.unwrap_or_default());
    let accepts = std::env::var_os("ACCEPT").is_some();
    let mut before = found_before(&std::fs::read_to_string(path).unwrap_or_default());
    // What goes wrong is said once.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (mut missed, mut wrong_without) = (Vec::new(), Vec::new());
    for fault in faults {
        let name = format!("{fault:?}");
        choose(Some(fault));
        let begin = Instant::now();
        let known = before.get(&name).filter(|_| !accepts).and_then(|&(round, number)| {
            let look = looks(round).into_iter().nth(number)?;
            look.wrong().map(|what| ((round, number), look, what))
        });
        let found = known.or_else(|| (0..ROUNDS).find_map(|round| find(round, looks(round))));
        choose(None);
        let took = begin.elapsed().as_secs_f64();
        let Some((place, look, what)) = found else {
            eprintln!("{name}: NOT FOUND in {took:.1} s");
            missed.push(name);
            continue;
        };
        let line: String = what.lines().next().unwrap_or_default().chars().take(120).collect();
        eprintln!("{name}: {took:.1} s, round {}, {}: {line}", place.0, look.who);
        if let Some(what) = look.wrong() {
            wrong_without.push(format!("{}: {what}", look.who));
        }
        before.insert(name, place);
    }
    std::panic::set_hook(hook);
    assert_eq!(wrong_without, <[String; 0]>::default(), "nothing is found where nothing is wrong");
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
    if accepts {
        let line = |(name, (round, number)): (String, Place)| format!("{name} {round} {number}\n");
        let lines: String = before.into_iter().map(line).collect();
        std::fs::write(path, format!("{HEADING}{lines}")).expect("the file can be written");
    }
}

/// The look of a round that finds what is wrong.
fn find(round: u64, looks: Vec<Look>) -> Option<(Place, Look, String)> {
    let looks = looks.into_par_iter().enumerate().with_max_len(1);
    looks.find_map_any(|(number, look)| look.wrong().map(|what| ((round, number), look, what)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::{Look, caught, every_fault_is_found};

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    fn choose(fault: Option<u8>) {
        CHOSEN.store(fault.unwrap_or(0), Ordering::Relaxed);
    }

    /// One test, as the panic hook is the program's.
    #[test]
    fn a_fault_that_nobody_finds_fails_the_test() {
        // Each is found by a look of its own, in the round of its number.
        let finds = |sought: &'static [u8]| {
            move |round: u64| {
                let look = move |&fault: &u8| {
                    Look::new("someone", move || {
                        let chosen = CHOSEN.load(Ordering::Relaxed);
                        let is_found = chosen == fault && u64::from(chosen) <= round;
                        if is_found { Err(format!("{chosen}")) } else { Ok(()) }
                    })
                };
                sought.iter().map(look).collect()
            }
        };
        every_fault_is_found(&[1, 2], choose, finds(&[1, 2]), Path::new("absent"));
        assert_eq!(CHOSEN.load(Ordering::Relaxed), 0);
        let told = |sought| {
            caught(|| {
                every_fault_is_found(&[1, 2], choose, finds(sought), Path::new("absent"));
                Ok(())
            })
            .unwrap_err()
        };
        assert!(told(&[1]).contains("not found: 2"));
        // Where it was found before is only where to begin.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("found.txt");
        std::fs::write(&path, "1 1 0\n2 0 0\nno line\n").unwrap();
        every_fault_is_found(&[1, 2], choose, finds(&[1, 2]), &path);
        let always = |_: u64| vec![Look::new("someone", || Err("always".to_owned()))];
        let said = caught(|| {
            every_fault_is_found(&[1], choose, always, Path::new("absent"));
            Ok(())
        });
        assert!(said.unwrap_err().contains("nothing is found where nothing is wrong"));
    }
}
