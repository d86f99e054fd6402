//! The canonical records, as columns.
//!
//! A batch is a struct of arrays: hot loops walk plain values, and the Arrow form at the boundary
//! is a copy of the same columns under the same names. Invariant: every column of a batch has the
//! same length.

/// Stands in a time column where the format does not carry that time.
pub const TIME_MISSING: u64 = u64::MAX;

/// Sectors of the largest device that a trace may speak of: its addresses in bytes, which several
/// formats carry, fit 64 bits. Readers refuse a request that reaches further, and filters make none.
pub const DEVICE_SECTORS_MAX: u64 = u64::MAX / agewell_core::SECTOR_BYTES;

/// Rows that readers put into one batch: large enough to hide per-batch costs, small enough for the
/// cache.
pub const BATCH_ROWS: usize = 8192;

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

/// One block request, for code that handles a single row at a time. Units as in [`BlockBatch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRow {
    /// As [`BlockBatch::enqueue_ns`].
    pub enqueue_ns: u64,
    /// As [`BlockBatch::start_ns`].
    pub start_ns: u64,
    /// As [`BlockBatch::finish_ns`].
    pub finish_ns: u64,
    /// As [`BlockBatch::device`].
    pub device: u32,
    /// As [`BlockBatch::sector`].
    pub sector: u64,
    /// As [`BlockBatch::sectors`].
    pub sectors: u32,
    /// As [`BlockBatch::operation`].
    pub operation: u8,
    /// As [`BlockBatch::flags`].
    pub flags: u16,
    /// As [`BlockBatch::client`].
    pub client: u32,
}

/// What one block request says beside device and operation where it says no more. Units as in
/// [`BlockBatch`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainRow {
    pub(crate) enqueue_ns: u64,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
}

impl Default for BlockRow {
    /// A row of which only the enqueue time, address and operation are still to be said: the other
    /// times are missing, nothing is known of flags and client.
    fn default() -> Self {
        Self {
            enqueue_ns: 0,
            start_ns: TIME_MISSING,
            finish_ns: TIME_MISSING,
            device: 0,
            sector: 0,
            sectors: 0,
            operation: 0,
            flags: 0,
            client: 0,
        }
    }
}

/// Applies one expression to every column of a batch.
macro_rules! each_column {
    ($batch:expr, $column:ident => $action:expr) => {{
        let batch = $batch;
        {
            let $column = &mut batch.enqueue_ns;
            $action;
        }
        {
            let $column = &mut batch.start_ns;
            $action;
        }
        {
            let $column = &mut batch.finish_ns;
            $action;
        }
        {
            let $column = &mut batch.device;
            $action;
        }
        {
            let $column = &mut batch.sector;
            $action;
        }
        {
            let $column = &mut batch.sectors;
            $action;
        }
        {
            let $column = &mut batch.operation;
            $action;
        }
        {
            let $column = &mut batch.flags;
            $action;
        }
        {
            let $column = &mut batch.client;
            $action;
        }
    }};
}

