//! Single inodes of ext4, by number, each only if its bytes prove to be whole and to say all.
//!
//! A mounted ext4 keeps its inode tables in the page cache of its block device and copies an inode
//! there with every change of it. So reading the device gives the inode as of its last change, but
//! maybe in the middle of one. What could be half a change, or says less than the kernel knows, is
//! not given: the caller asks the kernel then.
//!
//! Given are regular files whose checksum is right, whose extents all stand in the inode, ascend,
//! are written and do not reach beyond the end of the file, and together are the blocks that the
//! inode counts. While extents are added or taken away the kernel changes that count at another
//! moment than them, and extents that it splits are for a moment fewer: halves of a change differ.
//!
//! Source: Linux, `fs/ext4/inode.c` (`ext4_inode_csum`, `ext4_do_update_inode`) and
//! `fs/ext4/extents.c`.

use std::collections::HashSet;
use std::fs::File;
use std::sync::{Mutex, PoisonError};

use super::super::super::extents::push_extent;
use super::super::fields::Fields;
use super::super::reader::Image;
use super::groups::Groups;
use super::inode::{INODE_BYTES_MIN, Inode};
use super::mapping::{EXTENT_BLOCKS_MAX, NODE_ENTRY_BYTES, NODE_MAGIC};
use super::superblock::{INCOMPATIBLE_CSUM_SEED, READ_ONLY_METADATA_CSUM, Superblock};
use crate::{Extent, ExtentFlags, FileKind};

/// How much of a table is read at once where inodes lie side by side, and where they do not, bytes:
/// the latter a page, the former some, since a call costs as much as copying several. Chosen by us.
const ROW_BYTES: u64 = 16 * 1024;
const WINDOW_BYTES: u64 = 4 * 1024;
/// How much of a table is fetched from the device when the first of it is wanted, bytes; what ext4
/// itself fetches (`inode_readahead_blks`).
const FETCHED_BYTES: u64 = 128 * 1024;

/// `i_blocks` counts these, bytes.
const COUNTED_BYTES: u64 = 512;
/// Where the two halves of the checksum stand.
const CHECKSUM_LOW_AT: usize = 0x7C;
const CHECKSUM_HIGH_AT: usize = 0x82;

/// The inode tables of an ext4 file system that keeps checksums.
#[derive(Debug)]
pub(in crate::source) struct InodeTable {
    device: Image,
    superblock: Superblock,
    groups: Groups,
    checksum_seed: u32,
    /// Which stretches of [`FETCHED_BYTES`] of the device have been fetched.
    fetched: Mutex<HashSet<u64>>,
}

/// A stretch of the tables that was read a moment ago.
#[derive(Debug, Default)]
pub(in crate::source) struct TableWindow {
    start_bytes: u64,
    bytes: Vec<u8>,
}

/// What an inode says of a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) struct TableFile {
    pub(in crate::source) links: u32,
    pub(in crate::source) size_bytes: u64,
    pub(in crate::source) allocated_bytes: u64,
    pub(in crate::source) birth_ns: i64,
    pub(in crate::source) change_ns: i64,
    pub(in crate::source) modify_ns: i64,
}

impl TableWindow {
    /// Forgets what was read.
    pub(in crate::source) fn forget(&mut self) {
        self.bytes.clear();
    }
}

impl InodeTable {
    /// The tables of the file system on `device`; `None` if its inodes cannot prove to be whole.
    pub(in crate::source) fn open(device: File) -> Option<Self> {
        let mut device = Image::of_file(device).ok()?;
        let superblock = Superblock::read(&device).ok()?;
        if !superblock.features.has_read_only(READ_ONLY_METADATA_CSUM)
            || superblock.cluster_blocks != 1
        {
            return None;
        }
        let groups = Groups::read(&mut device, &superblock).ok()?;
        let mut bytes = [0; 1024];
        device.read_at(1024, &mut bytes).ok()?;
        let fields = Fields::little(&bytes);
        let checksum_seed = if superblock.features.has_incompatible(INCOMPATIBLE_CSUM_SEED) {
            fields.u32(0x270)
        } else {
            crc_on(!0, fields.slice(0x68, 16))
        };
        Some(Self { device, superblock, groups, checksum_seed, fetched: Mutex::default() })
    }

