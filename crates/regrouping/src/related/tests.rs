//! Any reads, writes and deletions, against a slow graph in a table and sums over all of it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::EDGES;

/// Edges from each block, the last used first.
#[derive(Debug, Default)]
struct SlowGraph {
    edges: BTreeMap<u32, Vec<(u32, u32)>>,
    previous: Option<u32>,
}

impl SlowGraph {
    fn read(&mut self, block: u32) {
        if let Some(previous) = self.previous.replace(block).filter(|found| *found != block) {
            let edges = self.edges.entry(previous).or_default();
            let found = edges.iter().position(|edge| edge.0 == block);
            let weight = found.map_or(0, |place| edges.remove(place).1);
            edges.insert(0, (block, weight + 1));
            edges.truncate(EDGES);
        }
    }

    /// `together` says whether a block is in the partition of the one written.
    fn write(&mut self, block: u32, together: impl Fn(u32) -> bool) {
        let Some(own) = self.edges.get_mut(&block).filter(|edges| !edges.is_empty()) else {
            return;
        };
        for edge in own.iter_mut() {
            edge.1 -= 1;
        }
        own.retain(|edge| edge.1 > 0);
        if own.is_empty() {
            for (from, edges) in &mut self.edges {
                edges.retain(|edge| edge.0 != block || !together(*from));
            }
        }
    }

    fn delete(&mut self, block: u32, together: impl Fn(u32) -> bool) {
        self.edges.remove(&block);
        for (from, edges) in &mut self.edges {
            edges.retain(|edge| edge.0 != block || !together(*from));
        }
        if self.previous == Some(block) {
            self.previous = None;
        }
    }
}

const BLOCKS: u32 = 24;

#[derive(Debug, Clone)]
enum Step {
    Read(u32),
    /// Blocks one after another.
    Run(u32, u32),
    Write(u32),
    Delete(u32),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..BLOCKS).prop_map(Step::Read),
        4 => (0..BLOCKS, 2..10_u32).prop_map(|(first, blocks)| Step::Run(first, blocks)),
        3 => (0..BLOCKS).prop_map(Step::Write),
        1 => (0..BLOCKS).prop_map(Step::Delete),
    ]
}

