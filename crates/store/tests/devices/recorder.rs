//! The trace of what a disk was asked.

use std::sync::atomic::{AtomicU64, Ordering};

use agewell_core::{Operation, SimTime};
use agewell_disk::{DeviceParameters, catalogue_names};
use agewell_store::device::{
    Disk, Fault, FaultDisk, FaultKind, MemoryDisk, ModelledDisk, Piece, ReadPiece, RecordingDisk,
    When,
};
use agewell_trace::{BlockBatch, ReadOptions, open_block_trace};
use proptest::prelude::*;

use crate::plain::{hold_against_plain, refuses_what_is_beyond_the_end, steps};

const BLOCK: u64 = 4096;

proptest! {
    #[test]
    fn it_is_the_disk_below(steps in steps(40, 7)) {
        let disk = RecordingDisk::new(MemoryDisk::new(40 * BLOCK), || SimTime::ZERO);
        hold_against_plain(&disk, &steps, BLOCK)?;
    }
}

#[test]
fn ranges_beyond_the_end_are_refused_and_not_recorded() {
    let disk = RecordingDisk::new(MemoryDisk::new(3 * BLOCK), || SimTime::ZERO);
    refuses_what_is_beyond_the_end(&disk, BLOCK);
    assert_eq!(disk.requests().len(), 2, "the two reads that were within it");
}

/// What was asked comes back from the file, with the times of the clock.
#[test]
fn the_trace_has_every_request_and_its_times() {
    let ticks = AtomicU64::new(0);
    let clock = || SimTime(ticks.fetch_add(10, Ordering::Relaxed));
    let failing = vec![Fault::new(FaultKind::ReadError, When::At(vec![1]))];
    let below = FaultDisk::new(MemoryDisk::new(40 * BLOCK), failing, 0);
    let disk = RecordingDisk::new(below, clock);
    let data = vec![1; 2 * BLOCK as usize];
    disk.write(&[Piece { offset: BLOCK, data: &data }, Piece { offset: 9 * BLOCK, data: &data }])
        .unwrap();
    disk.flush().unwrap();
    disk.read(BLOCK, &mut [0; BLOCK as usize]).unwrap();
    disk.read(BLOCK, &mut [0; BLOCK as usize]).unwrap_err();
    disk.discard(9 * BLOCK, BLOCK).unwrap();
    let (mut one, mut two) = ([0; BLOCK as usize], vec![0; 2 * BLOCK as usize]);
    let pieces = [(BLOCK, &mut one[..]), (20 * BLOCK, &mut two[..])];
    disk.read_pieces(&mut pieces.map(|(offset, into)| ReadPiece { offset, into })).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.parquet");
    assert_eq!(disk.write_trace(&path).unwrap().rows, 7);
    let mut trace = open_block_trace(&path, &ReadOptions::default()).unwrap();
    let mut requests = BlockBatch::default();
    assert!(trace.next_batch(&mut requests).unwrap());
    assert_eq!(trace.metadata.devices.len(), 1);
    let rows: Vec<_> = (0..requests.len())
        .map(|row| {
            let times = (requests.enqueue_ns[row], requests.start_ns[row], requests.finish_ns[row]);
            let operation = Operation::from_code(requests.operation[row]).unwrap();
            (times, operation, requests.sector[row], requests.sectors[row])
        })
        .collect();
    assert_eq!(
        rows,
        [
            ((0, 0, 10), Operation::Write, 8, 16),
            ((0, 0, 10), Operation::Write, 72, 16),
            ((20, 20, 30), Operation::Flush, 0, 0),
            ((40, 40, 50), Operation::Read, 8, 8),
            // The read that failed asked the clock once.
            ((70, 70, 80), Operation::Discard, 72, 8),
            ((90, 90, 100), Operation::Read, 8, 8),
            ((90, 90, 100), Operation::Read, 160, 16),
        ]
    );
}

#[test]
fn the_clock_may_be_a_modelled_disks_own() {
    let catalogue = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    let name = &catalogue_names(&catalogue).unwrap()[0];
    let modelled = ModelledDisk::new(&DeviceParameters::find(name, &catalogue).unwrap());
    let disk = RecordingDisk::new(&modelled, || modelled.now());
    disk.write(&[Piece { offset: 0, data: &[1; BLOCK as usize] }]).unwrap();
    disk.read(0, &mut [0; BLOCK as usize]).unwrap();
    let requests = disk.requests();
    assert_eq!(requests.start_ns, [0, requests.finish_ns[0]]);
    assert_eq!(requests.finish_ns[1], modelled.now().0);
}
