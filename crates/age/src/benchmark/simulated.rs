//! Benchmarks of a simulated file system over a modelled device.
//!
//! The file system says what it transfers, the host of `agewell_sim` says how long that takes. A
//! benchmark works on a copy of the file system, so that each finds it as it was aged; a repetition
//! differs from the next only in where the platter stands when it begins.

use agewell_core::{SimDuration, Stream, uniform_below};
use agewell_disk::{Device, DeviceModel};
use agewell_layout::file_system::{FileSystem, FileSystemError};
use agewell_sim::file_host::{Accounts, FileHost, HostParameters};

use super::{CALL_BYTES, SequentialPlan};
use crate::{AgeError, LayoutCounts};

/// Processor time of a file operation beside its transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationCpu {
    /// To create, open or remove a file.
    pub file: SimDuration,
}

/// What a phase of a benchmark took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Bytes of files.
    pub bytes: u64,
    /// From its beginning until everything was on the device, ns.
    pub time_ns: u64,
    /// What the device did.
    pub accounts: Accounts,
}

impl Phase {
    /// Bytes over time, in 10^6 bytes a second.
    #[must_use]
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 * 1e3 / self.time_ns as f64
    }
}

/// What the files of one size took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequential {
    /// Creating and writing them.
    pub create: Phase,
    /// Reading them in the order of their creation.
    pub read: Phase,
    /// Writing them again in place.
    pub overwrite: Phase,
    /// How well they lie.
    pub layout: LayoutCounts,
}

/// A file system, the host it runs on, and its device.
pub struct Bench<'a, F> {
    /// The file system as it was aged.
    pub file_system: &'a F,
    /// The device.
    pub device: &'a DeviceModel,
    /// The host.
    pub host: HostParameters,
    /// Processor time of operations.
    pub cpu: OperationCpu,
}

fn refused(what: &str) -> impl Fn(FileSystemError) -> AgeError {
    let what = what.to_owned();
    move |why| AgeError::Run(format!("the benchmark cannot {what}: {why}"))
}

/// Measures a phase: what `work` does to the host, and until the device is done with it.
fn phase(
    host: &mut FileHost,
    bytes: u64,
    work: impl FnOnce(&mut FileHost) -> Result<(), AgeError>,
) -> Result<Phase, AgeError> {
    let (began, before) = (host.now().0, *host.accounts());
    work(host)?;
    host.drain();
    let accounts = host.accounts().since(&before);
    Ok(Phase { bytes, time_ns: host.now().0 - began, accounts })
}

