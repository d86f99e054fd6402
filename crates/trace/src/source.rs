//! The bytes of an input: a file or standard input, decompressed if its magic says so.
//!
//! One buffer is read into and handed out as slices; nothing is copied a field at a time. Offsets
//! count in the decompressed stream. Compression is recognised by magic number, never by name;
//! concatenated members are one stream; a truncated or damaged member is an error, never an end.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use crate::error::{Place, TraceError, printable};

/// Bytes asked of the operating system at a time; chosen by us, a few times the size of a pipe
/// buffer.
const READ_BYTES: usize = 256 * 1024;

/// No line of any text format is near this; a longer one means the input is not text.
const LINE_BYTES_MAX: usize = 1 << 20;

/// How an input is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// bzip2.
    Bzip2,
    /// RFC 8878.
    Zstandard,
    /// The .xz container.
    Xz,
}

impl Compression {
    /// The usual file name ending, without the dot.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gz",
            Compression::Bzip2 => "bz2",
            Compression::Zstandard => "zst",
            Compression::Xz => "xz",
        }
    }

    fn of_magic(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => Some(Compression::Bzip2),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Some(Compression::Zstandard)
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            _ => None,
        }
    }
}

/// A buffered, decompressed input with the offset of what comes next.
pub(crate) struct Source {
    path: String,
    reader: Box<dyn Read + Send>,
    compression: Option<Compression>,
    buffer: Vec<u8>,
    /// Unread bytes are `buffer[head..tail]`.
    head: usize,
    tail: usize,
    /// Offset in the decompressed stream of `buffer[head]`.
    offset: u64,
    exhausted: bool,
    lines: u64,
}

/// A text line without its ending.
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) byte: u64,
    pub(crate) number: u64,
}

