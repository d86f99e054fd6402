//! Writing what has changed: the order of blocks in a partial segment, and the log's transfers as
//! transfers of sectors.

use crate::file_system::{Content, FileDevice, FileSystemError, FileTransfer, Urgency};
use agewell_log::{BlockDevice, Call, Transfer};

use super::{INODE_BYTES, LogFileSystem, NONE};

/// The device as the log sees it.
pub(super) struct SegmentDevice<'a, D> {
    device: &'a mut D,
    block_sectors: u64,
    urgency: Urgency,
}

impl<'a, D: FileDevice> SegmentDevice<'a, D> {
    pub(super) fn new(device: &'a mut D, block_bytes: u64) -> Self {
        Self { device, block_sectors: block_bytes / 512, urgency: Urgency::Asynchronous }
    }
}

impl<D: FileDevice> BlockDevice for SegmentDevice<'_, D> {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        let writes = transfer.purpose.writes();
        let transfer = FileTransfer {
            sector: u64::from(transfer.slot) * self.block_sectors,
            sectors: transfer.blocks * self.block_sectors as u32,
            content: Content::Segment,
            urgency: if writes { self.urgency } else { Urgency::Synchronous },
        };
        if writes {
            self.device.write(transfer);
        } else {
            self.device.read(transfer);
        }
    }
}

impl LogFileSystem {
    /// Writes what has changed in `nodes`, the youngest first, and their inodes.
    pub(super) fn write_partial_segments(
        &mut self,
        nodes: &[u32],
        urgency: Urgency,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        if nodes.is_empty() {
            return Ok(());
        }
        let mut order: Vec<u32> = Vec::new();
        for number in nodes.iter().rev() {
            let node = &mut self.nodes[*number as usize];
            let blocks = std::mem::take(&mut node.dirty_blocks);
            let indirect = std::mem::take(&mut node.dirty_indirect);
            self.dirty_blocks -= (blocks.len() + indirect.len()) as u64;
            order.extend(blocks.iter().map(|block| node.blocks[*block as usize]));
            if !indirect.is_empty() && node.indirect.len() > 1 {
                // The block that holds the addresses of the indirect ones changes with them.
                let double = *node.indirect.last().expect("more than one");
                let single = indirect.iter().map(|block| node.indirect[*block as usize]);
                order.extend(single.filter(|block| *block != double));
                order.push(double);
            } else {
                order.extend(indirect.iter().map(|block| node.indirect[*block as usize]));
            }
        }
        order.extend(self.pack_inodes(nodes, device));
        self.write_in_order(&order, urgency, device)
    }

    /// Blocks for the inodes of `nodes`, the youngest first.
    fn pack_inodes(&mut self, nodes: &[u32], device: &mut impl FileDevice) -> Vec<u32> {
        let per = (self.block_bytes / INODE_BYTES) as usize;
        let mut blocks = Vec::with_capacity(nodes.len().div_ceil(per));
        let youngest: Vec<u32> = nodes.iter().rev().copied().collect();
        for packed in youngest.chunks(per) {
            let block = self.number_block();
            self.inodes_in[block as usize] = packed.len() as u32;
            blocks.push(block);
            for number in packed {
                let node = &mut self.nodes[*number as usize];
                node.dirty = false;
                let old = std::mem::replace(&mut node.inode_block, block);
                if old != NONE {
                    self.leave_inode_block(old, device);
                }
            }
        }
        blocks
    }

    /// Partial segments of at most a segment, each with a summary in front.
    fn write_in_order(
        &mut self,
        order: &[u32],
        urgency: Urgency,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let most = self.log.log().shape().segment_blocks_max() as usize - 1;
        let mut segments = SegmentDevice::new(device, self.block_bytes);
        segments.urgency = urgency;
        for part in order.chunks(most.max(1)) {
            for block in std::iter::once(&self.summary).chain(part) {
                self.log
                    .carry_out(Call::Write { block: *block, client: 0 }, &mut segments)
                    .map_err(|_full| FileSystemError::NoSpace)?;
            }
            self.log
                .carry_out(Call::Sync { client: 0 }, &mut segments)
                .map_err(|_full| FileSystemError::NoSpace)?;
        }
        Ok(())
    }
}
