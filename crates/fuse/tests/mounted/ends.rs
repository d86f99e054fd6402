//! Being durable, and the end of a mount.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use agewell_fuse::mount::{self, MountError, MountKind};
use agewell_fuse::{Errno, Session, SessionError};
use rustix::fs::{OFlags, syncfs};
use rustix::mount::UnmountFlags;

use crate::in_memory::{Behaviour, InMemory};
use crate::place::{BEHAVIOUR, PLAIN, Place, With, options, skipped};

/// Durable only after a while, so that whoever does not wait is found out.
const SLOW: Behaviour = Behaviour { sync_takes: Duration::from_millis(300), ..BEHAVIOUR };

const SLOW_BLOCK: With = With { behaviour: SLOW, threads: 1, is_block: true };

#[test]
fn umount_of_a_block_mount_waits_until_the_file_system_has_ended() {
    let Some(place) = Place::new(SLOW_BLOCK) else { return };
    fs::write(place.path("a"), b"a").unwrap();
    let (asked, ended) = place.unmounted();
    assert_eq!(asked.ends, 1);
    ended.unwrap();
}

#[test]
fn a_plain_mount_ends_behind_umount_and_the_session_waits() {
    let Some(place) = Place::new(With { behaviour: SLOW, ..PLAIN }) else { return };
    fs::write(place.path("a"), b"a").unwrap();
    let file_system = place.unmounted_later();
    assert_eq!(file_system.asked().ends, 1);
}

#[test]
fn syncfs_of_a_block_mount_waits() {
    let Some(place) = Place::new(SLOW_BLOCK) else { return };
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    let version: (u32, u32) = (parts.next().unwrap(), parts.next().unwrap());
    if version < (6, 18) {
        println!("skipped: Linux {release} is older than 6.18 and does not ask for it");
        return;
    }
    let file = File::create(place.path("a")).unwrap();
    assert_eq!(place.asked().all_syncs, 0);
    syncfs(&file).unwrap();
    assert_eq!(place.asked().all_syncs, 1);
}

#[test]
fn fsync_waits_for_an_answer_of_another_thread_and_others_go_on() {
    let Some(place) = Place::new(With { behaviour: SLOW, ..PLAIN }) else { return };
    let mut file = File::create(place.path("a")).unwrap();
    file.write_all(b"a").unwrap();
    std::thread::scope(|scope| {
        let synced = scope.spawn(|| {
            file.sync_all().unwrap();
            place.asked().syncs
        });
        // The one thread that answers is free meanwhile.
        while !synced.is_finished() {
            fs::write(place.path("b"), b"b").unwrap();
            fs::remove_file(place.path("b")).unwrap();
        }
        assert_eq!(synced.join().unwrap(), 1);
    });
    File::open(place.point()).unwrap().sync_all().unwrap();
    assert_eq!(place.asked().syncs, 2);
}

#[test]
fn every_write_of_a_synchronous_file_is_followed_by_a_sync() {
    let Some(place) = Place::plain() else { return };
    let mut file = File::options()
        .create_new(true)
        .write(true)
        .custom_flags(OFlags::DSYNC.bits() as i32)
        .open(place.path("a"))
        .unwrap();
    for count in 1..=3 {
        file.write_all(b"a").unwrap();
        assert_eq!(place.asked().syncs, count);
    }
}

#[test]
fn an_answer_that_is_lost_is_an_error_and_nobody_waits_for_it() {
    let behaviour = Behaviour { loses_replies: true, ..BEHAVIOUR };
    let Some(place) = Place::new(With { behaviour, ..PLAIN }) else { return };
    let file = File::create(place.path("a")).unwrap();
    let error = file.sync_all().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()));
    drop(file);
    let (_, ended) = place.unmounted();
    assert!(matches!(ended, Err(SessionError::Destroy(Errno::IO))), "{ended:?}");
}

/// Not a test: what the next one runs as a process of its own, and kills.
#[test]
#[ignore = "it ends when it is killed"]
fn serve_until_killed() {
    let point = std::env::var_os("AGEWELL_FUSE_POINT").expect("run by a test");
    let connection =
        mount::mount(Path::new(&point), &options(Path::new("memory"), MountKind::Plain)).unwrap();
    Session::new(connection, agewell_fuse::Options::default())
        .run(&InMemory::new(BEHAVIOUR))
        .unwrap();
}

#[test]
fn a_mount_whose_process_was_killed_is_an_error_and_can_be_taken_away() {
    // What is missing, if anything, is said here.
    if Place::plain().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path();
    let mut served = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "ends::serve_until_killed"])
        .env("AGEWELL_FUSE_POINT", point)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let file = point.join("a");
    while fs::read_to_string("/proc/mounts")
        .unwrap()
        .lines()
        .all(|line| line.split(' ').nth(1) != Some(point.to_str().unwrap()))
    {
        assert!(served.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    fs::write(&file, b"a").unwrap();
    served.kill().unwrap();
    served.wait().unwrap();
    let error = fs::metadata(&file).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::NOTCONN.raw_os_error()));
    let again = mount::mount(point, &options(Path::new("memory"), MountKind::Plain));
    assert!(matches!(again, Err(MountError::Dead(_))), "{again:?}");
    mount::unmount(point, UnmountFlags::empty()).unwrap();
    assert_eq!(fs::read_dir(point).unwrap().count(), 0);
    let again = mount::unmount(point, UnmountFlags::empty());
    assert!(matches!(again, Err(MountError::NotMounted(_))), "{again:?}");
}

#[test]
fn what_is_in_use_is_not_unmounted() {
    let Some(place) = Place::plain() else { return };
    let file = File::create(place.path("a")).unwrap();
    let refused = mount::unmount(place.point(), UnmountFlags::empty());
    assert!(matches!(refused, Err(MountError::Busy(_))), "{refused:?}");
    drop(file);
    place.unmounted().1.unwrap();
}

#[test]
fn places_that_cannot_be_mounted_on_are_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let plain = options(Path::new("memory"), MountKind::Plain);
    for (point, expected) in [
        (folder.path().join("none"), "none: No such file or directory (os error 2)"),
        (file, "file: not a directory"),
    ] {
        let error = mount::mount(&point, &plain).unwrap_err().to_string();
        assert!(error.ends_with(expected) && !error.contains('\n'), "{error}");
    }
    let device = options(Path::new("/dev/none"), MountKind::Block { block_size: 4096 });
    let error = mount::mount(folder.path(), &device).unwrap_err();
    if matches!(error, MountError::Device(_) | MountError::NotAllowed(_)) {
        skipped(error);
        return;
    }
    assert!(error.to_string().ends_with("No such file or directory (os error 2)"), "{error}");
}
