//! All benchmarks of a mounted file system, as often as asked, and their medians.
//!
//! Repetitions go round: all sizes once, then all again, so that what changes on the machine
//! meanwhile does not fall on one size.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CacheControl, RealBench, RealPhase, hot};
use crate::benchmark::{FILE_SIZES_KIB, SEQUENTIAL_BYTES, SequentialPlan, median_and_deviation};
use crate::path_text;
use crate::{AgeError, LayoutCounts};

/// Repetitions by default (Smith & Seltzer 1996, §5.1).
const REPETITIONS: u32 = 10;

/// Files of a directory by default (Smith & Seltzer 1996, §5.1).
const FILES_PER_DIRECTORY: u32 = 25;

/// Days before the last modification that make a file hot (Smith & Seltzer 1996, §5.2: the last
/// month).
const HOT_DAYS: u64 = 30;

/// Benchmarks as they are asked for, in JSON.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealSuite {
    #[serde(deserialize_with = "path_text::read")]
    directory: PathBuf,
    /// Bytes of the files; none measures hot files or the device alone.
    #[serde(default)]
    sizes: Option<Vec<String>>,
    #[serde(default)]
    total: Option<String>,
    #[serde(default)]
    files_per_directory: Option<u32>,
    /// Without and with a sync of each file.
    #[serde(default)]
    sync_each: Option<Vec<bool>>,
    #[serde(default)]
    repetitions: Option<u32>,
    #[serde(default)]
    hot: bool,
    #[serde(default, deserialize_with = "path_text::read")]
    hot_log: Option<PathBuf>,
    #[serde(default)]
    hot_days: Option<u64>,
    #[serde(default)]
    overwrite_hot: bool,
    #[serde(default, deserialize_with = "path_text::read")]
    device: Option<PathBuf>,
    /// Empty the caches of the whole system between phases.
    #[serde(default)]
    drop_caches: bool,
    #[serde(default)]
    seed: Option<u64>,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Measured {
    /// `create`, `read`, `overwrite`, `hot-read`, `hot-overwrite`, `raw-read`.
    phase: &'static str,
    /// Bytes of each file; none where they differ.
    file_bytes: Option<u64>,
    sync_each: bool,
    repetition: u32,
    bytes: u64,
    time_ns: u64,
    layout_optimal: u64,
    layout_counted: u64,
}

/// Notified how many of how many benchmarks are done; to go on is true.
pub type Tell<'a> = dyn FnMut(u64, u64) -> bool + 'a;

impl RealSuite {
    /// Reads `text`, JSON.
    ///
    /// # Errors
    /// If it is not a request.
    pub fn read(text: &str) -> Result<Self, AgeError> {
        serde_json::from_str(text)
            .map_err(|why| AgeError::Input(format!("the request to measure a target: {why}")))
    }

    /// Runs it; the record with every measurement and their medians.
    ///
    /// # Errors
    /// If a value makes no sense, or a benchmark fails.
    pub fn run(&self, tell: &mut Tell<'_>) -> Result<Value, AgeError> {
        let plans = self.plans()?;
        let total_bytes = self.total_bytes()?;
        let repetitions = self.repetitions.unwrap_or(REPETITIONS).max(1);
        let hot = self.hot_files()?;
        let cache = if self.drop_caches { CacheControl::DropCaches } else { CacheControl::Advise };
        let mut bench = RealBench::open(&self.directory, self.seed.unwrap_or(1), cache)?;
        let of_each =
            plans.len() as u64 + u64::from(hot.is_some()) + u64::from(self.device.is_some());
        let total = of_each * u64::from(repetitions);
        let (mut measured, mut done) = (Vec::new(), 0);
        let mut advance = || {
            done += 1;
            if tell(done, total) { Ok(()) } else { Err(AgeError::Stopped) }
        };
        for repetition in 0..repetitions {
            if let Some(device) = &self.device {
                let phase = bench.raw_read(device, total_bytes)?;
                measured.push(row("raw-read", phase, repetition, LayoutCounts::default()));
                advance()?;
            }
            for plan in &plans {
                let took = bench.sequential(plan)?;
                for (name, phase) in
                    [("create", took.create), ("read", took.read), ("overwrite", took.overwrite)]
                {
                    measured.push(Measured {
                        file_bytes: Some(plan.file_bytes),
                        sync_each: plan.sync_each,
                        ..row(name, phase, repetition, took.layout)
                    });
                }
                advance()?;
            }
            if let Some(files) = &hot {
                let (read, write, layout) = bench.existing(files, self.overwrite_hot)?;
                measured.push(row("hot-read", read, repetition, layout));
                if let Some(write) = write {
                    measured.push(row("hot-overwrite", write, repetition, layout));
                }
                advance()?;
            }
        }
        Ok(json!({
            "target": {"kind": "directory", "cache": bench.cache(), "still_cached": bench.still_cached()},
            "total_bytes": total_bytes,
            "files_per_directory": self.files_per_directory(),
            "repetitions": repetitions,
            "hot_files": hot.map(|files| files.len()),
            "summary": summary(&measured),
            "measurements": measured,
        }))
    }

