//! The files that are there at the end, planned first: when each was written last, how large it
//! then was, and its earlier versions.
//!
//! Invariants: their number, the number written in the last days, and the bytes allocated to both
//! are those of the parameters (to a few fragments).

use agewell_core::{Stream, chance, uniform_below};

use super::directories::Directories;
use super::{Smith1996Parameters, allocated_bytes};
use crate::workload::draws::{geometric, log_normal_bytes, log_uniform, unit};
use crate::workload::short_lived::factor_for;

/// One writing of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) day: u32,
    pub(super) bytes: u64,
}

/// A file that is there at the end.
#[derive(Debug, Clone)]
pub(super) struct Survivor {
    pub(super) directory: u32,
    /// Its writings by day, at most one a day; the last is the one that stays.
    pub(super) versions: Vec<Version>,
}

/// Plans the files of the end; also returns the factor by which the lengths drawn for the old ones
/// among them were multiplied.
pub(super) fn plan(
    parameters: &Smith1996Parameters,
    directories: &Directories,
    stream: &mut Stream,
) -> (Vec<Survivor>, f64) {
    let first_recent = parameters.days - parameters.recent_days;
    let recent = parameters.recent_files;
    let old = parameters.files_at_end - recent;
    let mut survivors = Vec::with_capacity(parameters.files_at_end as usize);
    let recent_day = |stream: &mut Stream| {
        first_recent + uniform_below(stream, parameters.recent_days.into()) as u32
    };
    // The last month holds 10.6 % of the files in 10 % of the days (§5.2): the files of the end were
    // written last evenly over the ten months.
    let old_day = |stream: &mut Stream| uniform_below(stream, first_recent.into()) as u32;
    place(old, directories, stream, old_day, &mut survivors);
    place(recent, directories, stream, recent_day, &mut survivors);
    let (of_old, of_recent) = survivors.split_at_mut(old as usize);
    let old_bytes = parameters.allocated_bytes_at_end - parameters.recent_allocated_bytes;
    let factor = scale(of_old, old_bytes, parameters.bytes_max);
    scale(of_recent, parameters.recent_allocated_bytes, parameters.bytes_max);
    for survivor in &mut survivors {
        add_earlier(survivor, parameters, stream);
    }
    fit_first_day(&mut survivors, parameters.path_bytes(0));
    (survivors, factor)
}

/// Defers to the second day what does not fit into the first evening's allocation: a few large
/// files may be more than the 9 % that are published.
fn fit_first_day(survivors: &mut [Survivor], first_bytes: u64) {
    let mut sum = 0;
    for survivor in survivors {
        let first = survivor.versions[0];
        let allocated = allocated_bytes(first.bytes);
        if first.day > 0 {
            continue;
        }
        if sum + allocated <= first_bytes {
            sum += allocated;
        } else if survivor.versions.get(1).is_some_and(|next| next.day == 1) {
            survivor.versions.remove(0);
        } else {
            survivor.versions[0].day = 1;
        }
    }
}

/// Files in batches, each batch of one directory that is active on its day.
fn place(
    count: u64,
    directories: &Directories,
    stream: &mut Stream,
    mut day: impl FnMut(&mut Stream) -> u32,
    survivors: &mut Vec<Survivor>,
) {
    let mut left = count;
    while left > 0 {
        let day = day(stream);
        let directory = directories.active_on(day, stream);
        let kind = directories.kind(directory);
        let batch = u64::from(geometric(stream, kind.batch_files)).min(left);
        for _ in 0..batch {
            let bytes = log_normal_bytes(stream, kind.median_bytes, kind.size_doublings) as u64;
            survivors.push(Survivor { directory, versions: vec![Version { day, bytes }] });
        }
        left -= batch;
    }
}

/// Scales the last versions so that they take `allocated` bytes; returns the factor.
fn scale(survivors: &mut [Survivor], allocated: u64, bytes_max: u64) -> f64 {
    let scaled = |survivor: &Survivor, factor: f64| {
        ((survivor.versions[0].bytes as f64 * factor) as u64).clamp(1, bytes_max)
    };
    let factor = factor_for(allocated, |factor| {
        survivors.iter().map(|survivor| allocated_bytes(scaled(survivor, factor))).sum()
    });
    for survivor in survivors {
        survivor.versions[0].bytes = scaled(survivor, factor);
    }
    factor
}

/// Gives some files earlier versions, of a similar size, at growing distances back.
fn add_earlier(survivor: &mut Survivor, parameters: &Smith1996Parameters, stream: &mut Stream) {
    if !chance(stream, f64::from(parameters.rewritten_pct) / 100.0) {
        return;
    }
    let mut version = survivor.versions[0];
    for _ in 0..geometric(stream, parameters.rewrites) {
        // From one day to two months, each doubling equally likely.
        let gap = log_uniform(stream, 6.0) as u32;
        if gap > version.day {
            break;
        }
        let size = 0.7 + 0.4 * unit(stream);
        version.day -= gap;
        version.bytes = ((version.bytes as f64 * size) as u64).max(1);
        survivor.versions.push(version);
    }
    survivor.versions.reverse();
}
