//! The software development row of Matthews 1999, Table 4-1.

use agewell_core::FileRequest;

use super::*;
use crate::workload::FileWorkload;
use crate::workload::profile::variation;
use crate::workload::tests::check_clients;

const HOUR_NS: u64 = 60 * MINUTE_NS;

fn made(parameters: &SoftwareDevelopmentParameters) -> SoftwareDevelopment {
    SoftwareDevelopment::new(parameters, &RandomStreams::new(1)).unwrap()
}

#[test]
fn it_has_the_properties_of_its_row() {
    let parameters = SoftwareDevelopmentParameters::default();
    let workload = made(&parameters);
    let profile = check_clients(&workload);
    // Write order: executables front to back; updates of code are of one block.
    assert!(profile.sequential_share(FileAction::Write) > 0.98);
    let sources: Vec<u32> = workload
        .behaviour()
        .projects
        .iter()
        .flat_map(|project| project.first_source..project.first_source + parameters.sources)
        .collect();
    let edits = || {
        let of_code = |request: &&FileRequest| {
            request.action == FileAction::Write && sources.binary_search(&request.file).is_ok()
        };
        profile.requests.iter().filter(of_code)
    };
    assert!(edits().all(|edit| edit.blocks == 1));
    // Write locality: three quarters of the sources edited are among the last eight edited of their
    // project; were all equally likely, it would be a tenth.
    let mut recent = vec![Vec::new(); parameters.projects as usize];
    let (mut near, mut edited) = (0_u32, 0_u32);
    for edit in edits() {
        let last: &mut Vec<u32> = &mut recent[workload.directory_of(edit.file) as usize - 1];
        if last.last() == Some(&edit.file) {
            continue; // Saved again.
        }
        edited += 1;
        near += u32::from(last.iter().rev().take(8).any(|file| *file == edit.file));
        last.push(edit.file);
    }
    let share = f64::from(near) / f64::from(edited);
    assert!(share > 0.6, "{share} of {edited}");
    // Read order: whole files, in groups: what follows a source is what followed it before.
    assert!(profile.whole_file_share(FileAction::Read) > 0.99);
    // Interaction: interleaved.
    assert!(profile.mixed_share(500) > 0.9, "{}", profile.mixed_share(500));
    // Rate: bursty; in most minutes hardly anything is asked.
    let rate = profile.rate(MINUTE_NS);
    assert!(variation(&rate) > 1.5, "{}", variation(&rate));
    let idle = rate.iter().filter(|requests| **requests < 5).count();
    assert!(idle * 2 > rate.len(), "{idle} of {} minutes", rate.len());
    // Size: bimodal; nearly all files are small, none in between, executables are large.
    let large = profile.lengths.iter().filter(|blocks| **blocks > 100).count() as u32;
    assert_eq!(large, parameters.projects);
    assert!(profile.lengths.iter().all(|blocks| *blocks <= 6 || *blocks > 100));
    // Lifetime: bimodal; most of what is written dies within seconds or at one of the next builds,
    // hardly anything dies later, and yet much of what is live has been there all day.
    assert!(profile.died_within(2 * HOUR_NS) > 0.7, "{}", profile.died_within(2 * HOUR_NS));
    let late = profile.lifetimes_ns.iter().filter(|age| **age > 8 * HOUR_NS).count();
    assert!(late * 20 < profile.lifetimes_ns.len(), "{late} blocks");
    let temporary = profile.lifetimes_ns.iter().filter(|age| **age < 1_000_000_000).count();
    assert!(temporary > 1000, "{temporary} blocks died within a second");
    assert!(profile.live_older_than(8 * HOUR_NS) > 0.3, "{}", profile.live_older_than(8 * HOUR_NS));
}

#[test]
fn a_compilation_reads_the_same_headers_in_the_same_order_each_time() {
    let workload = made(&SoftwareDevelopmentParameters::default());
    let headers = workload.parameters().headers;
    let project = &workload.behaviour().projects[1];
    let source = project.first_source + 7;
    let mut group: Option<Vec<u32>> = None;
    let mut copy = workload.clone();
    let all: Vec<_> = std::iter::from_fn(|| copy.next_request()).collect();
    let mut seen = 0;
    for client in 0..4 {
        let own: Vec<_> = all.iter().filter(|request| request.client == client).collect();
        for at in 0..own.len() {
            if own[at].action != FileAction::Read || own[at].file != source {
                continue;
            }
            let follows = own[at + 1..].iter().take_while(|next| next.file < headers);
            let files: Vec<u32> = follows.map(|next| next.file).collect();
            if files.is_empty() {
                continue; // Read by the editor.
            }
            seen += 1;
            assert_eq!(*group.get_or_insert(files.clone()), files);
        }
    }
    assert!(seen > 2, "compiled {seen} times");
    assert_eq!(group.unwrap().len(), 8);
}

#[test]
fn files_are_in_the_directories_of_their_projects() {
    let workload = made(&SoftwareDevelopmentParameters::default());
    let mut copy = workload.clone();
    let all: Vec<_> = std::iter::from_fn(|| copy.next_request()).collect();
    let projects = workload.parameters().projects;
    assert_eq!(workload.directory_of(0), 0);
    assert_eq!(workload.directory_of(workload.behaviour().projects[4].first_source), 5);
    let deleted = all.iter().find(|request| request.action == FileAction::Delete).unwrap();
    assert_eq!(copy.directory_of(deleted.file), projects + 1, "a temporary file");
}

#[test]
fn parameters_out_of_range_are_refused() {
    let sane = SoftwareDevelopmentParameters::default();
    let refused =
        |parameters| SoftwareDevelopment::new(&parameters, &RandomStreams::new(1)).unwrap_err().key;
    assert_eq!(refused(SoftwareDevelopmentParameters { developers: 0, ..sane }), "developers");
    assert_eq!(refused(SoftwareDevelopmentParameters { projects: 3, ..sane }), "projects");
    assert_eq!(refused(SoftwareDevelopmentParameters { includes: 61, ..sane }), "includes");
    assert_eq!(refused(SoftwareDevelopmentParameters { edits_max: 0, ..sane }), "edits_max");
    let think = SimDuration(1 << 41);
    assert_eq!(refused(SoftwareDevelopmentParameters { think, ..sane }), "think");
}
