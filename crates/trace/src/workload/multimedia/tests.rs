//! The multimedia row of Matthews 1999, Table 4-1.

use super::*;
use crate::workload::profile::{Profile, variation};
use crate::workload::tests::check_clients;

fn made(parameters: &MultimediaParameters, seed: u64) -> Multimedia {
    Multimedia::new(parameters, &RandomStreams::new(seed)).unwrap()
}

#[test]
fn it_has_the_properties_of_its_row() {
    let workload = made(&MultimediaParameters::default(), 1);
    let profile = check_clients(&workload);
    // Order: whole files, front to back, both ways.
    for action in [FileAction::Read, FileAction::Write] {
        assert!(profile.sequential_share(action) > 0.999);
        assert!(profile.whole_file_share(action) > 0.97, "the last run is cut by nobody");
    }
    // Locality of reads: streaming; the busiest tenth of the films gets little more than its part.
    let busiest = profile.busiest_tenth(FileAction::Read, profile.all_files());
    assert!(busiest < 0.2, "{busiest}");
    // Interaction and lifetime: written once, read many times, never deleted.
    assert!(profile.overwrite_share() <= 0.0);
    assert!(profile.reads_per_written_block() > 4.0, "{}", profile.reads_per_written_block());
    assert!(profile.lifetimes_ns.is_empty());
    // Rate: sustained. While every player plays, each minute has the same number of requests.
    let rate = profile.rate(60_000_000_000);
    let busy = &rate[1..rate.len() * 3 / 4];
    assert!(variation(busy) < 0.1, "{}", variation(busy));
    // Size: big files only.
    assert!(profile.lengths.iter().all(|blocks| *blocks >= 256));
}

#[test]
fn every_recording_is_played_only_when_it_is_complete() {
    let parameters =
        MultimediaParameters { films: 1, plays: 60, ..MultimediaParameters::default() };
    let workload = made(&parameters, 3);
    assert_eq!(Profile::of(&workload.initial(), &mut workload.clone()).hole_reads, 0);
    assert!(workload.survey().files > 3);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let sane = MultimediaParameters::default();
    let refused =
        |parameters| Multimedia::new(&parameters, &RandomStreams::new(1)).unwrap_err().key;
    assert_eq!(refused(MultimediaParameters { films: 0, ..sane }), "films");
    assert_eq!(refused(MultimediaParameters { film_blocks_min: 2000, ..sane }), "film_blocks_min");
    assert_eq!(refused(MultimediaParameters { players: 0, ..sane }), "players");
    assert_eq!(refused(MultimediaParameters { request_blocks: 0, ..sane }), "request_blocks");
    let films = u32::MAX;
    assert_eq!(refused(MultimediaParameters { films, ..sane }), "film_blocks_max");
}
