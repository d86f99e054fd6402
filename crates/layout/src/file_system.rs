//! The seam of a file system: operations on files go in, transfers of sectors come out.
//!
//! A file system knows neither clock nor disk. It says what it reads and writes, where, and how
//! urgently. The [`FileDevice`] behind it decides what that costs: it may time it on a modelled
//! disk, count it, or ignore it.

/// Contents of the sectors of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Content {
    /// Bytes of files.
    Data = 0,
    /// Entries of directories.
    Directory = 1,
    /// Inodes.
    Inode = 2,
    /// Addresses of blocks.
    Indirect = 3,
    /// Maps of free space: bitmaps, cylinder groups, segment usage, superblocks.
    Map = 4,
    /// Segments of a log, with all that is in them.
    Segment = 5,
}

/// How soon a transfer has to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Urgency {
    /// Before the operation goes on.
    Synchronous = 0,
    /// It is started now; the operation goes on. A read of this kind is one of a sequence: the next
    /// may be asked for before it is done.
    Asynchronous = 1,
    /// A write that may stay in memory until the next sync.
    Delayed = 2,
}

/// Sectors of 512 bytes that are moved together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTransfer {
    /// The first.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
    /// Their contents.
    pub content: Content,
    /// How soon.
    pub urgency: Urgency,
}

/// Carries out, times or counts what a file system transfers.
pub trait FileDevice {
    /// Whether transfers are used at all. Where they are not, a file system need not track what it
    /// holds back.
    const LISTENS: bool = true;

    /// Sectors are read.
    fn read(&mut self, transfer: FileTransfer);

    /// Sectors are written.
    fn write(&mut self, transfer: FileTransfer);
}

/// A device that ignores everything, for file systems whose layout alone matters.
impl FileDevice for () {
    const LISTENS: bool = false;

    #[inline]
    fn read(&mut self, _transfer: FileTransfer) {}

    #[inline]
    fn write(&mut self, _transfer: FileTransfer) {}
}

/// Why an operation was refused; the file system is then as it was before, except that a write
/// keeps what fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileSystemError {
    /// No room for data.
    #[error("no space left on the file system")]
    NoSpace,
    /// No inode left.
    #[error("no inodes left on the file system")]
    NoInodes,
    /// The file would be larger than the file system can address.
    #[error("the file would be too large")]
    TooLarge,
    /// There is no such file or directory.
    #[error("there is no file {0}")]
    NoFile(u32),
    /// A directory that is to be removed still holds something.
    #[error("directory {0} is not empty")]
    NotEmpty(u32),
    /// A directory that is to be moved would end up in itself or below.
    #[error("directory {0} cannot be moved into itself or below")]
    Cycle(u32),
}

/// Bytes of a file that lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// Where in the file, bytes.
    pub offset_bytes: u64,
    /// Where on the disk, sectors.
    pub sector: u64,
    /// How much, bytes.
    pub bytes: u64,
}

/// A file system that says what it does to its disk.
///
/// Files and directories share one number space; a number is used again after its file is gone.
pub trait FileSystem {
    /// The directory that is always there.
    fn root(&self) -> u32;

    /// Bytes of a block: the unit of the layout score.
    fn block_bytes(&self) -> u64;

    /// Makes a directory in `parent`.
    ///
    /// # Errors
    /// If there is no room, or no such directory.
    fn make_directory(
        &mut self,
        parent: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError>;

    /// Makes an empty file in `directory`.
    ///
    /// # Errors
    /// If there is no room, or no such directory.
    fn create(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError>;

    /// Writes `size_bytes` from `offset_bytes`; the file grows where they reach beyond its end.
    ///
    /// # Errors
    /// If there is no room for all of it, or no such file; what fitted stays.
    fn write(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError>;

    /// Reads what there is of `size_bytes` from `offset_bytes`.
    ///
    /// # Errors
    /// If there is no such file.
    fn read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError>;

    /// Cuts or extends a file to `size_bytes`.
    ///
    /// # Errors
    /// If there is no such file, or no room.
    fn truncate(
        &mut self,
        file: u32,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError>;

    /// Removes a file.
    ///
    /// # Errors
    /// If there is no such file.
    fn remove(&mut self, file: u32, device: &mut impl FileDevice) -> Result<(), FileSystemError>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// If there is no such directory, or if it holds something.
    fn remove_directory(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError>;

    /// Moves a file or directory to another directory, or to another name in its own.
    ///
    /// # Errors
    /// If there is no such file or directory, or no room for the entry.
    fn rename(
        &mut self,
        file: u32,
        to_directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError>;

    /// Everything written so far goes to the disk.
    ///
    /// # Errors
    /// If a log finds no room for it.
    fn sync(&mut self, device: &mut impl FileDevice) -> Result<(), FileSystemError>;

    /// One file goes to the disk.
    ///
    /// # Errors
    /// If there is no such file, or a log finds no room for it.
    fn sync_file(&mut self, file: u32, device: &mut impl FileDevice)
    -> Result<(), FileSystemError>;

    /// Length of a file, bytes; 0 if there is none.
    fn size_bytes(&self, file: u32) -> u64;

    /// The extents of a file, in the order of its bytes.
    fn extents(&self, file: u32) -> Vec<FileExtent>;

    /// Bytes in use, and bytes that can be used at all.
    fn usage_bytes(&self) -> (u64, u64);

    /// Optimal and counted whole blocks of all regular files (Smith & Seltzer 1996, §3.3, §4).
    fn layout_counts(&self) -> (u64, u64);

    /// Free extents: first sectors and lengths, ascending, not touching.
    fn free_extents(&self) -> Vec<(u64, u64)>;

    /// Checks every invariant.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    fn verify(&self);
}
