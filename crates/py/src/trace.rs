//! Reading and converting traces from Python.

use std::path::{Path, PathBuf};

use agewell_trace::{
    BlockBatch, BlockRow, Conversion, Format, OutputFormat, ReadOptions, StraceOptions, Summarizer,
    TIME_MISSING, TraceError, busy_files, convert, convert_strace, is_strace, open_block_trace,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::{error, interpreter};

/// Distinguishes Python's exceptions: bad input from a run that failed.
fn to_python(problem: &TraceError) -> PyErr {
    if problem.is_input_error() { error::input(problem) } else { error::run(problem) }
}

fn options(format: Option<&str>, skip_bad: bool) -> PyResult<ReadOptions> {
    let format = format.map(Format::from_name).transpose().map_err(|why| to_python(&why))?;
    Ok(ReadOptions { format, skip_bad })
}

/// Lets Python handle signals; what it raises is kept in `raised` and stops the work.
fn check_signals(raised: &mut Option<PyErr>) -> Result<(), TraceError> {
    call_python(raised, |_| Ok(()))
}

/// Calls Python in the midst of work; what it raises is kept in `raised` and stops the work.
fn call_python(
    raised: &mut Option<PyErr>,
    call: impl FnOnce(Python<'_>) -> PyResult<()>,
) -> Result<(), TraceError> {
    if interpreter::call(raised, call) { Ok(()) } else { Err(TraceError::Interrupted) }
}

/// Runs `work` without holding the interpreter; an exception that it kept wins over its error.
fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Option<PyErr>) -> Result<T, TraceError> + Send,
) -> PyResult<T> {
    interpreter::detached(py, work, |why| to_python(&why))
}

/// Files that are named of a trace whose requests say theirs.
const BUSIEST_FILES: usize = 10;

/// What a trace is and holds, as JSON text: `files`, `format`, `sureness`, `metadata`, `summary`.
#[pyfunction]
#[pyo3(signature = (path, format=None, skip_bad=false))]
pub(crate) fn trace_info(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    skip_bad: bool,
) -> PyResult<String> {
    let options = options(format, skip_bad)?;
    let document = detached(py, |raised| {
        let mut trace = open_block_trace(&path, &options)?;
        let mut summarizer = Summarizer::default();
        let mut batch = BlockBatch::default();
        while trace.next_batch(&mut batch)? {
            summarizer.add(&batch);
            check_signals(raised)?;
        }
        let detected = trace.detected();
        let summary = summarizer.finish(&trace.metadata);
        let files = match detected.format.name() {
            "parquet" => busy_files(&path, BUSIEST_FILES)?,
            _ => None,
        };
        Ok(json!({
            "files": files,
            "format": detected.format.name(),
            "title": detected.format.description().title,
            "sureness": if options.format.is_some() {
                json!("given")
            } else {
                json!(detected.sureness)
            },
            "start_wall": trace.metadata.start_wall_ns.map(agewell_trace::civil_text),
            "metadata": trace.metadata,
            "summary": summary,
        }))
    })?;
    Ok(document.to_string())
}

/// The first `count` requests, as a JSON list of objects with the canonical columns.
#[pyfunction]
#[pyo3(signature = (path, format=None, count=10, skip_bad=false))]
pub(crate) fn trace_head(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    count: usize,
    skip_bad: bool,
) -> PyResult<String> {
    let options = options(format, skip_bad)?;
    let records = detached(py, |raised| {
        let mut trace = open_block_trace(&path, &options)?;
        let mut batch = BlockBatch::default();
        let mut records = Vec::new();
        while records.len() < count && trace.next_batch(&mut batch)? {
            check_signals(raised)?;
            let wanted = batch.len().min(count - records.len());
            records.extend((0..wanted).map(|index| record(batch.row(index))));
        }
        Ok(Value::Array(records))
    })?;
    Ok(records.to_string())
}

fn record(row: BlockRow) -> Value {
    let time = |time_ns: u64| (time_ns != TIME_MISSING).then_some(time_ns);
    let operation =
        agewell_core::Operation::from_code(row.operation).map(agewell_core::Operation::name);
    json!({
        "enqueue_ns": row.enqueue_ns,
        "start_ns": time(row.start_ns),
        "finish_ns": time(row.finish_ns),
        "device": row.device,
        "sector": row.sector,
        "sectors": row.sectors,
        "operation": operation,
        "flags": row.flags,
        "client": row.client,
    })
}

/// Converts, merges and filters; returns what was done as JSON text.
///
/// `filters` is a JSON list of texts such as `op=read`. `progress` is called between batches with
/// bytes and requests read; an exception from it, or Ctrl-C, stops the conversion and nothing is
/// written.
#[pyfunction]
#[pyo3(signature = (inputs, output, input_format, output_format, filters, skip_bad, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of one command")]
pub(crate) fn trace_convert(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    input_format: Option<&str>,
    output_format: Option<&str>,
    filters: &str,
    skip_bad: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let as_strace = match (input_format, inputs.as_slice()) {
        (Some(name), _) => name == "strace",
        (None, [input]) => is_strace(input).map_err(|why| to_python(&why))?,
        (None, _) => false,
    };
    let options = options(input_format.filter(|_| !as_strace), skip_bad)?;
    let output_format = match output_format {
        Some(name) => OutputFormat::from_name(name),
        None => OutputFormat::of_path(Path::new(&output)),
    }
    .map_err(|why| to_python(&why))?;
    let filters: Vec<String> = serde_json::from_str(filters)
        .map_err(|why| error::input(format!("filters must be a JSON list of texts: {why}")))?;
    let done = detached(py, |raised| {
        let mut tell = |bytes: u64, requests: u64| {
            call_python(raised, |py| {
                if let Some(progress) = &progress {
                    progress.call1(py, (bytes, requests))?;
                }
                Ok(())
            })
        };
        if as_strace {
            return strace(&inputs, &output, output_format, &filters, skip_bad, &mut tell);
        }
        convert(&inputs, &output, output_format, &filters, &options, &mut tell)
    })?;
    Ok(json!(done).to_string())
}

/// File operations out of strace; `below=DIRECTORY` is the one filter that they have.
fn strace(
    inputs: &[PathBuf],
    output: &Path,
    output_format: OutputFormat,
    filters: &[String],
    skip_bad: bool,
    tell: &mut dyn FnMut(u64, u64) -> Result<(), TraceError>,
) -> Result<Conversion, TraceError> {
    let [input] = inputs else {
        return Err(TraceError::Usage("strace text cannot be merged; give one file".to_owned()));
    };
    if output_format != OutputFormat::Parquet {
        return Err(TraceError::Usage(format!(
            "{}: file operations are written as parquet only; end the output in .parquet",
            input.display()
        )));
    }
    let mut below = None;
    for filter in filters {
        let directory = filter.strip_prefix("below=").ok_or_else(|| {
            TraceError::Usage(format!(
                "filter '{filter}': file operations have one filter, below=DIRECTORY"
            ))
        })?;
        below = Some(directory.to_owned());
    }
    convert_strace(input, output, &StraceOptions { below, skip_bad }, tell)
}

/// The table of formats, as a JSON list.
#[pyfunction]
pub(crate) fn trace_formats() -> String {
    json!(Format::ALL.map(Format::description)).to_string()
}
