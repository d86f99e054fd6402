//! The tree against a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use agewell_core::{RandomStreams, uniform_below};
use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};
use proptest::prelude::*;

use super::*;
use crate::blocks::Blocks;

fn empty() -> Blocks<MemoryDisk> {
    let disk = MemoryDisk::new(16 << 20);
    let options =
        FormatOptions { segment_blocks: 64, block_bytes: 1024, ..FormatOptions::new([7; 16]) };
    Store::format(&disk, &options).unwrap();
    let store = Arc::new(Store::open(disk, &OpenOptions::default()).unwrap());
    let mut blocks = Blocks::new(store, 0, 0..0);
    blocks.begin();
    assert_eq!(blocks.take_node().unwrap(), 0);
    assert_eq!(blocks.take_node().unwrap(), ROOT);
    NodeMut(blocks.node_mut(ROOT).unwrap()).clear(0);
    blocks
}

/// Every node is as it should be, and all leaves are as far from the root; how many nodes.
fn check(blocks: &mut Blocks<MemoryDisk>, number: u32, from: Key, to: Option<Key>) -> usize {
    let bytes = Arc::clone(blocks.node(number).unwrap());
    let node = Node(&bytes);
    assert_eq!(node.fault(), None);
    let keys: Vec<Key> = (0..node.count()).map(|at| node.key(at)).collect();
    assert!(keys.iter().all(|key| *key >= from && to.is_none_or(|to| *key < to)));
    if node.is_leaf() {
        return 1;
    }
    let children = (0..node.count()).map(|at| {
        let child = node.child(at);
        assert_eq!(Node(blocks.node(child).unwrap()).level() + 1, node.level());
        check(blocks, child, node.key(at), keys.get(at + 1).copied().or(to))
    });
    1 + children.sum::<usize>()
}

/// Of nodes that are each split by itself ln 2 is used (Yao 1978), and less where few items go into one.
#[test]
fn what_comes_in_no_order_fills_nodes_well() {
    let mut blocks = empty();
    blocks.begin();
    let items = 4096;
    let value = [7; 40];
    let mut random = RandomStreams::new(5).stream("keys");
    let mut order: Vec<(u64, u128)> =
        (0..items).map(|key| (uniform_below(&mut random, u64::MAX), key)).collect();
    order.sort_unstable();
    for (at, (_, key)) in order.into_iter().enumerate() {
        set(&mut blocks, key, &value).unwrap();
        if at.is_multiple_of(16) {
            blocks.commit().unwrap();
            blocks.begin();
        }
    }
    let nodes = check(&mut blocks, ROOT, 0, None);
    let fullest = items as usize * (SLOT_BYTES + value.len()) / (1024 - 16);
    assert!(nodes * 2 < fullest * 3, "{nodes} nodes, {fullest} would have room for it");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn it_is_a_map_that_can_be_undone(
        steps in prop::collection::vec((0..5u8, 0..600u128, 0..480usize), 0..1500),
        spread in 1..5u128,
    ) {
        let mut blocks = empty();
        let mut model: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
        let mut before = model.clone();
        blocks.begin();
        for (at, (what, key, length)) in steps.into_iter().enumerate() {
            let key = key * spread;
            match what {
                0 | 1 => {
                    let value = vec![at as u8; length];
                    set(&mut blocks, key, &value).unwrap();
                    model.insert(key, value);
                }
                2 => {
                    let was = remove(&mut blocks, key).unwrap();
                    prop_assert_eq!(was, model.remove(&key).is_some());
                }
                3 => {
                    // All of a range, as when a file is removed.
                    let keys: Vec<Key> = model.range(key..key + 60).map(|item| *item.0).collect();
                    for key in keys {
                        prop_assert!(remove(&mut blocks, key).unwrap());
                        model.remove(&key);
                    }
                }
                _ if length < 100 => {
                    blocks.undo();
                    model = before.clone();
                }
                _ => {
                    if length < 200 && blocks.fits(0) {
                        blocks.commit().unwrap();
                    }
                    blocks.begin();
                    before = model.clone();
                }
            }
            let found = get(&mut blocks, key, <[u8]>::to_vec).unwrap();
            prop_assert_eq!(found.as_ref(), model.get(&key));
            let found = last(&mut blocks, 0, key, |key, _| key).unwrap();
            prop_assert_eq!(found, model.range(..=key).next_back().map(|item| *item.0));
            let found = first(&mut blocks, key, key + 50, |key, _| key).unwrap();
            prop_assert_eq!(found, model.range(key..=key + 50).next().map(|item| *item.0));
        }
        let mut items = Vec::new();
        each(&mut blocks, 0, Key::MAX, |key, value| {
            items.push((key, value.to_vec()));
            true
        }).unwrap();
        let expected: Vec<_> = model.into_iter().collect();
        prop_assert_eq!(items, expected);
        let nodes = check(&mut blocks, ROOT, 0, None);
        // And the superblock.
        prop_assert_eq!(blocks.used(), nodes as u64 + 1);
    }
}
