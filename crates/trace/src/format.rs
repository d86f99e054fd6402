//! The formats: names, detection, and the two shapes a reader can take.
//!
//! Detection asks every format how well the first bytes fit. A magic number is certain; text is
//! judged by how many of the first lines the format's own parser accepts. A tie is an error that
//! names the candidates, never a guess.

use serde::Serialize;

use crate::error::{Problem, TraceError};
use crate::reorder_window::{Order, Origin, ReorderWindow};
use crate::source::Source;

pub(crate) mod blkparse;
pub(crate) mod blktrace;
pub(crate) mod cloud_csv;
pub(crate) mod disksim;
pub(crate) mod fio;
pub(crate) mod mqsim;
pub(crate) mod msr;
pub(crate) mod oracle_general;
pub(crate) mod parquet;
pub(crate) mod spc;
pub(crate) mod srt;
pub(crate) mod srt_header;
pub(crate) mod strace;
mod strace_call;
mod strace_files;
pub(crate) mod tracepoint;
pub(crate) mod validate;
pub(crate) mod vscsi;

/// Bytes looked at to recognise the format.
const SAMPLE_BYTES: usize = 64 * 1024;

/// Lines looked at to recognise a text format.
const SAMPLE_LINES: usize = 64;

/// A trace format. The names are those of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// HP SRT, text header then big-endian records of version 4 or 7.
    Srt,
    /// `DiskSim` ASCII.
    DisksimAscii,
    /// `DiskSim` validation trace with measured response times.
    DisksimValidate,
    /// blktrace binary, one file per CPU.
    Blktrace,
    /// blkparse text.
    Blkparse,
    /// Linux block tracepoints as text.
    Tracepoint,
    /// MSR Cambridge CSV.
    Msr,
    /// SPC (`UMass`) CSV.
    Spc,
    /// Alibaba block CSV.
    Alibaba,
    /// Tencent CBS CSV.
    Tencent,
    /// `CloudPhysics` vscsi version 1 or 2.
    Vscsi,
    /// `MQSim` ASCII.
    Mqsim,
    /// fio I/O log, version 2 or 3.
    FioIolog,
    /// oracleGeneral, 24-byte records.
    OracleGeneral,
    /// oracleGeneral with operation and tenant, 27-byte records.
    OracleGeneralOpNs,
    /// agewell's own columns.
    Parquet,
}

/// How well an input fits a format, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Not this format.
    No,
    /// At least half of the first lines fit.
    Possible,
    /// All or nearly all of what was looked at fits.
    Likely,
    /// A magic number or a header line.
    Certain,
}

