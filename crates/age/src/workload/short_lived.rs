//! Files that live within one day: what nightly snapshots do not see.
//!
//! Smith & Seltzer (1996, §3.1) took them from traces of NFS requests of several days: all files
//! created and deleted within 24 hours, sorted by day and directory. For each day of the snapshots
//! one day of the traces is picked at random ([`super::DayMixer`] places its files). Those traces
//! are not at hand: [`NfsLike`] makes days with their published traits, and
//! [`super::trace::short_lived_days`] takes days from a file-operation trace.
//!
//! | published | here |
//! |---|---|
//! | several days, one picked at random for each day (§3.1) | `days`, picked by the mixer |
//! | most files live less than a day (Ousterhout 1985, Baker 1991, as quoted ibid.) | all of these do |
//! | of files 65 to 80 % live less than 30 s, of bytes 4 to 27 % (Baker 1991) | 72 and 15 % |
//! | of bytes about half live less than 5 minutes (Ousterhout 1985) | half |
//! | files of a directory share its period of activity (§3.1: shifted to the peak) | sessions |
//!
//! The three shares fix the three numbers of the lives (in doublings, those of files and of bytes are
//! both normal, the latter further along by `life_per_size` x `size_doublings`^2 x ln 2). The two
//! studies are quoted from memory; their texts were not at hand.
//!
//! Chosen by us: directories take files in Zipf's proportions; days differ in volume by a quarter
//! either way in the mean; a directory's files come within a session of about two hours.

use agewell_config::{Form, count, keys, number, whole};
use agewell_core::{DAY_NS, RandomStreams, Stream, uniform_below};

use super::by_keys::by_keys;
use super::draws::{geometric, normal, power_of_two, zipf};

const SECOND_NS: u64 = 1_000_000_000;
/// Length of a session, two deviations either way, ns: two hours.
const SESSION_NS: f64 = 7.2e12;

/// One file that is made and removed on the same day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShortFile {
    /// When it is made, ns from midnight of its day.
    pub create_ns: u64,
    /// How long it lives, ns; it is gone before the day ends.
    pub life_ns: u64,
    /// Its length, bytes.
    pub bytes: u64,
}

/// The short-lived files of one day by directory, the directory with most of them first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShortLivedDay {
    /// Files of each directory by the time they are made.
    pub directories: Vec<Vec<ShortFile>>,
}

impl ShortLivedDay {
    /// Sorts files by time and directories by how many they have, the earliest first among equals.
    #[must_use]
    pub fn new(mut directories: Vec<Vec<ShortFile>>) -> Self {
        directories.retain(|files| !files.is_empty());
        for files in &mut directories {
            files.sort_unstable();
        }
        directories.sort_by_key(|files| (usize::MAX - files.len(), files[0]));
        Self { directories }
    }

    /// Files of the day.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.directories.iter().map(|files| files.len() as u64).sum()
    }

    /// Bytes of the files of the day.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.directories.iter().flatten().map(|file| file.bytes).sum()
    }
}

keys! {
    /// Days of short-lived files like those of an NFS server.
    pub struct NfsLike {
        /// days of trace
        days: u32 = "days" count().to(36_500).or(14);
        /// directories used on a day
        directories: u32 = "directories" count().to(65_536).or(24);
        /// files made one right after another
        batch_files: f64 = "batch_files" number(0.0, 1e9).or(6.0);
        /// half of the files are smaller before they are scaled, bytes
        median_bytes: f64 = "median_bytes" number(0.0, 1e15).or(8_192.0);
        /// two thirds of them lie within this number of doublings of the median
        size_doublings: f64 = "size_doublings" number(0.0, 64.0).or(3.0);
        /// no file is longer, bytes
        bytes_max: u64 = "bytes_max" whole().from(1 << 10).to(1 << 50).or(8 << 20);
        /// half of the files of the median length live longer than this, seconds
        life_s: f64 = "life_s" number(1e-9, 86_400.0).or(8.2);
        /// doublings of the life for each doubling of the length
        life_per_size: f64 = "life_per_size" number(-64.0, 64.0).or(0.83);
        /// two thirds of the files of one length live within this number of doublings of its median life
        life_doublings: f64 = "life_doublings" number(0.0, 64.0).or(2.0);
    }
}

by_keys!(NfsLike);

impl NfsLike {
    /// Makes the days so that, each taken as often as `picks` says, there are `files` files of
    /// `bytes` bytes in all: to within one file a day, and a byte a file.
    ///
    /// # Panics
    /// If there is not one pick for each day.
    #[must_use]
    pub fn make(
        &self,
        picks: &[u64],
        files: u64,
        bytes: u64,
        streams: RandomStreams,
    ) -> Vec<ShortLivedDay> {
        assert_eq!(picks.len(), self.days as usize);
        let mut stream = streams.stream("short-lived files");
        let volumes: Vec<f64> =
            picks.iter().map(|_| power_of_two(0.35 * normal(&mut stream))).collect();
        let all: f64 =
            picks.iter().zip(&volumes).map(|(&count, volume)| count as f64 * volume).sum();
        let mut days: Vec<ShortLivedDay> = volumes
            .iter()
            .map(|volume| self.day((files as f64 * volume / all).round() as u64, &mut stream))
            .collect();
        self.scale(&mut days, picks, bytes);
        days
    }

