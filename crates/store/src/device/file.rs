//! A file or block device.
//!
//! It is opened past the page cache where that can be done, so that what a store keeps in memory is
//! not kept there twice, and what it measures is the device. Requests that are not aligned as the
//! device wants them go through memory that is; of those that are shorter than a sector of the device
//! the rest is read first.
//!
//! Locks: `ragged` while a part of a sector is changed; those of the pools, `buffers` and `rings`, for
//! as long as something is taken or given back. None is taken while one of a pool is held.

mod aligned;
mod kernel;
mod requests;
mod ring;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::{Deref, Range};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::{
    Access, Advice, AtFlags, FallocateFlags, FlockOperation, OFlags, StatxFlags, access, fadvise,
    fallocate, flock, fstatfs, statx,
};
use rustix::io::Errno;

use super::{Disk, Piece, ReadPiece, check_pieces, check_range};
use crate::aligned::{MEMORY_ALIGNMENT, is_aligned};
use aligned::{AlignedBuffer, BUFFER_BYTES, Buffers, READ_BYTES, REQUEST_BYTES};
use requests::{Batch, Pieces, Request};
use ring::Ring;

/// Sizes are multiples of it, whatever way a file is opened; no device has larger sectors. Chosen by us.
const SIZE_UNIT_BYTES: u64 = 4096;
/// Threads that write where there is no io_uring; chosen by us: measured on a virtual disk, four requests
/// in flight have most of what more would bring.
const WRITERS: usize = 4;

/// `TMPFS_MAGIC`, `RAMFS_MAGIC`; Linux `include/uapi/linux/magic.h`.
const MEMORY_FILE_SYSTEMS: [u32; 2] = [0x0102_1994, 0x8584_58F6];

/// How a file or device is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOptions {
    /// Nothing is ever changed; others may open it so at the same time.
    pub is_read_only: bool,
    /// Past the page cache, where that can be done.
    pub is_direct: bool,
    /// Several requests are in flight through io_uring, where the kernel has it; else writes by threads.
    pub uses_io_uring: bool,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { is_read_only: false, is_direct: true, uses_io_uring: true }
    }
}

/// An error of a file, with its path: one line, of the same kind.
#[derive(Debug)]
struct FileError {
    path: PathBuf,
    what: String,
    source: io::Error,
}

impl fmt::Display for FileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}: {}", self.path.display(), self.what, self.source)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn failed(path: &Path, what: impl Into<String>, source: io::Error) -> io::Error {
    let kind = source.kind();
    io::Error::new(kind, FileError { path: path.to_owned(), what: what.into(), source })
}

fn refused(path: &Path, kind: io::ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, format!("{}: {why}", path.display()))
}

/// A file that is locked until it is dropped. To close it is not enough: a process that another thread is
/// about to start has a copy of what is open, and the lock with it, until it runs its program.
#[derive(Debug)]
struct LockedFile(File);

impl AsFd for LockedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl LockedFile {
    fn unlock(&self) {
        // Of a block device there is no lock.
        let _ = flock(&self.0, FlockOperation::NonBlockingUnlock);
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// A file or block device, locked for as long as it is open.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    file: LockedFile,
    size_bytes: AtomicU64,
    is_block_device: bool,
    is_read_only: bool,
    /// Where requests begin and end; 1 through the page cache.
    alignment: u64,
    takes_discards: AtomicBool,
    /// Discards begin and end at multiples of it.
    discard_unit: u64,
    /// Held while a part of a sector is read, changed and written.
    ragged: Mutex<()>,
    buffers: Buffers,
    /// Queues that nobody uses at the moment; none at all where writers are threads.
    rings: Option<Mutex<Vec<Ring>>>,
    /// What its time counts from.
    opened: Instant,
}

impl FileDisk {
    /// Opens the file or block device `path`. Of its size, what is beyond the last whole 4 KiB is not
    /// used.
    ///
    /// # Errors
    /// If it cannot be opened, is something else, is too small, or is in use: by a mounted file system,
    /// or by another process that holds it so.
    pub fn open(path: &Path, options: FileOptions) -> io::Result<Self> {
        let cannot = |source| failed(path, "cannot open", source);
        let kind = std::fs::metadata(path).map_err(cannot)?.file_type();
        let is_block_device = kind.is_block_device();
        if !kind.is_file() && !is_block_device {
            let why = "is neither a file nor a block device";
            return Err(refused(path, io::ErrorKind::InvalidInput, why));
        }
        let mut alignment = 1;
        let mut opened = None;
        if options.is_direct {
            opened = open_direct(path, options, is_block_device)?;
        }
        let file = match opened {
            Some((file, offsets)) => {
                alignment = offsets;
                file
            }
            None => open_file(path, options, is_block_device, OFlags::empty())?,
        };
        let bytes = length_of(&file).map_err(cannot)?;
        let size_bytes = bytes / SIZE_UNIT_BYTES * SIZE_UNIT_BYTES;
        if size_bytes == 0 {
            let why = format!("has {bytes} bytes, less than one block of 4 KiB");
            return Err(refused(path, io::ErrorKind::InvalidInput, &why));
        }
        let discard_unit = if is_block_device { sector_bytes(&file) } else { 1 };
        // Whether the kernel has it is seen once; later queues are made as they are needed.
        let is_of_use = options.uses_io_uring && alignment > 1;
        let first = is_of_use.then(Ring::new).and_then(Result::ok);
        Ok(Self {
            path: path.to_owned(),
            file,
            size_bytes: AtomicU64::new(size_bytes),
            is_block_device,
            is_read_only: options.is_read_only,
            alignment,
            takes_discards: AtomicBool::new(true),
            discard_unit,
            ragged: Mutex::default(),
            buffers: Buffers::default(),
            rings: first.map(|ring| Mutex::new(vec![ring])),
            opened: now(),
        })
    }

