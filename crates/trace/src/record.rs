//! The canonical records, as columns.
//!
//! A batch is a struct of arrays: hot loops walk plain values, and the Arrow form at the boundary is a copy of the
//! same columns under the same names.

/// Stands in a time column where the format does not carry that time.
pub const TIME_MISSING: u64 = u64::MAX;

/// Flag bits of a block record.
pub mod flag {
    /// A process waits for the request (known to be synchronous).
    pub const SYNCHRONOUS: u16 = 1;
    /// The host does not wait (known to be asynchronous). Neither bit: the format does not say.
    pub const ASYNCHRONOUS: u16 = 2;
    /// File-system metadata.
    pub const METADATA: u16 = 4;
    /// Read ahead of demand.
    pub const READ_AHEAD: u16 = 8;
}

/// Block requests as columns; every column has the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockBatch {
    /// When the driver first saw the request, ns from the start of the trace.
    pub enqueue_ns: Vec<u64>,
    /// When the device was given the request, ns from the start of the trace, or [`TIME_MISSING`].
    pub start_ns: Vec<u64>,
    /// When the device reported completion, ns from the start of the trace, or [`TIME_MISSING`].
    pub finish_ns: Vec<u64>,
    /// Device, numbered by the trace's metadata.
    pub device: Vec<u32>,
    /// First sector, 512 bytes.
    pub sector: Vec<u64>,
    /// Length in sectors of 512 bytes.
    pub sectors: Vec<u32>,
    /// [`agewell_core::Operation`] as its code.
    pub operation: Vec<u8>,
    /// Bits of [`flag`].
    pub flags: Vec<u16>,
    /// Issuing client or process, 0 if unknown.
    pub client: Vec<u32>,
}
