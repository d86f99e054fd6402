//! Filters: pure functions over batches that compose in a pipe, in the order they are given.
//!
//! | text | keeps or does |
//! |---|---|
//! | `time=1h..2h` | requests enqueued from 1 h up to, not including, 2 h after the trace's start; either end may be left out |
//! | `op=read` | requests of these operations, separated by commas: read, write, discard, flush |
//! | `device=0` | requests to these devices, by number or name, separated by commas |
//! | `sector=0..1000000` | requests whose first sector lies in the range; either end may be left out |
//! | `drop-daily=03:00..06:00` | drops what was enqueued in this window of every day, by the trace's wall clock |
//! | `split=64 KiB` | cuts longer requests into pieces of at most this size, all with the times of the whole |
//! | `rebase=-171760` | adds a number of sectors to every address |
//! | `sample=1/10` | keeps a tenth of the address regions (1 MiB each; `sample=1/10@64 KiB` for others), all requests of each |
//! | `scale-time=0.5` | multiplies the times between requests; queueing and service times stay |
//!
//! Sampling hashes device and region, not requests, so that re-use within a region survives
//! (spatial sampling; Waldspurger et al. 2015, "Efficient MRC Construction with SHARDS").

use agewell_core::{DailyWindow, Operation, SimTime, mix, nearest, parse_bytes, parse_duration_ns};

use crate::error::TraceError;
use crate::metadata::TraceMetadata;
use crate::record::{BlockBatch, DEVICE_SECTORS_MAX, TIME_MISSING};

const NAMES: [&str; 9] =
    ["time", "op", "device", "sector", "drop-daily", "split", "rebase", "sample", "scale-time"];
/// Default region of `sample=`, in sectors: 1 MiB, chosen by us as larger than nearly every
/// request.
const SAMPLE_REGION_SECTORS: u64 = 2048;
/// More pieces than any real request needs; beyond it a corrupt length would fill the memory.
const PIECES_MAX: u64 = 1 << 20;

/// One filter. The text form is in the module's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Enqueue time in `[from_ns, to_ns)`.
    Time {
        /// First instant kept.
        from_ns: u64,
        /// First instant no longer kept.
        to_ns: u64,
    },
    /// One of these operations.
    Operation(Vec<Operation>),
    /// One of these devices, each a number or a name.
    Device(Vec<String>),
    /// First sector in `[from, to)`.
    Sector {
        /// First sector kept.
        from: u64,
        /// First sector no longer kept.
        to: u64,
    },
    /// Not in this window of the day; it may pass midnight.
    DropDaily(DailyWindow),
    /// Pieces of at most this many sectors.
    Split {
        /// Longest piece.
        sectors: u32,
    },
    /// Addresses moved by this many sectors.
    Rebase {
        /// Added to every address.
        sectors: i64,
    },
    /// A share of the address regions.
    Sample {
        /// Regions kept of every `denominator`.
        numerator: u64,
        /// See `numerator`.
        denominator: u64,
        /// Length of a region.
        region_sectors: u64,
    },
    /// Time between requests multiplied by `numerator / denominator`.
    ScaleTime {
        /// See the variant.
        numerator: u64,
        /// See the variant.
        denominator: u64,
    },
}

fn usage(text: &str, advice: &str) -> TraceError {
    TraceError::Usage(format!("filter '{text}': {advice}"))
}

/// `a..b` with either end optional.
fn range<'a>(text: &str, value: &'a str, example: &str) -> Result<(&'a str, &'a str), TraceError> {
    value
        .split_once("..")
        .map(|(from, to)| (from.trim(), to.trim()))
        .ok_or_else(|| usage(text, &format!("must be a range such as {example}")))
}

fn fraction(text: &str, value: &str) -> Result<(u64, u64), TraceError> {
    let parsed = if let Some((numerator, denominator)) = value.split_once('/') {
        numerator.trim().parse().ok().zip(denominator.trim().parse().ok())
    } else {
        let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
        let digits = format!("{whole}{decimals}");
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (plain && decimals.len() <= 9)
            .then(|| digits.parse().ok().zip(Some(10_u64.pow(decimals.len() as u32))))
            .flatten()
    };
    parsed
        .filter(|&(numerator, denominator): &(u64, u64)| numerator > 0 && denominator > 0)
        .ok_or_else(|| usage(text, "must be a positive number such as 0.5 or 1/10"))
}

