//! Policies of one's own beside those of agewell, on a trace.

mod age_threshold;
mod recent;

use std::path::Path;

use age_threshold::AgeThreshold;
use agewell_sim::{Experiment, Places, Policies, RunError, run_with};
use recent::Recent;
use serde_json::{Value, json};

/// Blocks that the disk writes for each that a user writes, and the time that writing takes over that of
/// writing the same at full bandwidth.
fn costs(trace: &Path, victim: &str, policies: &Policies) -> Result<(f64, f64), RunError> {
    let experiment = Experiment::from_value(json!({
        "workload": { "kind": "trace", "path": trace, "utilization": 0.9 },
        "layout": {
            "kind": "lfs",
            "segment_size": "256 KiB",
            "block_size": "4 KiB",
            "collect": "clean",
            "victim": victim,
            "logs": 2, // of a placement; without one there is one log
        },
        "device": { "kind": "simple", "access_time": "8 ms", "bandwidth": "100 MB/s" },
    }))?;
    // No device of a catalogue is asked for, and the trace is named from here.
    let places = Places { base: Path::new("."), catalogue: Path::new(".") };
    let outcome = run_with(&experiment, places, policies, &mut |_| true)?;
    let metric = |name: &str| {
        let value: &Value = &outcome.document["metrics"][name];
        value.as_f64().unwrap_or(f64::NAN)
    };
    Ok((metric("write_amplification"), metric("overall_write_cost")))
}

fn main() -> std::process::ExitCode {
    let trace = std::env::args_os().nth(1);
    let Some(trace) = trace else {
        eprintln!("my-policies: error: name a trace, for example ../traces/mail.parquet");
        return std::process::ExitCode::from(2);
    };
    let victim = Policies {
        victim: Some(Box::new(AgeThreshold { least_age: 5_000 })),
        ..Policies::default()
    };
    let placement =
        Policies { placement: Some(Box::new(Recent { soon: 10_000 })), ..Policies::default() };
    let built_in = Policies::default();
    println!("{:<24}{:>20}{:>20}", "policy", "write amplification", "overall write cost");
    for (name, setting, policies) in [
        ("greedy", "greedy", &built_in),
        ("cost-age", "cost-age", &built_in),
        ("age threshold, mine", "greedy", &victim),
        ("recent apart, mine", "greedy", &placement),
    ] {
        match costs(Path::new(&trace), setting, policies) {
            Ok((amplification, cost)) => println!("{name:<24}{amplification:>20.3}{cost:>20.2}"),
            Err(why) => {
                eprintln!("my-policies: error: {why}");
                return std::process::ExitCode::from(if why.is_input() { 2 } else { 1 });
            }
        }
    }
    std::process::ExitCode::SUCCESS
}