    /// What inode `number` says of its file, whose extents are appended to `extents`; `None` if that
    /// is to be asked of the kernel, and `extents` is as before.
    pub(in crate::source) fn file(
        &self,
        number: u64,
        window: &mut TableWindow,
        extents: &mut Vec<Extent>,
    ) -> Option<TableFile> {
        let address = self.groups.inode_address(&self.superblock, number)?;
        let bytes = self.bytes(address, window)?;
        self.is_whole(number, bytes).then_some(())?;
        let first = extents.len();
        let file = self.parse(Inode { bytes }, number, extents);
        if file.is_none() {
            extents.truncate(first);
        }
        file
    }

    fn bytes<'a>(&self, address: u64, window: &'a mut TableWindow) -> Option<&'a [u8]> {
        let length = self.superblock.inode_bytes as usize;
        let within = |window: &TableWindow| {
            let start = usize::try_from(address.checked_sub(window.start_bytes)?).ok()?;
            (start + length <= window.bytes.len()).then_some(start..start + length)
        };
        if within(window).is_none() {
            // Inodes are a power of two and at most a block, so that none lies across the border of
            // two windows, except of blocks that are larger.
            let window_bytes = WINDOW_BYTES.max(self.superblock.block_bytes.into());
            let start = address / window_bytes * window_bytes;
            let is_row = start == window.start_bytes + window.bytes.len() as u64;
            let length = if is_row { ROW_BYTES.max(window_bytes) } else { window_bytes };
            let end = (start + length).min(self.device.length_bytes());
            self.fetch(start);
            window.bytes.resize(end.saturating_sub(start) as usize, 0);
            window.start_bytes = start;
            if self.device.read_at(start, &mut window.bytes).is_err() {
                window.forget();
            }
        }
        let place = within(window)?;
        window.bytes.get(place)
    }

    /// Has the device fetch the stretch of a table around `address`, once.
    fn fetch(&self, address: u64) {
        let stretch = address / FETCHED_BYTES;
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.insert(stretch) {
            drop(fetched);
            self.device.fetch_ahead(stretch * FETCHED_BYTES, FETCHED_BYTES);
        }
    }

    /// Whether the checksum is that of the bytes.
    fn is_whole(&self, number: u64, bytes: &[u8]) -> bool {
        let fields = Fields::little(bytes);
        let wide = bytes.len() > INODE_BYTES_MIN && fields.u16(0x80) >= 4;
        let Ok(number) = u32::try_from(number) else { return false };
        let mut checksum = crc_on(self.checksum_seed, &number.to_le_bytes());
        checksum = crc_on(checksum, fields.slice(0x64, 4));
        checksum = crc_on(checksum, &bytes[..CHECKSUM_LOW_AT]);
        checksum = crc_on(checksum, &[0; 2]);
        checksum = crc_on(checksum, &bytes[CHECKSUM_LOW_AT + 2..INODE_BYTES_MIN]);
        let mut stored = u32::from(fields.u16(CHECKSUM_LOW_AT));
        let mut rest = INODE_BYTES_MIN;
        if wide {
            checksum = crc_on(checksum, &bytes[rest..CHECKSUM_HIGH_AT]);
            checksum = crc_on(checksum, &[0; 2]);
            rest = CHECKSUM_HIGH_AT + 2;
            stored |= u32::from(fields.u16(CHECKSUM_HIGH_AT)) << 16;
        }
        checksum = crc_on(checksum, &bytes[rest..]);
        stored == if wide { checksum } else { checksum & 0xFFFF }
    }

    fn parse(&self, inode: Inode<'_>, number: u64, extents: &mut Vec<Extent>) -> Option<TableFile> {
        let found = inode.found(number, self.superblock.features);
        let fields = Fields::little(inode.bytes);
        let is_plain = inode.is_used() && inode.is_plain() && fields.u32(0x14) == 0;
        let times = [found.birth_ns, found.change_ns, found.modify_ns];
        if found.kind != FileKind::Regular || !is_plain || times.contains(&i64::MAX) {
            return None;
        }
        let block_bytes = u64::from(self.superblock.block_bytes);
        let first = extents.len();
        let (mut blocks, mut reached) = (0, 0);
        let map = Fields::little(inode.map());
        let entries = usize::from(map.u16(2));
        if map.u16(0) != NODE_MAGIC || map.u16(6) != 0 || entries > 4 {
            return None;
        }
        for at in (1..=entries).map(|entry| entry * NODE_ENTRY_BYTES) {
            let length = map.u16(at + 4);
            let start = u64::from(map.u16(at + 6)) << 32 | u64::from(map.u32(at + 8));
            let logical = u64::from(map.u32(at));
            let end = start + u64::from(length);
            if !(1..=EXTENT_BLOCKS_MAX).contains(&length)
                || logical < reached
                || end > self.superblock.blocks
            {
                return None;
            }
            reached = logical + u64::from(length);
            blocks += u64::from(length);
            push_extent(
                extents,
                first,
                Extent {
                    logical_bytes: logical * block_bytes,
                    physical_bytes: start * block_bytes,
                    length_bytes: u64::from(length) * block_bytes,
                    flags: ExtentFlags::default(),
                },
            );
        }
        let attribute_block = fields.u32(0x68) != 0 || fields.u16(0x76) != 0;
        let allocated_bytes = (blocks + u64::from(attribute_block)) * block_bytes;
        let counted = u64::from(fields.u32(0x1C)) | u64::from(fields.u16(0x74)) << 32;
        let is_all = counted.checked_mul(COUNTED_BYTES) == Some(allocated_bytes)
            && reached <= found.size_bytes.div_ceil(block_bytes);
        is_all.then_some(TableFile {
            links: found.links,
            size_bytes: found.size_bytes,
            allocated_bytes,
            birth_ns: found.birth_ns,
            change_ns: found.change_ns,
            modify_ns: found.modify_ns,
        })
    }
}

