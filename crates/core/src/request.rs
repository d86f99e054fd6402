//! The block request: the one type that flows from a trace through remapping and queue to the
//! device.

use serde::{Deserialize, Serialize};

use crate::{Sector, SectorCount, SimTime};

/// What a block request asks of the device. The discriminants are the canonical codes of the trace
/// columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Operation {
    /// Data from the device.
    Read = 0,
    /// Data to the device.
    Write = 1,
    /// The addressed sectors hold nothing any more (trim, unmap).
    Discard = 2,
    /// Everything written before must be durable; carries no address.
    Flush = 3,
}

impl Operation {
    /// Every operation, in the order of its code.
    pub const ALL: [Operation; 4] =
        [Operation::Read, Operation::Write, Operation::Discard, Operation::Flush];

    /// The operation with canonical code `code`, if there is one.
    #[must_use]
    #[inline]
    pub fn from_code(code: u8) -> Option<Operation> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name used in every file format and message of agewell.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Discard => "discard",
            Operation::Flush => "flush",
        }
    }

    /// Whether the request moves data between host and medium.
    #[must_use]
    #[inline]
    pub fn transfers_data(self) -> bool {
        matches!(self, Operation::Read | Operation::Write)
    }
}

/// One request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRequest {
    /// When the driver first saw the request.
    pub enqueue: SimTime,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: SectorCount,
    /// What is asked.
    pub operation: Operation,
    /// Whether a process waits for it.
    pub synchronous: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_no_other_code_is_known() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_code(operation as u8), Some(operation));
        }
        assert_eq!(Operation::from_code(4), None);
    }
}
