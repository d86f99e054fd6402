//! A file system behind the seam of layouts, by example: what it is asked for, and what it sends.

use super::*;
use crate::early_unix::{EarlyUnix, EarlyUnixSetting};
use crate::ffs::{FastFileSystem, Parameters, Policies};
use crate::taken::Taken;

const BLOCK_BYTES: u64 = 8192;

fn setting(metadata: bool) -> FileSystemBlocksSetting {
    FileSystemBlocksSetting {
        block_bytes: BLOCK_BYTES,
        clients: 1,
        buffer_blocks: 100,
        metadata,
        metadata_cache_blocks: 8,
        transfer_bytes_max: 64 << 10,
    }
}

fn ffs(data_blocks: u64, policies: Policies) -> FastFileSystem {
    // Few inodes, so that data is all but all of the disk.
    let shape = Parameters::smith_1996(policies);
    let parameters = Parameters { minfree_pct: 0, bytes_per_inode: 16_384, ..shape };
    let parameters = parameters.with_data_bytes(data_blocks * BLOCK_BYTES).unwrap();
    FastFileSystem::new(&parameters).unwrap()
}

fn write(layout: &mut FileSystemBlocks<impl ExaminedFileSystem>, blocks: u32, device: &mut Taken) {
    layout.ensure_blocks(blocks);
    for block in 0..blocks {
        layout.write(block, FileBlock { file: 0, block }, 0, device).unwrap();
    }
}

#[test]
fn a_file_goes_out_and_comes_back_in_the_largest_transfers() {
    let mut layout = FileSystemBlocks::new(setting(true), ffs(4000, Policies::PLAIN));
    let mut device = Taken::default();
    layout.create(0, 0, &mut device).unwrap();
    // The inode before the name, and both at once.
    assert_eq!(device.of(Purpose::MetadataWrite).len(), 2);
    write(&mut layout, 12, &mut device);
    assert!(device.of(Purpose::NewData).is_empty());
    layout.sync(0, &mut device).unwrap();
    let sent = device.of(Purpose::NewData);
    // Twelve blocks side by side, eight at most together; eight fragments a block.
    assert_eq!(sent.iter().map(|(_, units)| *units).collect::<Vec<_>>(), [64, 32]);
    assert_eq!(sent[0].0 + 64, sent[1].0);
    device.0.clear();
    layout.read(&(0..12).collect::<Vec<_>>(), Purpose::Read, &mut device);
    assert_eq!(device.of(Purpose::Read), sent);
    assert!(device.of(Purpose::MetadataRead).is_empty(), "the inode was written just now");
    layout.verify();
}

#[test]
fn without_metadata_nothing_but_data_moves() {
    let mut layout = FileSystemBlocks::new(setting(false), ffs(4000, Policies::REALLOC));
    let mut device = Taken::default();
    layout.create(0, 3, &mut device).unwrap();
    write(&mut layout, 40, &mut device);
    layout.sync_all(&mut device).unwrap();
    layout.read(&(0..40).collect::<Vec<_>>(), Purpose::Read, &mut device);
    (0..40).for_each(|block| layout.delete(block, &mut device));
    layout.remove(0, &mut device);
    let is_data = |taken: &(Purpose, u32, u32)| matches!(taken.0, Purpose::NewData | Purpose::Read);
    assert!(device.0.iter().all(is_data) && layout.live_blocks() == 0);
}

/// Matthews 1999, §6.3: chunks of 8 blocks, evenly throughout the disk.
#[test]
fn what_is_preallocated_lies_evenly_and_the_rest_is_left() {
    let share = |layout: &mut FileSystemBlocks<FastFileSystem>| {
        layout.ensure_blocks(1600);
        layout.fragment(0, 1600, 8).unwrap();
        layout.verify();
        let mut homes: Vec<u32> = (0..1600).map(|block| layout.homes_of(block)[0]).collect();
        homes.sort_unstable();
        homes
    };
    let mut layout = FileSystemBlocks::new(setting(false), ffs(4000, Policies::PLAIN));
    let homes = share(&mut layout);
    let units = layout.system.total_sectors() / u64::from(layout.unit_sectors);
    // Of each tenth of the disk about a tenth: 160 of 1600.
    for tenth in 0..10 {
        let within = (tenth * units / 10)..((tenth + 1) * units / 10);
        let found = homes.iter().filter(|home| within.contains(&u64::from(**home))).count();
        assert!((120..=200).contains(&found), "{found} in tenth {tenth}");
    }
    let chunks = homes.chunk_by(|one, next| one + 8 == *next).count();
    assert!((190..=260).contains(&chunks), "{chunks} chunks");
    // Other live data fits.
    let mut device = Taken::default();
    layout.ensure_blocks(3600);
    for block in 1600..3600 {
        let name = FileBlock { file: 0, block: block - 1600 };
        layout.write(block, name, 0, &mut device).unwrap();
    }
    assert_eq!(layout.live_blocks(), 3600);
}

#[test]
fn early_unix_moves_each_block_by_itself() {
    let bytes = 400 * BLOCK_BYTES;
    let early = EarlyUnixSetting::matthews_1999(1024, bytes).with_data_bytes(bytes).unwrap();
    let setting = FileSystemBlocksSetting { transfer_bytes_max: 1024, ..setting(false) };
    let mut layout = FileSystemBlocks::new(setting, EarlyUnix::new(early).unwrap());
    let mut device = Taken::default();
    write(&mut layout, 3, &mut device);
    layout.sync_all(&mut device).unwrap();
    layout.read(&[0, 1, 2], Purpose::Read, &mut device);
    assert_eq!(device.of(Purpose::NewData).len(), 24);
    assert_eq!(device.of(Purpose::Read).len(), 24);
    layout.verify();
}

/// `fsck` reads all inodes whatever is in use, and then what else there is.
#[test]
fn recovery_reads_the_inode_tables_and_every_indirect_block() {
    let mut layout = FileSystemBlocks::new(setting(true), ffs(4000, Policies::PLAIN));
    let cost = |layout: &FileSystemBlocks<FastFileSystem>| {
        let mut device = Taken::default();
        layout.recover(&mut device);
        let units = |purpose| device.of(purpose).iter().map(|(_, units)| *units).sum::<u32>();
        (units(Purpose::RecoveryRead), units(Purpose::RecoveryWrite))
    };
    let empty = cost(&layout);
    let inodes = layout.system.usage().inodes;
    assert!(empty.0 * 1024 > inodes * 128, "{} fragments, {inodes} inodes", empty.0);
    write(&mut layout, 3000, &mut Taken::default());
    let full = cost(&layout);
    // 12 blocks are named by the inode, 2048 by an indirect block, the rest by one behind another.
    assert_eq!(full, (empty.0 + 3 * 8, empty.1));
}
