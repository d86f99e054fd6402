//! Which parts of its files a recording reads, and so how a file can be laid in parts.
//!
//! A program jumps within its libraries: their tables first, then what of the code it calls. Laid
//! whole, each such jump is a way of the disk, whatever the order of the files. So a file can be laid
//! in the parts that are read without a jump, each where it is first read. What is not read at all
//! stays where it is.
//!
//! Chosen by us:
//!
//! * A file that the kernel reads ahead at once is not divided.
//! * A read that goes on where a part ends goes on with that part, however much else was read in
//!   between: two files that are read in turns stay whole, and so does one that is read in turns at
//!   two places.
//! * What is not read stays within a part where going past it takes less than a read-ahead.
//! * Parts are whole pages, since programs ask for pages. To let them end at multiples of the window
//!   of the kernel's read-ahead does not do: the window lies around the page that is asked for, so that
//!   at each end what is read next would lie with another part.
//! * A part has at least four pages, the first that the kernel reads ahead of a file.

use std::collections::BTreeMap;

use super::ByteRange;
use super::recording::FileRead;
use crate::read_time::REQUEST_BYTES;

/// Shorter parts go with what is next to them in the file, bytes.
const SHORTEST_BYTES: u64 = 16 << 10;

/// A part of a file, and the read that came upon it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilePart {
    /// Number of its first read in the recording.
    pub(super) first_read: usize,
    /// Where in the file.
    pub(super) range: ByteRange,
}

/// The parts of a file of `file_bytes` of which `reads` are read, each with its number in the
/// recording; ascending by place in the file. None if it is laid whole all the same: if it is short,
/// or read from its first byte to its last.
pub(super) fn parts_of(
    reads: &[(usize, FileRead)],
    file_bytes: u64,
    page_bytes: u64,
) -> Option<Vec<FilePart>> {
    if file_bytes <= REQUEST_BYTES {
        return None;
    }
    let paged = |read: &FileRead| {
        let end = read.offset_bytes + read.bytes;
        let to_bytes = end.next_multiple_of(page_bytes).min(file_bytes);
        ByteRange { from_bytes: read.offset_bytes / page_bytes * page_bytes, to_bytes }
    };
    let mut all = Covered::default();
    for (_, read) in reads {
        all.add(paged(read));
    }
    let mut covered = Covered::default();
    // Parts by where they end.
    let mut by_end: BTreeMap<u64, FilePart> = BTreeMap::new();
    for (number, read) in reads {
        for fresh in covered.absent_of(paged(read)) {
            let before = by_end.range(..=fresh.from_bytes).next_back().map(|(end, _)| *end);
            let goes_on = before.filter(|end| {
                let gap = ByteRange { from_bytes: *end, to_bytes: fresh.from_bytes };
                gap.bytes() <= REQUEST_BYTES && all.is_absent(gap)
            });
            let part = match goes_on.and_then(|end| by_end.remove(&end)) {
                Some(part) => {
                    let range = ByteRange { to_bytes: fresh.to_bytes, ..part.range };
                    FilePart { range, ..part }
                }
                None => FilePart { first_read: *number, range: fresh },
            };
            by_end.insert(fresh.to_bytes, part);
            covered.add(part.range);
        }
    }
    let parts = long_enough(by_end.into_values().collect(), file_bytes);
    let whole = parts.len() == 1 && parts[0].range.bytes() == file_bytes;
    (!whole && !parts.is_empty()).then_some(parts)
}