impl std::str::FromStr for Filter {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(usage(
                text,
                &format!("must be NAME=VALUE, NAME one of {}", NAMES.join(", ")),
            ));
        };
        let (name, value) = (name.trim(), value.trim());
        let quantity =
            |value: &str| parse_duration_ns(value).map_err(|error| usage(text, &error.to_string()));
        match name {
            "time" => {
                let (from, to) = range(text, value, "time=1h..2h")?;
                let from_ns = if from.is_empty() { 0 } else { quantity(from)? };
                let to_ns = if to.is_empty() { u64::MAX } else { quantity(to)? };
                if to_ns <= from_ns {
                    return Err(usage(text, "the range is empty"));
                }
                Ok(Filter::Time { from_ns, to_ns })
            }
            "op" | "operation" => {
                let operations = value
                    .split(',')
                    .map(|name| {
                        let name = name.trim();
                        Operation::ALL
                            .into_iter()
                            .find(|operation| operation.name() == name)
                            .ok_or_else(|| usage(text, "must be read, write, discard or flush"))
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Filter::Operation(operations))
            }
            "device" => {
                let names: Vec<String> =
                    value.split(',').map(|name| name.trim().to_owned()).collect();
                if names.iter().any(String::is_empty) {
                    return Err(usage(text, "must be device numbers or names, such as device=0"));
                }
                Ok(Filter::Device(names))
            }
            "sector" => {
                let (from, to) = range(text, value, "sector=0..1000000")?;
                let number = |end: &str, absent: u64| {
                    if end.is_empty() {
                        return Ok(absent);
                    }
                    end.parse().map_err(|_| usage(text, "must be a range of sector numbers"))
                };
                let (from, to) = (number(from, 0)?, number(to, u64::MAX)?);
                if to <= from {
                    return Err(usage(text, "the range is empty"));
                }
                Ok(Filter::Sector { from, to })
            }
            "drop-daily" => value
                .parse()
                .map(Filter::DropDaily)
                .map_err(|error: agewell_core::DailyWindowError| usage(text, &error.to_string())),
            "split" => {
                let bytes = parse_bytes(value).map_err(|error| usage(text, &error.to_string()))?;
                let sectors = u32::try_from(bytes / 512).unwrap_or(0);
                if sectors == 0 || bytes % 512 != 0 {
                    return Err(usage(text, "must be a whole number of 512-byte sectors"));
                }
                Ok(Filter::Split { sectors })
            }
            "rebase" => value
                .parse()
                .map(|sectors| Filter::Rebase { sectors })
                .map_err(|_| usage(text, "must be a whole number of sectors, such as -171760")),
            "sample" => {
                let (share, region) = value.split_once('@').unwrap_or((value, "1 MiB"));
                let (numerator, denominator) = fraction(text, share.trim())?;
                if numerator > denominator {
                    return Err(usage(text, "must be a share of at most 1, such as 1/10"));
                }
                let bytes = parse_bytes(region).map_err(|error| usage(text, &error.to_string()))?;
                if bytes == 0 || bytes % 512 != 0 {
                    return Err(usage(text, "the region must be whole 512-byte sectors"));
                }
                let region_sectors = bytes / 512;
                debug_assert!(region != "1 MiB" || region_sectors == SAMPLE_REGION_SECTORS);
                Ok(Filter::Sample { numerator, denominator, region_sectors })
            }
            "scale-time" => {
                let (numerator, denominator) = fraction(text, value)?;
                Ok(Filter::ScaleTime { numerator, denominator })
            }
            _ => Err(usage(
                text,
                &match nearest(name, &NAMES) {
                    Some(near) => format!("unknown filter '{name}'; did you mean '{near}'?"),
                    None => format!("unknown filter '{name}'; known are {}", NAMES.join(", ")),
                },
            )),
        }
    }
}

/// Filters in their order, with what they did so far.
#[derive(Debug, Clone, Default)]
pub struct FilterPipe {
    filters: Vec<Filter>,
    /// Requests that came in.
    pub rows_in: u64,
    /// Requests that went out.
    pub rows_out: u64,
    /// Requests that `split` cut.
    pub split_requests: u64,
    keep: Vec<bool>,
    scratch: BlockBatch,
}

