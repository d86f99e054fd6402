//! Operations cost the requests that 4.4BSD makes for them.

use agewell_layout::ffs::{FastFileSystem, Parameters, Policies};
use agewell_layout::file_system::{Content, FileSystem, Urgency};

use crate::recorder::Recorder;

const BLOCK: u64 = 8192;
const BLOCK_SECTORS: u32 = 16;

fn new() -> (FastFileSystem, u32, Recorder) {
    let mut system = FastFileSystem::new(&Parameters::smith_1996(Policies::REALLOC)).unwrap();
    let root = system.root();
    // In a group whose metadata lies far from its front, where searches begin.
    let made = (0..15).map(|_| system.make_directory(root, &mut ()).unwrap());
    let directory = made.last().unwrap();
    (system, directory, Recorder::default())
}

#[test]
fn a_small_file_costs_two_synchronous_writes_and_the_rest_later() {
    // Seltzer et al. 1995, §1.1: the inode, the directory, the directory's inode, the data, and the
    // two bitmaps, which lie in one block here; the first two are synchronous.
    let (mut system, directory, mut device) = new();
    let file = system.create(directory, &mut device).unwrap();
    assert_eq!(
        device.take_writes(),
        [
            (Content::Inode, Urgency::Synchronous),
            (Content::Directory, Urgency::Synchronous),
            (Content::Inode, Urgency::Delayed),
            (Content::Map, Urgency::Delayed),
        ]
    );
    system.write(file, 0, 1024, &mut device).unwrap();
    assert_eq!(
        device.take_writes(),
        [(Content::Inode, Urgency::Delayed), (Content::Map, Urgency::Delayed)]
    );
    system.sync(&mut device).unwrap();
    assert_eq!(
        device.take_writes(),
        [(Content::Data, Urgency::Delayed), (Content::Map, Urgency::Delayed)]
    );
    system.sync(&mut device).unwrap();
    assert_eq!(device.take_writes(), [(Content::Map, Urgency::Delayed)]);
    system.remove(file, &mut device).unwrap();
    let writes = device.take_writes();
    let synchronous: Vec<Content> = writes
        .iter()
        .filter(|write| write.1 == Urgency::Synchronous)
        .map(|write| write.0)
        .collect();
    assert_eq!(synchronous, [Content::Directory, Content::Inode]);
}

#[test]
fn a_removed_file_is_never_written() {
    let (mut system, directory, mut device) = new();
    let file = system.create(directory, &mut device).unwrap();
    system.write(file, 0, 3 * BLOCK + 100, &mut device).unwrap();
    assert_eq!(device.take_data(), []);
    system.remove(file, &mut device).unwrap();
    system.sync(&mut device).unwrap();
    assert_eq!(device.take_data(), []);
}

#[test]
fn full_clusters_go_at_once_and_the_rest_waits() {
    // Smith & Seltzer 1996, §5.1: 64 KB in the first request, what remains in a second.
    let (mut system, directory, mut device) = new();
    let file = system.create(directory, &mut device).unwrap();
    system.write(file, 0, 11 * BLOCK + 3000, &mut device).unwrap();
    let start = system.extents(file)[0].sector;
    assert_eq!(device.take_data(), [(start, 8 * BLOCK_SECTORS)]);
    system.sync_file(file, &mut device).unwrap();
    // Three blocks, and three fragments of 1 KB that lie in a broken block.
    let rest = start + u64::from(8 * BLOCK_SECTORS);
    assert_eq!(device.writes.last().unwrap().content, Content::Inode);
    assert_eq!(device.writes.last().unwrap().urgency, Urgency::Synchronous);
    let fragments = system.extents(file)[1];
    assert_eq!(device.take_data(), [(rest, 3 * BLOCK_SECTORS), (fragments.sector, 6)]);
    system.sync(&mut device).unwrap();
    assert_eq!(device.take_data(), []);
}

