//! What a mounted file system gives to one who uses it, in calls and bytes a second:
//! `rates [--rounds N] [--size-mib N] [--files N] [--clients N] [--json] DIRECTORY...`.
//!
//! Several directories are measured in turn, round by round, so that what else the machine does meets all
//! of them; the best and the median of the rounds are given, and how each stands to the first directory.
//! `stat cold` and `read cold` are without what the kernel remembers of files, which only root can take
//! from it (`/proc/sys/vm/drop_caches`). It is `stat` as C programs call it: the standard library of Rust asks
//! for the birth time as well, which costs a request more.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit, reason = "it is a command")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::Duration;

use rustix::fs::{Advice, fadvise, stat};
use rustix::time::ClockId;

const BLOCK: usize = 4096;

/// Bytes of one call of the sequential loads.
const CALL: usize = 1 << 20;

/// The loads that count calls go on for so long at most, chosen by us: on a disk a `fsync` takes 3 ms.
const LONGEST_SECONDS: f64 = 3.0;

/// What is measured, in this order; the units.
const MEASURES: [(&str, &str); 10] = [
    ("write", "MB/s"),
    ("write, fsync", "MB/s"),
    ("read cold", "MB/s"),
    ("random 4K write", "/s"),
    ("  its median", "us"),
    ("4K write, fsync", "/s"),
    ("create", "/s"),
    ("stat cold", "/s"),
    ("create, unlink", "/s"),
    ("4K files", "/s"),
];

/// Of a latency less is better.
const LATENCY: usize = 4;

type Rates = [f64; MEASURES.len()];

struct Arguments {
    rounds: usize,
    size: u64,
    files: usize,
    clients: usize,
    json: bool,
    directories: Vec<PathBuf>,
}

fn arguments() -> Option<Arguments> {
    let mut with = Arguments {
        rounds: 5,
        size: 512 << 20,
        files: 20_000,
        clients: 1,
        json: false,
        directories: Vec::new(),
    };
    let mut given = std::env::args_os().skip(1);
    while let Some(word) = given.next() {
        let mut number = || {
            let text = given.next()?;
            text.to_str()?.parse::<usize>().ok().filter(|&number| number > 0)
        };
        match word.to_str() {
            Some("--rounds") => with.rounds = number()?,
            Some("--size-mib") => with.size = (number()? as u64) << 20,
            Some("--files") => with.files = number()?,
            Some("--clients") => with.clients = number()?,
            Some("--json") => with.json = true,
            Some(option) if option.starts_with('-') => return None,
            _ => with.directories.push(word.into()),
        }
    }
    (!with.directories.is_empty()).then_some(with)
}

fn main() {
    let Some(with) = arguments() else {
        eprintln!(
            "usage: rates [--rounds N] [--size-mib N] [--files N] [--clients N] [--json] DIRECTORY..."
        );
        exit(2);
    };
    let mut all: Vec<Vec<Rates>> = vec![Vec::new(); with.directories.len()];
    for round in 0..with.rounds {
        for (directory, rates) in with.directories.iter().zip(&mut all) {
            match measure(directory, &with, round) {
                Ok(measured) => rates.push(measured),
                Err(error) => {
                    eprintln!("rates: error: {}: {error}", directory.display());
                    exit(1);
                }
            }
        }
    }
    let best: Vec<Rates> = all.iter().map(|rates| over_rounds(rates, best_of)).collect();
    let middle: Vec<Rates> = all.iter().map(|rates| over_rounds(rates, median_of)).collect();
    if with.json { print_json(&with, &best, &middle) } else { print_table(&with, &best, &middle) }
}

/// One round in a directory of its own, which is removed.
fn measure(directory: &Path, with: &Arguments, round: usize) -> io::Result<Rates> {
    let place = directory.join(format!("rates-{}", std::process::id()));
    fs::create_dir(&place).map_err(in_step("a directory is made"))?;
    let measured = measure_in(&place, with, round as u64);
    let measured = measured?;
    fs::remove_dir_all(&place).map_err(in_step("everything is removed"))?;
    Ok(measured)
}

