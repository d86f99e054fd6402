//! fio I/O logs. Version 2 gives time by waits in us, each counted from the one before, so that
//! rounding never adds up; version 3 by the time in us at the front of each line. A device is a
//! file named after it, added and opened at its first request; offsets and lengths are bytes.

use std::collections::BTreeMap;
use std::io::Write as _;

use agewell_core::Operation;

use super::{BlockSink, Written};
use crate::error::TraceError;
use crate::metadata::TraceMetadata;
use crate::output::Output;
use crate::record::BlockBatch;

pub(super) struct FioSink {
    output: Output,
    version: u8,
    text: Vec<u8>,
    files: BTreeMap<u32, String>,
    /// Time that the waits so far add up to.
    waited_us: u64,
    rows: u64,
}

impl FioSink {
    pub(super) fn new(mut output: Output, version: u8) -> Result<Self, TraceError> {
        output.write_all(format!("fio version {version} iolog\n").as_bytes())?;
        Ok(Self {
            output,
            version,
            text: Vec::new(),
            files: BTreeMap::new(),
            waited_us: 0,
            rows: 0,
        })
    }

    fn line(&mut self, time_us: u64, line: std::fmt::Arguments<'_>) {
        if self.version == 3 {
            write!(self.text, "{time_us} ").expect("writing to memory cannot fail");
        }
        writeln!(self.text, "{line}").expect("writing to memory cannot fail");
    }
}

/// fio separates by blanks, so a name holds none.
fn file_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_whitespace() { '_' } else { letter }).collect()
}

impl BlockSink for FioSink {
    fn write(
        &mut self,
        batch: &mut BlockBatch,
        metadata: &TraceMetadata,
    ) -> Result<(), TraceError> {
        self.text.clear();
        for index in 0..batch.len() {
            let row = batch.row(index);
            // Version 3 counts from its first line.
            let time_us = row.enqueue_ns / 1000;
            if !self.files.contains_key(&row.device) {
                let name = file_name(&metadata.device_name(row.device));
                let opened_us = if self.files.is_empty() { 0 } else { time_us };
                self.line(opened_us, format_args!("{name} add"));
                self.line(opened_us, format_args!("{name} open"));
                self.files.insert(row.device, name);
            }
            let name = self.files[&row.device].clone();
            if self.version == 2 && time_us > self.waited_us {
                let wait_us = time_us - self.waited_us;
                self.line(time_us, format_args!("{name} wait {wait_us} 0"));
                self.waited_us = time_us;
            }
            let action = match Operation::from_code(row.operation) {
                Some(Operation::Read) => "read",
                Some(Operation::Write) => "write",
                Some(Operation::Discard) => "trim",
                Some(Operation::Flush) | None => "sync",
            };
            let offset = u128::from(row.sector) * 512;
            let bytes = u64::from(row.sectors) * 512;
            self.line(time_us, format_args!("{name} {action} {offset} {bytes}"));
            self.rows += 1;
        }
        self.waited_us = self.waited_us.max(batch.enqueue_ns.last().map_or(0, |ns| ns / 1000));
        batch.clear();
        self.output.write_all(&self.text)
    }

    fn finish(mut self: Box<Self>, _metadata: &TraceMetadata) -> Result<Written, TraceError> {
        self.text.clear();
        let end_us = self.waited_us;
        for name in std::mem::take(&mut self.files).into_values() {
            self.line(end_us, format_args!("{name} close"));
        }
        let text = std::mem::take(&mut self.text);
        self.output.write_all(&text)?;
        let rows = self.rows;
        let bytes = self.output.finish()?;
        Ok(Written { rows, left_out: 0, bytes })
    }
}
