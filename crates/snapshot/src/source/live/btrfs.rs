//! Where the logical addresses of btrfs are on its device, and what is free there.
//!
//! FIEMAP reports addresses in a space of btrfs's own; the chunk tree maps stretches of it to
//! devices. With one device every chunk is one stretch (or two copies, DUP): addresses become those
//! of the first copy. With several devices an address alone does not say which one, so they stay
//! logical, no free map is reported, and the parameter `addresses` says so; likewise without root, to
//! whom alone btrfs shows its trees.
//!
//! What is free: space that no chunk has, and within chunks what the free-space tree holds or, on
//! file systems without it, what no extent of the extent tree covers. Both are as of the kernel's
//! last bookkeeping: what was freed a moment ago may still count as used (until a `sync`).
//!
//! Source: Linux `include/uapi/linux/btrfs_tree.h`; Btrfs documentation, "On-disk Format".

use rustix::fd::AsFd;
use rustix::io::{Errno, Result};

use super::free_map::joined;
use super::kernel::{BtrfsInfo, TreeKey, TreeWalk};
use crate::{Extent, ExtentFlags, FileSystemFacts, FreeExtent, Snapshot};

const EXTENT_TREE: u64 = 2;
const CHUNK_TREE: u64 = 3;
const FREE_SPACE_TREE: u64 = 10;

const EXTENT_ITEM: u8 = 168;
const METADATA_ITEM: u8 = 169;
const FREE_SPACE_EXTENT: u8 = 199;
const FREE_SPACE_BITMAP: u8 = 200;
const DEVICE_ITEM: u8 = 216;
const CHUNK_ITEM: u8 = 228;

/// `struct btrfs_chunk` without its stripes, and a stripe.
const CHUNK_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;

/// `BTRFS_BLOCK_GROUP_*`.
const DATA: u64 = 1;
const METADATA: u64 = 4;
const PROFILES: [(u64, &str); 8] = [
    (8, "raid0"),
    (16, "raid1"),
    (32, "dup"),
    (64, "raid10"),
    (128, "raid5"),
    (256, "raid6"),
    (512, "raid1c3"),
    (1024, "raid1c4"),
];

/// The front of a device that no chunk ever gets (`BTRFS_DEVICE_RANGE_RESERVED`).
const RESERVED_BYTES: u64 = 1 << 20;
/// Where the copies of the superblock are that lie behind it, and what is kept free of data around
/// each (`btrfs_sb_offset`, `BTRFS_STRIPE_LEN`).
const SUPERBLOCKS_AT: [u64; 2] = [64 << 20, 256 << 30];
const SUPERBLOCK_KEPT_BYTES: u64 = 64 << 10;

/// A stretch of logical addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    logical_bytes: u64,
    length_bytes: u64,
    /// `BTRFS_BLOCK_GROUP_*`.
    flags: u64,
    /// Where its copies or stripes begin on their devices.
    stripes: Vec<u64>,
}

impl Chunk {
    fn parse(key: TreeKey, data: &[u8]) -> Option<Self> {
        let stripes = usize::from(u16::from_le_bytes(data.get(44..46)?.try_into().ok()?));
        let all = data.get(CHUNK_BYTES..CHUNK_BYTES + stripes.checked_mul(STRIPE_BYTES)?)?;
        let length_bytes = long(data, 0)?;
        key.offset.checked_add(length_bytes)?;
        Some(Self {
            logical_bytes: key.offset,
            length_bytes,
            flags: long(data, 24)?,
            stripes: all.chunks_exact(STRIPE_BYTES).filter_map(|one| long(one, 8)).collect(),
        })
    }

    fn end_bytes(&self) -> u64 {
        self.logical_bytes + self.length_bytes
    }

    fn profile(&self) -> &'static str {
        let set = PROFILES.iter().find(|(bit, _)| self.flags & bit != 0);
        set.map_or("single", |(_, name)| name)
    }
}

