//! Requests per second of the workload generators and of the survey.
//!
//! Bound: a draw of the random stream and, for Zipf, one access to a table of 8 bytes a block; the
//! request itself is 32 bytes written and read once. Workloads of clients also look for the client
//! that is due where they take turns.

use std::hint::black_box;

use agewell_core::{RandomStreams, SimDuration};
use agewell_trace::workload::{
    AuspexLike, AuspexParameters, DecisionSupport, DecisionSupportParameters, FileWorkload, Fill,
    HotCold, HotColdParameters, LongTerm, LongTermParameters, Microbenchmark,
    MicrobenchmarkParameters, Multimedia, MultimediaParameters, RandomUpdate, ReadOrder,
    ScientificSimulation, ScientificSimulationParameters, Sequential, SoftwareDevelopment,
    SoftwareDevelopmentParameters, Surveyor, Tpcb, TpcbParameters, TransactionProcessing,
    TransactionProcessingParameters, UpdateParameters, WriteOrder, Zipf, ZipfParameters, survey,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// The size of the placement studies: 2^18 blocks, ten updates each.
const UPDATE: UpdateParameters = UpdateParameters {
    blocks: 1 << 18,
    updates_per_block: 10,
    sync_every: 4,
    interval: SimDuration::ZERO,
    fill: Fill::Before,
};

/// Runs a workload to its end; a sum over all it asked, so that nothing is left out.
fn drain(mut workload: impl FileWorkload) -> u64 {
    let mut sum = 0_u64;
    while let Some(request) = workload.next_request() {
        sum = sum.wrapping_add(u64::from(request.block)).wrapping_add(request.time.0);
    }
    sum
}

fn measure<W: FileWorkload + Clone>(criterion: &mut Criterion, name: &str, workload: &W) {
    let requests = survey(&mut workload.clone()).requests;
    let mut group = criterion.benchmark_group("workload");
    group.throughput(Throughput::Elements(requests)).sample_size(10);
    group.bench_function(name, |bencher| bencher.iter(|| drain(black_box(workload.clone()))));
    group.finish();
}

fn updates(criterion: &mut Criterion) {
    let streams = RandomStreams::new(1);
    let accepted = "the parameters are in range";
    let random = RandomUpdate::new(&UPDATE, &streams).expect(accepted);
    measure(criterion, "random-update", &random);
    measure(criterion, "sequential", &Sequential::new(&UPDATE).expect(accepted));
    let hot = HotColdParameters { update: UPDATE, ..HotColdParameters::default() };
    measure(criterion, "hot-cold", &HotCold::new(&hot, &streams).expect(accepted));
    let zipf = ZipfParameters { update: UPDATE, alpha: 1.0 };
    measure(criterion, "zipf", &Zipf::new(&zipf, &streams).expect(accepted));
    let update = UpdateParameters { blocks: 1 << 20, updates_per_block: 3, ..UPDATE };
    let large = ZipfParameters { update, alpha: 1.0 };
    measure(criterion, "zipf/1M-blocks", &Zipf::new(&large, &streams).expect(accepted));
}

fn microbenchmarks(criterion: &mut Criterion) {
    let streams = RandomStreams::new(1);
    let accepted = "the parameters are in range";
    let default = MicrobenchmarkParameters { reads: 5, ..MicrobenchmarkParameters::default() };
    let random = MicrobenchmarkParameters { write: WriteOrder::Random, ..default };
    let pattern = MicrobenchmarkParameters {
        write: WriteOrder::Pattern,
        read: ReadOrder::Pattern,
        ..default
    };
    for (name, parameters) in [("sequential", default), ("random", random), ("pattern", pattern)] {
        let workload = Microbenchmark::new(&parameters, &streams).expect(accepted);
        measure(criterion, &format!("microbenchmark/{name}"), &workload);
    }
}

fn systems(criterion: &mut Criterion) {
    let streams = RandomStreams::new(1);
    let accepted = "the parameters are in range";
    let tpcb = Tpcb::new(&TpcbParameters::default(), &streams).expect(accepted);
    measure(criterion, "tpcb", &tpcb);
    let auspex = AuspexLike::new(&AuspexParameters::default(), &streams).expect(accepted);
    measure(criterion, "auspex-like", &auspex);
    let requests: Vec<_> = {
        let mut copy = auspex.clone();
        std::iter::from_fn(|| copy.next_request()).collect()
    };
    let mut group = criterion.benchmark_group("survey");
    group.throughput(Throughput::Elements(requests.len() as u64)).sample_size(10);
    group.bench_function("auspex-like", |bencher| {
        bencher.iter(|| {
            let mut surveyor = Surveyor::default();
            for request in black_box(&requests) {
                surveyor.note(request);
            }
            surveyor.finish().peak_live_blocks
        });
    });
    group.finish();
}

/// The default sizes of the families, one after another.
fn families(criterion: &mut Criterion) {
    let streams = RandomStreams::new(1);
    let accepted = "the defaults are in range";
    let multimedia = Multimedia::new(&MultimediaParameters::default(), &streams);
    measure(criterion, "multimedia", &multimedia.expect(accepted));
    let development = SoftwareDevelopment::new(&SoftwareDevelopmentParameters::default(), &streams);
    measure(criterion, "software-development", &development.expect(accepted));
    let transactions =
        TransactionProcessing::new(&TransactionProcessingParameters::default(), &streams);
    measure(criterion, "transaction-processing", &transactions.expect(accepted));
    let decisions = DecisionSupport::new(&DecisionSupportParameters::default(), &streams);
    measure(criterion, "decision-support", &decisions.expect(accepted));
    let science = ScientificSimulation::new(&ScientificSimulationParameters::default(), &streams);
    measure(criterion, "scientific-simulation", &science.expect(accepted));
    let long_term = LongTerm::new(&LongTermParameters::default(), &streams);
    measure(criterion, "long-term", &long_term.expect(accepted));
}

criterion_group!(benches, updates, microbenchmarks, families, systems);
criterion_main!(benches);
