//! Files lie where the papers say that FFS puts them.

use agewell_layout::ffs::{
    FastFileSystem, FragmentPlacement, IndirectPlacement, Parameters, Policies,
};
use agewell_layout::file_system::{FileSystem, FileSystemError};

const BLOCK: u64 = 8192;

fn new(policies: Policies) -> FastFileSystem {
    FastFileSystem::new(&Parameters::smith_1996(policies)).unwrap()
}

fn file(system: &mut FastFileSystem, directory: u32, size_bytes: u64) -> u32 {
    let file = system.create(directory, &mut ()).unwrap();
    system.write(file, 0, size_bytes, &mut ()).unwrap();
    file
}

/// A directory in a group whose metadata lies far from its front, where searches begin.
fn far_directory(system: &mut FastFileSystem) -> u32 {
    let root = system.root();
    (0..15).map(|_| system.make_directory(root, &mut ()).unwrap()).last().unwrap()
}

/// First fragment of each block.
fn blocks(system: &FastFileSystem, file: u32) -> Vec<u32> {
    let runs = system.runs(file).unwrap();
    runs.flat_map(|run| (run.address..run.address + run.fragments).step_by(8)).collect()
}

fn groups(system: &FastFileSystem, file: u32) -> Vec<u32> {
    let per_group = system.fragments_per_group();
    blocks(system, file).iter().map(|address| address / per_group).collect()
}

/// A group whose free blocks are `holes` single ones, then a long run: files of a block each are
/// made one after the other, and every second one of the first is removed.
fn with_holes(policies: Policies, holes: usize) -> (FastFileSystem, u32) {
    let mut system = new(policies);
    let directory = far_directory(&mut system);
    let files: Vec<u32> = (0..2 * holes).map(|_| file(&mut system, directory, BLOCK)).collect();
    for file in files.iter().step_by(2) {
        system.remove(*file, &mut ()).unwrap();
    }
    (system, directory)
}

#[test]
fn the_file_system_of_1996_has_its_size_and_groups() {
    // Smith & Seltzer 1996, table 1: 502 MB, 27 groups.
    let system = new(Policies::PLAIN);
    assert_eq!(system.groups(), 27);
    let megabytes = (u64::from(system.usage().total_fragments) * 1024) >> 20;
    assert_eq!(megabytes, 502);
}

#[test]
fn directories_spread_over_the_groups_and_files_stay_with_them() {
    // §3.2: one directory for each group puts each into a group of its own.
    let mut system = new(Policies::PLAIN);
    let root = system.root();
    let made: Vec<u32> =
        (1..system.groups()).map(|_| system.make_directory(root, &mut ()).unwrap()).collect();
    let mut seen: Vec<u32> = made.iter().map(|directory| system.group_of(*directory)).collect();
    seen.sort_unstable();
    // The root has taken group 0.
    assert_eq!(seen, (1..system.groups()).collect::<Vec<_>>());
    for directory in made {
        let file = file(&mut system, directory, 3 * BLOCK);
        assert_eq!(system.group_of(file), system.group_of(directory));
        assert_eq!(groups(&system, file), [system.group_of(directory); 3]);
    }
}

#[test]
fn on_an_empty_disk_only_the_thirteenth_block_is_out_of_place() {
    for policies in [Policies::PLAIN, Policies::REALLOC] {
        for size in [2, 7, 8, 12, 13, 40, 128] {
            let mut system = new(policies);
            let directory = far_directory(&mut system);
            let file = file(&mut system, directory, size * BLOCK);
            let tally = system.file_tally(file).unwrap();
            assert_eq!(tally.counted, size - 1);
            let breaks = tally.counted - tally.optimal;
            assert_eq!(breaks, u64::from(size > 12), "{size} blocks, {policies:?}");
            if size > 12 {
                let groups = groups(&system, file);
                assert_eq!(groups[11], groups[0]);
                assert_ne!(groups[12], groups[11]);
                // The indirect block goes with the data that it names.
                let indirect = system.indirect_blocks(file).unwrap()[0];
                assert_eq!(indirect / system.fragments_per_group(), groups[12]);
            }
        }
    }
}

