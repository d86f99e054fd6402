//! The decision support row of Matthews 1999, Table 4-1.

use std::collections::BTreeMap;

use super::*;
use crate::workload::FileWorkload;
use crate::workload::profile::variation;
use crate::workload::tests::check_clients;

fn made(parameters: &DecisionSupportParameters) -> DecisionSupport {
    DecisionSupport::new(parameters, &RandomStreams::new(1)).unwrap()
}

#[test]
fn it_has_the_properties_of_its_row() {
    let parameters = DecisionSupportParameters::default();
    let profile = check_clients(&made(&parameters));
    // Write order: appends to the table, updates of random leaves.
    let writes = || profile.requests.iter().filter(|request| request.action == FileAction::Write);
    let mut end = parameters.table_blocks;
    for append in writes().filter(|write| write.file == TABLE) {
        assert_eq!(append.block, end, "nothing but appends");
        end += append.blocks;
    }
    assert_eq!(end, 12_000 + 15 * 32);
    let updates: Vec<u32> =
        writes().filter(|write| write.file != TABLE).map(|write| write.block).collect();
    assert_eq!(updates.len(), 15 * 32 * 3);
    let follows = updates.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(follows < 10, "{follows}");
    // Read order: half of the blocks in scans, the others one by one.
    let sequential = profile.sequential_share(FileAction::Read);
    assert!((0.4..0.9).contains(&sequential), "{sequential}");
    // Locality: none for data, some for indices.
    let data = profile.busiest_tenth(FileAction::Read, TABLE..=TABLE);
    assert!(data < 0.16, "{data}");
    let indices = profile.busiest_tenth(FileAction::Read, 1..4);
    assert!(indices > 0.5, "{indices}");
    // Interaction: rows are written once and read many times.
    let rows_written = u64::from(end - parameters.table_blocks);
    let table_writes: u64 =
        writes().filter(|write| write.file == TABLE).map(|write| u64::from(write.blocks)).sum();
    assert_eq!(table_writes, rows_written);
    assert!(profile.reads_per_written_block() > 4.0, "{}", profile.reads_per_written_block());
    // Rate varies.
    assert!(variation(&profile.rate(60_000_000_000)) > 1.0);
    // Size: huge; four fifths of everything is one file.
    let all: u32 = profile.lengths.iter().sum();
    assert!(profile.lengths[TABLE as usize] * 5 > all * 2, "{:?}", profile.lengths);
    // Lifetime: long; only blocks of indices die, and few of them.
    assert!(profile.lifetimes_ns.len() < 400, "{}", profile.lifetimes_ns.len());
}

#[test]
fn a_common_query_follows_its_index_in_the_same_order_each_time() {
    let parameters = DecisionSupportParameters {
        analysts: 1,
        queries: 40,
        scan_share: 0.0,
        common_share: 1.0,
        common_queries: 3,
        load_every: 0,
        ..DecisionSupportParameters::default()
    };
    let mut workload = made(&parameters);
    let all: Vec<_> = std::iter::from_fn(|| workload.next_request()).collect();
    // A query ends where its client pauses.
    let mut queries: BTreeMap<Vec<(u32, u32)>, u32> = BTreeMap::new();
    let mut query = Vec::new();
    for (index, request) in all.iter().enumerate() {
        query.push((request.file, request.block));
        let pause = all.get(index + 1).is_none_or(|next| next.time.0 - request.time.0 > 2_000_000);
        if pause {
            *queries.entry(std::mem::take(&mut query)).or_default() += 1;
        }
    }
    assert_eq!(queries.values().sum::<u32>(), 40);
    assert_eq!(queries.len(), 3, "three common queries, and each is always the same");
    for query in queries.keys() {
        let data = query.iter().filter(|(file, _)| *file == TABLE).count();
        assert_eq!(data, 2000);
        let leaves = query.len() - data;
        assert!((6..=7).contains(&leaves), "{leaves} leaves of 341 entries");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let sane = DecisionSupportParameters::default();
    let refused =
        |parameters| DecisionSupport::new(&parameters, &RandomStreams::new(1)).unwrap_err().key;
    assert_eq!(refused(DecisionSupportParameters { table_blocks: 0, ..sane }), "table_blocks");
    assert_eq!(refused(DecisionSupportParameters { scan_share: 1.1, ..sane }), "scan_share");
    let query_entries = 1_000_000;
    assert_eq!(refused(DecisionSupportParameters { query_entries, ..sane }), "query_entries");
    assert_eq!(refused(DecisionSupportParameters { common_queries: 0, ..sane }), "common_queries");
}