impl FilterPipe {
    /// A pipe of `filters`.
    ///
    /// # Errors
    /// If a filter of the day stands behind one that changes the clock.
    pub fn new(filters: Vec<Filter>) -> Result<Self, TraceError> {
        let scaled = filters.iter().position(|filter| matches!(filter, Filter::ScaleTime { .. }));
        let daily = filters.iter().rposition(|filter| matches!(filter, Filter::DropDaily(_)));
        if scaled.zip(daily).is_some_and(|(scaled, daily)| daily > scaled) {
            return Err(TraceError::Usage(
                "filter drop-daily must stand before scale-time, which leaves the wall clock"
                    .to_owned(),
            ));
        }
        Ok(Self { filters, ..Self::default() })
    }

    /// A pipe from texts such as `op=read`.
    ///
    /// # Errors
    /// The first text that is no filter.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, TraceError> {
        Self::new(texts.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>()?)
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether no later request can pass: the trace is past the end of every time filter that
    /// nothing rescales.
    #[must_use]
    pub fn is_past_end(&self, enqueue_ns: u64) -> bool {
        self.filters
            .iter()
            .take_while(|filter| !matches!(filter, Filter::ScaleTime { .. }))
            .any(|filter| matches!(filter, Filter::Time { to_ns, .. } if enqueue_ns >= *to_ns))
    }

    /// Applies every filter in order to `batch`.
    ///
    /// # Errors
    /// If an address or time would leave its range, or the trace lacks the wall clock that `drop-daily` needs.
    pub fn apply(
        &mut self,
        metadata: &TraceMetadata,
        batch: &mut BlockBatch,
    ) -> Result<(), TraceError> {
        self.rows_in += batch.len() as u64;
        let filters = std::mem::take(&mut self.filters);
        let result = filters.iter().try_for_each(|filter| self.apply_one(filter, metadata, batch));
        self.filters = filters;
        self.rows_out += batch.len() as u64;
        result
    }

    fn apply_one(
        &mut self,
        filter: &Filter,
        metadata: &TraceMetadata,
        batch: &mut BlockBatch,
    ) -> Result<(), TraceError> {
        let rows = batch.len();
        self.keep.clear();
        match filter {
            Filter::Time { from_ns, to_ns } => {
                let window = *from_ns..*to_ns;
                self.keep.extend(batch.enqueue_ns.iter().map(|time| window.contains(time)));
            }
            Filter::Operation(wanted) => {
                let mut mask = [false; 256];
                for operation in wanted {
                    mask[usize::from(*operation as u8)] = true;
                }
                self.keep.extend(batch.operation.iter().map(|&code| mask[usize::from(code)]));
            }
            Filter::Device(names) => {
                // Devices appear while the trace is read, so names are looked up again with each
                // batch.
                let wanted: Vec<u32> = metadata
                    .devices
                    .iter()
                    .filter(|device| {
                        names
                            .iter()
                            .any(|name| *name == device.name || name.parse() == Ok(device.id))
                    })
                    .map(|device| device.id)
                    .collect();
                self.keep.extend(batch.device.iter().map(|id| wanted.binary_search(id).is_ok()));
            }
            Filter::Sector { from, to } => {
                let wanted = *from..*to;
                self.keep.extend(batch.sector.iter().map(|sector| wanted.contains(sector)));
            }
            Filter::DropDaily(window) => {
                let start_ns = metadata.start_wall_ns.ok_or_else(|| {
                    TraceError::Usage(
                        "filter drop-daily: this trace does not say at what time of day it began"
                            .to_owned(),
                    )
                })?;
                let offset_ns = start_ns.rem_euclid(agewell_core::DAY_NS as i64).unsigned_abs();
                self.keep.extend(
                    batch.enqueue_ns.iter().map(|&time| !window.contains(SimTime(time), offset_ns)),
                );
            }
            Filter::Sample { numerator, denominator, region_sectors } => {
                self.keep.extend((0..rows).map(|row| {
                    let region = batch.sector[row] / region_sectors;
                    region_hash(batch.device[row], region) % denominator < *numerator
                }));
            }
            Filter::Split { sectors } => return self.split(*sectors, batch),
            Filter::Rebase { sectors } => return rebase(*sectors, batch),
            Filter::ScaleTime { numerator, denominator } => {
                return scale_time(*numerator, *denominator, batch);
            }
        }
        retain(batch, &self.keep);
        Ok(())
    }

