//! Early UNIX keeps its blocks, and loses their order.

use proptest::prelude::*;

use super::*;
use crate::file_system::FileSystem;

fn new(block_bytes: u32, total_bytes: u64) -> EarlyUnix {
    EarlyUnix::new(EarlyUnixSetting::matthews_1999(block_bytes, total_bytes)).unwrap()
}

#[derive(Default)]
struct Recorder(Vec<(Content, Urgency)>);

impl FileDevice for Recorder {
    fn read(&mut self, _transfer: FileTransfer) {}

    fn write(&mut self, transfer: FileTransfer) {
        self.0.push((transfer.content, transfer.urgency));
    }
}

#[test]
fn the_first_files_lie_in_order_and_later_ones_do_not() {
    let mut system = new(1024, 1 << 20);
    let root = system.root();
    let make = |system: &mut EarlyUnix| {
        let file = system.create(root, &mut ()).unwrap();
        system.write(file, 0, 8 * 1024, &mut ()).unwrap();
        file
    };
    let files: Vec<u32> = (0..50).map(|_| make(&mut system)).collect();
    assert_eq!(system.layout_counts(), (50 * 7, 50 * 7));
    // Blocks freed last are allocated first, block for block in order.
    let extents = system.extents(files[3]);
    system.remove(files[10], &mut ()).unwrap();
    system.remove(files[3], &mut ()).unwrap();
    let again = make(&mut system);
    assert_eq!(system.extents(again), extents);
    // A file larger than what one left goes on where another was.
    system.remove(files[20], &mut ()).unwrap();
    system.remove(files[40], &mut ()).unwrap();
    let large = system.create(root, &mut ()).unwrap();
    system.write(large, 0, 10 * 1024, &mut ()).unwrap();
    assert_eq!(system.extents(large).len(), 2);
    system.verify();
}

#[test]
fn every_update_is_waited_for_in_the_order_of_the_paper() {
    // Matthews 1999, §3.2.
    let mut system = new(512, 1 << 20);
    let mut device = Recorder::default();
    let file = system.create(system.root(), &mut device).unwrap();
    system.write(file, 0, 512, &mut device).unwrap();
    assert!(device.0.iter().all(|write| write.1 == Urgency::Synchronous));
    let contents: Vec<Content> = device.0.iter().map(|write| write.0).collect();
    assert_eq!(
        contents,
        [Content::Inode, Content::Directory, Content::Inode]
            .into_iter()
            .chain([Content::Map, Content::Data, Content::Inode])
            .collect::<Vec<_>>()
    );
    let setting = EarlyUnixSetting { ordered: false, ..system.setting };
    let mut system = EarlyUnix::new(setting).unwrap();
    device.0.clear();
    let file = system.create(system.root(), &mut device).unwrap();
    system.write(file, 0, 600, &mut device).unwrap();
    let data: Vec<Urgency> =
        device.0.iter().filter(|write| write.0 == Content::Data).map(|write| write.1).collect();
    assert_eq!(data, [Urgency::Asynchronous, Urgency::Delayed]);
}

#[test]
fn files_reach_through_three_levels_of_indirect_blocks() {
    let mut system = new(512, 1 << 20);
    let file = system.create(system.root(), &mut ()).unwrap();
    let free = system.free.count();
    let nodes = [(5_u64, 0), (10, 1), (137, 0), (138, 2), (138 + 128, 1), (138 + 16384, 3)];
    let mut expected = 0;
    for (block, more) in nodes {
        system.write(file, block * 512, 1, &mut ()).unwrap();
        expected += more + 1;
        assert_eq!(system.free.count(), free - expected, "block {block}");
    }
    system.verify();
    system.truncate(file, 0, &mut ()).unwrap();
    assert_eq!(system.free.count(), free);
    system.verify();
    let bytes = (10 + 128 + 128 * 128 + 128_u64.pow(3)) * 512;
    assert_eq!(system.write(file, bytes, 1, &mut ()), Err(FileSystemError::TooLarge));
    assert_eq!(system.write(file, u64::MAX, 1, &mut ()), Err(FileSystemError::TooLarge));
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let good = EarlyUnixSetting::matthews_1999(512, 1 << 20);
    let wrong = [
        EarlyUnixSetting { block_bytes: 100, ..good },
        EarlyUnixSetting { total_bytes: 2000, ..good },
        EarlyUnixSetting { total_bytes: u64::MAX, ..good },
        EarlyUnixSetting { bytes_per_inode: 1, ..good },
        EarlyUnixSetting { interleave_blocks: 0, ..good },
    ];
    for setting in wrong {
        let error = EarlyUnix::new(setting).map(|_| ()).expect_err("it cannot be");
        assert!(!error.to_string().contains('\n'));
    }
}

proptest! {
    #[test]
    fn every_sequence_of_operations_is_consistent(
        steps in prop::collection::vec((0_u32..8, 0_usize..100, 0_u64..40_000, 1_u64..30_000), 1..150),
        block_bytes in prop::sample::select(vec![512_u32, 1024]),
        interleave_blocks in 1_u32..5,
        ordered in any::<bool>(),
    ) {
        let setting = EarlyUnixSetting {
            interleave_blocks,
            ordered,
            bytes_per_inode: 8192,
            ..EarlyUnixSetting::matthews_1999(block_bytes, 400 << 10)
        };
        let mut system = EarlyUnix::new(setting).unwrap();
        let (mut files, mut directories) = (Vec::new(), vec![system.root()]);
        let device = &mut Recorder::default();
        for (kind, index, at, size) in steps {
            let directory = directories[index % directories.len()];
            let file: Option<u32> = files.get(index % files.len().max(1)).copied();
            let before = (system.free.count(), system.free_inodes);
            let mut refused = false;
            match (kind, file) {
                (0 | 1, _) => match system.create(directory, device) {
                    Ok(file) => files.push(file),
                    Err(_) => refused = true,
                },
                (2, _) => match system.make_directory(directory, device) {
                    Ok(made) => directories.push(made),
                    Err(_) => refused = true,
                },
                (3, _) if system.remove_directory(directory, device).is_ok() => {
                    directories.retain(|other| *other != directory);
                }
                (4, Some(file)) => {
                    system.remove(file, device).unwrap();
                    files.retain(|other| *other != file);
                }
                (5, Some(file)) => system.truncate(file, at, device).unwrap(),
                (6, Some(file)) => refused = system.rename(file, directory, device).is_err(),
                (7, Some(file)) => {
                    let written = system.write(file, at, size, device);
                    if written.is_ok() {
                        prop_assert!(system.size_bytes(file) >= at + size);
                    } else {
                        prop_assert!(system.free.count() < 4, "refused with room left");
                    }
                }
                _ => {}
            }
            if refused {
                prop_assert_eq!(before, (system.free.count(), system.free_inodes));
            }
            system.verify();
        }
        for file in files {
            system.remove(file, device).unwrap();
        }
        system.verify();
        prop_assert_eq!(system.layout_counts(), (0, 0));
    }
}
