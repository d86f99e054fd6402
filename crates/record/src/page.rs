//! Pages of the kernel's ring buffer, as `per_cpu/cpuN/trace_pipe_raw` gives them.
//!
//! A page is the time of its first event (u64, ns), how much of it is used (`commit`, with two bits
//! for events that were overwritten before it), and events. An event begins with a word of 5 bits
//! for its kind or length and 27 bits for the time since the event before:
//!
//! | kind | meaning |
//! |---|---|
//! | 1 to 28 | a record of so many words |
//! | 0 | a record whose length, this word included, stands in the next word |
//! | 29 | padding: without a time the rest of the page is empty, else a discarded record as long as the next word says |
//! | 30 | only time: the next word holds its higher bits |
//! | 31 | an absolute time, of which 59 bits fit |
//!
//! Everything is in the byte order of the machine. Source: Linux `kernel/trace/ring_buffer.c`,
//! `include/linux/ring_buffer.h`; the layout of the page is read from `events/header_page`.

use crate::format::Field;

/// `RB_MISSED_EVENTS`: events before this page were overwritten.
const MISSED: u64 = 1 << 31;
/// `RB_MISSED_STORED`: how many stands behind the last event.
const MISSED_STORED: u64 = 1 << 30;
/// What is left of `commit` is the bytes used (`COMMIT_MASK` of libtraceevent).
const USED_MASK: u64 = (1 << 27) - 1;
/// Bits of the time in an event's first word.
const DELTA_BITS: u32 = 27;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that an absolute time stamp lacks (`TS_MSB`).
const STAMP_LACKS: u64 = 0xf8 << 56;

/// Where things are in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Where `commit` is.
    pub commit: Field,
    /// Where the events are, and how many bytes there are for them.
    pub data: Field,
}

impl PageLayout {
    /// Bytes of a page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.data.offset + self.data.bytes
    }
}

/// How many events were overwritten before a page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// None.
    #[default]
    None,
    /// As many.
    Count(u64),
    /// Some; the page had no room for their number.
    Unknown,
}

/// What a page said beside its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageReport {
    /// When it begins, ns.
    pub first_ns: u64,
    /// The time of its last event, or of its begin.
    pub last_ns: u64,
    /// What was lost before it.
    pub missed: Missed,
    /// Records in it.
    pub records: u64,
    /// Bytes of it that are used.
    pub used_bytes: usize,
}

/// Why a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The kernel gave less than the head of a page.
    #[error("a page of the trace buffer ends after {0} bytes")]
    Short(usize),
    /// It says that it is longer than it is.
    #[error("a page of the trace buffer claims {used} of its {bytes} bytes")]
    Used {
        /// What it claims.
        used: usize,
        /// What there is.
        bytes: usize,
    },
    /// A record reaches beyond the end.
    #[error("a record at byte {at} of a page of the trace buffer reaches beyond its end")]
    Record {
        /// Where it begins.
        at: usize,
    },
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(word.try_into().expect("four bytes")))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let long = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(long.try_into().expect("eight bytes")))
}

/// The kind and the time of an event's first word.
fn split(word: u32) -> (u32, u32) {
    if cfg!(target_endian = "little") {
        (word & 31, word >> 5)
    } else {
        (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
    }
}

/// An absolute time with the bits that it lacks, out of the time before it.
fn whole_stamp(stamp_ns: u64, before_ns: u64) -> u64 {
    if before_ns & STAMP_LACKS == 0 {
        return stamp_ns;
    }
    let whole = stamp_ns | (before_ns & STAMP_LACKS);
    if whole < before_ns { whole.wrapping_add(1 << 59) } else { whole }
}

/// Reads the page `bytes` and hands each record to `take` with its time in ns.
///
/// # Errors
/// If it is no such page; records before the fault have been handed over.
pub fn read_page(
    layout: &PageLayout,
    bytes: &[u8],
    mut take: impl FnMut(u64, &[u8]),
) -> Result<PageReport, PageError> {
    let short = PageError::Short(bytes.len());
    let first_ns = long(bytes, 0).ok_or(short)?;
    let commit = if layout.commit.bytes == 8 {
        long(bytes, layout.commit.offset).ok_or(short)?
    } else {
        word(bytes, layout.commit.offset).ok_or(short)?.into()
    };
    let data = bytes.get(layout.data.offset..).ok_or(short)?;
    let used_bytes = (commit & USED_MASK) as usize;
    let used =
        data.get(..used_bytes).ok_or(PageError::Used { used: used_bytes, bytes: data.len() })?;
    let missed = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
        (false, _) => Missed::None,
        (true, false) => Missed::Unknown,
        (true, true) => match layout.commit.bytes {
            8 => long(data, used_bytes).map_or(Missed::Unknown, Missed::Count),
            _ => {
                word(data, used_bytes).map_or(Missed::Unknown, |count| Missed::Count(count.into()))
            }
        },
    };
    let mut report = PageReport { first_ns, last_ns: first_ns, missed, records: 0, used_bytes };
    let mut at = 0;
    while at < used.len() {
        let broken = PageError::Record { at };
        let (kind, delta) = split(word(used, at).ok_or(broken)?);
        let second = || word(used, at + 4).ok_or(broken);
        let body = match kind {
            PADDING if delta == 0 => break,
            TIME_EXTEND => {
                let time_ns = u64::from(second()?) << DELTA_BITS | u64::from(delta);
                report.last_ns = report.last_ns.wrapping_add(time_ns);
                at += 8;
                continue;
            }
            TIME_STAMP => {
                let stamp_ns = u64::from(second()?) << DELTA_BITS | u64::from(delta);
                report.last_ns = whole_stamp(stamp_ns, report.last_ns);
                at += 8;
                continue;
            }
            // The length of what follows, this word of the length included.
            0 | PADDING => {
                let bytes = second()? as usize;
                if bytes < 4 {
                    return Err(broken);
                }
                at + 8..at.checked_add(4 + bytes).ok_or(broken)?
            }
            words => at + 4..at + 4 + 4 * words as usize,
        };
        report.last_ns = report.last_ns.wrapping_add(delta.into());
        let end = body.end;
        let record = used.get(body).ok_or(broken)?;
        if kind != PADDING {
            report.records += 1;
            take(report.last_ns, record);
        }
        at = end.next_multiple_of(4);
    }
    Ok(report)
}