    /// Whether nobody can write to `path`: a block device that is write-protected, or a file where nothing may
    /// be written. False where that cannot be found out; then it is seen when it is opened.
    #[must_use]
    pub fn is_write_protected(path: &Path) -> bool {
        let Ok(found) = std::fs::metadata(path) else { return false };
        if found.file_type().is_block_device() {
            let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
            let said = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"));
            return said.is_ok_and(|said| said.trim_end() == "1");
        }
        matches!(access(path, Access::WRITE_OK), Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
    }

    /// Creates the file `path` of `size_bytes`, a multiple of 4 KiB, which takes room as it is written,
    /// and opens it.
    ///
    /// # Errors
    /// If there is such a file, or it cannot be made.
    pub fn create(path: &Path, size_bytes: u64, options: FileOptions) -> io::Result<Self> {
        Self::create_as(path, size_bytes, options, |file| file.set_len(size_bytes))
    }

    /// The same, written with zeros from end to end. It takes as long as the device needs for that; in return
    /// no flush waits for the file system's journal later, because nothing is left to be allocated.
    ///
    /// # Errors
    /// As those of [`create`](Self::create), or if there is not so much room.
    pub fn create_filled(path: &Path, size_bytes: u64, options: FileOptions) -> io::Result<Self> {
        Self::create_as(path, size_bytes, options, |file| fill(file, 0, size_bytes))
    }

    /// Makes the file `path` longer: of `size_bytes`, a multiple of 4 KiB. What is added is written with
    /// zeros if `is_filled`, as [`create_filled`](Self::create_filled) does, and is a hole otherwise. How
    /// long it was.
    ///
    /// # Errors
    /// If it is no file, in use, or as long already, or if there is not so much room: then it is as long as
    /// it was.
    pub fn extend(path: &Path, size_bytes: u64, is_filled: bool) -> io::Result<u64> {
        require_file(path)?;
        let file = open_file(path, FileOptions::default(), false, OFlags::empty())?;
        lengthen(path, &file, size_bytes, is_filled)
    }

    /// The same with a file that may be in use, by whoever [measures](Disk::measure) it then.
    ///
    /// # Errors
    /// Likewise.
    pub fn extend_in_use(path: &Path, size_bytes: u64, is_filled: bool) -> io::Result<u64> {
        require_file(path)?;
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|source| failed(path, "cannot open", source))?;
        lengthen(path, &file, size_bytes, is_filled)
    }

    fn create_as(
        path: &Path,
        size_bytes: u64,
        options: FileOptions,
        make: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<Self> {
        if size_bytes == 0 || !size_bytes.is_multiple_of(SIZE_UNIT_BYTES) {
            let why = format!("{size_bytes} bytes are not a multiple of 4 KiB");
            return Err(refused(path, io::ErrorKind::InvalidInput, &why));
        }
        let cannot = |source| failed(path, "cannot create", source);
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(cannot)?;
        let opened = make(&file).map_err(cannot).and_then(|()| Self::open(path, options));
        if opened.is_err() {
            // The error is why; that a file stays is seen.
            let _ = std::fs::remove_file(path);
        }
        opened
    }

    /// Whether the page cache is left out.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.alignment > 1
    }