/// Parts, ascending, of which those that are too short go with a neighbour, or are made longer by what
/// is not read.
fn long_enough(parts: Vec<FilePart>, file_bytes: u64) -> Vec<FilePart> {
    let mut found: Vec<FilePart> = Vec::with_capacity(parts.len());
    let mut parts = parts.into_iter().peekable();
    while let Some(mut part) = parts.next() {
        while part.range.bytes() < SHORTEST_BYTES {
            let before = found.last().copied();
            let behind = parts.peek().copied();
            let touching_before = before.filter(|one| one.range.to_bytes == part.range.from_bytes);
            let touching_behind = behind.filter(|one| one.range.from_bytes == part.range.to_bytes);
            let apart = |other: FilePart| other.first_read.abs_diff(part.first_read);
            match (touching_before, touching_behind) {
                (Some(before), None) => {
                    found.pop();
                    part = joined(before, part);
                }
                (Some(before), Some(behind)) if apart(before) <= apart(behind) => {
                    found.pop();
                    part = joined(before, part);
                }
                (_, Some(behind)) => {
                    parts.next();
                    part = joined(part, behind);
                }
                (None, None) => {
                    let limit = behind.map_or(file_bytes, |behind| behind.range.from_bytes);
                    let least = before.map_or(0, |before| before.range.to_bytes);
                    let range = &mut part.range;
                    range.to_bytes = (range.from_bytes + SHORTEST_BYTES).min(limit);
                    range.from_bytes = range.to_bytes.saturating_sub(SHORTEST_BYTES).max(least);
                }
            }
        }
        found.push(part);
    }
    found
}

/// Two parts of which the second begins where the first ends, laid where the longer of them is.
fn joined(first: FilePart, second: FilePart) -> FilePart {
    let longer = if second.range.bytes() > first.range.bytes() { second } else { first };
    let range = ByteRange { from_bytes: first.range.from_bytes, to_bytes: second.range.to_bytes };
    FilePart { range, ..longer }
}

/// Ranges of a file, apart from one another: where each begins and ends.
#[derive(Debug, Default)]
struct Covered(BTreeMap<u64, u64>);

impl Covered {
    fn add(&mut self, range: ByteRange) {
        let ByteRange { mut from_bytes, mut to_bytes } = range;
        if from_bytes >= to_bytes {
            return;
        }
        while let Some((start, end)) = self.0.range(..=to_bytes).next_back().map(|(s, e)| (*s, *e))
        {
            if end < from_bytes {
                break;
            }
            self.0.remove(&start);
            from_bytes = from_bytes.min(start);
            to_bytes = to_bytes.max(end);
        }
        self.0.insert(from_bytes, to_bytes);
    }

    /// Whether nothing of `range` is in them.
    fn is_absent(&self, range: ByteRange) -> bool {
        let before = self.0.range(..range.to_bytes).next_back();
        range.bytes() == 0 || before.is_none_or(|(_, end)| *end <= range.from_bytes)
    }

    /// What of `range` is not in them, ascending.
    fn absent_of(&self, range: ByteRange) -> Vec<ByteRange> {
        let mut absent = Vec::new();
        let mut at = range.from_bytes;
        let first = self.0.range(..=at).next_back().map_or(at, |(start, _)| *start);
        for (start, end) in self.0.range(first..range.to_bytes) {
            if *start > at {
                absent.push(ByteRange { from_bytes: at, to_bytes: *start });
            }
            at = at.max(*end);
        }
        if at < range.to_bytes {
            absent.push(ByteRange { from_bytes: at, to_bytes: range.to_bytes });
        }
        absent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ByteRange, FilePart, FileRead, REQUEST_BYTES, SHORTEST_BYTES, parts_of};

    const PAGE: u64 = 4096;

    fn read(from: u64, pages: u64) -> FileRead {
        FileRead { file: 0, offset_bytes: from * PAGE, bytes: pages * PAGE, client: 0 }
    }

    /// Parts by first read, from and to, pages.
    fn parts(reads: &[(u64, u64)], file_pages: u64) -> Option<Vec<(usize, u64, u64)>> {
        let reads: Vec<_> = reads.iter().map(|(from, pages)| read(*from, *pages)).collect();
        let reads: Vec<(usize, FileRead)> = reads.into_iter().enumerate().collect();
        let told = |part: &FilePart| {
            (part.first_read, part.range.from_bytes / PAGE, part.range.to_bytes / PAGE)
        };
        Some(parts_of(&reads, file_pages * PAGE, PAGE)?.iter().map(told).collect())
    }

    #[test]
    fn a_file_is_divided_where_the_recording_jumps() {
        // Its header, its tables at the end, its code.
        let jumps = [(0, 4), (500, 32), (532, 32), (4, 32), (36, 32)];
        assert_eq!(parts(&jumps, 600), Some(vec![(0, 0, 68), (1, 500, 564)]));
        let back = [(0, 4), (500, 32), (532, 32), (200, 32)];
        assert_eq!(parts(&back, 600), Some(vec![(0, 0, 4), (3, 200, 232), (1, 500, 564)]));
    }

