//! The published facts of the long-term trace.

use agewell_core::FileRequest;

use super::*;
use crate::workload::FileWorkload;
use crate::workload::profile::variation;
use crate::workload::tests::check_clients;

const HOUR_NS: u64 = 3600 * SECOND_NS;

fn made(parameters: &LongTermParameters, seed: u64) -> LongTerm {
    LongTerm::new(parameters, &RandomStreams::new(seed)).unwrap()
}

#[test]
fn it_has_the_published_facts() {
    let parameters = LongTermParameters::default();
    let workload = made(&parameters, 1);
    let profile = check_clients(&workload);
    // Fourteen machines, three months.
    assert_eq!(workload.survey().clients, 14);
    let end_ns = profile.requests.last().unwrap().time.0;
    assert!(end_ns > 90 * 24 * HOUR_NS && end_ns < 92 * 24 * HOUR_NS);
    // Reads over writes.
    let ratio = profile.blocks[0] as f64 / profile.blocks[1] as f64;
    assert!((ratio / 3.7 - 1.0).abs() < 0.01, "{ratio}");
    // About half of the 42.9 GB that 52,743 MB in 112 days are in thirteen weeks.
    let read_gb = profile.blocks[0] as f64 * 8192.0 / 1e9;
    assert!((15.0..27.0).contains(&read_gb), "{read_gb} GB");
    // Most of what is created dies within minutes to an hour; most of what is live is months old.
    let died = profile.died_within(HOUR_NS);
    assert!(died > 0.45, "{died}");
    let old = profile.live_older_than(30 * 24 * HOUR_NS);
    assert!(old > 0.5, "{old}");
    // Bimodal access: files written again and again and never read, and files read only.
    let status = |file: u32| workload.directory_of(file) == STATUS_DIRECTORY;
    let touched = |file: u32, action: FileAction| {
        let fits = |request: &&FileRequest| request.file == file && request.action == action;
        profile.requests.iter().filter(fits).count()
    };
    let files = workload.initial().len() as u32;
    let status_files: Vec<u32> = (0..files).filter(|file| status(*file)).collect();
    assert_eq!(status_files.len(), 28);
    for file in status_files {
        assert_eq!(touched(file, FileAction::Read), 0);
        assert!(touched(file, FileAction::Write) > 100);
    }
    for library in 0..parameters.libraries {
        assert_eq!(touched(library, FileAction::Write), 0);
    }
    // Small files are read whole; of the larger ones some are not read front to back.
    let small = |request: &&FileRequest| {
        request.action == FileAction::Read && profile.lengths[request.file as usize] <= 2
    };
    for read in profile.requests.iter().filter(small) {
        assert_eq!((read.block, read.blocks), (0, profile.lengths[read.file as usize]));
    }
    let sequential = profile.sequential_share(FileAction::Read);
    assert!((0.9..0.999).contains(&sequential), "{sequential}");
    // Bursts: in most hours most machines do nothing.
    assert!(variation(&profile.rate(HOUR_NS)) > 0.7);
}

#[test]
fn a_program_is_read_in_the_same_order_each_time() {
    let parameters = LongTermParameters { read_write_ratio: 1e6, ..LongTermParameters::default() };
    let workload = made(&parameters, 2);
    let mut copy = workload.clone();
    let all: Vec<_> = std::iter::from_fn(|| copy.next_request()).collect();
    let own: Vec<_> = all.iter().filter(|request| request.client == 0).collect();
    let programs = &workload.behaviour().programs;
    let popular = programs.iter().find(|program| {
        program.paged && {
            own.iter().filter(|request| request.file == program.binary).count() > 20
        }
    });
    let program = popular.expect("a program of 600 is read out of order and run often");
    // What a run reads: from its first request to the pause behind it.
    let pause = |at: usize| own[at].time.0 - own[at - 1].time.0 > 1_000_000_000;
    let starts: Vec<usize> =
        (1..own.len()).filter(|at| pause(*at) && own[*at].file == program.binary).collect();
    assert!(starts.len() > 1, "run {} times", starts.len());
    let run = |start: usize| -> Vec<(u32, u32, u32)> {
        let end = (start + 1..own.len()).find(|at| pause(*at)).unwrap_or(own.len());
        let read = |at: usize| (own[at].file, own[at].block, own[at].blocks);
        (start..end).map(read).collect()
    };
    let first = run(starts[0]);
    assert!(first.windows(2).any(|pair| pair[1].0 == pair[0].0 && pair[1].1 < pair[0].1));
    for start in &starts {
        assert_eq!(run(*start), first);
    }
}

#[test]
fn a_new_version_takes_the_place_of_the_old_one_in_the_same_directory() {
    let workload = made(&LongTermParameters::default(), 3);
    let mut copy = workload.clone();
    while copy.next_request().is_some() {}
    let before = &workload.behaviour().programs;
    let replaced =
        before.iter().zip(&copy.behaviour().programs).filter(|(old, new)| old.binary != new.binary);
    let mut count = 0;
    for (old, new) in replaced {
        count += 1;
        assert_eq!(copy.directory_of(old.binary), copy.directory_of(new.binary));
        assert_eq!(old.small_files.len(), new.small_files.len());
    }
    assert!(count > 50, "{count} of 600 programs replaced");
}

#[test]
fn parameters_out_of_range_are_refused() {
    let sane = LongTermParameters::default();
    let refused = |parameters| LongTerm::new(&parameters, &RandomStreams::new(1)).unwrap_err().key;
    assert_eq!(refused(LongTermParameters { machines: 0, ..sane }), "machines");
    assert_eq!(refused(LongTermParameters { libraries: 3, ..sane }), "libraries");
    let read_write_ratio = 0.0;
    assert_eq!(refused(LongTermParameters { read_write_ratio, ..sane }), "read_write_ratio");
    assert_eq!(refused(LongTermParameters { paged_share: f64::NAN, ..sane }), "paged_share");
}
