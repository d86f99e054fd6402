//! Requests: a header, and what the operation needs.

use rustix::fs::{FallocateFlags, RenameFlags, XattrFlags};
use thiserror::Error;

use super::fields::Fields;
use crate::file_system::{
    Caller, Command, Copy, Make, Read, Seek, SetAttributes, SetTime, Time, Write,
};

/// Bytes in front of every request.
pub const REQUEST_HEADER: usize = 40;

/// The oldest protocol that is understood: 7.31 is Linux 5.4's.
pub const MINOR_MIN: u32 = 31;

/// A request that is not as the protocol says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("operation {operation:?} of {size} bytes is not as the protocol says: {what}")]
pub struct BadRequest {
    /// What it is to be answered by, if that much of it is there.
    pub unique: Option<u64>,
    /// The number of its operation, likewise.
    pub operation: Option<u32>,
    /// Bytes of the whole request.
    pub size: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// How requests differ by what was agreed upon at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// `SETXATTR` has a word of flags more.
    pub setxattr_extended: bool,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Comes back with the answer.
    pub unique: u64,
    /// The inode that it is about; 0 where there is none.
    pub inode: u64,
    /// Who asks.
    pub caller: Caller,
    /// What is asked.
    pub operation: Operation<'a>,
}

/// The first request: what the kernel can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Initialise {
    /// Version of the protocol.
    pub major: u32,
    /// Likewise.
    pub minor: u32,
    /// Bytes that it would read ahead.
    pub read_ahead_max: u32,
    /// [`super::capability`].
    pub capabilities: u64,
}

/// Inodes, each with a count of lookups, that the kernel forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forget<'a>(&'a [u8]);

impl Forget<'_> {
    /// Inodes and counts.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (pairs, _) = self.0.as_chunks::<16>();
        pairs.iter().map(|pair| {
            let mut fields = Fields::new(pair);
            let inode = fields.u64().unwrap_or_default();
            (inode, fields.u64().unwrap_or_default())
        })
    }
}

