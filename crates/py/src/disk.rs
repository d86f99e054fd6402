//! Device files, the catalogue, and validation from Python.

use std::path::{Path, PathBuf};

use agewell_core::SECTOR_BYTES;
use agewell_disk::parameters::{
    FlashParameters, Management, MechanicalParameters, SimpleParameters, ZonedParameters,
};
use agewell_disk::validation::replay::{Measured, TimeBase};
use agewell_disk::validation::{ValidationOptions, ValidationReport, validate};
use agewell_disk::{
    Device, DeviceError, DeviceKind, DeviceModel, DeviceParameters, Medium, catalogue_names, import,
};
use agewell_trace::{BlockBatch, ReadOptions, TIME_MISSING, TraceError, open_block_trace};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::{error, interpreter};

fn load(device: &str, catalogue: &Path) -> PyResult<DeviceParameters> {
    DeviceParameters::find(device, catalogue).map_err(to_python)
}

#[allow(clippy::needless_pass_by_value)] // the shape that `map_err` takes
fn to_python(problem: DeviceError) -> PyErr {
    error::input(problem)
}

/// The device of that name or path: its parameters and what follows from them, as JSON text.
#[pyfunction]
pub(crate) fn device_load(
    py: Python<'_>,
    device: &str,
    catalogue_dir: PathBuf,
) -> PyResult<String> {
    py.detach(|| Ok(describe(&load(device, &catalogue_dir)?).to_string()))
}

/// Every device of the catalogue, as a JSON list of short descriptions, sorted by name.
#[pyfunction]
pub(crate) fn device_list(py: Python<'_>, catalogue_dir: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let names = catalogue_names(&catalogue_dir).map_err(to_python)?;
        let devices: PyResult<Vec<Value>> = names
            .iter()
            .map(|name| {
                let description = describe(&load(name, &catalogue_dir)?);
                Ok(json!({
                    "name": description["name"],
                    "title": description["title"],
                    "kind": description["kind"],
                    "capacity_bytes": description["capacity_bytes"],
                    "rpm": description["rpm"],
                    "mean_seek_ms": description["mean_seek_ms"],
                }))
            })
            .collect();
        Ok(Value::from(devices?).to_string())
    })
}

/// The device file for the DiskSim specification at `path`, as TOML text.
#[pyfunction]
#[pyo3(signature = (path, name=None))]
pub(crate) fn device_import(py: Python<'_>, path: PathBuf, name: Option<&str>) -> PyResult<String> {
    py.detach(|| Ok(import::disksim(&path, name).map_err(to_python)?.to_toml()))
}

/// Replays a measured trace through a device and reports the errors, as JSON text.
///
/// `options` is a JSON object: `fit` (fit three overheads on the first half), `trace_device`
/// (number of the device in the trace; all of them, each on its own drive, by default).
#[pyfunction]
#[pyo3(signature = (device, catalogue_dir, trace, options="{}"))]
pub(crate) fn validate_device(
    py: Python<'_>,
    device: &str,
    catalogue_dir: PathBuf,
    trace: PathBuf,
    options: &str,
) -> PyResult<String> {
    let options: Options = serde_json::from_str::<Value>(options)
        .map_err(|why| error::input(format!("the options are not JSON: {why}")))
        .and_then(Options::read)?;
    let work = |raised: &mut Option<PyErr>| {
        let parameters = load(device, &catalogue_dir)?;
        let read = read_measured(&trace, options.trace_device, raised).map_err(|why| {
            if why.is_input_error() { error::input(why) } else { error::run(why) }
        })?;
        // A drive that had one request at a time can be replayed with think times, which keeps the
        // platter where the simulation has put it; on the measured clock every error would also
        // make the next request late.
        let serial = read.drives.iter().all(Measured::is_serial);
        let primary = if serial { TimeBase::Closed } else { TimeBase::Trace };
        let options = ValidationOptions { fit: options.fit, primary };
        let mut go_on = || interpreter::call(raised, |_| Ok(()));
        let report = validate(&parameters, &read.drives, options, &mut go_on)
            .map_err(|why| error::input(format!("{}: {why}", trace.display())))?;
        Ok(document(&report, &parameters, &trace, &read))
    };
    let document = interpreter::detached(py, work, |why: PyErr| why)?;
    Ok(document.to_string())
}

