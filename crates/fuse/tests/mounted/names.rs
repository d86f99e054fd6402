//! Names, attributes and who may do what.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use agewell_fs::access_list;
use agewell_fuse::Errno;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, StatxFlags, XattrFlags, lgetxattr, lgetxattr_query,
    linkat, llistxattr, lremovexattr, lsetxattr, openat, renameat_with, statx,
};

use crate::by_kernel;
use crate::place::{PLAIN, Place, With};

/// `nobody` on every Linux.
const NOBODY: u32 = 65534;

fn code(error: &std::io::Error) -> Option<i32> {
    error.raw_os_error()
}

#[test]
fn a_tree_is_made_listed_moved_and_removed() {
    let Some(place) = Place::plain() else { return };
    let directory = place.path("directory");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("file"), b"contents").unwrap();
    symlink("file", directory.join("link")).unwrap();
    fs::hard_link(directory.join("file"), directory.join("hard")).unwrap();
    assert_eq!(fs::read(directory.join("link")).unwrap(), b"contents");
    assert_eq!(fs::read_link(directory.join("link")).unwrap(), Path::new("file"));
    assert_eq!(fs::metadata(directory.join("file")).unwrap().nlink(), 2);
    assert_eq!(fs::metadata(&directory).unwrap().nlink(), 2);
    assert_eq!(fs::metadata(place.point()).unwrap().nlink(), 3);
    assert_eq!(code(&fs::remove_dir(&directory).unwrap_err()), Some(39));
    fs::rename(&directory, place.path("moved")).unwrap();
    // Remembered as absent, and remembered no longer once it is there.
    assert_eq!(code(&fs::metadata(&directory).unwrap_err()), Some(2));
    fs::write(&directory, b"a file now").unwrap();
    assert_eq!(fs::metadata(&directory).unwrap().len(), 10);
    fs::remove_dir_all(place.path("moved")).unwrap();
    fs::remove_file(&directory).unwrap();
    assert_eq!(fs::read_dir(place.point()).unwrap().count(), 0);
    // But for the root, which is never forgotten.
    assert_eq!(place.asked().inodes, 1);
}

#[test]
fn a_large_directory_is_listed_once_while_others_change_it() {
    let Some(place) = Place::plain() else { return };
    let names: BTreeSet<String> = (0..5000).map(|number| format!("stays-{number}")).collect();
    for name in &names {
        File::create(place.path(name)).unwrap();
    }
    for round in 0..3 {
        let mut found = Vec::new();
        for (number, entry) in fs::read_dir(place.point()).unwrap().enumerate() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("stays") {
                found.push(name);
            }
            if number % 50 == 0 {
                let passing = place.path(&format!("passing-{round}-{number}"));
                File::create(&passing).unwrap();
                if number % 100 == 0 {
                    fs::remove_file(passing).unwrap();
                }
            }
        }
        assert_eq!(found.len(), names.len());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), names);
    }
}

#[test]
fn names_and_attributes_are_asked_for_once() {
    let Some(place) = Place::plain() else { return };
    for number in 0..100 {
        fs::write(place.path(&format!("{number}")), b"x").unwrap();
    }
    let before = place.asked().lookups;
    for _ in 0..10 {
        for number in 0..100 {
            assert_eq!(fs::metadata(place.path(&format!("{number}"))).unwrap().len(), 1);
        }
        assert!(fs::metadata(place.path("none")).is_err());
    }
    // That of what is not there.
    assert_eq!(place.asked().lookups, before + 1);
}

#[test]
fn rename_does_as_its_flags_say() {
    let Some(place) = Place::plain() else { return };
    let (a, b) = (place.path("a"), place.path("b"));
    fs::write(&a, b"a").unwrap();
    fs::write(&b, b"b").unwrap();
    let refused = renameat_with(CWD, &a, CWD, &b, RenameFlags::NOREPLACE);
    assert_eq!(refused, Err(Errno::EXIST));
    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
    assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (b"b".to_vec(), b"a".to_vec()));
    renameat_with(CWD, &a, CWD, &b, RenameFlags::WHITEOUT).unwrap();
    let whiteout = fs::metadata(&a).unwrap();
    assert_eq!((whiteout.mode() & 0o170_000, whiteout.rdev()), (0o020_000, 0));
    assert_eq!(fs::read(&b).unwrap(), b"b");
}