/// What is asked of the inode that the request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "they are named as in the protocol, and their fields as in the trait"
)]
pub enum Operation<'a> {
    Lookup {
        name: &'a [u8],
    },
    Forget {
        count: u64,
    },
    BatchForget(Forget<'a>),
    GetAttributes,
    Statx,
    SetAttributes(SetAttributes),
    ReadLink,
    SymbolicLink {
        name: &'a [u8],
        target: &'a [u8],
    },
    MakeNode {
        make: Make<'a>,
        device: u32,
    },
    MakeDirectory(Make<'a>),
    Create(Make<'a>),
    CreateUnnamed {
        mode: u32,
        mask: u32,
    },
    Unlink {
        name: &'a [u8],
    },
    RemoveDirectory {
        name: &'a [u8],
    },
    Rename {
        name: &'a [u8],
        to_parent: u64,
        to_name: &'a [u8],
        flags: RenameFlags,
    },
    Link {
        inode: u64,
        name: &'a [u8],
    },
    Open,
    OpenDirectory,
    Release,
    ReleaseDirectory,
    Flush,
    Read(Read),
    Write(Write<'a>),
    Space,
    SyncFile {
        data_only: bool,
    },
    SyncDirectory {
        data_only: bool,
    },
    SyncAll,
    SetExtendedAttribute {
        name: &'a [u8],
        value: &'a [u8],
        flags: XattrFlags,
        kills_set_group: bool,
    },
    GetExtendedAttribute {
        name: &'a [u8],
        size: usize,
    },
    ListExtendedAttributes {
        size: usize,
    },
    RemoveExtendedAttribute {
        name: &'a [u8],
    },
    ReadDirectory {
        cookie: u64,
        size: usize,
        with_attributes: bool,
    },
    Access,
    Interrupt,
    Initialise(Initialise),
    Destroy,
    Command(Command<'a>),
    Allocate {
        offset: u64,
        size: u64,
        flags: FallocateFlags,
    },
    Seek {
        offset: u64,
        seek: Seek,
    },
    /// `wide`: the answer has room for more than 32 bits.
    Copy {
        copy: Copy,
        wide: bool,
    },
    /// One that nobody answers.
    Unknown(u32),
}

/// Reads a request out of the bytes that one read of the device gave.
///
/// # Errors
///
/// [`BadRequest`] for whatever is not as the protocol says.
pub fn parse(message: &[u8], dialect: Dialect) -> Result<Request<'_>, BadRequest> {
    let bad = |unique, operation, what| BadRequest { unique, operation, size: message.len(), what };
    let mut fields = Fields::new(message);
    let mut header = || {
        let size = fields.u32()? as usize;
        let operation = fields.u32()?;
        let unique = fields.u64()?;
        let inode = fields.u64()?;
        let caller = Caller { user: fields.u32()?, group: fields.u32()?, process: fields.u32()? };
        // In units of eight bytes.
        let extensions = usize::from(fields.u16()?) * 8;
        fields.skip(2)?;
        Some((size, operation, unique, inode, caller, extensions))
    };
    let Some((size, number, unique, inode, caller, extensions)) = header() else {
        return Err(bad(None, None, "shorter than its header"));
    };
    if size != message.len() {
        return Err(bad(Some(unique), Some(number), "its size is not what was read"));
    }
    let Some(body) = fields.size().checked_sub(extensions).and_then(|size| fields.bytes(size))
    else {
        return Err(bad(Some(unique), Some(number), "its extensions are longer than it"));
    };
    match operation(number, inode, body, dialect) {
        Some(operation) => Ok(Request { unique, inode, caller, operation }),
        None => Err(bad(Some(unique), Some(number), "a field is missing or out of its range")),
    }
}

/// The whole of a request that asks how much room there is, if `message` is one.
pub(crate) fn asks_for_space(message: &[u8]) -> Option<[u8; REQUEST_HEADER]> {
    let whole = message.try_into().ok()?;
    let request = parse(message, Dialect::default()).ok()?;
    matches!(request.operation, Operation::Space).then_some(whole)
}

fn operation(number: u32, inode: u64, body: &[u8], dialect: Dialect) -> Option<Operation<'_>> {
    let mut body = Fields::new(body);
    let fields = &mut body;
    Some(match number {
        1 => Operation::Lookup { name: fields.name()? },
        2 => Operation::Forget { count: fields.u64()? },
        3 => Operation::GetAttributes,
        4 => Operation::SetAttributes(set_attributes(fields)?),
        5 => Operation::ReadLink,
        6 => Operation::SymbolicLink { name: fields.name()?, target: fields.text()? },
        8 => {
            let (mode, device, mask) = (fields.u32()?, fields.u32()?, fields.u32()?);
            fields.skip(4)?;
            Operation::MakeNode {
                make: Make { parent: inode, name: fields.name()?, mode, mask },
                device,
            }
        }
        9 => {
            let (mode, mask) = (fields.u32()?, fields.u32()?);
            Operation::MakeDirectory(Make { parent: inode, name: fields.name()?, mode, mask })
        }
        10 => Operation::Unlink { name: fields.name()? },
        11 => Operation::RemoveDirectory { name: fields.name()? },
        12 => rename(fields.u64()?, 0, fields)?,
        13 => Operation::Link { inode: fields.u64()?, name: fields.name()? },
        14 => Operation::Open,
        15 => {
            let (offset, size) = range(fields)?;
            Operation::Read(Read { inode, offset, size })
        }
        16 => Operation::Write(write(inode, fields)?),
        17 => Operation::Space,
        18 => Operation::Release,
        20 => Operation::SyncFile { data_only: sync_flag(fields)? },
        21 => set_extended_attribute(fields, dialect)?,
        22 => {
            let size = fields.u32()? as usize;
            fields.skip(4)?;
            Operation::GetExtendedAttribute { name: fields.text()?, size }
        }
        23 => Operation::ListExtendedAttributes { size: fields.u32()? as usize },
        24 => Operation::RemoveExtendedAttribute { name: fields.text()? },
        25 => Operation::Flush,
        26 => Operation::Initialise(initialise(fields)?),
        27 => Operation::OpenDirectory,
        28 | 44 => {
            fields.skip(8)?;
            let (cookie, size) = (fields.u64()?, fields.u32()? as usize);
            Operation::ReadDirectory { cookie, size, with_attributes: number == 44 }
        }
        29 => Operation::ReleaseDirectory,
        30 => Operation::SyncDirectory { data_only: sync_flag(fields)? },
        34 => Operation::Access,
        35 => {
            fields.skip(4)?;
            let (mode, mask) = (fields.u32()?, fields.u32()?);
            fields.skip(4)?;
            Operation::Create(Make { parent: inode, name: fields.name()?, mode, mask })
        }
        36 => Operation::Interrupt,
        38 => Operation::Destroy,
        39 => {
            fields.skip(12)?;
            let number = fields.u32()?;
            fields.skip(8)?;
            let (input, output_max) = (fields.u32()? as usize, fields.u32()? as usize);
            let input = fields.bytes(input)?;
            Operation::Command(Command { inode, number, input, output_max })
        }
        42 => {
            let count = fields.u32()? as usize;
            fields.skip(4)?;
            Operation::BatchForget(Forget(fields.bytes(count.checked_mul(16)?)?))
        }
        43 => {
            fields.skip(8)?;
            let (offset, size) = (fields.offset()?, fields.offset()?);
            let flags = FallocateFlags::from_bits_retain(fields.u32()?);
            offset.checked_add(size).and_then(|end| i64::try_from(end).ok())?;
            Operation::Allocate { offset, size, flags }
        }
        45 => {
            let (to_parent, flags) = (fields.u64()?, fields.u32()?);
            fields.skip(4)?;
            rename(to_parent, flags, fields)?
        }
        46 => {
            fields.skip(8)?;
            // Whatever is behind the end of the file holds nothing, negative offsets as well.
            let offset = fields.u64()?;
            let seek = match fields.u32()? {
                3 => Seek::Data,
                4 => Seek::Hole,
                _ => return None,
            };
            Operation::Seek { offset, seek }
        }
        47 | 53 => {
            fields.skip(8)?;
            let (from_offset, to) = (fields.offset()?, fields.u64()?);
            fields.skip(8)?;
            let (to_offset, size) = (fields.offset()?, fields.u64()?);
            // The answer to the older form has 32 bits, and no file goes on beyond 63.
            let wide = number == 53;
            let size = size
                .min(if wide { u64::MAX } else { u64::from(u32::MAX) })
                .min(i64::MAX as u64 - from_offset.max(to_offset));
            Operation::Copy { copy: Copy { from: inode, from_offset, to, to_offset, size }, wide }
        }
        50 => Operation::SyncAll,
        51 => {
            fields.skip(4)?;
            Operation::CreateUnnamed { mode: fields.u32()?, mask: fields.u32()? }
        }
        52 => Operation::Statx,
        other => Operation::Unknown(other),
    })
}

/// An offset and a size, behind a handle that stands for nothing here.
fn range(fields: &mut Fields<'_>) -> Option<(u64, usize)> {
    fields.skip(8)?;
    Some((fields.offset()?, fields.u32()? as usize))
}

fn write<'a>(inode: u64, fields: &mut Fields<'a>) -> Option<Write<'a>> {
    let (offset, size) = range(fields)?;
    let flags = fields.u32()?;
    fields.skip(16)?;
    let data = fields.bytes(size)?;
    offset.checked_add(size as u64).and_then(|end| i64::try_from(end).ok())?;
    Some(Write {
        inode,
        offset,
        data,
        kills_privileges: flags & 1 << 2 != 0,
        is_delayed: flags & 1 << 0 != 0,
    })
}

