//! Files and block devices, in every way of opening them.

#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use agewell_store::device::{Disk, FileDisk, FileOptions, Piece, ReadPiece};
use proptest::prelude::*;

use crate::plain::{contents, hold_against_plain, refuses_what_is_beyond_the_end, steps};

const BLOCK: u64 = 4096;

/// Every way of opening a file.
fn ways() -> [FileOptions; 4] {
    let both = [true, false];
    let mut ways = [FileOptions::default(); 4];
    for (way, number) in ways.iter_mut().zip(0..) {
        way.is_direct = both[number / 2];
        way.uses_io_uring = both[number % 2];
    }
    ways
}

/// Folders whose file systems differ: that of the sources, and one in memory.
fn folders() -> Vec<tempfile::TempDir> {
    let places = [Path::new(env!("CARGO_TARGET_TMPDIR")), Path::new("/dev/shm")];
    let exist = places.into_iter().filter(|place| place.is_dir());
    exist.filter_map(|place| tempfile::tempdir_in(place).ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Blocks of 512 bytes are parts of sectors where those are larger.
    #[test]
    fn a_file_holds_what_was_written(steps in steps(80, 9), small in any::<bool>()) {
        let block_bytes = if small { 512 } else { BLOCK };
        for folder in folders() {
            for (number, way) in ways().into_iter().enumerate() {
                let path = folder.path().join(number.to_string());
                let disk = FileDisk::create(&path, 80 * block_bytes, way).unwrap();
                hold_against_plain(&disk, &steps, block_bytes)?;
            }
        }
    }
}

/// Pieces of every length at once, more than are in flight, from memory that is not aligned; read by
/// other means.
#[test]
fn many_and_long_pieces_arrive() {
    let size = 40 << 20;
    for folder in folders() {
        for (number, way) in ways().into_iter().enumerate() {
            let path = folder.path().join(number.to_string());
            let disk = FileDisk::create(&path, size, way).unwrap();
            let data = contents(0, size as usize + 8, number as u8);
            let mut expected = vec![0; size as usize];
            let (mut pieces, mut offset) = (Vec::new(), 0);
            for step in 0_u64.. {
                let bytes = [BLOCK, 3 * BLOCK, 5 << 20, 512 << 10][step as usize % 4];
                if offset + bytes > size {
                    break;
                }
                let piece = &data[8 + offset as usize..][..bytes as usize];
                expected[offset as usize..(offset + bytes) as usize].copy_from_slice(piece);
                pieces.push(Piece { offset, data: piece });
                // Some neighbours, some gaps.
                offset += bytes + [0, BLOCK, 0][step as usize % 3];
            }
            let many: Vec<Piece<'_>> = pieces
                .iter()
                .flat_map(|piece| {
                    let blocks = piece.data.chunks(BLOCK as usize).zip(0_u64..);
                    blocks.map(|(data, at)| Piece { offset: piece.offset + at * BLOCK, data })
                })
                .step_by(2)
                .collect();
            disk.write(&many).unwrap();
            pieces.reverse();
            disk.write(&pieces).unwrap();
            disk.flush().unwrap();
            // All at once, into memory that is aligned and into some that is not.
            let mut read = vec![0; size as usize + 8192];
            let from = read.as_ptr().align_offset(4096);
            for from in [from, from + 1] {
                let read = &mut read[from..from + size as usize];
                read.fill(0);
                disk.read(0, read).unwrap();
                assert!(*read == expected, "{way:?}");
            }
            // Together, into memory of which some is aligned: short ones, and longer ones than a buffer.
            for part_bytes in [512, 1536, 100 << 10, 5 << 20, 9 << 20] {
                read.fill(0xA5);
                let mut parts: Vec<ReadPiece<'_>> = (0..)
                    .step_by(part_bytes)
                    .zip(read[from..from + size as usize].chunks_mut(part_bytes))
                    .map(|(offset, into)| ReadPiece { offset, into })
                    .collect();
                parts.reverse();
                disk.read_pieces(&mut parts).unwrap();
                assert!(read[from..from + size as usize] == expected, "{way:?}");
            }
            drop(disk);
            assert!(std::fs::read(&path).unwrap() == expected, "{way:?}");
        }
    }
}

#[test]
fn threads_write_and_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for (number, way) in ways().into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let disk = FileDisk::create(&path, 64 << 20, way).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let disk = &disk;
                scope.spawn(move || {
                    let from = thread * (16 << 20);
                    for round in 0..4 {
                        let data = contents(from, 8 << 20, round);
                        let halves = data.chunks(3 << 20).zip(0_u64..);
                        let pieces: Vec<Piece<'_>> = halves
                            .map(|(data, part)| Piece { offset: from + part * (4 << 20), data })
                            .collect();
                        disk.write(&pieces).unwrap();
                        for piece in &pieces {
                            let mut read = vec![0; piece.data.len()];
                            disk.read(piece.offset, &mut read).unwrap();
                            assert!(read == piece.data, "{way:?}");
                        }
                        disk.flush().unwrap();
                    }
                });
            }
        });
    }
}

