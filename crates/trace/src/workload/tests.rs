//! What holds for every workload, and the synthetic update workloads against what they promise.

use agewell_core::{FileAction, FileRequest, RandomStreams, SimDuration};
use proptest::prelude::*;

use super::profile::Profile;
use super::*;

/// All requests of a workload.
fn collect(mut workload: impl FileWorkload) -> Vec<FileRequest> {
    std::iter::from_fn(|| workload.next_request()).collect()
}

fn streams() -> RandomStreams {
    RandomStreams::new(1)
}

fn parameters(blocks: u32, fill: Fill) -> UpdateParameters {
    UpdateParameters { blocks, fill, ..UpdateParameters::default() }
}

fn written(requests: &[FileRequest]) -> Vec<u32> {
    let writes = requests.iter().filter(|request| request.action == FileAction::Write);
    writes.map(|request| request.block).collect()
}

/// Holds a workload of updates against its parameters and its own survey.
fn check_updates<C: BlockChoice + Clone>(workload: &UpdateWorkload<C>) {
    let parameters = *workload.parameters();
    let mut clone = workload.clone();
    let requests = collect(&mut clone);
    assert_eq!(clone.next_request(), None, "none stays none");
    assert!(requests.is_sorted_by_key(|request| request.time));
    let surveyed = workload.survey();
    assert_eq!(requests.len() as u64, surveyed.requests);
    let fill = requests.len().min(if parameters.fill == Fill::InStream {
        parameters.blocks as usize
    } else {
        0
    });
    assert_eq!(written(&requests[..fill]), (0..fill as u32).collect::<Vec<u32>>());
    let (mut since_sync, mut syncs, mut updates) = (0, 0, 0);
    for request in &requests[fill..] {
        assert_eq!((request.client, request.file), (0, 0));
        if request.action == FileAction::Sync {
            assert_eq!(since_sync, parameters.sync_every);
            (since_sync, syncs) = (0, syncs + 1);
        } else {
            assert_eq!(request.action, FileAction::Write);
            assert_eq!(request.blocks, 1);
            assert!(request.block < parameters.blocks);
            assert_eq!(request.time.0, updates * parameters.interval.0);
            (since_sync, updates) = (since_sync + 1, updates + 1);
        }
    }
    assert_eq!(updates, parameters.updates());
    assert_eq!(syncs, updates.checked_div(u64::from(parameters.sync_every)).unwrap_or(0));
}

/// Holds a workload of clients against what all of them promise; what was measured of it.
pub(super) fn check_clients<B: Behaviour>(workload: &ClientWorkload<B>) -> Profile {
    let profile = Profile::of(&workload.initial(), &mut workload.clone());
    let requests = collect(workload.clone());
    assert_eq!(requests, profile.requests, "a copy makes the same requests");
    assert_eq!(profile.hole_reads, 0, "what is read has been written, or was there");
    let surveyed = workload.survey();
    assert_eq!(surveyed.requests, requests.len() as u64);
    assert_eq!(surveyed.initial, workload.initial());
    // The walk, block by block.
    let mut live: std::collections::BTreeSet<(u32, u32)> = surveyed
        .initial
        .iter()
        .flat_map(|file| (0..file.blocks).map(move |block| (file.file, block)))
        .collect();
    assert_eq!(live.len() as u64, surveyed.initial_blocks);
    let mut peak = live.len();
    for request in &requests {
        let FileRequest { file, block, blocks, action, client, .. } = *request;
        assert!(client < surveyed.clients && file < surveyed.files);
        match action {
            FileAction::Write => live.extend((block..block + blocks).map(|block| (file, block))),
            FileAction::Delete | FileAction::Truncate => {
                let gone = live.range((file, 0)..=(file, u32::MAX)).copied().collect::<Vec<_>>();
                for block in &gone {
                    live.remove(block);
                }
            }
            FileAction::Read | FileAction::Sync => {}
        }
        peak = peak.max(live.len());
    }
    assert_eq!(peak as u64, surveyed.peak_live_blocks);
    assert_eq!(live.len() as u64, surveyed.final_live_blocks);
    profile
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn update_workloads_keep_their_parameters(
        blocks in 2_u32..500,
        updates_per_block in 0_u32..12,
        sync_every in 0_u32..7,
        interval in prop_oneof![Just(0), 1_u64..1_000_000_000].prop_map(SimDuration),
        in_stream: bool,
        seed: u64,
        alpha in 0.0..2.0,
        hot_fraction in 0.01..0.99,
        hot_share in 0.0..=1.0,
        shift_every in 0_u64..300,
    ) {
        let fill = if in_stream { Fill::InStream } else { Fill::Before };
        let update = UpdateParameters { blocks, updates_per_block, sync_every, interval, fill };
        let streams = RandomStreams::new(seed);
        check_updates(&RandomUpdate::new(&update, &streams).unwrap());
        check_updates(&Sequential::new(&update).unwrap());
        check_updates(&Zipf::new(&ZipfParameters { update, alpha }, &streams).unwrap());
        let hot = HotColdParameters { update, hot_fraction, hot_share, shift_every };
        check_updates(&HotCold::new(&hot, &streams).unwrap());
    }
}

