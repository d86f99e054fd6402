//! Directories, and what is refused. What is published is held by `tests/auspex.rs`, beside a load that is optimised.

use agewell_core::SimDuration;

use super::*;

fn auspex(locality: f64, seed: u64) -> AuspexLike {
    let parameters = AuspexParameters { locality, ..AuspexParameters::default() };
    AuspexLike::new(&parameters, &RandomStreams::new(seed)).unwrap()
}

#[test]
fn a_group_is_a_directory_and_temporary_files_have_one_of_their_own() {
    let mut load = auspex(0.8, 1);
    while load.next_request().is_some() {}
    for (directory, group) in (1..).zip(load.catalogue.groups()) {
        for file in group.first_file..group.first_file + group.files {
            assert_eq!(load.directory_of(file), directory);
        }
    }
    let files = load.catalogue.file_blocks().len() as u32;
    let grouped: u32 = load.catalogue.groups().iter().map(|group| group.files).sum();
    let temporary = (0..files).filter(|file| load.directory_of(*file) == 0).count() as u32;
    assert_eq!(temporary, files - grouped);
    assert!(temporary > 1000, "{temporary}");
}

#[test]
fn a_seed_fixes_the_load_and_the_knob_moves_rewrites() {
    let start = |locality, seed| {
        let mut load = auspex(locality, seed);
        std::iter::from_fn(move || load.next_request()).take(100_000).collect::<Vec<_>>()
    };
    assert_eq!(start(0.8, 1), start(0.8, 1));
    assert_ne!(start(0.8, 1), start(0.8, 2));
    assert_ne!(start(0.8, 1), start(0.2, 1));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let fine = AuspexParameters::default();
    let refused = |parameters: AuspexParameters| {
        AuspexLike::new(&parameters, &RandomStreams::new(1)).unwrap_err().key
    };
    assert_eq!(refused(AuspexParameters { clients: 0, ..fine }), "clients");
    assert_eq!(refused(AuspexParameters { reads: 324_706, ..fine }), "reads");
    assert_eq!(refused(AuspexParameters { writes: 186_483, ..fine }), "writes");
    assert_eq!(refused(AuspexParameters { deletes: 1 << 40, ..fine }), "deletes");
    assert_eq!(refused(AuspexParameters { initial_blocks: 0, ..fine }), "initial_blocks");
    assert_eq!(refused(AuspexParameters { final_blocks: 1000, ..fine }), "final_blocks");
    let written_live_blocks = 59_813;
    assert_eq!(refused(AuspexParameters { written_live_blocks, ..fine }), "written_live_blocks");
    assert_eq!(refused(AuspexParameters { locality: f64::NAN, ..fine }), "locality");
    let duration = SimDuration(u64::MAX);
    assert_eq!(refused(AuspexParameters { duration, ..fine }), "duration");
}
