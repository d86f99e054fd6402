//! Parameters of a file system, and the file systems of the papers.

use super::ParameterError;
use super::geometry::Geometry;

/// The space given to a file that outgrows its fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optimization {
    /// A whole block, of which the rest is given back: it can go on growing in place.
    Time,
    /// Just the fragments that it needs.
    Space,
}

/// Where an indirect block and the blocks behind it go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndirectPlacement {
    /// To another cylinder group, the next one with at least the average of free blocks, as both
    /// papers say of the systems that they measured (Smith & Seltzer 1996, §4; Seltzer et al.
    /// 1995, §2.1).
    NewGroup,
    /// The same, but the search begins with the inode's own group, so that a file stays where it is
    /// as long as that has room: what the sources of 4.4BSD-Lite do.
    RoomyGroup,
    /// Behind the block before it, and the data behind the indirect block
    /// (Seltzer et al. 1995, §5).
    NearPrevious,
    /// A file stays with its inode's group as far as its first indirect block reaches (but for
    /// `maxbpg`); it and the thirteenth block are looked for from the front of the group on.
    /// Further indirect blocks change the group.
    ///
    /// The aging paper of 1997 (Smith & Seltzer, "File System Aging") names such a policy; its text
    /// was not at hand, and what is done here is what later BSDs do.
    NoSwitch,
}

/// Where the fragments at a file's end go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentPlacement {
    /// Into the first run of free fragments of just that size in the group, else of the next size;
    /// only where there is none a whole block is broken, as 4.4BSD does. That is why fragments
    /// seldom lie behind the block before them (Smith, "The effects of age and fragmentation").
    BestFit,
    /// The block behind the previous one is broken if it is free, else as `BestFit`.
    NearPrevious,
}

/// Choices in which file systems of the same shape differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policies {
    /// Whether blocks are reallocated to free clusters before they are written (Smith & Seltzer
    /// 1996, §2).
    pub realloc: bool,
    /// Indirect blocks.
    pub indirect: IndirectPlacement,
    /// Fragments.
    pub fragments: FragmentPlacement,
    /// What is optimized for at first, time or space; the file system changes it as its fragments
    /// waste more or less space.
    pub optimization: Optimization,
}

impl Policies {
    /// 4.4BSD before the reallocation of blocks.
    pub const PLAIN: Self = Self {
        realloc: false,
        indirect: IndirectPlacement::NewGroup,
        fragments: FragmentPlacement::BestFit,
        optimization: Optimization::Time,
    };

    /// 4.4BSD with it.
    pub const REALLOC: Self = Self { realloc: true, ..Self::PLAIN };
}

/// Parameters of a file system: `newfs` and `tunefs` in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of a fragment.
    pub fragment_bytes: u32,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Sectors of a track, as the file system believes.
    pub sectors_per_track: u32,
    /// Tracks of a cylinder, as the file system believes.
    pub heads: u32,
    /// Cylinders of the file system.
    pub cylinders: u32,
    /// Cylinders of a cylinder group.
    pub cylinders_per_group: u32,
    /// Share of the space that ordinary users do not get, percent.
    pub minfree_pct: u32,
    /// Blocks that are laid side by side before a rotational gap, and the largest cluster that
    /// blocks are reallocated to.
    pub maxcontig: u32,
    /// Blocks of a file in one group, counted within each indirect block, before it has to go on
    /// in another.
    pub maxbpg: u32,
    /// The rotational gap, ms; 0 for none.
    pub rotdelay_ms: u32,
    /// Turns a minute, for the gap.
    pub rpm: u32,
    /// Rotational positions that the free-block tables distinguish.
    pub rotational_positions: u32,
    /// Bytes of space for each inode.
    pub bytes_per_inode: u32,
    /// Blocks that the kernel moves in one transfer (64 KB of 4.4BSD's `MAXBSIZE`).
    pub transfer_blocks_max: u32,
    /// Bytes of a directory entry: 8, the name and its end, rounded up to 4.
    pub entry_bytes: u32,
    /// The choices.
    pub policies: Policies,
}

impl Parameters {
    /// The file system of Smith & Seltzer 1996, table 1: 502 MB in 27 groups, 22 heads of 118
    /// sectors, clusters of 56 KB, no rotational gap.
    ///
    /// What the table leaves open is chosen by us: 16 cylinders a group and 2 KB an inode are what
    /// `newfs` of SunOS (the original's system) gave, and make 27 groups, the last one cut off, of
    /// a file system with 502 MB (2^20) for data. `maxbpg` is a megabyte (McKusick 1984, §3.2).
    #[must_use]
    pub fn smith_1996(policies: Policies) -> Self {
        Self {
            block_bytes: 8192,
            fragment_bytes: 1024,
            sector_bytes: 512,
            sectors_per_track: 118,
            heads: 22,
            cylinders: 424,
            cylinders_per_group: 16,
            minfree_pct: 10,
            maxcontig: 7,
            maxbpg: 128,
            rotdelay_ms: 0,
            rpm: 5411,
            rotational_positions: 8,
            bytes_per_inode: 2048,
            transfer_blocks_max: 8,
            entry_bytes: 24,
            policies,
        }
    }

    /// The file system of Seltzer et al. 1995, table 1, on a DSP 3105: 14 tracks of 57 sectors,
    /// `maxcontig` 8, a gap of 4 ms (two blocks), transfers of at most 56 KB.
    ///
    /// Its size is not given; the whole disk is chosen by us.
    #[must_use]
    pub fn seltzer_1995(policies: Policies) -> Self {
        Self {
            sectors_per_track: 57,
            heads: 14,
            cylinders: 2568,
            maxcontig: 8,
            rotdelay_ms: 4,
            rpm: 5400,
            bytes_per_inode: 4096,
            transfer_blocks_max: 7,
            ..Self::smith_1996(policies)
        }
    }

    /// This shape with as many cylinders as `bytes` need, the last one cut off if it does not fit.
    #[must_use]
    pub fn with_total_bytes(mut self, bytes: u64) -> Self {
        let cylinder = u64::from(self.heads)
            * u64::from(self.sectors_per_track)
            * u64::from(self.sector_bytes);
        self.cylinders = u32::try_from(bytes / cylinder.max(1)).unwrap_or(u32::MAX);
        self
    }

    /// Whether a file system can be made with these.
    ///
    /// # Errors
    /// If one is out of its range, or they do not go together.
    pub fn check(&self) -> Result<(), ParameterError> {
        Geometry::new(self).map(|_| ())
    }
}
