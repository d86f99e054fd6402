//! Reading small files that people write, whole and within bounds: a device that never ends, or a
//! trace given in place of an experiment, is an error before it fills the memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of the longest text file that is read as a whole, chosen by us: the largest known, the
/// parameters of a drive with every zone and defect listed, have 2 MB.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The bytes of the file or pipe at `path`, at most `bytes_max`.
///
/// # Errors
/// If it is a directory or a device, longer than that, or cannot be read.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let refuse = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    // Looked at before it is opened: opening some devices does something.
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return refuse("it is a directory, not a file".to_owned());
    }
    if !kind.is_file() && !is_pipe(kind) {
        return refuse("it is a device, not a file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return refuse(format!("it is longer than {bytes_max} bytes, which no such file is"));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_pipe(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_kind: std::fs::FileType) -> bool {
    false
}

/// The text of the file or pipe at `path`, at most [`TEXT_BYTES_MAX`].
///
/// # Errors
/// As [`read_bounded`]; if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bounded(path, TEXT_BYTES_MAX)?).map_err(|why| {
        let at = why.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {at} is not UTF-8 text"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_bound() {
        let path = std::env::temp_dir().join(format!("agewell-text-{}", std::process::id()));
        std::fs::write(&path, "twelve bytes").expect("room");
        assert_eq!(read_text(&path).expect("it is short"), "twelve bytes");
        assert!(read_bounded(&path, 12).is_ok());
        let why = read_bounded(&path, 11).expect_err("it is longer");
        assert!(why.to_string().contains("longer than 11 bytes"), "{why}");
        std::fs::write(&path, b"a\xff").expect("room");
        let why = read_text(&path).expect_err("it is no text");
        assert!(why.to_string().contains("byte 1"), "{why}");
        std::fs::remove_file(&path).expect("it was made");
        assert_eq!(read_text(&path).expect_err("it is gone").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_never_ends_is_refused() {
        let why = read_text(Path::new("/dev/zero")).expect_err("it is a device");
        assert!(why.to_string().contains("a device"), "{why}");
        let why = read_text(&std::env::temp_dir()).expect_err("it is a directory");
        assert!(why.to_string().contains("a directory"), "{why}");
    }
}