    /// Whether several requests are in flight through io_uring.
    #[must_use]
    pub fn uses_io_uring(&self) -> bool {
        self.rings.is_some()
    }

    /// Bytes that are written without being read first are multiples of it; 1 through the page cache.
    #[must_use]
    pub fn alignment_bytes(&self) -> u64 {
        self.alignment
    }

    fn is_whole(&self, offset: u64, bytes: usize) -> bool {
        (offset | bytes as u64).is_multiple_of(self.alignment)
    }

    fn require_writable(&self) -> io::Result<()> {
        if self.is_read_only {
            let why = "is open for reading only";
            return Err(refused(&self.path, io::ErrorKind::PermissionDenied, why));
        }
        Ok(())
    }

    /// Calls `visit` with whole sectors that cover `bytes` bytes from `offset` on, in steps that fit a
    /// buffer: where they begin and how many bytes they are, and which of the bytes, counted from
    /// `offset`, lie where in them.
    fn each_covering(
        &self,
        offset: u64,
        bytes: usize,
        mut visit: impl FnMut(u64, usize, Range<usize>, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < bytes {
            let at = offset + done as u64;
            let from = at / self.alignment * self.alignment;
            let before = (at - from) as usize;
            let length = (bytes - done).min(READ_BYTES);
            let whole = (before + length).next_multiple_of(self.alignment as usize);
            visit(from, whole, done..done + length, before)?;
            done += length;
        }
        Ok(())
    }

    /// Fills `sectors`, which are aligned as direct requests must be; long ones with several requests in
    /// flight.
    fn read_sectors(&self, offset: u64, sectors: &mut [u8]) -> io::Result<()> {
        if sectors.len() <= REQUEST_BYTES {
            return self.file.read_exact_at(sectors, offset);
        }
        self.read_requests(&mut in_requests(offset, sectors).collect::<Vec<_>>())
    }

    /// Carries `requests` out, several in flight.
    fn read_requests(&self, requests: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let ring = if requests.len() > 1 { self.take_ring() } else { None };
        let Some(mut ring) = ring else {
            let mut all = requests.iter_mut();
            return all.try_for_each(|(offset, into)| self.file.read_exact_at(into, *offset));
        };
        let read = ring.read(&self.file, requests);
        self.give_back_ring(ring);
        read
    }

    /// Whether `piece` is read to where it goes, without a copy.
    fn takes(&self, piece: &ReadPiece<'_>) -> bool {
        is_aligned(piece.into) && self.is_whole(piece.offset, piece.into.len())
    }

    /// Whole sectors that cover `piece`: where they begin, and how many bytes they are.
    fn covering(&self, piece: &ReadPiece<'_>) -> (u64, usize) {
        let from = piece.offset / self.alignment * self.alignment;
        let end = piece.offset + piece.into.len() as u64;
        (from, (end.next_multiple_of(self.alignment) - from) as usize)
    }

    /// Fills `pieces`, those that are not aligned through memory that is, as many at a time as that has
    /// room for.
    fn read_together(&self, mut pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        while !pieces.is_empty() {
            let mut used = 0;
            let fit = pieces.iter().take_while(|piece| {
                used += if self.takes(piece) { 0 } else { in_memory(self.covering(piece).1) };
                used <= BUFFER_BYTES
            });
            let fit = fit.count();
            if fit == 0 {
                self.read_copied(pieces[0].offset, pieces[0].into)?;
                pieces = &mut pieces[1..];
                continue;
            }
            let mut buffer = self.buffers.take();
            let read = self.read_batch(&mut pieces[..fit], &mut buffer);
            self.buffers.give_back(buffer);
            read?;
            pieces = &mut pieces[fit..];
        }
        Ok(())
    }

    /// Fills `pieces`; `buffer` has room for those that are not aligned.
    fn read_batch(
        &self,
        pieces: &mut [ReadPiece<'_>],
        buffer: &mut AlignedBuffer,
    ) -> io::Result<()> {
        let (mut requests, mut rest) = (Vec::new(), buffer.first(BUFFER_BYTES));
        for piece in pieces.iter_mut() {
            if self.takes(piece) {
                requests.extend(in_requests(piece.offset, piece.into));
                continue;
            }
            let (from, bytes) = self.covering(piece);
            let (sectors, behind) = rest.split_at_mut(in_memory(bytes));
            rest = behind;
            requests.extend(in_requests(from, &mut sectors[..bytes]));
        }
        self.read_requests(&mut requests)?;
        let mut at = 0;
        for piece in pieces.iter_mut().filter(|piece| !self.takes(piece)) {
            let (from, bytes) = self.covering(piece);
            let before = at + (piece.offset - from) as usize;
            piece.into.copy_from_slice(&buffer.bytes()[before..before + piece.into.len()]);
            at += in_memory(bytes);
        }
        Ok(())
    }

    /// Queues of its own for a caller; none if there is no io_uring, or no more of it: a process may have
    /// as many as its memory limits allow.
    fn take_ring(&self) -> Option<Ring> {
        let rings = self.rings.as_ref()?;
        let free = rings.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.or_else(|| Ring::new().ok())
    }

    fn give_back_ring(&self, ring: Ring) {
        if let Some(rings) = self.rings.as_ref().filter(|_| !ring.is_broken()) {
            rings.lock().unwrap_or_else(PoisonError::into_inner).push(ring);
        }
    }

    /// Reads through aligned memory, and the sectors that `into` is a part of.
    fn read_copied(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut buffer = self.buffers.take();
        let read = self.each_covering(offset, into.len(), |from, whole, part, before| {
            let sectors = buffer.first(whole);
            self.read_sectors(from, sectors)?;
            let length = part.len();
            into[part].copy_from_slice(&sectors[before..before + length]);
            Ok(())
        });
        self.buffers.give_back(buffer);
        read
    }

    /// Writes what is not whole sectors: the rest of them is read first.
    fn write_ragged(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let _alone = self.ragged.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = self.buffers.take();
        let written = self.each_covering(offset, data.len(), |from, whole, part, before| {
            let sectors = buffer.first(whole);
            self.file.read_exact_at(sectors, from)?;
            sectors[before..before + part.len()].copy_from_slice(&data[part]);
            self.file.write_all_at(sectors, from)
        });
        self.buffers.give_back(buffer);
        written
    }

    /// Writes `requests`, several in flight where that is of use: to the page cache one after another.
    fn write_together(&self, requests: &[Request<'_>]) -> io::Result<()> {
        if requests.len() == 1 || !self.is_direct() {
            return requests.iter().try_for_each(|request| self.write_one(request));
        }
        let Some(mut ring) = self.take_ring() else { return self.write_by_threads(requests) };
        let written = ring.write(&self.file, requests);
        self.give_back_ring(ring);
        written
    }

    /// Writes one request, from all the places where its bytes are.
    fn write_one(&self, request: &Request<'_>) -> io::Result<()> {
        let mut done = 0;
        if request.slices.len() > 1 {
            done = match rustix::io::pwritev(&self.file, &request.slices, request.offset) {
                Ok(done) => done,
                Err(Errno::INTR) => 0,
                Err(errno) => return Err(errno.into()),
            };
        }
        let mut offset = request.offset;
        for slice in &request.slices {
            // Of what has been written in part, the rest.
            let skipped = done.min(slice.len());
            self.file.write_all_at(&slice[skipped..], offset + skipped as u64)?;
            done -= skipped;
            offset += slice.len() as u64;
        }
        Ok(())
    }

    fn write_by_threads(&self, requests: &[Request<'_>]) -> io::Result<()> {
        let next = AtomicUsize::new(0);
        let write = || {
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.write_one(request)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..WRITERS.min(requests.len())).map(|_| scope.spawn(write)).collect();
            let own = write();
            let joined =
                others.into_iter().map(|other| other.join().expect("a writer does not panic"));
            joined.fold(own, Result::and)
        })
    }

    fn write_pieces(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let mut pieces = Pieces::new(pieces);
        let mut batch = Batch::new(self.buffers.take());
        let mut write = || {
            loop {
                batch.fill(&mut pieces, self.alignment as usize);
                let (whole, ragged): (Vec<_>, Vec<_>) = batch
                    .requests()
                    .partition(|request| self.is_whole(request.offset, request.bytes));
                if whole.is_empty() && ragged.is_empty() {
                    return Ok(());
                }
                if !whole.is_empty() {
                    self.write_together(&whole)?;
                }
                for Request { offset, slices, .. } in ragged {
                    let mut at = offset;
                    for slice in slices {
                        self.write_ragged(at, &slice)?;
                        at += slice.len() as u64;
                    }
                }
            }
        };
        let written = write();
        self.buffers.give_back(batch.into_buffer());
        written
    }
}

/// Requests for `sectors`, which lie from `offset` on.
fn in_requests(offset: u64, sectors: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    (offset..).step_by(REQUEST_BYTES).zip(sectors.chunks_mut(REQUEST_BYTES))
}

/// What `bytes` bytes take in a buffer, so that what follows is aligned.
fn in_memory(bytes: usize) -> usize {
    bytes.next_multiple_of(MEMORY_ALIGNMENT)
}

/// Refuses what is no file.
fn require_file(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path);
    if found.map_err(|source| failed(path, "cannot be made longer", source))?.is_file() {
        return Ok(());
    }
    let why = "is not a file: only files are made longer";
    Err(refused(path, io::ErrorKind::InvalidInput, why))
}

/// Makes `file` longer; how long it was.
fn lengthen(path: &Path, file: &File, size_bytes: u64, is_filled: bool) -> io::Result<u64> {
    let cannot = |source| failed(path, "cannot be made longer", source);
    let before = file.metadata().map_err(cannot)?.len();
    if size_bytes <= before || !size_bytes.is_multiple_of(SIZE_UNIT_BYTES) {
        let why = format!("{size_bytes} bytes are not a multiple of 4 KiB above its {before}");
        return Err(refused(path, io::ErrorKind::InvalidInput, &why));
    }
    let added = if is_filled { fill(file, before, size_bytes) } else { file.set_len(size_bytes) };
    added.map(|()| before).map_err(|source| {
        // The error is why; that it stays longer is seen.
        let _ = file.set_len(before);
        cannot(source)
    })
}

/// Writes zeros to all of `file` from byte `first` on, and has the page cache forget them: direct writes would have to see to
/// each that it is dropped.
fn fill(file: &File, first: u64, size_bytes: u64) -> io::Result<()> {
    let zeros = vec![0; REQUEST_BYTES];
    for offset in (first..size_bytes).step_by(REQUEST_BYTES) {
        let bytes = (size_bytes - offset).min(REQUEST_BYTES as u64);
        file.write_all_at(&zeros[..bytes as usize], offset)?;
    }
    file.sync_all()?;
    // It is advice: where it is not taken, the file is as good.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Opens `path` and locks it.
fn open_file(
    path: &Path,
    options: FileOptions,
    is_block_device: bool,
    flags: OFlags,
) -> io::Result<LockedFile> {
    // Of a block device that is a promise of the kernel: no file system, and nobody else who asks so.
    let exclusive = if is_block_device { OFlags::EXCL } else { OFlags::empty() };
    let file = OpenOptions::new()
        .read(true)
        .write(!options.is_read_only)
        .custom_flags((flags | exclusive).bits() as i32)
        .open(path);
    let file = file.map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::BUSY) => {
            refused(path, source.kind(), "is mounted, or in use by another process")
        }
        _ => failed(path, "cannot open", source),
    })?;
    let file = LockedFile(file);
    if !is_block_device {
        let operation = if options.is_read_only {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        };
        match flock(&file, operation) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let why = "is in use by another process";
                return Err(refused(path, io::ErrorKind::ResourceBusy, why));
            }
            Err(errno) => return Err(failed(path, "cannot lock", errno.into())),
        }
    }
    Ok(file)
}