#[test]
fn ranges_beyond_the_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (number, way) in ways().into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let disk = FileDisk::create(&path, 3 * BLOCK, way).unwrap();
        refuses_what_is_beyond_the_end(&disk, BLOCK);
    }
}

#[test]
fn a_discard_gives_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let disk = FileDisk::create(&path, 8 << 20, FileOptions::default()).unwrap();
    disk.write(&[Piece { offset: 0, data: &vec![1; 8 << 20] }]).unwrap();
    disk.flush().unwrap();
    let taken = || std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(taken() >= 8 << 20);
    disk.discard(1 << 20, 4 << 20).unwrap();
    assert!(taken() <= (4 << 20) + (64 << 10), "{} bytes are taken", taken());
    assert_eq!(disk.size_bytes(), 8 << 20);
    let mut read = vec![0; 8 << 20];
    disk.read(0, &mut read).unwrap();
    let is_kept = |range: &[u8]| range.iter().all(|byte| *byte == 1);
    assert!(is_kept(&read[..1 << 20]) && is_kept(&read[5 << 20..]));
}

/// Blocks that follow one another on the disk and not in memory: one request that nothing is copied for,
/// where memory is aligned.
#[test]
fn neighbours_from_many_places_in_memory_arrive() {
    let blocks = 600_usize;
    let memory: Vec<u8> = (0..(blocks + 1) * BLOCK as usize).map(|at| (at / 509) as u8).collect();
    let aligned = memory.as_ptr().align_offset(BLOCK as usize);
    for folder in folders() {
        for (number, way) in ways().into_iter().enumerate() {
            for from in [aligned, aligned ^ 1] {
                let path = folder.path().join(format!("{number}-{from}"));
                let disk = FileDisk::create(&path, blocks as u64 * BLOCK, way).unwrap();
                // From the last to the first, in runs with gaps between them.
                let block = |at: usize| &memory[from + at * BLOCK as usize..][..BLOCK as usize];
                let pieces: Vec<Piece<'_>> = (0..blocks - 1)
                    .filter(|at| at % 70 != 5)
                    .map(|at| Piece { offset: at as u64 * BLOCK, data: block(blocks - 2 - at) })
                    .collect();
                disk.write(&pieces).unwrap();
                let mut expected = vec![0; blocks * BLOCK as usize];
                for piece in &pieces {
                    expected[piece.offset as usize..][..piece.data.len()]
                        .copy_from_slice(piece.data);
                }
                assert!(std::fs::read(&path).unwrap() == expected, "{way:?}");
            }
        }
    }
}

#[test]
fn a_file_that_is_filled_has_all_its_room() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bytes = (3 << 20) + BLOCK;
    for (name, is_filled) in [("filled", true), ("sparse", false)] {
        let path = folder.path().join(name);
        let create = if is_filled { FileDisk::create_filled } else { FileDisk::create };
        let disk = create(&path, bytes, FileOptions::default()).unwrap();
        assert_eq!(disk.size_bytes(), bytes);
        assert_eq!(std::fs::metadata(&path).unwrap().blocks() * 512 >= bytes, is_filled);
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_file_is_opened_by_one_writer_or_many_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let reading = FileOptions { is_read_only: true, ..FileOptions::default() };
    let open = |options: FileOptions| FileDisk::open(&path, options);
    let writer = FileDisk::create(&path, 16 * BLOCK, FileOptions::default()).unwrap();
    writer.write(&[Piece { offset: 0, data: &[3; BLOCK as usize] }]).unwrap();
    for options in [FileOptions::default(), reading] {
        let refused = open(options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
        assert_eq!(
            refused.to_string(),
            format!("{}: is in use by another process", path.display())
        );
    }
    drop(writer);
    let (first, second) = (open(reading).unwrap(), open(reading).unwrap());
    let mut read = [0; BLOCK as usize];
    first.read(0, &mut read).unwrap();
    assert_eq!(read, [3; BLOCK as usize]);
    assert!(open(FileOptions::default()).is_err());
    let changes = [first.write(&[Piece { offset: 0, data: &read }]), second.discard(0, BLOCK)];
    for change in changes {
        assert_eq!(change.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    drop((first, second));
    let left = open(FileOptions::default()).unwrap();
    assert!(open(FileOptions::default()).is_err());
    left.release();
    let next = open(FileOptions::default()).unwrap();
    drop(left);
    assert!(open(FileOptions::default()).is_err(), "who has left takes nothing from the next");
    drop(next);
}

#[test]
fn what_cannot_be_opened_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("small"), [0; 100]).unwrap();
    std::fs::write(path("there"), [0; 8192]).unwrap();
    let options = FileOptions::default();
    let errors = [
        (FileDisk::open(&path("missing"), options), "cannot open: No such file"),
        (FileDisk::open(folder.path(), options), "is neither a file nor a block device"),
        (FileDisk::open(Path::new("/dev/null"), options), "is neither a file nor a block device"),
        (FileDisk::open(&path("small"), options), "has 100 bytes, less than one block of 4 KiB"),
        (FileDisk::create(&path("there"), 8192, options), "cannot create: File exists"),
        (FileDisk::create(&path("odd"), 5000, options), "5000 bytes are not a multiple of 4 KiB"),
        (FileDisk::create(&path("odd"), 0, options), "0 bytes are not a multiple of 4 KiB"),
    ];
    for (result, expected) in errors {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(expected) && !message.contains('\n'), "{message}");
    }
    assert!(!path("odd").exists());
    std::fs::write(path("ragged"), vec![0; 10_000]).unwrap();
    assert_eq!(FileDisk::open(&path("ragged"), options).unwrap().size_bytes(), 8192);
}

