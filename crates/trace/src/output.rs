//! Where a written trace goes: standard output, or a temporary file that takes its final name only
//! when complete.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::TraceError;

/// Bytes gathered before each write; chosen by us.
const WRITE_BYTES: usize = 1 << 20;

/// An output that leaves nothing half-written under its final name.
pub struct Output {
    path: PathBuf,
    temporary: Option<PathBuf>,
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
            return Ok(Self { path: path.to_owned(), temporary: None, writer, bytes: 0 });
        }
        let name = path.file_name().ok_or_else(|| {
            TraceError::Usage(format!("{}: is no name for an output file", path.display()))
        })?;
        if path.is_dir() {
            return Err(TraceError::Usage(format!(
                "{}: is a directory; name an output file",
                path.display()
            )));
        }
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(|source| output_error(path, "cannot create", source))?;
        let writer = BufWriter::with_capacity(WRITE_BYTES, Box::new(file) as _);
        Ok(Self { path: path.to_owned(), temporary: Some(temporary), writer, bytes: 0 })
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
        if let Some(temporary) = self.temporary.take() {
            let renamed = File::open(&temporary)
                .and_then(|file| file.sync_all())
                .and_then(|()| std::fs::rename(&temporary, &self.path));
            if let Err(source) = renamed {
                // Keep nothing behind; the error that matters is the first one.
                let _ = std::fs::remove_file(&temporary);
                return Err(failed(&self.path, source));
            }
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

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            // Dropped before it was finished: an error or an interrupt came first.
            let _ = std::fs::remove_file(temporary);
        }
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
