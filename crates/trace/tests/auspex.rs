//! The published facts of the load like the Auspex trace, for several seeds and any knob, and that every request makes sense.

use std::collections::{BTreeMap, HashMap};

use agewell_core::{FileAction, FileRequest, RandomStreams, SimDuration};
use agewell_trace::workload::{AuspexLike, AuspexParameters, FileWorkload, survey};
use proptest::prelude::*;

/// What a load did, counted request by request with a length and a state for every file.
#[derive(Debug, Default)]
struct Tally {
    reads: u64,
    writes: u64,
    deletes: u64,
    syncs: u64,
    clients: Vec<bool>,
    last_ns: u64,
}

/// Runs a load to its end and checks every request on the way.
fn tally(load: &AuspexLike) -> Tally {
    let mut load = load.clone();
    let parameters = *load.parameters();
    let mut lengths: Vec<u32> = load.initial().iter().map(|file| file.blocks).collect();
    let mut deleted = vec![false; lengths.len()];
    let mut tally = Tally { clients: vec![false; parameters.clients as usize], ..Tally::default() };
    let mut dirty = vec![None; parameters.clients as usize];
    while let Some(request) = load.next_request() {
        let FileRequest { time, client, file, block, blocks, action } = request;
        assert!(time.0 >= tally.last_ns, "time falls at {request:?}");
        tally.last_ns = time.0;
        tally.clients[client as usize] = true;
        if action == FileAction::Sync {
            let since: Option<u64> = dirty[client as usize].take();
            let since = since.expect("a sync of what was written");
            assert_eq!(time.0 % parameters.sync_interval.0, 0);
            assert!(time.0 - since <= parameters.sync_interval.0, "synced in time");
            tally.syncs += 1;
            continue;
        }
        if file as usize >= lengths.len() {
            assert_eq!(action, FileAction::Write, "a file begins with a write: {request:?}");
            lengths.resize(file as usize + 1, 0);
            deleted.resize(file as usize + 1, false);
        }
        let length = &mut lengths[file as usize];
        assert!(!deleted[file as usize], "after its delete: {request:?}");
        match action {
            FileAction::Read => {
                assert!(block < *length, "beyond the end: {request:?}");
                tally.reads += u64::from(blocks);
            }
            FileAction::Write => {
                assert!(block <= *length, "leaves a hole: {request:?}");
                *length = (*length).max(block + 1);
                tally.writes += u64::from(blocks);
                dirty[client as usize].get_or_insert(time.0);
            }
            FileAction::Delete => {
                assert!(*length > 0, "an empty file: {request:?}");
                deleted[file as usize] = true;
                tally.deletes += 1;
            }
            _ => panic!("not made by this load: {request:?}"),
        }
    }
    assert!(dirty.iter().all(Option::is_none) || parameters.sync_interval.0 == 0);
    assert_eq!(load.next_request(), None, "none stays none");
    tally
}

/// Live blocks at the end of those written since the beginning.
fn written_and_live(load: &AuspexLike) -> u64 {
    struct Writes {
        load: AuspexLike,
        initial_files: u32,
    }
    impl FileWorkload for Writes {
        fn next_request(&mut self) -> Option<FileRequest> {
            // Without reads, and with every file known to be absent, all begins empty.
            loop {
                let request = self.load.next_request()?;
                let kept = [FileAction::Write, FileAction::Delete].contains(&request.action);
                let old = request.file < self.initial_files;
                if kept && !(old && request.action == FileAction::Delete) {
                    return Some(request);
                }
            }
        }
    }
    let initial_files = load.initial().len() as u32;
    let survey = survey(&mut Writes { load: load.clone(), initial_files });
    assert_eq!(survey.initial_blocks, 0);
    survey.final_live_blocks
}

fn auspex(locality: f64, seed: u64) -> AuspexLike {
    let parameters = AuspexParameters { locality, ..AuspexParameters::default() };
    AuspexLike::new(&parameters, &RandomStreams::new(seed)).unwrap()
}

#[test]
fn the_published_facts_hold_for_any_seed_and_knob() {
    for (locality, seed) in [(0.8, 1), (0.0, 2), (1.0, 3)] {
        let load = auspex(locality, seed);
        let tally = tally(&load);
        assert_eq!((tally.reads, tally.writes, tally.deletes), (4_000_000, 1_000_000, 40_000));
        assert!(tally.clients.iter().all(|seen| *seen));
        let days = tally.last_ns as f64 / 86_400e9;
        assert!((days - 7.0).abs() < 0.02 * 7.0, "{days} days");
        let survey = load.survey();
        assert_eq!((survey.initial_blocks, survey.final_live_blocks), (324_707, 384_521));
        assert_eq!(survey.initial, load.initial(), "the survey's rule finds the old files");
        assert_eq!(survey.requests, 5_040_000 + tally.syncs);
        // The disk is chosen for the peak, which is the end but for temporary files.
        let above = survey.peak_live_blocks as f64 / 384_521.0;
        assert!(above < 1.02, "peak {above} of the end");
        assert_eq!(written_and_live(&load), 146_484);
    }
}