fn long(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

/// Every chunk of a file system with one device, ascending by logical address.
#[derive(Debug, Default)]
struct Chunks {
    chunks: Vec<Chunk>,
    device_bytes: u64,
}

impl Chunks {
    fn read(file: impl AsFd) -> Result<Self> {
        let mut all = Self::default();
        let mut walk = TreeWalk::new(CHUNK_TREE);
        let take = |all: &mut Self, key: TreeKey, data: &[u8]| match key.kind {
            CHUNK_ITEM => all.chunks.extend(Chunk::parse(key, data)),
            DEVICE_ITEM => all.device_bytes = long(data, 8).unwrap_or(0),
            _ => {}
        };
        while walk.next(&file, |key, data| take(&mut all, key, data))? {}
        Ok(all)
    }

    /// The chunk that `logical_bytes` is in.
    fn at(&self, logical_bytes: u64) -> Option<&Chunk> {
        let behind = self.chunks.partition_point(|chunk| chunk.logical_bytes <= logical_bytes);
        let chunk = &self.chunks[behind.checked_sub(1)?];
        (logical_bytes < chunk.end_bytes()).then_some(chunk)
    }

    /// Appends `extent` with addresses of the device, in as many pieces as it has there.
    fn translate(&self, extent: &Extent, pieces: &mut Vec<Extent>) {
        if extent.flags.any(ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN)) {
            pieces.push(*extent);
            return;
        }
        let mut rest = *extent;
        while rest.length_bytes > 0 {
            let chunk = self.at(rest.physical_bytes);
            let Some((chunk, start)) =
                chunk.and_then(|chunk| Some((chunk, chunk.stripes.first()?)))
            else {
                // A balance moved it between the walk and now.
                let flags = rest.flags.with(ExtentFlags::UNKNOWN);
                pieces.push(Extent { physical_bytes: 0, flags, ..rest });
                return;
            };
            // Compressed data takes less room than the file has bytes; it never leaves its chunk.
            let whole = rest.flags.any(ExtentFlags::ENCODED);
            let here = chunk.end_bytes() - rest.physical_bytes;
            let length_bytes = if whole { rest.length_bytes } else { rest.length_bytes.min(here) };
            let physical_bytes = start.saturating_add(rest.physical_bytes - chunk.logical_bytes);
            pieces.push(Extent { physical_bytes, length_bytes, ..rest });
            rest.logical_bytes += length_bytes;
            rest.physical_bytes += length_bytes;
            rest.length_bytes -= length_bytes;
        }
    }

    /// What of logical `free` lies where on the device, all copies.
    fn on_device(&self, free: FreeExtent, device: &mut Vec<FreeExtent>) {
        let mut rest = free;
        while let Some(chunk) = self.at(rest.physical_bytes) {
            let within = rest.physical_bytes - chunk.logical_bytes;
            let length_bytes = rest.length_bytes.min(chunk.length_bytes - within);
            device.extend(chunk.stripes.iter().map(|start| FreeExtent {
                physical_bytes: start.saturating_add(within),
                length_bytes,
            }));
            rest.physical_bytes += length_bytes;
            rest.length_bytes -= length_bytes;
            if rest.length_bytes == 0 {
                return;
            }
        }
    }

    /// Chunks of metadata alone, of which `free`, in logical addresses, is not in use.
    fn metadata(&self, free: &[FreeExtent]) -> Vec<MetadataChunk> {
        let of_metadata = |chunk: &&Chunk| chunk.flags & (DATA | METADATA) == METADATA;
        let all = self.chunks.iter().filter(of_metadata).map(|chunk| MetadataChunk {
            logical_bytes: chunk.logical_bytes,
            length_bytes: chunk.length_bytes,
            used_bytes: chunk.length_bytes,
            copies: chunk.stripes.clone(),
        });
        let mut found: Vec<MetadataChunk> = all.collect();
        for run in free {
            // Free space of data is far more, so that each run is looked up once.
            let behind = found.partition_point(|chunk| chunk.logical_bytes <= run.physical_bytes);
            let Some(chunk) = behind.checked_sub(1).map(|at| &mut found[at]) else { continue };
            if run.physical_bytes - chunk.logical_bytes < chunk.length_bytes {
                chunk.used_bytes = chunk.used_bytes.saturating_sub(run.length_bytes);
            }
        }
        found
    }

    /// What of the device no chunk has.
    fn unallocated(&self) -> Vec<FreeExtent> {
        let used = self.chunks.iter().flat_map(|chunk| {
            let length_bytes = chunk.length_bytes;
            chunk
                .stripes
                .iter()
                .map(move |&physical_bytes| FreeExtent { physical_bytes, length_bytes })
        });
        let behind_reserved = FreeExtent {
            physical_bytes: RESERVED_BYTES,
            length_bytes: self.device_bytes.saturating_sub(RESERVED_BYTES),
        };
        without(vec![behind_reserved], used.collect())
    }
}