#[test]
fn a_file_without_a_name_lives_while_it_is_open_and_may_get_one() {
    let Some(place) = Place::plain() else { return };
    let make = || {
        let flags = OFlags::TMPFILE | OFlags::RDWR;
        File::from(openat(CWD, place.point(), flags, Mode::from_raw_mode(0o600)).unwrap())
    };
    let mut named = make();
    named.write_all(b"was without a name").unwrap();
    assert_eq!(named.metadata().unwrap().nlink(), 0);
    let this = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&named));
    linkat(CWD, this, CWD, place.path("named"), AtFlags::SYMLINK_FOLLOW).unwrap();
    assert_eq!(fs::read(place.path("named")).unwrap(), b"was without a name");
    let inodes = place.asked().inodes;
    let unnamed = make();
    assert_eq!(place.asked().inodes, inodes + 1);
    drop(unnamed);
    // What is forgotten is said behind the call that closes it.
    while place.asked().inodes > inodes {
        std::thread::yield_now();
    }
}

#[test]
fn a_file_that_is_unlinked_is_there_until_it_is_closed() {
    let Some(place) = Place::plain() else { return };
    let path = place.path("a");
    fs::write(&path, b"still here").unwrap();
    let file = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(std::io::read_to_string(&file).unwrap(), "still here");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    assert_eq!(place.asked().inodes, 2);
    drop(file);
    while place.asked().inodes > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn statx_says_when_a_file_was_made() {
    let Some(place) = Place::plain() else { return };
    let path = place.path("a");
    fs::write(&path, b"a").unwrap();
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000, 7);
    let times = fs::FileTimes::new().set_modified(past).set_accessed(past);
    File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    let shown = statx(CWD, &path, AtFlags::empty(), StatxFlags::ALL).unwrap();
    assert!(shown.stx_mask & StatxFlags::BTIME.bits() != 0);
    assert_eq!((shown.stx_mtime.tv_sec, shown.stx_mtime.tv_nsec), (1_000_000, 7));
    assert_eq!(shown.stx_atime.tv_sec, 1_000_000);
    assert!(shown.stx_btime.tv_sec > 1_000_000);
    assert_eq!(shown.stx_size, 1);
}

#[test]
fn device_nodes_keep_their_numbers() {
    let Some(place) = Place::plain() else { return };
    let path = place.path("device");
    let device = rustix::fs::makedev(0x123, 0x4_5678);
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::CharacterDevice, mode, device).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().rdev(), device);
    let shown = statx(CWD, &path, AtFlags::empty(), StatxFlags::ALL).unwrap();
    assert_eq!((shown.stx_rdev_major, shown.stx_rdev_minor), (0x123, 0x4_5678));
}

#[test]
fn extended_attributes_pass_with_their_flags() {
    let Some(place) = Place::plain() else { return };
    let path = place.path("a");
    File::create(&path).unwrap();
    let mut value = [0; 16];
    assert_eq!(lgetxattr(&path, "user.a", &mut value), Err(Errno::NODATA));
    lsetxattr(&path, "user.a", b"value", XattrFlags::CREATE).unwrap();
    let again = lsetxattr(&path, "user.a", b"other", XattrFlags::CREATE);
    assert_eq!(again, Err(Errno::EXIST));
    let none = lsetxattr(&path, "user.b", b"b", XattrFlags::REPLACE);
    assert_eq!(none, Err(Errno::NODATA));
    lsetxattr(&path, "user.b", b"", XattrFlags::empty()).unwrap();
    assert_eq!(lgetxattr(&path, "user.a", &mut value), Ok(5));
    assert_eq!(&value[..5], b"value");
    assert_eq!(lgetxattr_query(&path, "user.a"), Ok(5));
    assert_eq!(lgetxattr(&path, "user.a", &mut [0; 4]), Err(Errno::RANGE));
    let mut names = [0; 64];
    let size = llistxattr(&path, &mut names).unwrap();
    assert_eq!(&names[..size], b"user.a\0user.b\0");
    lremovexattr(&path, "user.a").unwrap();
    assert_eq!(lgetxattr(&path, "user.a", &mut value), Err(Errno::NODATA));
}

/// rwx for the owner, `user` for user 7, r-x for the group, `mask`, nothing for others.
fn list(user: u16, mask: u16) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    let none = u32::MAX;
    for (tag, permissions, id) in
        [(1_u16, 7, none), (2, user, 7), (4, 5, none), (16, mask, none), (32, 0, none)]
    {
        value.extend(tag.to_le_bytes());
        value.extend(u16::to_le_bytes(permissions));
        value.extend(id.to_le_bytes());
    }
    value
}

