//! Where the data of a file lies.

use agewell_store::device::Disk;

use crate::FsError;
use crate::core::Core;
use crate::format::ExtentState;
use crate::{extents, inodes};

/// A piece of a file that lies in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Laid {
    /// Its first byte in the file.
    pub logical_bytes: u64,
    /// Where on the device it lies; none if it lies nowhere yet, or in what describes the file.
    pub physical_bytes: Option<u64>,
    /// Bytes.
    pub length_bytes: u64,
    /// Whether it lies within what describes the file.
    pub is_inline: bool,
    /// Whether it is promised only, and reads as zeros.
    pub is_promised: bool,
    /// Whether other files may have it too.
    pub is_shared: bool,
}

impl Laid {
    /// Whether `next` goes on where it ends.
    fn is_followed_by(&self, next: &Self) -> bool {
        let goes_on = match (self.physical_bytes, next.physical_bytes) {
            (Some(this), Some(next)) => this + self.length_bytes == next,
            (None, None) => true,
            _ => false,
        };
        goes_on
            && self.logical_bytes + self.length_bytes == next.logical_bytes
            && (self.is_promised, self.is_shared) == (next.is_promised, next.is_shared)
    }
}

/// Where the data of a file lies from the byte `from` on, at most `most` pieces.
pub(crate) fn of_file<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    from: u64,
    most: usize,
) -> Result<Vec<Laid>, FsError> {
    let inode = inodes::file(core, number)?;
    if inode.is_small() {
        let laid = Laid {
            logical_bytes: 0,
            physical_bytes: None,
            length_bytes: inode.size,
            is_inline: true,
            is_promised: false,
            is_shared: false,
        };
        let there = inode.size > 0 && from == 0;
        return Ok(there.then_some(laid).into_iter().collect());
    }
    let block_bytes = core.block_bytes();
    let mut found: Vec<Laid> = Vec::new();
    let mut at = from / block_bytes;
    loop {
        // Every extent is a piece at least.
        let some = extents::between(core, number, (at, u64::MAX >> 10), most)?;
        let Some(last) = some.last() else { return Ok(found) };
        at = last.end();
        for extent in &some {
            let places = match extent.state {
                ExtentState::Promised => vec![None; extent.count as usize],
                _ => core.blocks.places(extent.number, extent.count),
            };
            for (block, physical_bytes) in (extent.at..).zip(places) {
                let next = Laid {
                    logical_bytes: block * block_bytes,
                    physical_bytes,
                    length_bytes: block_bytes,
                    is_inline: false,
                    is_promised: extent.state == ExtentState::Promised,
                    is_shared: extent.state == ExtentState::Shared,
                };
                let last = found.last_mut();
                if let Some(last) = last.filter(|last| last.is_followed_by(&next)) {
                    last.length_bytes += block_bytes;
                } else if found.len() == most {
                    return Ok(found);
                } else {
                    found.push(next);
                }
            }
        }
    }
}