impl<F: FileSystem + Clone> Bench<'_, F> {
    /// A host whose platter stands anywhere.
    fn begin(&self, stream: &mut Stream) -> FileHost {
        let mut host = FileHost::new(self.host, self.device.clone());
        // Within a tenth of a second a platter comes round several times, whatever its speed.
        host.compute(SimDuration(uniform_below(stream, 100_000_000)));
        host
    }

    /// Creates, reads and overwrites the files of `plan`.
    ///
    /// # Errors
    /// If the file system has no room for them.
    pub fn sequential(
        &self,
        plan: &SequentialPlan,
        stream: &mut Stream,
    ) -> Result<Sequential, AgeError> {
        let mut files = self.file_system.clone();
        let mut host = self.begin(stream);
        let mut made = Vec::with_capacity(plan.files as usize);
        let mut directories = Vec::with_capacity(plan.directories() as usize);
        for _ in 0..plan.directories() {
            let root = files.root();
            let directory = files.make_directory(root, &mut host);
            directories.push(directory.map_err(refused("make a directory"))?);
        }
        host.drop_cache();
        let create = phase(&mut host, plan.total_bytes(), |host| {
            for number in 0..plan.files {
                let directory = directories[(number / plan.files_per_directory) as usize];
                host.compute(self.cpu.file);
                let file = files.create(directory, host).map_err(refused("create a file"))?;
                made.push(file);
                write_whole(&mut files, file, plan.file_bytes, host)?;
                if plan.sync_each {
                    files.sync_file(file, host).map_err(refused("sync a file"))?;
                }
                update(&mut files, host)?;
            }
            files.sync(host).map_err(refused("sync"))?;
            host.start_flush();
            Ok(())
        })?;
        let layout = layout_of(&files, &made);
        host.drop_cache();
        let read = self.read_all(&mut files, &made, &mut host)?;
        host.drop_cache();
        let overwrite = self.overwrite_all(&mut files, &made, plan.sync_each, &mut host)?;
        Ok(Sequential { create, read, overwrite, layout })
    }

    /// Reads `chosen`, which are there, then writes them again in place; in their order.
    ///
    /// # Errors
    /// If one of them is not there, or cannot be written.
    pub fn existing(
        &self,
        chosen: &[u32],
        stream: &mut Stream,
    ) -> Result<(Phase, Phase), AgeError> {
        let mut files = self.file_system.clone();
        let mut host = self.begin(stream);
        let read = self.read_all(&mut files, chosen, &mut host)?;
        host.drop_cache();
        let write = self.overwrite_all(&mut files, chosen, false, &mut host)?;
        Ok((read, write))
    }

    /// Reads and writes `bytes` of the device itself, from its start, by its largest transfers.
    ///
    /// # Errors
    /// None: a device refuses nothing.
    pub fn raw(&self, bytes: u64, stream: &mut Stream) -> Result<(Phase, Phase), AgeError> {
        let sectors = (bytes / 512).min(self.device.capacity().0);
        let most = self.host.transfer_sectors_max;
        let mut run = |write: bool| {
            let mut host = self.begin(stream);
            phase(&mut host, sectors * 512, |host| {
                for first in (0..sectors).step_by(most as usize) {
                    let size = most.min(sectors - first);
                    if write {
                        host.write_synchronously(first, size);
                        host.copy(size * 512);
                    } else {
                        host.read(first, size);
                        host.copy(size * 512);
                    }
                }
                Ok(())
            })
        };
        Ok((run(false)?, run(true)?))
    }

    fn read_all(
        &self,
        files: &mut F,
        chosen: &[u32],
        host: &mut FileHost,
    ) -> Result<Phase, AgeError> {
        let bytes = chosen.iter().map(|file| files.size_bytes(*file)).sum();
        phase(host, bytes, |host| {
            for file in chosen {
                host.compute(self.cpu.file);
                let (size, mut offset) = (files.size_bytes(*file), 0);
                while offset < size {
                    files.read(*file, offset, CALL_BYTES, host).map_err(refused("read a file"))?;
                    offset += CALL_BYTES;
                }
                host.finish_reading();
            }
            Ok(())
        })
    }

    fn overwrite_all(
        &self,
        files: &mut F,
        chosen: &[u32],
        sync_each: bool,
        host: &mut FileHost,
    ) -> Result<Phase, AgeError> {
        let bytes = chosen.iter().map(|file| files.size_bytes(*file)).sum();
        phase(host, bytes, |host| {
            for file in chosen {
                host.compute(self.cpu.file);
                let size = files.size_bytes(*file);
                write_whole(files, *file, size, host)?;
                if sync_each {
                    files.sync_file(*file, host).map_err(refused("sync a file"))?;
                }
                update(files, host)?;
            }
            files.sync(host).map_err(refused("sync"))?;
            host.start_flush();
            Ok(())
        })
    }
}

/// Has the update daemon run if it is due.
fn update(files: &mut impl FileSystem, host: &mut FileHost) -> Result<(), AgeError> {
    if host.update_due() {
        files.sync(host).map_err(refused("sync"))?;
        host.start_flush();
    }
    Ok(())
}

/// Writes `bytes` from the start of `file`, as a program does.
fn write_whole(
    files: &mut impl FileSystem,
    file: u32,
    bytes: u64,
    host: &mut FileHost,
) -> Result<(), AgeError> {
    let mut offset = 0;
    while offset < bytes {
        let call = CALL_BYTES.min(bytes - offset);
        host.copy(call);
        files.write(file, offset, call, host).map_err(refused("write a file"))?;
        offset += call;
    }
    Ok(())
}

/// The layout score of some files, from their extents.
///
/// A block of a file is counted unless it is the first; it is optimal if it follows the one before
/// on the device. Fragments at the end of a file are left out.
fn layout_of(files: &impl FileSystem, chosen: &[u32]) -> LayoutCounts {
    let mut counts = LayoutCounts::default();
    let block_bytes = files.block_bytes();
    for file in chosen {
        let mut end = None;
        for extent in files.extents(*file) {
            let blocks = extent.bytes / block_bytes;
            if blocks > 0 {
                let begins = u64::from(end.is_some());
                counts.counted += blocks - 1 + begins;
                counts.optimal += blocks - 1 + u64::from(end == Some(extent.sector));
            }
            end = Some(extent.sector + extent.bytes.div_ceil(512));
        }
    }
    counts
}

#[cfg(test)]
mod tests;
