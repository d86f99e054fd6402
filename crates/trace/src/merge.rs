//! Several traces as one, by enqueue time.
//!
//! Traces that all know their wall clock are placed by it; otherwise all start together, which is
//! counted as a warning. Devices of the same name are one device. Ties go to the earlier input.

use std::collections::BTreeMap;

use crate::error::TraceError;
use crate::metadata::{DeviceDescription, SCHEMA_VERSION, TraceMetadata};
use crate::record::{BATCH_ROWS, BlockBatch, TIME_MISSING};
use crate::trace::{BlockSource, BlockTrace};

const START_TOGETHER: &str =
    "traces without a wall clock were merged as if they had started together";

struct Input {
    trace: BlockTrace,
    batch: BlockBatch,
    head: usize,
    shift_ns: u64,
    /// Canonical number by the input's own.
    devices: BTreeMap<u32, u32>,
    ended: bool,
}

/// Merged traces.
pub struct MergedTrace {
    inputs: Vec<Input>,
    metadata: TraceMetadata,
}

impl MergedTrace {
    /// Merges `traces`.
    ///
    /// # Errors
    /// If the beginning of one cannot be read.
    pub fn new(traces: Vec<BlockTrace>) -> Result<Self, TraceError> {
        let mut inputs = Vec::with_capacity(traces.len());
        for trace in traces {
            let mut input = Input {
                trace,
                batch: BlockBatch::default(),
                head: 0,
                shift_ns: 0,
                devices: BTreeMap::new(),
                ended: false,
            };
            input.refill()?;
            inputs.push(input);
        }
        let starts: Option<Vec<i64>> =
            inputs.iter().map(|input| input.trace.metadata.start_wall_ns).collect();
        let mut metadata = TraceMetadata {
            schema_version: SCHEMA_VERSION,
            format: "merged".to_owned(),
            ..TraceMetadata::default()
        };
        match starts.as_deref() {
            Some([first, rest @ ..]) => {
                let earliest = rest.iter().fold(*first, |earliest, start| earliest.min(*start));
                for input in &mut inputs {
                    let start = input.trace.metadata.start_wall_ns.unwrap_or(earliest);
                    input.shift_ns = start.abs_diff(earliest);
                }
                metadata.start_wall_ns = Some(earliest);
                let zones: Vec<_> = inputs
                    .iter()
                    .map(|input| input.trace.metadata.start_wall_zone.clone())
                    .collect();
                if zones.iter().all(|zone| *zone == zones[0]) {
                    metadata.start_wall_zone.clone_from(&zones[0]);
                }
            }
            _ => metadata.warn(START_TOGETHER),
        }
        for (index, input) in inputs.iter().enumerate() {
            let of = &input.trace.metadata;
            metadata.header.insert(format!("input_{index}_format"), of.format.clone());
        }
        Ok(Self { inputs, metadata })
    }
}

impl Input {
    fn refill(&mut self) -> Result<(), TraceError> {
        self.head = 0;
        self.ended = !self.trace.next_batch(&mut self.batch)?;
        Ok(())
    }

    fn next_ns(&self) -> Option<u64> {
        let time_ns = *self.batch.enqueue_ns.get(self.head)?;
        Some(time_ns.saturating_add(self.shift_ns))
    }

    /// The merged number of the input's device.
    fn device(&mut self, own: u32, merged: &mut TraceMetadata) -> u32 {
        if let Some(&known) = self.devices.get(&own) {
            return known;
        }
        let name = self.trace.metadata.device_name(own);
        let described = self.trace.metadata.devices.iter().find(|device| device.id == own);
        let known =
            merged.devices.iter().find(|device| device.name == name).map(|device| device.id);
        let id = known.unwrap_or_else(|| {
            let id = merged.devices.len() as u32;
            let mut device = described.cloned().unwrap_or_default();
            device.id = id;
            merged.devices.push(DeviceDescription { name, ..device });
            id
        });
        self.devices.insert(own, id);
        id
    }
}

impl BlockSource for MergedTrace {
    fn next_batch(&mut self, batch: &mut BlockBatch) -> Result<bool, TraceError> {
        batch.clear();
        while batch.len() < BATCH_ROWS {
            let earliest = self
                .inputs
                .iter()
                .enumerate()
                .filter_map(|(index, input)| Some((input.next_ns()?, index)))
                .min();
            let Some((_, index)) = earliest else { break };
            let input = &mut self.inputs[index];
            let mut row = input.batch.row(input.head);
            row.enqueue_ns = row.enqueue_ns.saturating_add(input.shift_ns);
            for time in [&mut row.start_ns, &mut row.finish_ns] {
                if *time != TIME_MISSING {
                    *time = time.saturating_add(input.shift_ns).min(TIME_MISSING - 1);
                }
            }
            row.device = input.device(row.device, &mut self.metadata);
            batch.push(row);
            input.head += 1;
            if input.head == input.batch.len() && !input.ended {
                input.refill()?;
                if input.ended {
                    for (text, count) in &input.trace.metadata.warnings {
                        *self.metadata.warnings.entry(text.clone()).or_default() += count;
                    }
                    self.metadata.skipped_records += input.trace.metadata.skipped_records;
                    if self.metadata.first_skipped.is_none() {
                        self.metadata.first_skipped.clone_from(&input.trace.metadata.first_skipped);
                    }
                }
            }
        }
        Ok(!batch.is_empty())
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.metadata
    }

    fn bytes_read(&self) -> u64 {
        self.inputs.iter().map(|input| input.trace.bytes_read()).sum()
    }
}
