//! TPC-B against table 2 of the paper and against a plain account of what must be written.

use std::collections::BTreeSet;

use super::*;
use crate::workload::survey;

fn tpcb(parameters: TpcbParameters) -> Tpcb {
    Tpcb::new(&parameters, &RandomStreams::new(1)).unwrap()
}

fn collect(workload: &mut Tpcb) -> Vec<FileRequest> {
    std::iter::from_fn(|| workload.next_request()).collect()
}

#[test]
fn the_account_file_has_the_58_indirect_blocks_of_the_paper() {
    assert_eq!(indirect_blocks(TpcbParameters::default().account_blocks), 58);
    let ends = [(0, 0), (12, 0), (13, 1), (1036, 1), (1037, 3), (2060, 3), (2061, 4)];
    for (blocks, count) in ends {
        assert_eq!(indirect_blocks(blocks), count, "{blocks} blocks");
    }
}

#[test]
fn reads_and_writes_alternate_and_nothing_is_written_that_was_not_in_the_cache() {
    let parameters =
        TpcbParameters { metadata: false, transactions: 50_000, ..TpcbParameters::default() };
    let requests = collect(&mut tpcb(parameters));
    let accounts: Vec<_> = requests.iter().filter(|request| request.file == ACCOUNT).collect();
    let mut absent: BTreeSet<u32> = BTreeSet::new();
    for pair in accounts.chunks_exact(2) {
        assert_eq!(pair[0].action, FileAction::Read);
        assert_eq!(pair[1].action, FileAction::Write);
        assert_ne!(pair[0].block, pair[1].block);
        assert!(pair[0].block < parameters.account_blocks);
        absent.remove(&pair[0].block);
        assert!(absent.insert(pair[1].block), "written twice without being read in between");
    }
    // 1,024 of 57,861 blocks are in the cache, so 1.77 % of the transactions find theirs.
    let misses = accounts.len() as f64 / 2.0 / 50_000.0;
    assert!((misses - (1.0 - 1024.0 / 57_861.0)).abs() < 0.004, "{misses}");
    let history: Vec<_> = requests.iter().filter(|request| request.file == HISTORY).collect();
    assert_eq!(history.len(), 50_000 * 50 / 4096);
    assert!((0..).zip(history).all(|(block, request)| request.block == block));
}

#[test]
fn every_data_write_is_followed_by_its_metadata() {
    let parameters = TpcbParameters { transactions: 200_000, ..TpcbParameters::default() };
    let mut last_indirect = 0;
    let mut distinct = Vec::new();
    let (mut dirty, mut data) = (BTreeSet::new(), 0);
    let requests = collect(&mut tpcb(parameters));
    for (place, request) in requests.iter().enumerate() {
        if request.action != FileAction::Write || request.file == METADATA {
            continue;
        }
        let metadata: Vec<u32> = requests[place + 1..]
            .iter()
            .take_while(|next| next.file == METADATA)
            .map(|next| next.block)
            .collect();
        let first = if request.file == ACCOUNT { 0 } else { 59 };
        let expected: Vec<u32> = match request.block {
            0..12 => vec![58],
            12..1036 => vec![first, 58],
            block => vec![first + 1, first + 2 + (block - 1036) / 1024, 58],
        };
        assert_eq!(metadata, expected, "{request:?}");
        last_indirect = last_indirect.max(*metadata.iter().max().unwrap());
        if request.file == ACCOUNT {
            dirty.extend(metadata);
            data += 1;
        }
        if data == 115 {
            distinct.push(dirty.len() as f64);
            (dirty, data) = (BTreeSet::new(), 0);
        }
    }
    // 2,441 blocks of history: a single indirect block, the double one and two leaves.
    assert_eq!(last_indirect, 59 + 3);
    // The single indirect block and 55 leaves hold 1,024 addresses each, the last leaf 505; the
    // double one and the inodes are sure. The paper takes all 58 and the inodes.
    let touched = |addresses: f64| 1.0 - (1.0 - addresses / 57_861.0).powi(115);
    let expected = 2.0 + 56.0 * touched(1024.0) + touched(505.0);
    let mean = distinct.iter().sum::<f64>() / distinct.len() as f64;
    assert!((mean - expected).abs() < 0.4, "{mean} blocks of metadata, not {expected}");
}

#[test]
fn the_survey_by_construction_is_the_one_inferred_of_what_is_touched() {
    for metadata in [true, false] {
        let parameters = TpcbParameters {
            transactions: 200_000,
            accounts: 40_000,
            account_blocks: 12_000,
            cache_blocks: 100,
            metadata,
            ..TpcbParameters::default()
        };
        // With a first eviction below the last indirect block, whose neighbour the inodes are: a
        // write right behind the known end is no evidence.
        let workload = Tpcb::new(&parameters, &RandomStreams::new(2)).unwrap();
        let known = workload.survey();
        let inferred = survey(&mut workload.clone());
        let touched: Vec<InitialFile> = known
            .initial
            .iter()
            .copied()
            .filter(|file| ![BRANCH, TELLER].contains(&file.file))
            .collect();
        assert_eq!(inferred.initial, touched);
        let untouched = u64::from(parameters.branch_blocks + parameters.teller_blocks);
        assert_eq!(inferred.peak_live_blocks + untouched, known.peak_live_blocks);
        assert_eq!(inferred.final_live_blocks + untouched, known.final_live_blocks);
        assert_eq!((inferred.requests, inferred.files), (known.requests, known.files));
    }
}

