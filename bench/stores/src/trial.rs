//! One store in a process of its own: filled, then at work for as long as it is told, then read back.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::load::{AlignedBytes, BLOCK_BYTES, Load, TRANSACTION_BLOCKS};
use crate::machine;
use crate::stores::{self, Failure, Store};

/// What a trial is of.
#[derive(Debug, Clone)]
pub struct Trial {
    pub store: String,
    pub folder: PathBuf,
    pub budget_bytes: u64,
    pub blocks: u32,
    pub clients: u32,
}

/// What a slice of work has shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Slice {
    /// Of all clients together: transactions over the time that they were in calls.
    pub transactions_per_s: f64,
    pub latencies_us: Vec<f32>,
    /// What the process has sent to the device, and all that went to it; none where nobody counts it.
    pub process_bytes: Option<u64>,
    pub device_bytes: Option<u64>,
    pub user_bytes: u64,
    pub counts: Value,
    pub file_bytes: u64,
}

/// What a trial has left.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ending {
    pub blocks_read: u32,
    pub blocks_wrong: u32,
    pub file_bytes: u64,
    pub memory_bytes_max: u64,
}

/// Blocks with their new data, where the store takes it from.
struct Writes {
    blocks: Vec<u32>,
    data: AlignedBytes,
}

impl Writes {
    fn new(blocks_max: usize) -> Self {
        Self { blocks: Vec::new(), data: AlignedBytes::new(blocks_max * BLOCK_BYTES) }
    }

    /// Has `store` write the next versions of `blocks`; how long it took.
    fn write(&mut self, store: &dyn Store, load: &mut Load) -> Result<Duration, Failure> {
        let values = self.data.bytes_mut().chunks_exact_mut(BLOCK_BYTES);
        self.blocks.iter().zip(values).for_each(|(block, into)| load.next_version(*block, into));
        let values = self.data.bytes().chunks_exact(BLOCK_BYTES);
        let writes: Vec<(u32, &[u8])> = self.blocks.iter().copied().zip(values).collect();
        let begun = Instant::now();
        store.write(&writes)?;
        Ok(begun.elapsed())
    }
}

/// Writes every block, and then as many at random as there are.
fn fill(store: &dyn Store, loads: &mut [Load]) -> Result<(), Failure> {
    let most = store.write_blocks_max();
    let mut writes = Writes::new(most);
    for load in loads {
        let blocks: Vec<u32> = load.blocks().collect();
        for some in blocks.chunks(most) {
            writes.blocks.clear();
            writes.blocks.extend_from_slice(some);
            writes.write(store, load)?;
        }
        for _ in 0..blocks.len().div_ceil(most) {
            load.drawn(most, &mut writes.blocks);
            writes.write(store, load)?;
        }
    }
    Ok(())
}

/// One client at work until `seconds` are over: how long each transaction took.
fn work(store: &dyn Store, load: &mut Load, seconds: f64) -> Result<Vec<Duration>, Failure> {
    let mut writes = Writes::new(TRANSACTION_BLOCKS);
    let mut latencies = Vec::new();
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < seconds {
        load.drawn(TRANSACTION_BLOCKS, &mut writes.blocks);
        latencies.push(writes.write(store, load)?);
    }
    Ok(latencies)
}

fn slice(
    store: &dyn Store,
    loads: &mut [Load],
    seconds: f64,
    folder: &Path,
) -> Result<Slice, Failure> {
    let (process, device) = (machine::process_bytes(), machine::device_bytes(folder));
    let clients: Vec<Vec<Duration>> = std::thread::scope(|scope| {
        let at_work: Vec<_> =
            loads.iter_mut().map(|load| scope.spawn(move || work(store, load, seconds))).collect();
        let ended = at_work.into_iter().map(|client| client.join().expect("no client panics"));
        ended.collect::<Result<_, Failure>>()
    })?;
    let rate = |latencies: &Vec<Duration>| {
        latencies.len() as f64 / latencies.iter().sum::<Duration>().as_secs_f64()
    };
    let since = |before: Option<u64>, now: Option<u64>| Some(now? - before?);
    let written = clients.iter().map(Vec::len).sum::<usize>() * TRANSACTION_BLOCKS * BLOCK_BYTES;
    Ok(Slice {
        transactions_per_s: clients.iter().map(rate).sum(),
        latencies_us: clients.iter().flatten().map(|took| took.as_secs_f32() * 1e6).collect(),
        process_bytes: since(process, machine::process_bytes()),
        device_bytes: since(device, machine::device_bytes(folder)),
        user_bytes: written as u64,
        counts: store.counts(),
        file_bytes: machine::allocated_bytes(folder)?,
    })
}

/// Reads every block, and counts those that are not what was written last.
fn read_back(store: &dyn Store, loads: &[Load]) -> Result<(u32, u32), Failure> {
    let (mut into, mut expected) = (AlignedBytes::new(BLOCK_BYTES), vec![0; BLOCK_BYTES]);
    let (mut read, mut wrong) = (0, 0);
    for load in loads {
        for block in load.blocks() {
            load.expected(block, &mut expected);
            into.bytes_mut().fill(0);
            let is_there = store.read(block, into.bytes_mut())?;
            read += 1;
            wrong += u32::from(!is_there || into.bytes() != expected);
        }
    }
    Ok((read, wrong))
}

/// Serves one trial: a line `run SECONDS` has it work, `finish` ends it. Prints one line of JSON when it is
/// filled and one for each command.
#[expect(clippy::print_stdout, reason = "whoever started it reads it")]
pub fn serve(trial: &Trial) -> Result<(), Failure> {
    // It may stand still when whoever started it ends, and would for ever.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let Trial { store: name, folder, .. } = trial;
    let store = stores::create(name, folder, trial.budget_bytes, trial.blocks)?;
    let clients = 0..trial.clients;
    let mut loads: Vec<Load> =
        clients.map(|client| Load::new(trial.blocks, client, trial.clients)).collect();
    if store.keeps() {
        fill(store.as_ref(), &mut loads)?;
    }
    println!("{}", Value::Bool(true));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if let Some(seconds) = line.strip_prefix("run ") {
            let slice = slice(store.as_ref(), &mut loads, seconds.parse()?, folder)?;
            println!("{}", serde_json::to_string(&slice)?);
            continue;
        }
        let (blocks_read, blocks_wrong) =
            if store.keeps() { read_back(store.as_ref(), &loads)? } else { (0, 0) };
        store.close()?;
        let file_bytes = machine::allocated_bytes(folder)?;
        let memory_bytes_max = machine::memory_bytes_max();
        let ending = Ending { blocks_read, blocks_wrong, file_bytes, memory_bytes_max };
        println!("{}", serde_json::to_string(&ending)?);
        return Ok(());
    }
    Err("who started this has ended".into())
}
