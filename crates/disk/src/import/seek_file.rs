//! DiskSim's measured seek curves (`.seek`): distances with the time that each took, as an extraction tool wrote them.
//!
//! Measurements scatter and some fail: of the six published curves that we hold five fall somewhere, by up to 86 %
//! (IBM 18ES: 7.373 ms at 3200 cylinders, 1.026 ms at 3400). An arm takes no less time to go farther, so a curve that
//! falls is replaced by the rising one nearest to it in least absolute deviations ([`rising`]): one bad point moves
//! alone, and scatter is averaged. Over all points left out one at a time it predicts them better than the points
//! as they stand (docs/concepts/disk-model.md).

use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::path::Path;

use super::libparam::error;
use crate::DeviceError;

/// A curve and what was done to it.
#[derive(Debug, PartialEq)]
pub(super) struct Measured {
    /// Distances (cylinders, ascending, from 1) and times (ns, never falling).
    pub(super) points: Vec<(u32, u64)>,
    /// One line for each kind of repair.
    pub(super) notes: Vec<String>,
}

/// Reads the seek curve in `text`, the contents of the file at `path`.
///
/// # Errors
/// If a line is not a distance and a time, or there is none, saying file and line.
pub(super) fn read(path: &Path, text: &str) -> Result<Measured, DeviceError> {
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut notes = Vec::new();
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let announced: usize = lines
        .next()
        .and_then(|(_, line)| line.rsplit(':').next()?.trim().parse().ok())
        .ok_or_else(|| error(path, 1, "'Seek distances measured: N' is expected"))?;
    let mut measured: Vec<(u32, u64)> = Vec::new();
    for (index, line) in lines {
        let parsed = line.split_once(',').and_then(|(distance, ms)| {
            Some((distance.trim().parse::<u32>().ok()?, ms.trim().parse::<f64>().ok()?))
        });
        let (distance, ms) =
            parsed.filter(|(_, ms)| (0.0..=1e6).contains(ms)).ok_or_else(|| {
                error(path, index + 1, format!("'DISTANCE, MS' is expected, not '{line}'"))
            })?;
        measured.push((distance, (ms * 1e6).round() as u64));
    }
    if measured.len() != announced {
        notes.push(format!(
            "{file} announces {announced} seek distances and holds {}: those are taken.",
            measured.len()
        ));
    }
    measured.retain(|(distance, _)| *distance > 0);
    if measured.is_empty() {
        return Err(error(path, 1, "holds no seek distance above 0"));
    }
    if !measured.is_sorted_by_key(|(distance, _)| *distance) {
        measured.sort_by_key(|(distance, _)| *distance);
        notes.push(format!("The distances of {file} do not ascend: they are sorted."));
    }
    let points = one_a_distance(&measured);
    if points.len() < measured.len() {
        notes.push(format!(
            "{file} gives {} distances more than once: the median of their times is taken.",
            measured.chunk_by(|one, next| one.0 == next.0).filter(|same| same.len() > 1).count()
        ));
    }
    let times: Vec<u64> = points.iter().map(|(_, time)| *time).collect();
    let risen = rising(&times);
    notes.extend(told(&file, &points, &risen));
    let points = points.iter().zip(risen).map(|((distance, _), time)| (*distance, time)).collect();
    Ok(Measured { points, notes })
}

/// The median of the times of each distance, of points sorted by distance.
fn one_a_distance(points: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let same_distances = points.chunk_by(|one, next| one.0 == next.0);
    let merged = same_distances.map(|same| {
        let mut times: Vec<u64> = same.iter().map(|(_, time)| *time).collect();
        (same[0].0, median(&mut times))
    });
    merged.collect()
}

fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    let half = times.len() / 2;
    if times.len() % 2 == 1 { times[half] } else { times[half - 1].midpoint(times[half]) }
}

/// The times that never fall and are nearest to `times` in the sum of absolute deviations. Where several are, the middle
/// of the lowest and the highest of them, which is one of them too, as the sum is convex.
fn rising(times: &[u64]) -> Vec<u64> {
    let lowest = lowest_rising(times.iter().copied());
    // The highest is the lowest of the curve turned upside down and back to front.
    let turned = lowest_rising(times.iter().rev().map(|time| u64::MAX - time));
    let highest = turned.into_iter().rev().map(|time| u64::MAX - time);
    lowest.into_iter().zip(highest).map(|(low, high)| low.midpoint(high)).collect()
}

