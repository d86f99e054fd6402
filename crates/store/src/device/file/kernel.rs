//! The call that discards a part of a block device.

#![expect(unsafe_code, reason = "ioctl takes a pointer; this module keeps its promises")]

use std::ffi::c_void;
use std::fs::File;

use rustix::io::Result;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

/// `_IO(0x12, 119)`; Linux `include/uapi/linux/fs.h`.
const BLKDISCARD: Opcode = 0x1277;

/// First byte and bytes.
struct Discard([u64; 2]);

// SAFETY: the call reads two words of 64 bits, which live as long as it.
unsafe impl Ioctl for Discard {
    type Output = ();

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        BLKDISCARD
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_output: IoctlOutput, _words: *mut c_void) -> Result<()> {
        Ok(())
    }
}

/// Discards `bytes` bytes of the block device `file` from `offset` on.
pub(super) fn discard(file: &File, offset: u64, bytes: u64) -> Result<()> {
    // SAFETY: the opcode goes with the words, see above.
    unsafe { ioctl(file, Discard([offset, bytes])) }
}
