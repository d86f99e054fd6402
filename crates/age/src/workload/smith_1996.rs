//! The aging workload of Smith & Seltzer 1996, made again from its published facts.
//!
//! The original (nightly snapshots of a home-directory file system at Harvard, April 1994 to
//! February 1995, with short-lived files from NFS traces) is not at hand. This generator builds one
//! in the same way: a history of long-lived files as nightly snapshots would record it, from which a
//! [`super::DayMixer`] makes operations as §3.1 says, one directory for each cylinder group
//! (§3.2, made first).
//!
//! | published (§3.1, §5.2) | here, for every seed |
//! |---|---|
//! | 300 days, 27 groups, 502 MB | exact; 502 x 2^20 bytes |
//! | about 800,000 file operations | 800,000 creates with their content and deletes |
//! | 48.6 GB written | 48.6 x 10^9 bytes |
//! | 9 % full at first, mostly above 70 %, at most 90 % | a path through these, see below |
//! | 8,774 files at the end; 59.5 MB are 19 % of their space | 8,774; 313.2 x 2^20 bytes allocated |
//! | 929 of them modified in the last month, 59.5 MB | 929; 59.5 x 2^20 bytes allocated |
//!
//! **What an operation is.** 48.6 GB in 800,000 operations are 61 KB each, so an operation cannot
//! be a request of the traces (8 KB); it is a file made with its content, or removed. All files
//! removed were made before, so 404,387 are made and 395,613 removed, and a file has 120 KB in the
//! mean: more than the 36 KB of those that stay, so the short-lived ones carry the traffic (traces
//! and simulation output, of which a networking group has much). Both counts are in the notes; the
//! rows of the workload are more, because the content is written by an operation of its own.
//!
//! **Full** means allocated bytes over all 502 MB: the authors read it off their snapshots, which list
//! the blocks of files (not off `df`, whose 100 % are 90 % of the space). So the highest, 90 %, is
//! where FFS lets ordinary users write no more, and the 313 MB of the end are 62 %: the last month is
//! emptier than the ones before, which "for most of the ten month period" (above 70 %) allows.
//!
//! **Chosen by us**, where the paper is silent, all in [`Smith1996Parameters`]: the path of the
//! utilization (its figure is not to be had), sizes and their spread by kind of directory (source,
//! documents, mail, output, traces: what such a group keeps), how few directories are active at
//! once, when people work.
//!
//! Four of them are reasoned: the files of the end were written last evenly over the ten months,
//! because the last one has its share of them (10.6 % in 10 % of the days); the first snapshot is
//! held against an empty file system as every other against its predecessor, so its files are made
//! within the first day; what makes room is removed by directory, as a tree; and files that outlive
//! their day go only when the utilization asks for room, because nothing shows more turnover.
//! How long short-lived files live follows from published shares ([`super::short_lived`]).
//!
//! **Nothing is calibrated.** FFS without reallocation ends at 0.765 in the mean of the first eight
//! seeds (0.710 to 0.787; published 0.766). The paper's scores were in view when the generator was
//! made, the choice of the least turnover included, so none of them is a blind prediction;
//! `experiments/smith-seltzer-1996/figure-02/NOTES.md` says which hold.
//!
//! Invariants: the table holds for every seed; the rules of [`crate::operation`] too. Cost: the
//! plan and all draws are made before the first operation (some MB); then O(log n) an operation.

mod directories;
mod history;
mod parameters;
mod survivors;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use agewell_core::{RandomStreams, uniform_below};

pub use parameters::{Kind, Smith1996Parameters};

use super::short_lived::ShortLivedDay;
use super::{Allocation, DayMixer, OperationSink, OperationWriter, SourceFacts, WorkloadFacts};
use crate::{Action, AgeError};
use history::History;

