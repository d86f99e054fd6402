//! `MQSim` ASCII traces: arrival time in **ns**, device, start sector, sectors, type; **0 is
//! write**, 1 is read.
//!
//! `MQSim` itself ignores the device column; it is kept here, for `--filter device=` to use or not.

use agewell_core::Operation;

use super::{Confidence, LineFormat, Sample};
use crate::error::Problem;
use crate::fields::{Fields, integer, integer32, need, times};
use crate::record::BlockRow;
use crate::reorder_window::ReorderWindow;

#[derive(Default)]
pub(crate) struct Mqsim;

pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    sample.fit_lines(&mut Mqsim)
}

impl LineFormat for Mqsim {
    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let time_ns = integer(need(fields.word(), "time")?, "time in ns")?;
        let device = integer32(need(fields.word(), "device")?, "device")?;
        let sector = integer(need(fields.word(), "start sector")?, "start sector")?;
        let sectors = integer32(need(fields.word(), "sectors")?, "size in sectors")?;
        let operation = match need(fields.word(), "type")? {
            b"0" => Operation::Write,
            b"1" => Operation::Read,
            other => return Err(Problem::field("type must be 0 (write) or 1 (read), not", other)),
        };
        if !fields.rest().is_empty() {
            return Err(Problem::field("more than five columns: there is also", fields.rest()));
        }
        let enqueue_ns = times(time_ns, 1, "time in ns")?;
        let device = reorder_window.devices.numbered(device, &mut reorder_window.metadata)?;
        reorder_window.push(BlockRow {
            enqueue_ns,
            device,
            sector,
            sectors,
            operation: operation as u8,
            ..BlockRow::default()
        })
    }
}
