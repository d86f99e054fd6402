//! Calls to the kernel that move the places of a file's bytes, and what they are asked for.
//!
//! Each call fills a buffer of which only this module sets the size.
//!
//! Source: Linux `fs/ext4/ext4.h` (`struct move_extent`), `include/uapi/linux/{btrfs,fs,ioprio}.h`,
//! `include/uapi/asm-generic/fcntl.h`,
//! `fs/xfs/libxfs/xfs_fs.h`; manual pages ioctl_fideduperange(2),
//! ioprio_set(2), fcntl(2).

#![allow(unsafe_code, reason = "ioctl takes a pointer; this module keeps its promises")]

use agewell_snapshot::source::live::ioctl::{self, halves, pair};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io::{Errno, Result};
use rustix::ioctl::Opcode;

/// `_IOWR('f', 15, struct move_extent)`.
const MOVE_EXTENT: Opcode = 0xC028_660F;
/// `_IOWR(0x94, 54, struct file_dedupe_range)`.
const DEDUPE_RANGE: Opcode = 0xC018_9436;
/// `_IOR('X', 126, struct xfs_fsop_geom)`.
const XFS_GEOMETRY: Opcode = 0x8100_587E;

/// `FS_IOC_GETFLAGS`, `_IOR('f', 1, long)`; fills 32 bits of it.
const GET_FLAGS: Opcode = 0x8008_6601;

/// `FS_NOCOW_FL`: `chattr +C`.
pub(crate) const NO_COPY_ON_WRITE: u32 = 0x0080_0000;

/// `BTRFS_IOC_BALANCE_V2`, `_IOWR(0x94, 32, struct btrfs_ioctl_balance_args)`.
const BALANCE: Opcode = 0xC400_9420;
/// `BTRFS_BALANCE_METADATA`.
const BALANCE_METADATA: u64 = 1 << 2;
/// `BTRFS_BALANCE_ARGS_VRANGE`: chunks of some of these addresses.
const BALANCE_VRANGE: u64 = 1 << 4;

/// `struct move_extent`, 40 bytes.
const MOVE_EXTENT_WORDS: usize = 5;
/// `struct file_dedupe_range` with one `struct file_dedupe_range_info`: 24 and 32 bytes.
const DEDUPE_WORDS: usize = 7;
/// `struct xfs_fsop_geom`, 256 bytes.
const XFS_GEOMETRY_WORDS: usize = 32;

/// `struct btrfs_ioctl_balance_args`, 1024 bytes: flags, state, then three `struct btrfs_balance_args` of 17
/// words each, the second for metadata.
const BALANCE_WORDS: usize = 128;
const BALANCE_METADATA_WORD: usize = 2 + 17;

/// `FILE_DEDUPE_RANGE_DIFFERS`.
const DIFFERS: i32 = 1;
/// `XFS_FSOP_GEOM_FLAGS_REFLINK`.
const XFS_REFLINK: u32 = 1 << 20;

/// `F_SETSIG`.
const SET_SIGNAL: libc::c_int = 10;

/// `IOPRIO_WHO_PROCESS`.
const WHO_PROCESS: libc::c_long = 1;
/// `IOPRIO_CLASS_SHIFT`: above it stands the class.
const CLASS_SHIFT: u32 = 13;
/// `IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NORM)`: what kernels before 6.1 say of who said nothing.
const USUAL: libc::c_long = 2 << CLASS_SHIFT | 4;
/// `IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7)`: as everyone, behind everyone.
const LAST_OF_ALL: libc::c_long = 2 << CLASS_SHIFT | 7;

fn exchange(file: BorrowedFd<'_>, opcode: Opcode, words: &mut [u64]) -> Result<()> {
    // SAFETY: every caller of this module gives an opcode with a buffer as large as the structure
    // that it names.
    unsafe { ioctl::exchange(file, opcode, words) }
}

fn number(file: BorrowedFd<'_>) -> u32 {
    u32::try_from(file.as_raw_fd()).expect("descriptors of open files are not negative")
}

/// Exchanges `count` blocks of `file` from block `start` on with those of `donor` from `donor_start`
/// on; the contents of `file` stay. Gives the blocks that were exchanged, which may be fewer.
pub(super) fn move_extent(
    file: impl AsFd,
    start: u64,
    donor: impl AsFd,
    donor_start: u64,
    count: u64,
) -> Result<u64> {
    let mut words: [u64; MOVE_EXTENT_WORDS] =
        [pair(0, number(donor.as_fd())), start, donor_start, count, 0];
    exchange(file.as_fd(), MOVE_EXTENT, &mut words)?;
    Ok(words[4])
}

/// What came of an exchange by comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deduped {
    /// So many bytes are now shared; it may be fewer than were asked for.
    Bytes(u64),
    /// The two are not the same.
    Differs,
}