/// Bytes that a file takes on the FFS of table 1: whole fragments of 1 KB up to 12 direct blocks of
/// 8 KB, whole blocks beyond, and the indirect blocks that 2,048 addresses each need.
#[must_use]
pub fn allocated_bytes(bytes: u64) -> u64 {
    const FRAGMENT: u64 = 1 << 10;
    const BLOCK: u64 = 8 << 10;
    const DIRECT: u64 = 12 * BLOCK;
    const INDIRECT: u64 = 2_048 * BLOCK;
    if bytes <= DIRECT {
        return bytes.next_multiple_of(FRAGMENT);
    }
    let single = 1;
    let double = (bytes - DIRECT).saturating_sub(INDIRECT).div_ceil(INDIRECT);
    let indirect = single + double + u64::from(double > 0);
    bytes.next_multiple_of(BLOCK) + indirect * BLOCK
}

/// Makes the workload.
///
/// # Errors
/// If the parameters make no sense, or as the sink.
pub fn generate<S: OperationSink>(
    parameters: &Smith1996Parameters,
    seed: u64,
    sink: S,
) -> Result<(WorkloadFacts, S), AgeError> {
    parameters.check()?;
    let streams = RandomStreams::new(seed);
    let history = History::plan(parameters, streams);
    let picks = picks(parameters, streams);
    let short = short_lived(parameters, &history, &picks, streams)?;

    let mut writer = OperationWriter::new(sink);
    for _ in 0..parameters.groups {
        writer.make_directory(0)?;
    }
    let mut mixer = DayMixer::new(Allocation::Ffs, parameters.usable_bytes());
    let mut times = streams.stream("times of deletions");
    for (day, events) in history.days.iter().enumerate() {
        let of_day = &short[picks[day]];
        if day == 0 && !parameters.begin_within_first_day {
            mixer.begin(events, &mut times, &mut writer)?;
            mixer.play(0, &[], of_day, &mut times, &mut writer)?;
        } else {
            mixer.play(day as u64, events, of_day, &mut times, &mut writer)?;
        }
    }
    let counts = writer.live_set().counts;
    let operations = counts[Action::Create as usize] + counts[Action::Delete as usize];
    let notes = BTreeMap::from([
        ("file operations as the paper counts them".to_owned(), operations),
        ("short-lived files".to_owned(), mixer.short_files),
        ("short-lived files removed early for want of room".to_owned(), mixer.removed_early),
    ]);
    let source = SourceFacts {
        source: "smith-1996".to_owned(),
        seed,
        // 1994-04-01, the month that the paper names.
        start_unix_s: Some(765_158_400),
        groups: Some(parameters.groups),
        parameters: parameters.described(),
        notes,
    };
    Ok(writer.finish(source))
}

/// Which day of the traces goes to each day of the snapshots.
fn picks(parameters: &Smith1996Parameters, streams: RandomStreams) -> Vec<usize> {
    let mut stream = streams.stream("days of the traces");
    let days = u64::from(parameters.short_lived.days);
    (0..parameters.days).map(|_| uniform_below(&mut stream, days) as usize).collect()
}

/// Short-lived files for what the long-lived ones leave of the published totals.
fn short_lived(
    parameters: &Smith1996Parameters,
    history: &History,
    picks: &[usize],
    streams: RandomStreams,
) -> Result<Vec<ShortLivedDay>, AgeError> {
    let mut counts = vec![0; parameters.short_lived.days as usize];
    for &day in picks {
        counts[day] += 1;
    }
    // Files removed = files made - files left.
    let made = parameters.file_operations.midpoint(parameters.files_at_end);
    let files = made.checked_sub(history.files_made);
    let bytes = parameters.written_bytes.checked_sub(history.written_bytes);
    match (files, bytes) {
        (Some(files), Some(bytes)) if files > 0 && bytes >= files => {
            Ok(parameters.short_lived.make(&counts, files, bytes, streams))
        }
        _ => Err(AgeError::Input(format!(
            "smith-1996: the long-lived files alone make {} files of {} bytes; ask for more \
             file_operations and written_bytes",
            history.files_made, history.written_bytes
        ))),
    }
}