/// The kernel's CRC-32C, which neither begins nor ends with all bits turned as the library's does.
fn crc_on(checksum: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!checksum, bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;
    use std::process::Command;

    use super::{InodeTable, TableWindow};
    use crate::source::image::take_image;

    /// Makes an image with a few dozen files, of which some have holes; `false` without mke2fs.
    fn make(folder: &Path, image: &Path, features: &str) -> bool {
        for number in 0..40_u64 {
            let file = File::create(folder.join(format!("file{number}"))).expect("there is room");
            for piece in 0..number % 6 {
                file.write_all_at(&[1; 4096], piece * 12_288).expect("there is room");
            }
        }
        File::create(image).and_then(|file| file.set_len(16 << 20)).expect("there is room");
        let mut mkfs = Command::new("mkfs.ext4");
        mkfs.args(["-q", "-b", "4096", "-O", features, "-d"]).arg(folder).arg(image);
        mkfs.output().is_ok_and(|done| done.status.success())
    }

    fn open(image: &Path) -> Option<InodeTable> {
        InodeTable::open(File::open(image).expect("it was made"))
    }

    /// Every file whose extents stand in its inode is given as the reader of images gives it; with one
    /// bit turned anywhere in it, or under another number, it is not.
    #[test]
    fn only_whole_inodes() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (tree, image) = (folder.path().join("tree"), folder.path().join("image"));
        fs::create_dir(&tree).expect("there is room");
        if !make(&tree, &image, "metadata_csum") {
            return;
        }
        let snapshot = take_image(&image, false, &mut |_| Ok(())).expect("an image");
        let table = open(&image).expect("it keeps checksums");
        let (mut window, mut given) = (TableWindow::default(), 0);
        for file in &snapshot.files {
            let mut extents = Vec::new();
            let Some(told) = table.file(file.inode, &mut window, &mut extents) else {
                assert!(extents.is_empty());
                continue;
            };
            assert_eq!(extents, snapshot.extents_of(file));
            assert_eq!((told.links, told.size_bytes), (file.links, file.size_bytes));
            assert_eq!((told.birth_ns, told.change_ns), (file.birth_ns, file.change_ns));
            assert_eq!(told.modify_ns, file.modify_ns);
            given += 1;
        }
        // Of six lengths one has five pieces, which need a block of their own.
        assert!((30..40).contains(&given), "{given}");
        let last = snapshot.files.iter().rfind(|file| file.extents == 3).expect("there are some");
        let address =
            table.groups.inode_address(&table.superblock, last.inode).expect("it is used");
        let device = OpenOptions::new().read(true).write(true).open(&image).expect("it was made");
        let mut bytes = [0; 256];
        device.read_exact_at(&mut bytes, address).expect("within the image");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            device.write_all_at(&bytes, address).expect("within the image");
            bytes[bit / 8] ^= 1 << (bit % 8);
            window.forget();
            assert_eq!(table.file(last.inode, &mut window, &mut Vec::new()), None, "bit {bit}");
        }
    }

    /// A file system without checksums is not read so.
    #[test]
    fn without_checksums() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (tree, image) = (folder.path().join("tree"), folder.path().join("image"));
        fs::create_dir(&tree).expect("there is room");
        if make(&tree, &image, "^metadata_csum") {
            assert!(open(&image).is_none());
        }
    }
}
