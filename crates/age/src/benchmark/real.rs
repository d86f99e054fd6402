//! Benchmarks of a mounted file system, below a directory of it.
//!
//! Times are of the wall clock, from the first call of a phase until everything is on the device
//! (`syncfs`). Between phases the pages of the files themselves leave memory; what else the system
//! keeps there is its users' and stays, unless they ask for that too ([`CacheControl`]). Whether the
//! pages have gone is looked at, not believed. Everything is made below a directory of the
//! benchmark's own and removed again, also when it fails; files that were there are read, and
//! written only when they are named as ones that may be. Devices are read, never written.
//!
//! Source: Smith & Seltzer 1996, §5 (32 MB in files of one size, 25 a directory, calls of 4 MB; hot
//! files sorted by directory, read and then overwritten in place, ten times); Seltzer et al. 1995,
//! §2 (100 a directory). They remounted the file system to empty the cache.

#![expect(
    clippy::disallowed_methods,
    reason = "what a real file system takes is measured by the clock, and is the result"
)]

mod hot;
pub mod suite;
mod tree;

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use self::tree::Tree;
use super::{CALL_BYTES, SequentialPlan};
use crate::onto::directory::Pool;
use crate::source::live::{ExtentMap, is_unsupported};
use crate::{AgeError, ExtentFlags, LayoutCounts};

/// Alignment of what is read past the cache: the largest logical block of a device in use.
const DIRECT_ALIGNMENT: usize = 4096;

/// How caches are emptied between phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheControl {
    /// Pages, inodes and directories of the whole system (`/proc/sys/vm/drop_caches`).
    DropCaches,
    /// Pages of the files (`posix_fadvise`, `DONTNEED`); inodes and directories stay.
    Advise,
}

/// What a phase took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct RealPhase {
    /// Bytes of files.
    pub bytes: u64,
    /// From its beginning until everything was on the device, ns.
    pub time_ns: u64,
}

impl RealPhase {
    /// Bytes over time, in 10^6 bytes a second.
    #[must_use]
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 * 1e3 / self.time_ns.max(1) as f64
    }
}

/// What the files of one size took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealSequential {
    /// Creating and writing them.
    pub create: RealPhase,
    /// Reading them in the order of their creation.
    pub read: RealPhase,
    /// Writing them again in place.
    pub overwrite: RealPhase,
    /// How well they lie; nothing counted where the file system does not report it.
    pub layout: LayoutCounts,
}

/// A mounted file system to be measured.
#[derive(Debug)]
pub struct RealBench {
    path: PathBuf,
    root: OwnedFd,
    cache: CacheControl,
    /// Times that a file was still in memory after it was evicted.
    still_cached: u64,
    pool: Pool,
    buffer: Vec<u8>,
    repetition: u64,
}

