//! The size of a drive whose file has no geometry.

use agewell_config::{Form, keys, whole};

keys! {
    /// The size of a drive whose file has no geometry.
    pub(super) struct CapacityTable {
        /// addressable size, in sectors of 512 bytes
        capacity_sectors: u64 = "capacity_sectors" whole().from(1).to(1 << 50).required();
    }
}
