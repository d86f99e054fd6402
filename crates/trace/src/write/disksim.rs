//! `DiskSim` ASCII: arrival in ms with six decimals (exact ns), device, sector, sectors, flags (1
//! read, 0 write). Discards and flushes do not exist there and are counted as left out.

use std::io::Write as _;

use agewell_core::Operation;

use super::{BlockSink, Written};
use crate::error::TraceError;
use crate::metadata::TraceMetadata;
use crate::output::Output;
use crate::record::BlockBatch;

pub(super) struct DisksimSink {
    output: Output,
    text: Vec<u8>,
    rows: u64,
    left_out: u64,
}

impl DisksimSink {
    pub(super) fn new(output: Output) -> Self {
        Self { output, text: Vec::new(), rows: 0, left_out: 0 }
    }
}

impl BlockSink for DisksimSink {
    fn write(
        &mut self,
        batch: &mut BlockBatch,
        _metadata: &TraceMetadata,
    ) -> Result<(), TraceError> {
        self.text.clear();
        for index in 0..batch.len() {
            let row = batch.row(index);
            let flags = match Operation::from_code(row.operation) {
                Some(Operation::Read) => 1,
                Some(Operation::Write) => 0,
                _ => {
                    self.left_out += 1;
                    continue;
                }
            };
            let (ms, ns) = (row.enqueue_ns / 1_000_000, row.enqueue_ns % 1_000_000);
            writeln!(
                self.text,
                "{ms}.{ns:06} {} {} {} {flags}",
                row.device, row.sector, row.sectors
            )
            .expect("writing to memory cannot fail");
            self.rows += 1;
        }
        batch.clear();
        self.output.write_all(&self.text)
    }

    fn finish(self: Box<Self>, _metadata: &TraceMetadata) -> Result<Written, TraceError> {
        let (rows, left_out) = (self.rows, self.left_out);
        let bytes = self.output.finish()?;
        Ok(Written { rows, left_out, bytes })
    }
}