impl RealBench {
    /// The file system of the directory at `path`, with caches emptied as `cache` says.
    ///
    /// # Errors
    /// If it is not a directory or cannot be opened, or the system's caches may not be dropped.
    pub fn open(path: &Path, seed: u64, cache: CacheControl) -> Result<Self, AgeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|why| match why {
            Errno::NOENT | Errno::NOTDIR => AgeError::Input(format!(
                "{}: no such directory; name one of the file system to measure",
                path.display()
            )),
            why => AgeError::io("open", path)(why.into()),
        })?;
        if cache == CacheControl::DropCaches {
            drop_caches().map_err(|why| {
                AgeError::Input(format!(
                    "the caches of the system cannot be dropped ({why}); run it as root, or leave \
                     out --drop-system-caches"
                ))
            })?;
        }
        Ok(Self {
            path: path.to_owned(),
            root,
            cache,
            still_cached: 0,
            pool: Pool::new(crate::onto::Data::Random, CALL_BYTES as usize, seed),
            buffer: vec![0; CALL_BYTES as usize],
            repetition: 0,
        })
    }

    /// How caches are emptied here.
    #[must_use]
    pub fn cache(&self) -> CacheControl {
        self.cache
    }

    /// Times so far that the pages of a file were in memory still when it was about to be read or
    /// written from the device: what was measured of those is the memory's speed.
    #[must_use]
    pub fn still_cached(&self) -> u64 {
        self.still_cached
    }

    /// Creates, reads and overwrites the files of `plan` and removes them again.
    ///
    /// # Errors
    /// If there is no room for them, or the file system fails.
    pub fn sequential(&mut self, plan: &SequentialPlan) -> Result<RealSequential, AgeError> {
        self.repetition += 1;
        let tree = Tree::make(&self.path, &self.root, plan)?;
        self.sync()?;
        self.forget(&tree, plan)?;
        let create = self.phase(plan.total_bytes(), |bench| {
            for number in 0..plan.files {
                let file = tree.create(number)?;
                bench.write_whole(&file, number, plan.file_bytes, &tree)?;
                if plan.sync_each {
                    rustix::fs::fsync(&file).map_err(|why| tree.failed("sync", number, why))?;
                }
            }
            bench.sync()
        })?;
        let layout = self.layout(&tree, plan)?;
        self.forget(&tree, plan)?;
        let read = self.phase(plan.total_bytes(), |bench| {
            for number in 0..plan.files {
                let file = tree.open(number, OFlags::RDONLY)?;
                bench.read_whole(&file).map_err(|why| tree.failed("read", number, why))?;
            }
            Ok(())
        })?;
        self.forget(&tree, plan)?;
        let overwrite = self.phase(plan.total_bytes(), |bench| {
            for number in 0..plan.files {
                let file = tree.open(number, OFlags::WRONLY)?;
                bench.write_whole(&file, number, plan.file_bytes, &tree)?;
                if plan.sync_each {
                    rustix::fs::fsync(&file).map_err(|why| tree.failed("sync", number, why))?;
                }
            }
            bench.sync()
        })?;
        tree.remove()?;
        Ok(RealSequential { create, read, overwrite, layout })
    }

    /// Reads `files`, paths below the directory, in their order; then, if they may be written,
    /// writes them again in place.
    ///
    /// # Errors
    /// If one of them is not there or leads outside, or cannot be read or written.
    pub fn existing(
        &mut self,
        files: &[PathBuf],
        may_write: bool,
    ) -> Result<(RealPhase, Option<RealPhase>, LayoutCounts), AgeError> {
        let mut sizes = Vec::with_capacity(files.len());
        let mut layout = LayoutCounts::default();
        let mut map = ExtentMap::new(false);
        for path in files {
            let file = self.open_below(path, OFlags::RDONLY)?;
            let facts = rustix::fs::fstat(&file).map_err(|why| self.failed("ask", path, why))?;
            sizes.push(u64::try_from(facts.st_size).unwrap_or(0));
            self.add_layout(&file, &mut map, &mut layout)
                .map_err(|why| self.failed("map", path, why))?;
        }
        let bytes = sizes.iter().sum();
        self.forget_existing(files)?;
        let read = self.phase(bytes, |bench| {
            for path in files {
                let file = bench.open_below(path, OFlags::RDONLY)?;
                bench.read_whole(&file).map_err(|why| bench.failed("read", path, why))?;
            }
            Ok(())
        })?;
        if !may_write {
            return Ok((read, None, layout));
        }
        self.repetition += 1;
        self.forget_existing(files)?;
        let write = self.phase(bytes, |bench| {
            for (number, (path, size)) in (0_u32..).zip(files.iter().zip(&sizes)) {
                let file = bench.open_below(path, OFlags::WRONLY)?;
                bench
                    .write_bytes(&file, number, *size)
                    .map_err(|why| bench.failed("write", path, why))?;
            }
            bench.sync()
        })?;
        Ok((read, Some(write), layout))
    }

    /// Reads `bytes` of the device at `path` from its start, past the cache.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn raw_read(&mut self, path: &Path, bytes: u64) -> Result<RealPhase, AgeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let fail = |why: Errno| AgeError::io("read", path)(why.into());
        let device = rustix::fs::open(path, flags, Mode::empty()).map_err(fail)?;
        let mut room = vec![0_u8; CALL_BYTES as usize + DIRECT_ALIGNMENT];
        let skipped = room.as_ptr().align_offset(DIRECT_ALIGNMENT).min(DIRECT_ALIGNMENT);
        let buffer = &mut room[skipped..skipped + CALL_BYTES as usize];
        let began = Instant::now();
        let mut done = 0;
        while done < bytes {
            // Whole calls only: a shorter one might not be a whole number of blocks.
            match rustix::io::pread(&device, &mut *buffer, done) {
                Ok(0) => break,
                Ok(got) => done += got as u64,
                Err(Errno::INTR) => {}
                Err(why) => return Err(fail(why)),
            }
        }
        Ok(RealPhase { bytes: done, time_ns: elapsed_ns(began) })
    }

    fn phase(
        &mut self,
        bytes: u64,
        work: impl FnOnce(&mut Self) -> Result<(), AgeError>,
    ) -> Result<RealPhase, AgeError> {
        let began = Instant::now();
        work(self)?;
        Ok(RealPhase { bytes, time_ns: elapsed_ns(began) })
    }

    fn sync(&self) -> Result<(), AgeError> {
        rustix::fs::syncfs(&self.root).map_err(|why| AgeError::io("sync", &self.path)(why.into()))
    }

    /// Empties caches; everything is on the device already.
    fn forget(&mut self, tree: &Tree, plan: &SequentialPlan) -> Result<(), AgeError> {
        if self.cache == CacheControl::DropCaches {
            return drop_caches();
        }
        for number in 0..plan.files {
            match tree.open(number, OFlags::RDONLY) {
                Ok(file) => {
                    let left = drop_pages(&file).map_err(|why| tree.failed("forget", number, why));
                    self.still_cached += u64::from(!left?);
                }
                // Before the first phase there are no files.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn forget_existing(&mut self, files: &[PathBuf]) -> Result<(), AgeError> {
        self.sync()?;
        if self.cache == CacheControl::DropCaches {
            return drop_caches();
        }
        for path in files {
            let file = self.open_below(path, OFlags::RDONLY)?;
            let left = drop_pages(&file).map_err(|why| self.failed("forget", path, why))?;
            self.still_cached += u64::from(!left);
        }
        Ok(())
    }

    fn write_whole(
        &mut self,
        file: &OwnedFd,
        number: u32,
        bytes: u64,
        tree: &Tree,
    ) -> Result<(), AgeError> {
        self.write_bytes(file, number, bytes).map_err(|why| match why {
            Errno::NOSPC | Errno::DQUOT => AgeError::Run(format!(
                "{}: no room for the files of the benchmark; use smaller --bytes, or make room",
                self.path.display()
            )),
            why => tree.failed("write", number, why),
        })
    }

    fn write_bytes(&mut self, file: &OwnedFd, number: u32, bytes: u64) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes {
            let data = self.pool.bytes(number, done, self.repetition, bytes - done);
            match rustix::io::pwrite(file, data, done) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => done += written as u64,
                Err(Errno::INTR) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn read_whole(&mut self, file: &OwnedFd) -> Result<(), Errno> {
        loop {
            match rustix::io::read(file, &mut *self.buffer) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(why) => return Err(why),
            }
        }
    }

    /// Opens a path below the directory, following no link and leading nowhere else.
    fn open_below(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, AgeError> {
        let resolve = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve)
            .map_err(|why| self.failed("open", path, why))
    }

    fn failed(&self, doing: &'static str, path: &Path, why: Errno) -> AgeError {
        AgeError::io(doing, &self.path.join(path))(why.into())
    }

    fn layout(&self, tree: &Tree, plan: &SequentialPlan) -> Result<LayoutCounts, AgeError> {
        let mut counts = LayoutCounts::default();
        let mut map = ExtentMap::new(false);
        for number in 0..plan.files {
            let file = tree.open(number, OFlags::RDONLY)?;
            self.add_layout(&file, &mut map, &mut counts)
                .map_err(|why| tree.failed("map", number, why))?;
        }
        Ok(counts)
    }

    fn add_layout(
        &self,
        file: &OwnedFd,
        map: &mut ExtentMap,
        counts: &mut LayoutCounts,
    ) -> Result<(), Errno> {
        let facts = rustix::fs::fstatvfs(&self.root)?;
        let mut extents = Vec::new();
        match map.read(file.as_fd(), &mut extents) {
            Ok(_) => {}
            Err(why) if is_unsupported(why) => return Ok(()),
            Err(why) => return Err(why),
        }
        extents.retain(|extent| !extent.flags.any(ExtentFlags::UNKNOWN.with(ExtentFlags::INLINE)));
        let of_file = LayoutCounts::of_extents(&extents, facts.f_frsize.max(1));
        counts.optimal += of_file.optimal;
        counts.counted += of_file.counted;
        Ok(())
    }
}

/// Evicts the pages of a file that is on the device from memory; whether its first one has gone, as
/// far as the file system reports.
fn drop_pages(file: &OwnedFd) -> Result<bool, Errno> {
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
    let mut first = [0];
    let mut byte = [std::io::IoSliceMut::new(&mut first)];
    // A read that may not wait succeeds from memory alone.
    Ok(match rustix::io::preadv2(file, &mut byte, 0, ReadWriteFlags::NOWAIT) {
        Ok(read) => read == 0,
        Err(_) => true,
    })
}

fn elapsed_ns(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Pages, directories and inodes that are not dirty leave memory.
fn drop_caches() -> Result<(), AgeError> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    std::fs::write(path, "3\n").map_err(AgeError::io("write", path))
}

#[cfg(test)]
mod tests;