#[test]
fn each_megabyte_goes_to_another_group() {
    let mut system = new(Policies::PLAIN);
    let directory = far_directory(&mut system);
    let file = file(&mut system, directory, (12 + 3 * 128) * BLOCK);
    let groups = groups(&system, file);
    for megabyte in 0..3 {
        let of = &groups[12 + megabyte * 128..12 + (megabyte + 1) * 128];
        assert!(of.iter().all(|group| *group == of[0]));
        assert_ne!(of[0], groups[11 + megabyte * 128]);
    }
}

#[test]
fn single_free_blocks_are_taken_first_without_reallocation_and_not_with_it() {
    // §2: "it will allocate the single free block, making it impossible to perform contiguous
    // allocation after that block".
    let (mut plain, directory) = with_holes(Policies::PLAIN, 12);
    let scattered = file(&mut plain, directory, 7 * BLOCK);
    let tally = plain.file_tally(scattered).unwrap();
    assert!(tally.optimal < tally.counted, "{tally:?}");
    let (mut gathering, directory) = with_holes(Policies::REALLOC, 12);
    for size in 2..=7 {
        let gathered = file(&mut gathering, directory, size * BLOCK);
        let tally = gathering.file_tally(gathered).unwrap();
        assert_eq!(tally.optimal, tally.counted, "{size} blocks");
    }
    gathering.verify();
}

#[test]
fn a_second_block_that_is_not_full_is_not_gathered() {
    // §4: the quirk behind the dip of two-block files.
    let (mut system, directory) = with_holes(Policies::REALLOC, 12);
    let partial = file(&mut system, directory, 2 * BLOCK - 512);
    assert_eq!(system.file_tally(partial).unwrap().optimal, 0);
    // The next write fills it, and both move.
    system.write(partial, 2 * BLOCK - 512, 512, &mut ()).unwrap();
    assert_eq!(system.file_tally(partial).unwrap().optimal, 1);
}

#[test]
fn what_has_gone_to_a_new_group_is_not_brought_back() {
    let mut system = new(Policies::REALLOC);
    let directory = far_directory(&mut system);
    let file = file(&mut system, directory, 16 * BLOCK);
    let groups = groups(&system, file);
    assert_ne!(groups[11], groups[12]);
    assert_eq!(system.file_tally(file).unwrap().optimal, 14);
}

#[test]
fn fragments_fill_broken_blocks_before_they_break_another() {
    // Smith, "The effects of age and fragmentation": the block before does not matter.
    let mut system = new(Policies::PLAIN);
    let directory = far_directory(&mut system);
    let first = file(&mut system, directory, 3 * 1024);
    let second = file(&mut system, directory, BLOCK + 2 * 1024);
    let (first, second) = (blocks(&system, first), blocks(&system, second));
    assert_eq!(second[1], first[0] + 3);
    let near = Policies { fragments: FragmentPlacement::NearPrevious, ..Policies::PLAIN };
    let mut system = new(near);
    let directory = far_directory(&mut system);
    file(&mut system, directory, 3 * 1024);
    let second = file(&mut system, directory, BLOCK + 2 * 1024);
    let tally = system.file_tally(second).unwrap();
    assert_eq!((tally.optimal, tally.counted), (1, 1));
}

#[test]
fn fragments_grow_in_place_while_they_can_and_move_when_they_cannot() {
    let mut system = new(Policies::PLAIN);
    let directory = far_directory(&mut system);
    let growing = file(&mut system, directory, 1024);
    let start = blocks(&system, growing)[0];
    system.write(growing, 1024, 1024, &mut ()).unwrap();
    assert_eq!(blocks(&system, growing), [start]);
    // Another file takes the fragments behind it.
    let other = file(&mut system, directory, 5 * 1024);
    assert_eq!(blocks(&system, other), [start + 2]);
    system.write(growing, 2048, 1024, &mut ()).unwrap();
    let moved = blocks(&system, growing)[0];
    assert_ne!(moved, start);
    // It has a block to itself: there is room to grow in place (saving time, not space).
    assert_eq!(moved % 8, 0);
    system.write(growing, 3072, 4096, &mut ()).unwrap();
    assert_eq!(blocks(&system, growing), [moved]);
    // What is left of broken blocks is whole again when their files are gone.
    let free = system.usage().free_fragments;
    system.remove(growing, &mut ()).unwrap();
    system.remove(other, &mut ()).unwrap();
    assert_eq!(system.usage().free_fragments, free + 7 + 5);
    system.verify();
}

