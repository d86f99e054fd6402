//! The passes, their orders and their boundaries.

use proptest::prelude::*;

use super::*;
use crate::workload::survey;

fn collect(mut workload: Microbenchmark) -> Vec<FileRequest> {
    let requests = std::iter::from_fn(|| workload.next_request()).collect();
    assert_eq!(workload.next_request(), None, "none stays none");
    requests
}

fn made(parameters: &MicrobenchmarkParameters) -> Microbenchmark {
    Microbenchmark::new(parameters, &RandomStreams::new(1)).unwrap()
}

/// First blocks of the requests of each pass.
fn passes(parameters: &MicrobenchmarkParameters) -> Vec<Vec<u32>> {
    let requests = collect(made(parameters));
    requests
        .chunks(parameters.pass_requests() as usize)
        .map(|pass| pass.iter().map(|request| request.block).collect())
        .collect()
}

/// Share of requests of a pass that begin where the one before ended.
fn sequential_share(pass: &[u32], request_blocks: u32) -> f64 {
    let follows = pass.windows(2).filter(|pair| pair[1] == pair[0] + request_blocks).count();
    follows as f64 / (pass.len() - 1) as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_phase_asks_for_every_block_once_and_the_survey_is_exact(
        blocks in 1_u32..700,
        request_share in 0.0..1.0_f64,
        write in prop::sample::select(vec![
            WriteOrder::Sequential, WriteOrder::Random, WriteOrder::Pattern,
        ]),
        read in prop::sample::select(vec![ReadOrder::Sequential, ReadOrder::Pattern]),
        reads in 0_u32..4,
        pattern in prop::sample::select(vec![Pattern::Permuted, Pattern::Strided]),
        stride_requests in 1_u32..900,
        seed: u64,
    ) {
        let request_blocks = 1 + (f64::from(blocks - 1) * request_share * request_share) as u32;
        let parameters = MicrobenchmarkParameters {
            blocks, request_blocks, write, read, reads, pattern, stride_requests,
        };
        let workload = Microbenchmark::new(&parameters, &RandomStreams::new(seed)).unwrap();
        prop_assert_eq!(workload.survey(), survey(&mut workload.clone()));
        let requests = collect(workload.clone());
        let phases = workload.phases();
        prop_assert_eq!(phases.len() as u64, parameters.passes());
        let mut counted = 0;
        for phase in &phases {
            prop_assert_eq!(phase.blocks.start, counted);
            let mut seen = vec![0; blocks as usize];
            for request in &requests[phase.requests.start as usize..phase.requests.end as usize] {
                prop_assert_eq!(request.time, SimTime::ZERO);
                let reads = matches!(phase.kind, PhaseKind::Read(_));
                let action = if reads { FileAction::Read } else { FileAction::Write };
                prop_assert_eq!(request.action, action);
                for block in request.block..request.block + request.blocks {
                    seen[block as usize] += 1;
                }
                counted += u64::from(request.blocks);
            }
            prop_assert!(seen.iter().all(|times| *times == 1));
            prop_assert_eq!(phase.blocks.end, counted);
        }
        prop_assert_eq!(phases.last().unwrap().requests.end, requests.len() as u64);
    }
}

#[test]
fn the_default_is_the_first_benchmark_of_the_paper() {
    let workload = made(&MicrobenchmarkParameters::default());
    let survey = workload.survey();
    assert_eq!(survey.peak_live_blocks * 8192, 625 << 20);
    assert_eq!(survey.requests, 240_000);
    let expected: Vec<u32> = (0..80_000).collect();
    for pass in passes(workload.parameters()) {
        assert_eq!(pass, expected);
    }
}

#[test]
fn the_pattern_is_written_and_read_in_one_order_and_a_random_write_is_another() {
    let pattern = MicrobenchmarkParameters {
        blocks: 5000,
        write: WriteOrder::Pattern,
        read: ReadOrder::Pattern,
        reads: 5,
        ..MicrobenchmarkParameters::default()
    };
    for kind in [Pattern::Permuted, Pattern::Strided] {
        let passes = passes(&MicrobenchmarkParameters { pattern: kind, ..pattern });
        assert!((sequential_share(&passes[0], 1) - 1.0).abs() < 1e-12);
        assert!(sequential_share(&passes[1], 1) < 0.01);
        assert!(passes[2..].iter().all(|pass| *pass == passes[1]));
    }
    let random = passes(&MicrobenchmarkParameters { write: WriteOrder::Random, ..pattern });
    assert!(sequential_share(&random[1], 1) < 0.01);
    assert_ne!(random[1], random[2], "a random write is no pattern that a read follows");
}

#[test]
fn the_strided_pattern_reads_by_columns() {
    let parameters = MicrobenchmarkParameters {
        blocks: 10,
        write: WriteOrder::Pattern,
        pattern: Pattern::Strided,
        stride_requests: 4,
        ..MicrobenchmarkParameters::default()
    };
    assert_eq!(passes(&parameters)[1], [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]);
}

#[test]
fn a_seed_fixes_the_orders_and_another_changes_them() {
    let parameters = MicrobenchmarkParameters {
        blocks: 300,
        write: WriteOrder::Random,
        read: ReadOrder::Pattern,
        ..MicrobenchmarkParameters::default()
    };
    let made = |seed| collect(Microbenchmark::new(&parameters, &RandomStreams::new(seed)).unwrap());
    assert_eq!(made(3), made(3));
    assert_ne!(made(3)[300..600], made(4)[300..600]);
    assert_ne!(made(3)[600..], made(4)[600..]);
}

#[test]
fn parameters_out_of_range_are_refused_in_one_line() {
    let refused = |parameters| {
        let error = Microbenchmark::new(&parameters, &RandomStreams::new(1)).unwrap_err();
        assert!(!error.to_string().contains('\n'));
        error.key
    };
    let sane = MicrobenchmarkParameters { blocks: 10, ..MicrobenchmarkParameters::default() };
    assert_eq!(refused(MicrobenchmarkParameters { blocks: 0, ..sane }), "blocks");
    assert_eq!(refused(MicrobenchmarkParameters { request_blocks: 0, ..sane }), "request_blocks");
    assert_eq!(refused(MicrobenchmarkParameters { request_blocks: 11, ..sane }), "request_blocks");
    assert_eq!(refused(MicrobenchmarkParameters { stride_requests: 0, ..sane }), "stride_requests");
}
