//! The scientific simulation row of Matthews 1999, Table 4-1.

use super::*;
use crate::workload::profile::variation;
use crate::workload::tests::check_clients;

fn made(parameters: &ScientificSimulationParameters) -> ScientificSimulation {
    ScientificSimulation::new(parameters, &RandomStreams::new(1)).unwrap()
}

#[test]
fn it_has_the_properties_of_its_row() {
    let parameters = ScientificSimulationParameters::default();
    let profile = check_clients(&made(&parameters));
    // Write order: output front to back. Read order: varies, often sequential.
    assert!(profile.sequential_share(FileAction::Write) > 0.999);
    let sequential = profile.sequential_share(FileAction::Read);
    assert!((0.6..0.95).contains(&sequential), "{sequential}");
    // Locality of writes: none.
    let outputs = parameters.inputs..parameters.inputs + parameters.experiments;
    let busiest = profile.busiest_tenth(FileAction::Write, outputs.clone());
    assert!(busiest < 0.35, "{busiest}");
    // Interaction: what is kept is written once and read once; every output is read whole, once.
    let read_of = |file: u32| {
        let reads = profile.requests.iter();
        let reads =
            reads.filter(|request| request.action == FileAction::Read && request.file == file);
        reads.map(|request| request.blocks).sum::<u32>()
    };
    for output in outputs {
        assert_eq!(read_of(output), profile.lengths[output as usize]);
    }
    // Rate varies.
    assert!(variation(&profile.rate(10_000_000_000)) > 0.7);
    // Size: big files only.
    assert!(profile.lengths.iter().all(|blocks| *blocks >= 48));
    // Lifetime: most output is kept; that of failed experiments dies within the hour.
    let died = profile.lifetimes_ns.len() as f64 / profile.blocks[1] as f64;
    assert!((0.2..0.4).contains(&died), "{died} of the writes of an attempt that failed");
    let within = profile.died_within(3_600_000_000_000);
    assert!(within > 0.95 * died, "{within} of {died}");
}

#[test]
fn no_failures_and_no_columns_make_everything_sequential_and_nothing_dies() {
    let parameters = ScientificSimulationParameters {
        failure_share: 0.0,
        strided_share: 0.0,
        ..ScientificSimulationParameters::default()
    };
    let profile = check_clients(&made(&parameters));
    assert!(profile.sequential_share(FileAction::Read) > 0.999);
    assert!(profile.lifetimes_ns.is_empty());
}

#[test]
fn parameters_out_of_range_are_refused() {
    let sane = ScientificSimulationParameters::default();
    let refused = |parameters| {
        ScientificSimulation::new(&parameters, &RandomStreams::new(1)).unwrap_err().key
    };
    assert_eq!(refused(ScientificSimulationParameters { inputs: 0, ..sane }), "inputs");
    assert_eq!(refused(ScientificSimulationParameters { step_blocks: 0, ..sane }), "step_blocks");
    let failure_share = 1.0;
    let never = ScientificSimulationParameters { failure_share, ..sane };
    assert_eq!(refused(never), "failure_share");
}
