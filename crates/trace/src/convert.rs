//! From traces to a trace: read, merge, filter, write, with flat memory.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::TraceError;
use crate::fields::{Fields, try_integer, try_scaled};
use crate::file_operation::{FileOperationBatch, FileOperationWriter};
use crate::filter::FilterPipe;
use crate::format::strace::{StraceOptions, StraceTrace};
use crate::merge::MergedTrace;
use crate::record::BlockBatch;
use crate::source::Source;
use crate::trace::{BlockSource, ReadOptions, open_block_trace};
use crate::write::{OutputFormat, create_block_trace};

/// What a conversion did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Conversion {
    /// Format of the input, or `merged`.
    pub input_format: String,
    /// Format of the output.
    pub output_format: String,
    /// Requests read.
    pub requests_in: u64,
    /// Requests written.
    pub requests_out: u64,
    /// Requests that the filters cut in pieces.
    pub split_requests: u64,
    /// Requests that the output format cannot express.
    pub left_out: u64,
    /// Bad records left out on request.
    pub skipped_records: u64,
    /// The first of them.
    pub first_skipped: Option<String>,
    /// Bytes of input after decompression.
    pub bytes_in: u64,
    /// Bytes of output.
    pub bytes_out: u64,
    /// What was changed while reading.
    pub warnings: std::collections::BTreeMap<String, u64>,
}

/// Reads `inputs` (several are merged), filters, and writes `output`. `progress` is called between
/// batches with the bytes and requests read so far and may stop the conversion with an error.
///
/// # Errors
/// The first thing wrong with an input, a filter or the output, or what `progress` returns. Nothing is left
/// under the output's name then.
pub fn convert(
    inputs: &[PathBuf],
    output: &Path,
    output_format: OutputFormat,
    filters: &[String],
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64, u64) -> Result<(), TraceError>,
) -> Result<Conversion, TraceError> {
    let mut pipe = FilterPipe::parse(filters)?;
    refuse_own_input(inputs, output)?;
    let mut traces =
        inputs.iter().map(|path| open_block_trace(path, options)).collect::<Result<Vec<_>, _>>()?;
    let mut source: Box<dyn BlockSource> = match (traces.pop(), traces.is_empty()) {
        (None, _) => return Err(TraceError::Usage("no input trace was given".to_owned())),
        (Some(only), true) => Box::new(only),
        (Some(last), false) => {
            traces.push(last);
            Box::new(MergedTrace::new(traces)?)
        }
    };
    let mut sink = None;
    let mut batch = BlockBatch::default();
    let mut requests_in = 0;
    while source.next_batch(&mut batch)? {
        requests_in += batch.len() as u64;
        let past_end = batch.enqueue_ns.first().is_some_and(|&first| pipe.is_past_end(first));
        pipe.apply(source.metadata(), &mut batch)?;
        if !batch.is_empty() {
            if sink.is_none() {
                sink = Some(create_block_trace(output, output_format)?);
            }
            if let Some(sink) = sink.as_mut() {
                sink.write(&mut batch, source.metadata())?;
            }
        }
        progress(source.bytes_read(), requests_in)?;
        if past_end {
            break;
        }
    }
    let mut metadata = source.metadata().clone();
    if !filters.is_empty() {
        metadata.header.insert("filters".to_owned(), filters.join("; "));
    }
    let Some(sink) = sink else {
        return Err(TraceError::Usage(format!(
            "none of the {requests_in} requests passes the filters ({}); nothing was written",
            filters.join(" ")
        )));
    };
    let written = sink.finish(&metadata)?;
    Ok(Conversion {
        input_format: metadata.format,
        output_format: output_format.name().to_owned(),
        requests_in,
        requests_out: written.rows,
        split_requests: pipe.split_requests,
        left_out: written.left_out,
        skipped_records: metadata.skipped_records,
        first_skipped: metadata.first_skipped,
        bytes_in: source.bytes_read(),
        bytes_out: written.bytes,
        warnings: metadata.warnings,
    })
}

