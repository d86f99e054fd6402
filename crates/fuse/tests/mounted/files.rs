//! Contents of files, and commands on them.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use agewell_fuse::Errno;
use rustix::fs::{
    Advice, FallocateFlags, SeekFrom as Find, copy_file_range, fadvise, fallocate, seek,
};

use crate::by_kernel;
use crate::place::Place;

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index / 7 + index / 4096) as u8).collect()
}

#[test]
fn large_files_go_in_requests_of_a_mebibyte_and_come_back_the_same() {
    let Some(place) = Place::plain() else { return };
    let path = place.path("a");
    let data = pattern((9 << 20) + 123);
    let mut file = File::create(&path).unwrap();
    file.write_all(&data).unwrap();
    assert_eq!(place.asked().longest_write, 1 << 20);
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    assert_eq!(place.asked().longest_read, 0);
    assert!(fs::read(&path).unwrap() == data);
    assert_eq!(place.asked().longest_read, 1 << 20);
    // Over the ends of pages, and of the file.
    file.write_all_at(b"across", 4093).unwrap();
    file.write_all_at(b"behind", data.len() as u64 + 5000).unwrap();
    let mut expected = data.clone();
    expected[4093..4099].copy_from_slice(b"across");
    expected.resize(data.len() + 5000, 0);
    expected.extend_from_slice(b"behind");
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    assert!(fs::read(&path).unwrap() == expected);
}

#[test]
fn a_file_that_is_cut_off_and_lengthened_again_is_zero_there() {
    let Some(place) = Place::plain() else { return };
    let path = place.path("a");
    fs::write(&path, pattern(20_000)).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    file.set_len(5000).unwrap();
    file.set_len(30_000).unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let mut expected = pattern(20_000)[..5000].to_vec();
    expected.resize(30_000, 0);
    assert!(fs::read(&path).unwrap() == expected);
    // Opened to be cut off: without a request of its own for opening.
    File::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn holes_are_found_punched_and_not_counted() {
    let Some(place) = Place::plain() else { return };
    let file = File::create_new(place.path("a")).unwrap();
    let mebibyte = 1_u64 << 20;
    file.write_all_at(&pattern(1 << 20), 0).unwrap();
    file.write_all_at(&pattern(1 << 20), 4 * mebibyte).unwrap();
    assert_eq!(file.metadata().unwrap().blocks(), 2 * mebibyte / 512);
    assert_eq!(seek(&file, Find::Hole(0)), Ok(mebibyte));
    assert_eq!(seek(&file, Find::Data(mebibyte)), Ok(4 * mebibyte));
    assert_eq!(seek(&file, Find::Hole(4 * mebibyte + 5)), Ok(5 * mebibyte));
    assert_eq!(seek(&file, Find::Data(5 * mebibyte)), Err(Errno::NXIO));

    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, 4 * mebibyte - 10, 8192 + 10).unwrap();
    assert_eq!(seek(&file, Find::Data(mebibyte)), Ok(4 * mebibyte + 8192));
    assert_eq!(file.metadata().unwrap().blocks(), (2 * mebibyte - 8192) / 512);
    fallocate(&file, FallocateFlags::ZERO_RANGE, 100, 50).unwrap();
    let mut expected = pattern(4096);
    expected[100..150].fill(0);
    let mut shown = vec![0; 4096];
    File::open(place.path("a")).unwrap().read_exact_at(&mut shown, 0).unwrap();
    assert_eq!(shown, expected);
    fallocate(&file, FallocateFlags::empty(), 0, 9 * mebibyte).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 9 * mebibyte);
    let collapsed = fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4096);
    assert_eq!(collapsed, Err(Errno::OPNOTSUPP));
}

#[test]
fn pieces_are_copied_without_passing_the_caller() {
    let Some(place) = Place::plain() else { return };
    let data = pattern(9 << 20);
    fs::write(place.path("a"), &data).unwrap();
    let (from, to) = (File::open(place.path("a")).unwrap(), place.path("b"));
    let copy = File::create_new(&to).unwrap();
    let (mut at, mut into) = (1000, 500);
    while copy_file_range(&from, Some(&mut at), &copy, Some(&mut into), 16 << 20).unwrap() > 0 {}
    assert_eq!(place.asked().longest_read, 0);
    assert!(fs::read(to).unwrap()[500..] == data[1000..]);
}

#[test]
fn appends_of_several_come_one_behind_another() {
    let Some(place) = Place::plain() else { return };
    let path = place.path("a");
    std::thread::scope(|scope| {
        for client in 0..4_u8 {
            let path = &path;
            scope.spawn(move || {
                let mut file = File::options().append(true).create(true).open(path).unwrap();
                (0..500).for_each(|_| file.write_all(&[client; 100]).unwrap());
            });
        }
    });
    let written = fs::read(&path).unwrap();
    assert_eq!(written.len(), 4 * 500 * 100);
    let (pieces, _) = written.as_chunks::<100>();
    for client in 0..4 {
        assert_eq!(pieces.iter().filter(|piece| **piece == [client; 100]).count(), 500);
    }
}

#[test]
fn a_full_file_system_says_so_where_it_is_written_to() {
    let Some(place) = Place::new(crate::place::With {
        behaviour: crate::in_memory::Behaviour { capacity: 1 << 20, ..crate::place::BEHAVIOUR },
        ..crate::place::PLAIN
    }) else {
        return;
    };
    let mut file = File::create(place.path("a")).unwrap();
    let block = [0; 4096];
    let error = (0..1000).find_map(|_| file.write_all(&block).err()).unwrap();
    assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
    let shown = rustix::fs::statvfs(place.point()).unwrap();
    assert_eq!((shown.f_blocks, shown.f_frsize, shown.f_namemax), (256, 4096, 255));
    assert!(shown.f_bavail < 4, "{}", shown.f_bavail);
    file.set_len(0).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&block).unwrap();
}

#[test]
fn commands_reach_it_on_files_and_directories() {
    let Some(place) = Place::plain() else { return };
    File::create(place.path("a")).unwrap();
    for path in [place.point().to_owned(), place.path("a")] {
        let file = File::open(path).unwrap();
        let mut range = [0; 16];
        range[1] = u64::MAX;
        assert_eq!(by_kernel::command(&file, by_kernel::TRIM, &mut range).unwrap(), 0);
        assert_eq!(range[1], 1 << 30);
        let unknown = by_kernel::command(&file, 0x8008_5a01, &mut range).unwrap_err();
        assert_eq!(unknown.raw_os_error(), Some(Errno::NOTTY.raw_os_error()));
    }
    let directory = File::open(place.point()).unwrap();
    by_kernel::command(&directory, by_kernel::SHUT_DOWN, &mut [0; 16]).unwrap();
    let error = File::create(place.path("b")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()));
}