struct Options {
    fit: bool,
    trace_device: Option<u32>,
}

impl Options {
    fn read(value: Value) -> PyResult<Self> {
        let Value::Object(entries) = value else {
            return Err(error::input("the options are not a JSON object"));
        };
        let mut options = Options { fit: false, trace_device: None };
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("fit", Value::Bool(fit)) => options.fit = fit,
                ("trace_device", Value::Null) => {}
                ("trace_device", Value::Number(number)) => {
                    options.trace_device = Some(
                        number.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
                            error::input(format!("trace_device is {number}, not a device number"))
                        })?,
                    );
                }
                (key, value) => {
                    let known = ["fit", "trace_device"];
                    return Err(error::input(if known.contains(&key) {
                        format!("option '{key}' cannot be {value}")
                    } else {
                        agewell_core::unknown_key_message("options", key, &known)
                    }));
                }
            }
        }
        Ok(options)
    }
}

/// A trace with measured times, a drive at a time.
struct MeasuredTrace {
    format: String,
    drives: Vec<Measured>,
    devices: Vec<String>,
    without_times: u64,
}

fn read_measured(
    path: &Path,
    wanted: Option<u32>,
    raised: &mut Option<PyErr>,
) -> Result<MeasuredTrace, TraceError> {
    let mut trace = open_block_trace(path, &ReadOptions::default())?;
    let mut batch = BlockBatch::default();
    let mut by_device: Vec<(u32, Measured)> = Vec::new();
    let mut without_times = 0;
    while trace.next_batch(&mut batch)? {
        for row in 0..batch.sector.len() {
            let device = batch.device[row];
            let timed = batch.start_ns[row] != TIME_MISSING && batch.finish_ns[row] != TIME_MISSING;
            let moves_data = batch.operation[row] <= 1 && batch.sectors[row] > 0;
            if wanted.is_some_and(|wanted| wanted != device) {
                continue;
            }
            if !timed || !moves_data {
                without_times += 1;
                continue;
            }
            let at = by_device.partition_point(|(known, _)| *known < device);
            if by_device.get(at).is_none_or(|(known, _)| *known != device) {
                by_device.insert(at, (device, Measured::default()));
            }
            let measured = &mut by_device[at].1;
            measured.issue_ns.push(batch.start_ns[row]);
            measured.finish_ns.push(batch.finish_ns[row]);
            measured.sector.push(batch.sector[row]);
            measured.sectors.push(batch.sectors[row]);
            measured.operation.push(batch.operation[row]);
        }
        if !interpreter::call(raised, |_| Ok(())) {
            return Err(TraceError::Interrupted);
        }
    }
    let devices = by_device.iter().map(|(id, _)| trace.metadata.device_name(*id)).collect();
    // The drive serves requests in the order they were started, which is not that of their arrival.
    let drives = by_device.into_iter().map(|(_, measured)| measured.sorted_by_issue()).collect();
    Ok(MeasuredTrace { format: trace.metadata.format.clone(), drives, devices, without_times })
}

fn document(
    report: &ValidationReport,
    parameters: &DeviceParameters,
    path: &Path,
    read: &MeasuredTrace,
) -> Value {
    json!({
        "device": { "name": parameters.name, "title": parameters.title },
        "trace": {
            "path": path.display().to_string(),
            "format": read.format,
            "devices": read.devices,
            "requests": report.requests,
            "requests_without_times": read.without_times,
        },
        "metrics": report.metrics,
        "base": report.primary,
        "closed": report.closed,
        "trace_clock": report.trace,
        "estimated": report.estimated,
    })
}

fn describe(parameters: &DeviceParameters) -> Value {
    let model = DeviceModel::new(parameters);
    let mut description = json!({
        "name": parameters.name,
        "title": parameters.title,
        "capacity_sectors": model.capacity().0,
        "capacity_bytes": model.capacity().bytes(),
        "cylinders": model.cylinders(),
        "sources": parameters.sources,
        "toml": parameters.to_toml(),
        "uncertainty": parameters.uncertainty.map(|found| json!({
            "random_read_pct": found.random_read_pct,
            "sequential_read_pct": found.sequential_read_pct,
        })),
        "rpm": Value::Null,
        "mean_seek_ms": Value::Null,
    });
    let details = match &parameters.kind {
        DeviceKind::Simple(simple) => describe_simple(*simple),
        DeviceKind::Mechanical(mechanical) => describe_mechanical(mechanical),
        DeviceKind::Zoned(zoned) => describe_zoned(zoned),
        DeviceKind::Flash(flash) => describe_flash(flash),
    };
    if let (Value::Object(all), Value::Object(details)) = (&mut description, details) {
        all.extend(details);
    }
    description
}

