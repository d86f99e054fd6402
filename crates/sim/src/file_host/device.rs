//! A host as the device of a file system.

use agewell_layout::file_system::{FileDevice, FileTransfer, Urgency};

use super::FileHost;

impl FileDevice for FileHost {
    fn read(&mut self, transfer: FileTransfer) {
        let (sector, sectors) = (transfer.sector, u64::from(transfer.sectors));
        match transfer.urgency {
            Urgency::Asynchronous => self.read_next(sector, sectors),
            Urgency::Synchronous | Urgency::Delayed => FileHost::read(self, sector, sectors),
        }
    }

    fn write(&mut self, transfer: FileTransfer) {
        let (sector, sectors) = (transfer.sector, u64::from(transfer.sectors));
        match transfer.urgency {
            Urgency::Synchronous => self.write_synchronously(sector, sectors),
            Urgency::Asynchronous => self.write_asynchronously(sector, sectors),
            Urgency::Delayed => self.write_delayed(sector, sectors),
        }
    }
}