#[test]
fn every_block_that_was_written_goes_out_once_wherever_it_moved() {
    let (mut system, directory, mut device) = new();
    // Holes of one block, so that files are reallocated.
    let small: Vec<u32> = (0..40)
        .map(|_| {
            let file = system.create(directory, &mut ()).unwrap();
            system.write(file, 0, BLOCK, &mut ()).unwrap();
            file
        })
        .collect();
    for file in small.iter().step_by(2) {
        system.remove(*file, &mut ()).unwrap();
    }
    for blocks in [2, 5, 7, 8, 12, 20] {
        let file = system.create(directory, &mut device).unwrap();
        for block in 0..blocks {
            system.write(file, block * BLOCK, BLOCK, &mut device).unwrap();
        }
        system.sync(&mut device).unwrap();
        let mut sent: Vec<u64> = device
            .take_data()
            .into_iter()
            .flat_map(|(sector, sectors)| sector..sector + u64::from(sectors))
            .collect();
        sent.sort_unstable();
        let mut lies: Vec<u64> = system
            .extents(file)
            .iter()
            .flat_map(|extent| extent.sector..extent.sector + extent.bytes / 512)
            .collect();
        lies.sort_unstable();
        assert_eq!(sent, lies, "{blocks} blocks");
    }
}

#[test]
fn reads_are_as_large_as_blocks_lie_together() {
    let (mut system, directory, mut device) = new();
    let file = system.create(directory, &mut ()).unwrap();
    // 8 + 4 blocks, then the indirect block and 3 behind it in another group.
    system.write(file, 0, 15 * BLOCK, &mut ()).unwrap();
    let end = system.create(directory, &mut ()).unwrap();
    system.write(end, 0, BLOCK + 1024, &mut ()).unwrap();
    system.read(file, 0, u64::MAX, &mut device).unwrap();
    assert_eq!(device.reads[0].content, Content::Inode);
    let indirect = device.reads.iter().position(|read| read.content == Content::Indirect);
    assert_eq!(indirect, Some(3));
    let sizes: Vec<u32> =
        device.take_reads(Content::Data).iter().map(|read| read.1 / BLOCK_SECTORS).collect();
    assert_eq!(sizes, [8, 4, 3]);
    // Fragments at the end are read by themselves.
    system.read(end, 0, 2 * BLOCK, &mut device).unwrap();
    let sizes: Vec<u32> = device.take_reads(Content::Data).iter().map(|read| read.1).collect();
    assert_eq!(sizes, [BLOCK_SECTORS, 2]);
    system.read(end, 5 * BLOCK, 1, &mut device).unwrap();
    assert_eq!(device.take_reads(Content::Data), []);
}

#[test]
fn a_part_of_a_block_is_read_before_it_is_written() {
    let (mut system, directory, mut device) = new();
    let file = system.create(directory, &mut ()).unwrap();
    system.write(file, 0, 2 * BLOCK, &mut ()).unwrap();
    system.write(file, 0, BLOCK, &mut device).unwrap();
    assert_eq!(device.reads, []);
    system.write(file, 100, 10, &mut device).unwrap();
    assert_eq!(device.take_reads(Content::Data).len(), 1);
    system.write(file, 2 * BLOCK, 10, &mut device).unwrap();
    assert_eq!(device.take_reads(Content::Data).len(), 0);
}

#[test]
fn overwriting_in_place_sends_clusters_as_they_lie() {
    let (mut system, directory, mut device) = new();
    let file = system.create(directory, &mut ()).unwrap();
    system.write(file, 0, 12 * BLOCK, &mut ()).unwrap();
    let before = system.extents(file);
    system.write(file, 0, 12 * BLOCK, &mut device).unwrap();
    system.sync(&mut device).unwrap();
    assert_eq!(system.extents(file), before);
    let sizes: Vec<u32> = device.take_data().iter().map(|write| write.1 / BLOCK_SECTORS).collect();
    assert_eq!(sizes, [8, 4]);
}