fn describe_simple(simple: SimpleParameters) -> Value {
    json!({
        "kind": "simple",
        "access_time_ms": simple.access_time_ns as f64 / 1e6,
        "bandwidth_bytes_per_s": simple.bandwidth_bytes_per_s,
    })
}

/// The drive below, and how its zones are written.
fn describe_zoned(zoned: &ZonedParameters) -> Value {
    let (mut description, drive) = match zoned.medium() {
        Medium::Simple(simple) => (describe_simple(simple), "simple"),
        Medium::Mechanical(mechanical) => (describe_mechanical(mechanical), "mechanical"),
    };
    let (management, conventional_zones, cache_sectors) = match zoned.management {
        Management::Host { conventional_zones } => ("host", Some(conventional_zones), None),
        Management::Drive { cache_sectors } => ("drive", None, Some(cache_sectors)),
    };
    description["kind"] = json!("zoned");
    description["drive"] = json!(drive);
    description["management"] = json!(management);
    description["zone_bytes"] = json!(zoned.zone_sectors * SECTOR_BYTES);
    description["write_zones"] = json!(zoned.capacity_sectors().div_ceil(zoned.zone_sectors));
    description["conventional_zones"] = json!(conventional_zones);
    description["cache_bytes"] = json!(cache_sectors.map(|sectors| sectors * SECTOR_BYTES));
    description
}

fn describe_flash(flash: &FlashParameters) -> Value {
    json!({
        "kind": "flash",
        "channels": flash.channels,
        "dies": flash.dies(),
        "page_bytes": flash.page_bytes,
        "mapping_bytes": flash.mapping_bytes,
        "block_bytes": flash.page_bytes * u64::from(flash.pages_per_block),
        "over_provisioning": flash.over_provisioning,
        "placement": flash.placement.name(),
        "read_ms": flash.read.mean_ns() as f64 / 1e6,
        "program_ms": flash.program_ns as f64 / 1e6,
        "erase_ms": flash.erase_ns as f64 / 1e6,
        "request_overhead_ms": flash.request_overhead_ns as f64 / 1e6,
        "command_ms": flash.command_ns as f64 / 1e6,
        "write_command_ms": flash.write_command_ns as f64 / 1e6,
        "queue_depth": flash.queue_depth,
        "write_buffer_bytes": flash.write_buffer_bytes,
        "read_bytes_per_s": flash.read_bytes_per_s(),
        "write_bytes_per_s": flash.write_bytes_per_s(),
    })
}

fn describe_mechanical(mechanical: &MechanicalParameters) -> Value {
    let geometry = &mechanical.geometry;
    let period_ms = mechanical.rotation_period_ps as f64 / 1e9;
    let bytes = f64::from(mechanical.sector_bytes);
    let media_mb_per_s = |sectors: u32| f64::from(sectors) * bytes / period_ms / 1e3;
    let sectors = geometry.zones.iter().map(|zone| zone.sectors_per_track);
    json!({
        "kind": "mechanical",
        "sector_bytes": mechanical.sector_bytes,
        "rpm": 60e3 / period_ms,
        "rotation_period_ms": period_ms,
        "surfaces": geometry.surfaces,
        "zones": geometry.zones.len(),
        "sectors_per_track": [sectors.clone().min(), sectors.clone().max()],
        "media_mb_per_s": [
            sectors.clone().min().map(media_mb_per_s),
            sectors.max().map(media_mb_per_s),
        ],
        "mean_seek_ms": mechanical.seek.mean_ms(geometry.cylinders),
        "full_seek_ms": mechanical.seek.ms(geometry.cylinders.saturating_sub(1)),
        "single_cylinder_seek_ms": mechanical.seek.ms(1),
        "head_switch_ms": mechanical.head_switch_ns as f64 / 1e6,
        "buffer_kib": f64::from(mechanical.buffer.segments)
            * mechanical.buffer.segment_sectors as f64 * bytes / 1024.0,
        "queue_depth": mechanical.queue_depth,
    })
}