    #[test]
    fn what_is_short_or_read_from_end_to_end_stays_whole() {
        assert_eq!(parts(&[(16, 4), (0, 4)], 32), None);
        assert_eq!(parts(&[(0, 32), (32, 32), (64, 1)], 65), None);
    }

    /// In turns at two places, with what another page between the reads is: two parts, not one a turn.
    #[test]
    fn what_goes_on_where_a_part_ends_is_of_that_part() {
        let turns: Vec<(u64, u64)> =
            (0..20).flat_map(|turn| [(turn * 32, 32), (5000 + turn * 32, 32)]).collect();
        assert_eq!(parts(&turns, 9000), Some(vec![(0, 0, 640), (1, 5000, 5640)]));
    }

    #[test]
    fn what_is_gone_past_in_less_than_a_read_ahead_stays_within_the_part() {
        let steps: Vec<(u64, u64)> = (0..50).map(|step| (step * 16, 1)).collect();
        assert_eq!(parts(&steps, 2000), Some(vec![(0, 0, 785)]));
        // Unless it is read at another time.
        assert_eq!(parts(&[(0, 8), (12, 8), (8, 4)], 2000), Some(vec![(0, 0, 12), (1, 12, 20)]));
    }

    #[test]
    fn a_part_is_no_shorter_than_the_first_read_ahead() {
        // Page by page backwards: with the one read just before.
        assert_eq!(parts(&[(300, 8), (299, 1), (298, 1)], 2000), Some(vec![(0, 298, 308)]));
        // On its own, with what follows it, or at the end of the file with what is before it.
        assert_eq!(parts(&[(100, 1)], 2000), Some(vec![(0, 100, 104)]));
        assert_eq!(parts(&[(1999, 1)], 2000), Some(vec![(0, 1996, 2000)]));
    }

    proptest! {
        /// Parts are apart from one another, hold all that is read, lie within the file and are long
        /// enough; each begins with the read that it names.
        #[test]
        fn parts_hold_what_is_read(
            reads in prop::collection::vec((0_u64..400, 1_u64..40), 1..60),
            file_pages in 33_u64..440,
        ) {
            let reads: Vec<(u64, u64)> = reads
                .into_iter()
                .filter(|(from, _)| *from < file_pages)
                .map(|(from, pages)| (from, pages.min(file_pages - from)))
                .collect();
            let read_pages = |page: u64| reads.iter().any(|(f, n)| (*f..f + n).contains(&page));
            let Some(found) = parts(&reads, file_pages) else {
                // Nothing longer than a read-ahead is left out.
                let ahead = REQUEST_BYTES / PAGE;
                let unread = |from: u64| (from..=from + ahead).all(|page| !read_pages(page));
                prop_assert!(reads.is_empty() || !(0..file_pages - ahead).any(unread));
                return Ok(());
            };
            for pair in found.windows(2) {
                prop_assert!(pair[0].2 <= pair[1].1, "{found:?}");
            }
            prop_assert!(found.last().is_some_and(|last| last.2 <= file_pages));
            for page in (0..file_pages).filter(|page| read_pages(*page)) {
                prop_assert!(found.iter().any(|part| (part.1..part.2).contains(&page)));
            }
            for (first, from, to) in &found {
                let (at, pages) = reads[*first];
                prop_assert!(at < *to && at + pages > *from, "{found:?}");
                prop_assert!((to - from) * PAGE >= SHORTEST_BYTES, "{found:?}");
            }
            // No longer than what is read, what is gone past and what makes short ones longer.
            let read_pages = (0..file_pages).filter(|page| read_pages(*page)).count() as u64;
            let laid: u64 = found.iter().map(|part| part.2 - part.1).sum();
            let past = REQUEST_BYTES / PAGE * reads.len() as u64 + 4 * found.len() as u64;
            prop_assert!(laid <= read_pages + past);
        }
    }

    #[test]
    fn a_range_has_its_bytes() {
        assert_eq!(ByteRange { from_bytes: 3, to_bytes: 8 }.bytes(), 5);
    }
}
