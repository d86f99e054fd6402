//! The access time that is measured on drives beforehand, against their models.

use std::path::Path;

use agewell_core::RandomStreams;

use super::*;
use crate::config::DeviceChoice;
use crate::drive::load::load_device;
use crate::places::Places;

const BLOCK_BYTES: u64 = 8192;

fn model(name: &str) -> DeviceModel {
    let catalogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices");
    let places = Places { base: Path::new("/"), catalogue: Path::new(catalogue) };
    DeviceModel::new(&load_device(&DeviceChoice::Model(name.to_owned()), places).unwrap())
}

/// Writes of one block all over the drive take the access time and the transfer, whether the drive
/// reports them when they are on the medium or early and lets the next one wait.
#[test]
fn the_access_time_is_what_scattered_writes_take_one_behind_the_other() {
    for name in ["hp-97560", "hp-c2249a", "seagate-st34501n"] {
        let (mut device, streams) = (model(name), RandomStreams::new(1));
        let span_sectors = 1 << 20;
        let disk = measure(&device, span_sectors, BLOCK_BYTES, &mut streams.stream("estimate"));
        let (mut stream, mut now_ns) = (streams.stream("scattered"), 0);
        for _ in 0..MEASURED_REQUESTS {
            let sector = uniform_below(&mut stream, span_sectors - 16);
            now_ns += serve(&mut device, now_ns, sector, 16, Operation::Write);
        }
        let ratio = now_ns as f64 / (u64::from(MEASURED_REQUESTS) * disk.blocks_ns(1)) as f64;
        assert!((ratio - 1.0).abs() < 0.03, "{name}: {ratio} times {disk:?}");
        assert!(disk.further_ns < disk.access_ns, "{name}: {disk:?}");
    }
}
