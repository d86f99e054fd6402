//! A simulated Fast File System that ages: files come and go, and its layout score falls.
//!
//!     cargo run --release -p agewell-age --example aging -- [LAYOUT]
//!
//! LAYOUT is `ffs`, `ffs+realloc` or another that `agewell` ages.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_age::onto::SimulatedTarget;
use agewell_age::simulated_layout::LayoutSetup;
use agewell_age::{Action, Operation, Target};
use agewell_core::{RandomStreams, uniform_below};
use serde_json::json;

const FILES: u32 = 9000;
const TURNS: u32 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kind = std::env::args().nth(1).unwrap_or_else(|| "ffs".to_owned());
    let setup = LayoutSetup::read(json!({"kind": kind}))?;
    let mut target = SimulatedTarget::new(setup.build()?, setup.facts());
    let mut stream = RandomStreams::new(1).stream("sizes");
    let operation = |action, file: u32, size_bytes| Operation {
        time_ns: 0,
        file,
        directory: 1 + file % 20,
        offset_bytes: 0,
        size_bytes,
        stream: 0,
        action,
    };
    for directory in 1..=20 {
        let made = operation(Action::MakeDirectory, directory, 0);
        target.apply(&Operation { directory: 0, ..made })?;
    }
    for turn in 0..TURNS {
        for drawn in 0..FILES {
            let file =
                if turn == 0 { drawn } else { uniform_below(&mut stream, FILES.into()) as u32 };
            if turn > 0 {
                target.apply(&operation(Action::Delete, file, 0))?;
            }
            target.apply(&operation(Action::Create, file, 0))?;
            let size = uniform_below(&mut stream, 90 << 10);
            target.apply(&operation(Action::Write, file, size))?;
        }
        let usage = target.usage()?;
        println!(
            "{} files made: {:.0} % full, layout score {:?}",
            FILES * (turn + 1),
            usage.utilization() * 100.0,
            target.layout_counts()?.score()
        );
    }
    Ok(())
}
