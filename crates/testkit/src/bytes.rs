//! Files of which single bytes are changed.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Sets the byte at `at` of the file `path`, in place: many file systems wait for the disk when a file is cut to nothing
/// and written again.
///
/// # Panics
///
/// When the file is not there or cannot be written.
pub fn set_byte(path: &Path, at: usize, byte: u8) {
    let file = File::options().write(true).open(path).expect("the file is there");
    file.write_all_at(&[byte], at as u64).expect("it can be written");
}