impl BlockBatch {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.enqueue_ns.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.enqueue_ns.is_empty()
    }

    /// Empties every column, keeping its memory.
    pub fn clear(&mut self) {
        each_column!(self, column => column.clear());
    }

    /// Makes room for `rows` more rows.
    pub fn reserve(&mut self, rows: usize) {
        each_column!(self, column => column.reserve(rows));
    }

    /// Drops every row from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        each_column!(self, column => column.truncate(rows));
    }

    /// Drops the first `rows` rows.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn drop_front(&mut self, rows: usize) {
        each_column!(self, column => { column.drain(..rows); });
    }

    /// Appends one row.
    #[inline]
    pub fn push(&mut self, row: BlockRow) {
        self.enqueue_ns.push(row.enqueue_ns);
        self.start_ns.push(row.start_ns);
        self.finish_ns.push(row.finish_ns);
        self.device.push(row.device);
        self.sector.push(row.sector);
        self.sectors.push(row.sectors);
        self.operation.push(row.operation);
        self.flags.push(row.flags);
        self.client.push(row.client);
    }

    /// Appends one row of which nothing else is known, and leaves the other columns behind until
    /// [`Self::complete`].
    #[inline]
    pub(crate) fn push_bare(
        &mut self,
        enqueue_ns: u64,
        device: u32,
        sector: u64,
        sectors: u32,
        operation: u8,
    ) {
        self.enqueue_ns.push(enqueue_ns);
        self.device.push(device);
        self.sector.push(sector);
        self.sectors.push(sectors);
        self.operation.push(operation);
    }

    /// [`Self::push_bare`] of all of `rows`, `most` of them at most; how many they are.
    pub(crate) fn push_plain(
        &mut self,
        device: u32,
        operation: u8,
        most: usize,
        rows: impl Iterator<Item = PlainRow>,
    ) -> usize {
        // The columns are made longer once for all, so that no row asks whether it fits.
        let (first, mut pushed) = (self.enqueue_ns.len(), 0);
        self.enqueue_ns.resize(first + most, 0);
        self.sector.resize(first + most, 0);
        self.sectors.resize(first + most, 0);
        let columns = self.enqueue_ns[first..].iter_mut().zip(&mut self.sector[first..]);
        for (((time, sector), sectors), row) in columns.zip(&mut self.sectors[first..]).zip(rows) {
            (*time, *sector, *sectors) = (row.enqueue_ns, row.sector, row.sectors);
            pushed += 1;
        }
        let rows = first + pushed;
        self.enqueue_ns.truncate(rows);
        self.sector.truncate(rows);
        self.sectors.truncate(rows);
        self.device.resize(rows, device);
        self.operation.resize(rows, operation);
        pushed
    }

    /// Brings all columns to one length: with what stands for nothing known.
    #[inline]
    pub(crate) fn complete(&mut self) {
        let (rows, unknown) = (self.enqueue_ns.len(), BlockRow::default());
        if self.client.len() < rows {
            self.start_ns.resize(rows, unknown.start_ns);
            self.finish_ns.resize(rows, unknown.finish_ns);
            self.flags.resize(rows, unknown.flags);
            self.client.resize(rows, unknown.client);
        }
    }

    /// The row at `index`.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn row(&self, index: usize) -> BlockRow {
        BlockRow {
            enqueue_ns: self.enqueue_ns[index],
            start_ns: self.start_ns[index],
            finish_ns: self.finish_ns[index],
            device: self.device[index],
            sector: self.sector[index],
            sectors: self.sectors[index],
            operation: self.operation[index],
            flags: self.flags[index],
            client: self.client[index],
        }
    }

    /// Overwrites the row at `index`.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn set_row(&mut self, index: usize, row: BlockRow) {
        self.enqueue_ns[index] = row.enqueue_ns;
        self.start_ns[index] = row.start_ns;
        self.finish_ns[index] = row.finish_ns;
        self.device[index] = row.device;
        self.sector[index] = row.sector;
        self.sectors[index] = row.sectors;
        self.operation[index] = row.operation;
        self.flags[index] = row.flags;
        self.client[index] = row.client;
    }

    /// Appends rows `range` of `other`.
    ///
    /// # Panics
    /// If `other` has no such rows.
    pub fn extend_from(&mut self, other: &BlockBatch, range: std::ops::Range<usize>) {
        self.enqueue_ns.extend_from_slice(&other.enqueue_ns[range.clone()]);
        self.start_ns.extend_from_slice(&other.start_ns[range.clone()]);
        self.finish_ns.extend_from_slice(&other.finish_ns[range.clone()]);
        self.device.extend_from_slice(&other.device[range.clone()]);
        self.sector.extend_from_slice(&other.sector[range.clone()]);
        self.sectors.extend_from_slice(&other.sectors[range.clone()]);
        self.operation.extend_from_slice(&other.operation[range.clone()]);
        self.flags.extend_from_slice(&other.flags[range.clone()]);
        self.client.extend_from_slice(&other.client[range]);
    }

    /// Asserts that every column has the same length: a batch that breaks this is our own bug.
    ///
    /// # Panics
    /// If a column is shorter or longer than the first.
    pub fn verify(&self) {
        let rows = self.enqueue_ns.len();
        assert_eq!(self.start_ns.len(), rows);
        assert_eq!(self.finish_ns.len(), rows);
        assert_eq!(self.device.len(), rows);
        assert_eq!(self.sector.len(), rows);
        assert_eq!(self.sectors.len(), rows);
        assert_eq!(self.operation.len(), rows);
        assert_eq!(self.flags.len(), rows);
        assert_eq!(self.client.len(), rows);
    }
}
