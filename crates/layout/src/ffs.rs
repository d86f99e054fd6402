//! The Fast File System of 4.4BSD: where it puts the blocks of files, and what it writes for that.
//!
//! Exact in its metadata, without data: superblock, cylinder groups with their bitmaps, inodes,
//! directories, direct and indirect blocks and fragments are where a 4.4BSD-Lite file system of the
//! same parameters has them; contents are not kept. It knows no clock and no disk: what has to move
//! goes to a [`FileDevice`](crate::file_system::FileDevice) as transfers.
//!
//! Mechanism ([`FastFileSystem`], the maps of free space) and policy (`preference`: which group,
//! which block next) are apart. The variants that the papers ask for are values of [`Policies`].
//!
//! Sources: McKusick, Joy, Leffler, Fabry 1984; McKusick, Bostic, Karels, Quarterman 1996 (4.4BSD),
//! §8; Smith & Seltzer 1996, §2; Seltzer et al. 1995, §1.1 and §2.
//!
//! Cost: O(1) a block, and 120 bytes of memory an inode. On one core of 2020s make, of operations that
//! make, write and remove files of 30 blocks at 80 % full: 890,000 a second, 570,000 with
//! reallocation (processor time; `benches/ffs.rs` does the same).
//!
//! Differences from 4.4BSD:
//! * Names are not kept: every directory entry is as long as [`Parameters::entry_bytes`] says.
//! * A write that does not fit keeps the part that fitted, as a program that writes block by block
//!   would see it; the kernel takes back one whole `write` call.
//! * Cutting a file in the middle of a hole does not allocate a block there.
//! * No symbolic or hard links, no quotas, no triple indirect blocks (they begin at 32 GB).

mod allocation;
mod block_lists;
mod block_map;
mod cluster;
mod directories;
mod error;
mod examined;
mod file_system;
mod free_space;
mod geometry;
mod inodes;
mod inspection;
mod parameters;
mod preference;
mod reading;
mod seam;
mod truncation;
mod unsent;
mod verify;
mod writing;

pub use error::ParameterError;
pub use file_system::{FastFileSystem, InodeKind};
pub use inspection::{FfsRun, LayoutTally, SpaceUsage};
pub use parameters::{FragmentPlacement, IndirectPlacement, Optimization, Parameters, Policies};
