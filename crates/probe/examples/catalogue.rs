//! Probes modelled drives and holds the files that come out against the drives: `cargo run --release -p
//! agewell-probe --example catalogue -- [NAME ...]`.

use std::path::Path;

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::{Device, DeviceKind, DeviceModel, DeviceParameters, catalogue_names};
use agewell_probe::{Disturbance, Extent, ModelledDisk, ProbeOptions, ProbedDisk, probe};

#[allow(clippy::print_stdout, reason = "an example")]
fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let catalogue = root.join("devices");
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let print_file = names.first().is_some_and(|name| name == "--print");
    let print_distances = names.first().is_some_and(|name| name == "--distances");
    names.retain(|name| !name.starts_with("--"));
    if names.is_empty() {
        names = catalogue_names(&catalogue).expect("the catalogue");
    }
    let traces: Vec<(&str, Vec<BlockRequest>)> = ["build", "mail", "pgbench"]
        .into_iter()
        .map(|name| (name, requests(&Path::new("/tmp/probe-traces").join(name))))
        .collect();
    println!(
        "{:24} {:6} {:>7} {:>8} {:>6} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7}  own check",
        "drive", "class", "time s", "turn ppm", "rand%", "near%", "seq%", "build%", "mail%", "pgb%", "cpu s"
    );
    for name in names {
        if name.starts_with('/') {
            let mut disk = agewell_probe::RealDisk::open(Path::new(&name)).expect("opens");
            match probe(
                &mut disk,
                ProbeOptions { despite_others: true, ..ProbeOptions::default() },
                &mut |_, _| true,
            ) {
                Ok(found) => {
                    println!(
                        "{} {:?} {:?} {:?} spent {:.1} others {:?}",
                        found.class.name(),
                        found.fallback,
                        found.differences[0],
                        found.differences[1],
                        found.spent.as_seconds(),
                        found.others
                    );
                    if print_file {
                        println!("{}", found.parameters.to_toml());
                    }
                }
                Err(problem) => println!("{problem}"),
            }
            continue;
        }
        let parameters = DeviceParameters::find(&name, &catalogue).expect("a device");
        let mut disk = ModelledDisk::new(
            &parameters,
            Disturbance { late_answers: true, wander: 0.001, seed: 3 },
        );
        let began = std::time::Instant::now();
        let found = probe(&mut disk, ProbeOptions::default(), &mut |_, _| true);
        let cpu = began.elapsed().as_secs_f64();
        let found = match found {
            Ok(found) => found,
            Err(problem) => {
                println!("{name:24} {problem}");
                continue;
            }
        };
        if print_file {
            println!("{}", found.parameters.to_toml());
        }
        let turn = match (&parameters.kind, &found.parameters.kind) {
            (kind, DeviceKind::Mechanical(made)) => match kind.medium() {
                agewell_disk::Medium::Mechanical(drive) => {
                    1e6 * (made.rotation_period_ps as f64 / drive.rotation_period_ps as f64 - 1.0)
                }
                agewell_disk::Medium::Simple(_) => f64::NAN,
            },
            _ => f64::NAN,
        };
        let random = compare(&parameters, &found.parameters, 4000, |number, sectors| Extent {
            first: agewell_core::mix(number) % (sectors / 8) * 8,
            sectors: 8,
        });
        let near = compare(&parameters, &found.parameters, 4000, |number, sectors| Extent {
            first: sectors / 3 + agewell_core::mix(number) % (sectors / 20 / 8) * 8,
            sectors: 8,
        });
        let sequential = compare(&parameters, &found.parameters, 4000, |number, sectors| Extent {
            first: sectors / 3 / 128 * 128 + number * 128,
            sectors: 128,
        });
        if print_distances {
            for share in [1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.6, 0.9] {
                let off = compare(&parameters, &found.parameters, 4000, |number, sectors| {
                    let width = (sectors as f64 * (1.0 - share)) as u64;
                    let low = agewell_core::mix(number / 2) % width;
                    let jitter = agewell_core::mix(number) % 2000;
                    let far = (sectors as f64 * share) as u64 * (number % 2);
                    Extent { first: (low + far + jitter) / 8 * 8, sectors: 8 }
                });
                print!("{share}: {off:.1} %  ");
            }
            println!();
        }
        let replayed: Vec<f64> = traces
            .iter()
            .map(|(_, requests)| {
                let (one, other) =
                    (replay(&parameters, requests), replay(&found.parameters, requests));
                match (one, other) {
                    (Some(one), Some(other)) => 100.0 * (other / one - 1.0),
                    _ => f64::NAN,
                }
            })
            .collect();
        println!(
            "{name:24} {:6} {:7.1} {turn:8.1} {random:6.1} {near:6.1} {sequential:6.1} {:7.1} {:7.1} {:7.1} \
             {cpu:7.1}  {:.1} {:.1} {}",
            found.class.name(),
            found.spent.as_seconds(),
            replayed[0],
            replayed[1],
            replayed[2],
            found.differences[0].error_pct(),
            found.differences[1].error_pct(),
            found.fallback.unwrap_or_default(),
        );
    }
}

fn compare(
    truth: &DeviceParameters,
    made: &DeviceParameters,
    reads: u64,
    place: impl Fn(u64, u64) -> Extent,
) -> f64 {
    let mean = |parameters: &DeviceParameters| {
        let mut disk = ModelledDisk::new(parameters, Disturbance::default());
        let sectors = truth.capacity_sectors.min(made.capacity_sectors);
        let mut sum = 0.0;
        for number in 0..reads {
            let mut extent = place(number, sectors);
            extent.first = extent.first.min(sectors - extent.sectors);
            sum += disk.read(extent).expect("within the disk").taken_ns();
        }
        sum
    };
    100.0 * (mean(made) / mean(truth) - 1.0)
}

/// Mean service of `requests`, one after another; `None` if the disk is too small.
fn replay(parameters: &DeviceParameters, requests: &[BlockRequest]) -> Option<f64> {
    let mut device = DeviceModel::new(parameters);
    let mut now = SimTime::ZERO;
    let mut sum = 0.0;
    for request in requests {
        if request.sector.0 + request.sectors.0 > device.capacity().0
            || device.check(request).is_err()
        {
            return None;
        }
        let service = device.serve(now, request);
        sum += (service.finish.0 - now.0) as f64;
        now = service.finish;
    }
    Some(sum)
}

fn requests(path: &Path) -> Vec<BlockRequest> {
    let text = std::fs::read_to_string(path).expect("requests, one a line");
    text.lines()
        .map(|line| {
            let numbers: Vec<u64> =
                line.split(' ').map(|field| field.parse().expect("a number")).collect();
            BlockRequest {
                enqueue: SimTime::ZERO,
                sector: Sector(numbers[0]),
                sectors: SectorCount(numbers[1]),
                operation: Operation::from_code(numbers[2] as u8).expect("an operation"),
                synchronous: true,
            }
        })
        .collect()
}