/// Whether `path` holds strace text: file operations, not block requests.
///
/// # Errors
/// If it cannot be read.
pub fn is_strace(path: &Path) -> Result<bool, TraceError> {
    if path.as_os_str() == "-" || !path.exists() {
        // Looking into a pipe would use it up.
        return Ok(false);
    }
    let mut source = Source::open(path)?;
    let shown = source.peek(4096)?;
    // Lines about the recording may stand above the calls.
    let calls = shown.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#"));
    let lines: Vec<&[u8]> = calls.take(8).collect();
    let fitting = lines.iter().filter(|line| looks_like_call(line)).count();
    Ok(fitting > 0 && fitting * 2 >= lines.len())
}

/// `pid seconds.fraction name(...` or `pid seconds.fraction <... name resumed>...`
fn looks_like_call(line: &[u8]) -> bool {
    let mut fields = Fields::new(line);
    let pid = fields.word().is_some_and(|word| try_integer(word).is_some());
    let time =
        fields.word().is_some_and(|word| word.contains(&b'.') && try_scaled(word, 9).is_some());
    let call = fields.word().is_some_and(|word| {
        let name = word.split(|&byte| byte == b'(').next().unwrap_or(word);
        word == b"<..."
            || (name.len() < word.len()
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
    });
    pid && time && call
}

/// Converts strace text into a file-operation trace in Parquet. `options.below` keeps the files of
/// one directory.
///
/// # Errors
/// As [`convert`].
pub fn convert_strace(
    input: &Path,
    output: &Path,
    options: &StraceOptions,
    progress: &mut dyn FnMut(u64, u64) -> Result<(), TraceError>,
) -> Result<Conversion, TraceError> {
    refuse_own_input(&[input.to_owned()], output)?;
    let mut trace = StraceTrace::open(input, options)?;
    let mut batch = FileOperationBatch::default();
    let mut writer = None;
    let mut rows = 0;
    while trace.next_batch(&mut batch)? {
        rows += batch.len() as u64;
        if writer.is_none() {
            writer = Some(FileOperationWriter::create(output)?);
        }
        if let Some(writer) = writer.as_mut() {
            writer.write(&batch)?;
        }
        progress(trace.bytes_read(), rows)?;
    }
    let Some(writer) = writer else {
        return Err(TraceError::Empty {
            path: input.display().to_string(),
            byte: trace.bytes_read(),
            what: "no file operation in it",
        });
    };
    let bytes_out = writer.finish(&trace.metadata)?;
    Ok(Conversion {
        input_format: "strace".to_owned(),
        output_format: OutputFormat::Parquet.name().to_owned(),
        requests_in: rows,
        requests_out: rows,
        split_requests: 0,
        left_out: 0,
        skipped_records: trace.metadata.skipped_records,
        first_skipped: trace.metadata.first_skipped.clone(),
        bytes_in: trace.bytes_read(),
        bytes_out,
        warnings: trace.metadata.warnings.clone(),
    })
}

/// An output that replaces its own input would be lost with it if anything went wrong later.
fn refuse_own_input(inputs: &[PathBuf], output: &Path) -> Result<(), TraceError> {
    let Ok(output) = output.canonicalize() else { return Ok(()) };
    for input in inputs {
        if input.canonicalize().is_ok_and(|input| input == output) {
            return Err(TraceError::Usage(format!(
                "{}: is both input and output; give the output another name",
                input.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strace_text_is_known_below_lines_about_the_recording() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sample.strace");
        let about = "# agewell kernel: Linux\n".repeat(12);
        let call = "5 1.000000 close(3</mnt/a>) = 0\n";
        std::fs::write(&path, format!("{about}{call}")).expect("written");
        assert!(is_strace(&path).expect("read"));
        std::fs::write(&path, about).expect("written");
        assert!(!is_strace(&path).expect("read"), "nothing but remarks is no strace");
    }
}
