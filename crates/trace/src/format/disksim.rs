//! `DiskSim` ASCII (`DiskSim` 4.0 manual, section 4.1.1): arrival in ms, device, block, size in
//! blocks, flags.
//!
//! Blocks are sectors of 512 bytes. The flags are hexadecimal; bit 0 set means **read**. Times must
//! not go back.

use agewell_core::Operation;

use super::{Confidence, LineFormat, Sample};
use crate::error::Problem;
use crate::fields::{Fields, integer, integer32, need, scaled};
use crate::record::BlockRow;
use crate::reorder_window::ReorderWindow;

/// Bit 0 of the flags: read (`disksim_reqflags.h`, READ).
const FLAG_READ: u64 = 1;

#[derive(Default)]
pub(crate) struct DisksimAscii;

/// A fraction of a millisecond in any time distinguishes it from `MQSim`, whose five columns look alike but
/// count whole ns; whole numbers alone are left to `MQSim` where they fit it.
pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    let fit = sample.fit_lines(&mut DisksimAscii);
    let fraction = sample
        .lines()
        .iter()
        .any(|line| Fields::new(line).word().is_some_and(|time| time.contains(&b'.')));
    if fraction {
        fit
    } else if sample.fit_lines(&mut super::mqsim::Mqsim) >= fit {
        Confidence::No
    } else {
        fit.min(Confidence::Possible)
    }
}

impl LineFormat for DisksimAscii {
    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let enqueue_ns = scaled(need(fields.word(), "time")?, 6, "time in ms")?;
        let device = integer32(need(fields.word(), "device")?, "device")?;
        let sector = integer(need(fields.word(), "block")?, "block")?;
        let sectors = integer32(need(fields.word(), "size")?, "size in blocks")?;
        let flags = hexadecimal(need(fields.word(), "flags")?)?;
        // A sixth column, the batch number, is allowed by the manual's batch variant.
        let _batch = fields.word();
        if !fields.rest().is_empty() {
            return Err(Problem::field("more than six columns: there is also", fields.rest()));
        }
        let operation =
            if flags & FLAG_READ != 0 { Operation::Read } else { Operation::Write } as u8;
        let device = reorder_window.devices.numbered(device, &mut reorder_window.metadata)?;
        reorder_window.push(BlockRow {
            enqueue_ns,
            device,
            sector,
            sectors,
            operation,
            ..BlockRow::default()
        })
    }
}

fn hexadecimal(field: &[u8]) -> Result<u64, Problem> {
    let digits = field.strip_prefix(b"0x").unwrap_or(field);
    std::str::from_utf8(digits)
        .ok()
        .filter(|digits| !digits.is_empty() && !digits.starts_with(['+', '-']))
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .filter(|&flags| u32::try_from(flags).is_ok())
        .ok_or_else(|| Problem::field("flags must be a hexadecimal number, not", field))
}
