//! Random histories of a store are read as they were written.

use std::collections::BTreeMap;

use agewell_check::{Checked, summary};
use proptest::prelude::*;

use crate::writer::{Change, Lies, Shape, State, Writer};
use crate::{checked, lines};

/// Something that is done with a store.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Inline(Vec<(u32, u8, bool)>),
    Ring(Vec<(u32, u8, bool)>),
    Mixed(Vec<(u32, u8, bool)>, Vec<(u32, u8, bool)>),
    MoveDamaged(u32),
    Checkpoint,
    WriteMap,
    Reopen,
    Unfinished(Vec<(u32, u8, bool)>, bool),
}

/// How it is left.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Closed,
    Left,
    Unfinished(Vec<(u32, u8, bool)>, bool),
}

fn changes() -> impl Strategy<Value = Vec<(u32, u8, bool)>> {
    let change = (0..Shape::SMALL.blocks, any::<u8>(), prop::bool::weighted(0.2));
    prop::collection::vec(change, 1..6)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => changes().prop_map(Step::Inline),
        3 => changes().prop_map(Step::Ring),
        2 => (changes(), changes()).prop_map(|(inline, ring)| Step::Mixed(inline, ring)),
        1 => (0..Shape::SMALL.blocks).prop_map(Step::MoveDamaged),
        2 => Just(Step::Checkpoint),
        2 => Just(Step::WriteMap),
        1 => Just(Step::Reopen),
        1 => (changes(), any::<bool>()).prop_map(|(changes, inline)| Step::Unfinished(changes, inline)),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Closed),
        Just(End::Left),
        (changes(), any::<bool>()).prop_map(|(changes, inline)| End::Unfinished(changes, inline)),
    ]
}

pub(crate) fn history() -> impl Strategy<Value = (Vec<Step>, End)> {
    (prop::collection::vec(step(), 0..40), end())
}

/// One change a block.
fn once(drawn: &[(u32, u8, bool)]) -> Vec<Change> {
    let last: BTreeMap<u32, (u8, bool)> =
        drawn.iter().map(|&(block, fill, free)| (block, (fill, free))).collect();
    let change = |(block, (fill, free))| {
        if free { Change::Free(block) } else { Change::Write(block, fill) }
    };
    last.into_iter().map(change).collect()
}

/// Those of a second part: of other blocks.
fn others(drawn: &[(u32, u8, bool)], of: &[Change]) -> Vec<Change> {
    let taken = |block: u32| {
        of.iter().any(
            |one| matches!(*one, Change::Write(other, _) | Change::Free(other) if other == block),
        )
    };
    let left: Vec<_> = drawn.iter().copied().filter(|&(block, ..)| !taken(block)).collect();
    once(&left)
}

/// The store that comes of it.
pub(crate) fn written(steps: &[Step], end: &End) -> Writer {
    let mut writer = Writer::format(Shape::SMALL);
    for step in steps {
        prepare(&mut writer);
        match step {
            Step::Inline(drawn) if writer.has_room(7) => writer.inline_group(&once(drawn)),
            Step::Ring(drawn) if writer.holes() > 40 => writer.ring_group(&once(drawn)),
            Step::Mixed(inline, ring) if writer.has_room(7) && writer.holes() > 40 => {
                let inline = once(inline);
                writer.mixed_group(&inline, &others(ring, &inline));
            }
            Step::MoveDamaged(block)
                if writer.state().contains_key(block) && writer.holes() > 40 =>
            {
                writer.move_damaged(*block);
            }
            Step::Checkpoint => writer.checkpoint(),
            Step::WriteMap => writer.write_map(),
            Step::Reopen => writer.open(),
            Step::Unfinished(drawn, inline) if writer.has_room(7) && writer.holes() > 40 => {
                writer.unfinished_group(&once(drawn), *inline);
                writer.open();
            }
            _ => {}
        }
    }
    prepare(&mut writer);
    match end {
        End::Closed => writer.close(),
        End::Unfinished(drawn, inline) if writer.has_room(7) && writer.holes() > 40 => {
            writer.unfinished_group(&once(drawn), *inline);
        }
        _ => {}
    }
    writer
}

fn prepare(writer: &mut Writer) {
    if !writer.ring_has_room() {
        writer.write_map();
    }
}

/// What a check has read, as the writer keeps it.
pub(crate) fn state(checked: &Checked) -> State {
    let lies = checked.map.iter().map(|(block, entry)| {
        let (slot, short_sum) = (entry.slot, entry.short_sum);
        (block, Lies { slot, short_sum, damaged: entry.damaged })
    });
    lies.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_history_is_read_as_it_was_written((steps, end) in history()) {
        let writer = written(&steps, &end);
        let read = checked(&writer.image).expect("it is a store");
        prop_assert_eq!(state(&read), writer.state().clone(), "{:?}", lines(&read));
        prop_assert_eq!(read.sequence, writer.sequence());
        // All that is wrong are blocks that were lost before.
        let lost = writer.state().values().filter(|lies| lies.damaged).count();
        prop_assert_eq!(read.findings.len(), lost, "{:?}", lines(&read));
        prop_assert_eq!(read.closed_in_order, matches!(end, End::Closed));
        let figures = summary(&read);
        prop_assert_eq!(figures.live_blocks, writer.state().len() as u64);
        prop_assert_eq!(figures.damaged_blocks, lost as u64);
    }
}
