//! The survey against a naive model: sets of blocks, evidence first and counting after.

use std::collections::BTreeSet;

use agewell_core::SimTime;
use proptest::prelude::*;

use super::*;

const FILES: u32 = 4;

fn request(action: FileAction, file: u32, block: u32, blocks: u32) -> FileRequest {
    FileRequest { time: SimTime::ZERO, client: file % 3, file, block, blocks, action }
}

/// A stream that was made before.
struct Replay<'a>(std::slice::Iter<'a, FileRequest>);

impl FileWorkload for Replay<'_> {
    fn next_request(&mut self) -> Option<FileRequest> {
        self.0.next().copied()
    }
}

fn surveyed(requests: &[FileRequest]) -> Survey {
    survey(&mut Replay(requests.iter()))
}

/// The length that `file` had before the stream, block by block as the module's rule says.
fn naive_initial(requests: &[FileRequest], file: u32) -> u32 {
    let (mut initial, mut present) = (0, BTreeSet::new());
    for request in requests.iter().filter(|request| request.file == file) {
        match request.action {
            FileAction::Sync => {}
            FileAction::Delete | FileAction::Truncate => {
                let kept = if request.action == FileAction::Delete { 0 } else { request.block };
                let shown = if present.is_empty() { kept.max(1) } else { kept };
                return if (0..shown).all(|b| present.contains(&b)) { initial } else { shown };
            }
            FileAction::Read | FileAction::Write => {
                for block in request.block..request.block + request.blocks {
                    let made = request.action == FileAction::Write;
                    let known_to = if made { block } else { block + 1 };
                    if (0..known_to).any(|below| !present.contains(&below)) {
                        initial = block + 1;
                        present.extend(0..=block);
                    }
                    present.insert(block);
                }
            }
        }
    }
    initial
}

/// Initial length of every file, and live blocks at the most and at the end.
fn naive(requests: &[FileRequest]) -> (Vec<u32>, u64, u64) {
    let initial: Vec<u32> = (0..FILES).map(|file| naive_initial(requests, file)).collect();
    let mut live: BTreeSet<(u32, u32)> = (0..FILES)
        .flat_map(|file| (0..initial[file as usize]).map(move |block| (file, block)))
        .collect();
    let mut peak = live.len();
    for request in requests {
        let FileRequest { file, block, blocks, action, .. } = *request;
        match action {
            FileAction::Write => live.extend((block..block + blocks).map(|block| (file, block))),
            FileAction::Delete => live.retain(|(of, _)| *of != file),
            FileAction::Truncate => live.retain(|(of, at)| *of != file || *at < block),
            FileAction::Read | FileAction::Sync => {}
        }
        peak = peak.max(live.len());
    }
    (initial, peak as u64, live.len() as u64)
}

fn any_request() -> impl Strategy<Value = FileRequest> {
    let action = prop_oneof![
        4 => Just(FileAction::Read),
        8 => Just(FileAction::Write),
        1 => Just(FileAction::Delete),
        1 => Just(FileAction::Truncate),
        1 => Just(FileAction::Sync),
    ];
    // Blocks around 64 meet both sides of a word of the fragments.
    let block = prop_oneof![0_u32..12, 55_u32..75, 120_u32..140];
    (action, 0..FILES, block, 1_u32..10)
        .prop_map(|(action, file, block, blocks)| request(action, file, block, blocks))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_survey_agrees_with_sets_of_blocks(
        requests in prop::collection::vec(any_request(), 0..60)
    ) {
        let survey = surveyed(&requests);
        let (initial, peak, last) = naive(&requests);
        let mut lengths = vec![0; FILES as usize];
        for file in &survey.initial {
            lengths[file.file as usize] = file.blocks;
        }
        prop_assert_eq!(&lengths, &initial);
        prop_assert_eq!(survey.initial_blocks, initial.iter().map(|b| u64::from(*b)).sum::<u64>());
        prop_assert_eq!(survey.peak_live_blocks, peak);
        prop_assert_eq!(survey.final_live_blocks, last);
        prop_assert_eq!(survey.requests, requests.len() as u64);
    }

    #[test]
    fn a_request_of_many_blocks_counts_as_many_requests(
        requests in prop::collection::vec(any_request(), 0..60)
    ) {
        let mut split = Vec::new();
        for whole in &requests {
            if matches!(whole.action, FileAction::Read | FileAction::Write) {
                split.extend((0..whole.blocks).map(|offset| {
                    request(whole.action, whole.file, whole.block + offset, 1)
                }));
            } else {
                split.push(*whole);
            }
        }
        let count = requests.len() as u64;
        prop_assert_eq!(surveyed(&requests), Survey { requests: count, ..surveyed(&split) });
    }
}

