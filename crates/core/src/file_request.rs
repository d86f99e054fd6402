//! The file request: the one type that flows from a workload of file operations to the host's
//! caches and the layout.

use crate::SimTime;

/// What a file request asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FileAction {
    /// Blocks are read.
    Read = 0,
    /// Blocks are written, wholly.
    Write = 1,
    /// The file and all its blocks are gone.
    Delete = 2,
    /// The file keeps its blocks below [`FileRequest::block`]; those from there on are gone.
    Truncate = 3,
    /// What the client wrote before must be durable; carries no file.
    Sync = 4,
}

/// One request of one client, in blocks of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRequest {
    /// When it is made; requests of a workload come in the order of their times.
    pub time: SimTime,
    /// Who makes it, numbered from zero.
    pub client: u32,
    /// The file, numbered densely from zero; a number is used again only for the same file.
    pub file: u32,
    /// First block within the file.
    pub block: u32,
    /// Blocks from there; one or more for a read or a write, nothing to the other actions.
    pub blocks: u32,
    /// What is asked.
    pub action: FileAction,
}