/// Has `length` bytes of `file` from `offset` on lie where those of `source` from `source_offset` on
/// do, if the kernel finds both the same.
pub(super) fn dedupe(
    source: impl AsFd,
    source_offset: u64,
    length: u64,
    file: impl AsFd,
    offset: u64,
) -> Result<Deduped> {
    let mut words: [u64; DEDUPE_WORDS] = [0; DEDUPE_WORDS];
    words[0] = source_offset;
    words[1] = length;
    // One destination: 16 bits, two reserved, 32 reserved.
    words[2] = if cfg!(target_endian = "little") { 1 } else { 1 << 48 };
    words[3] = u64::from(number(file.as_fd()));
    words[4] = offset;
    exchange(source.as_fd(), DEDUPE_RANGE, &mut words)?;
    let status = halves(words[6]).0 as i32;
    match status {
        0 => Ok(Deduped::Bytes(words[5])),
        DIFFERS => Ok(Deduped::Differs),
        _ => Err(Errno::from_raw_os_error(-status)),
    }
}

/// Whether the xfs that `file` is on was made so that files can share blocks.
pub(crate) fn xfs_shares_blocks(file: impl AsFd) -> Result<bool> {
    let mut words = [0; XFS_GEOMETRY_WORDS];
    exchange(file.as_fd(), XFS_GEOMETRY, &mut words)?;
    // `flags` stands behind 22 fields of 32 bits' worth: see the structure.
    Ok(halves(words[11]).1 & XFS_REFLINK != 0)
}

/// Moves what is in the chunk of metadata at address `logical_bytes` of the btrfs that `file` is on to other
/// chunks, and gives the chunk up.
pub(crate) fn balance_metadata_chunk(file: impl AsFd, logical_bytes: u64) -> Result<()> {
    let mut words = [0; BALANCE_WORDS];
    words[0] = BALANCE_METADATA;
    // `vstart`, `vend` and `flags`.
    words[BALANCE_METADATA_WORD + 5] = logical_bytes;
    words[BALANCE_METADATA_WORD + 6] = logical_bytes + 1;
    words[BALANCE_METADATA_WORD + 8] = BALANCE_VRANGE;
    exchange(file.as_fd(), BALANCE, &mut words)
}

/// Has what was written to `file` go to the device, without waiting for it. On btrfs its place is
/// chosen when this returns.
pub(super) fn start_writing(file: impl AsFd) -> Result<()> {
    let number = file.as_fd().as_raw_fd();
    // SAFETY: the call takes numbers and touches no memory of ours.
    let done = unsafe { libc::sync_file_range(number, 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if done == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    }
}

/// Whether others have `file`, which is open for writing here, open too; `true` where it cannot be told.
///
/// Who alone has a file open is given a lease for it, which is given back at once. If another opens it
/// in between, it waits for that, and a signal comes here that is ignored unless someone cares for it.
pub(super) fn has_others(file: impl AsFd) -> bool {
    let number = file.as_fd().as_raw_fd();
    // SAFETY: the calls take numbers and touch no memory of ours.
    let lease =
        |what: libc::c_int, how: libc::c_int| unsafe { libc::fcntl(number, what, how) } == 0;
    // The usual signal, SIGIO, would end the process.
    let alone = lease(SET_SIGNAL, libc::SIGURG) && lease(libc::F_SETLEASE, libc::F_WRLCK);
    !(alone && lease(libc::F_SETLEASE, libc::F_UNLCK))
}

/// `chattr` attributes of a file.
pub(crate) fn attributes(file: impl AsFd) -> Result<u32> {
    let mut words = [0; 1];
    exchange(file.as_fd(), GET_FLAGS, &mut words)?;
    Ok(halves(words[0]).0)
}

/// Has the calling thread's requests served behind those of others, unless whoever started it has
/// said how (`ionice`).
///
/// Not only when no one else has any: during a move writers of the file wait, and on a busy disk the
/// kernel lets requests of the idle class wait for seconds (`prio_aging_expire` of mq-deadline: 10).
pub(crate) fn be_last() -> Result<()> {
    let number = |told: libc::c_long| {
        if told >= 0 {
            Ok(told)
        } else {
            Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
        }
    };
    // SAFETY: the call takes two numbers and touches no memory of ours.
    let now = number(unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) })?;
    if now >> CLASS_SHIFT == 0 || now == USUAL {
        // SAFETY: the call takes three numbers and touches no memory of ours.
        number(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, LAST_OF_ALL) })?;
    }
    Ok(())
}

/// Whether this process may do what root may.
pub(crate) fn is_root() -> bool {
    // SAFETY: the call takes nothing and always succeeds.
    unsafe { libc::geteuid() == 0 }
}

/// Bytes of a page of memory.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: the call takes a number and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).expect("every system has pages")
}
