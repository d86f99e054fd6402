//! The transaction processing row of Matthews 1999, Table 4-1.

use agewell_core::FileRequest;

use super::*;
use crate::workload::FileWorkload;
use crate::workload::profile::variation;
use crate::workload::tests::check_clients;

fn made(parameters: &TransactionProcessingParameters) -> TransactionProcessing {
    TransactionProcessing::new(parameters, &RandomStreams::new(1)).unwrap()
}

#[test]
fn it_has_the_properties_of_its_row() {
    let parameters = TransactionProcessingParameters::default();
    let profile = check_clients(&made(&parameters));
    // Order: random, both ways; the data is hardly ever read or written in sequence.
    let of = |file: u32, action: FileAction| {
        let fits = |request: &&FileRequest| request.file == file && request.action == action;
        profile.requests.iter().filter(fits).map(|request| request.block).collect::<Vec<u32>>()
    };
    for action in [FileAction::Read, FileAction::Write] {
        let blocks = of(ACCOUNT, action);
        assert_eq!(blocks.len(), 40_000);
        let follows = blocks.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(follows < 40, "{follows} of 40,000");
    }
    // Locality: none for data (uniform over 9,877 blocks: the busiest tenth has about 19 %), yes for
    // indices, whose upper levels are two thirds of the reads.
    for action in [FileAction::Read, FileAction::Write] {
        let busiest = profile.busiest_tenth(action, ACCOUNT..=ACCOUNT);
        assert!(busiest < 0.22, "{busiest}");
    }
    let busiest = profile.busiest_tenth(FileAction::Read, INDEX..=INDEX);
    assert!(busiest > 0.7, "{busiest}");
    // Interaction: interleaved at the finest grain.
    assert!(profile.mixed_share(10) > 0.999);
    // Rate: sustained.
    let rate = profile.rate(10_000_000_000);
    assert!(variation(&rate) < 0.02, "{}", variation(&rate));
    // Lifetimes vary: the log is written again at once, accounts much later, history never.
    let mut lifetimes = profile.lifetimes_ns.clone();
    lifetimes.sort_unstable();
    let (young, old) = (lifetimes[lifetimes.len() / 10], lifetimes[lifetimes.len() * 9 / 10]);
    assert!(young < 1_000_000_000 && old > 600_000_000_000, "{young} and {old} ns");
    assert_eq!(profile.lengths[HISTORY as usize], 40_000 * 50 / 8192);
    // Frequent commits: a sync a transaction.
    let syncs = profile.requests.iter().filter(|request| request.action == FileAction::Sync);
    assert_eq!(syncs.count(), 40_000);
}

#[test]
fn a_transaction_walks_down_the_index_to_its_account() {
    let parameters = TransactionProcessingParameters {
        terminals: 1,
        transactions: 50,
        ..TransactionProcessingParameters::default()
    };
    let mut workload = made(&parameters);
    let (leaves, inner) = parameters.index_pages();
    assert_eq!((leaves, inner, parameters.index_blocks()), (2347, 7, 2355));
    let all: Vec<_> = std::iter::from_fn(|| workload.next_request()).collect();
    for transaction in all.split(|request| request.action == FileAction::Sync).take(50) {
        let path: Vec<(u32, u32)> =
            transaction[..4].iter().map(|request| (request.file, request.block)).collect();
        let leaf = path[2].1 - 1 - inner;
        assert_eq!(path[0], (INDEX, 0));
        assert_eq!(path[1], (INDEX, 1 + leaf / 341));
        // 341 entries of a leaf lie in at most six blocks of 81 accounts.
        let first = leaf * 341 / 81;
        assert!((first..first + 6).contains(&path[3].1) && path[3].0 == ACCOUNT);
        assert_eq!((transaction[4].file, transaction[4].block), path[3]);
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let sane = TransactionProcessingParameters::default();
    let refused = |parameters| {
        TransactionProcessing::new(&parameters, &RandomStreams::new(1)).unwrap_err().key
    };
    assert_eq!(refused(TransactionProcessingParameters { accounts: 0, ..sane }), "accounts");
    assert_eq!(refused(TransactionProcessingParameters { log_blocks: 0, ..sane }), "log_blocks");
    assert_eq!(refused(TransactionProcessingParameters { terminals: 0, ..sane }), "terminals");
    let interval = SimDuration(u64::MAX);
    assert_eq!(refused(TransactionProcessingParameters { interval, ..sane }), "interval");
}
