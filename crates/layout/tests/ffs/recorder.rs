//! A device that records its transfers.

use agewell_layout::file_system::{Content, FileDevice, FileTransfer, Urgency};

/// What was transferred, in order.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) reads: Vec<FileTransfer>,
    pub(crate) writes: Vec<FileTransfer>,
}

impl Recorder {
    /// What was written since the last call.
    pub(crate) fn take_writes(&mut self) -> Vec<(Content, Urgency)> {
        let writes = std::mem::take(&mut self.writes);
        writes.into_iter().map(|write| (write.content, write.urgency)).collect()
    }

    /// Sectors of the data that was written since the last call, transfer by transfer.
    pub(crate) fn take_data(&mut self) -> Vec<(u64, u32)> {
        let writes = std::mem::take(&mut self.writes);
        let data = writes.into_iter().filter(|write| write.content == Content::Data);
        data.map(|write| (write.sector, write.sectors)).collect()
    }

    /// Sectors of the data that was read since the last call, transfer by transfer.
    pub(crate) fn take_reads(&mut self, content: Content) -> Vec<(u64, u32)> {
        let reads = std::mem::take(&mut self.reads);
        let data = reads.into_iter().filter(|read| read.content == content);
        data.map(|read| (read.sector, read.sectors)).collect()
    }
}

impl FileDevice for Recorder {
    fn read(&mut self, transfer: FileTransfer) {
        self.reads.push(transfer);
    }

    fn write(&mut self, transfer: FileTransfer) {
        self.writes.push(transfer);
    }
}