#[test]
fn the_survey_by_construction_is_the_one_inferred() {
    for fill in [Fill::Before, Fill::InStream] {
        let update = parameters(4000, fill);
        let mut random = RandomUpdate::new(&update, &streams()).unwrap();
        assert_eq!(random.survey(), survey(&mut random.clone()));
        assert_eq!(survey(&mut random).peak_live_blocks, 4000);
    }
    // A file rewritten from its first block on without being read is taken for new; its
    // generator knows better.
    let mut sequential = Sequential::new(&parameters(100, Fill::Before)).unwrap();
    assert_eq!(sequential.survey().initial_blocks, 100);
    assert_eq!(survey(&mut sequential).initial_blocks, 0);
}

#[test]
fn batches_are_the_same_stream() {
    let random = RandomUpdate::new(&parameters(70, Fill::InStream), &streams()).unwrap();
    let mut boxed: Box<dyn FileWorkload> = Box::new(random.clone());
    let (mut batch, mut all) = (Vec::new(), Vec::new());
    loop {
        boxed.next_batch(&mut batch, 64);
        if batch.is_empty() {
            break;
        }
        assert!(batch.len() == 64 || boxed.next_request().is_none());
        all.append(&mut batch);
    }
    assert_eq!(all, collect(random));
}

#[test]
fn a_seed_fixes_the_stream_and_another_changes_it() {
    let made = |seed| {
        let streams = RandomStreams::new(seed);
        let parameters = ZipfParameters { update: parameters(300, Fill::Before), alpha: 0.9 };
        collect(Zipf::new(&parameters, &streams).unwrap())
    };
    assert_eq!(made(3), made(3));
    assert_ne!(made(3), made(4));
}

#[test]
fn random_updates_are_uniform() {
    let update = UpdateParameters { updates_per_block: 1000, ..parameters(1000, Fill::Before) };
    let mut counts = [0_u32; 1000];
    for block in written(&collect(RandomUpdate::new(&update, &streams()).unwrap())) {
        counts[block as usize] += 1;
    }
    let chi: f64 = counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
    // 999 degrees of freedom: mean 999, deviation 44.7; six deviations either way.
    assert!((chi - 999.0).abs() < 268.0, "chi-square {chi}");
}

#[test]
fn zipf_updates_follow_the_law_for_every_rank_and_ranks_are_scattered() {
    let update = UpdateParameters { updates_per_block: 1000, ..parameters(2000, Fill::Before) };
    for alpha in [0.0, 0.6, 1.0] {
        let zipf = Zipf::new(&ZipfParameters { update, alpha }, &streams()).unwrap();
        let probabilities = zipf.probabilities();
        let mut sorted = probabilities.clone();
        sorted.sort_by(|one, other| other.total_cmp(one));
        let harmonic: f64 = (1..=2000).map(|rank| f64::from(rank).powf(-alpha)).sum();
        for (rank, probability) in (1..).zip(&sorted) {
            let expected = f64::from(rank).powf(-alpha) / harmonic;
            assert!((probability / expected - 1.0).abs() < 1e-5, "rank {rank} at {alpha}");
        }
        let first_half: f64 = probabilities[..1000].iter().sum();
        let top_half: f64 = sorted[..1000].iter().sum();
        assert!(alpha == 0.0 || first_half < 0.9 * top_half, "not in order of address");
        let mut counts = vec![0_u32; 2000];
        for block in written(&collect(zipf)) {
            counts[block as usize] += 1;
        }
        let chi: f64 = counts
            .iter()
            .zip(&probabilities)
            .map(|(count, p)| (f64::from(*count) - 2e6 * p).powi(2) / (2e6 * p))
            .sum();
        assert!((chi - 1999.0).abs() < 6.0 * 63.2, "chi-square {chi} at alpha {alpha}");
    }
}

#[test]
fn hot_blocks_get_their_share_and_the_hot_range_moves() {
    let update = UpdateParameters { updates_per_block: 100, ..parameters(1000, Fill::Before) };
    let hot_share = |parameters: HotColdParameters, updates: std::ops::Range<usize>, hot: u32| {
        let blocks = written(&collect(HotCold::new(&parameters, &streams()).unwrap()));
        let range = &blocks[updates];
        let hits = range.iter().filter(|block| (hot..hot + 100).contains(*block)).count();
        hits as f64 / range.len() as f64
    };
    let fixed = HotColdParameters { update, ..HotColdParameters::default() };
    // Standard deviation 0.001 over 100,000 updates.
    assert!((hot_share(fixed, 0..100_000, 0) - 0.9).abs() < 0.006);
    let moving = HotColdParameters { shift_every: 20_000, ..fixed };
    for phase in 0..5 {
        let updates = phase * 20_000..(phase + 1) * 20_000;
        assert!((hot_share(moving, updates, phase as u32 * 100) - 0.9).abs() < 0.013);
    }
}