/// A file that shrinks under the store: an error that names it, not a panic.
#[test]
fn a_read_that_fails_names_the_file_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let disk = FileDisk::create(&path, 16 * BLOCK, FileOptions::default()).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(BLOCK).unwrap();
    let error = disk.read(8 * BLOCK, &mut [0; BLOCK as usize]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    let message = error.to_string();
    let place = format!("{}: cannot read 4096 bytes at byte 32768: ", path.display());
    assert!(message.starts_with(&place) && !message.contains('\n'), "{message}");
}

/// A loop device over a file, if this machine lets us have one.
struct Loop {
    device: PathBuf,
}

impl Loop {
    fn over(file: &Path, sector_bytes: u32) -> Option<Self> {
        let size = sector_bytes.to_string();
        let attached = Command::new("losetup")
            .args(["--find", "--show", "--sector-size", &size])
            .arg(file)
            .output();
        let attached = attached.ok().filter(|output| output.status.success())?;
        let device = String::from_utf8(attached.stdout).ok()?;
        Some(Self { device: PathBuf::from(device.trim()) })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("--detach").arg(&self.device).status();
        assert!(detached.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// As root only. Devices of 512 and of 4096 bytes a sector, blocks of 512: smaller than a sector too.
    #[test]
    fn a_block_device_holds_what_was_written(steps in steps(80, 9)) {
        let folder = folders().pop().expect("one of them is there");
        for sector_bytes in [512, 4096] {
            let path = folder.path().join(sector_bytes.to_string());
            let file = std::fs::File::create(&path).unwrap();
            file.set_len(80 * 512).unwrap();
            let Some(device) = Loop::over(&path, sector_bytes) else {
                eprintln!("skipped: no loop device can be had (root and losetup are needed)");
                return Ok(());
            };
            for way in ways() {
                // The plain vector begins as zeros.
                let disk = FileDisk::open(&device.device, way).unwrap();
                disk.write(&[Piece { offset: 0, data: &vec![0; disk.size_bytes() as usize] }]).unwrap();
                prop_assert!(!way.is_direct || disk.alignment_bytes() == u64::from(sector_bytes));
                prop_assert_eq!(disk.is_direct(), way.is_direct);
                hold_against_plain(&disk, &steps, 512)?;
                let refused = FileDisk::open(&device.device, way).unwrap_err();
                prop_assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
            }
        }
    }
}

#[test]
fn a_file_is_made_longer_and_keeps_what_it_has() {
    for folder in folders() {
        for is_filled in [false, true] {
            let path = folder.path().join(is_filled.to_string());
            let disk = FileDisk::create(&path, 2 << 20, FileOptions::default()).unwrap();
            let data = contents(0, 2 << 20, 3);
            disk.write(&[Piece { offset: 0, data: &data }]).unwrap();
            // In use, as long already, not whole.
            FileDisk::extend(&path, 5 << 20, is_filled).unwrap_err();
            drop(disk);
            for size_bytes in [2 << 20, 1 << 20, (5 << 20) + 512] {
                let error = FileDisk::extend(&path, size_bytes, is_filled).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            }
            assert_eq!(FileDisk::extend(&path, 5 << 20, is_filled).unwrap(), 2 << 20);
            let read = std::fs::read(&path).unwrap();
            assert!(read[..2 << 20] == data && read[2 << 20..].iter().all(|byte| *byte == 0));
            assert_eq!(read.len(), 5 << 20);
            let kept = std::fs::metadata(&path).unwrap().blocks() * 512;
            assert!((kept >= 5 << 20) == is_filled, "{kept} bytes are kept");
            assert!(FileDisk::extend(folder.path(), 5 << 20, is_filled).is_err());
        }
    }
}
