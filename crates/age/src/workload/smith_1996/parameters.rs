//! Everything that decides the workload: what is published, and what was chosen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::AgeError;
use crate::workload::short_lived::NfsLike;

const MEBIBYTE: u64 = 1 << 20;

/// A kind of directory and of the files in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// What it holds.
    pub name: String,
    /// Its share of the directories, in hundredths; all kinds together have 100.
    pub share_pct: u32,
    /// Half of its files are smaller before they are scaled, bytes.
    pub median_bytes: f64,
    /// Two thirds of them lie within this number of doublings of the median.
    pub size_doublings: f64,
    /// Files that appear together, in the mean.
    pub batch_files: f64,
}

/// Parameters of the workload of 1996.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Smith1996Parameters {
    /// Days (Smith & Seltzer 1996, figure 2).
    pub days: u32,
    /// Cylinder groups (table 1).
    pub groups: u32,
    /// Bytes of the file system (table 1).
    pub file_system_bytes: u64,
    /// Share of it that ordinary users do not get, percent (newfs's default of the time).
    pub minfree_pct: u64,
    /// Files made with their content, and files removed (§3.1).
    pub file_operations: u64,
    /// Bytes written (§3.1).
    pub written_bytes: u64,
    /// Files at the end (§5.2).
    pub files_at_end: u64,
    /// Bytes allocated to them: 59.5 MB over 19 % (§5.2).
    pub allocated_bytes_at_end: u64,
    /// The last days whose changes make a file a hot one: a month (§5.2).
    pub recent_days: u32,
    /// Files modified in them (§5.2).
    pub recent_files: u64,
    /// Bytes allocated to those (§5.2).
    pub recent_allocated_bytes: u64,
    /// How full the file system is in the evening of a day, percent of all of it: days ascending,
    /// straight lines between. The first, the highest and "mostly above 70" are published (§3.1), the days are
    /// not; the last day follows from the files at the end.
    pub utilization_path: Vec<(u32, f64)>,
    /// Whether the files of the first snapshot are made among the first day's activity (its
    /// short-lived files between them), or all before it. Chosen by us.
    pub begin_within_first_day: bool,
    /// Directories that the files lie in before they are put together by group; ten files each in the
    /// end. Chosen by us.
    pub directories: u32,
    /// Directories that change on a usual day: two for each of the four users. Chosen by us.
    pub active_directories: u32,
    /// Days that a directory stays active, in the mean. Chosen by us.
    pub active_days: f64,
    /// Share of the files at the end that have been written again at least once, percent, and how
    /// often those were, in the mean. Chosen by us.
    pub rewritten_pct: u32,
    /// See `rewritten_pct`.
    pub rewrites: f64,
    /// Kinds of directories. Chosen by us.
    pub kinds: Vec<Kind>,
    /// No long-lived file is longer, bytes. Chosen by us.
    pub bytes_max: u64,
    /// The short-lived files.
    pub short_lived: NfsLike,
}

impl Default for Smith1996Parameters {
    fn default() -> Self {
        let kind = |name: &str, share_pct, median_bytes, size_doublings, batch_files| Kind {
            name: name.to_owned(),
            share_pct,
            median_bytes,
            size_doublings,
            batch_files,
        };
        Self {
            days: 300,
            groups: 27,
            file_system_bytes: 502 * MEBIBYTE,
            minfree_pct: 10,
            file_operations: 800_000,
            written_bytes: 48_600_000_000,
            files_at_end: 8_774,
            allocated_bytes_at_end: 595 * MEBIBYTE / 10 * 100 / 19,
            recent_days: 30,
            recent_files: 929,
            recent_allocated_bytes: 595 * MEBIBYTE / 10,
            utilization_path: vec![
                (0, 9.0),
                (15, 24.0),
                (40, 52.0),
                (60, 70.5),
                (90, 76.0),
                (110, 77.0),
                (140, 83.0),
                (150, 78.0),
                (185, 84.0),
                (215, 89.0),
                (220, 86.0),
                (245, 80.0),
                (270, 72.0),
            ],
            begin_within_first_day: true,
            directories: 880,
            active_directories: 8,
            active_days: 10.0,
            rewritten_pct: 25,
            rewrites: 3.0,
            kinds: vec![
                kind("source", 50, 3_000.0, 1.8, 12.0),
                kind("documents", 22, 6_000.0, 2.0, 3.0),
                kind("mail", 10, 9_000.0, 2.4, 1.5),
                kind("output", 12, 16_000.0, 2.4, 8.0),
                kind("traces", 6, 60_000.0, 2.4, 3.0),
            ],
            bytes_max: 12 * MEBIBYTE,
            short_lived: NfsLike::default(),
        }
    }
}

