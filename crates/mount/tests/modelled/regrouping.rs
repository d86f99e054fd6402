//! What is read together is put together where that pays, on modelled disks and their clock.

use std::sync::Arc;

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_fs::{CheckOptions, check};
use agewell_mount::Regrouping;
use agewell_store::OpenOptions;
use agewell_store::device::ModelledDisk;

use crate::{Fs, NOW, empty, make_files};

const FILE_BYTES: usize = 20_000;
const FILES: u64 = 1500;

/// A file system on 128 MiB of a modelled device, in which files were made and written over in no order.
fn aged(device: &str) -> (Arc<ModelledDisk>, Arc<Fs>, Vec<u64>) {
    let (disk, file_system) = empty(device);
    let mut random = RandomStreams::new(5).stream("files");
    let inodes = make_files(&file_system, FILES);
    for round in 0..3 {
        for at in 0..FILES {
            let inode = inodes[((at * 7919 + round * 13) % FILES) as usize];
            let byte = uniform_below(&mut random, 256) as u8;
            file_system.write(inode, 0, &vec![byte; FILE_BYTES], false, NOW).unwrap();
        }
        file_system.sync().unwrap();
    }
    (disk, Arc::new(file_system), inodes)
}

/// Files that a program reads, in its order.
fn program(inodes: &[u64], files: usize, random: &mut Stream) -> Vec<u64> {
    let mut all = inodes.to_vec();
    (0..files).map(|_| all.swap_remove(uniform_below(random, all.len() as u64) as usize)).collect()
}

/// Reads `files`, and how long the device takes, ns.
fn start(disk: &ModelledDisk, file_system: &Fs, files: &[u64]) -> u64 {
    let begin_ns = disk.now().0;
    let mut into = vec![0; FILE_BYTES];
    for inode in files {
        assert_eq!(file_system.read(*inode, 0, &mut into).unwrap(), FILE_BYTES);
        assert!(into.iter().all(|byte| *byte == into[0]));
    }
    disk.now().0 - begin_ns
}

#[test]
fn a_program_starts_in_less_time_once_its_files_lie_as_it_reads_them() {
    let (disk, file_system, inodes) = aged("seagate-st2000dm006");
    let prices = OpenOptions::default().prices;
    let mut regrouping = Regrouping::new(Arc::clone(&file_system), 8 << 20, prices);
    let mut random = RandomStreams::new(9).stream("programs");
    let files = program(&inodes, 200, &mut random);
    let mut times = Vec::new();
    let mut requests = Vec::new();
    for _ in 0..12 {
        let before = disk.spent().reads.requests;
        times.push(start(&disk, &file_system, &files));
        requests.push(disk.spent().reads.requests - before);
        regrouping.learn();
        regrouping.put_together(&mut || true).unwrap();
    }
    let done = regrouping.done();
    // Whole groups are read at once: 200 files in some twenty requests.
    assert!(requests[11] * 8 < requests[0], "{requests:?} requests, {times:?} ns");
    assert!(done.groups > 0 && done.lost_reads == 0, "{done:?}");
    assert!(times[11] < times[0] * 7 / 10, "{times:?} ns");
    // Nothing was lost, and nobody else is the worse for it.
    file_system.sync().unwrap();
    file_system.store().verify();
    let others = start(&disk, &file_system, &inodes);
    assert!(others > 0);
    let store = Arc::clone(file_system.store());
    drop(regrouping);
    let checked = check(&store, &CheckOptions::default()).unwrap();
    assert!(checked.findings.is_empty(), "{checked:?}");
}

#[test]
fn no_more_is_moved_than_pays() {
    for (device, again) in [("seagate-st2000dm006", false), ("flash-sata-tlc", true)] {
        let (disk, file_system, inodes) = aged(device);
        let prices = OpenOptions::default().prices;
        let mut regrouping = Regrouping::new(Arc::clone(&file_system), 8 << 20, prices);
        let mut random = RandomStreams::new(9).stream("programs");
        let same = program(&inodes, 200, &mut random);
        let mut total_ns = 0;
        for _ in 0..12 {
            let other = program(&inodes, 200, &mut random);
            total_ns += start(&disk, &file_system, if again { &same } else { &other });
            regrouping.learn();
            regrouping.put_together(&mut || true).unwrap();
        }
        let done = regrouping.done();
        // What may be tried is a small share of the time; beyond it, moves have saved more than they cost.
        let tried_seconds = total_ns as f64 * 1e-9 * 0.01;
        let most_seconds =
            if again { done.saved_seconds.max(tried_seconds) } else { tried_seconds };
        assert!(done.moving_seconds <= most_seconds, "{device}: {done:?}");
    }
}
