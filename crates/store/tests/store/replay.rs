//! A crash that went wrong: looked at again by its name, and made smaller.

use std::time::{Duration, Instant};

use agewell_testkit::caught;

use super::explorer::{
    Extent, Tally, Violation, check_state, explore_run, prepare, record, unrecorded, violation,
};
use super::load::{Load, Step};

/// How long a violation is made smaller, at most; chosen by us.
const SHRINKING: Duration = Duration::from_secs(60);

/// Looks again at the state with `name` of the run with `load`.
pub(crate) fn replay(load: &Load, path: &[(usize, u64)]) -> Result<(), Violation> {
    let (prepared, steps) = prepare(load);
    let run = record(load, &prepared, &steps).map_err(|what| unrecorded(load, what))?;
    let mut tally = Tally::default();
    let Some((at, deeper)) = path.split_first() else { return Ok(()) };
    let checked = caught(|| check_state(load, &run, *at, 1, true, &mut tally));
    let next = checked.map_err(|what| violation(load, &run, vec![*at], what))?;
    let (Some(next), Some(deep)) = (next, deeper.first()) else { return Ok(()) };
    let checked = caught(|| check_state(load, &next, *deep, 2, true, &mut tally));
    checked.map(drop).map_err(|what| violation(load, &next, path.to_vec(), what))
}

/// The fewest transactions that still go wrong, and of their states the one of which least is missing.
///
/// Transactions are left out by halves, quarters and so on (Zeller and Hildebrandt 2002, "Simplifying and
/// isolating failure-inducing input", IEEE Transactions on Software Engineering 28(2), without the test
/// of subsets alone).
fn shrink(load: &Load, found: Violation) -> (Vec<Step>, Violation) {
    let (prepared, mut steps) = prepare(load);
    let extent = Extent {
        goes_on: 1,
        deep: if found.path.len() > 1 { 1 } else { 1 << 60 },
        ..Extent::USUAL
    };
    let goes_wrong = |steps: &[Step]| {
        let run = match record(load, &prepared, steps) {
            Ok(run) => run,
            Err(what) => return Some(unrecorded(load, what)),
        };
        explore_run(load, &run, extent, &mut Tally::default()).err()
    };
    let mut smallest = found;
    let end_by = Instant::now() + SHRINKING;
    let mut length = steps.len();
    while length > 0 && Instant::now() < end_by {
        let mut first = 0;
        while first < steps.len() && Instant::now() < end_by {
            let end = (first + length).min(steps.len());
            let fewer = [&steps[..first], &steps[end..]].concat();
            match goes_wrong(&fewer) {
                Some(found) => {
                    smallest = found;
                    steps = fewer;
                }
                None => first = end,
            }
        }
        length /= 2;
    }
    if let ([(epoch, _)], Ok(run)) = (&smallest.path[..], record(load, &prepared, &steps)) {
        let epoch = *epoch;
        let states = run.recording.states(epoch);
        let mut all: Vec<u64> = (0..states.len()).collect();
        all.sort_by_key(|number| states.missing_bytes(*number));
        let mut tally = Tally::default();
        let wrong = all.into_iter().find_map(|number| {
            let at = (epoch, number);
            let what = caught(|| check_state(load, &run, at, 1, true, &mut tally)).err()?;
            Some(violation(load, &run, vec![at], what))
        });
        smallest = wrong.unwrap_or(smallest);
    }
    (steps, smallest)
}

/// Ends the test with `violation`, made as small as it can be.
pub(crate) fn fail(load: &Load, found: Violation) -> ! {
    let name = found.name();
    eprintln!("{found}\nmaking it smaller ...");
    let (steps, smallest) = shrink(load, found);
    panic!("CRASH={name} replays it. The smallest there is: {smallest}\ntransactions: {steps:#?}");
}