fn check(related: &RelatedBlocks, slow: &SlowGraph) {
    related.verify();
    for block in 0..BLOCKS {
        let edges = related.graph().edges(block);
        let found: Vec<_> = edges.map(|edge| (edge.target, u32::from(edge.weight))).collect();
        let expected = slow.edges.get(&block).cloned().unwrap_or_default();
        assert_eq!(found, expected, "edges of block {block}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default() })]

    /// Weights are exact; each block that was read is in one partition; and no shift raises the
    /// weight between partitions by more than the edge that was just recorded weighs.
    #[test]
    fn graph_and_partitions_are_as_the_slow_ones_say(
        limit in 1_u32..12,
        steps in prop::collection::vec(steps(), 0..120),
    ) {
        let mut related = RelatedBlocks::new(BLOCKS, limit);
        let mut slow = SlowGraph::default();
        for step in steps {
            let home = |block: u32| related.partitions().of(block);
            match step {
                Step::Read(block) => {
                    read(&mut related, &mut slow, block);
                }
                Step::Run(first, blocks) => {
                    for block in first..(first + blocks).min(BLOCKS) {
                        read(&mut related, &mut slow, block);
                    }
                }
                Step::Write(block) => {
                    let homes: Vec<_> = (0..BLOCKS).map(home).collect();
                    let there = homes[block as usize];
                    slow.write(block, |from| there.is_some() && homes[from as usize] == there);
                    if there.is_some() {
                        related.write(block);
                    }
                }
                Step::Delete(block) => {
                    let homes: Vec<_> = (0..BLOCKS).map(home).collect();
                    let there = homes[block as usize];
                    slow.delete(block, |from| there.is_some() && homes[from as usize] == there);
                    related.delete(block);
                    prop_assert!(related.partitions().of(block).is_none());
                }
            }
            check(&related, &slow);
        }
        let words = related.words();
        let mut given = words.iter().copied();
        let again = RelatedBlocks::from_words(limit, BLOCKS, &mut given).expect("its own words");
        prop_assert!(given.next().is_none());
        check(&again, &slow);
        prop_assert_eq!(again.previous(), related.previous());
        let members = |related: &RelatedBlocks, block| {
            let number = related.partitions().of(block)?;
            Some(related.partitions().members(number).collect::<Vec<_>>())
        };
        for block in 0..BLOCKS {
            prop_assert_eq!(members(&again, block), members(&related, block));
        }
        // Half of them are forgotten at once.
        let gone: Vec<u32> = (0..BLOCKS / 2).collect();
        let mut related = again;
        related.delete_all(&gone);
        related.verify();
        for block in 0..BLOCKS {
            let leads = related.graph().edges(block).any(|edge| gone.contains(&edge.target));
            prop_assert!(!leads, "an edge of {} leads to what is gone", block);
        }
    }

    /// Words that are damaged are refused, or stand for something sound; never a panic.
    #[test]
    fn damaged_words_are_no_panic(
        reads in prop::collection::vec(0..BLOCKS, 0..60),
        at in any::<prop::sample::Index>(),
        word in prop_oneof![any::<u64>(), 0_u64..40],
    ) {
        let mut related = RelatedBlocks::new(BLOCKS, 5);
        for block in reads {
            related.read(block);
        }
        let mut words = related.words();
        let at = at.index(words.len());
        words[at] = word;
        if let Some(again) = RelatedBlocks::from_words(5, BLOCKS, &mut words.into_iter()) {
            again.verify();
        }
    }
}

fn read(related: &mut RelatedBlocks, slow: &mut SlowGraph, block: u32) {
    let before = related.partitions().weight_between(related.graph());
    let known = related.clone();
    related.read(block);
    slow.read(block);
    assert!(related.partitions().of(block).is_some());
    // The weight between partitions if the boundaries had stayed where they were.
    let stayed = known.partitions().weight_between(related.graph());
    let after = related.partitions().weight_between(related.graph());
    assert!(after <= stayed, "a shift raised the weight between partitions");
    assert!(after <= before + 1, "one read raised it by more than one");
}

/// The pattern of the microbenchmarks: a long chain falls into full partitions in the first pass,
/// none of which is worth 2 before the second pass is under way and all of which are after it.
#[test]
fn a_chain_is_worth_two_in_its_second_pass() {
    let (blocks, limit) = (1000, 32);
    let mut related = RelatedBlocks::new(blocks, limit);
    (0..blocks).for_each(|block| {
        related.read(block);
    });
    let partitions = related.partitions();
    assert!(partitions.numbers().all(|partition| partitions.value(partition) < 2.0));
    assert_eq!(partitions.numbers().count() as u32, blocks.div_ceil(limit));
    (0..blocks).for_each(|block| {
        related.read(block);
    });
    let partitions = related.partitions();
    assert!(partitions.numbers().all(|partition| partitions.value(partition) > 2.0));
    let mut order = Vec::new();
    for partition in partitions.numbers() {
        related.lay_out(partition, &mut order);
        let first = order[0];
        let chain: Vec<u32> = (first..first + order.len() as u32).collect();
        assert_eq!(order, chain);
    }
    related.verify();
}

/// Strong ties that are found late win over weak ones that came first.
#[test]
fn a_pattern_across_full_partitions_brings_its_blocks_together() {
    let mut related = RelatedBlocks::new(64, 8);
    (0..64).for_each(|block| {
        related.read(block);
    });
    let pattern: Vec<u32> = (0..8).map(|step| step * 8 + 3).collect();
    let together = |related: &RelatedBlocks| {
        let home = related.partitions().of(pattern[0]);
        pattern.iter().filter(|block| related.partitions().of(**block) == home).count()
    };
    assert_eq!(together(&related), 1);
    for _ in 0..20 {
        for block in &pattern {
            related.read(*block);
        }
        related.verify();
    }
    assert_eq!(together(&related), pattern.len());
}

/// A block that is written more often than it is read ends up alone (Matthews 1999, §6.4.3).
#[test]
fn writes_sever_a_block_from_its_partition() {
    let mut related = RelatedBlocks::new(10, 10);
    for _ in 0..3 {
        (0..10).for_each(|block| {
            related.read(block);
        });
    }
    assert_eq!(related.partitions().ties(5), 6);
    for left in [5, 4, 0] {
        related.write(5);
        assert_eq!(related.partitions().ties(5), left);
    }
    assert_ne!(related.partitions().of(5), related.partitions().of(4));
    assert_eq!(related.partitions().of(6), related.partitions().of(7));
    related.verify();
}