/// The most segments of 32 blocks with something live in them, when the old files lie side by side
/// and every write goes to the end of an endless log.
fn segments_in_use_max(load: &AuspexLike) -> usize {
    const NOWHERE: usize = usize::MAX;
    let mut load = load.clone();
    let (mut live, mut places): (Vec<u32>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    let (mut end, mut in_use, mut in_use_max) = (0, 0, 0);
    let mut append = |live: &mut Vec<u32>, in_use: &mut usize| {
        live.resize(live.len().max(end / 32 + 1), 0);
        *in_use += usize::from(live[end / 32] == 0);
        live[end / 32] += 1;
        end += 1;
        (end - 1) / 32
    };
    for file in load.initial() {
        places.push((0..file.blocks).map(|_| append(&mut live, &mut in_use)).collect());
    }
    while let Some(FileRequest { file, block, action, .. }) = load.next_request() {
        let (file, block) = (file as usize, block as usize);
        places.resize(places.len().max(file + 1), Vec::new());
        let gone = match action {
            FileAction::Write => {
                let blocks = &mut places[file];
                blocks.resize(blocks.len().max(block + 1), NOWHERE);
                vec![std::mem::replace(&mut blocks[block], append(&mut live, &mut in_use))]
            }
            FileAction::Delete => std::mem::take(&mut places[file]),
            _ => continue,
        };
        for segment in gone.into_iter().filter(|segment| *segment != NOWHERE) {
            live[segment] -= 1;
            in_use -= usize::from(live[segment] == 0);
        }
        in_use_max = in_use_max.max(in_use);
    }
    in_use_max
}

#[test]
fn segments_empty_by_themselves_below_60_percent_use() {
    for seed in 1..4 {
        let load = auspex(AuspexParameters::default().locality, seed);
        let segments = load.survey().peak_live_blocks as f64 / 0.6 / 32.0;
        let in_use = segments_in_use_max(&load) as f64;
        assert!(in_use < segments, "{in_use} of {segments} segments at 60 % use");
    }
}

#[test]
fn more_locality_lets_more_segments_empty() {
    let in_use = [0.0, 0.5, 0.95].map(|locality| segments_in_use_max(&auspex(locality, 1)));
    assert!(in_use[0] > in_use[1] && in_use[1] > in_use[2], "{in_use:?} segments");
}

#[test]
fn a_twelfth_of_the_writes_is_absorbed_by_a_write_buffer() {
    let mut load = auspex(AuspexParameters::default().locality, 1);
    let (mut buffer, mut absorbed) = (Vec::new(), 0);
    while let Some(request) = load.next_request() {
        let key = (request.file, request.block);
        match request.action {
            FileAction::Write if buffer.contains(&key) => absorbed += 1,
            FileAction::Write => buffer.push(key),
            FileAction::Sync => buffer.clear(),
            _ => {}
        }
        if buffer.len() == 32 {
            buffer.clear();
        }
    }
    assert!((70_000..100_000).contains(&absorbed), "{absorbed} of 1,000,000");
}

/// Blocks that a cache of `blocks` with LRU did not have when they were read; writes stay in it.
fn misses(load: &AuspexLike, blocks: usize) -> u64 {
    let mut load = load.clone();
    let (mut last, mut order) = (HashMap::new(), BTreeMap::new());
    let mut lengths: HashMap<u32, u32> = HashMap::new();
    let mut missed = 0;
    for time in 0_u64.. {
        let Some(FileRequest { file, block, action, .. }) = load.next_request() else { break };
        match action {
            FileAction::Read | FileAction::Write => {
                let length = lengths.entry(file).or_default();
                *length = (*length).max(block + 1);
                let before = last.insert((file, block), time);
                missed += u64::from(before.is_none() && action == FileAction::Read);
                before.map(|before| order.remove(&before));
                order.insert(time, (file, block));
                if order.len() > blocks {
                    let (_, oldest) = order.pop_first().expect("it is not empty");
                    last.remove(&oldest);
                }
            }
            FileAction::Delete => {
                let length = lengths.remove(&file).unwrap_or(0);
                let cached = (0..length).filter_map(|block| last.remove(&(file, block)));
                cached.for_each(|time| assert!(order.remove(&time).is_some()));
            }
            _ => {}
        }
    }
    missed
}

#[test]
fn behind_the_cache_are_half_as_many_reads_as_writes() {
    // Matthews 1999, §3.4, of Roselli 1998; the cache of §5.2.2. A log's buffer absorbs a twelfth
    // of the writes.
    for seed in 1..4 {
        let load = auspex(AuspexParameters::default().locality, seed);
        let ratio = misses(&load, 15_625) as f64 / (1_000_000.0 * 11.0 / 12.0);
        assert!((ratio / 0.5 - 1.0).abs() < 0.1, "{ratio} reads a write");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn small_loads_keep_their_budgets(
        seed: u64,
        clients in 1_u32..20,
        initial_blocks in 1_u64..3000,
        growth in 0_u64..500,
        overwritten in 0.0..1.0,
        deletes in 0_u64..300,
        rewrites in 0_u64..3000,
        repeated_reads in 0_u64..5000,
        locality in 0.0..=1.0,
        seconds in prop_oneof![Just(0), 1_u64..700_000],
    ) {
        let written_live_blocks = growth + 1 + (overwritten * (initial_blocks - 1) as f64) as u64;
        let parameters = AuspexParameters {
            clients,
            duration: SimDuration(seconds * 1_000_000_000),
            reads: initial_blocks + repeated_reads,
            writes: written_live_blocks + deletes + rewrites,
            deletes,
            initial_blocks,
            final_blocks: initial_blocks + growth,
            written_live_blocks,
            locality,
            ..AuspexParameters::default()
        };
        let load = AuspexLike::new(&parameters, &RandomStreams::new(seed)).unwrap();
        let tally = tally(&load);
        prop_assert_eq!(
            (tally.reads, tally.writes, tally.deletes),
            (parameters.reads, parameters.writes, deletes)
        );
        let survey = load.survey();
        prop_assert_eq!(&survey.initial, &load.initial());
        prop_assert_eq!(survey.final_live_blocks, parameters.final_blocks);
    }
}