/// `space` without `used`, both in any order.
fn without(space: Vec<FreeExtent>, used: Vec<FreeExtent>) -> Vec<FreeExtent> {
    let used = joined(used);
    let mut rest = Vec::with_capacity(space.len() + used.len());
    for piece in joined(space) {
        let end = piece.physical_bytes + piece.length_bytes;
        let mut at = piece.physical_bytes;
        let first = used.partition_point(|used| used.physical_bytes + used.length_bytes <= at);
        for used in used[first..].iter().take_while(|used| used.physical_bytes < end) {
            let length_bytes = used.physical_bytes.saturating_sub(at);
            rest.push(FreeExtent { physical_bytes: at, length_bytes });
            at = (used.physical_bytes + used.length_bytes).min(end);
        }
        rest.push(FreeExtent { physical_bytes: at, length_bytes: end - at });
    }
    joined(rest)
}

/// Appends the stretches of set bits.
fn free_of_bitmap(key: TreeKey, bitmap: &[u8], sector_bytes: u64, free: &mut Vec<FreeExtent>) {
    let sectors = (key.offset / sector_bytes.max(1)).min(bitmap.len() as u64 * 8);
    for sector in 0..sectors {
        if bitmap[(sector / 8) as usize] >> (sector % 8) & 1 == 0 {
            continue;
        }
        let physical_bytes = key.object.saturating_add(sector * sector_bytes);
        match free.last_mut() {
            Some(last)
                if last.physical_bytes >= key.object
                    && last.physical_bytes + last.length_bytes == physical_bytes =>
            {
                last.length_bytes += sector_bytes;
            }
            _ => free.push(FreeExtent { physical_bytes, length_bytes: sector_bytes }),
        }
    }
}

