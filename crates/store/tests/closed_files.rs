//! Files that were closed are free. In a program of its own, for it starts processes, and what has just been
//! started has all that other tests have open.

use std::path::Path;
use std::process::Command;

use agewell_store::device::{FileDisk, FileOptions};

#[test]
fn a_closed_file_is_free_while_another_thread_starts_processes() {
    // Past the page cache and, in memory, through it.
    for place in [Path::new(env!("CARGO_TARGET_TMPDIR")), Path::new("/dev/shm")] {
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let path = folder.path().join("disk");
        drop(FileDisk::create(&path, 4096, FileOptions::default()).unwrap());
        std::thread::scope(|scope| {
            let starting = scope.spawn(|| {
                (0..300).for_each(|_| assert!(Command::new("true").status().unwrap().success()));
            });
            while !starting.is_finished() {
                drop(FileDisk::open(&path, FileOptions::default()).unwrap());
            }
        });
    }
}