#[test]
fn a_rotational_gap_follows_maxcontig_blocks() {
    // Seltzer et al. 1995, table 1: maxcontig 8, 4 ms, two blocks.
    let mut system = FastFileSystem::new(&Parameters::seltzer_1995(Policies::PLAIN)).unwrap();
    let directory = far_directory(&mut system);
    let first = file(&mut system, directory, 12 * BLOCK);
    let blocks_of = blocks(&system, first);
    let steps: Vec<u32> = blocks_of.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps, [8, 8, 8, 8, 8, 8, 8, 24, 8, 8, 8]);
    // §2.1: "When a new file is allocated, its blocks are placed in these gaps."
    let gap = [blocks_of[7] + 8, blocks_of[7] + 16];
    let others: Vec<u32> = (0..40)
        .flat_map(|_| {
            let other = file(&mut system, directory, BLOCK);
            blocks(&system, other)
        })
        .collect();
    assert!(gap.iter().all(|address| others.contains(address)));
}

#[test]
fn variants_keep_large_files_together() {
    for indirect in [IndirectPlacement::NearPrevious, IndirectPlacement::NoSwitch] {
        let mut system = new(Policies { indirect, ..Policies::PLAIN });
        let directory = far_directory(&mut system);
        let file = file(&mut system, directory, 40 * BLOCK);
        let tally = system.file_tally(file).unwrap();
        assert_eq!(tally.counted - tally.optimal, 1, "{indirect:?}");
        let indirect_block = system.indirect_blocks(file).unwrap()[0];
        let blocks = blocks(&system, file);
        if indirect == IndirectPlacement::NearPrevious {
            assert_eq!((indirect_block, blocks[12]), (blocks[11] + 8, blocks[11] + 16));
        }
        assert!(groups(&system, file).windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn a_full_disk_keeps_its_reserve_and_refuses_cleanly() {
    let mut system = new(Policies::REALLOC);
    let directory = far_directory(&mut system);
    let mut files = Vec::new();
    let refused = loop {
        let file = system.create(directory, &mut ()).unwrap();
        files.push(file);
        let written = system.write(file, 0, 5_000_000, &mut ());
        if let Err(error) = written {
            break error;
        }
    };
    assert_eq!(refused, FileSystemError::NoSpace);
    let usage = system.usage();
    assert!(usage.free_fragments <= usage.reserved_fragments);
    // All but less than a block of what users may have is used.
    assert!(usage.free_fragments + 8 >= usage.reserved_fragments);
    let last = *files.last().unwrap();
    let kept = system.size_bytes(last);
    assert!(kept < 5_000_000);
    assert_eq!(kept % BLOCK, 0);
    assert_eq!(system.write(last, kept, 1, &mut ()), Err(FileSystemError::NoSpace));
    assert_eq!(system.size_bytes(last), kept);
    system.verify();
    let root = system.root();
    let used = system.usage();
    assert_eq!(system.make_directory(root, &mut ()), Err(FileSystemError::NoSpace));
    assert_eq!(system.usage(), used);
    for file in files {
        system.remove(file, &mut ()).unwrap();
    }
    system.verify();
    assert_eq!(system.layout_counts(), (0, 0));
}

#[test]
fn files_reach_into_double_indirect_blocks_and_come_back() {
    let mut system = new(Policies::REALLOC);
    let directory = far_directory(&mut system);
    let before = system.usage();
    let large = system.create(directory, &mut ()).unwrap();
    // Three indirect blocks and the one that names the second and third.
    let blocks = 12 + 2048 + 2048 + 100;
    system.write(large, 0, blocks * BLOCK, &mut ()).unwrap();
    assert_eq!(system.indirect_blocks(large).unwrap().len(), 4);
    system.verify();
    system.truncate(large, (12 + 2048 + 5) * BLOCK, &mut ()).unwrap();
    assert_eq!(system.indirect_blocks(large).unwrap().len(), 3);
    system.verify();
    system.truncate(large, 12 * BLOCK, &mut ()).unwrap();
    assert_eq!(system.indirect_blocks(large).unwrap(), []);
    // A hole over two of the maps, and one block behind it.
    system.write(large, (12 + 2048 + 2048 + 7) * BLOCK, 1, &mut ()).unwrap();
    assert_eq!(system.layout_counts().1, 12);
    system.verify();
    system.remove(large, &mut ()).unwrap();
    assert_eq!(system.usage().free_fragments, before.free_fragments);
    let bytes = 12 * BLOCK + 2048 * BLOCK + 2048 * 2048 * BLOCK;
    let file = system.create(directory, &mut ()).unwrap();
    assert_eq!(system.write(file, bytes, 1, &mut ()), Err(FileSystemError::TooLarge));
    assert_eq!(system.write(file, u64::MAX, 1, &mut ()), Err(FileSystemError::TooLarge));
    assert_eq!(system.truncate(file, bytes + 1, &mut ()), Err(FileSystemError::TooLarge));
}

#[test]
fn what_is_not_there_is_refused() {
    let mut system = new(Policies::PLAIN);
    let root = system.root();
    let directory = system.make_directory(root, &mut ()).unwrap();
    let below = system.make_directory(directory, &mut ()).unwrap();
    let no_file = |number| Err(FileSystemError::NoFile(number));
    assert_eq!(system.create(99_999_999, &mut ()), no_file(99_999_999));
    assert_eq!(system.write(directory, 0, 1, &mut ()), no_file(directory).map(|_: u32| ()));
    assert_eq!(system.remove(1, &mut ()), no_file(1).map(|_: u32| ()));
    assert_eq!(
        system.remove_directory(directory, &mut ()),
        Err(FileSystemError::NotEmpty(directory))
    );
    assert_eq!(system.remove_directory(root, &mut ()), Err(FileSystemError::NotEmpty(root)));
    assert_eq!(system.rename(directory, below, &mut ()), Err(FileSystemError::Cycle(directory)));
    system.remove_directory(below, &mut ()).unwrap();
    system.remove_directory(directory, &mut ()).unwrap();
    system.verify();
}

#[test]
fn parameters_that_do_not_go_together_are_refused_in_a_line() {
    let base = Parameters::smith_1996(Policies::PLAIN);
    let wrong = [
        Parameters { block_bytes: 3000, ..base.clone() },
        Parameters { fragment_bytes: 512, ..base.clone() },
        Parameters { heads: 0, ..base.clone() },
        Parameters { heads: u32::MAX, ..base.clone() },
        Parameters { cylinders: 0, ..base.clone() },
        Parameters { cylinders: u32::MAX, ..base.clone() },
        Parameters { cylinders_per_group: 14, ..base.clone() },
        Parameters { cylinders_per_group: u32::MAX, ..base.clone() },
        Parameters { cylinders_per_group: 160, ..base.clone() },
        Parameters { minfree_pct: 100, ..base.clone() },
        Parameters { entry_bytes: 0, ..base.clone() },
        Parameters { transfer_blocks_max: 0, ..base.clone() },
        Parameters { bytes_per_inode: 1, ..base.clone() },
        Parameters { bytes_per_inode: 129, ..base.clone() },
        Parameters { sector_bytes: 100, ..base.clone() },
        base.clone().with_total_bytes(100_000),
    ];
    for parameters in wrong {
        let error = parameters.check().expect_err(&format!("{parameters:?}"));
        assert!(!error.to_string().contains('\n'));
    }
    base.with_total_bytes(30_000_000).check().unwrap();
}

#[test]
fn files_of_one_directory_find_the_last_free_block_of_any_group() {
    let mut system = new(Policies::PLAIN);
    let directory = far_directory(&mut system);
    loop {
        let file = system.create(directory, &mut ()).unwrap();
        if system.write(file, 0, 12 * BLOCK, &mut ()).is_err() {
            break;
        }
    }
    let usage = system.usage();
    assert!(usage.free_fragments <= usage.reserved_fragments);
    // And the last free inode: of files without a block.
    while system.create(directory, &mut ()).is_ok() {}
    let usage = system.usage();
    assert!(usage.free_inodes == 0 || usage.free_fragments <= usage.reserved_fragments);
    system.verify();
}
