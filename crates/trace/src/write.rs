//! Writers: batches in, a file out, complete or not at all.

use std::path::Path;

use crate::error::TraceError;
use crate::metadata::{DeviceDescription, SCHEMA_VERSION, TraceMetadata};
use crate::output::Output;
use crate::record::BlockBatch;

mod disksim;
mod fio;
pub(crate) mod parquet;

/// A format that agewell writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Parquet with the canonical columns.
    Parquet,
    /// `DiskSim` ASCII.
    DisksimAscii,
    /// fio I/O log version 2, with waits.
    FioIologV2,
    /// fio I/O log version 3, with times.
    FioIologV3,
}

impl OutputFormat {
    /// Every format that is written.
    pub const ALL: [OutputFormat; 4] = [
        OutputFormat::Parquet,
        OutputFormat::DisksimAscii,
        OutputFormat::FioIologV2,
        OutputFormat::FioIologV3,
    ];

    /// The name for `--to`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OutputFormat::Parquet => "parquet",
            OutputFormat::DisksimAscii => "disksim-ascii",
            OutputFormat::FioIologV2 => "fio-iolog-v2",
            OutputFormat::FioIologV3 => "fio-iolog-v3",
        }
    }

    /// The format called `name`; `fio-iolog` is version 2, which older fio reads too.
    ///
    /// # Errors
    /// A usage error that lists the formats.
    pub fn from_name(name: &str) -> Result<Self, TraceError> {
        let lower = name.to_ascii_lowercase();
        if lower == "fio-iolog" {
            return Ok(OutputFormat::FioIologV2);
        }
        Self::ALL.into_iter().find(|format| format.name() == lower).ok_or_else(|| {
            let names = Self::ALL.map(OutputFormat::name).join(", ");
            TraceError::Usage(format!("cannot write format '{name}'; choose one of {names}"))
        })
    }

    /// The format that the ending of `path` stands for.
    ///
    /// # Errors
    /// A usage error if the ending says nothing.
    pub fn of_path(path: &Path) -> Result<Self, TraceError> {
        let ending =
            path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
        match ending.as_deref() {
            Some("parquet") => Ok(OutputFormat::Parquet),
            Some("ascii" | "trace" | "disksim") => Ok(OutputFormat::DisksimAscii),
            Some("iolog" | "fio" | "log") => Ok(OutputFormat::FioIologV2),
            _ => Err(TraceError::Usage(format!(
                "{}: the name does not tell the output format; end it in .parquet, .trace or .iolog, or \
                 say --to {}",
                path.display(),
                Self::ALL.map(OutputFormat::name).join("|")
            ))),
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Requests in the output.
    pub rows: u64,
    /// Requests that the format cannot express (discards and flushes in `DiskSim` ASCII).
    pub left_out: u64,
    /// Bytes of the output.
    pub bytes: u64,
}

/// Writes batches in one format.
pub trait BlockSink {
    /// Appends `batch`, whose devices `metadata` describes. The batch is left empty.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn write(&mut self, batch: &mut BlockBatch, metadata: &TraceMetadata)
    -> Result<(), TraceError>;

    /// Completes the output under its final name.
    ///
    /// # Errors
    /// If the output cannot be written; nothing is left under the final name then.
    fn finish(self: Box<Self>, metadata: &TraceMetadata) -> Result<Written, TraceError>;
}

/// Creates the output `path` (`-`: standard output). Nothing appears under that name before
/// `finish`.
///
/// # Errors
/// If the output cannot be created.
pub fn create_block_trace(
    path: &Path,
    format: OutputFormat,
) -> Result<Box<dyn BlockSink>, TraceError> {
    let output = Output::create(path)?;
    Ok(match format {
        OutputFormat::Parquet => Box::new(parquet::ParquetSink::new(output)?),
        OutputFormat::DisksimAscii => Box::new(disksim::DisksimSink::new(output)),
        OutputFormat::FioIologV2 => Box::new(fio::FioSink::new(output, 2)?),
        OutputFormat::FioIologV3 => Box::new(fio::FioSink::new(output, 3)?),
    })
}

/// Writes what was asked of one device, named `device`, as a Parquet trace that any experiment
/// reads.
///
/// # Errors
/// If the output cannot be created or written.
pub fn write_requests(path: &Path, requests: &mut BlockBatch) -> Result<Written, TraceError> {
    let device = DeviceDescription { name: "device".into(), ..DeviceDescription::default() };
    let metadata = TraceMetadata {
        schema_version: SCHEMA_VERSION,
        format: "agewell".into(),
        devices: vec![device],
        ..TraceMetadata::default()
    };
    let mut sink = create_block_trace(path, OutputFormat::Parquet)?;
    sink.write(requests, &metadata)?;
    sink.finish(&metadata)
}