impl Smith1996Parameters {
    /// Bytes that ordinary users can have.
    #[must_use]
    pub fn usable_bytes(&self) -> u64 {
        self.file_system_bytes * (100 - self.minfree_pct) / 100
    }

    /// How full the file system is to be in the evening of `day`, bytes.
    pub(super) fn path_bytes(&self, day: u32) -> u64 {
        let all = self.file_system_bytes as f64;
        let last = (self.days - 1, self.allocated_bytes_at_end as f64 / all * 100.0);
        let mut before = self.utilization_path[0];
        for &after in self.utilization_path[1..].iter().chain([&last]) {
            if day <= after.0 {
                let length = f64::from(after.0 - before.0).max(1.0);
                let part = f64::from(day - before.0) / length;
                return ((before.1 + (after.1 - before.1) * part) / 100.0 * all) as u64;
            }
            before = after;
        }
        self.allocated_bytes_at_end
    }

    /// Says whether they make sense.
    ///
    /// # Errors
    /// The first one that does not.
    pub fn check(&self) -> Result<(), AgeError> {
        let path = &self.utilization_path;
        let checks = [
            (self.days >= 2 && self.days <= 36_500, "days must be from 2 to 36,500"),
            (self.groups >= 1 && self.groups <= 65_536, "groups must be from 1 to 65,536"),
            (
                self.recent_days >= 1 && self.recent_days < self.days,
                "recent_days must be from 1 to days - 1",
            ),
            (self.minfree_pct < 100, "minfree_pct must be below 100"),
            (
                self.file_system_bytes >= MEBIBYTE && self.file_system_bytes <= 1 << 50,
                "file_system_bytes must be from 1 MiB to 1 PiB",
            ),
            (
                self.files_at_end <= 100_000_000 && self.file_operations <= 10_000_000_000,
                "at most 100 million files and 10 billion operations",
            ),
            (
                self.recent_files >= 1 && self.recent_files < self.files_at_end,
                "recent_files must be from 1 to files_at_end - 1",
            ),
            (
                self.recent_allocated_bytes < self.allocated_bytes_at_end
                    && self.allocated_bytes_at_end <= self.usable_bytes(),
                "recent bytes must be below those at the end, and those must fit",
            ),
            (
                !path.is_empty()
                    && path[0].0 == 0
                    && path.windows(2).all(|pair| pair[0].0 < pair[1].0)
                    && path[path.len() - 1].0 < self.days,
                "utilization_path must begin at day 0, ascend, and end within the days",
            ),
            (
                path.iter().all(|point| point.1 > 0.0 && point.1 <= 100.0),
                "utilization_path must lie above 0 and up to 100 percent",
            ),
            (
                self.active_directories >= 1 && self.active_directories <= self.directories,
                "active_directories must be from 1 to directories",
            ),
            (self.directories <= 10_000_000, "at most 10 million directories"),
            (self.active_days >= 1.0, "active_days must be at least 1"),
            (self.rewritten_pct <= 100, "rewritten_pct must be at most 100"),
            (
                self.kinds.iter().map(|kind| kind.share_pct).sum::<u32>() == 100,
                "the shares of the kinds must make 100",
            ),
            (
                self.kinds.iter().all(|kind| kind.share_pct <= 100),
                "the shares of the kinds must make 100",
            ),
            (
                self.bytes_max >= 1 << 16 && self.bytes_max <= 1 << 50,
                "bytes_max must be from 64 KiB to 1 PiB",
            ),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(AgeError::Input(format!("smith-1996: {what}"))),
            None => self.short_lived.check(),
        }
    }

    /// As parameters of a workload's facts, by name.
    pub(super) fn described(&self) -> BTreeMap<String, Value> {
        let value = serde_json::to_value(self).expect("plain data with text keys");
        match value {
            Value::Object(parameters) => parameters.into_iter().collect(),
            _ => unreachable!("a struct is an object"),
        }
    }
}
