//! What was found to be wrong, and which blocks suffer from it.

use std::fmt;
use std::ops::Range;

/// Block numbers, as ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// First and last of each, in order and apart once they are [`Blocks::settle`]d.
    ranges: Vec<(u32, u32)>,
}

impl Blocks {
    /// Ranges that a line names; chosen by us: what a line can hold.
    const NAMED_MAX: usize = 8;

    /// Those from `first` to `last`, both among them.
    pub fn range(first: u32, last: u32) -> Self {
        Self { ranges: vec![(first, last)] }
    }

    /// Those of a range.
    pub(crate) fn within(range: &Range<u32>) -> Self {
        Self {
            ranges: if range.is_empty() { Vec::new() } else { vec![(range.start, range.end - 1)] },
        }
    }

    /// Any, in any order.
    pub fn of(blocks: impl IntoIterator<Item = u32>) -> Self {
        let mut all = Self::default();
        for block in blocks {
            all.add(block, block);
        }
        all.settle();
        all
    }

    /// Those from `first` to `last` as well. A range that goes on where the last one ends takes no room.
    pub(crate) fn add(&mut self, first: u32, last: u32) {
        match self.ranges.last_mut() {
            Some(before) if before.1.checked_add(1) == Some(first) => before.1 = last,
            _ => self.ranges.push((first, last)),
        }
    }

    /// Those of `other` as well.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.ranges.extend_from_slice(&other.ranges);
    }

    /// Puts them in order, each once.
    pub(crate) fn settle(&mut self) {
        self.ranges.sort_unstable();
        let mut kept: Vec<(u32, u32)> = Vec::new();
        for &(first, last) in &self.ranges {
            match kept.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => kept.push((first, last)),
            }
        }
        self.ranges = kept;
    }

    /// None at all.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|&(first, last)| u64::from(last - first) + 1).sum()
    }

    /// First and last of each range.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Whether `block` is among them, once they are in order.
    pub fn contains(&self, block: u32) -> bool {
        let behind = self.ranges.partition_point(|&(first, _)| first <= block);
        behind > 0 && block <= self.ranges[behind - 1].1
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(first, last)) in self.ranges.iter().take(Self::NAMED_MAX).enumerate() {
            out.write_str(if index == 0 { "" } else { ", " })?;
            if first == last { write!(out, "{first}") } else { write!(out, "{first} to {last}") }?;
        }
        let left = self.ranges.len().saturating_sub(Self::NAMED_MAX);
        if left > 0 { write!(out, " and {left} ranges more") } else { Ok(()) }
    }
}

/// What of a store a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// The copy with this number.
    Superblock(u32),
    /// The copy with this number.
    Root(u32),
    /// The page with this number.
    MapPage(u32),
    /// The record with this number.
    RingRecord(u64),
    /// The record in this slot.
    InlineRecord(u32),
    /// The group with this sequence.
    Group(u64),
    /// The segment with this number.
    Segment(u32),
    /// This block of a user.
    Block(u32),
    /// The whole store.
    Store,
}

impl fmt::Display for Structure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock(copy) => write!(out, "superblock {copy}"),
            Self::Root(copy) => write!(out, "root {copy}"),
            Self::MapPage(page) => write!(out, "map page {page}"),
            Self::RingRecord(number) => write!(out, "ring record {number}"),
            Self::InlineRecord(slot) => write!(out, "inline record in slot {slot}"),
            Self::Group(sequence) => write!(out, "group {sequence}"),
            Self::Segment(segment) => write!(out, "segment {segment}"),
            Self::Block(block) => write!(out, "block {block}"),
            Self::Store => write!(out, "store"),
        }
    }
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A loss of power explains it; nothing is lost that was acknowledged.
    Note,
    /// The store is not as its writer left it, or its writer broke a rule.
    Damage,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it weighs.
    pub severity: Severity,
    /// What it is about.
    pub structure: Structure,
    /// Where that lies, blocks from the start of the device.
    pub address: Option<u64>,
    /// What is wrong, a few words.
    pub problem: String,
    /// Whose data is lost or not certain.
    pub blocks: Blocks,
}

impl Finding {
    /// Damage that affects no data.
    pub(crate) fn damage(
        structure: Structure,
        address: impl Into<Option<u64>>,
        problem: impl Into<String>,
    ) -> Self {
        let (address, problem) = (address.into(), problem.into());
        Self { severity: Severity::Damage, structure, address, problem, blocks: Blocks::default() }
    }

    /// The same as something that a loss of power explains, if `explained`.
    pub(crate) fn or_note(mut self, explained: bool) -> Self {
        if explained {
            self.severity = Severity::Note;
        }
        self
    }

    /// The same with the blocks that it affects.
    pub(crate) fn affecting(mut self, mut blocks: Blocks) -> Self {
        blocks.settle();
        self.blocks = blocks;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.severity == Severity::Note {
            out.write_str("note: ")?;
        }
        write!(out, "{}", self.structure)?;
        if let Some(address) = self.address {
            write!(out, " at address {address}")?;
        }
        write!(out, ": {}", self.problem)?;
        match self.blocks.count() {
            0 => Ok(()),
            1 if matches!(self.structure, Structure::Block(_)) => Ok(()),
            1 => write!(out, "; affects block {}", self.blocks),
            _ => write!(out, "; affects blocks {}", self.blocks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_ranges_in_order() {
        let mut blocks = Blocks::of([7, 3, 4, 9, 8, 3]);
        assert_eq!(blocks.ranges(), [(3, 4), (7, 9)]);
        assert_eq!((blocks.count(), blocks.to_string()), (5, "3 to 4, 7 to 9".to_owned()));
        blocks.add(5, 6);
        blocks.settle();
        assert_eq!(blocks.to_string(), "3 to 9");
        assert_eq!((2..11).filter(|&one| blocks.contains(one)).count(), 7);
        let many = Blocks::of((0..20).map(|one| one * 2));
        assert!(many.to_string().ends_with("12, 14 and 12 ranges more"), "{many}");
        assert_eq!(Blocks::range(0, u32::MAX).count(), 1 << 32);
    }

    #[test]
    fn a_finding_is_one_line() {
        let finding = Finding::damage(Structure::MapPage(3), 120, "its checksum is wrong")
            .affecting(Blocks::range(5, 9));
        let line = "map page 3 at address 120: its checksum is wrong; affects blocks 5 to 9";
        assert_eq!(finding.to_string(), line);
        assert_eq!(finding.or_note(true).to_string(), format!("note: {line}"));
    }
}
