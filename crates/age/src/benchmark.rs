//! Benchmarks of a file system as it is: files written and read one after another, and the files
//! that were changed last.
//!
//! One plan, two ways to carry it out: on a simulated file system over a modelled device, and on
//! a directory of a real one.

#[cfg(target_os = "linux")]
pub mod real;
pub mod simulated;

/// Bytes written and read for each size of file (Smith & Seltzer 1996, §5.1; Seltzer et al. 1995,
/// §2.0).
pub const SEQUENTIAL_BYTES: u64 = 32 << 20;

/// Bytes that a program writes or reads at once (Smith & Seltzer 1996, §5.1).
pub const CALL_BYTES: u64 = 4 << 20;

/// Sizes of file from 1 KB to 32 MB: the powers of two, what lies between them where clusters of
/// 56 KB and indirect blocks at 96 KB make steps, and one block beyond those steps.
pub const FILE_SIZES_KIB: [u64; 30] = [
    1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 128, 192, 256, 384,
    512, 1024, 2048, 4096, 8192, 16384, 32768,
];

/// Files of one size, to be created, written and read in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequentialPlan {
    /// Bytes of each file.
    pub file_bytes: u64,
    /// How many.
    pub files: u32,
    /// Files of a directory, at most: 25 (1996), 100 (1995).
    pub files_per_directory: u32,
    /// Whether each file is synced once written.
    pub sync_each: bool,
}

impl SequentialPlan {
    /// As many files of `file_bytes` as make up `total_bytes`; at least one.
    #[must_use]
    pub fn new(
        file_bytes: u64,
        total_bytes: u64,
        files_per_directory: u32,
        sync_each: bool,
    ) -> Self {
        let files = (total_bytes / file_bytes.max(1)).max(1);
        let files = u32::try_from(files).unwrap_or(u32::MAX);
        Self { file_bytes, files, files_per_directory: files_per_directory.max(1), sync_each }
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.files) * self.file_bytes
    }

    /// Directories it takes.
    #[must_use]
    pub fn directories(&self) -> u32 {
        self.files.div_ceil(self.files_per_directory)
    }
}

/// The middle of `values` and their sample standard deviation.
#[must_use]
pub fn median_and_deviation(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = match sorted.len() {
        0 => return (f64::NAN, f64::NAN),
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    };
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if sorted.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    (median, deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_fills_what_it_is_given() {
        let plan = SequentialPlan::new(16 << 10, SEQUENTIAL_BYTES, 25, false);
        assert_eq!((plan.files, plan.directories()), (2048, 82));
        assert_eq!(plan.total_bytes(), SEQUENTIAL_BYTES);
        let odd = SequentialPlan::new(104 << 10, SEQUENTIAL_BYTES, 25, false);
        assert_eq!(odd.files, 315, "315.08 of them make up 32 MB");
        assert_eq!(SequentialPlan::new(64 << 20, SEQUENTIAL_BYTES, 25, false).files, 1);
    }

    #[test]
    fn the_middle_and_the_spread() {
        let (odd, deviation) = median_and_deviation(&[3.0, 1.0, 2.0]);
        assert!((odd - 2.0).abs() < 1e-12 && (deviation - 1.0).abs() < 1e-12);
        let (even, _) = median_and_deviation(&[4.0, 1.0, 2.0, 3.0]);
        assert!((even - 2.5).abs() < 1e-12);
        let (one, none) = median_and_deviation(&[7.0]);
        assert!((one - 7.0).abs() < 1e-12 && none.abs() < 1e-12);
        assert!(median_and_deviation(&[]).0.is_nan());
    }
}
