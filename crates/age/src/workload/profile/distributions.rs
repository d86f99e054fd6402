//! The three text files of a profile: ages, sizes and directories of the files of a file system.
//!
//! Each begins with the number of its rows; every row has a value and a whole weight, and what
//! follows the rows is a remark. `age_distribution.txt`: upper end of a class of ages (no unit is
//! stated; only their proportions are used here), weight. `size_distribution.txt`: upper end of a
//! class of sizes in bytes, weight. `dir_distribution.txt`: depth, weight of the files that lie so
//! deep, number of directories in the directories of that depth. Eight published studies come in
//! this form with the Geriatrix tool (Kadekodi et al. 2018).

use std::path::Path;

use agewell_core::{Stream, uniform_below};

use crate::AgeError;
use crate::workload::draws::{power_of_two, unit};

/// No study has as many classes; a longer file is another one.
const ROWS_MAX: usize = 10_000;
/// A file of this form has some hundred bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The deepest path of a file system (4,096 bytes of names of one letter) is half of this.
const DEPTH_MAX: u32 = 4_096;

/// Classes of values with weights; a value is drawn from within its class.
#[derive(Debug, Clone, PartialEq)]
pub struct Classes {
    /// Upper end of each class, ascending; the lower end is that of the class before.
    ends: Vec<f64>,
    /// Doublings from the lower to the upper end of each class.
    doublings: Vec<f64>,
    /// Sum of the weights up to and with each class.
    reach: Vec<u64>,
}

impl Classes {
    fn new(rows: &[(f64, u64)]) -> Result<Self, String> {
        let mut reach = Vec::with_capacity(rows.len());
        let mut sum = 0_u64;
        for &(_, weight) in rows {
            sum = sum.checked_add(weight).ok_or("the weights are too large")?;
            reach.push(sum);
        }
        if sum == 0 {
            return Err("all weights are zero".to_owned());
        }
        if rows.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err("the values must ascend".to_owned());
        }
        let ends: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let lower = std::iter::once(ends[0] / 2.0).chain(ends.iter().map(|&end| end.max(1.0)));
        let doublings = lower.zip(&ends).map(|(low, &high)| doublings(low, high)).collect();
        Ok(Self { ends, doublings, reach })
    }

    /// The end of the last class.
    #[must_use]
    pub fn end(&self) -> f64 {
        self.ends[self.ends.len() - 1]
    }

    /// Upper end of each class, ascending.
    #[must_use]
    pub fn ends(&self) -> &[f64] {
        &self.ends
    }

    /// The share of each class.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let all = self.reach[self.reach.len() - 1] as f64;
        let before = std::iter::once(&0).chain(&self.reach);
        before.zip(&self.reach).map(|(before, reach)| (reach - before) as f64 / all).collect()
    }

    fn class(&self, stream: &mut Stream) -> usize {
        let drawn = uniform_below(stream, self.reach[self.reach.len() - 1]);
        self.reach.partition_point(|&reach| reach <= drawn)
    }

    /// A value from within a class, every value as likely.
    pub(super) fn even(&self, stream: &mut Stream) -> f64 {
        let class = self.class(stream);
        let low = if class == 0 { 0.0 } else { self.ends[class - 1] };
        low + (self.ends[class] - low) * (1.0 - unit(stream))
    }

    /// A value from within a class, every doubling as likely; the first class has one doubling.
    pub(super) fn doubling(&self, stream: &mut Stream) -> f64 {
        let class = self.class(stream);
        self.ends[class] / power_of_two(self.doublings[class] * unit(stream))
    }

    /// The end of a class, as drawn.
    pub(super) fn exact(&self, stream: &mut Stream) -> f64 {
        self.ends[self.class(stream)]
    }
}

/// How often `low` must be doubled to be `high`, by halving: exact enough, and the same everywhere;
/// nothing where it is not below.
fn doublings(low: f64, high: f64) -> f64 {
    if low >= high {
        return 0.0;
    }
    let (mut least, mut most) = (0.0, 64.0);
    for _ in 0..40 {
        let middle = f64::midpoint(least, most);
        if low * power_of_two(middle) < high { least = middle } else { most = middle }
    }
    most
}