/// One line of the table of formats.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FormatDescription {
    /// The name for `--format`.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// `text`, `binary` or `columns`.
    pub kind: &'static str,
    /// Whether agewell writes it too.
    pub writes: bool,
    /// What is treacherous about it.
    pub trap: &'static str,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 16] = [
        Format::Srt,
        Format::DisksimAscii,
        Format::DisksimValidate,
        Format::Blktrace,
        Format::Blkparse,
        Format::Tracepoint,
        Format::Msr,
        Format::Spc,
        Format::Alibaba,
        Format::Tencent,
        Format::Vscsi,
        Format::Mqsim,
        Format::FioIolog,
        Format::OracleGeneral,
        Format::OracleGeneralOpNs,
        Format::Parquet,
    ];

    /// Name, title and trap.
    #[must_use]
    pub fn description(self) -> FormatDescription {
        let (name, title, kind, trap) = match self {
            Format::Srt => (
                "srt",
                "HP SRT (cello, snake, hplajw), record versions 4 and 7",
                "binary",
                "sectors of 256 bytes on HP-IB drives; start and stop count from enqueue",
            ),
            Format::DisksimAscii => (
                "disksim-ascii",
                "DiskSim ASCII",
                "text",
                "times in ms; bit 0 of the hexadecimal flags set means read",
            ),
            Format::DisksimValidate => (
                "disksim-validate",
                "DiskSim validation trace with measured response times",
                "text",
                "no absolute times: each request is issued a think time after the last completed",
            ),
            Format::Blktrace => (
                "blktrace",
                "blktrace binary, one file per CPU",
                "binary",
                "per-CPU files to be merged; byte order of the host; several events a request",
            ),
            Format::Blkparse => (
                "blkparse",
                "blkparse text",
                "text",
                "several events a request; barriers and pass-through commands carry no sectors",
            ),
            Format::Tracepoint => (
                "tracepoint",
                "Linux block tracepoints as text (tracefs, trace-cmd, perf)",
                "text",
                "several events a request; a flush completes at sector 2^64 - 1",
            ),
            Format::Msr => (
                "msr",
                "MSR Cambridge CSV",
                "text",
                "times in units of 100 ns since 1601; offset and size in bytes; response 0 is unknown",
            ),
            Format::Spc => {
                ("spc", "SPC-1 (UMass) CSV", "text", "address in sectors per ASU but size in bytes")
            }
            Format::Alibaba => (
                "alibaba",
                "Alibaba block traces 2020 CSV",
                "text",
                "offset and length in bytes; time in microseconds",
            ),
            Format::Tencent => (
                "tencent",
                "Tencent CBS 2018 CSV",
                "text",
                "0 is read; offset and size in sectors; time in whole seconds",
            ),
            Format::Vscsi => (
                "vscsi",
                "CloudPhysics vscsi, versions 1 and 2",
                "binary",
                "read or write only from the SCSI opcode",
            ),
            Format::Mqsim => ("mqsim", "MQSim ASCII", "text", "0 is write; times in ns"),
            Format::FioIolog => (
                "fio-iolog",
                "fio I/O log, versions 2 and 3",
                "text",
                "version 2 has waits instead of times; offset and length in bytes",
            ),
            Format::OracleGeneral => (
                "oracle-general",
                "oracleGeneral (libCacheSim), 24-byte records",
                "binary",
                "object numbers instead of addresses; no operation; times in whole seconds",
            ),
            Format::OracleGeneralOpNs => (
                "oracle-general-opns",
                "oracleGeneral with operation and name space, 27-byte records",
                "binary",
                "object numbers instead of addresses; times in whole seconds",
            ),
            Format::Parquet => {
                ("parquet", "agewell Parquet", "columns", "needs a file, not a pipe, to be read")
            }
        };
        let writes = matches!(self, Format::Parquet | Format::DisksimAscii | Format::FioIolog);
        FormatDescription { name, title, kind, writes, trap }
    }

    /// The name for `--format`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// The names of all formats, for messages.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Format::name).join(", ")
    }

    /// The format called `name`.
    ///
    /// # Errors
    /// A usage error that names the nearest known format.
    pub fn from_name(name: &str) -> Result<Format, TraceError> {
        let lower = name.to_ascii_lowercase();
        if let Some(format) = Self::ALL.into_iter().find(|format| format.name() == lower) {
            return Ok(format);
        }
        let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
        let advice = match agewell_core::nearest(&lower, &names) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("known formats are {}", Self::names()),
        };
        Err(TraceError::Usage(format!("unknown trace format '{name}'; {advice}")))
    }

    fn fit(self, sample: &Sample<'_>) -> Confidence {
        match self {
            Format::Srt => srt::fit(sample),
            Format::DisksimAscii => disksim::fit(sample),
            Format::DisksimValidate => sample.fit_lines(&mut validate::Validate::default()),
            Format::Blktrace => blktrace::fit(sample),
            Format::Blkparse => sample.fit_lines(&mut blkparse::Blkparse::default()),
            Format::Tracepoint => tracepoint::fit(sample),
            Format::Msr => sample.fit_lines(&mut msr::Msr),
            Format::Spc => sample.fit_lines(&mut spc::Spc),
            Format::Alibaba => sample.fit_lines(&mut cloud_csv::Alibaba),
            Format::Tencent => sample.fit_lines(&mut cloud_csv::Tencent),
            Format::Vscsi => vscsi::fit(sample),
            Format::Mqsim => mqsim::fit(sample),
            Format::FioIolog => fio::fit(sample),
            Format::OracleGeneral => oracle_general::fit(sample, false),
            Format::OracleGeneralOpNs => oracle_general::fit(sample, true),
            Format::Parquet => parquet::fit(sample),
        }
    }

    /// How the format orders its records and where its time begins.
    pub(crate) fn clock(self) -> (Order, Origin) {
        match self {
            // Times from a stated start: the header's date, the first issue, the log's, our own.
            Format::Srt | Format::DisksimValidate | Format::FioIolog | Format::Parquet => {
                (Order::Strict, Origin::ClockZero)
            }
            // Logged when a request completes, merged from several clocks, or paired from events.
            Format::Msr
            | Format::Alibaba
            | Format::Tencent
            | Format::Vscsi
            | Format::Blktrace
            | Format::Blkparse
            | Format::Tracepoint => (Order::Window, Origin::FirstRecord),
            Format::DisksimAscii
            | Format::Spc
            | Format::Mqsim
            | Format::OracleGeneral
            | Format::OracleGeneralOpNs => (Order::Strict, Origin::FirstRecord),
        }
    }
}

