//! `DiskSim` validation traces: `R|W buffer block blocks response_us think_us`, measured on real
//! drives.
//!
//! One request at a time, and no absolute times: each request is issued its predecessor's think
//! time after its predecessor completed. On the trace's own time base the first is issued at 0,
//! `start = enqueue` (there is no queue) and `finish = enqueue + response`, so that think = next
//! enqueue - finish exactly. The last think time is dropped. The second column is what the drive's
//! buffer did; only one of the published traces has true values there.

use agewell_core::Operation;

use super::LineFormat;
use crate::error::Problem;
use crate::fields::{Fields, integer, integer32, need, scaled};
use crate::record::{BlockRow, flag};
use crate::reorder_window::ReorderWindow;

#[derive(Default)]
pub(crate) struct Validate {
    next_issue_ns: u64,
}

impl LineFormat for Validate {
    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let operation = match need(fields.word(), "operation")? {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            other => return Err(Problem::field("operation must be R or W, not", other)),
        };
        let buffer = need(fields.word(), "buffer")?;
        if !matches!(buffer, b"Hit" | b"Miss" | b"Doub" | b"Trip") {
            return Err(Problem::field("buffer must be Hit, Miss, Doub or Trip, not", buffer));
        }
        let sector = integer(need(fields.word(), "block")?, "block")?;
        let sectors = integer32(need(fields.word(), "size")?, "size in blocks")?;
        let response_ns = scaled(need(fields.word(), "response")?, 3, "response in us")?;
        let think_ns = scaled(need(fields.word(), "think")?, 3, "think time in us")?;
        if !fields.rest().is_empty() {
            return Err(Problem::field("more than six columns: there is also", fields.rest()));
        }
        let enqueue_ns = self.next_issue_ns;
        let overflow = || Problem::new("response and think times add up beyond 292 years");
        let finish_ns = enqueue_ns.checked_add(response_ns).ok_or_else(overflow)?;
        let next_issue_ns =
            finish_ns.checked_add(think_ns).filter(|&ns| ns < u64::MAX / 2).ok_or_else(overflow)?;
        let device = reorder_window.devices.numbered(0, &mut reorder_window.metadata)?;
        reorder_window.push(BlockRow {
            enqueue_ns,
            start_ns: enqueue_ns,
            finish_ns,
            device,
            sector,
            sectors,
            operation: operation as u8,
            flags: flag::SYNCHRONOUS,
            ..BlockRow::default()
        })?;
        self.next_issue_ns = next_issue_ns;
        Ok(())
    }
}
