//! Figures of all trials, as JSON and as a table.

use serde::Serialize;
use serde_json::Value;

use crate::load::{BLOCK_BYTES, TRANSACTION_BLOCKS};
use crate::runner::Outcome;
use crate::stores::{is_ours, is_store};

/// A row of the table: one store, as full as it was, at one place.
#[derive(Debug, Serialize)]
pub struct Row {
    pub place: String,
    pub full_percent: f64,
    pub clients: u32,
    pub store: String,
    /// Of the best round, and of the median one.
    pub transactions_per_s: f64,
    pub transactions_per_s_median: f64,
    pub user_bytes_per_s_median: f64,
    /// Over all rounds.
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    pub transactions: usize,
    pub process_bytes_per_user_byte: Option<f64>,
    pub device_bytes_per_user_byte: Option<f64>,
    /// The most that its files took at the end of a round, over the bytes that are live.
    pub file_bytes_max: u64,
    pub file_bytes_per_live_byte: f64,
    pub fits_budget: bool,
    pub memory_bytes_max: u64,
    pub blocks_read: u32,
    pub blocks_wrong: u32,
    pub rounds_transactions_per_s: Vec<f64>,
    pub counts: Value,
    pub failure: Option<String>,
}

/// The middle one, or the mean of the two in the middle.
fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    match all.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => all[middle],
        _ => f64::midpoint(all[middle - 1], all[middle]),
    }
}

fn quantile(sorted: &[f32], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((sorted.len() as f64 * share) as usize)
        .or(sorted.get(last))
        .map_or(0.0, |us| f64::from(*us))
}

impl Row {
    pub fn new(place: &str, full_percent: f64, outcome: &Outcome) -> Self {
        let Outcome { trial, slices, ending, failure } = outcome;
        let rounds: Vec<f64> = slices.iter().map(|slice| slice.transactions_per_s).collect();
        let middle = median(rounds.clone());
        let mut latencies: Vec<f32> =
            slices.iter().flat_map(|slice| slice.latencies_us.iter().copied()).collect();
        latencies.sort_by(f32::total_cmp);
        let user: u64 = slices.iter().map(|slice| slice.user_bytes).sum();
        let per_user = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / user as f64);
        let live = u64::from(trial.blocks) * BLOCK_BYTES as u64;
        let files = slices.iter().map(|slice| slice.file_bytes);
        let file_bytes_max =
            files.chain(ending.iter().map(|ending| ending.file_bytes)).max().unwrap_or(0);
        Self {
            place: place.to_owned(),
            full_percent,
            clients: trial.clients,
            store: trial.store.clone(),
            transactions_per_s: rounds.iter().copied().fold(0.0, f64::max),
            transactions_per_s_median: middle,
            user_bytes_per_s_median: middle * (TRANSACTION_BLOCKS * BLOCK_BYTES) as f64,
            p50_us: quantile(&latencies, 0.5),
            p99_us: quantile(&latencies, 0.99),
            max_us: quantile(&latencies, 1.0),
            transactions: latencies.len(),
            process_bytes_per_user_byte: per_user(
                slices.iter().map(|slice| slice.process_bytes).sum(),
            ),
            device_bytes_per_user_byte: per_user(
                slices.iter().map(|slice| slice.device_bytes).sum(),
            ),
            file_bytes_max,
            file_bytes_per_live_byte: file_bytes_max as f64 / live as f64,
            // A file system counts blocks of its own to a file: here less than a part in 256.
            fits_budget: file_bytes_max <= trial.budget_bytes + (trial.budget_bytes >> 8),
            memory_bytes_max: ending.as_ref().map_or(0, |ending| ending.memory_bytes_max),
            blocks_read: ending.as_ref().map_or(0, |ending| ending.blocks_read),
            blocks_wrong: ending.as_ref().map_or(0, |ending| ending.blocks_wrong),
            rounds_transactions_per_s: rounds,
            counts: slices.last().map_or(Value::Null, |slice| slice.counts.clone()),
            failure: failure.clone(),
        }
    }
}

/// `rows`, of one place, share and number of clients, as lines.
pub fn table(rows: &[Row]) -> Vec<String> {
    let others = || rows.iter().filter(|row| is_store(&row.store) && !is_ours(&row.store));
    let best_other = |round: usize| {
        let rates = others().filter_map(|row| row.rounds_transactions_per_s.get(round));
        rates.copied().fold(0.0, f64::max)
    };
    let mut lines = vec![format!(
        "{:<22}{:>9}{:>9}{:>7}{:>9}{:>9}{:>9}{:>8}{:>8}{:>7}{:>7}{:>7}",
        "store",
        "median/s",
        "best/s",
        "MB/s",
        "p50 ms",
        "p99 ms",
        "max ms",
        "device",
        "process",
        "file",
        "ratio",
        "best"
    )];
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}"));
    let best_of_all = others().map(|row| row.transactions_per_s).fold(0.0, f64::max);
    // Held against the best other of the same round, as what else the machine does comes and goes.
    let ratio = |row: &Row| {
        let rounds = row.rounds_transactions_per_s.iter().enumerate();
        median(rounds.map(|(round, rate)| rate / best_other(round)).collect())
    };
    for row in rows {
        if let Some(failure) = &row.failure {
            lines.push(format!("{:<22}{failure}", row.store));
            continue;
        }
        lines.push(format!(
            "{:<22}{:>9.0}{:>9.0}{:>7.0}{:>9.3}{:>9.3}{:>9.3}{:>8}{:>8}{:>7.2}{:>7.2}{:>7.2}{}",
            row.store,
            row.transactions_per_s_median,
            row.transactions_per_s,
            row.user_bytes_per_s_median / 1e6,
            row.p50_us / 1e3,
            row.p99_us / 1e3,
            row.max_us / 1e3,
            share(row.device_bytes_per_user_byte),
            share(row.process_bytes_per_user_byte),
            row.file_bytes_per_live_byte,
            ratio(row),
            row.transactions_per_s / best_of_all,
            if row.fits_budget { "" } else { "  beyond the budget" },
        ));
    }
    lines
}