/// A profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Ages, in a unit of their own.
    pub ages: Classes,
    /// Sizes, bytes.
    pub sizes: Classes,
    /// Depths of files.
    pub depths: Classes,
    /// Directories at each depth from 1, at least one where files lie as deep or deeper.
    pub directories: Vec<u32>,
}

impl Profile {
    /// Reads the profile in the folder `path`.
    ///
    /// # Errors
    /// If a file is missing or is not of this form.
    pub fn read(path: &Path) -> Result<Self, AgeError> {
        let ages = rows(&path.join("age_distribution.txt"), 2)?;
        let sizes = rows(&path.join("size_distribution.txt"), 2)?;
        let (directories_path, rows_of_directories) = {
            let path = path.join("dir_distribution.txt");
            let rows = rows(&path, 3)?;
            (path, rows)
        };
        let classes = |name: &str, rows: &[Row]| {
            let pairs: Vec<(f64, u64)> = rows.iter().map(|row| (row.value, row.weight)).collect();
            Classes::new(&pairs).map_err(|what| wrong(&path.join(name), &what))
        };
        let depths = classes("dir_distribution.txt", &rows_of_directories)?;
        let directories =
            directories(&rows_of_directories).map_err(|what| wrong(&directories_path, &what))?;
        Ok(Self {
            ages: classes("age_distribution.txt", &ages)?,
            sizes: classes("size_distribution.txt", &sizes)?,
            depths,
            directories,
        })
    }
}

/// Directories at each depth from 1. A row counts those *in* the directories of its depth, so they
/// are one deeper; where files lie deeper than directories are counted, there is one on each level.
fn directories(rows: &[Row]) -> Result<Vec<u32>, String> {
    let deepest = rows.iter().filter(|row| row.weight > 0).map(|row| row.value).fold(0.0, f64::max);
    if deepest > f64::from(DEPTH_MAX) || rows.iter().any(|row| row.value.fract() != 0.0) {
        return Err(format!("depths must be whole and at most {DEPTH_MAX}"));
    }
    let counted = |depth: u32| {
        let row = rows.iter().find(|row| row.value as u32 + 1 == depth);
        row.map_or(1, |row| u32::try_from(row.third).unwrap_or(u32::MAX).clamp(1, 1 << 20))
    };
    Ok((1..=deepest as u32).map(counted).collect())
}

struct Row {
    value: f64,
    weight: u64,
    third: u64,
}

fn wrong(path: &Path, what: &str) -> AgeError {
    AgeError::Input(format!("{}: {what}; give a folder with a profile", path.display()))
}

fn rows(path: &Path, columns: usize) -> Result<Vec<Row>, AgeError> {
    let wrong = |what: String| wrong(path, &what);
    let text = agewell_core::read_bounded(path, FILE_BYTES_MAX)
        .map_err(|why| wrong(format!("cannot be read: {why}")))?;
    let text = String::from_utf8(text).map_err(|_| wrong("is not UTF-8 text".to_owned()))?;
    let mut lines = text.lines();
    let count = lines.next().and_then(|line| line.trim().parse::<usize>().ok());
    let count = count.filter(|count| (1..=ROWS_MAX).contains(count));
    let count = count.ok_or_else(|| {
        wrong(format!("line 1: must be the number of rows, from 1 to {ROWS_MAX}"))
    })?;
    (0..count)
        .map(|row| {
            let place = row + 2;
            let line = lines.next().ok_or_else(|| wrong(format!("line {place}: is missing")))?;
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.len() != columns {
                return Err(wrong(format!("line {place}: must have {columns} numbers")));
            }
            let value = fields[0].parse::<f64>().ok();
            let value = value.filter(|value| (0.0..1e15).contains(value));
            let whole = |index: usize| fields.get(index).map_or(Some(0), |text| text.parse().ok());
            match (value, whole(1), whole(2)) {
                (Some(value), Some(weight), Some(third)) => Ok(Row { value, weight, third }),
                _ => Err(wrong(format!("line {place}: '{line}' are not numbers from 0 on"))),
            }
        })
        .collect()
}