    fn split(&mut self, longest: u32, batch: &mut BlockBatch) -> Result<(), TraceError> {
        if batch.sectors.iter().all(|&sectors| sectors <= longest) {
            return Ok(());
        }
        self.scratch.clear();
        for index in 0..batch.len() {
            let whole = batch.row(index);
            if whole.sectors <= longest || !moves_data(whole.operation) {
                self.scratch.push(whole);
                continue;
            }
            if u64::from(whole.sectors / longest) > PIECES_MAX {
                return Err(TraceError::Usage(format!(
                    "filter split: a request of {} sectors would become more than {PIECES_MAX} pieces",
                    whole.sectors
                )));
            }
            self.split_requests += 1;
            let mut done = 0;
            while done < whole.sectors {
                let mut piece = whole;
                piece.sector = whole.sector + u64::from(done);
                piece.sectors = longest.min(whole.sectors - done);
                done += piece.sectors;
                self.scratch.push(piece);
            }
        }
        std::mem::swap(batch, &mut self.scratch);
        Ok(())
    }
}

fn moves_data(operation: u8) -> bool {
    Operation::from_code(operation).is_some_and(Operation::transfers_data)
}

/// Mixes device and region into 64 well-spread bits.
fn region_hash(device: u32, region: u64) -> u64 {
    mix(region.wrapping_add(u64::from(device).wrapping_mul(0xd1b5_4a32_d192_ed03)))
}

/// Keeps the rows marked in `keep`, in place.
fn retain(batch: &mut BlockBatch, keep: &[bool]) {
    if keep.iter().all(|&kept| kept) {
        return;
    }
    let mut kept = 0;
    for (index, _) in keep.iter().enumerate().filter(|(_, kept)| **kept) {
        if kept != index {
            let row = batch.row(index);
            batch.set_row(kept, row);
        }
        kept += 1;
    }
    batch.truncate(kept);
}

fn rebase(by: i64, batch: &mut BlockBatch) -> Result<(), TraceError> {
    for (index, sector) in batch.sector.iter_mut().enumerate() {
        // A flush carries no address.
        if batch.operation[index] == Operation::Flush as u8 {
            continue;
        }
        *sector = sector
            .checked_add_signed(by)
            .filter(|&first| first <= DEVICE_SECTORS_MAX - u64::from(batch.sectors[index]))
            .ok_or_else(|| {
                TraceError::Usage(format!(
                    "filter rebase={by}: moves sector {sector} off the device; filter by sector first"
                ))
            })?;
    }
    Ok(())
}