/// What the free-space tree holds, in logical addresses; `None` if there is no such tree.
fn free_of_tree(file: impl AsFd, sector_bytes: u64) -> Result<Option<Vec<FreeExtent>>> {
    let mut free = Vec::new();
    let mut walk = TreeWalk::new(FREE_SPACE_TREE);
    let mut items = 0;
    loop {
        let step = walk.next(&file, |key, data| {
            items += 1;
            match key.kind {
                FREE_SPACE_EXTENT => {
                    let length_bytes = key.offset;
                    free.push(FreeExtent { physical_bytes: key.object, length_bytes });
                }
                FREE_SPACE_BITMAP => free_of_bitmap(key, data, sector_bytes, &mut free),
                _ => {}
            }
        });
        match step {
            Ok(true) => {}
            Ok(false) => return Ok((items > 0).then_some(free)),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// What no extent of the extent tree covers, in logical addresses.
fn free_between_extents(
    file: impl AsFd,
    chunks: &Chunks,
    node_bytes: u64,
) -> Result<Vec<FreeExtent>> {
    let mut used = Vec::new();
    let mut walk = TreeWalk::new(EXTENT_TREE);
    let mut take = |key: TreeKey, _: &[u8]| {
        let length_bytes = match key.kind {
            EXTENT_ITEM => key.offset,
            METADATA_ITEM => node_bytes,
            _ => return,
        };
        used.push(FreeExtent { physical_bytes: key.object, length_bytes });
    };
    while walk.next(&file, &mut take)? {}
    let space = chunks.chunks.iter().map(|chunk| FreeExtent {
        physical_bytes: chunk.logical_bytes,
        length_bytes: chunk.length_bytes,
    });
    Ok(without(space.collect(), used))
}

/// Turns addresses into those of the device and adds what is free, as far as btrfs reports it.
pub(super) fn describe(
    file: impl AsFd,
    facts: &mut FileSystemFacts,
    snapshot: &mut Snapshot,
) -> Result<()> {
    let info = BtrfsInfo::of(&file)?;
    let mut set = |name: &str, value: String| facts.parameters.insert(name.to_owned(), value);
    set("devices", info.devices.to_string());
    set("node_bytes", info.node_bytes.to_string());
    let chunks = match Chunks::read(&file) {
        Ok(chunks) => chunks,
        Err(Errno::PERM | Errno::ACCESS) => {
            set("addresses", "logical: the chunk tree can be read by root only".to_owned());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for (kind, name) in [(DATA, "data_profile"), (METADATA, "metadata_profile")] {
        let of_kind = chunks.chunks.iter().filter(|chunk| chunk.flags & kind != 0);
        let mut profiles: Vec<&str> = of_kind.map(Chunk::profile).collect();
        profiles.sort_unstable();
        profiles.dedup();
        set(name, profiles.join(","));
    }
    if info.devices != 1 {
        let note = "logical: with several devices an address does not say which";
        set("addresses", note.to_owned());
        return Ok(());
    }
    let note = "of the device; of the first copy where there are two";
    set("addresses", note.to_owned());
    facts.total_bytes = chunks.device_bytes;
    translate_all(&chunks, snapshot);
    let logical = match free_of_tree(&file, info.sector_bytes.into())? {
        Some(free) => free,
        None => free_between_extents(&file, &chunks, info.node_bytes.into())?,
    };
    let mut free = chunks.unallocated();
    // Not joined before: the tree may also hold block groups that are gone (mkfs leaves some),
    // and what touches them must not go with them.
    for extent in logical {
        chunks.on_device(extent, &mut free);
    }
    let superblocks = SUPERBLOCKS_AT
        .map(|physical_bytes| FreeExtent { physical_bytes, length_bytes: SUPERBLOCK_KEPT_BYTES });
    snapshot.free = without(free, superblocks.to_vec());
    facts.free_map = true;
    Ok(())
}

/// A chunk in which only nodes of trees are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataChunk {
    /// Where it begins within btrfs.
    pub logical_bytes: u64,
    /// Bytes of each of its copies.
    pub length_bytes: u64,
    /// Of them are in use.
    pub used_bytes: u64,
    /// Where its copies are on the device, bytes.
    pub copies: Vec<u64>,
}

/// Where on its device a btrfs of one device keeps data, and what of it is free.
#[derive(Debug, Clone, Default)]
pub struct DataSpace {
    /// Chunks of data: address within btrfs, place on the device, length; bytes.
    chunks: Vec<(u64, u64, u64)>,
    /// What is free of them, on the device, ascending.
    pub free: Vec<FreeExtent>,
    /// Chunks of metadata.
    pub metadata: Vec<MetadataChunk>,
    /// What of the device no chunk has, ascending.
    pub unallocated: Vec<FreeExtent>,
    /// Bytes of the device.
    pub device_bytes: u64,
    /// Whether data and metadata share chunks.
    pub mixed: bool,
}

impl DataSpace {
    /// Of the file system that `file` is on.
    ///
    /// # Errors
    /// If its trees cannot be read.
    pub fn of_btrfs(file: impl AsFd) -> Result<Self> {
        let info = BtrfsInfo::of(&file)?;
        let mut all = Chunks::read(&file)?;
        let logical = match free_of_tree(&file, info.sector_bytes.into())? {
            Some(free) => free,
            None => free_between_extents(&file, &all, info.node_bytes.into())?,
        };
        let metadata = all.metadata(&logical);
        let unallocated = all.unallocated();
        all.chunks.retain(|chunk| chunk.flags & DATA != 0 && !chunk.stripes.is_empty());
        all.chunks.iter_mut().for_each(|chunk| chunk.stripes.truncate(1));
        let mut free = Vec::new();
        for extent in logical {
            all.on_device(extent, &mut free);
        }
        let superblocks = SUPERBLOCKS_AT.map(|physical_bytes| FreeExtent {
            physical_bytes,
            length_bytes: SUPERBLOCK_KEPT_BYTES,
        });
        let place = |chunk: &Chunk| (chunk.logical_bytes, chunk.stripes[0], chunk.length_bytes);
        Ok(Self {
            mixed: all.chunks.iter().any(|chunk| chunk.flags & METADATA != 0),
            chunks: all.chunks.iter().map(place).collect(),
            free: without(free, superblocks.to_vec()),
            metadata,
            unallocated,
            device_bytes: all.device_bytes,
        })
    }

    /// Where on the device its chunks begin, ascending.
    #[must_use]
    pub fn regions(&self) -> Vec<u64> {
        let mut starts: Vec<u64> = self.chunks.iter().map(|(_, physical, _)| *physical).collect();
        starts.sort_unstable();
        starts
    }

    /// Whether its chunks are those of `other`: a balance puts others in their place.
    #[must_use]
    pub fn has_chunks_of(&self, other: &Self) -> bool {
        self.chunks == other.chunks
    }

    /// The address within btrfs of the byte at `physical_bytes` of the device; `None` if no chunk of
    /// data has it.
    #[must_use]
    pub fn address(&self, physical_bytes: u64) -> Option<u64> {
        self.chunks.iter().find_map(|(logical, physical, length)| {
            let within = physical_bytes.checked_sub(*physical)?;
            (within < *length).then(|| logical + within)
        })
    }

    /// Gives `extents`, as FIEMAP has them, their places on the device; `false` if one has none.
    #[must_use]
    pub fn place(&self, extents: &mut [Extent]) -> bool {
        extents.iter_mut().all(|extent| {
            let placed = self.chunks.iter().find_map(|(logical, physical, length)| {
                let within = extent.physical_bytes.checked_sub(*logical)?;
                (within + extent.length_bytes <= *length).then(|| physical + within)
            });
            placed.map(|placed| extent.physical_bytes = placed).is_some()
        })
    }
}

/// Gives every extent its addresses on the device.
fn translate_all(chunks: &Chunks, snapshot: &mut Snapshot) {
    let mut extents = Vec::with_capacity(snapshot.extents.len());
    for file in &mut snapshot.files {
        let first = file.first_extent as usize;
        let told = &snapshot.extents[first..first + file.extents as usize];
        // Pieces are more than extents only where one spans two chunks of a gigabyte.
        file.first_extent = extents.len() as u32;
        for extent in told {
            chunks.translate(extent, &mut extents);
        }
        file.extents = extents.len() as u32 - file.first_extent;
    }
    snapshot.extents = extents;
}

#[cfg(test)]
mod tests {
    use super::{Chunk, Chunks, DataSpace, MetadataChunk, free_of_bitmap, without};
    use crate::source::live::kernel::TreeKey;
    use crate::{Extent, ExtentFlags, FreeExtent};

    fn space(physical_bytes: u64, length_bytes: u64) -> FreeExtent {
        FreeExtent { physical_bytes, length_bytes }
    }

    fn two_chunks() -> Chunks {
        let chunk = |logical_bytes, flags, stripes: &[u64]| Chunk {
            logical_bytes,
            length_bytes: 1000,
            flags,
            stripes: stripes.to_vec(),
        };
        Chunks {
            chunks: vec![
                chunk(10_000, 1, &[4_000_000]),
                chunk(11_000, 4 | 32, &[2_000_000, 3_000_000]),
            ],
            device_bytes: 5_000_000,
        }
    }

    fn extent(physical_bytes: u64, length_bytes: u64, flags: ExtentFlags) -> Extent {
        Extent { logical_bytes: 0, physical_bytes, length_bytes, flags }
    }

    /// Of three chunks, the last by address is the first on the device.
    #[test]
    fn where_chunks_are() {
        let chunks = vec![(10_000, 5000, 1000), (20_000, 8000, 1000), (30_000, 1000, 1000)];
        let space = DataSpace { chunks, ..DataSpace::default() };
        assert_eq!(space.regions(), [1000, 5000, 8000]);
        assert_eq!(space.address(1000), Some(30_000));
        assert_eq!(space.address(8999), Some(20_999));
        assert_eq!(space.address(9000), None);
    }

    /// An extent across two chunks becomes two; the file's own bytes go on where they were.
    #[test]
    fn an_extent_across_chunks() {
        let mut pieces = Vec::new();
        two_chunks().translate(&extent(10_900, 300, ExtentFlags::SHARED), &mut pieces);
        let told: Vec<_> = pieces
            .iter()
            .map(|piece| (piece.logical_bytes, piece.physical_bytes, piece.length_bytes))
            .collect();
        assert_eq!(told, [(0, 4_000_900, 100), (100, 2_000_000, 200)]);
        assert!(pieces.iter().all(|piece| piece.flags == ExtentFlags::SHARED));
    }

    /// An address that no chunk has is unknown; compressed and inline data are not cut.
    #[test]
    fn extents_without_a_place() {
        let chunks = two_chunks();
        let mut pieces = Vec::new();
        chunks.translate(&extent(12_500, 300, ExtentFlags::default()), &mut pieces);
        assert!(pieces[0].flags.any(ExtentFlags::UNKNOWN));
        chunks.translate(&extent(10_900, 300, ExtentFlags::ENCODED), &mut pieces);
        assert_eq!((pieces[1].physical_bytes, pieces[1].length_bytes), (4_000_900, 300));
        chunks.translate(&extent(0, 300, ExtentFlags::INLINE), &mut pieces);
        assert_eq!(pieces[2], extent(0, 300, ExtentFlags::INLINE));
    }

    /// Free space of a chunk with two copies is free at both; what is beyond the chunks is nowhere.
    #[test]
    fn free_space_on_the_device() {
        let mut device = Vec::new();
        two_chunks().on_device(space(10_500, 5000), &mut device);
        assert_eq!(device, [space(4_000_500, 500), space(2_000_000, 1000), space(3_000_000, 1000)]);
        // Of metadata what is free counts once, and not what begins beyond.
        let found =
            two_chunks().metadata(&[space(10_500, 500), space(11_100, 300), space(11_900, 50)]);
        let chunk = MetadataChunk {
            logical_bytes: 11_000,
            length_bytes: 1000,
            used_bytes: 650,
            copies: vec![2_000_000, 3_000_000],
        };
        assert_eq!(found, [chunk]);
        let unallocated = two_chunks().unallocated();
        let sum: u64 = unallocated.iter().map(|piece| piece.length_bytes).sum();
        assert_eq!(sum, 5_000_000 - (1 << 20) - 3000);
    }

    /// Cutting leaves the pieces between, also where the cut covers an end or all.
    #[test]
    fn cutting() {
        let rest =
            without(vec![space(0, 100), space(200, 100)], vec![space(50, 160), space(290, 99)]);
        assert_eq!(rest, [space(0, 50), space(210, 80)]);
        assert_eq!(without(vec![space(10, 10)], vec![space(0, 100)]), []);
        assert_eq!(without(vec![space(10, 10)], vec![]), [space(10, 10)]);
    }

    /// Set bits are free sectors; a bitmap cut short ends the reading.
    #[test]
    fn bitmaps() {
        let key = TreeKey { object: 1 << 20, kind: 200, offset: 24 * 4096 };
        let mut free = Vec::new();
        free_of_bitmap(key, &[0b1000_0110, 0b0000_0001], 4096, &mut free);
        assert_eq!(free, [space((1 << 20) + 4096, 8192), space((1 << 20) + 7 * 4096, 8192)]);
    }

    /// A chunk item cut short is left out instead of read beyond its end.
    #[test]
    fn cut_items() {
        let key = TreeKey { object: 256, kind: 228, offset: 4096 };
        let mut item = vec![0; 80];
        item[0] = 1;
        item[24] = 1;
        item[44] = 1;
        item[56] = 7;
        let chunk = Chunk::parse(key, &item).expect("one stripe in 80 bytes");
        assert_eq!(
            (chunk.length_bytes, chunk.stripes.as_slice(), chunk.profile()),
            (1, &[7][..], "single")
        );
        assert!((0..80).all(|end| Chunk::parse(key, &item[..end]).is_none()));
    }
}