/// The lowest of the nearest rising curves, in n log n: the heap holds where the least sum, as a function of the last
/// time, changes its slope ("slope trick"; isotonic regression as in Robertson, Wright & Dykstra:
/// Order Restricted Statistical Inference, 1988, ch. 1).
fn lowest_rising(times: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut slopes: BinaryHeap<u64> = BinaryHeap::new();
    let mut risen: Vec<u64> = times
        .map(|time| {
            slopes.push(time);
            let Some(mut top) = slopes.peek_mut() else { return time };
            if *top > time {
                *top = time;
            }
            drop(top);
            slopes.peek().map_or(time, |top| *top)
        })
        .collect();
    let mut least = u64::MAX;
    for time in risen.iter_mut().rev() {
        least = least.min(*time);
        *time = least;
    }
    risen
}

/// One line on the points that were moved, if any.
fn told(file: &str, points: &[(u32, u64)], risen: &[u64]) -> Option<String> {
    let moves = || points.iter().zip(risen).filter(|((_, time), value)| time != *value);
    let by = |((_, time), value): &(&(u32, u64), &u64)| time.abs_diff(**value);
    let ((distance, from), to) = moves().max_by_key(by)?;
    let mut line = format!("The curve of {file} falls in places: ");
    write!(
        line,
        "{} of {} points are replaced by the nearest curve that rises (least absolute deviations), the most \
         that at {distance} cylinders, {} ms by {} ms.",
        moves().count(),
        points.len(),
        *from as f64 / 1e6,
        *to as f64 / 1e6
    )
    .expect("a string takes everything");
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_points(text: &str) -> Measured {
        read(Path::new("a.seek"), text).expect("a readable curve")
    }

    /// The least sum of absolute deviations of a rising curve that takes its values from `times`.
    fn least_deviation(times: &[u64]) -> u64 {
        let mut levels = times.to_vec();
        levels.sort_unstable();
        // best[l]: of the points so far, with the last at no more than level l.
        let mut best = vec![0_u64; levels.len()];
        for time in times {
            let mut least = u64::MAX;
            for (level, sum) in levels.iter().zip(&mut best) {
                least = least.min(*sum + time.abs_diff(*level));
                *sum = least;
            }
        }
        best.last().copied().unwrap_or(0)
    }

    #[test]
    fn the_rising_curve_is_the_nearest_one() {
        let mut state = 7_u64;
        for length in 0..40 {
            let times: Vec<u64> = (0..length)
                .map(|index| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    index * 10 + (state >> 33) % 60
                })
                .collect();
            let risen = rising(&times);
            assert!(risen.is_sorted(), "{risen:?}");
            let deviation: u64 =
                times.iter().zip(&risen).map(|(one, two)| one.abs_diff(*two)).sum();
            assert_eq!(deviation, least_deviation(&times), "{times:?} became {risen:?}");
        }
    }

    #[test]
    fn a_rising_curve_stays_as_it_is() {
        let read = read_points("Seek distances measured: 3\n1,\t1.5\n2,\t1.5\n9,\t2.25\n");
        assert_eq!(read.points, [(1, 1_500_000), (2, 1_500_000), (9, 2_250_000)]);
        assert_eq!(read.notes, Vec::<String>::new());
    }

    #[test]
    fn one_bad_point_moves_and_its_neighbours_do_not() {
        let text = "Seek distances measured: 5\n7, 1.70\n8, 1.72\n9, 1.75\n10, 1.02\n12, 1.80\n";
        let read = read_points(text);
        assert_eq!(read.points.first(), Some(&(7, 1_700_000)));
        assert_eq!(read.points.last(), Some(&(12, 1_800_000)));
        let middle: Vec<u64> = read.points[1..4].iter().map(|point| point.1).collect();
        assert_eq!(middle, [1_720_000, 1_735_000, 1_735_000]);
        assert_eq!(read.notes.len(), 1);
        assert!(read.notes[0].contains("2 of 5 points"), "{}", read.notes[0]);
        assert!(
            read.notes[0].contains("at 10 cylinders, 1.02 ms by 1.735 ms"),
            "{}",
            read.notes[0]
        );
    }

    #[test]
    fn disorder_repetition_and_a_wrong_count_are_mended_and_told() {
        let read = read_points("Seek distances measured: 9\n0, 0\n5, 2.0\n2, 1.0\n5, 3.0\n");
        assert_eq!(read.points, [(2, 1_000_000), (5, 2_500_000)]);
        assert_eq!(read.notes.len(), 3, "{:?}", read.notes);
    }

    #[test]
    fn what_is_no_curve_is_refused_with_its_line() {
        for (text, line) in [
            ("", 1),
            ("Seek distances measured: 0\n", 1),
            ("Seek distances measured: 1\n1 2.0\n", 2),
            ("Seek distances measured: 2\n1, 2.0\n2, nan\n", 3),
        ] {
            let error = read(Path::new("a.seek"), text).expect_err("a refusal");
            assert!(matches!(error, DeviceError::Import { line: at, .. } if at == line), "{error}");
        }
    }
}