fn scale_time(numerator: u64, denominator: u64, batch: &mut BlockBatch) -> Result<(), TraceError> {
    for index in 0..batch.len() {
        let before = batch.enqueue_ns[index];
        let scaled = u128::from(before) * u128::from(numerator) / u128::from(denominator);
        let after =
            u64::try_from(scaled).ok().filter(|&ns| ns < u64::MAX / 2).ok_or_else(|| {
                TraceError::Usage(format!(
                    "filter scale-time: {before} ns becomes longer than 292 years"
                ))
            })?;
        batch.enqueue_ns[index] = after;
        for time in [&mut batch.start_ns[index], &mut batch.finish_ns[index]] {
            if *time != TIME_MISSING {
                *time = (*time - before).saturating_add(after).min(TIME_MISSING - 1);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BlockRow;

    fn batch(rows: &[(u64, u32, u64, u32, u8)]) -> BlockBatch {
        let mut batch = BlockBatch::default();
        for &(enqueue_ns, device, sector, sectors, operation) in rows {
            batch.push(BlockRow {
                enqueue_ns,
                start_ns: TIME_MISSING,
                finish_ns: enqueue_ns + 5,
                device,
                sector,
                sectors,
                operation,
                flags: 0,
                client: 0,
            });
        }
        batch
    }

    fn filtered(filters: &[&str], mut batch: BlockBatch) -> BlockBatch {
        let metadata = TraceMetadata {
            start_wall_ns: Some(23 * 3_600_000_000_000),
            devices: (0..3)
                .map(|id| crate::DeviceDescription {
                    id,
                    name: format!("disk {id}"),
                    ..crate::DeviceDescription::default()
                })
                .collect(),
            ..TraceMetadata::default()
        };
        let mut pipe = FilterPipe::parse(filters).expect("filters");
        pipe.apply(&metadata, &mut batch).expect("applies");
        batch
    }

    const HOUR: u64 = 3_600_000_000_000;

    #[test]
    fn ranges_are_half_open() {
        let all = batch(&[(0, 0, 0, 8, 0), (HOUR, 0, 100, 8, 1), (2 * HOUR, 1, 200, 8, 0)]);
        assert_eq!(filtered(&["time=1h..2h"], all.clone()).sector, [100]);
        assert_eq!(filtered(&["time=..1 h"], all.clone()).sector, [0]);
        assert_eq!(filtered(&["sector=100..200"], all.clone()).sector, [100]);
        assert_eq!(filtered(&["sector=100.."], all.clone()).sector, [100, 200]);
        assert_eq!(filtered(&["op=read"], all.clone()).sector, [0, 200]);
        assert_eq!(filtered(&["device=1"], all.clone()).sector, [200]);
        assert_eq!(filtered(&["device=disk 0", "op=write"], all).sector, [100]);
    }

    #[test]
    fn a_daily_window_may_pass_midnight() {
        // The trace starts at 23:00.
        let hours: Vec<_> = (0..26).map(|hour| (hour * HOUR, 0, hour, 1, 0)).collect();
        let left = filtered(&["drop-daily=22:00..02:00"], batch(&hours)).sector;
        assert_eq!(left, (3..23).collect::<Vec<_>>());
        let left = filtered(&["drop-daily=03:00..06:00"], batch(&hours)).sector;
        let expected: Vec<u64> = (0..26).filter(|hour| !(4..7).contains(hour)).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn splitting_conserves_sectors_and_order() {
        let left = filtered(&["split=4 KiB"], batch(&[(0, 0, 5, 20, 0), (1, 0, 100, 8, 1)]));
        assert_eq!(left.sector, [5, 13, 21, 100]);
        assert_eq!(left.sectors, [8, 8, 4, 8]);
    }

    #[test]
    fn rebasing_moves_and_refuses_to_leave_the_device() {
        assert_eq!(filtered(&["rebase=-5"], batch(&[(0, 0, 5, 8, 0)])).sector, [0]);
        let mut pipe = FilterPipe::parse(&["rebase=-6"]).expect("a filter");
        let mut below = batch(&[(0, 0, 5, 8, 0)]);
        let error = pipe.apply(&TraceMetadata::default(), &mut below).expect_err("below zero");
        assert!(error.to_string().contains("sector 5"), "{error}");
    }

    #[test]
    fn scaling_keeps_the_service_time() {
        let left = filtered(&["scale-time=0.5"], batch(&[(HOUR, 0, 0, 8, 0)]));
        assert_eq!((left.enqueue_ns[0], left.finish_ns[0]), (HOUR / 2, HOUR / 2 + 5));
    }

    #[test]
    fn sampling_keeps_whole_regions_and_about_the_share() {
        let rows: Vec<_> =
            (0..20_000_u64).map(|n| (n, 0, n / 2 * 2048 + n % 2 * 1000, 8, 0)).collect();
        let left = filtered(&["sample=1/10"], batch(&rows));
        assert!((1800..2200).contains(&left.len()), "{}", left.len());
        for pair in left.sector.chunks(2) {
            assert_eq!(pair[0] / 2048, pair[1] / 2048);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("op", "NAME=VALUE"),
            ("oops=1", "did you mean 'op'"),
            ("op=reed", "read, write"),
            ("time=1..2", "unit"),
            ("time=2h..1h", "empty"),
            ("split=100 B", "512"),
            ("sample=3/2", "at most 1"),
            ("scale-time=0", "positive"),
            ("drop-daily=25:00..26:00", "03:00..06:00"),
            ("drop-daily=03:00..03:00", "no window"),
        ] {
            let error = text.parse::<Filter>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(FilterPipe::parse(&["scale-time=2", "drop-daily=03:00..06:00"]).is_err());
    }
}