#[test]
fn parameters_out_of_range_are_refused_in_one_line() {
    let none = RandomUpdate::new(&parameters(0, Fill::Before), &streams()).unwrap_err();
    assert_eq!(none.to_string(), "workload random-update: blocks is 0; it must be at least 1");
    let update = parameters(100, Fill::Before);
    for hot_fraction in [0.0, 1.0, -0.5, f64::NAN] {
        let hot = HotColdParameters { update, hot_fraction, ..HotColdParameters::default() };
        assert_eq!(HotCold::new(&hot, &streams()).unwrap_err().key, "hot_fraction");
    }
    for hot_share in [-0.1, 1.1, f64::NAN] {
        let hot = HotColdParameters { update, hot_share, ..HotColdParameters::default() };
        assert_eq!(HotCold::new(&hot, &streams()).unwrap_err().key, "hot_share");
    }
    for alpha in [-0.1, 21.0, f64::NAN] {
        let zipf = Zipf::new(&ZipfParameters { update, alpha }, &streams());
        assert_eq!(zipf.unwrap_err().key, "alpha");
    }
    let interval = SimDuration(u64::MAX);
    let slow = Sequential::new(&UpdateParameters { interval, ..update }).unwrap_err();
    assert_eq!(slow.key, "interval");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn workloads_of_clients_keep_their_promises_for_any_seed_and_size(
        seed: u64,
        clients in 1_u32..5,
        request_blocks in 1_u32..10,
        count in 1_u32..20,
        size in 4_u32..40,
        share in 0.0..=1.0_f64,
    ) {
        let streams = RandomStreams::new(seed);
        let multimedia = MultimediaParameters {
            films: count,
            film_blocks_min: size,
            film_blocks_max: size * 3,
            players: clients,
            plays: 3 * count,
            recorders: clients / 2,
            recordings: count,
            request_blocks,
            ..MultimediaParameters::default()
        };
        check_clients(&Multimedia::new(&multimedia, &streams).unwrap());
        let development = SoftwareDevelopmentParameters {
            developers: clients,
            projects: clients + count / 4,
            sources: size,
            headers: count,
            includes: count / 2,
            cycles: count,
            rebuild_every: count % 5,
            request_blocks,
            ..SoftwareDevelopmentParameters::default()
        };
        check_clients(&SoftwareDevelopment::new(&development, &streams).unwrap());
        let transactions = TransactionProcessingParameters {
            accounts: 500 * size,
            branch_blocks: count,
            log_blocks: size,
            terminals: clients,
            transactions: 50 * count,
            ..TransactionProcessingParameters::default()
        };
        check_clients(&TransactionProcessing::new(&transactions, &streams).unwrap());
        let decisions = DecisionSupportParameters {
            table_blocks: 10 * size,
            indices: clients,
            analysts: clients,
            queries: count,
            scan_share: share,
            common_share: share,
            query_entries: 20 * size,
            load_every: count % 4,
            request_blocks,
            ..DecisionSupportParameters::default()
        };
        check_clients(&DecisionSupport::new(&decisions, &streams).unwrap());
        let science = ScientificSimulationParameters {
            inputs: count,
            input_blocks_min: size,
            experiments: 2 * count,
            output_blocks_min: size,
            step_blocks: count,
            failure_share: 0.7 * share,
            strided_share: share,
            scientists: clients,
            request_blocks,
            ..ScientificSimulationParameters::default()
        };
        check_clients(&ScientificSimulation::new(&science, &streams).unwrap());
        let long_term = LongTermParameters {
            machines: clients,
            weeks: 1 + count % 3,
            programs: size,
            libraries: 4 + count,
            runs: 10 * count,
            read_write_ratio: 0.2 + 10.0 * share,
            paged_share: share,
            request_blocks,
            ..LongTermParameters::default()
        };
        check_clients(&LongTerm::new(&long_term, &streams).unwrap());
    }
}

#[test]
fn another_seed_makes_another_stream_of_every_family() {
    let heads = |seed| {
        let streams = RandomStreams::new(seed);
        let head = |mut workload: Box<dyn FileWorkload>| {
            let mut batch = Vec::new();
            workload.next_batch(&mut batch, 500);
            batch
        };
        [
            head(Box::new(Multimedia::new(&MultimediaParameters::default(), &streams).unwrap())),
            head(Box::new(
                SoftwareDevelopment::new(&SoftwareDevelopmentParameters::default(), &streams)
                    .unwrap(),
            )),
            head(Box::new(
                TransactionProcessing::new(&TransactionProcessingParameters::default(), &streams)
                    .unwrap(),
            )),
            head(Box::new(
                DecisionSupport::new(&DecisionSupportParameters::default(), &streams).unwrap(),
            )),
            head(Box::new(
                ScientificSimulation::new(&ScientificSimulationParameters::default(), &streams)
                    .unwrap(),
            )),
            head(Box::new(LongTerm::new(&LongTermParameters::default(), &streams).unwrap())),
        ]
    };
    let (one, same, other) = (heads(1), heads(1), heads(2));
    assert_eq!(one, same);
    for (family, (one, other)) in one.iter().zip(&other).enumerate() {
        assert_ne!(one, other, "family {family}");
    }
}
