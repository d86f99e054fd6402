//! What a store lies on: the seam to whatever keeps the bytes, and those who implement it.

/// What a disk that is laid over `$disk` has from it: in the `impl` of [`Disk`] for the former.
macro_rules! as_below {
    ($self:ident => $disk:expr) => {
        fn size_bytes(&$self) -> u64 {
            $disk.size_bytes()
        }

        fn measure(&$self) -> ::std::io::Result<u64> {
            $disk.measure()
        }

        fn release(&$self) {
            $disk.release();
        }

        fn now_ns(&$self) -> Option<u64> {
            $disk.now_ns()
        }

        fn write_zones(&$self) -> Option<$crate::device::WriteZones> {
            $disk.write_zones()
        }
    };
}

mod crash;
mod fault;
#[cfg(target_os = "linux")]
mod file;
mod memory;
mod modelled;
mod overlay;
mod recorder;

use std::io;
use std::sync::Arc;

pub use crash::{CrashDisk, CrashState, CrashStates, Recording};
pub use fault::{Fault, FaultDisk, FaultKind, Lasts, When};
#[cfg(target_os = "linux")]
pub use file::{FileDisk, FileOptions};
pub use memory::MemoryDisk;
pub use modelled::{ModelledDisk, Spent, SpentByOperation};
pub use overlay::OverlayDisk;
pub use recorder::RecordingDisk;

/// A run of bytes that goes to a disk.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// Where it goes, bytes from the start.
    pub offset: u64,
    /// What goes there.
    pub data: &'a [u8],
}

/// A run of bytes that is read from a disk.
#[derive(Debug)]
pub struct ReadPiece<'a> {
    /// Where it lies, bytes from the start.
    pub offset: u64,
    /// What is filled with it.
    pub into: &'a mut [u8],
}

/// Zones that the host writes in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteZones {
    /// Where the first of them begins, bytes: a multiple of a zone. Before it is written anywhere.
    pub first_byte: u64,
    /// Bytes of a zone.
    pub zone_bytes: u64,
}

/// What a store lies on. Offsets and lengths are multiples of the store's `block_bytes`.
///
/// A disk may report what is written before it is on the medium. What reaches beyond the end is
/// refused with [`io::ErrorKind::InvalidInput`], and nothing of it is done.
pub trait Disk: Send + Sync {
    /// How many bytes there are.
    fn size_bytes(&self) -> u64;

    /// Looks how large it has become, and is as large from then on; how many bytes there are.
    ///
    /// # Errors
    /// If that cannot be seen.
    fn measure(&self) -> io::Result<u64> {
        Ok(self.size_bytes())
    }

    /// Fills `into` with what lies from byte `offset` on.
    ///
    /// # Errors
    /// If the range is not the disk's, or cannot be read.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Fills `pieces`, in any order, several in flight where the disk can; after an error any of them may
    /// be as it was.
    ///
    /// # Errors
    /// If a range is not the disk's, or cannot be read.
    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        pieces.iter_mut().try_for_each(|piece| self.read(piece.offset, piece.into))
    }

    /// Writes `pieces`, in any order, several in flight; after an error any of them, or a part of
    /// one, may be there.
    ///
    /// # Errors
    /// If a range is not the disk's, or cannot be written.
    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()>;

    /// The data of the range is dead: it may read as anything from here on.
    ///
    /// # Errors
    /// If the range is not the disk's, or the disk fails.
    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Everything written before is on the medium when it returns.
    ///
    /// # Errors
    /// If the disk fails: what of it is on the medium is then unknown, whatever a later flush says.
    fn flush(&self) -> io::Result<()>;

    /// Nobody here writes any more: whoever waits for the disk may have it. What is read from here on may be
    /// another's.
    fn release(&self) {}

    /// The device's own time, ns from some moment on, by which what requests take is learnt; none if it
    /// has none.
    fn now_ns(&self) -> Option<u64> {
        None
    }

    /// Its zones, if it has some that are written in order: a write stays within one and begins where the
    /// last one there ended, and to discard a zone empties it.
    fn write_zones(&self) -> Option<WriteZones> {
        None
    }
}

/// Forwards to what `$disk` points to.
macro_rules! forward {
    ($disk:ty) => {
        impl<D: Disk + ?Sized> Disk for $disk {
            as_below!(self => (**self));

            fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
                (**self).read(offset, into)
            }

            fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
                (**self).read_pieces(pieces)
            }

            fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
                (**self).write(pieces)
            }

            fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
                (**self).discard(offset, bytes)
            }

            fn flush(&self) -> io::Result<()> {
                (**self).flush()
            }
        }
    };
}

forward!(&D);
forward!(Arc<D>);
forward!(Box<D>);

/// Refuses `bytes` bytes from `offset` on, if they are not all within `size_bytes`.
fn check_range(size_bytes: u64, offset: u64, bytes: u64) -> io::Result<()> {
    match offset.checked_add(bytes) {
        Some(end) if end <= size_bytes => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{bytes} bytes at byte {offset} are not within a disk of {size_bytes} bytes"),
        )),
    }
}

/// Refuses `pieces` unless all are within `size_bytes`.
fn check_pieces(size_bytes: u64, pieces: &[Piece<'_>]) -> io::Result<()> {
    pieces
        .iter()
        .try_for_each(|piece| check_range(size_bytes, piece.offset, piece.data.len() as u64))
}
