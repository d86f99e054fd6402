//! Operations on a store in memory, everything compared.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agewell_core::mix;
use agewell_fs::Time;
use agewell_store::device::{Disk, MemoryDisk, Piece};

use super::compare::{compare, is_clean};
use super::load::{Draw, Operation, Shape, close, step};
use super::model::Model;

/// Operations between two comparisons of everything; chosen by us.
const COMPARED_EVERY: usize = 24;

/// Times that a disk becomes larger by as much as it was made with.
const GROWTHS: u64 = 2;

/// A disk that becomes larger.
struct GrowingDisk {
    contents: MemoryDisk,
    made_bytes: u64,
    size_bytes: AtomicU64,
}

impl GrowingDisk {
    fn new(made_bytes: u64) -> Self {
        let contents = MemoryDisk::new(made_bytes * (1 + GROWTHS));
        Self { contents, made_bytes, size_bytes: AtomicU64::new(made_bytes) }
    }
}

impl Disk for GrowingDisk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Relaxed)
    }

    fn measure(&self) -> io::Result<u64> {
        let more = (self.size_bytes() + self.made_bytes).min(self.contents.size_bytes());
        self.size_bytes.store(more, Ordering::Relaxed);
        Ok(more)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        assert!(offset + into.len() as u64 <= self.size_bytes(), "there is not so much yet");
        self.contents.read(offset, into)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let ends = pieces.iter().map(|piece| piece.offset + piece.data.len() as u64);
        assert!(ends.max() <= Some(self.size_bytes()), "there is not so much yet");
        self.contents.write(pieces)
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.contents.discard(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.contents.flush()
    }
}

/// Carries the operations out on a store of that shape; how many found no room.
pub(crate) fn hold(shape: Shape, draws: &[Draw], size_max: u64) -> Result<u64, String> {
    let text = |error: agewell_fs::FsError| error.to_string();
    let disk = Arc::new(GrowingDisk::new(shape.device_bytes()));
    let mut fs = shape.make(Arc::clone(&disk)).map_err(text)?;
    let mut model = Model::new(u64::from(shape.block_bytes));
    let mut refused = 0;
    let mut now = Time::default();
    for (number, draw) in draws.iter().enumerate() {
        now.seconds += 1;
        if draw.0 == 255 {
            // Orphans are gone when it is opened again.
            let disk = close(fs).map_err(text)?;
            fs = shape.open(disk).map_err(text)?;
            while fs.work().map_err(text)? {}
            model = model.without_orphans();
            compare(&fs, &model, None).map_err(|what| format!("{number}, opened: {what}"))?;
            is_clean(&fs)?;
            continue;
        }
        if draw.0 == 254 {
            let before = fs.space();
            let is_whole = disk.size_bytes() == disk.contents.size_bytes();
            let has_grown = fs.grow().is_ok();
            let after = fs.space();
            let gained = (after.blocks - before.blocks, after.free - before.free);
            // A block of every 250 is kept for what describes the others; that may be in use where nothing is free.
            let is_free = before.free == 0 || gained.0.abs_diff(gained.1) <= 1 + gained.0 / 200;
            let is_right = has_grown && gained.1 <= gained.0 + 1 && is_free;
            if is_whole == has_grown || !(is_whole || is_right && gained.0 > before.blocks / 3) {
                return Err(format!("{number}, grown: from {before:?} to {after:?}"));
            }
            continue;
        }
        let operation = Operation::of(&model, *draw, size_max);
        step(&fs, &mut model, &operation, now, &mut refused)
            .map_err(|what| format!("operation {number}: {what}"))?;
        if number % COMPARED_EVERY == COMPARED_EVERY - 1 {
            compare(&fs, &model, None).map_err(|what| format!("after {number}: {what}"))?;
        }
    }
    compare(&fs, &model, None).map_err(|what| format!("at the end: {what}"))?;
    is_clean(&fs)?;
    let disk = close(fs).map_err(text)?;
    let fs = shape.open(disk).map_err(text)?;
    compare(&fs, &model.without_orphans(), None).map_err(|what| format!("opened: {what}"))?;
    is_clean(&fs)?;
    Ok(refused)
}

/// Draws of a seed.
pub(crate) fn drawn(seed: u64, count: u64) -> Vec<Draw> {
    let draw = |at: u64| {
        let (first, second) = (mix(seed << 32 | at << 1), mix(seed << 32 | at << 1 | 1));
        let bytes = first.to_le_bytes();
        let numbers = [second as u32, (second >> 32) as u32];
        (bytes[0], [bytes[1], bytes[2], bytes[3], bytes[4]], numbers)
    };
    (0..count).map(draw).collect()
}