#[test]
fn evidence_reaches_back() {
    use FileAction::{Delete, Read, Truncate, Write};
    // Appends taken for new, until a write far beyond shows that the file was long.
    let long = [request(Write, 0, 0, 3), request(Write, 0, 9, 1)];
    let survey = surveyed(&long);
    assert_eq!(survey.initial, [InitialFile { file: 0, blocks: 10 }]);
    assert_eq!((survey.peak_live_blocks, survey.final_live_blocks), (10, 10));
    // A new file, deleted and made again.
    let again = [request(Write, 1, 0, 5), request(Delete, 1, 0, 0), request(Write, 1, 0, 2)];
    let survey = surveyed(&again);
    assert_eq!((survey.initial_blocks, survey.files, survey.clients), (0, 2, 2));
    assert_eq!((survey.peak_live_blocks, survey.final_live_blocks), (5, 2));
    // Read, written, truncated: all that was read was there.
    let cut = [request(Read, 0, 4, 4), request(Write, 0, 8, 1), request(Truncate, 0, 2, 0)];
    let survey = surveyed(&cut);
    assert_eq!((survey.initial_blocks, survey.peak_live_blocks), (8, 9));
    assert_eq!(survey.final_live_blocks, 2);
    // A delete of a file never seen shows one block.
    assert_eq!(surveyed(&[request(Delete, 0, 0, 0)]).initial_blocks, 1);
}

#[test]
fn long_runs_cost_no_memory() {
    let mut surveyor = Surveyor::default();
    for block in 0..1_000_000 {
        surveyor.note(&request(FileAction::Write, 0, block, 1));
    }
    assert_eq!(surveyor.changes.len(), 1);
    assert_eq!(surveyor.finish().peak_live_blocks, 1_000_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn requests_taken_many_at_a_time_are_those_taken_one_by_one(
        initial in prop::collection::vec(0_u32..150, FILES as usize),
        knows in any::<bool>(),
        requests in prop::collection::vec((any_request(), 1_usize..4), 0..60),
        parts in 1_usize..20,
    ) {
        // Mostly several on end go to the same file.
        let runs = requests.iter().flat_map(|(request, length)| {
            (0..*length as u32).map(|step| FileRequest { block: request.block + step, ..*request })
        });
        let requests: Vec<FileRequest> = runs.collect();
        let known = |(file, blocks): (u32, &u32)| InitialFile { file, blocks: *blocks };
        let start = || {
            let files = (0..).zip(&initial).map(known).filter(|file| file.blocks > 0).collect();
            if knows { Surveyor::knowing(files) } else { Surveyor::default() }
        };
        let (mut many, mut one_by_one) = (start(), start());
        requests.chunks(parts).for_each(|part| many.note_all(part));
        for request in &requests {
            one_by_one.note(request);
        }
        prop_assert_eq!(many.lengths(), one_by_one.lengths());
        prop_assert_eq!(many.finish(), one_by_one.finish());
    }

    #[test]
    fn a_surveyor_that_knows_infers_nothing_and_counts_the_same(
        initial in prop::collection::vec(0_u32..150, FILES as usize),
        requests in prop::collection::vec(any_request(), 0..60),
    ) {
        let known = |(file, blocks): (u32, &u32)| InitialFile { file, blocks: *blocks };
        let files = (0..).zip(&initial).map(known).filter(|file| file.blocks > 0).collect();
        let mut surveyor = Surveyor::knowing(files);
        let mut live: BTreeSet<(u32, u32)> = (0..FILES)
            .flat_map(|file| (0..initial[file as usize]).map(move |block| (file, block)))
            .collect();
        let initial_blocks = live.len() as u64;
        let mut peak = initial_blocks;
        for request in &requests {
            surveyor.note(request);
            let FileRequest { file, block, blocks, action, .. } = *request;
            match action {
                FileAction::Write => {
                    live.extend((block..block + blocks).map(|block| (file, block)));
                }
                FileAction::Delete => live.retain(|(of, _)| *of != file),
                FileAction::Truncate => live.retain(|(of, at)| *of != file || *at < block),
                FileAction::Read | FileAction::Sync => {}
            }
            peak = peak.max(live.len() as u64);
        }
        for (file, length) in (0..).zip(surveyor.lengths()) {
            let last = live.range((file, 0)..=(file, u32::MAX)).next_back();
            prop_assert_eq!(length, last.map_or(0, |(_, block)| block + 1));
        }
        let survey = surveyor.finish();
        prop_assert_eq!(survey.initial_blocks, initial_blocks);
        prop_assert_eq!(survey.peak_live_blocks, peak);
        prop_assert_eq!(survey.final_live_blocks, live.len() as u64);
    }
}
