//! The queries that a layout of blocks makes on the Fast File System.

use super::geometry::Geometry;
use super::inodes::Kind;
use super::{FastFileSystem, ParameterError, Parameters};
use crate::file_system_blocks::{ExaminedFileSystem, SectorRun, in_disk_order};

impl Parameters {
    /// This shape with as many cylinders as give ordinary users `bytes` for data, or a little more.
    ///
    /// # Errors
    /// If the parameters do not go together.
    pub fn with_data_bytes(self, bytes: u64) -> Result<Self, ParameterError> {
        let cylinder = u64::from(self.heads)
            * u64::from(self.sectors_per_track)
            * u64::from(self.sector_bytes);
        // As one group at least: `newfs` gives up on less.
        let least = cylinder * u64::from(self.cylinders_per_group);
        let mut total = bytes.max(least);
        loop {
            let tried = self.clone().with_total_bytes(total);
            let geometry = Geometry::new(&tried)?;
            let data = geometry.data_fragments - geometry.reserve_fragments;
            let data = u64::from(data) * u64::from(geometry.fragment_bytes);
            if data >= bytes {
                return Ok(tried);
            }
            total += (bytes - data).max(cylinder);
        }
    }

    /// Bytes of the whole file system.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.cylinders)
            * u64::from(self.heads)
            * u64::from(self.sectors_per_track)
            * u64::from(self.sector_bytes)
    }
}

impl FastFileSystem {
    fn run_of(&self, address: u32, fragments: u32) -> SectorRun {
        let sectors = u64::from(self.sectors_per_fragment());
        SectorRun { sector: u64::from(address) * sectors, sectors: u64::from(fragments) * sectors }
    }
}

impl ExaminedFileSystem for FastFileSystem {
    fn unit_sectors(&self) -> u32 {
        self.sectors_per_fragment()
    }

    fn total_sectors(&self) -> u64 {
        u64::from(self.geometry.fragments) * u64::from(self.sectors_per_fragment())
    }

    #[inline]
    fn sector_of(&self, file: u32, offset_bytes: u64) -> Option<u64> {
        let inode = self.file(file).ok()?;
        let block = offset_bytes / u64::from(self.geometry.block_bytes);
        let address = self.address(inode, u32::try_from(block).ok()?);
        (address != 0).then(|| u64::from(address) * u64::from(self.sectors_per_fragment()))
    }

    fn moved_blocks_max(&self) -> u32 {
        if self.policies.realloc { self.geometry.transfer_blocks_max } else { 0 }
    }

    /// Superblocks, maps and the whole inode table of each group, directories and indirect blocks:
    /// what the phases of `fsck` read (McKusick & Kowalski, "Fsck - The UNIX File System Check
    /// Program", §4).
    fn metadata(&self) -> Vec<SectorRun> {
        let mut runs: Vec<SectorRun> = (0..self.geometry.groups)
            .map(|group| {
                let within = self.geometry.metadata(group);
                let first = self.geometry.group_start(group) + within.start;
                self.run_of(first, within.end - within.start)
            })
            .collect();
        let whole = self.geometry.fragments_per_block;
        for (number, record) in (0..).zip(&self.inodes.records) {
            if matches!(record.kind, Kind::Free | Kind::Reserved) {
                continue;
            }
            if record.kind == Kind::Directory
                && let Ok(extents) = self.runs(number)
            {
                runs.extend(extents.map(|run| self.run_of(run.address, run.fragments)));
            }
            let indirect = self.indirect_blocks(number).unwrap_or_default();
            runs.extend(indirect.into_iter().map(|address| self.run_of(address, whole)));
        }
        in_disk_order(runs)
    }

    fn free_maps(&self) -> Vec<SectorRun> {
        let maps = (0..self.geometry.groups).map(|group| {
            self.run_of(self.geometry.map_address(group), self.geometry.map_fragments)
        });
        let (superblock, fragments) = self.geometry.superblock();
        in_disk_order(maps.chain([self.run_of(superblock, fragments)]).collect())
    }
}
