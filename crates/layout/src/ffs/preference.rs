//! The policies: which cylinder group, and which block next.
//!
//! Plain functions over a view of the free space. They decide where something *should* go; the
//! mechanism (`allocation`) decides whether there is room, and where it goes if not.
//!
//! Source: 4.4BSD's `ffs_dirpref` and `ffs_blkpref`; McKusick et al. 1984, §3.3.

use super::free_space::FreeSpace;
use super::geometry::{DIRECT_BLOCKS, Geometry};

/// The view of a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) space: &'a FreeSpace,
}

/// The block that is to be placed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Group of the file's inode.
    pub(crate) inode_group: u32,
    /// Its number within the file.
    pub(crate) block: u32,
    /// Its number within its map: the inode's addresses, or those of one indirect block.
    pub(crate) index: u32,
    /// Address of the block before it in the same map; 0 if there is none.
    pub(crate) previous: u32,
    /// Address of the block `maxcontig` before it in the same map; 0 if there is none.
    pub(crate) run_start: u32,
    /// Whether the search for a group for a map's first block leaves out the inode's own.
    pub(crate) leaves_group: bool,
}

impl Wanted {
    /// The first block of a map, or an indirect block in front of it.
    pub(crate) fn first_of_map(inode_group: u32, block: u32, leaves_group: bool) -> Self {
        Self { inode_group, block, index: 0, previous: 0, run_start: 0, leaves_group }
    }
}

/// The group for a new directory: of those with at least the average of free inodes the one with
/// the fewest directories.
pub(crate) fn directory_group(view: View<'_>) -> u32 {
    let average = view.space.free_inodes / view.geometry.groups;
    let (mut fewest, mut chosen) = (view.geometry.inodes_per_group, 0);
    for (group, summary) in view.space.groups.iter().enumerate() {
        if summary.directories < fewest && summary.free_inodes >= average {
            (fewest, chosen) = (summary.directories, group as u32);
        }
    }
    chosen
}

/// The address that a block should have; 0 for none.
///
/// The block behind the previous one, after a run of `maxcontig` blocks behind a rotational gap. A
/// file begins in its inode's group; each map of addresses, and each `maxbpg` blocks of one, begin
/// in another group, the next one with at least the average of free blocks.
pub(crate) fn block_address(view: View<'_>, wanted: Wanted) -> u32 {
    let geometry = view.geometry;
    if wanted.index.is_multiple_of(geometry.maxbpg) || wanted.previous == 0 {
        if wanted.block < DIRECT_BLOCKS {
            return group_front(geometry, wanted.inode_group);
        }
        let start = if wanted.previous == 0 {
            // Nothing is known of the block before: a guess by the block's number.
            let first = u32::from(wanted.leaves_group);
            wanted.inode_group + first + wanted.block / geometry.maxbpg
        } else {
            geometry.group_of(wanted.previous) + 1
        };
        return roomy_group(view, start % geometry.groups)
            .map_or(0, |group| group_front(geometry, group));
    }
    let next = wanted.previous + geometry.fragments_per_block;
    let run = geometry.maxcontig * geometry.fragments_per_block;
    let full_run = wanted.index >= geometry.maxcontig
        && wanted.run_start != 0
        && u64::from(wanted.run_start) + u64::from(run) == u64::from(next);
    if full_run { next + geometry.gap_fragments } else { next }
}

/// Where the search for room in `group` begins: its second block.
pub(crate) fn group_front(geometry: &Geometry, group: u32) -> u32 {
    geometry.group_start(group) + geometry.fragments_per_block
}

/// The first group from `start` on, around, with at least the average of free blocks.
fn roomy_group(view: View<'_>, start: u32) -> Option<u32> {
    let average = view.space.free_blocks / view.geometry.groups;
    let roomy = |group: &u32| view.space.groups[*group as usize].free_blocks >= average;
    (start..view.geometry.groups).chain(0..start).find(roomy)
}
