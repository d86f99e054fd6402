//! The seam between the file system and whatever carries out its transfers.

/// What a transfer moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Data of regular files.
    Data = 0,
    /// Indirect blocks.
    Indirect = 1,
    /// The block of a group's inode table that holds an inode.
    Inode = 2,
    /// Data of directories.
    Directory = 3,
    /// The maps of a cylinder group: which inodes, blocks and fragments are free.
    CylinderGroup = 4,
    /// The superblock.
    Superblock = 5,
}

impl Purpose {
    /// Every purpose, in the order of its number.
    pub const ALL: [Purpose; 6] = [
        Purpose::Data,
        Purpose::Indirect,
        Purpose::Inode,
        Purpose::Directory,
        Purpose::CylinderGroup,
        Purpose::Superblock,
    ];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Data => "data",
            Purpose::Indirect => "indirect",
            Purpose::Inode => "inode",
            Purpose::Directory => "directory",
            Purpose::CylinderGroup => "cylinder_group",
            Purpose::Superblock => "superblock",
        }
    }
}

/// Who waits for a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Urgency {
    /// The operation goes on when it is done.
    Synchronous = 0,
    /// It starts now, nobody waits.
    Asynchronous = 1,
    /// It may stay in the host's cache, be merged with later writes to its place, and go out when
    /// the host sees fit.
    Delayed = 2,
}

/// One transfer of neighbouring fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// First fragment, from the beginning of the file system.
    pub address: u32,
    /// Fragments.
    pub fragments: u32,
    /// What they are.
    pub purpose: Purpose,
    /// Who waits for them; reads are synchronous.
    pub urgency: Urgency,
}

/// Carries out, prices or records what a file system transfers.
///
/// The file system has no cache: it reads what it needs each time it needs it, and it is for the
/// host to answer what it still holds.
pub trait FfsDevice {
    /// Whether anybody listens. Where nobody does the file system does not keep account of what is
    /// still to be written.
    const LISTENS: bool = true;

    /// Something is written.
    fn write(&mut self, transfer: Transfer);

    /// Something is read.
    fn read(&mut self, transfer: Transfer);
}

/// A device that costs nothing: only the layout matters.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDevice;

impl FfsDevice for NoDevice {
    const LISTENS: bool = false;

    #[inline]
    fn write(&mut self, _transfer: Transfer) {}

    #[inline]
    fn read(&mut self, _transfer: Transfer) {}
}
