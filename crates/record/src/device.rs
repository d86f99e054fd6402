//! Which disk a device or a path stands for, and what the kernel counts of it.
//!
//! A request names the disk, a piece of one (bio) the partition that it was meant for; so a disk is
//! recorded with all its partitions, whichever of them was named. Source: Linux
//! `Documentation/block/stat.rst`, `Documentation/ABI/stable/sysfs-block`.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use agewell_trace::{DeviceDescription, DriveDescription, Partition};
use rustix::fs::{major, minor};
use serde::Serialize;

use crate::RecordError;

/// A disk and its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its name, `sda`.
    pub name: String,
    /// Its folder in sysfs.
    folder: PathBuf,
    /// Major and minor number.
    pub number: (u32, u32),
    /// Its partitions: number, name, first sector, sectors, device number.
    partitions: Vec<DiskPartition>,
    /// The first sector of what was named: of a partition, or zero.
    pub first_sector: u64,
    /// Whether it is given requests (`blk-mq`) or takes pieces as they come (device mapper, md).
    pub has_requests: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct DiskPartition {
    number: u32,
    name: String,
    first_sector: u64,
    sectors: u64,
    device: (u32, u32),
}

fn text_of(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn number_of(path: &Path) -> Option<u64> {
    text_of(path)?.parse().ok()
}

/// `8:1` as two numbers.
fn device_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The number that trace records have: 12 bits of major above 20 bits of minor.
fn kernel_number((major, minor): (u32, u32)) -> u32 {
    major << 20 | minor
}

/// The source and the kind of the mount that `path` is in, for file systems whose files have numbers
/// of no device (btrfs).
fn mounted(path: &Path, table: &str) -> Option<(String, String)> {
    let real = fs::canonicalize(path).ok()?;
    let line = table
        .lines()
        .filter_map(|line| {
            let (front, behind) = line.split_once(" - ")?;
            let point = front.split(' ').nth(4)?.replace("\\040", " ");
            let mut behind = behind.split(' ');
            let kind = behind.next()?.to_owned();
            let source = behind.next()?.replace("\\040", " ");
            real.starts_with(&point).then_some((point.len(), source, kind))
        })
        .enumerate()
        // Of mounts on one another the last one is seen.
        .max_by_key(|(place, (length, _, _))| (*length, *place));
    line.map(|(_, (_, source, kind))| (source, kind))
}

/// Where the whole of the file system on `device` is mounted.
fn mount_point(device: (u32, u32), table: &str) -> Option<String> {
    table.lines().find_map(|line| {
        let (front, behind) = line.split_once(" - ")?;
        let mut fields = front.split(' ').skip(2);
        let number = device_number(fields.next()?)?;
        let root = fields.next()?;
        let point = fields.next()?.replace("\\040", " ");
        let source = behind.split(' ').nth(1)?;
        let of_source = || {
            let found =
                fs::metadata(source).ok().filter(|found| found.file_type().is_block_device());
            found.map(|found| (major(found.rdev()), minor(found.rdev())))
        };
        // The numbers that btrfs shows are of no device.
        let is_it = number == device || (number.0 == 0 && of_source() == Some(device));
        (root == "/" && is_it).then_some(point)
    })
}

impl Disk {
    /// The folder whose files are meant by `target`: itself, or where the device that it is, or one
    /// of its partitions, is mounted; with the first sector of that file system.
    ///
    /// # Errors
    /// If the device is not mounted.
    pub(crate) fn mounted_folder(&self, target: &Path) -> Result<(PathBuf, u64), RecordError> {
        if fs::metadata(target).is_ok_and(|found| found.is_dir()) {
            return Ok((target.to_owned(), self.first_sector));
        }
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let partitions = self.partitions.iter();
        let mut candidates: Vec<((u32, u32), u64)> =
            partitions.map(|partition| (partition.device, partition.first_sector)).collect();
        candidates.push((self.number, 0));
        // What was named comes first, then the others.
        candidates.sort_by_key(|(_, first_sector)| *first_sector != self.first_sector);
        let found = candidates.iter().find_map(|&(device, first_sector)| {
            let point = mount_point(device, &table)?;
            Some((PathBuf::from(point), first_sector))
        });
        found.ok_or_else(|| {
            RecordError::Input(format!(
                "{}: is not mounted, so that it has no files to name; give a directory on it, or leave \
                 --files out",
                target.display()
            ))
        })
    }

    /// The disk that `target` is, is a partition of, or is stored on.
    ///
    /// # Errors
    /// If there is no such thing, or it is on no block device.
    pub fn of(target: &Path) -> Result<Self, RecordError> {
        let shown = target.display();
        let metadata = fs::metadata(target).or_else(|why| {
            // `sda` for `/dev/sda`, as other tools have it.
            let named = Path::new("/dev").join(target);
            let device = fs::metadata(&named).ok().filter(|_| target.components().count() == 1);
            device.filter(|found| found.file_type().is_block_device()).ok_or(why)
        });
        let metadata = metadata.map_err(|why| {
            RecordError::Input(format!("{shown}: {why}; give a block device or a path on one"))
        })?;
        if metadata.file_type().is_block_device() {
            return Self::of_number(target, metadata.rdev());
        }
        if major(metadata.dev()) != 0 {
            return Self::of_number(target, metadata.dev());
        }
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (source, kind) = mounted(target, &table).unwrap_or_default();
        match fs::metadata(&source) {
            Ok(found) if found.file_type().is_block_device() => {
                Self::of_number(target, found.rdev())
            }
            _ => Err(RecordError::Input(format!(
                "{shown}: is on no block device ({}); give a device or a path on one",
                if kind.is_empty() { "unknown file system" } else { &kind }
            ))),
        }
    }

    fn of_number(target: &Path, number: u64) -> Result<Self, RecordError> {
        let (major, minor) = (major(number), minor(number));
        let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let unknown = || {
            RecordError::Input(format!(
                "{}: the kernel has no block device {major}:{minor}; give a device or a path on one",
                target.display()
            ))
        };
        let mut folder = fs::canonicalize(&link).map_err(|_| unknown())?;
        let mut first_sector = 0;
        if folder.join("partition").exists() {
            first_sector = number_of(&folder.join("start")).ok_or_else(unknown)?;
            folder.pop();
        }
        let number = text_of(&folder.join("dev")).and_then(|text| device_number(&text));
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut disk = Self {
            name: name.ok_or_else(unknown)?,
            number: number.ok_or_else(unknown)?,
            has_requests: folder.join("mq").is_dir(),
            partitions: Vec::new(),
            first_sector,
            folder,
        };
        disk.partitions = disk.read_partitions();
        Ok(disk)
    }

    fn read_partitions(&self) -> Vec<DiskPartition> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let read = |folder: &Path| {
            Some(DiskPartition {
                number: number_of(&folder.join("partition"))? as u32,
                name: folder.file_name()?.to_string_lossy().into_owned(),
                first_sector: number_of(&folder.join("start"))?,
                sectors: number_of(&folder.join("size"))?,
                device: device_number(&text_of(&folder.join("dev"))?)?,
            })
        };
        let mut found: Vec<_> = entries.filter_map(|entry| read(&entry.path())).collect();
        found.sort_by_key(|partition| partition.number);
        found
    }

    /// The numbers that records of this disk may have.
    pub(crate) fn kernel_numbers(&self) -> Vec<u32> {
        let partitions = self.partitions.iter().map(|partition| kernel_number(partition.device));
        std::iter::once(kernel_number(self.number)).chain(partitions).collect()
    }

    /// Whether the file or folder at `path` is on this disk.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        Self::of(path).is_ok_and(|other| other.number == self.number)
    }

    /// How a trace describes it.
    pub(crate) fn description(&self) -> DeviceDescription {
        let model = text_of(&self.folder.join("device/model"));
        let drive = model
            .map(|model| DriveDescription { model: Some(model), ..DriveDescription::default() });
        let partitions = self.partitions.iter().map(|partition| Partition {
            number: partition.number,
            name: partition.name.clone(),
            first_byte: partition.first_sector * 512,
            bytes: partition.sectors * 512,
            records: 0,
        });
        DeviceDescription {
            id: 0,
            name: self.name.clone(),
            drive,
            partitions: partitions.collect(),
        }
    }

    /// What a reader of the trace may want to know: size and queue.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        if let Some(sectors) = number_of(&self.folder.join("size")) {
            facts.push(("device_bytes".to_owned(), (sectors * 512).to_string()));
        }
        for name in ["scheduler", "nr_requests", "read_ahead_kb", "max_sectors_kb", "write_cache"] {
            if let Some(text) = text_of(&self.folder.join("queue").join(name)) {
                facts.push((format!("queue_{name}"), text));
            }
        }
        facts
    }

    /// For how long it has been busy with requests, ms, wrapping; `None` where the kernel keeps no
    /// counters.
    #[must_use]
    pub fn busy_ms(&self) -> Option<u32> {
        if number_of(&self.folder.join("queue/iostats")) == Some(0) {
            return None;
        }
        let fields = text_of(&self.folder.join("stat"))?;
        fields.split_whitespace().nth(9)?.parse().ok()
    }

    /// The kernel's own counters; `None` where it keeps none (`queue/iostats` is 0).
    pub(crate) fn counters(&self) -> Option<Counters> {
        if number_of(&self.folder.join("queue/iostats")) == Some(0) {
            return None;
        }
        Counters::parse(&text_of(&self.folder.join("stat"))?)
    }
}

