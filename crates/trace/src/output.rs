//! Where a written file goes: standard output, or a partial file beside the final name, which it
//! takes only when complete.
//!
//! The partial file of `NAME` is `.NAME.partial`, or `.NAME.1.partial` and so on where writers of
//! the same name are at work. Each holds a lock on its own (`flock`) for as long as it writes, so
//! that a partial file without one is what a killed process has left: the next writer of that name
//! takes it over. Process numbers would not do: they come again, and differ between containers that
//! share a folder. Any error or interrupt removes the file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::error::TraceError;

/// Bytes collected before each write; chosen by us.
const WRITE_BYTES: usize = 1 << 20;
/// Partial files of one name that are tried; chosen by us: more writers of one file at once are a
/// mistake.
const PARTIAL_FILES_MAX: u32 = 1000;

/// An output that leaves nothing half-written under its final name.
pub struct Output {
    path: PathBuf,
    partial: Option<PartialFile>,
    writer: BufWriter<Box<dyn Write + Send>>,
    bytes: u64,
}

impl Output {
    /// Opens `path`; `-` is standard output.
    ///
    /// # Errors
    /// If it is no name for a file or the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        if path.as_os_str() == "-" {
            let writer = BufWriter::with_capacity(WRITE_BYTES, Box::new(io::stdout()) as _);
            return Ok(Self { path: path.to_owned(), partial: None, writer, bytes: 0 });
        }
        if path.file_name().is_none() {
            return Err(TraceError::Usage(format!(
                "{}: is no name for an output file",
                path.display()
            )));
        }
        if path.is_dir() {
            return Err(TraceError::Usage(format!(
                "{}: is a directory; name an output file",
                path.display()
            )));
        }
        let partial = PartialFile::create(path)
            .map_err(|source| output_error(path, "cannot create", source))?;
        let writer = BufWriter::with_capacity(WRITE_BYTES, Box::new(partial.file.clone()) as _);
        Ok(Self { path: path.to_owned(), partial: Some(partial), writer, bytes: 0 })
    }

    /// The final name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        Write::write_all(self, bytes)
            .map_err(|source| output_error(&self.path, "cannot write", source))
    }

    /// Completes the file and gives it its name; returns its bytes.
    ///
    /// # Errors
    /// If it cannot be written or renamed; nothing is left behind then.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        let failed = |path: &Path, source| output_error(path, "cannot write", source);
        Write::flush(&mut self).map_err(|source| failed(&self.path, source))?;
        if let Some(partial) = self.partial.take() {
            partial
                .file
                .sync_all()
                .and_then(|()| partial.name_it(&self.path))
                .map_err(|source| failed(&self.path, source))?;
        }
        Ok(self.bytes)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.writer.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes `bytes` to `path` so that the name never stands for half a file, and they are on the disk
/// before they have it.
///
/// # Errors
/// If it cannot be written; what stood there stays then.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, File::sync_all)
}

/// As [`write_whole`], but no loss of power is waited out: for what is written again and again.
///
/// # Errors
/// If it cannot be written; what stood there stays then.
pub fn write_whole_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, |_| Ok(()))
}

fn replace(path: &Path, bytes: &[u8], sync: fn(&File) -> io::Result<()>) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let partial = PartialFile::create(path)?;
    (&*partial.file).write_all(bytes)?;
    sync(&partial.file)?;
    partial.name_it(path)
}

/// A locked file beside the final name; dropped before it has that name, it is removed.
struct PartialFile {
    path: PathBuf,
    file: Arc<File>,
    named: bool,
}

impl PartialFile {
    /// The first partial file of `path` that no one writes to, empty.
    fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut failure = io::Error::from(io::ErrorKind::ResourceBusy);
        for number in 0..PARTIAL_FILES_MAX {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            if number > 0 {
                hidden.push(format!(".{number}"));
            }
            hidden.push(".partial");
            let candidate = path.with_file_name(hidden);
            match take(&candidate) {
                Ok(Some(file)) => {
                    return Ok(Self { path: candidate, file: Arc::new(file), named: false });
                }
                Ok(None) => {}
                // Something else may stand there that is not ours to take.
                Err(error) if candidate.symlink_metadata().is_ok() => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// Gives the file its final name.
    fn name_it(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.named = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.named {
            // An error or an interrupt came first; a file that cannot be removed is only litter.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens and locks the file at `path`, made if it is not there, and empties it; `None` if a writer
/// is at work on it.
fn take(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Without locks on a file system, two writers at once are the users' care.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // Whoever held the lock before may have renamed or removed what was opened.
        let opened = file.metadata()?;
        let named = match path.symlink_metadata() {
            Ok(named) => named,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
            continue;
        }
        // A file with a second name would be changed under that, too.
        if opened.nlink() != 1 {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        file.set_len(0)?;
        return Ok(Some(file));
    }
}

fn output_error(path: &Path, what: &str, source: io::Error) -> TraceError {
    let path = if path.as_os_str() == "-" {
        "standard output".to_owned()
    } else {
        path.display().to_string()
    };
    TraceError::Io { path, what: what.to_owned(), source, advice: "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_writer_left_is_taken_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table.parquet");
        std::fs::write(folder.path().join(".table.parquet.partial"), "half of a long one").unwrap();
        let mut output = Output::create(&path).unwrap();
        assert_eq!(names(folder.path()), [".table.parquet.partial"]);
        output.write_all(b"whole").unwrap();
        assert_eq!(output.finish().unwrap(), 5);
        assert_eq!(names(folder.path()), ["table.parquet"]);
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn writers_of_one_name_do_not_meet() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("name");
        let mut outputs: Vec<_> = (0..3).map(|_| Output::create(&path).unwrap()).collect();
        assert_eq!(names(folder.path()), [".name.1.partial", ".name.2.partial", ".name.partial"]);
        for (number, output) in outputs.iter_mut().enumerate() {
            output.write_all(&[number as u8; 4]).unwrap();
        }
        let last = outputs.pop().unwrap();
        for output in outputs {
            output.finish().unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), [1; 4]);
        last.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [2; 4]);
        assert_eq!(names(folder.path()), ["name"]);
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("name");
        std::fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"half").unwrap();
        drop(output);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["name"]);
        std::fs::create_dir(folder.path().join("directory")).unwrap();
        write_whole(&folder.path().join("directory"), b"new").unwrap_err();
        assert_eq!(names(folder.path()), ["directory", "name"]);
    }

    #[test]
    fn a_link_in_the_place_of_a_partial_file_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = folder.path().join("other");
        std::fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join(".name.partial")).unwrap();
        std::fs::hard_link(&other, folder.path().join(".name.1.partial")).unwrap();
        write_whole(&folder.path().join("name"), b"new").unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"kept");
        assert_eq!(std::fs::read(folder.path().join("name")).unwrap(), b"new");
    }
}