    fn total_bytes(&self) -> Result<u64, AgeError> {
        self.total.as_deref().map_or(Ok(SEQUENTIAL_BYTES), |text| bytes("--bytes", text))
    }

    fn files_per_directory(&self) -> u32 {
        self.files_per_directory.unwrap_or(FILES_PER_DIRECTORY).max(1)
    }

    fn plans(&self) -> Result<Vec<SequentialPlan>, AgeError> {
        let total_bytes = self.total_bytes()?;
        let sizes = match &self.sizes {
            Some(sizes) => {
                sizes.iter().map(|text| bytes("--sizes", text)).collect::<Result<_, _>>()?
            }
            None => FILE_SIZES_KIB.map(|size| size << 10).to_vec(),
        };
        let sync_each = self.sync_each.clone().unwrap_or_else(|| vec![false]);
        let with_sync = |size: u64| {
            sync_each.iter().map(move |sync| {
                SequentialPlan::new(size, total_bytes, self.files_per_directory(), *sync)
            })
        };
        Ok(sizes.into_iter().flat_map(with_sync).collect())
    }

    fn hot_files(&self) -> Result<Option<Vec<PathBuf>>, AgeError> {
        let days = self.hot_days.unwrap_or(HOT_DAYS);
        let files = match &self.hot_log {
            Some(log) => hot::of_log(log, days)?,
            None if self.hot => hot::of_tree(&self.directory, days)?,
            None => return Ok(None),
        };
        if files.is_empty() {
            return Err(AgeError::Input(format!(
                "{}: no file was modified in the last {days} days of its use; say --hot-days",
                self.directory.display()
            )));
        }
        Ok(Some(files))
    }
}

/// A size that measures something.
fn bytes(option: &str, text: &str) -> Result<u64, AgeError> {
    match agewell_core::parse_bytes(text) {
        Ok(0) => {
            Err(AgeError::Input(format!("{option} {text}: measures nothing; use 1 B or more")))
        }
        Ok(bytes) => Ok(bytes),
        Err(why) => Err(AgeError::Input(format!("{option}: {why}"))),
    }
}

fn row(phase: &'static str, took: RealPhase, repetition: u32, layout: LayoutCounts) -> Measured {
    Measured {
        phase,
        file_bytes: None,
        sync_each: false,
        repetition,
        bytes: took.bytes,
        time_ns: took.time_ns,
        layout_optimal: layout.optimal,
        layout_counted: layout.counted,
    }
}

/// The medians over repetitions, in the order of the first of them.
fn summary(measured: &[Measured]) -> Vec<Value> {
    let firsts = measured.iter().filter(|one| one.repetition == 0);
    firsts
        .map(|first| {
            let alike = measured.iter().filter(|other| {
                other.phase == first.phase
                    && other.file_bytes == first.file_bytes
                    && other.sync_each == first.sync_each
            });
            let (mut rates, mut layout) = (Vec::new(), LayoutCounts::default());
            for one in alike {
                let phase = RealPhase { bytes: one.bytes, time_ns: one.time_ns };
                rates.push(phase.mb_per_s());
                layout.optimal += one.layout_optimal;
                layout.counted += one.layout_counted;
            }
            let (median, deviation) = median_and_deviation(&rates);
            json!({
                "phase": first.phase,
                "file_bytes": first.file_bytes,
                "sync_each": first.sync_each,
                "bytes": first.bytes,
                "mb_per_s": median,
                "mb_per_s_deviation": deviation,
                "layout_score": layout.score(),
            })
        })
        .collect()
}