#[test]
fn access_control_lists_count_and_are_inherited() {
    let Some(place) = Place::plain() else { return };
    let directory = place.path("directory");
    fs::create_dir(&directory).unwrap();
    let (access, default) = ("system.posix_acl_access", "system.posix_acl_default");
    assert_eq!(
        (access.as_bytes(), default.as_bytes()),
        (access_list::ACCESS_LIST, access_list::DEFAULT_LIST)
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;

    lsetxattr(&directory, access, &list(7, 5), XattrFlags::empty()).unwrap();
    assert_eq!(mode(&directory), 0o750);
    fs::set_permissions(&directory, Permissions::from_mode(0o770)).unwrap();
    let mut value = [0; 64];
    let size = lgetxattr(&directory, access, &mut value).unwrap();
    assert_eq!(&value[..size], list(7, 7));

    lsetxattr(&directory, default, &list(6, 6), XattrFlags::empty()).unwrap();
    let file = directory.join("file");
    fs::write(&file, b"a").unwrap();
    // The list decides, not the umask; a file is asked to be made for reading and writing.
    assert_eq!(mode(&file), 0o660);
    let size = lgetxattr(&file, access, &mut value).unwrap();
    let inherited = access_list::AccessList::parse(&list(6, 6)).unwrap().inherited(0o666);
    assert_eq!(&value[..size], inherited.to_bytes());
    let may = |user: u32| {
        use std::os::unix::process::CommandExt as _;
        let mut read = Command::new("cat");
        read.arg(&file).uid(user).gid(user).output().unwrap().status.success()
    };
    // The folder above is the test's own; others are let into it.
    let above = place.point().parent().unwrap();
    fs::set_permissions(above, Permissions::from_mode(0o755)).unwrap();
    assert!(may(7));
    assert!(!may(NOBODY));
}

#[test]
fn who_writes_to_a_file_of_another_does_not_keep_its_owners_rights() {
    let Some(place) = Place::plain() else { return };
    let above = place.point().parent().unwrap();
    fs::set_permissions(above, Permissions::from_mode(0o755)).unwrap();
    let path = place.path("program");
    let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
    let privileged = || {
        fs::write(&path, b"program").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
        assert_eq!(mode(), 0o6777);
    };
    let as_nobody = |script: &str| {
        use std::os::unix::process::CommandExt as _;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).arg("sh").arg(&path).uid(NOBODY).gid(NOBODY);
        assert!(shell.status().unwrap().success());
    };
    privileged();
    as_nobody("echo more >> \"$1\"");
    assert_eq!(mode(), 0o777);
    privileged();
    as_nobody(": > \"$1\"");
    assert_eq!(mode(), 0o777);
    // Root keeps them, but not where the owner changes.
    privileged();
    fs::write(&path, b"by root").unwrap();
    assert_eq!(mode(), 0o6777);
    std::os::unix::fs::chown(&path, Some(NOBODY), None).unwrap();
    assert_eq!(mode(), 0o777);
}

#[test]
fn a_write_does_not_ask_for_capabilities_each_time() {
    let Some(place) = Place::plain() else { return };
    let mut file = File::create(place.path("a")).unwrap();
    let before = place.asked().attribute_reads;
    (0..100).for_each(|_| file.write_all(b"a").unwrap());
    // `security.capability`, once an inode.
    assert!(place.asked().attribute_reads <= before + 1);
}

#[test]
fn a_handle_opens_a_file_that_the_kernel_has_forgotten() {
    let Some(place) = Place::plain() else { return };
    let directory = place.path("directory");
    fs::create_dir(&directory).unwrap();
    let path = directory.join("file");
    fs::write(&path, b"by handle").unwrap();
    let mut handle = by_kernel::handle_of(&path).unwrap();
    let on = File::open(place.point()).unwrap();
    let lookups = place.asked().lookups;
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
    let file = by_kernel::open_by(&mut handle, &on).unwrap();
    assert_eq!(std::io::read_to_string(file).unwrap(), "by handle");
    assert!(place.asked().lookups > lookups, "it was forgotten and looked up by its number");
    fs::remove_file(&path).unwrap();
    // When the kernel forgets a file that was closed is its own affair.
    let mut gone = (0..1000).filter_map(|_| {
        fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10));
        by_kernel::open_by(&mut handle, &on).err()
    });
    let gone = gone.next().expect("it is forgotten some time");
    assert_eq!(code(&gone), Some(Errno::STALE.raw_os_error()));
}

#[test]
fn two_threads_that_answer_give_what_one_gives() {
    let Some(place) = Place::new(With { threads: 2, ..PLAIN }) else { return };
    std::thread::scope(|scope| {
        for client in 0..4_u8 {
            let place = &place;
            scope.spawn(move || {
                let directory = place.path(&format!("{client}"));
                fs::create_dir(&directory).unwrap();
                for number in 0..300 {
                    let path = directory.join(format!("{number}"));
                    fs::write(&path, vec![client; 5000]).unwrap();
                    assert_eq!(fs::read(&path).unwrap(), vec![client; 5000]);
                    if number % 3 == 0 {
                        fs::remove_file(path).unwrap();
                    }
                }
                assert_eq!(fs::read_dir(directory).unwrap().count(), 200);
            });
        }
    });
    let (asked, ended) = place.unmounted();
    assert_eq!(asked.inodes, 1 + 4 + 4 * 200);
    ended.unwrap();
}
