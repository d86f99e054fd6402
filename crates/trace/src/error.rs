//! What can go wrong with a trace, each with the values that find the place again.
//!
//! Four failures are kept apart: the device or file system failed (`Io`), the input is broken
//! (`Record`, `Truncated`, `Empty`, `Header`), the input is not of a known or unique format
//! (`UnknownFormat`, `Ambiguous`), and the request makes no sense (`Usage`). Our own bugs are
//! assertions. A read error is never taken for the end of a trace.

use std::fmt::{self, Write as _};

/// Where in an input something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The input as the user named it.
    pub path: String,
    /// Number of the record, counting from 1; 0 is the header.
    pub record: u64,
    /// Number of the line, counting from 1, in text formats.
    pub line: Option<u64>,
    /// Byte offset of the record's first byte.
    pub byte: u64,
    /// Whether `byte` counts in the stream after decompression.
    pub decompressed: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.path)?;
        if self.record == 0 {
            write!(out, "header")?;
        } else {
            write!(out, "record {}", self.record)?;
        }
        if let Some(line) = self.line {
            write!(out, ", line {line}")?;
        }
        write!(out, ", byte {}", self.byte)?;
        if self.decompressed { write!(out, " of the decompressed stream") } else { Ok(()) }
    }
}

/// Why a trace cannot be read, filtered or written. The text is one line: what, where, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The operating system refused, or the compressed stream is damaged.
    #[error("{path}: {what}: {source}{advice}")]
    Io {
        /// The input or output as the user named it.
        path: String,
        /// What was being done, with the byte offset reached.
        what: String,
        /// The cause.
        source: std::io::Error,
        /// What to do, with its own leading `; `, or nothing.
        advice: &'static str,
    },
    /// One record is broken.
    #[error("{place}: {problem}; correct the file, or leave bad records out with --skip-bad")]
    Record {
        /// Where.
        place: Box<Place>,
        /// What is wrong with it.
        problem: String,
    },
    /// The input stops inside a record.
    #[error(
        "{place}: truncated: {have} of {need} bytes of the record are there; get the whole file, or \
         drop the partial record with --skip-bad"
    )]
    Truncated {
        /// Where the partial record starts.
        place: Box<Place>,
        /// Bytes present.
        have: u64,
        /// Bytes needed.
        need: u64,
    },
    /// The part before the records is broken.
    #[error("{place}: {problem}; {advice}")]
    Header {
        /// Where.
        place: Box<Place>,
        /// What is wrong.
        problem: String,
        /// What to do.
        advice: &'static str,
    },
    /// Nothing in it at all, or no record.
    #[error(
        "{path}: byte {byte}: {what}; check that the right file was given and that it was copied whole"
    )]
    Empty {
        /// The input.
        path: String,
        /// Bytes that were read to find no record.
        byte: u64,
        /// `the file is empty`, or `no record in it`.
        what: &'static str,
    },
    /// No format fits.
    #[error(
        "{path}: record 1, byte 0: not a trace of a known format (it begins with {beginning}); name \
         the format with --format, one of {known}"
    )]
    UnknownFormat {
        /// The input.
        path: String,
        /// Its first bytes, printable.
        beginning: String,
        /// Names of all formats.
        known: String,
    },
    /// Several formats fit equally well.
    #[error("{path}: could be {candidates}; say which with --format")]
    Ambiguous {
        /// The input.
        path: String,
        /// Names of the formats that fit.
        candidates: String,
    },
    /// What was asked for cannot be.
    #[error("{0}")]
    Usage(String),
    /// The Parquet or Arrow library refused.
    #[error("{path}: {what}: {message}")]
    Columns {
        /// The input or output.
        path: String,
        /// What was being done.
        what: String,
        /// The library's message, on one line.
        message: String,
    },
    /// Stopped by the caller, for instance by Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl TraceError {
    /// Whether the input or the request is at fault (exit code 2) rather than the run (exit code
    /// 1).
    #[must_use]
    pub fn is_input_error(&self) -> bool {
        match self {
            TraceError::Io { source, .. } => {
                // A full disk or a failing device is not the user's bad input.
                !matches!(
                    source.kind(),
                    std::io::ErrorKind::StorageFull
                        | std::io::ErrorKind::QuotaExceeded
                        | std::io::ErrorKind::BrokenPipe
                )
            }
            TraceError::Interrupted => false,
            _ => true,
        }
    }
}

/// What is wrong with one record, before its place is known. Boxed text: it costs nothing until it
/// happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(pub(crate) Box<str>);

impl Problem {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into().into_boxed_str())
    }

    /// `what` was wrong with the bytes `field`, shown so that control characters do no harm.
    pub(crate) fn field(what: &str, field: &[u8]) -> Self {
        Self::new(format!("{what} '{}'", printable(field, 40)))
    }
}

/// `bytes` as printable ASCII of at most `limit` characters.
pub(crate) fn printable(bytes: &[u8], limit: usize) -> String {
    let mut text = String::new();
    for &byte in bytes {
        if text.len() >= limit {
            text.push_str("...");
            break;
        }
        if byte.is_ascii_graphic() || byte == b' ' {
            text.push(char::from(byte));
        } else {
            write!(text, "\\x{byte:02x}").expect("writing to memory cannot fail");
        }
    }
    text
}
