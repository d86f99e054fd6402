//! Layouts that update in place, made as large as a run needs.

use agewell_layout::block_layout::BlockLayout;
use agewell_layout::early_unix::EarlyUnix;
use agewell_layout::ffs::FastFileSystem;
use agewell_layout::file_system_blocks::{
    ExaminedFileSystem, FileSystemBlocks, FileSystemBlocksSetting,
};
use agewell_layout::sequential::{Sequential, SequentialSetting};
use agewell_layout::write_ahead::{WriteAhead, WriteAheadSetting};

use super::disk_size::refused;
use super::prepared::Prepared;
use crate::config::layout::{
    EarlyLayout, FastLayout, MetadataTable, SequentialLayout, WriteAheadLayout,
};
use crate::error::RunError;

impl Prepared<'_> {
    pub(super) fn sequential(&self, layout: &SequentialLayout) -> Sequential {
        Sequential::new(SequentialSetting {
            capacity_blocks: self.capacity_blocks as u32,
            clients: self.buffers(),
            buffer_blocks: self.plain_buffer_blocks(),
            order: layout.order,
        })
    }

    pub(super) fn fast(
        &self,
        layout: &FastLayout,
    ) -> Result<FileSystemBlocks<FastFileSystem>, RunError> {
        let parameters = layout.parameters(self.capacity_blocks).map_err(refused)?;
        let system = FastFileSystem::new(&parameters).map_err(refused)?;
        let transfer_bytes =
            u64::from(parameters.transfer_blocks_max) * u64::from(parameters.block_bytes);
        Ok(self.behind_the_seam(system, transfer_bytes, layout.metadata))
    }

    pub(super) fn early(
        &self,
        layout: &EarlyLayout,
    ) -> Result<FileSystemBlocks<EarlyUnix>, RunError> {
        let setting = layout.setting(self.capacity_blocks).map_err(refused)?;
        let system = EarlyUnix::new(setting).map_err(refused)?;
        // Every block is a request of its own.
        Ok(self.behind_the_seam(system, layout.table.system_block_bytes, layout.metadata))
    }

    fn behind_the_seam<F: ExaminedFileSystem>(
        &self,
        system: F,
        transfer_bytes_max: u64,
        metadata: MetadataTable,
    ) -> FileSystemBlocks<F> {
        let cached = metadata.cache_bytes / system.block_bytes();
        let setting = FileSystemBlocksSetting {
            block_bytes: self.experiment.layout.block_bytes(),
            clients: self.buffers(),
            buffer_blocks: self.plain_buffer_blocks(),
            metadata: metadata.is_transferred,
            metadata_cache_blocks: u32::try_from(cached).unwrap_or(u32::MAX),
            transfer_bytes_max,
        };
        FileSystemBlocks::new(setting, system)
    }

    /// Blocks of a write buffer of a layout without segments.
    pub(super) fn plain_buffer_blocks(&self) -> u32 {
        self.buffer_blocks(self.experiment.layout.segment_blocks())
    }
}

/// `inner`, which has `inner_places`, behind its journal.
pub(super) fn journaled<L: BlockLayout>(
    layout: &WriteAheadLayout,
    inner: L,
    inner_places: u64,
) -> Result<WriteAhead<L>, RunError> {
    let place_bytes = layout.place_bytes();
    let places = inner_places + layout.journal_places();
    if places >= 1 << 32 {
        return Err(refused(format!("{places} places are more than 2^32; use larger blocks")));
    }
    let setting = WriteAheadSetting {
        journaled: layout.journaled,
        place: layout.place,
        inner_places: inner_places as u32,
        place_bytes,
        block_places: (layout.inner.block_bytes() / place_bytes) as u32,
        journal_places: layout.journal_places() as u32,
        group_places: (layout.group_bytes / place_bytes).clamp(1, u64::from(u32::MAX)) as u32,
        checkpoint_commits: layout.checkpoint_commits,
    };
    Ok(WriteAhead::new(setting, inner))
}
