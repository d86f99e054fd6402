//! Benchmarks of a directory: what they leave behind, and what they refuse.

use super::*;

/// A directory for files, in memory where there is such a place: a sync there waits for nothing.
fn place() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a place for files")
}

/// Without emptying the caches of the whole machine.
fn open(path: &Path) -> Result<RealBench, AgeError> {
    RealBench::open(path, 1, CacheControl::Advise)
}

/// A plan is carried out, its numbers are of what was asked, and nothing is left.
#[test]
fn a_benchmark_leaves_nothing_behind() {
    let place = place();
    std::fs::write(place.path().join("mine"), "kept").expect("room");
    let mut bench = open(place.path()).expect("a directory");
    let plan = SequentialPlan::new(3000, 200_000, 25, true);
    let done = bench.sequential(&plan).expect("room");
    for phase in [done.create, done.read, done.overwrite] {
        assert_eq!(phase.bytes, 66 * 3000);
        assert!(phase.time_ns > 0);
    }
    let left: Vec<_> = std::fs::read_dir(place.path()).expect("readable").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(std::fs::read(place.path().join("mine")).expect("there"), b"kept");
}

/// More directories than are kept open.
#[test]
fn many_directories() {
    let place = place();
    let mut bench = open(place.path()).expect("a directory");
    let plan = SequentialPlan::new(10, 6000, 1, false);
    assert_eq!(plan.directories(), 600);
    assert_eq!(bench.sequential(&plan).expect("room").read.bytes, 6000);
}

/// Files that are there are read; they change only when they may.
#[test]
fn existing_files_are_written_only_when_told() {
    let place = place();
    let path = place.path().join("mine");
    std::fs::write(&path, vec![7; 5000]).expect("room");
    let mut bench = open(place.path()).expect("a directory");
    let chosen = [PathBuf::from("mine")];
    let (read, write, _) = bench.existing(&chosen, false).expect("readable");
    assert_eq!((read.bytes, write), (5000, None));
    assert_eq!(std::fs::read(&path).expect("there"), vec![7; 5000]);
    let (_, write, _) = bench.existing(&chosen, true).expect("writable");
    assert_eq!(write.expect("asked for").bytes, 5000);
    let now = std::fs::read(&path).expect("there");
    assert!(now.len() == 5000 && now != vec![7; 5000]);
}

/// Paths that lead outside are refused, also by a link.
#[test]
fn nothing_outside_is_touched() {
    let outside = place();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "secret").expect("room");
    let place = place();
    std::os::unix::fs::symlink(outside.path(), place.path().join("link")).expect("room");
    let mut bench = open(place.path()).expect("a directory");
    for path in ["link/secret", "../secret", secret.to_str().expect("text")] {
        bench.existing(&[PathBuf::from(path)], true).expect_err(path);
    }
    assert_eq!(std::fs::read(&secret).expect("there"), b"secret");
}

/// What another benchmark left is not taken for one's own.
#[test]
fn an_occupied_place_is_refused() {
    let place = place();
    std::fs::create_dir(place.path().join("agewell-bench")).expect("room");
    let mut bench = open(place.path()).expect("a directory");
    let plan = SequentialPlan::new(10, 100, 1, false);
    let refused = bench.sequential(&plan).expect_err("occupied");
    assert!(matches!(refused, AgeError::Input(_)), "{refused}");
}
