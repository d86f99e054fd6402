//! How far a device file that was measured is from the disk that it describes.

use agewell_config::{Form, keys, number};

keys! {
    /// What fresh reads took on the model, beyond what the same reads took on the disk: the table
    /// `[uncertainty]` of a device file that `agewell probe` wrote.
    #[derive(Copy)]
    pub struct Uncertainty {
        /// mean of small random reads: the model's over the disk's, less 1, in per cent
        random_read_pct: f64 = "random_read_pct" number(-100.0, 1e6).required();
        /// the same of long reads that follow each other
        sequential_read_pct: f64 = "sequential_read_pct" number(-100.0, 1e6).required();
    }
}
