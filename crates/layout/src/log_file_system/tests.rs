//! The file system on the log: its order, and any sequence of operations against a plain model.

use std::collections::BTreeMap;

use agewell_core::{RandomStreams, Stream, uniform_below};

use super::*;
use agewell_log::LogShape;
use agewell_log::policy::cost::CostModel;

fn setting(segments: u32, segment_blocks: u32) -> LogFileSystemSetting {
    let disk = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 8192,
    };
    LogFileSystemSetting {
        mechanisms: Vec::new(),
        log: LogSetting::plain(
            LogShape::uniform(segments, segment_blocks).expect("a shape"),
            1,
            disk,
        ),
        block_bytes: 8192,
        cluster_blocks: 7,
        minfree_pct: 10,
    }
}

/// Transfers, as first sector and sectors.
#[derive(Default)]
struct Recorded {
    reads: Vec<(u64, u32, Content)>,
    writes: Vec<(u64, u32, Urgency)>,
}

impl FileDevice for Recorded {
    fn read(&mut self, transfer: FileTransfer) {
        self.reads.push((transfer.sector, transfer.sectors, transfer.content));
    }

    fn write(&mut self, transfer: FileTransfer) {
        self.writes.push((transfer.sector, transfer.sectors, transfer.urgency));
    }
}

#[test]
fn files_lie_in_the_reverse_order_of_their_creation() {
    let mut device = Recorded::default();
    let mut files = LogFileSystem::new(setting(64, 128)).expect("a file system");
    let numbers: Vec<u32> = (0..5)
        .map(|_| {
            let file = files.create(0, &mut device).expect("room");
            files.write(file, 0, 20_000, &mut device).expect("room");
            file
        })
        .collect();
    assert!(device.writes.is_empty(), "nothing is due");
    files.sync(&mut device).expect("room");
    assert_eq!(device.writes.len(), 1, "one partial segment");
    let sectors: Vec<u64> = numbers.iter().map(|file| files.extents(*file)[0].sector).collect();
    // Summary; then files 4 to 0, of three blocks each; the root was changed first of all.
    assert_eq!(sectors, [13 * 16, 10 * 16, 7 * 16, 4 * 16, 16]);
    assert_eq!(device.writes[0], (0, (1 + 15 + 1 + 1) * 16, Urgency::Asynchronous));
    assert_eq!(files.layout_counts(), (10, 10));
    files.read(numbers[0], 0, 20_000, &mut device).expect("there");
    assert_eq!(device.reads[0], (17 * 16, 16, Content::Inode));
    assert_eq!(device.reads[1], (13 * 16, 48, Content::Data));
}

#[test]
fn half_a_megabyte_of_dirty_blocks_goes_out_by_itself() {
    let mut device = Recorded::default();
    let mut files = LogFileSystem::new(setting(64, 128)).expect("a file system");
    let file = files.create(0, &mut device).expect("room");
    files.write(file, 0, 62 * 8192, &mut device).expect("room");
    assert!(device.writes.is_empty());
    files.write(file, 62 * 8192, 8 * 8192, &mut device).expect("room");
    assert_eq!(device.writes.len(), 1);
    files.sync_file(file, &mut device).expect("room");
    assert_eq!(device.writes[1].2, Urgency::Synchronous);
}

#[test]
fn a_full_log_refuses_and_goes_on() {
    let mut files = LogFileSystem::new(setting(20, 16)).expect("a file system");
    let file = files.create(0, &mut ()).expect("room");
    let refused = files.write(file, 0, 100 << 20, &mut ());
    assert_eq!(refused, Err(FileSystemError::NoSpace));
    files.verify();
    assert_eq!(files.create(0, &mut ()), Err(FileSystemError::NoSpace));
    files.remove(file, &mut ()).expect("a file");
    let file = files.create(0, &mut ()).expect("room again");
    files.write(file, 0, 8192, &mut ()).expect("room again");
    files.sync(&mut ()).expect("room again");
    files.verify();
}

/// A plain model: what there is, and how long it is.
#[derive(Default)]
struct Model {
    sizes: BTreeMap<u32, u64>,
    directories: Vec<u32>,
    homes: BTreeMap<u32, u32>,
}

#[test]
fn any_sequence_of_operations_leaves_what_the_model_says() {
    for seed in 0..150 {
        let mut stream = RandomStreams::new(seed).stream("operations");
        let mut files = LogFileSystem::new(setting(24, 16)).expect("a file system");
        let mut model = Model { directories: vec![0], ..Model::default() };
        for _ in 0..600 {
            step(&mut files, &mut model, &mut stream);
        }
        files.sync(&mut ()).expect("what was accepted fits");
        files.verify();
        for (file, size) in &model.sizes {
            assert_eq!(files.size_bytes(*file), *size);
            let mut end = 0;
            for extent in files.extents(*file) {
                assert!(extent.offset_bytes >= end);
                end = extent.offset_bytes + extent.bytes;
            }
            assert!(end <= size.next_multiple_of(8192));
        }
        let free: u64 = files.free_extents().iter().map(|(_, sectors)| sectors / 16).sum();
        let live = files.log.log().live_blocks();
        assert_eq!(free + live, files.log.log().shape().capacity_blocks(), "free and live is all");
        let _: u32 = files.create(0, &mut ()).unwrap_or(0);
    }
}

fn pick(model: &Model, stream: &mut Stream) -> Option<u32> {
    let at = uniform_below(stream, model.sizes.len().max(1) as u64) as usize;
    model.sizes.keys().nth(at).copied()
}

fn step(files: &mut LogFileSystem, model: &mut Model, stream: &mut Stream) {
    let directories = model.directories.len() as u64;
    let directory = model.directories[uniform_below(stream, directories) as usize];
    let bytes = uniform_below(stream, 200_000);
    match (uniform_below(stream, 9), pick(model, stream)) {
        (0 | 1, _) => {
            if let Ok(file) = files.create(directory, &mut ()) {
                model.sizes.insert(file, 0);
                model.homes.insert(file, directory);
            }
        }
        (2 | 3, Some(file)) => {
            let offset = uniform_below(stream, model.sizes[&file] + 1);
            let written = files.write(file, offset, bytes, &mut ());
            let size = model.sizes.get_mut(&file).expect("picked");
            match written {
                Ok(()) if bytes > 0 => *size = (*size).max(offset + bytes),
                Ok(()) => {}
                Err(refused) => {
                    assert_eq!(refused, FileSystemError::NoSpace);
                    let grown = files.size_bytes(file);
                    assert!(grown >= *size && grown <= (*size).max(offset + bytes));
                    *size = grown;
                }
            }
        }
        (4, Some(file)) => {
            let size = uniform_below(stream, model.sizes[&file] + 1);
            files.truncate(file, size, &mut ()).expect("there is such a file");
            model.sizes.insert(file, size);
        }
        (5, Some(file)) => {
            files.remove(file, &mut ()).expect("there is such a file");
            model.sizes.remove(&file);
            model.homes.remove(&file);
        }
        (6, Some(file)) => {
            if files.rename(file, directory, &mut ()).is_ok() {
                model.homes.insert(file, directory);
            }
        }
        (7, _) => {
            if let Ok(made) = files.make_directory(directory, &mut ()) {
                model.directories.push(made);
            }
        }
        (8, Some(file)) => files.sync_file(file, &mut ()).expect("what was accepted fits"),
        _ => files.sync(&mut ()).expect("what was accepted fits"),
    }
}