    fn day(&self, files: u64, stream: &mut Stream) -> ShortLivedDay {
        let mut directories = vec![Vec::new(); self.directories as usize];
        let centres: Vec<u64> = directories.iter().map(|_| working_time_ns(stream)).collect();
        let mut left = files;
        while left > 0 {
            let directory = zipf(stream, self.directories) as usize;
            let batch = u64::from(geometric(stream, self.batch_files)).min(left);
            let offset_ns = normal(stream) * SESSION_NS / 4.0;
            let mut create_ns = (centres[directory] as f64 + offset_ns)
                .clamp(0.0, DAY_NS as f64 / 2.0 * 1.9) as u64;
            for _ in 0..batch {
                let larger = self.size_doublings * normal(stream);
                let bytes = (self.median_bytes * power_of_two(larger)).max(1.0);
                let longer = self.life_per_size * larger + self.life_doublings * normal(stream);
                let life_s = (self.life_s * power_of_two(longer)).clamp(0.001, 86_400.0);
                directories[directory].push(ShortFile {
                    create_ns,
                    life_ns: (life_s * SECOND_NS as f64) as u64,
                    bytes: bytes as u64,
                });
                // The next file of a batch follows within two seconds.
                create_ns += uniform_below(stream, 2 * SECOND_NS);
            }
            left -= batch;
        }
        ShortLivedDay::new(directories)
    }

    /// Multiplies all lengths so that the picks have `bytes` in all; the longest stay at the limit.
    fn scale(&self, days: &mut [ShortLivedDay], picks: &[u64], bytes: u64) {
        let scaled = |file: &ShortFile, factor: f64| {
            ((file.bytes as f64 * factor) as u64).clamp(1, self.bytes_max)
        };
        let sum = |factor: f64| -> u64 {
            let of_day = |day: &ShortLivedDay| -> u64 {
                day.directories.iter().flatten().map(|file| scaled(file, factor)).sum()
            };
            days.iter().zip(picks).map(|(day, count)| count * of_day(day)).sum()
        };
        let factor = factor_for(bytes, sum);
        for file in days.iter_mut().flat_map(|day| day.directories.iter_mut().flatten()) {
            file.bytes = scaled(file, factor);
        }
    }
}

/// The factor at which the rising `sum` reaches `target`, found by halving; 2^40 where it never
/// does.
pub(crate) fn factor_for(target: u64, sum: impl Fn(f64) -> u64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while sum(high) < target && high < 1e12 {
        high *= 2.0;
    }
    // 60 halvings exhaust the bits of the factor.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if sum(middle) < target { low = middle } else { high = middle }
    }
    high
}

/// A time of day when people work, ns from midnight: from 9 to 23 o'clock, most often at 16.
pub(crate) fn working_time_ns(stream: &mut Stream) -> u64 {
    let hour_ns = 3_600 * SECOND_NS;
    9 * hour_ns + uniform_below(stream, 7 * hour_ns) + uniform_below(stream, 7 * hour_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Files die young, bytes do not: the published shares of both (with the cut at midnight and at
    // the longest file, which move the last one).
    #[test]
    fn large_files_live_longer() {
        let (files, bytes) = (40_000, 40_000 * 120_000);
        let model = NfsLike { days: 1, ..NfsLike::default() };
        let days = model.make(&[1], files, bytes, RandomStreams::new(1));
        let all: Vec<&ShortFile> = days[0].directories.iter().flatten().collect();
        let share = |within_s: u64, weight: fn(&ShortFile) -> u64| {
            let young = |file: &&&ShortFile| file.life_ns < within_s * SECOND_NS;
            let sum: u64 = all.iter().filter(young).map(|file| weight(file)).sum();
            sum as f64 / all.iter().map(|file| weight(file)).sum::<u64>() as f64
        };
        let files_30_s = share(30, |_| 1);
        let bytes_30_s = share(30, |file| file.bytes);
        let bytes_5_min = share(300, |file| file.bytes);
        assert!((0.65..0.80).contains(&files_30_s), "{files_30_s} of the files below 30 s");
        assert!((0.04..0.27).contains(&bytes_30_s), "{bytes_30_s} of the bytes below 30 s");
        assert!((0.40..0.65).contains(&bytes_5_min), "{bytes_5_min} of the bytes below 5 minutes");
    }
}