fn rename<'a>(to_parent: u64, flags: u32, fields: &mut Fields<'a>) -> Option<Operation<'a>> {
    let name = fields.name()?;
    let flags = RenameFlags::from_bits_retain(flags);
    Some(Operation::Rename { name, to_parent, to_name: fields.name()?, flags })
}

fn sync_flag(fields: &mut Fields<'_>) -> Option<bool> {
    fields.skip(8)?;
    Some(fields.u32()? & 1 != 0)
}

fn set_extended_attribute<'a>(fields: &mut Fields<'a>, dialect: Dialect) -> Option<Operation<'a>> {
    let size = fields.u32()? as usize;
    let flags = XattrFlags::from_bits_retain(fields.u32()?);
    let mut kills_set_group = false;
    if dialect.setxattr_extended {
        kills_set_group = fields.u32()? & 1 != 0;
        fields.skip(4)?;
    }
    let name = fields.text()?;
    let value = fields.bytes(size)?;
    Some(Operation::SetExtendedAttribute { name, value, flags, kills_set_group })
}

fn initialise(fields: &mut Fields<'_>) -> Option<Initialise> {
    let (major, minor) = (fields.u32()?, fields.u32()?);
    let read_ahead_max = fields.u32()?;
    let low = u64::from(fields.u32()?);
    // Older kernels send no more than this.
    let high = u64::from(fields.u32().unwrap_or(0));
    let capabilities = low | high << 32;
    Some(Initialise { major, minor, read_ahead_max, capabilities })
}

fn set_attributes(fields: &mut Fields<'_>) -> Option<SetAttributes> {
    let valid = fields.u32()?;
    fields.skip(12)?;
    let is_set = |bit: u32| valid & 1 << bit != 0;
    let size = fields.u64()?;
    fields.skip(8)?;
    let seconds = [fields.u64()?, fields.u64()?, fields.u64()?];
    let nanoseconds = [fields.u32()?, fields.u32()?, fields.u32()?];
    let time = |index: usize| {
        let nanoseconds = nanoseconds[index];
        (nanoseconds < 1_000_000_000).then(|| Time { seconds: seconds[index] as i64, nanoseconds })
    };
    let set_time = |index: usize, bit: u32, bit_of_now: u32| {
        Some(match (is_set(bit), is_set(bit_of_now)) {
            (_, true) => Some(SetTime::Now),
            (true, false) => Some(SetTime::To(time(index)?)),
            (false, false) => None,
        })
    };
    let mode = fields.u32()?;
    fields.skip(4)?;
    let (user, group) = (fields.u32()?, fields.u32()?);
    Some(SetAttributes {
        mode: is_set(0).then_some(mode),
        user: is_set(1).then_some(user),
        group: is_set(2).then_some(group),
        size: if is_set(3) { Some(i64::try_from(size).map(|_| size).ok()?) } else { None },
        accessed: set_time(0, 4, 7)?,
        modified: set_time(1, 5, 8)?,
        changed: if is_set(10) { Some(time(2)?) } else { None },
        kills_privileges: is_set(11),
    })
}
