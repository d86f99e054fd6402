//! The result of a run: one JSON document and Parquet tables, the same bytes for the same
//! configuration and inputs.
//!
//! Nothing here knows how long a run took or on which machine it ran: that goes to standard error
//! and a side file.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use agewell_trace::ParquetWriter;
use arrow_array::RecordBatch;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::RunError;
use crate::places::{Places, resolve_path};

/// What `result.json` says that it is, as every document of agewell does.
pub const DOCUMENT: &str = "run";
/// Version of the layout of `result.json` and of the tables beside it.
pub const SCHEMA_VERSION: u32 = 1;

/// The files that a result depends on, a trace and a device by the names that the experiment gives
/// them, with their hashes.
///
/// # Errors
/// If one of them cannot be read.
pub fn inputs(files: (Option<&str>, Option<&str>), places: Places) -> Result<Value, RunError> {
    inputs_unless(&AtomicBool::new(false), files, places)
}

/// The same while something else is done: an error as soon as `stopped`.
pub(crate) fn inputs_unless(
    stopped: &AtomicBool,
    (trace, device): (Option<&str>, Option<&str>),
    places: Places,
) -> Result<Value, RunError> {
    let trace = trace.map(|name| (name, resolve_path(places.base, name)));
    let device = device.map(|name| {
        let beside = resolve_path(places.base, name);
        let catalogued = || places.catalogue.join(format!("{name}.toml"));
        (name, if beside.is_file() { beside } else { catalogued() })
    });
    trace
        .into_iter()
        .chain(device)
        .map(|(name, path)| {
            let sha256 = sha256_unless(stopped, &path)
                .map_err(|source| RunError::Io { path: path.clone(), source })?;
            Ok(json!({ "name": name, "sha256": sha256 }))
        })
        .collect()
}

/// The SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// If the file cannot be read.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    sha256_unless(&AtomicBool::new(false), path)
}

fn sha256_unless(stopped: &AtomicBool, path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        if stopped.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hexadecimal(hasher))
}

/// The SHA-256 of `bytes`, in hexadecimal.
#[must_use]
pub fn sha256_of(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

fn hexadecimal(hasher: Sha256) -> String {
    let mut text = String::new();
    for byte in hasher.finalize() {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
    text
}

/// Writes `bytes` as `directory/name` so that the name never stands for half a file.
///
/// # Errors
/// If the directory cannot be written to.
pub fn write_whole(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    agewell_trace::write_whole(&directory.join(name), bytes)
}

/// Writes `table` as `directory/name`.
///
/// # Errors
/// If the directory cannot be written to.
pub(crate) fn write_table(directory: &Path, name: &str, table: &RecordBatch) -> io::Result<()> {
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let mut writer =
        ParquetWriter::new(Vec::new(), table.schema(), properties).map_err(from_parquet)?;
    writer.write(table).map_err(from_parquet)?;
    let bytes = writer.finish().map_err(from_parquet)?;
    write_whole(directory, name, &bytes)?;
    Ok(())
}

fn from_parquet(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
