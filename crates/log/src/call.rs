//! What a log is asked to do, as a value: so that what follows a log, or observes it, is handed the
//! same as the log.

use super::policy::mechanism::{Collect, Mechanism};
use super::policy::placement::Placement;
use super::{BlockDevice, Log, LogError};

/// One thing that a log is asked to do.
#[derive(Debug, Clone, Copy)]
pub enum Call<'a> {
    /// Blocks may be numbered up to this: [`Log::ensure_blocks`].
    EnsureBlocks(u32),
    /// A block is laid out before the first request: [`Log::preload`].
    Preload(u32),
    /// Blocks are laid out in even chunks: [`Log::fragment`].
    Fragment {
        /// The blocks, none of which there is yet.
        blocks: &'a [u32],
        /// Blocks in a chunk.
        chunk_blocks: u32,
    },
    /// A user writes a block: [`Log::write`].
    Write {
        /// The block.
        block: u32,
        /// Who writes it.
        client: u32,
    },
    /// What a client has written goes to the disk, [`Log::sync`], and the record of it, if that is in a hole.
    Sync {
        /// The client.
        client: u32,
    },
    /// A block is deleted: [`Log::delete`].
    Delete(u32),
    /// The host has a block in its cache, or has dropped it: [`Log::set_resident`].
    SetResident {
        /// The block.
        block: u32,
        /// Whether the cache has it.
        resident: bool,
    },
}

impl<P: Placement> Log<P> {
    /// Does what `call` says on `device`.
    ///
    /// # Errors
    /// If no room can be made for it.
    #[inline]
    pub fn carry_out(
        &mut self,
        call: Call<'_>,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        match call {
            Call::EnsureBlocks(blocks) => self.ensure_blocks(blocks),
            Call::Preload(block) => self.preload(block, device)?,
            Call::Fragment { blocks, chunk_blocks } => self.fragment(blocks, chunk_blocks)?,
            Call::Write { block, client } => {
                if self.makes_room_beforehand {
                    self.make_room_beforehand(device)?;
                }
                self.write(block, client, device)?;
            }
            Call::Sync { client } => {
                self.sync(client, device)?;
                self.record_in_hole(device);
                if self.setting.threads_ahead > 0
                    && self.collect_rule() == Collect::Always(Mechanism::Thread)
                {
                    // A store names them before the next group goes there.
                    self.choose_threads_ahead(device);
                }
            }
            Call::Delete(block) => self.delete(block, device),
            Call::SetResident { block, resident } => self.set_resident(block, resident),
        }
        Ok(())
    }
}
