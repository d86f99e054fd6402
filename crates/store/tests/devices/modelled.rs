//! Modelled devices: contents, and the clock of the bare model.

use std::path::{Path, PathBuf};

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimDuration, SimTime};
use agewell_disk::{Device, DeviceModel, DeviceParameters, WriteRule, catalogue_names};
use agewell_store::device::{Disk, ModelledDisk, Piece, ReadPiece};
use proptest::prelude::*;

use crate::plain::{Step, hold_against_plain, refuses_what_is_beyond_the_end, steps};

const BLOCK: u64 = 4096;
const SECTORS: u64 = BLOCK / 512;

fn catalogue() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices")
}

fn parameters(name: &str) -> DeviceParameters {
    DeviceParameters::find(name, &catalogue()).unwrap()
}

fn is_written_anywhere(parameters: &DeviceParameters) -> bool {
    DeviceModel::new(parameters).layout_advice().write_rule == WriteRule::Anywhere
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_device_that_is_written_anywhere_holds_what_was_written(steps in steps(40, 7)) {
        for name in catalogue_names(&catalogue()).unwrap() {
            let parameters = parameters(&name);
            if is_written_anywhere(&parameters) {
                hold_against_plain(&ModelledDisk::new(&parameters).with_size(40 * BLOCK), &steps, BLOCK)?;
            }
        }
    }

    /// The clock is that of the bare model, asked the same by hand: for a drive without a queue, one
    /// with one, and flash.
    #[test]
    fn time_is_the_models(steps in steps(4000, 70)) {
        for name in ["hp-c2247a", "seagate-st2000dm006", "flash-sata-tlc", "matthews-baseline"] {
            let parameters = parameters(name);
            let (disk, mut bare) = (ModelledDisk::new(&parameters), DeviceModel::new(&parameters));
            let wants_discards = bare.layout_advice().wants_discards;
            let (mut now, mut written) = (SimTime::ZERO, false);
            for step in &steps {
                let request = |operation, block, blocks| BlockRequest {
                    enqueue: now,
                    sector: Sector(block * SECTORS),
                    sectors: SectorCount(blocks * SECTORS),
                    operation,
                    synchronous: true,
                };
                match step {
                    Step::Write(pieces) => {
                        let data: Vec<Vec<u8>> =
                            pieces.iter().map(|piece| vec![0; (piece.1 * BLOCK) as usize]).collect();
                        let sent: Vec<Piece<'_>> = pieces.iter().zip(&data)
                            .map(|(piece, data)| Piece { offset: piece.0 * BLOCK, data })
                            .collect();
                        disk.write(&sent).unwrap();
                        let requests: Vec<BlockRequest> = pieces.iter()
                            .map(|piece| request(Operation::Write, piece.0, piece.1))
                            .collect();
                        let mut services = Vec::new();
                        bare.serve_together(now, &requests, &mut services);
                        now = services.iter().map(|service| service.finish).max().unwrap();
                        written = true;
                    }
                    Step::Read(block, blocks) => {
                        disk.read(block * BLOCK, &mut vec![0; (blocks * BLOCK) as usize]).unwrap();
                        now = bare.serve(now, &request(Operation::Read, *block, *blocks)).finish;
                    }
                    Step::Discard(block, blocks) => {
                        disk.discard(block * BLOCK, blocks * BLOCK).unwrap();
                        if wants_discards {
                            now = bare.serve(now, &request(Operation::Discard, *block, *blocks)).finish;
                        }
                    }
                    Step::Flush => {
                        disk.flush().unwrap();
                        if std::mem::take(&mut written) {
                            now = bare.serve(now, &request(Operation::Flush, 0, 1)).finish;
                        }
                        disk.idle(SimDuration(12_345));
                        now = SimTime(now.0 + 12_345);
                    }
                }
                prop_assert_eq!(disk.now(), now, "{} after {:?}", name, step);
            }
            let idle = steps.iter().filter(|step| matches!(step, Step::Flush)).count() as u64 * 12_345;
            prop_assert_eq!(disk.spent().time().0 + idle, now.0);
        }
    }
}