/// Opens `path` past the page cache, if that can be done, and how requests must be aligned then.
fn open_direct(
    path: &Path,
    options: FileOptions,
    is_block_device: bool,
) -> io::Result<Option<(LockedFile, u64)>> {
    let file = match open_file(path, options, is_block_device, OFlags::DIRECT) {
        Ok(file) => file,
        // The file system has no O_DIRECT.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => return Err(error),
    };
    // A file system in memory takes the flag, and has nothing but its page cache.
    let facts = fstatfs(&file).map_err(|errno| failed(path, "cannot open", errno.into()))?;
    if !is_block_device && MEMORY_FILE_SYSTEMS.contains(&(facts.f_type as u32)) {
        return Ok(None);
    }
    let alignment = direct_alignment(&file, is_block_device);
    if !alignment.is_power_of_two() || alignment > SIZE_UNIT_BYTES {
        return Ok(None);
    }
    // Some file systems take the flag and refuse the requests.
    let buffers = Buffers::default();
    let mut buffer = buffers.take();
    let read = file.read_at(buffer.first(SIZE_UNIT_BYTES as usize), 0);
    let is_refused = read.is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput);
    Ok((!is_refused).then_some((file, alignment)))
}

/// Where direct requests to `file` begin and end, as the kernel says; 4 KiB if it does not, and 0 if
/// there can be none.
fn direct_alignment(file: &File, is_block_device: bool) -> u64 {
    let reported = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match reported {
        Ok(facts) if facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            u64::from(facts.stx_dio_offset_align)
        }
        _ if is_block_device => sector_bytes(file),
        _ => SIZE_UNIT_BYTES,
    }
}