/// The beginning of an input.
pub(crate) struct Sample<'a> {
    pub(crate) bytes: &'a [u8],
    lines: Option<Vec<&'a [u8]>>,
}

impl<'a> Sample<'a> {
    pub(crate) fn new(bytes: &'a [u8], whole: bool) -> Self {
        let text = !bytes.iter().take(4096).any(|&byte| byte == 0);
        let lines = text.then(|| {
            let end = if whole {
                bytes.len()
            } else {
                // The last line may be cut.
                bytes.iter().rposition(|&byte| byte == b'\n').unwrap_or(bytes.len())
            };
            bytes[..end]
                .split(|&byte| byte == b'\n')
                .map(<[u8]>::trim_ascii)
                .filter(|line| !line.is_empty())
                .take(SAMPLE_LINES)
                .collect()
        });
        Self { bytes, lines }
    }

    /// Whether the input is text: it holds no NUL byte.
    pub(crate) fn is_text(&self) -> bool {
        self.lines.is_some()
    }

    /// The first lines, if the input is text.
    pub(crate) fn lines(&self) -> &[&'a [u8]] {
        self.lines.as_deref().unwrap_or(&[])
    }

    /// How many of the first lines `format` accepts.
    pub(crate) fn fit_lines<F: LineFormat>(&self, format: &mut F) -> Confidence {
        let mut reorder_window = ReorderWindow::new(
            crate::TraceMetadata::default(),
            Order::Window,
            Origin::FirstRecord,
            true,
        );
        let mut lines = self.lines();
        if let [first, rest @ ..] = lines
            && format.is_header(first)
        {
            lines = rest;
        }
        let total = lines.len();
        let fitting =
            lines.iter().filter(|line| format.parse(line, &mut reorder_window).is_ok()).count();
        if total == 0 || fitting * 2 < total {
            Confidence::No
        } else if fitting * 10 >= total * 9 {
            Confidence::Likely
        } else {
            Confidence::Possible
        }
    }
}

/// What detection found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected {
    /// The one format that fits best.
    pub format: Format,
    /// How well.
    pub sureness: Confidence,
}

/// Recognises the format of `source` without consuming anything.
pub(crate) fn detect(source: &mut Source) -> Result<Detected, TraceError> {
    let path = source.path().to_owned();
    let sample = source.peek(SAMPLE_BYTES)?;
    if sample.is_empty() {
        return Err(TraceError::Empty { path, byte: 0, what: "the file is empty" });
    }
    let sample = Sample::new(sample, sample.len() < SAMPLE_BYTES);
    let fits = Format::ALL.map(|format| (format.fit(&sample), format));
    let best = fits.iter().map(|fit| fit.0).max().unwrap_or(Confidence::No);
    let candidates: Vec<Format> =
        fits.iter().filter(|fit| fit.0 == best).map(|fit| fit.1).collect();
    match candidates.as_slice() {
        _ if best == Confidence::No => Err(TraceError::UnknownFormat {
            path,
            beginning: source.beginning()?,
            known: Format::names(),
        }),
        [format] => Ok(Detected { format: *format, sureness: best }),
        several => {
            let names: Vec<&str> = several.iter().map(|format| format.name()).collect();
            Err(TraceError::Ambiguous { path, candidates: names.join(" or ") })
        }
    }
}

/// Reads rows of one format from a source into a reorder_window.
pub(crate) trait RowReader: Send {
    /// Reads the header, if the format has one.
    fn begin(
        &mut self,
        _source: &mut Source,
        _scene: &mut ReorderWindow,
    ) -> Result<(), TraceError> {
        Ok(())
    }

    /// Reads until the reorder_window has a batch or the source ends; `false` at the end.
    fn fill(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<bool, TraceError>;
}

/// A text format with one record a line.
pub(crate) trait LineFormat: Send {
    /// Parses one line that is not blank and pushes what it completes.
    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem>;

    /// Whether the first line names columns instead of holding a record.
    fn is_header(&mut self, _line: &[u8]) -> bool {
        false
    }

