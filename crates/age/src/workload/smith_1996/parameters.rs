//! Everything that decides the workload: what is published, and what was chosen.

use std::collections::BTreeMap;

use agewell_config::{
    Form, Keyed, count, flag, keys, list, natural, number, pair, table_of, text, whole,
};
use serde_json::Value;

use crate::AgeError;
use crate::workload::by_keys::by_keys;
use crate::workload::short_lived::NfsLike;

const MEBIBYTE: u64 = 1 << 20;

keys! {
    /// A kind of directory and of the files in it.
    pub struct Kind {
        /// what it holds
        name: String = "name" text().required();
        /// its share of the directories, in hundredths; all kinds together have 100
        share_pct: u32 = "share_pct" natural().to(100).required();
        /// half of its files are smaller before they are scaled, bytes
        median_bytes: f64 = "median_bytes" number(0.0, 1e15).required();
        /// two thirds of them lie within this number of doublings of the median
        size_doublings: f64 = "size_doublings" number(0.0, 64.0).required();
        /// files that appear together, in the mean
        batch_files: f64 = "batch_files" number(0.0, 1e9).required();
    }
}

/// How full the file system is in the evening. The first, the highest and "mostly above 70" are
/// published (§3.1), the days are not.
const UTILIZATION_PATH: [(u32, f64); 13] = [
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
];

fn usual_kinds() -> Vec<Kind> {
    let kind = |name: &str, share_pct, median_bytes, size_doublings, batch_files| Kind {
        name: name.to_owned(),
        share_pct,
        median_bytes,
        size_doublings,
        batch_files,
    };
    vec![
        kind("source", 50, 3_000.0, 1.8, 12.0),
        kind("documents", 22, 6_000.0, 2.0, 3.0),
        kind("mail", 10, 9_000.0, 2.4, 1.5),
        kind("output", 12, 16_000.0, 2.4, 8.0),
        kind("traces", 6, 60_000.0, 2.4, 3.0),
    ]
}

keys! {
    /// Parameters of the workload of 1996.
    pub struct Smith1996Parameters {
        /// days
        <"1996, figure 2">
        days: u32 = "days" natural().from(2).to(36_500).or(300);
        /// cylinder groups
        <"1996, table 1">
        groups: u32 = "groups" count().to(65_536).or(27);
        /// bytes of the file system
        <"1996, table 1">
        file_system_bytes: u64 = "file_system_bytes"
            whole().from(MEBIBYTE).to(1 << 50).or(502 * MEBIBYTE);
        /// share of it that ordinary users do not get, per cent
        <"newfs of the time">
        minfree_pct: u64 = "minfree_pct" whole().to(99).or(10);
        /// files made with their content, and files removed
        <"1996, section 3.1">
        file_operations: u64 = "file_operations" whole().to(10_000_000_000).or(800_000);
        /// bytes written
        <"1996, section 3.1">
        written_bytes: u64 = "written_bytes" whole().or(48_600_000_000);
        /// files at the end
        <"1996, section 5.2">
        files_at_end: u64 = "files_at_end" whole().to(100_000_000).or(8_774);
        /// bytes allocated to them
        <"1996, section 5.2: 59.5 MB over 19 %">
        allocated_bytes_at_end: u64 = "allocated_bytes_at_end"
            whole().or(595 * MEBIBYTE / 10 * 100 / 19);
        /// the last days whose changes make a file a hot one
        <"1996, section 5.2: a month">
        recent_days: u32 = "recent_days" count().or(30);
        /// files modified in them
        <"1996, section 5.2">
        recent_files: u64 = "recent_files" whole().from(1).or(929);
        /// bytes allocated to those
        <"1996, section 5.2">
        recent_allocated_bytes: u64 = "recent_allocated_bytes" whole().or(595 * MEBIBYTE / 10);
        /// how full the file system is in the evening of a day, per cent of all of it: days ascending,
        /// straight lines between; the last day follows from the files at the end
        <"1996, section 3.1; the days are ours">
        utilization_path: Vec<(u32, f64)> = "utilization_path"
            list(pair(natural(), number(0.0, 100.0))).or(UTILIZATION_PATH.to_vec()) => "13 points";
        /// the files of the first snapshot are made among the first day's activity, its short-lived
        /// files between them, or all before it: so the first snapshot is held against an empty file
        /// system like any other against its predecessor
        <"ours">
        begin_within_first_day: bool = "begin_within_first_day" flag().or(true);
        /// directories that the files lie in before they are sorted by group; ten files each in the
        /// end
        <"ours">
        directories: u32 = "directories" natural().to(10_000_000).or(880);
        /// directories that change on a usual day: two for each of the four users
        <"ours">
        active_directories: u32 = "active_directories" natural().or(8);
        /// days that a directory stays active, in the mean
        <"ours">
        active_days: f64 = "active_days" number(1.0, 1e9).or(10.0);
        /// share of the files at the end that have been written again at least once, per cent
        <"ours">
        rewritten_pct: u32 = "rewritten_pct" natural().to(100).or(25);
        /// how often those were, in the mean
        <"ours">
        rewrites: f64 = "rewrites" number(0.0, 1e9).or(3.0);
        /// kinds of directories
        <"ours">
        kinds: Vec<Kind> = "kinds" list(table_of::<Kind>()).or(usual_kinds()) => "5 kinds";
        /// no long-lived file is longer, bytes
        <"ours">
        bytes_max: u64 = "bytes_max" whole().from(1 << 16).to(1 << 50).or(12 * MEBIBYTE);
        /// the short-lived files
        <"ours">
        short_lived: NfsLike = "short_lived"
            table_of::<NfsLike>().or(NfsLike::default()) => "as below";
    }
}

by_keys!(Smith1996Parameters);

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

    /// Says whether they go together; each by itself is in the range of its key.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), AgeError> {
        let path = &self.utilization_path;
        let checks = [
            (self.recent_days < self.days, "recent_days must be from 1 to days - 1"),
            (
                self.recent_files < self.files_at_end,
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
            (path.iter().all(|point| point.1 > 0.0), "utilization_path must lie above 0 percent"),
            (
                self.active_directories >= 1 && self.active_directories <= self.directories,
                "active_directories must be from 1 to directories",
            ),
            (
                self.kinds.iter().map(|kind| u64::from(kind.share_pct)).sum::<u64>() == 100,
                "the shares of the kinds must make 100",
            ),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(AgeError::Input(format!("smith-1996: {what}"))),
            None => Ok(()),
        }
    }

    /// As parameters of a workload's facts, by name.
    pub(super) fn described(&self) -> BTreeMap<String, Value> {
        let mut parameters = serde_json::Map::new();
        Self::resolve(self, &mut parameters);
        parameters.into_iter().collect()
    }
}