/// What was completed, by operation: as the kernel counts it, or as a trace has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Reads completed.
    pub reads: u64,
    /// Sectors of 512 bytes that they moved.
    pub read_sectors: u64,
    /// Writes completed. The kernel also counts the empty write that carries a flush.
    pub writes: u64,
    /// Sectors that they moved.
    pub write_sectors: u64,
    /// Discards completed.
    pub discards: u64,
    /// Sectors that they freed.
    pub discard_sectors: u64,
    /// Flushes completed.
    pub flushes: u64,
}

impl Counters {
    /// Reads `/sys/block/DISK/stat`.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> =
            text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let field = |place: usize| fields.get(place).copied();
        Some(Self {
            reads: field(0)?,
            read_sectors: field(2)?,
            writes: field(4)?,
            write_sectors: field(6)?,
            // Kernels before 4.18 count no discards, before 5.5 no flushes.
            discards: field(11).unwrap_or(0),
            discard_sectors: field(13).unwrap_or(0),
            flushes: field(15).unwrap_or(0),
        })
    }

    /// What came since `earlier`; the counters wrap.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.wrapping_sub(earlier.reads),
            read_sectors: self.read_sectors.wrapping_sub(earlier.read_sectors),
            writes: self.writes.wrapping_sub(earlier.writes),
            write_sectors: self.write_sectors.wrapping_sub(earlier.write_sectors),
            discards: self.discards.wrapping_sub(earlier.discards),
            discard_sectors: self.discard_sectors.wrapping_sub(earlier.discard_sectors),
            flushes: self.flushes.wrapping_sub(earlier.flushes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_disk() {
        let text = "  10 1 80 5 20 2 160 6 0 7 8 3 0 24 1 4 9\n";
        let counters = Counters::parse(text).unwrap();
        assert_eq!((counters.reads, counters.read_sectors), (10, 80));
        assert_eq!((counters.writes, counters.write_sectors), (20, 160));
        assert_eq!((counters.discards, counters.discard_sectors, counters.flushes), (3, 24, 4));
        assert_eq!(Counters::parse("10 1 80 5 20 2 160 6 0 7 8").unwrap().flushes, 0);
        assert_eq!(Counters::parse("10 1 80"), None);
        assert_eq!(counters.since(counters), Counters::default());
    }

    #[test]
    fn the_mount_of_a_path_is_the_innermost_and_the_last() {
        let table = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 0:40 / /tmp rw shared:1 - tmpfs none rw\n\
            3 1 0:41 / /tmp rw shared:1 - btrfs /dev/sdb rw\n";
        let found = mounted(Path::new("/tmp"), table);
        assert_eq!(found, Some(("/dev/sdb".to_owned(), "btrfs".to_owned())));
        let root = mounted(Path::new("/"), table);
        assert_eq!(root, Some(("/dev/sda1".to_owned(), "ext4".to_owned())));
    }

    #[test]
    fn what_is_on_no_disk_is_refused_in_one_line() {
        for (path, expected) in [("/proc", "proc"), ("/nowhere/at/all", "No such file")] {
            let text = Disk::of(Path::new(path)).expect_err("no disk").to_string();
            assert!(text.contains(expected) && !text.contains('\n'), "{text}");
        }
    }
}
