//! A disk without mechanics.

use agewell_config::{Form, keys, milliseconds, rate};

keys! {
    /// Access time and bandwidth (Matthews 1999, ch. 5): the table `[simple]` of a device file.
    #[derive(Copy, Eq)]
    pub struct SimpleParameters {
        /// paid by every transfer
        access_time_ns: u64 = "access_time_ms" milliseconds().required();
        /// bytes per second
        bandwidth_bytes_per_s: u64 = "bandwidth" rate().required();
    }
}