#[allow(clippy::disallowed_methods, reason = "a real device has no other time")]
fn now() -> Instant {
    Instant::now()
}

/// The sectors in which the block device `file` is addressed.
fn sector_bytes(file: &File) -> u64 {
    rustix::fs::ioctl_blksszget(file).map_or(SIZE_UNIT_BYTES, u64::from)
}

/// Bytes of a file or block device.
fn length_of(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

impl Disk for FileDisk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Relaxed)
    }

    fn measure(&self) -> io::Result<u64> {
        let bytes = length_of(&self.file)
            .map_err(|source| failed(&self.path, "cannot be measured", source))?;
        let size_bytes = bytes / SIZE_UNIT_BYTES * SIZE_UNIT_BYTES;
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
        Ok(size_bytes)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        check_range(self.size_bytes(), offset, into.len() as u64)?;
        let bytes = into.len();
        let read = if !self.is_direct() {
            self.file.read_exact_at(into, offset)
        } else if is_aligned(into) && self.is_whole(offset, bytes) {
            self.read_sectors(offset, into)
        } else {
            self.read_copied(offset, into)
        };
        read.map_err(|source| {
            failed(&self.path, format!("cannot read {bytes} bytes at byte {offset}"), source)
        })
    }

    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        if !self.is_direct() || pieces.len() == 1 {
            return pieces.iter_mut().try_for_each(|piece| self.read(piece.offset, piece.into));
        }
        for piece in pieces.iter() {
            check_range(self.size_bytes(), piece.offset, piece.into.len() as u64)?;
        }
        self.read_together(pieces).map_err(|source| {
            let bytes: usize = pieces.iter().map(|piece| piece.into.len()).sum();
            let first = pieces.first().map_or(0, |piece| piece.offset);
            let what = format!("cannot read {bytes} bytes, the first at byte {first}");
            failed(&self.path, what, source)
        })
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        check_pieces(self.size_bytes(), pieces)?;
        self.require_writable()?;
        self.write_pieces(pieces).map_err(|source| {
            let bytes: usize = pieces.iter().map(|piece| piece.data.len()).sum();
            let first = pieces.first().map_or(0, |piece| piece.offset);
            let what = format!("cannot write {bytes} bytes, the first at byte {first}");
            failed(&self.path, what, source)
        })
    }

    /// Punches a hole into a file; where there is no such thing, nothing is done. Of a device only whole
    /// sectors are discarded.
    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        check_range(self.size_bytes(), offset, bytes)?;
        self.require_writable()?;
        let first = offset.next_multiple_of(self.discard_unit);
        let end = (offset + bytes) / self.discard_unit * self.discard_unit;
        if first >= end || !self.takes_discards.load(Ordering::Relaxed) {
            return Ok(());
        }
        let discarded = if self.is_block_device {
            kernel::discard(&self.file, first, end - first)
        } else {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, flags, first, end - first)
        };
        match discarded {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY) => {
                self.takes_discards.store(false, Ordering::Relaxed);
                Ok(())
            }
            Err(errno) => {
                let what = format!("cannot discard {bytes} bytes at byte {offset}");
                Err(failed(&self.path, what, errno.into()))
            }
            Ok(()) => Ok(()),
        }
    }

    fn flush(&self) -> io::Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        self.file.sync_data().map_err(|source| failed(&self.path, "cannot flush", source))
    }

    fn release(&self) {
        self.file.unlock();
    }

    fn now_ns(&self) -> Option<u64> {
        // It does not pass 2^64 ns, 584 years.
        Some(self.opened.elapsed().as_nanos() as u64)
    }
}