impl Source {
    /// Opens `path`; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        if name == "-" {
            return Self::new("standard input".to_owned(), Box::new(io::stdin()));
        }
        let failed = |source| TraceError::Io {
            path: name.clone(),
            what: "cannot open".to_owned(),
            source,
            advice: "; check the path",
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(TraceError::Usage(format!("{name}: is a directory; give a trace file")));
        }
        Self::new(name, Box::new(file))
    }

    /// Wraps any reader; looks at its magic number.
    pub(crate) fn new(path: String, mut raw: Box<dyn Read + Send>) -> Result<Self, TraceError> {
        let mut magic = Vec::with_capacity(8);
        raw.by_ref().take(8).read_to_end(&mut magic).map_err(|source| TraceError::Io {
            path: path.clone(),
            what: "cannot read at byte 0".to_owned(),
            source,
            advice: "",
        })?;
        let compression = Compression::of_magic(&magic);
        let whole = Cursor::new(magic).chain(raw);
        let reader: Box<dyn Read + Send> = match compression {
            None => Box::new(whole),
            Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(
                BufReader::with_capacity(READ_BYTES, whole),
            )),
            Some(Compression::Bzip2) => Box::new(bzip2::bufread::MultiBzDecoder::new(
                BufReader::with_capacity(READ_BYTES, whole),
            )),
            Some(Compression::Zstandard) => {
                let buffered = BufReader::with_capacity(READ_BYTES, whole);
                let decoder =
                    zstd::stream::read::Decoder::with_buffer(buffered).map_err(|source| {
                        TraceError::Io {
                            path: path.clone(),
                            what: "cannot start decompression (zst)".to_owned(),
                            source,
                            advice: "",
                        }
                    })?;
                Box::new(decoder)
            }
            Some(Compression::Xz) => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(
                BufReader::with_capacity(READ_BYTES, whole),
            )),
        };
        Ok(Self {
            path,
            reader,
            compression,
            buffer: Vec::new(),
            head: 0,
            tail: 0,
            offset: 0,
            exhausted: false,
            lines: 0,
        })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Offset of the next unread byte in the decompressed stream.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// A place at `byte`, boxed as the errors carry it.
    #[expect(clippy::unnecessary_box_returns, reason = "every error boxes its place")]
    pub(crate) fn place(&self, record: u64, line: Option<u64>, byte: u64) -> Box<Place> {
        Box::new(Place {
            path: self.path.clone(),
            record,
            line,
            byte,
            decompressed: self.compression.is_some(),
        })
    }

    /// Reads once more into the buffer. `false` at the end of the stream.
    fn fill(&mut self) -> Result<bool, TraceError> {
        if self.exhausted {
            return Ok(false);
        }
        if self.head > 0 {
            self.buffer.copy_within(self.head..self.tail, 0);
            self.tail -= self.head;
            self.head = 0;
        }
        if self.buffer.len() < self.tail + READ_BYTES {
            self.buffer.resize(self.tail + READ_BYTES, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.tail..]) {
                Ok(0) => {
                    self.exhausted = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.tail += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    let reached = self.offset + (self.tail - self.head) as u64;
                    let (what, advice) = match self.compression {
                        Some(kind) => (
                            format!(
                                "damaged or truncated {} data after byte {reached} of the \
                                 decompressed stream",
                                kind.name()
                            ),
                            "; get a whole copy of the file",
                        ),
                        None => (format!("cannot read after byte {reached}"), ""),
                    };
                    return Err(TraceError::Io { path: self.path.clone(), what, source, advice });
                }
            }
        }
    }

    /// Up to `count` of the next bytes, without consuming them; fewer only at the end of the
    /// stream.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], TraceError> {
        while self.tail - self.head < count && self.fill()? {}
        let end = self.tail.min(self.head + count);
        Ok(&self.buffer[self.head..end])
    }

    /// All unread bytes that are in memory, at least `least` of them; fewer only at the end of the
    /// stream. Consumes nothing.
    pub(crate) fn in_memory(&mut self, least: usize) -> Result<&[u8], TraceError> {
        while self.tail - self.head < least && self.fill()? {}
        Ok(&self.buffer[self.head..self.tail])
    }

    /// Consumes `count` bytes that a `peek` has shown.
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.tail - self.head, "consuming bytes that were never shown");
        self.head += count;
        self.offset += count as u64;
    }

    /// Consumes and returns the next `count` bytes; `None` if the stream ends before the first of
    /// them. A stream that ends in between gives the short slice.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<Option<&[u8]>, TraceError> {
        while self.tail - self.head < count {
            if !self.fill()? {
                break;
            }
        }
        let have = (self.tail - self.head).min(count);
        if have == 0 {
            return Ok(None);
        }
        let start = self.head;
        self.head += have;
        self.offset += have as u64;
        Ok(Some(&self.buffer[start..start + have]))
    }

    /// The next line without `\n` or `\r\n`; `None` at the end. The last line needs no ending.
    #[inline]
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        let mut searched = 0;
        let end = loop {
            let unread = &self.buffer[self.head..self.tail];
            if let Some(position) = memchr::memchr(b'\n', &unread[searched..]) {
                break searched + position + 1;
            }
            searched = unread.len();
            if searched > LINE_BYTES_MAX {
                return Err(TraceError::Header {
                    place: self.place(self.lines + 1, Some(self.lines + 1), self.offset),
                    problem: format!("no line ending within {LINE_BYTES_MAX} bytes"),
                    advice: "this is not text; check the file and --format",
                });
            }
            if !self.fill()? {
                if searched == 0 {
                    return Ok(None);
                }
                break searched;
            }
        };
        let start = self.head;
        let byte = self.offset;
        self.head += end;
        self.offset += end as u64;
        self.lines += 1;
        let mut bytes = &self.buffer[start..start + end];
        if let [rest @ .., b'\n'] = bytes {
            bytes = rest;
        }
        if let [rest @ .., b'\r'] = bytes {
            bytes = rest;
        }
        Ok(Some(Line { bytes, byte, number: self.lines }))
    }

    /// The first bytes, printable, for a message.
    pub(crate) fn beginning(&mut self) -> Result<String, TraceError> {
        Ok(format!("'{}'", printable(self.peek(24)?, 48)))
    }
}
