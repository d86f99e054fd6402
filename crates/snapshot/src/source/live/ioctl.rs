//! An ioctl that exchanges a buffer of 64-bit words with the kernel.
//!
//! Every structure that is passed so is aligned to such words. Who calls it has its own module of
//! calls, each of which answers for the size of its buffer.

#![allow(unsafe_code, reason = "ioctl takes a pointer; who calls answers for its size")]

use std::ffi::c_void;

use rustix::fd::BorrowedFd;
use rustix::io::Result;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

struct Exchange<'a> {
    opcode: Opcode,
    words: &'a mut [u64],
}

// SAFETY: `as_ptr` gives a buffer that lives as long as the call and is writable; that it is as
// large as the kernel takes it to be is what the caller of `exchange` answers for.
unsafe impl Ioctl for Exchange<'_> {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_output: IoctlOutput, _words: *mut c_void) -> Result<()> {
        Ok(())
    }
}

/// Hands `words` to the kernel, which reads and writes them.
///
/// # Errors
/// What the kernel says.
///
/// # Safety
/// `words` must be at least as large as the structure that `opcode` names, with the records that its
/// head asks for.
pub unsafe fn exchange(file: BorrowedFd<'_>, opcode: Opcode, words: &mut [u64]) -> Result<()> {
    // SAFETY: the caller answers for the size of the buffer.
    unsafe { ioctl(file, Exchange { opcode, words }) }
}

/// Two 32-bit fields that stand side by side, in the order of memory.
#[must_use]
pub fn pair(first: u32, second: u32) -> u64 {
    let (first, second) = (u64::from(first), u64::from(second));
    if cfg!(target_endian = "little") { second << 32 | first } else { first << 32 | second }
}

/// The first and the second 32-bit field of a word.
#[must_use]
pub fn halves(word: u64) -> (u32, u32) {
    let (low, high) = (word as u32, (word >> 32) as u32);
    if cfg!(target_endian = "little") { (low, high) } else { (high, low) }
}