    /// Ends the trace: pushes what still waited for another line.
    fn end(&mut self, _scene: &mut ReorderWindow) -> Result<(), Problem> {
        Ok(())
    }
}

/// Drives a [`LineFormat`].
pub(crate) struct LineReader<F> {
    format: F,
    records: u64,
    first: bool,
}

impl<F: LineFormat> LineReader<F> {
    pub(crate) fn new(format: F) -> Self {
        Self { format, records: 0, first: true }
    }
}

impl<F: LineFormat> RowReader for LineReader<F> {
    fn fill(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<bool, TraceError> {
        while !reorder_window.is_full() {
            let Some(line) = source.next_line()? else {
                if let Err(problem) = self.format.end(reorder_window) {
                    let byte = source.offset();
                    bad_record(source, reorder_window, self.records, None, byte, problem)?;
                }
                return Ok(false);
            };
            if line.bytes.trim_ascii().is_empty() {
                continue;
            }
            if self.first {
                self.first = false;
                if self.format.is_header(line.bytes) {
                    continue;
                }
            }
            self.records += 1;
            if let Err(problem) = self.format.parse(line.bytes, reorder_window) {
                let (number, byte) = (line.number, line.byte);
                bad_record(source, reorder_window, self.records, Some(number), byte, problem)?;
            }
        }
        Ok(true)
    }
}

/// A binary format with records of one size.
pub(crate) trait RecordFormat: Send {
    /// Bytes in a record.
    fn record_bytes(&self) -> usize;

    /// Parses one record and pushes what it completes.
    fn parse(&mut self, record: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem>;

    /// Parses and pushes the first of `records`, as many as there is nothing to say about, in a loop
    /// that does no more than that; how many. The next is for [`Self::parse`].
    fn parse_plain(&mut self, _records: &[u8], _scene: &mut ReorderWindow) -> usize {
        0
    }
}

/// Drives a [`RecordFormat`].
pub(crate) struct RecordReader<F> {
    format: F,
    records: u64,
}

impl<F: RecordFormat> RecordReader<F> {
    pub(crate) fn new(format: F) -> Self {
        Self { format, records: 0 }
    }
}

impl<F: RecordFormat> RowReader for RecordReader<F> {
    fn fill(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<bool, TraceError> {
        let need = self.format.record_bytes();
        while !reorder_window.is_full() {
            let begin = source.offset();
            let bytes = source.in_memory(need)?;
            if bytes.len() < need {
                let have = bytes.len();
                if have > 0 {
                    source.consume(have);
                    self.records += 1;
                    truncated(source, reorder_window, self.records, begin, have, need)?;
                }
                return Ok(false);
            }
            // As many as are there, up to one that is bad: what the source does for a record is done
            // once for all of them.
            let (mut parsed, mut bad) = (self.format.parse_plain(bytes, reorder_window), None);
            for record in bytes[parsed * need..].chunks_exact(need) {
                if reorder_window.is_full() {
                    break;
                }
                parsed += 1;
                if let Err(problem) = self.format.parse(record, reorder_window) {
                    bad = Some(problem);
                    break;
                }
            }
            source.consume(parsed * need);
            self.records += parsed as u64;
            if let Some(problem) = bad {
                let byte = begin + ((parsed - 1) * need) as u64;
                bad_record(source, reorder_window, self.records, None, byte, problem)?;
            }
        }
        Ok(true)
    }
}

/// An error, or a count if bad records are to be left out.
pub(crate) fn bad_record(
    source: &Source,
    reorder_window: &mut ReorderWindow,
    record: u64,
    line: Option<u64>,
    byte: u64,
    problem: Problem,
) -> Result<(), TraceError> {
    let place = source.place(record, line, byte);
    if !reorder_window.skip_bad {
        return Err(TraceError::Record { place, problem: problem.0.into() });
    }
    reorder_window.metadata.skipped_records += 1;
    if reorder_window.metadata.first_skipped.is_none() {
        reorder_window.metadata.first_skipped = Some(format!("{place}: {}", problem.0));
    }
    Ok(())
}

/// An error, or a count if bad records are to be left out, for an input that ends inside a record.
pub(crate) fn truncated(
    source: &Source,
    reorder_window: &mut ReorderWindow,
    record: u64,
    byte: u64,
    have: usize,
    need: usize,
) -> Result<(), TraceError> {
    if reorder_window.skip_bad {
        let problem = Problem::new(format!("truncated: {have} of {need} bytes are there"));
        return bad_record(source, reorder_window, record, None, byte, problem);
    }
    let place = source.place(record, None, byte);
    Err(TraceError::Truncated { place, have: have as u64, need: need as u64 })
}
