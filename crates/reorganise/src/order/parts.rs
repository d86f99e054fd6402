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
//! * A read that goes on where the one of the same file before it ended goes on with that part, however
//!   much of other files was read in between: files that are read in turns are not divided. What
//!   else is read meanwhile is often chance, jumps within a file are not.
//! * What is not read stays within a part where going past it takes less than a read-ahead.
//! * Parts are whole pages, since programs ask for pages. To let them end at multiples of the window
//!   of the kernel's read-ahead does not do: the window lies around the page that is asked for, so that
//!   at each end what is read next would lie with another part.
//! * On average the parts of a file are at least as long as a read-ahead; else it stays whole. So what is
//!   read here and there, as a database is, does not come apart into pages. Single parts may be
//!   short: going back for a page takes a turn of the disk, and laying it apart a line in a list.

use std::collections::BTreeMap;

use super::ByteRange;
use super::recording::FileRead;
use crate::read_time::REQUEST_BYTES;

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
/// or is read from its first byte to its last, or here and there.
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
    let mut parts: Vec<FilePart> = Vec::new();
    for (number, read) in reads {
        for fresh in covered.absent_of(paged(read)) {
            let goes_on = parts.last_mut().filter(|part| {
                let end = part.range.to_bytes;
                let gap = ByteRange { from_bytes: end, to_bytes: fresh.from_bytes };
                end <= fresh.from_bytes && gap.bytes() <= REQUEST_BYTES && all.is_absent(gap)
            });
            if let Some(part) = goes_on {
                part.range.to_bytes = fresh.to_bytes;
                covered.add(part.range);
            } else {
                parts.push(FilePart { first_read: *number, range: fresh });
                covered.add(fresh);
            }
        }
    }
    parts.sort_unstable_by_key(|part| part.range.from_bytes);
    let laid_bytes: u64 = parts.iter().map(|part| part.range.bytes()).sum();
    let is_whole = parts.len() == 1 && laid_bytes == file_bytes;
    let is_scattered = laid_bytes < REQUEST_BYTES * parts.len() as u64;
    (!is_whole && !is_scattered && !parts.is_empty()).then_some(parts)
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

    use super::{ByteRange, FilePart, FileRead, REQUEST_BYTES, parts_of};

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
        // Its header, its tables at the end, its code; and the page before that.
        let jumps = [(0, 4), (500, 64), (564, 32), (4, 64), (68, 32), (200, 64), (199, 1)];
        let expected = [(0, 0, 4), (3, 4, 100), (6, 199, 200), (5, 200, 264), (1, 500, 596)];
        assert_eq!(parts(&jumps, 600), Some(expected.to_vec()));
        // The end alone.
        assert_eq!(parts(&[(500, 32)], 600), Some(vec![(0, 500, 532)]));
    }

    #[test]
    fn what_is_short_or_read_from_end_to_end_stays_whole() {
        assert_eq!(parts(&[(16, 4), (0, 4)], 32), None);
        assert_eq!(parts(&[(0, 32), (32, 32), (64, 1)], 65), None);
    }

    /// However much of other files is read in between.
    #[test]
    fn what_goes_on_where_the_read_before_ended_is_of_its_part() {
        let steps: Vec<(usize, FileRead)> =
            (0..20).map(|step| (1000 * step, read(step as u64 * 32, 32))).collect();
        let told = parts_of(&steps, 9000 * PAGE, PAGE);
        let range = ByteRange { from_bytes: 0, to_bytes: 640 * PAGE };
        assert_eq!(told, Some(vec![FilePart { first_read: 0, range }]));
    }

    #[test]
    fn what_is_gone_past_in_less_than_a_read_ahead_stays_within_the_part() {
        let steps: Vec<(u64, u64)> = (0..50).map(|step| (step * 16, 1)).collect();
        assert_eq!(parts(&steps, 2000), Some(vec![(0, 0, 785)]));
        // Unless it is read at another time.
        let later = [(0, 80), (88, 80), (80, 8)];
        assert_eq!(parts(&later, 2000), Some(vec![(0, 0, 80), (2, 80, 88), (1, 88, 168)]));
    }

    #[test]
    fn what_is_read_here_and_there_stays_whole() {
        let reads: Vec<(u64, u64)> = (0..50).map(|step| (step * 7919 % 5000, 1)).collect();
        assert_eq!(parts(&reads, 5000), None);
        // A few jumps on top of long reads do not keep it whole.
        let mut reads = reads[..4].to_vec();
        reads.push((1000, 512));
        assert!(parts(&reads, 5000).is_some());
    }

    proptest! {
        /// Parts are apart from one another, hold all that is read, lie within the file and are long
        /// enough; each begins with the read that it names.
        #[test]
        fn parts_hold_what_is_read(
            reads in prop::collection::vec((0_u64..400, 1_u64..120), 1..30),
            file_pages in 33_u64..440,
        ) {
            let reads: Vec<(u64, u64)> = reads
                .into_iter()
                .filter(|(from, _)| *from < file_pages)
                .map(|(from, pages)| (from, pages.min(file_pages - from)))
                .collect();
            let read_pages = |page: u64| reads.iter().any(|(f, n)| (*f..f + n).contains(&page));
            let Some(found) = parts(&reads, file_pages) else {
                // It was not read in one part, or in long ones.
                let all = (0..file_pages).filter(|page| read_pages(*page)).count() as u64;
                let goes_on = |pair: &&[(u64, u64)]| pair[1].0 == pair[0].0 + pair[0].1;
                let jumps = (reads.len() - reads.windows(2).filter(goes_on).count()) as u64;
                let ahead = REQUEST_BYTES / PAGE;
                prop_assert!(all <= ahead * 2 * jumps || all + ahead * jumps >= file_pages);
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
            }
            // No longer than what is read and what is gone past, and long on average.
            let read_pages = (0..file_pages).filter(|page| read_pages(*page)).count() as u64;
            let laid: u64 = found.iter().map(|part| part.2 - part.1).sum();
            prop_assert!(laid <= read_pages + REQUEST_BYTES / PAGE * reads.len() as u64);
            prop_assert!(laid * PAGE >= REQUEST_BYTES * found.len() as u64);
        }
    }

    #[test]
    fn a_range_has_its_bytes() {
        assert_eq!(ByteRange { from_bytes: 3, to_bytes: 8 }.bytes(), 5);
    }
}