#[test]
fn counts_are_those_of_the_requests() {
    let disk = ModelledDisk::new(&parameters("flash-sata-tlc"));
    let data = vec![1; 2 * BLOCK as usize];
    disk.write(&[Piece { offset: 0, data: &data }, Piece { offset: 8 * BLOCK, data: &data }])
        .unwrap();
    disk.flush().unwrap();
    disk.flush().unwrap();
    disk.read(BLOCK, &mut [0; BLOCK as usize]).unwrap();
    disk.discard(0, BLOCK).unwrap();
    let spent = disk.spent();
    let counts = [spent.writes, spent.flushes, spent.reads, spent.discards]
        .map(|spent| (spent.requests, spent.bytes));
    assert_eq!(counts, [(2, 4 * BLOCK), (1, 0), (1, BLOCK), (1, BLOCK)]);
    assert!(spent.writes.time.0 > 0 && spent.flushes.time.0 > 0 && spent.reads.time.0 > 0);
}

/// The pieces of a write to a drive with a queue take less time together than one after another.
#[test]
fn pieces_of_a_write_overlap_where_the_drive_has_a_queue() {
    let disk = || ModelledDisk::new(&parameters("seagate-st2000dm006"));
    let data = [1; BLOCK as usize];
    let pieces: Vec<Piece<'_>> =
        (0..32).map(|at| Piece { offset: at * 7919 % 1000 * (1 << 30), data: &data }).collect();
    let (together, apart) = (disk(), disk());
    together.write(&pieces).unwrap();
    together.flush().unwrap();
    for piece in &pieces {
        apart.write(&[*piece]).unwrap();
        apart.flush().unwrap();
    }
    assert!(together.now().0 * 5 < apart.now().0 * 4, "{} {}", together.now().0, apart.now().0);
}

/// So do those of a read, which is counted as what it is.
#[test]
fn pieces_of_a_read_overlap_where_the_drive_has_a_queue() {
    let disk = || ModelledDisk::new(&parameters("seagate-st2000dm006"));
    let mut read = vec![0; 32 * BLOCK as usize];
    let mut pieces: Vec<ReadPiece<'_>> = (0..32)
        .zip(read.chunks_exact_mut(BLOCK as usize))
        .map(|(at, into)| ReadPiece { offset: at * 7919 % 1000 * (1 << 30), into })
        .collect();
    let (together, apart) = (disk(), disk());
    together.read_pieces(&mut pieces).unwrap();
    for piece in &mut pieces {
        apart.read(piece.offset, piece.into).unwrap();
    }
    assert!(together.now().0 * 5 < apart.now().0 * 4, "{} {}", together.now().0, apart.now().0);
    let reads = together.spent().reads;
    assert_eq!((reads.requests, reads.bytes), (32, 32 * BLOCK));
    assert_eq!(reads.time.0, together.now().0);
}

#[test]
fn zones_that_the_host_writes_in_order_keep_their_rule() {
    let disk = ModelledDisk::new(&parameters("hgst-hsh721415ale6m0"));
    let WriteRule::SequentialInZones { first_sequential, zone_sectors } = disk.advice().write_rule
    else {
        panic!("a host-managed drive");
    };
    let (zone, zone_bytes) = (first_sequential.0 * 512, zone_sectors.0 * 512);
    let data = [7; BLOCK as usize];
    let write = |offset| disk.write(&[Piece { offset, data: &data }]);
    let refused = write(zone + BLOCK).unwrap_err();
    assert!(refused.to_string().contains("written in order"), "{refused}");
    assert!(!refused.to_string().contains('\n'));
    // Two pieces in order are taken; of two out of order the first is.
    disk.write(&[Piece { offset: zone, data: &data }, Piece { offset: zone + BLOCK, data: &data }])
        .unwrap();
    write(zone).unwrap_err();
    disk.discard(zone, zone_bytes / 2).unwrap_err();
    disk.discard(zone, zone_bytes).unwrap();
    write(zone).unwrap();
    let mut into = [0; BLOCK as usize];
    disk.read(zone, &mut into).unwrap();
    assert_eq!(into, data);
    into.fill(0);
    disk.read_pieces(&mut [ReadPiece { offset: zone, into: &mut into }]).unwrap();
    assert_eq!(into, data);
    // A refused write changes neither contents nor clock.
    let before = disk.now();
    write(zone + 5 * BLOCK).unwrap_err();
    disk.read(zone + 5 * BLOCK, &mut into).unwrap();
    assert!(into == [0; BLOCK as usize] && disk.spent().writes.requests == 3);
    assert!(disk.now() > before, "the read took time");
}

#[test]
fn ranges_beyond_the_end_are_refused() {
    let disk = || ModelledDisk::new(&parameters("hp-c2247a"));
    refuses_what_is_beyond_the_end(&disk().with_size(16 * BLOCK), BLOCK);
    refuses_what_is_beyond_the_end(&disk(), 512);
    assert!(disk().write(&[Piece { offset: 100, data: &[0; 512] }]).is_err(), "not a sector");
}