#[test]
fn gathered_metadata_is_written_once_and_synced() {
    let parameters =
        TpcbParameters { transactions: 50_000, dirty_blocks: 115, ..TpcbParameters::default() };
    let requests = collect(&mut tpcb(parameters));
    let plain = collect(&mut tpcb(TpcbParameters { dirty_blocks: 0, ..parameters }));
    let data = |requests: &[FileRequest]| -> Vec<FileRequest> {
        let is_data = |one: &&FileRequest| one.file != METADATA;
        requests.iter().filter(is_data).copied().collect()
    };
    assert_eq!(data(&requests), data(&plain));
    let mut segments = requests.split(|request| request.action == FileAction::Sync).peekable();
    while let Some(segment) = segments.next() {
        let written = segment.iter().filter(|one| one.action == FileAction::Write);
        let (metadata, data): (Vec<&FileRequest>, Vec<_>) =
            written.partition(|one| one.file == METADATA);
        if segments.peek().is_none() {
            assert!(data.len() < 115 && metadata.is_empty());
            break;
        }
        // A transaction can write a block of history besides.
        assert!((115..=116).contains(&data.len()), "{} blocks", data.len());
        let mut expected = BTreeSet::from([58]);
        for one in &data {
            let first = if one.file == ACCOUNT { 0 } else { 59 };
            let IndirectPath { root, leaf } = indirect_path(one.block);
            expected.extend([root, leaf].into_iter().flatten().map(|block| first + block));
        }
        assert!(metadata.iter().map(|one| one.block).eq(expected), "{metadata:?}");
    }
}

#[test]
fn what_is_moved_brings_the_next_write_forward() {
    let parameters = TpcbParameters { dirty_blocks: 20, ..TpcbParameters::default() };
    let blocks_until_sync = |moved: &[(u32, u32)]| {
        let mut workload = tpcb(parameters);
        for (file, block) in moved {
            workload.moved(*file, *block);
        }
        let mut batch = Vec::new();
        workload.next_batch(&mut batch, 10_000);
        assert_eq!(batch.last().map(|one| one.action), Some(FileAction::Sync));
        let written = batch.iter().filter(|one| one.action == FileAction::Write);
        let (metadata, data): (Vec<&FileRequest>, Vec<_>) =
            written.partition(|one| one.file == METADATA);
        (data.len(), metadata.iter().map(|one| one.block).collect::<BTreeSet<u32>>())
    };
    assert_eq!(blocks_until_sync(&[]).0, 20);
    // Two leaves of the account file, one of them twice; direct blocks and inodes are no buffers.
    let leaf = |number: u32| 1036 + 1024 * number;
    let moved = [(ACCOUNT, leaf(3)), (ACCOUNT, leaf(3) + 1), (ACCOUNT, leaf(40)), (ACCOUNT, 5)];
    let (data, metadata) = blocks_until_sync(&[&moved[..], &[(METADATA, 4)]].concat());
    assert_eq!(data, 18);
    assert!(metadata.contains(&5) && metadata.contains(&42));
    assert_eq!(blocks_until_sync(&[(HISTORY, 12)]).0, 19);
}

#[test]
fn transactions_count_once_their_requests_are_out() {
    let mut workload = tpcb(TpcbParameters {
        transactions: 500,
        interval: SimDuration(1000),
        ..TpcbParameters::default()
    });
    let mut last = 0;
    while let Some(request) = workload.next_request() {
        let done = workload.transactions();
        assert!(done >= last && done <= request.time.0 / 1000 + 1);
        assert!(done >= request.time.0 / 1000);
        last = done;
    }
    assert_eq!(workload.transactions(), 500);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |parameters: TpcbParameters| {
        Tpcb::new(&parameters, &RandomStreams::new(1)).unwrap_err().key
    };
    let fine = TpcbParameters::default();
    assert_eq!(refused(TpcbParameters { cache_blocks: 0, ..fine }), "cache_blocks");
    assert_eq!(refused(TpcbParameters { account_blocks: 1024, ..fine }), "account_blocks");
    assert_eq!(refused(TpcbParameters { accounts: 57_860, ..fine }), "accounts");
    assert_eq!(refused(TpcbParameters { transactions: u64::MAX, ..fine }), "transactions");
    let without = TpcbParameters { metadata: false, dirty_blocks: 1, ..fine };
    assert_eq!(refused(without), "dirty_blocks");
    let interval = SimDuration(u64::MAX);
    assert_eq!(refused(TpcbParameters { interval, ..fine }), "interval");
    let history_record_bytes = 4097;
    assert_eq!(refused(TpcbParameters { history_record_bytes, ..fine }), "history_record_bytes");
}