fn measure_in(place: &Path, with: &Arguments, seed: u64) -> io::Result<Rates> {
    let megabytes = with.size as f64 / 1e6;
    let path = place.join("large");
    let buffer = vec![0x5a_u8; CALL];

    let start = now();
    let mut file = File::create(&path)?;
    for _ in 0..with.size / CALL as u64 {
        file.write_all(&buffer)?;
    }
    let written = now();
    file.sync_all()?;
    let synced = now();
    drop(file);

    fadvise(File::open(&path)?, 0, None, Advice::DontNeed)?;
    let mut file = File::open(&path)?;
    let mut into = vec![0_u8; CALL];
    let start_of_read = now();
    let mut read = 0;
    loop {
        match file.read(&mut into)? {
            0 => break,
            size => read += size as u64,
        }
    }
    let end_of_read = now();
    if read != with.size {
        return Err(io::Error::other(format!("{read} bytes were read of {}", with.size)));
    }

    let (random, median) = random_writes(&path, with, seed).map_err(in_step("random 4K write"))?;
    File::open(&path)?.sync_all()?;
    let synced_writes = synced_writes(&path, with, seed).map_err(in_step("4K write, fsync"))?;
    fs::remove_file(&path)?;

    let many = place.join("many");
    fs::create_dir(&many)?;
    let (created, files) =
        calls(with.files, |index| File::create_new(name(&many, index)).map(drop))
            .map_err(in_step("create"))?;
    forget_files();
    let looked_at = rate(files, |index| Ok(stat(name(&many, index)).map(drop)?))
        .map_err(in_step("stat cold"))?;
    fs::remove_dir_all(&many).map_err(in_step("the created are removed"))?;

    let pairs = in_clients(with.clients, |client| {
        let path = place.join(format!("pair-{client}"));
        rate(with.files / with.clients, |_| {
            drop(File::create_new(&path)?);
            fs::remove_file(&path)
        })
    })
    .map_err(in_step("create, unlink"))?;

    fs::create_dir(&many)?;
    let block = [0xa5; BLOCK];
    let small = rate(with.files, |index| File::create_new(name(&many, index))?.write_all(&block))
        .map_err(in_step("4K files"))?;

    Ok([
        megabytes / seconds(start, written),
        megabytes / seconds(start, synced),
        megabytes / seconds(start_of_read, end_of_read),
        random,
        median,
        synced_writes,
        created,
        looked_at,
        pairs,
        small,
    ])
}

/// Says in which step it was that a call failed.
fn in_step(step: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{step}: {error}"))
}

/// Writes of one block all over a file a second, and their median latency in us.
fn random_writes(path: &Path, with: &Arguments, seed: u64) -> io::Result<(f64, f64)> {
    let latencies = std::sync::Mutex::new(Vec::new());
    let rate = in_clients(with.clients, |client| {
        let file = OpenOptions::new().write(true).open(path)?;
        let block = [client as u8; BLOCK];
        let blocks = with.size / BLOCK as u64;
        let mut numbers = Numbers::new(seed << 8 | client as u64);
        let count = (with.size / BLOCK as u64 / 2 / with.clients as u64) as usize;
        let mut taken = Vec::with_capacity(count);
        let rate = rate(count, |_| {
            let start = now();
            file.write_all_at(&block, numbers.below(blocks) * BLOCK as u64)?;
            taken.push(seconds(start, now()));
            Ok(())
        })?;
        latencies.lock().expect("no client panics").append(&mut taken);
        Ok(rate)
    })?;
    let mut latencies = latencies.into_inner().expect("no client panics");
    Ok((rate, median_of(&mut latencies) * 1e6))
}

/// Writes of one block, each made durable, a second.
fn synced_writes(path: &Path, with: &Arguments, seed: u64) -> io::Result<f64> {
    in_clients(with.clients, |client| {
        let file = OpenOptions::new().write(true).open(path)?;
        let block = [client as u8; BLOCK];
        let blocks = with.size / BLOCK as u64;
        let mut numbers = Numbers::new(!(seed << 8 | client as u64));
        rate(20_000, |_| {
            file.write_all_at(&block, numbers.below(blocks) * BLOCK as u64)?;
            file.sync_data()
        })
    })
}

