//! Operations per second of a probe's own work.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use agewell_disk::DeviceParameters;
use agewell_probe::{Disturbance, ModelledDisk, ProbeOptions, probe};

fn estimators(criterion: &mut Criterion) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/hp-97560.toml");
    let parameters = DeviceParameters::load(path).expect("a device of the catalogue");
    let mut group = criterion.benchmark_group("probe");
    group.sample_size(10);
    group.throughput(Throughput::Elements(1));
    group.bench_function("a modelled HP 97560", |bencher| {
        bencher.iter(|| {
            let mut disk = ModelledDisk::new(&parameters, Disturbance::default());
            probe(&mut disk, ProbeOptions::default(), &mut |_, _| true).expect("it answers")
        });
    });
    group.finish();
}

criterion_group!(benches, estimators);
criterion_main!(benches);