/// The sum of the rates of several at once.
fn in_clients(clients: usize, load: impl Fn(usize) -> io::Result<f64> + Sync) -> io::Result<f64> {
    std::thread::scope(|scope| {
        let load = &load;
        let threads: Vec<_> =
            (0..clients).map(|client| scope.spawn(move || load(client))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no client panics")).sum()
    })
}

/// Calls a second, of `count` of them or as many as there is time for.
fn rate(count: usize, call: impl FnMut(usize) -> io::Result<()>) -> io::Result<f64> {
    calls(count, call).map(|(rate, _)| rate)
}

/// Likewise, with how many there were.
fn calls(count: usize, mut call: impl FnMut(usize) -> io::Result<()>) -> io::Result<(f64, usize)> {
    let start = now();
    for index in 0..count {
        call(index)?;
        // A clock that is read seldom costs nothing.
        if index % 64 == 63 && seconds(start, now()) > LONGEST_SECONDS {
            return Ok(((index + 1) as f64 / seconds(start, now()), index + 1));
        }
    }
    Ok((count as f64 / seconds(start, now()), count))
}

fn name(directory: &Path, index: usize) -> PathBuf {
    directory.join(format!("file-{index:06}"))
}

/// Takes from the kernel what it remembers of files; quietly not, for anybody but root.
fn forget_files() {
    let _ = fs::write("/proc/sys/vm/drop_caches", "2");
}

fn now() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn seconds(start: Duration, end: Duration) -> f64 {
    end.saturating_sub(start).as_secs_f64()
}

/// Numbers that look random (xorshift64*, Vigna 2016).
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}

fn over_rounds(rates: &[Rates], choose: impl Fn(&mut [f64]) -> f64) -> Rates {
    std::array::from_fn(|measure| {
        let mut values: Vec<f64> = rates.iter().map(|rates| rates[measure]).collect();
        if measure == LATENCY {
            for value in &mut values {
                *value = -*value;
            }
        }
        choose(&mut values).abs()
    })
}

fn best_of(values: &mut [f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn median_of(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print_table(with: &Arguments, best: &[Rates], middle: &[Rates]) {
    println!(
        "best (median) of {} rounds, {} clients; the ratio is to the first",
        with.rounds, with.clients
    );
    for (number, directory) in with.directories.iter().enumerate() {
        println!("{:>2}: {}", number + 1, directory.display());
    }
    print!("{:<24}", "");
    (1..=best.len()).for_each(|number| print!("{number:>28}"));
    println!();
    for (measure, (name, unit)) in MEASURES.iter().enumerate() {
        print!("{:<24}", format!("{name}, {unit}"));
        for (best_of_one, middle) in best.iter().zip(middle) {
            let (value, middle) = (best_of_one[measure], middle[measure]);
            let digits = usize::from(measure == LATENCY);
            let ratio = value / best[0][measure];
            print!("{:>28}", format!("{value:.digits$} ({middle:.digits$}) {ratio:.2}x"));
        }
        println!();
    }
}

fn print_json(with: &Arguments, best: &[Rates], middle: &[Rates]) {
    let rows: Vec<String> = with
        .directories
        .iter()
        .zip(best.iter().zip(middle))
        .map(|(directory, (best, middle))| {
            let values: Vec<String> = MEASURES
                .iter()
                .zip(best.iter().zip(middle))
                .map(|((name, unit), (best, middle))| {
                    let name = name.trim();
                    format!(r#""{name} {unit}": {{"best": {best:.3}, "median": {middle:.3}}}"#)
                })
                .collect();
            let directory = directory.display().to_string();
            format!("{{\"directory\": {directory:?}, {}}}", values.join(", "))
        })
        .collect();
    println!("[{}]", rows.join(",\n "));
}
